"""Partition values that would be read back as null, on Spark: refused where rows are stored, found where they are."""

import itertools

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from hudi_format.errors import PartitionPathError
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.partition_path import HIVE_DEFAULT
from hudi_format.keygen.record_keys import partition_paths
from hudi_spark.writing import key_columns
from hudi_spark.writing.writer import last_commit
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
AS_HUDI = {"hudi.partition.null.texts": "write"}
NULLS = ["", HIVE_DEFAULT]
STYLES = list(itertools.product(["false", "true"], repeat=2))


def given(style, fields="p", **more):
    return {
        **BASE,
        WRITE + "partitionpath.field": fields,
        WRITE + "hive_style_partitioning": style[0],
        WRITE + "partitionpath.urlencode": style[1],
        **more,
    }


def save(spark, path, values, options, operation="upsert", ts=1):
    """Rows of (p, n), n a double: Spark's own text of it is another one, so that paths with it are the kernels'."""
    rows = [(f"k{i}", p, n, ts) for i, (p, n) in enumerate(values)]
    frame = spark.createDataFrame(rows, "id string, p string, n double, ts long")
    frame.write.format("hudi").options(**options, **{WRITE + "operation": operation}).mode("append").save(
        str(path)
    )


def of(*values):
    return [(p, 1.0) for p in values]


def stored(spark, path):
    frame = spark.read.format("hudi").load(str(path)).select("id", "p", "ts").orderBy("id")
    local = HudiTable.open(str(path)).read(columns=["id", "p", "ts"]).to_arrow().sort_by("id")
    found = [tuple(r) for r in frame.collect()]
    assert found == list(zip(*(local.column(c).to_pylist() for c in ("id", "p", "ts")), strict=True))
    return found


@pytest.mark.sampled(4)
@pytest.mark.req("KG-03")
@pytest.mark.parametrize("style", STYLES, ids=str)
def test_rows_to_store_are_refused_and_those_there_are_found(spark, tmp_path, style):
    path, options = tmp_path / "t", given(style)
    save(spark, path, of(*NULLS, None, "a"), options | AS_HUDI)
    there = [("k0", None, 1), ("k1", None, 1), ("k2", None, 1), ("k3", "a", 1)]
    assert stored(spark, path) == there
    with pytest.raises(PartitionPathError, match=r"'p' is empty text .* in 2 of 4 rows") as e:
        save(spark, path, of(*NULLS, None, "a"), options, ts=2)
    assert e.value.details["column"] == "p"
    assert e.value.details["rows"] == 2
    assert "write null" in e.value.remedy
    assert stored(spark, path) == there
    save(spark, path, of(None, None), options, ts=2)
    assert last_commit().updated == 2
    save(spark, path, of(*NULLS, None), options, "delete")
    assert last_commit().deleted == 3
    assert stored(spark, path) == there[3:]
    assert HudiTable.open(str(path)).verify(deep=True) == []


@pytest.mark.sampled(4)
@pytest.mark.req("KG-03")
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_every_operation_that_stores_rows_refuses(spark, tmp_path, operation):
    path, options = tmp_path / "t", given(STYLES[2])
    save(spark, path, of("x"), options)
    for value in NULLS:
        with pytest.raises(PartitionPathError, match="read back as null"):
            save(spark, path, of("a", value), options, operation)
    assert stored(spark, path) == [("k0", "x", 1)]
    assert HudiTable.open(str(path)).verify(deep=True) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fields", ["p,n", "n,p"])
@pytest.mark.slow
def test_paths_that_the_kernels_make_are_looked_at_too(spark, tmp_path, fields):
    with pytest.raises(PartitionPathError, match="partition column 'p'"):
        save(spark, tmp_path / "t", of("a", ""), given(STYLES[2], fields))
    save(spark, tmp_path / "t", [("a", 1.5), (None, None)], given(STYLES[2], fields))
    assert stored(spark, tmp_path / "t") == [("k0", "a", 1), ("k1", None, 1)]


def test_they_are_set_aside_where_bad_rows_are(spark, tmp_path):
    aside = str(tmp_path / "aside")
    save(spark, tmp_path / "t", of("a", "", None), given(STYLES[0]) | {"hudi.quarantine.path": aside})
    assert stored(spark, tmp_path / "t") == [("k0", "a", 1), ("k2", None, 1)]
    assert HudiTable.open(aside).read(meta_columns=True).to_arrow().column("id").to_pylist() == ["k1"]


@pytest.mark.parametrize("style", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.sampled(3)
def test_spark_s_expression_refuses_what_the_kernel_refuses(spark, style):
    texts = ["a", *NULLS, None, f"p={HIVE_DEFAULT}", f"q={HIVE_DEFAULT}", f"{HIVE_DEFAULT}x", " ", "0", "1/2"]
    pairs = [(p, q) for p in texts for q in texts]
    spec = KeySpec(("id",), ("p", "q"), "COMPLEX", *style, refuses_null_texts=True)
    frame = spark.createDataFrame(pairs, "p string, q string").coalesce(1)
    paths = [r[0] for r in frame.select(key_columns.partition_path(spec, frame.schema)).collect()]
    for (p, q), path in zip(pairs, paths, strict=True):
        batch = pa.table({"p": pa.array([p], pa.string()), "q": pa.array([q], pa.string())})
        try:
            want, refused = partition_paths(batch, spec)[0].as_py(), None
        except PartitionPathError as e:
            want, refused = path, e.details["column"]
            if "tell the values" in e.message:
                refused = None
                with pytest.raises(PartitionPathError, match="tell the values of p, q apart"):
                    key_columns.refuse_untold((path,), spec)
        else:
            key_columns.refuse_untold((path,), spec)
        assert (path, key_columns.refused_field(path, spec)) == (want, refused)
    assert {key_columns.refused_field(path, spec) for path in paths} == {"p", "q", None}
    numbers = frame.select(F.lit(1).alias("p"), F.lit(2).alias("q"))
    assert numbers.select(key_columns.partition_path(spec, numbers.schema)).first()[0]
