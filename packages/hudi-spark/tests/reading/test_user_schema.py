"""Schemas that reads are given: columns and fields by name, as Spark's own file sources take them."""

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_spark.reading.user_schema import CASE_SENSITIVE
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

PAIR = pa.struct([("a", pa.int32()), ("b", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("v", pa.float32()),
        ("s", PAIR),
        ("l", pa.list_(PAIR)),
        ("m", pa.map_(pa.string(), PAIR)),
        ("deep", pa.struct([("x", pa.struct([("y", PAIR)]))])),
    ]
)
TWO = {"a": 1, "b": 2}
ROWS = pa.Table.from_pylist(
    [
        {"id": "1", "v": 0.1, "s": TWO, "l": [TWO, None], "m": [("k", TWO)], "deep": {"x": {"y": TWO}}},
        {"id": "2", "v": None, "s": None, "l": None, "m": None, "deep": {"x": None}},
    ],
    SCHEMA,
)


@pytest.fixture
def parquet(tmp_path):
    """The rows in a file that Spark reads by itself."""
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, path):
    made = HudiTable.create(path, SCHEMA, name="t", record_keys="id", table_type=request.param)
    made.bulk_insert(ROWS)
    HudiTable.open(path).upsert(ROWS.slice(1))
    return path


def given(spark, schema, path, format):
    return spark.read.format(format).schema(schema).load(path)


SCHEMAS = [
    "ID string, V float",
    "id string, s struct<b:int,a:int>, l array<struct<b:int,a:int>>, m map<string,struct<b:int,a:int>>",
    "id string, s struct<B:int,a:int>, l array<struct<c:int,A:int,b:int>>, deep struct<x:struct<y:struct<b:int>>>",
    "id string, gone array<int>, s struct<gone:string,a:int>, deep struct<gone:int,x:struct<gone:int,y:struct<a:int>>>",
]


@pytest.mark.parametrize("sensitive", ["false", "TRUE"])
@pytest.mark.one_version
def test_columns_and_fields_are_found_as_spark_finds_them(spark, table, parquet, sensitive):
    spark.conf.set(CASE_SENSITIVE, sensitive)
    try:
        for schema in SCHEMAS:
            ours, own = (
                given(spark, schema, *of) for of in ((table, "hudi"), (f"file://{parquet}", "parquet"))
            )
            assert ours.schema.simpleString() == own.schema.simpleString()
            assert sorted(ours.collect(), key=str) == sorted(own.collect(), key=str), schema
    finally:
        spark.conf.unset(CASE_SENSITIVE)


def test_types_are_widened_at_every_depth(spark, table):
    """Which Spark's own file sources refuse."""
    wide = "id string, v double, s struct<b:bigint,a:string>, l array<struct<a:bigint>>, m map<string,struct<b:double>>"
    one, two = given(spark, wide, table, "hudi").orderBy("id").collect()
    assert (one.v, one.s.asDict(), [e and e.a for e in one.l]) == (0.1, {"b": 2, "a": "1"}, [1, None])
    assert one.m["k"].b == 2.0
    assert (two.v, two.s, two.l, two.m) == (None, None, None, None)


@pytest.mark.parametrize(
    ("schema", "column", "own"),
    [
        ("V array<int>, id string", "V", "float"),
        ("id string, s int", "s", "struct<a:int,b:int>"),
        ("l array<struct<a:array<int>>>", "l", "array<struct<a:int,b:int>>"),
        (
            "id string, deep struct<x:struct<y:string>>, m map<string,int>",
            "m",
            "map<string,struct<a:int,b:int>>",
        ),
    ],
)
def test_a_type_that_a_column_cannot_be_cast_to_is_named_in_one_line(spark, table, schema, column, own):
    with pytest.raises(SchemaError, match="cannot be read as") as e:
        given(spark, schema, table, "hudi")
    assert (e.value.details["column"], e.value.details["source"]) == (column, own)
    assert "\n" not in str(e.value)
    assert e.value.remedy
    assert e.value.table == table
