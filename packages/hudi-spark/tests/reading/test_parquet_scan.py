"""Spark's scans of base files give rows with NaN, whatever they are filtered by: bounds in files leave NaN out."""

import functools

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_spark.reading.parquet_scan import beyond_bounds
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

NAN = float("nan")
KIND = pa.struct([("f", pa.float32()), ("of", pa.struct([("d", pa.float64()), ("w", pa.string())]))])
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "d": [NAN, 0.25, -0.0, 0.5, None],
        "f": pa.array([0.25, NAN, 0.0, None, 0.5], pa.float32()),
        "s": pa.array(
            [
                {"f": NAN, "of": {"d": 0.5, "w": "x"}},
                {"f": 0.5, "of": {"d": NAN, "w": None}},
                {"f": None, "of": None},
                None,
                {"f": -0.0, "of": {"d": None, "w": "y"}},
            ],
            KIND,
        ),
    }
)
FILTERS = [
    "d > 1", "d >= 0.5", "d = double('NaN')", "d <=> double('NaN')", "d in (double('NaN'))", "not d <= 1",
    "d between 0.5 and double('NaN')", "isnan(d)", "d = 0", "d < 0", "d <> 0.25", "f > 1", "f = float('NaN')",
    "not f < 1", "f = -0.0", "s.f > 1", "s.of.d > 1", "s.of.d is null", "s is null", "s.of is null and s.f is null",
    "s.of.w = 'x' and s.f = float('NaN')",
]  # fmt: skip


def made(path, kind="COPY_ON_WRITE"):
    table = HudiTable.create(path, ROWS.schema, name="t", record_keys=["id"], table_type=kind)
    table.bulk_insert(ROWS)
    return table


def answers(frame):
    """Ids of the rows that pass each filter.  One job: each filter is a scan of its own in it, and is pushed down."""
    asked = [frame.where(text).select(F.lit(n).alias("filter"), "id") for n, text in enumerate(FILTERS)]
    out: dict[int, list[str]] = {}
    for row in functools.reduce(DataFrame.union, asked).collect():
        out.setdefault(row["filter"], []).append(row["id"])
    return {n: sorted(ids) for n, ids in out.items()}


@pytest.mark.req("QR-01")
def test_a_filter_gives_the_rows_that_it_gives_in_memory(spark, path):
    made(path)
    frame = spark.read.format("hudi").load(path).select(*ROWS.column_names)
    rows = frame.collect()
    assert len(rows) == ROWS.num_rows
    kept = spark.createDataFrame(rows, frame.schema)
    found, want = (answers(of) for of in (frame, kept))
    assert found == want
    assert [FILTERS[n] for n in range(len(FILTERS)) if n not in want] == ["d < 0"]  # the others keep some


def test_a_scan_without_hudi_leaves_rows_with_nan_out(spark, path):
    """As Apache Hudi's reader on Spark does, which hands such conditions to the same scan."""
    made(path)
    files = f"file://{path}/*.parquet"
    assert [r.id for r in spark.read.parquet(files).where("d > 1").collect()] == []
    assert [r.id for r in spark.read.parquet(files).where("isnan(d)").collect()] == ["a"]


def test_so_it_does_for_rows_beside_logs(spark, path):
    table = made(path, "MERGE_ON_READ")
    table.upsert(ROWS.slice(1, 1).set_column(1, "d", pa.array([0.75])))
    frame = spark.read.format("hudi").load(path)
    assert [r.id for r in frame.where("d > 1").collect()] == ["a"]
    assert sorted(r.id for r in frame.where("d > 0.5").collect()) == ["a", "b"]


@pytest.mark.one_version
def test_floats_that_became_doubles_are_kept_too(spark, path, trips):
    for kind, rows in (("float", [("a", NAN), ("b", 0.25)]), ("double", [("c", 0.5)])):
        frame = spark.createDataFrame(rows, f"id string, f {kind}")
        options = trips | {"hoodie.datasource.write.operation": "bulk_insert"}
        del options["hoodie.datasource.write.partitionpath.field"]
        del options["hoodie.datasource.write.precombine.field"]
        frame.write.format("hudi").options(**options).mode("append").save(path)
    frame = spark.read.format("hudi").load(path)
    assert frame.schema["f"].dataType == T.DoubleType()
    assert [r.id for r in frame.where("f > 1").collect()] == ["a"]


def test_other_fields_of_a_struct_are_still_left_in_the_file(spark, path):
    made(path)
    frame = spark.read.format("hudi").load(path)
    plan = frame.where("s.of.w = 'x'").select("s.f")._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<s:struct<f:float,of:struct<w:string>>>" in plan


def test_only_floats_are_kept_from_the_scan(spark):
    twice = T.StructType([T.StructField("a", T.DoubleType()), T.StructField("A", T.DoubleType())])
    for kind in (T.LongType(), T.StringType(), T.ArrayType(T.DoubleType()), twice):
        assert beyond_bounds("x", kind) is None
    assert "nanvl" in str(beyond_bounds("x", T.FloatType()))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_frame_names_the_base_files_that_spark_scans(spark, path, kind):
    """Of file slices with log records the base files are read by workers of Python, and are not among them."""
    table = made(path, kind)
    table.bulk_insert(ROWS.slice(0, 1).set_column(0, "id", [["z"]]))
    table.upsert(ROWS.slice(1, 1))
    frame = spark.read.format("hudi").load(path)
    newest = [s for s in table.inspect.file_slices().to_pylist() if s["latest"]]
    files = {s["base_file"] for s in newest if not s["log_files"]}
    assert {name.removeprefix(f"file://{path}/") for name in frame.inputFiles()} == files
    assert set(frame.where("id = 'z'").inputFiles()) == set(frame.inputFiles())
    assert len(files) == (1 if kind == "MERGE_ON_READ" else 2)
