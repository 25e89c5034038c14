"""The report on what a write changes in a table's schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_format.schema.changes import SchemaChange, schema_changes
from hudi_format.schema.evolution import reconcile

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("w", pa.float64()),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("l", pa.list_(pa.field("element", pa.struct([("p", pa.int32())])))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
    ]
)


def report(incoming: pa.Schema, **options: bool) -> list[str]:
    return [str(c) for c in schema_changes(incoming, TABLE, reconcile(incoming, TABLE, **options))]


def test_the_same_schema_changes_nothing() -> None:
    assert report(TABLE) == []


@pytest.mark.req("SE-02")
def test_every_change_is_named_at_its_place() -> None:
    incoming = pa.schema(
        [
            pa.field("new", pa.date32()),
            pa.field("id", pa.string()),
            pa.field("n", pa.int64()),
            pa.field("w", pa.float32()),
            pa.field("s", pa.struct([("y", pa.string()), ("z", pa.int32()), ("x", pa.string())])),
            pa.field("l", pa.list_(pa.field("element", pa.struct([("p", pa.float64())])))),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    assert report(incoming) == [
        "new added as date32[day]",
        "id may be null",
        "n from int32 to int64",
        "w converted from float to double",
        "s.z added as int32",
        "s.x from int32 to string",
        "s reordered",
        "l.element.p from int32 to double",
        "m.value from int32 to int64",
    ]


def test_missing_columns_are_filled_or_dropped() -> None:
    incoming = pa.schema([TABLE.field("n"), TABLE.field("id"), TABLE.field("s"), TABLE.field("l")])
    assert report(incoming, reconcile=True) == ["w filled with null", "m filled with null"]
    assert report(incoming, allow_column_drop=True) == [
        "w dropped, was double",
        "m dropped, was map<string, int32>",
        "columns reordered",
    ]


def test_a_change_knows_whether_it_lies_inside_another_column() -> None:
    assert SchemaChange("added", "s.x", "", "int32").nested
    assert not SchemaChange("added", "s", "", "int32").nested
