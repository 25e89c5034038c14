"""No Arrow data ends the process: writes of arrays that no writer of ours makes, in a process of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_timeline import HudiTable, write_hudi

PROGRAM = Path(__file__).parents[1] / "support" / "odd_arrow.py"
# How many tables of random columns are written; HUDI_ODD_ARROW=3000 is the long form.
COUNT = int(os.environ.get("HUDI_ODD_ARROW", "80"))


def test_arrays_of_any_make_are_written_or_refused():
    command = [sys.executable, str(PROGRAM), "0", str(COUNT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60 + 5 * COUNT, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]  # the last number in it is the seed
    # The inputs are what they are meant to be: most are written, some refused.
    counts = {name: int(n) for name, n in re.findall(r"'([\w ]+)': (\d+)", ended.stdout)}
    assert counts["refused SchemaError"] >= COUNT // 10
    for operation in ("upsert", "insert", "bulk_insert", "deleted"):
        assert counts[operation] >= COUNT // 20, counts


NESTED = pa.struct([pa.field("a", pa.int64(), nullable=False)])
KEYS = pa.schema([("id", pa.string()), ("ts", pa.int64())])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert"])
def test_nulls_below_a_column_that_promises_none_are_refused_before_anything_is_written(
    tmp_path, kind, operation
):
    table = HudiTable.create(
        str(tmp_path / "t"),
        KEYS.append(pa.field("v", NESTED)),
        name="t",
        record_keys="id",
        ordering_fields="ts",
        table_type=kind,
    )
    table.upsert([{"id": "a", "ts": 1, "v": {"a": 1}}])
    before = sorted(tmp_path.rglob("*"))
    inner = pa.StructArray.from_arrays([pa.array([1, None])], fields=list(NESTED))
    rows = pa.table([["b", "c"], [2, 2], inner], schema=table.schema)
    with pytest.raises(SchemaError, match=r"v\.a must not be null, but is null in row 1"):
        getattr(HudiTable.open(table.uri), operation)(rows)
    assert sorted(tmp_path.rglob("*")) == before
    assert HudiTable.open(table.uri).read().to_arrow().num_rows == 1


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), NESTED, pa.map_(pa.string(), pa.int64())], ids=str)
@pytest.mark.parametrize("field", ["ts", "s.ts"])
def test_an_ordering_field_without_an_order_makes_no_table(tmp_path, field, kind):
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("s", pa.struct([("ts", kind)]))])
    with pytest.raises(
        SchemaError, match=f"ordering field '{field}': values of type .* are not comparable"
    ) as e:
        HudiTable.create(str(tmp_path / "t"), schema, name="t", record_keys="id", ordering_fields=field)
    assert "choose an ordering field" in e.value.remedy
    assert not (tmp_path / "t").exists()
    rows = pa.table([["a"], pa.nulls(1, kind), pa.nulls(1, schema.field("s").type)], schema=schema)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        with pytest.raises(SchemaError, match=f"ordering field '{field}': values of type"):
            write_hudi(str(tmp_path / "t"), rows, key="id", ordering=field, name="t", table_type=table_type)
    assert not (tmp_path / "t").exists()
    write_hudi(str(tmp_path / "t"), rows, key="id", name="t")
    assert HudiTable.open(str(tmp_path / "t")).config.ordering_field is None, (
        "ts is the default where it can be"
    )


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_null_struct_may_hold_nulls_where_none_may_be(tmp_path, table_type):
    """As those of every Arrow data frame do."""
    path = str(tmp_path / "t")
    inner = [pa.array([1, None]), pa.array([["x"], None])]
    fields = [pa.field("a", pa.int64(), False), pa.field("l", pa.list_(pa.string()), False)]
    structs = pa.StructArray.from_arrays(inner, fields=fields, mask=pa.array([False, True]))
    rows = pa.table({"id": ["1", "2"], "ts": [1, 1], "s": structs, "many": [1, 2]})
    rows = rows.set_column(3, "many", pa.ListArray.from_arrays([0, 1, 2], structs))
    write_hudi(path, rows, key="id", ordering="ts", name="t", table_type=table_type)
    table = HudiTable.open(path)
    table.upsert([{"id": "2", "ts": 2, "s": None, "many": [None]}])
    if table_type == "MERGE_ON_READ":
        table.compact()
    assert sorted(table.read(["id", "s", "many"]).to_arrow().to_pylist(), key=str) == [
        {"id": "1", "s": {"a": 1, "l": ["x"]}, "many": [{"a": 1, "l": ["x"]}]},
        {"id": "2", "s": None, "many": [None]},
    ]
    with pytest.raises(SchemaError, match="must not be null"):
        table.upsert([{"id": "2", "ts": 3, "s": {"a": None, "l": []}, "many": []}])
