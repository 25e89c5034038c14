"""Types of columns between Spark and Arrow, both ways; no session is needed for them."""

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from hudi_format.errors import SchemaError
from hudi_spark.types import (
    lost_collations,
    to_arrow_schema,
    to_arrow_type,
    to_spark_schema,
    to_spark_type,
    without_void,
)

PAIRS = [
    (T.BooleanType(), pa.bool_()),
    (T.ByteType(), pa.int8()),
    (T.LongType(), pa.int64()),
    (T.FloatType(), pa.float32()),
    (T.StringType(), pa.string()),
    (T.BinaryType(), pa.binary()),
    (T.DateType(), pa.date32()),
    (T.TimestampType(), pa.timestamp("us", "UTC")),
    (T.TimestampNTZType(), pa.timestamp("us")),
    (T.DecimalType(20, 3), pa.decimal128(20, 3)),
    (T.ArrayType(T.LongType()), pa.list_(pa.int64())),
    (T.MapType(T.StringType(), T.ArrayType(T.ShortType())), pa.map_(pa.string(), pa.list_(pa.int16()))),
    (
        T.StructType().add("a", "integer").add("b", "string"),
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ),
]


@pytest.mark.parametrize(
    ("spark", "arrow"), PAIRS, ids=lambda t: getattr(t, "simpleString", lambda: "")() or None
)
def test_each_type_goes_both_ways(spark, arrow):
    assert to_arrow_type(spark) == arrow
    assert to_spark_type(arrow) == spark


def test_what_spark_has_one_type_for_is_read_as_that():
    assert to_spark_type(pa.large_string()) == T.StringType()
    assert to_spark_type(pa.binary(16)) == T.BinaryType()
    assert to_spark_type(pa.timestamp("us", "Europe/Oslo")) == T.TimestampType()
    assert to_arrow_type(T.VarcharType(5)) == pa.string()


def test_arrays_and_maps_without_elements_have_void_ones():
    void = T.NullType()
    assert to_arrow_type(T.ArrayType(void, False)) == pa.list_(pa.null())
    assert to_arrow_type(T.MapType(void, void, False)) == pa.map_(pa.string(), pa.null())
    assert to_arrow_schema(T.StructType([T.StructField("v", void, False)])) == pa.schema([("v", pa.null())])


def test_nullability_stays_on_every_level_towards_arrow_and_is_given_up_towards_spark():
    inner = T.StructType([T.StructField("x", T.LongType(), False)])
    schema = T.StructType(
        [T.StructField("id", T.StringType(), False), T.StructField("l", T.ArrayType(inner, False))]
    )
    arrow = to_arrow_schema(schema)
    assert not arrow.field("id").nullable
    assert not arrow.field("l").type.value_field.nullable
    assert not arrow.field("l").type.value_type.field("x").nullable
    assert all(f.nullable for f in to_spark_schema(arrow))


def test_a_type_that_no_table_stores_is_named_with_its_place():
    odd = T.StructType().add("a", T.ArrayType(T.StructType().add("b", T.DayTimeIntervalType())))
    with pytest.raises(SchemaError, match=r"a\.element\.b") as e:
        to_arrow_schema(odd)
    assert e.value.details["column"] == "a.element.b"
    with pytest.raises(SchemaError, match=r"'c\.x' has type"):
        to_spark_type(pa.struct([("x", pa.duration("s"))]), "c")


def test_void_parts_take_the_wanted_types():
    def shape(leaf):
        of = T.StructType([T.StructField("known", T.LongType()), T.StructField("x", leaf, False)])
        return (
            T.StructType().add("l", T.ArrayType(of)).add("m", T.MapType(T.StringType(), leaf)).add("v", leaf)
        )

    wanted = shape(T.DoubleType())
    assert without_void(shape(T.NullType()), wanted) == wanted
    assert without_void(T.NullType(), T.DateType()) == T.DateType()
    own = T.StructType().add("new", T.NullType())
    assert without_void(own, wanted) == own, "a column that the table does not have stays void"


def collated(collation):
    """A text type with a collation, which only Spark 4 has."""
    if hasattr(T.StringType(), "collation"):
        return T.StringType(collation)
    return type("Collated", (T.StringType,), {"collation": collation})()


def test_collations_that_no_table_keeps_are_told_wherever_they_are():
    plain = T.StructType().add("id", "string").add("n", "integer")
    assert lost_collations(plain) == ()
    inner = T.StructType().add("s", collated("UTF8_LCASE")).add("t", "string")
    schema = (
        plain.add("name", collated("UNICODE_CI"))
        .add("list", T.ArrayType(collated("UNICODE_CI")))
        .add("map", T.MapType(collated("UTF8_BINARY"), inner))
    )
    first, second = lost_collations(schema)
    assert first.startswith("name, list.element: the collation UNICODE_CI is not stored")
    assert second.startswith("map.value.s: the collation UTF8_LCASE is not stored")
