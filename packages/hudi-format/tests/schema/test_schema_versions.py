"""Versions of a schema history: ids of columns, changes of them, and the JSON that Apache Hudi reads."""

import json

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError
from hudi_format.schema.internal_schema import parse_version, parse_versions
from hudi_format.schema.schema_versions import (
    SchemaEdit,
    history_text,
    latest_text,
    node_of,
    numbered,
    same_columns,
    version_of,
    without_ids,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("r", pa.struct([("a", pa.int32()), ("b", pa.date32())])),
        ("l", pa.list_(pa.struct([("q", pa.decimal128(12, 4))]))),
        ("m", pa.map_(pa.string(), pa.struct([("k", pa.float64())]))),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def edit(schema=SCHEMA, fixed=("id",)):
    return SchemaEdit(numbered(schema, version_of(schema, 0)), frozenset(fixed))


def ids(version):
    """Ids by path."""
    out = {}

    def walk(columns, path):
        for c in columns:
            out[f"{path}{c.name}"] = c.id
            walk(c.inside, f"{path}{c.name}.")

    walk(version.columns, "")
    return out


def test_ids_are_given_level_by_level_as_apache_hudi_does():
    """AvroInternalSchemaConverter: fields of a record first, then what is inside of each."""
    assert ids(version_of(SCHEMA, 0)) == {
        "id": 0, "r": 1, "l": 2, "m": 3, "t": 4, "r.a": 5, "r.b": 6, "l.element": 7, "l.element.q": 8, "m.key": 9,
        "m.value": 10, "m.value.k": 11,
    }  # fmt: skip


def test_the_text_of_a_version_reads_back():
    version = version_of(SCHEMA, 20240101000000000)
    back = parse_version(latest_text(version))
    assert back == version
    assert same_columns(back, version)
    assert (back.most, back.columns[0].optional) == (11, False)
    node = node_of(version)
    assert node["max_column_id"] == 11
    kinds = {f["name"]: f["type"] for f in node["fields"]}
    assert kinds["t"] == "timestamp"
    assert kinds["l"]["element"]["fields"][0]["type"] == "decimal(12, 4)"
    assert kinds["m"]["key"] == "string"


def test_a_renamed_column_is_the_same_one_and_a_new_one_of_its_name_is_not():
    first = version_of(SCHEMA, 0)
    change = edit()
    change.rename("r.a", "x")
    change.add("r.a", pa.int32())
    change.drop("t")
    change.add("t", pa.string(), after="id")
    second = version_of(change.schema, 1, first.most)
    was, now = ids(first), ids(second)
    assert now["r.x"] == was["r.a"]
    assert now["r.a"] > first.most
    assert now["t"] > first.most
    assert [c.name for c in second.columns][:2] == ["id", "t"]
    third = version_of(numbered(without_ids(change.schema), second), 2, second.most)
    assert ids(third) == now, "by name they keep their ids"
    assert same_columns(second, third)


def test_ids_are_never_given_again():
    change = edit()
    change.drop("m")
    version = version_of(change.schema, 1, 11)
    change.add("z", pa.int32())
    assert ids(version_of(change.schema, 2, version.most))["z"] == 12


def test_other_names_of_types_stay(monkeypatch):
    """A uuid is text to Arrow: writing on does not turn it into text for Apache Hudi."""
    text = latest_text(version_of(pa.schema([("u", pa.string())]), 0)).replace('"string"', '"uuid"')
    version = parse_version(text)
    on = version_of(numbered(pa.schema([("u", pa.string()), ("n", pa.int32())]), version), 1)
    assert [c.kind for c in on.columns] == ["uuid", "int"]


def test_a_history_has_the_newest_first_and_all_that_was():
    first, second = version_of(SCHEMA, 0), version_of(SCHEMA, 7)
    text = history_text(first, second)
    assert [v["version_id"] for v in json.loads(text)["schemas"]] == [7, 0]
    longer = history_text(text, version_of(SCHEMA, 9))
    assert [v.version for v in parse_versions(longer)] == [0, 7, 9]
    with pytest.raises(CorruptFileError):
        history_text('{"schemas": 3}', second)


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda e: e.add("r", pa.int32()), SchemaError, "already"),
        (lambda e: e.add("R", pa.int32()), SchemaError, "already"),
        (lambda e: e.add("", pa.int32()), SchemaError, "no name"),
        (lambda e: e.add("_hoodie_x", pa.int32()), SchemaError, "no name"),
        (lambda e: e.add("x", pa.int32(), after="nope"), MissingColumnError, "nope"),
        (lambda e: e.add("x", pa.int32(), after="r", first=True), SchemaError, "two places"),
        (lambda e: e.add("t.x", pa.int32()), SchemaError, "no column of a record"),
        (lambda e: e.rename("nope", "x"), MissingColumnError, "nope"),
        (lambda e: e.rename("r", "a.b"), SchemaError, "no name"),
        (lambda e: e.rename("r", "a b"), SchemaError, "'a b' is no name"),
        (lambda e: e.rename("r", "1a"), SchemaError, "no name"),
        (lambda e: e.add("p-q", pa.int32()), SchemaError, "no name"),
        (lambda e: e.add("r.", pa.int32()), SchemaError, "no name"),
        (lambda e: e.add("r.a b", pa.int32()), SchemaError, "no name"),
        (lambda e: e.rename("r", "L"), SchemaError, "already"),
        (lambda e: e.rename("id", "key"), SchemaError, "makes keys"),
        (lambda e: e.drop("id"), SchemaError, "makes keys"),
        (lambda e: e.drop("l.element.q"), SchemaError, "only column"),
        (lambda e: e.drop("l.element"), SchemaError, "no column of a record"),
        (lambda e: e.widen("r.a", pa.int32()), SchemaError, "has type int32 already"),
        (lambda e: e.widen("r.a", pa.int16()), SchemaError, "does not widen"),
        (lambda e: e.widen("r", pa.struct([])), SchemaError, "does not widen"),
        (lambda e: e.widen("r.b", pa.int64()), SchemaError, "does not widen"),
        (lambda e: e.widen("r", pa.string()), SchemaError, "does not widen"),
        (lambda e: e.widen("id", pa.int64()), SchemaError, "makes keys"),
        (lambda e: e.move("r"), SchemaError, "one place"),
        (lambda e: e.move("r", after="r"), MissingColumnError, "'r'"),
    ],
)  # fmt: skip
def test_changes_that_do_not_go_with_the_columns_are_refused(act, error, said):
    change = edit()
    with pytest.raises(error, match=said):
        act(change)
    assert without_ids(change.schema).equals(SCHEMA), "as it was"


def test_changes_at_every_level():
    change = edit()
    change.add("l.element.new", pa.string(), first=True)
    change.rename("m.value.k", "w")
    change.widen("r.a", pa.int64())
    change.widen("l.element.q", pa.decimal128(20, 4))
    change.move("t", first=True)
    change.move("r.b", first=True)
    assert without_ids(change.schema).equals(
        pa.schema(
            [
                ("t", pa.timestamp("us", "UTC")),
                pa.field("id", pa.string(), nullable=False),
                ("r", pa.struct([("b", pa.date32()), ("a", pa.int64())])),
                ("l", pa.list_(pa.struct([("new", pa.string()), ("q", pa.decimal128(20, 4))]))),
                ("m", pa.map_(pa.string(), pa.struct([("w", pa.float64())]))),
            ]
        )
    )


def test_a_type_without_a_name_is_refused():
    with pytest.raises(UnsupportedError, match=r"r\.z"):
        version_of(pa.schema([("r", pa.struct([("z", pa.timestamp("us"))]))]), 0)
