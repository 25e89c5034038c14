"""Lists, maps and structs that are empty or null throughout: Spark's Arrow writer leaves their offsets out."""

import functools

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hudi_timeline import HudiTable

MAPS = "map<string,float>"
# Columns of each shape: type, and values of three rows.
SHAPES = {
    "a": ("array<string>", ("array()", "null", "array('x', null)")),
    "am": (f"array<{MAPS}>", ("array()", "null", "array()")),
    "aa": ("array<array<int>>", ("array()", "array(array())", "null")),
    "aam": (f"array<array<{MAPS}>>", ("array(array())", "array()", "null")),
    "m": (MAPS, ("map()", "null", "map()")),
    "mam": (f"map<string,array<{MAPS}>>", ("map('a', array())", "map()", "null")),
    "mm": (f"map<string,{MAPS}>", ("map()", "map('a', map())", "null")),
    "s": (f"struct<x:array<{MAPS}>,y:string>", ("named_struct('x', array(), 'y', 'y')", "null", "null")),
    "as": (f"array<struct<x:array<int>,y:map<string,array<{MAPS}>>>>", ("array()", "array()", "null")),
    "ss": (f"struct<x:struct<y:array<{MAPS}>>>", ("null", "named_struct('x', null)", "null")),
}


def rows_of(session, which):
    """Three rows by their number, or three times the row of one number."""
    frame = session.range(3)
    for name, (kind, values) in SHAPES.items():
        picked = [values[n] for n in range(3)] if which is None else [values[which]] * 3
        case = " ".join(f"when {n} then cast({v} as {kind})" for n, v in enumerate(picked))
        frame = frame.withColumn(name, F.expr(f"case id {case} end"))
    return frame.withColumn("id", F.col("id").cast("string")).withColumn("ts", F.lit(1))


@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert"])
@pytest.mark.sampled(3)
def test_empty_nested_columns_are_written_and_read(session, tmp_path, operation):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    # A partition, and so a file, of all shapes of a row, and some of columns that are the same throughout.
    parts = [rows_of(session, which).withColumn("part", F.lit(f"p{which}")) for which in (None, 0, 1, 2)]
    rows, path = functools.reduce(DataFrame.union, parts).coalesce(1), str(tmp_path / "t")
    for _ in range(2 if operation == "upsert" else 1):  # a second time onto what is there
        rows.write.format("hudi").options(**options).mode("append").save(path)
    assert len(HudiTable.open(path).inspect.partitions()) == len(parts)
    wanted = ("part", "id", *SHAPES)
    got = session.read.format("hudi").load(path).select(*wanted).orderBy("part", "id").collect()
    assert got == rows.select(*wanted).orderBy("part", "id").collect()
