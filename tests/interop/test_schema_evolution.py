"""Data of other schemas than the table's: Apache Hudi 0.15.0, this project without a JVM and on Spark agree.

The same steps go through all three; rows, types and the order of the columns are compared, read by Apache Hudi
and by us.  What Apache Hudi refuses is refused here by a typed error.
"""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.storage.open import open_storage
from hudi_timeline.writing.engine import DATA
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours
from interop.rows import assert_same_rows
from interop.spark_process import SparkProcessError

WRITE = "hoodie.datasource.write."
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
RECONCILE = {WRITE + "reconcile.schema": "true"}
DROP = {WRITE + "schema.allow.auto.evolution.column.drop": "true"}
VALIDATE = {"hoodie.avro.schema.validate": "true"}


@dataclass(frozen=True)
class Case:
    """Steps `(operation, rows, options)`."""

    name: str
    steps: list[tuple[str, pa.Table, dict[str, str]]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.name


def table(ids, p="x", ts=1, **columns):
    """Rows of (id, columns..., ts, p) with the columns in the order they are given."""
    n = len(ids)
    return pa.table(
        {"id": pa.array(ids), **columns, "ts": pa.array([ts] * n, pa.int64()), "p": pa.array([p] * n)}
    )


def ints(*values):
    return pa.array(values, pa.int32())


INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
BOXES = pa.list_(pa.field("element", pa.struct([("q", pa.int32())])))
MAP = pa.map_(pa.string(), pa.struct([("k", pa.int32())]))


def nested(ids, *, ts=1, inner=INNER, boxes=BOXES, mapped=MAP, **more):
    """Rows with a struct, a list and a map of structs; each value is filled with its row's number."""

    def fill(kind, i):
        if pa.types.is_struct(kind):
            return {f.name: fill(f.type, i) for f in kind}
        return f"t{i}" if pa.types.is_string(kind) else i

    columns = {
        "a": ints(*range(len(ids))),
        "s": pa.array([fill(inner, i) for i in range(len(ids))], inner),
        "l": pa.array([[fill(boxes.value_type, i)] for i in range(len(ids))], boxes),
        "m": pa.array([[("k", fill(mapped.item_type, i))] for i in range(len(ids))], mapped),
    }
    return table(ids, ts=ts, **{**columns, **more})


FIRST = nested(["a", "b", "c"])
MIDDLE = nested(
    ["b", "z"], ts=2, inner=pa.struct([("n", pa.int32()), *INNER]),
    boxes=pa.list_(pa.field("element", pa.struct([("n", pa.int32()), ("q", pa.int32())]))),
    mapped=pa.map_(pa.string(), pa.struct([("n", pa.int32()), ("k", pa.int32())])),
)  # fmt: skip
MIDDLE = MIDDLE.add_column(1, "n", ints(9, 9))
NARROW = nested(["b", "z"], ts=2, inner=pa.struct([("x", pa.int32())]))
LACKING = nested(["b", "z"], ts=2).drop_columns(["a"])
BOTH = LACKING.add_column(1, "n", ints(9, 9)).add_column(5, "n2", ints(8, 8))


def reordered(rows):
    kind = pa.struct([INNER.field(1), INNER.field(0)])
    turned = pa.array(rows.column("s").to_pylist(), kind)
    rows = rows.set_column(rows.schema.get_field_index("s"), "s", turned)
    return rows.select(rows.column_names[::-1])


def grown(*steps):
    """One row a partition, so that no file is written again: each is read in the type that it was written in."""
    return [
        ("upsert", table([f"k{i}"], p=f"p{i}", v=values), options)
        for i, (values, options) in enumerate((s, {}) if isinstance(s, pa.Array) else s for s in steps)
    ]


DECIMAL = pa.decimal128(10, 2)
CASES = [
    Case("columns added in the middle", [("insert", FIRST, {}), ("upsert", MIDDLE, {})]),
    Case("columns added, reconciled", [("insert", FIRST, {}), ("upsert", MIDDLE, RECONCILE)]),
    Case("another order", [("insert", FIRST, {}), ("upsert", reordered(nested(["b", "z"], ts=2)), {})]),
    Case("another order, reconciled",
         [("insert", FIRST, {}), ("upsert", reordered(nested(["b", "z"], ts=2)), RECONCILE)]),
    Case("a missing column becomes null", [("insert", FIRST, {}), ("upsert", LACKING, NULLS)]),
    Case("a missing column, reconciled and validated",
         [("insert", FIRST, {}), ("upsert", LACKING, {**RECONCILE, **VALIDATE})]),
    Case("a missing column, nulls and drop allowed",
         [("insert", FIRST, {}), ("insert", LACKING, {**NULLS, **DROP})]),
    Case("a missing column, reconciled and drop allowed",
         [("insert", FIRST, {}), ("bulk_insert", LACKING, {**RECONCILE, **DROP})]),
    Case("a missing nested column, reconciled", [("insert", FIRST, {}), ("upsert", NARROW, RECONCILE)]),
    Case("a missing nested column is dropped", [("insert", FIRST, {}), ("upsert", NARROW, DROP)]),
    Case("columns missing and added", [("insert", FIRST, {}), ("upsert", BOTH, NULLS)]),
    Case("columns dropped and added", [("insert", FIRST, {}), ("upsert", BOTH, DROP)]),
    Case("an overwrite of lacking rows", [("insert", FIRST, {}), ("insert_overwrite_table", LACKING, NULLS)]),
    Case("numbers grow up to text", grown(
        ints(1), pa.array([2**40]), pa.array([2.5], pa.float32()), pa.array([1e7]), ints(4), pa.array(["q"]),
        pa.array([0.1], pa.float32()),
    )),
    Case("text stays text", grown(pa.array(["q"]), pa.array([date(2024, 2, 29)]), ints(7),
                                  pa.array([Decimal("1.50")], DECIMAL))),
    Case("decimals stay decimals", grown(
        pa.array([Decimal("1.50")], DECIMAL), ints(7), pa.array([2**20]), pa.array([0.25]), pa.array(["12.30"]),
        pa.array([Decimal("1.5")], pa.decimal128(8, 1)),
    )),
    Case("bytes stay bytes", grown(pa.array([b"q"]), pa.array(["text"]))),
    Case("an old file is written again in the new type",
         [("insert", table(["a", "b", "c"], v=pa.array([1.0, 2.5, None], pa.float32())), {}),
          ("upsert", table(["b"], ts=2, v=["text"]), {})]),
    Case("the ordering column grows",
         [("insert", table(["a", "b"], v=["1", "2"]).set_column(2, "ts", ints(1, 1)), {}),
          ("upsert", table(["b"], ts=2**40, v=["3"]), {})]),
]  # fmt: skip


def _ours(path, steps):
    changes = []
    for operation, rows, options in steps:
        given = {**BASE, **options, WRITE + "operation": operation}
        changes = execute(LocalEngine(types=DATA), open_storage(str(path)), rows, given).schema_changes
    return changes


def _by_process(process, path, steps):
    for operation, rows, options in steps:
        given = {**BASE, **options, WRITE + "operation": operation, "hoodie.metadata.enable": "false"}
        process.write(path, rows, given)


def _compared(rows):
    names = [n for n in rows.column_names if not n.startswith("_hoodie_")]
    return rows.select(["_hoodie_record_key", "_hoodie_partition_path", *names])


@pytest.fixture(scope="session")
def on_spark(pool, tmp_path_factory):
    """Each case's table as our Spark engine wrote it, and its rows as our Spark reader gives them."""
    out = {}
    for case in CASES:
        path = tmp_path_factory.mktemp("spark") / "table"
        _by_process(pool.ours(), path, case.steps)
        out[case.name] = path, pool.ours().read(path)
    return out


@pytest.mark.req("SE-01", "SE-02", "SE-05", "SE-07")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_evolved_table_is_the_same_for_all(tmp_path, on_spark, apache, case):
    _by_process(apache, tmp_path / "theirs", case.steps)
    changes = _ours(tmp_path / "ours", case.steps)
    want = _compared(apache.read(tmp_path / "theirs"))
    assert want.num_rows
    spark_path, spark_rows = on_spark[case.name]
    assert_same_rows(_compared(ours.read(tmp_path / "theirs")), want, ["id"])
    assert_same_rows(_compared(ours.read(tmp_path / "ours")), want, ["id"])
    assert_same_rows(_compared(apache.read(tmp_path / "ours")), want, ["id"])
    assert_same_rows(_compared(apache.read(spark_path)), want, ["id"])
    assert_same_rows(_compared(spark_rows), want, ["id"])
    assert changes or "order" in case.name or "stay" in case.name


REFUSED = [
    Case("a missing column", [("upsert", LACKING, {})]),
    Case("a missing column, validated", [("upsert", LACKING, {**VALIDATE, **NULLS})]),
    Case("a missing nested column", [("upsert", NARROW, {})]),
    Case("a missing column by bulk_insert", [("bulk_insert", LACKING, {})]),
    Case("a column in another case", [("upsert", FIRST.rename_columns(["id", "A", *FIRST.column_names[2:]]), {})]),
    Case("a boolean for an int by overwrite", [("insert_overwrite_table", nested(["b"], a=pa.array([True])), {})]),
    Case("a decimal for an int", [("upsert", nested(["b"], a=pa.array([Decimal("1.5")], DECIMAL)), {})]),
    Case("a struct for an int", [("insert", nested(["b"], a=pa.array([{"x": 1}])), {})]),
]  # fmt: skip


@pytest.fixture(scope="module")
def written_by_apache(tmp_path_factory, pool):
    path = tmp_path_factory.mktemp("apache") / "table"
    _by_process(pool.get("0.15.0"), path, [("insert", FIRST, {})])
    return path


@pytest.mark.req("SE-02", "NEW-36")
@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_apache_hudi_refuses_is_refused_with_column_and_types(tmp_path, written_by_apache, apache, case):
    with pytest.raises(SparkProcessError):
        _by_process(apache, written_by_apache, case.steps)
    _ours(tmp_path / "ours", [("insert", FIRST, {})])
    with pytest.raises(SchemaError) as e:
        _ours(tmp_path / "ours", case.steps)
    assert "column" in e.value.message
    assert e.value.remedy
    assert "column" in e.value.details or "columns" in e.value.details
