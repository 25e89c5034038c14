"""What a reader's schema may ask of a writer's, case by case; random pairs are in test_avro_decoder."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from avro_records import column, decode, record

from hudi_format.avro import Decoder
from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError
from hudi_format.schema.avro import from_avro

Json = Any


def text(value: str) -> bytes:
    raw = value.encode()
    return varint(len(raw)) + raw


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
COLOURS = {"type": "enum", "name": "e", "symbols": ["RED", "BLUE"]}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NOTHING: Json = {"type": "record", "name": "x", "fields": []}
PAIR = {"type": "fixed", "name": "p", "size": 2}


def decimal(precision: int, scale: int, size: int = 0) -> Json:
    out = {"logicalType": "decimal", "precision": precision, "scale": scale}
    return {"type": "fixed", "name": "d", "size": size, **out} if size else {"type": "bytes", **out}


@pytest.mark.req("SE-01", "SE-02")
@pytest.mark.parametrize(
    ("writer", "reader", "raw", "value", "arrow"),
    [
        ("int", "string", varint(-(2**31)), "-2147483648", pa.string()),
        ("long", "string", varint(2**63 - 1), "9223372036854775807", pa.string()),
        ("long", "string", varint(-(2**63)), "-9223372036854775808", pa.string()),
        ("long", "string", b"\0", "0", pa.string()),
        ("int", "float", varint(16777217), 16777216.0, pa.float32()),
        ("long", "double", varint(2**53 + 1), float(2**53), pa.float64()),
        ("bytes", "string", text("é"), "é", pa.string()),
        ("string", "bytes", text("é"), "é".encode(), pa.binary()),
        (PAIR, "bytes", b"ab", b"ab", pa.binary()),
        (PAIR, "string", b"ab", "ab", pa.string()),
        ("bytes", PAIR, b"\x04ab", b"ab", pa.binary(2)),
        (COLOURS, "string", b"\x02", "BLUE", pa.string()),
        (COLOURS, {**COLOURS, "symbols": ["BLUE", "X"]}, b"\x02", "BLUE", pa.string()),
        (COLOURS, {**COLOURS, "symbols": ["X"], "default": "X"}, b"\x02", "X", pa.string()),
        (MILLIS, MICROS, varint(5), EPOCH + dt.timedelta(milliseconds=5), pa.timestamp("us", "UTC")),
        ("long", MICROS, varint(5), EPOCH + dt.timedelta(microseconds=5), pa.timestamp("us", "UTC")),
        (MICROS, "long", varint(5), 5, pa.int64()),
        (DATE, "int", varint(5), 5, pa.int32()),
        (DATE, "string", varint(5), "1970-01-06", pa.string()),
        (decimal(4, 1), "string", b"\x04\x01\0", "25.6", pa.string()),
        (DATE, "long", varint(5), 5, pa.int64()),
        (decimal(4, 1), decimal(9, 1), b"\x04\x01\0", Decimal("25.6"), pa.decimal128(9, 1)),
        (decimal(4, 1), decimal(9, 3), b"\x04\x01\0", Decimal("25.600"), pa.decimal128(9, 3)),
        (decimal(4, 1, 2), decimal(40, 1), b"\xff\xff", Decimal("-0.1"), pa.decimal256(40, 1)),
        ("bytes", decimal(4, 1), b"\x02\x7f", Decimal("12.7"), pa.decimal128(4, 1)),
        (decimal(4, 1), "bytes", b"\x02\x7f", b"\x7f", pa.binary()),
        (decimal(3, 0, 20), decimal(3, 0, 20), b"\xff" * 20, Decimal(-1), pa.decimal128(3, 0)),
        (["null", "int"], "int", b"\x02\x02", 1, pa.int32()),
        ("int", ["null", "int"], b"\x02", 1, pa.int32()),
        ("null", ["null", "int"], b"", None, pa.int32()),
        (["null"], ["null", "int"], b"\0", None, pa.int32()),
        (["int"], "long", b"\0\x02", 1, pa.int64()),
        (["null", "int"], ["long", "null"], b"\x02\x02", 1, pa.int64()),
        (["int", "null", "long"], ["null", "long"], b"\x04\x02", 1, pa.int64()),
        (["int", "null", "long"], ["null", "long"], b"\0\x02", 1, pa.int64()),
        (["int", "null", "long"], ["null", "long"], b"\x02", None, pa.int64()),
        (["int", "string"], "string", b"\0\x02", "1", pa.string()),
        ("int", ["null", "int", "long"], b"\x02", 1, pa.int64()),
        ({"type": {"type": "string"}}, "string", text("x"), "x", pa.string()),
    ],
    ids=str,
)  # fmt: skip
def test_a_column_is_read_in_the_readers_type(
    writer: Json, reader: Json, raw: bytes, value: Any, arrow: pa.DataType
) -> None:
    decoder = Decoder(record(writer), record(reader))
    assert decoder.schema.field(0).type == arrow
    assert column(decoder, raw, raw) == [value, value]


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("long", "int"), ("double", "float"), ("string", "int"), ("boolean", "int"), ("int", "boolean"),
        (MICROS, LOCAL), (MICROS, "string"), (decimal(9, 1), decimal(4, 1)), (decimal(9, 3), decimal(9, 1)),
        (COLOURS, "int"),
        ("int", {"type": "array", "items": "int"}), ({"type": "array", "items": "int"}, "int"),
        ({"type": "array", "items": "string"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "int"}, record("int")),
        ("null", "int"), (["null", "string"], ["null", "int"]), (["string", "boolean"], "int"),
        (NOTHING, {**NOTHING, "fields": [{"name": "a", "type": "int"}]}),
    ],
    ids=str,
)  # fmt: skip
def test_a_column_that_cannot_become_the_readers_is_refused_before_any_record(
    writer: Json, reader: Json
) -> None:
    with pytest.raises(SchemaError) as e:
        Decoder(record(writer), record(reader))
    assert str(e.value.details["column"]).startswith("f0")


@pytest.mark.parametrize(
    ("writer", "reader", "good", "bad"),
    [
        (["int", "boolean"], "int", b"\0\x02", b"\x02\1"),
        (["null", "int"], "int", b"\x02\x02", b"\0"),
        (["null", "int", "long"], "long", b"\x02\x02", b"\0"),
        (COLOURS, {**COLOURS, "symbols": ["RED"]}, b"\0", b"\x02"),
    ],
    ids=str,
)
def test_a_value_that_the_reader_cannot_hold_is_an_error_only_where_it_occurs(
    writer: Json, reader: Json, good: bytes, bad: bytes
) -> None:
    decoder = Decoder(record("int", writer), record("int", reader))
    assert decode(decoder, b"\0" + good).num_rows == 1
    with pytest.raises(SchemaError, match="record 1, column f1") as e:
        decode(decoder, b"\0" + good, b"\0" + bad)
    assert e.value.details["record"] == 1


def test_a_union_of_several_types_has_a_member_for_each_and_can_be_passed_over() -> None:
    inner = {"type": "record", "name": "x", "fields": [{"name": "a", "type": "string"}]}
    schema = record("int", ["null", "int", inner, {"type": "array", "items": "x"}], "int")
    raw = [
        b"\x02\0\x04",
        b"\x02\x02\x80\x01\x04",
        b"\x02\x04\x06abc\x04",
        b"\x02\x06\x02\x02a\x03\x08\x02b\x02c\0\x04",
    ]
    assert decode(Decoder(schema, columns=["f2", "f0"]), *raw).to_pylist() == [{"f2": 2, "f0": 1}] * 4
    rows = decode(Decoder(schema), *raw)
    rows.validate(full=True)
    assert rows.schema == from_avro(json.dumps(schema))
    none = dict.fromkeys(["member0", "member1", "member2"])
    assert rows.column("f1").to_pylist() == [
        None, none | {"member0": 64}, none | {"member1": {"a": "abc"}},
        none | {"member2": [{"a": "a"}, {"a": "b"}, {"a": "c"}]},
    ]  # fmt: skip
    given = from_avro(json.dumps(record("int", ["null", "int", inner], "int")))
    assert decode(Decoder(schema, arrow_schema=given), *raw[:3]).column("f1").to_pylist() == [
        None, {"member0": 64, "member1": None}, {"member0": None, "member1": {"a": "abc"}},
    ]  # fmt: skip


@pytest.mark.parametrize("named", [True, False])
def test_values_go_to_the_member_of_their_type(named: bool) -> None:
    """Writers had other unions, or one type, before; a table's schema has the union of today."""
    today = record(["null", "string", "long"])
    given = {"reader_schema": today} if named else {"arrow_schema": from_avro(json.dumps(today))}

    def read(writer: Json, *raw: bytes) -> list[Any]:
        pairs = decode(Decoder(record(writer), **given), *raw).column("f0").to_pylist()
        return [p if p is None else (p["member0"], p["member1"]) for p in pairs]

    assert read(["long", "null", "string"], b"\0\x06", b"\x02", b"\x04\x02x") == [
        (None, 3),
        None,
        ("x", None),
    ]
    assert read("string", b"\x02x") == [("x", None)]
    assert read(["null", "long"], b"\0", b"\x02\x06") == [None, (None, 3)]
    assert read("int", b"\x06") == [("3", None)]  # the first that it can become
    assert read("null", b"") == [None]
    with pytest.raises(SchemaError, match=r"f0.*none of its union"):
        Decoder(record("boolean"), **given)
    with pytest.raises(CorruptFileError):
        read(["long", "null", "string"], b"\x06\x06")


@pytest.mark.parametrize("named", [True, False])
def test_records_of_a_union_in_another_order_go_to_the_member_that_they_are(named: bool) -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    text = {
        "type": "record",
        "name": "text",
        "fields": [{"name": "t", "type": ["null", "string"], "default": None}],
    }
    today = record(["null", text, point])
    given = {"reader_schema": today} if named else {"arrow_schema": from_avro(json.dumps(today))}
    decoder = Decoder(record(["null", point, text]), **given)
    assert column(decoder, b"\x02\x06", b"\0", b"\x04\x02\x02a") == [
        {"member0": None, "member1": {"x": 3}},
        None,
        {"member0": {"t": "a"}, "member1": None},
    ]


def test_a_value_of_a_type_that_the_union_no_longer_has_is_an_error() -> None:
    decoder = Decoder(record(["null", "string", "int", "boolean"]), record(["null", "string", "int"]))
    assert column(decoder, b"\x04\x06", b"\0") == [{"member0": None, "member1": 3}, None]
    with pytest.raises(SchemaError, match="record 1, column f0"):
        decode(decoder, b"\0", b"\x06\1")


def test_types_of_a_union_that_would_fill_one_column_in_two_forms_are_refused_where_they_occur() -> None:
    decoder = Decoder(record(["string", "double"]), record(["string", "int"]))
    assert column(decoder, b"\0\x02a") == [{"member0": "a", "member1": None}]
    with pytest.raises(SchemaError, match="record 0, column f0"):
        decode(decoder, b"\x02" + bytes(8))
    first, second, wanted = (
        {"type": "record", "name": name, "fields": [{"name": "x", "type": kind}]}
        for name, kind in (("a", "string"), ("b", "double"), ("c", "string"))
    )
    for one, other in ((first, second), (second, first)):
        decoder = Decoder(record([one, other]), record(wanted))
        with pytest.raises(SchemaError, match="record 0, column f0"):
            decode(decoder, b"\x02" + (bytes(8) if other is second else b"\x02a"))


def test_a_field_whose_name_begins_as_that_of_a_member_is_a_field() -> None:
    name = "member" + 5000 * "9"
    old = {"type": "record", "name": "s", "fields": [{"name": name, "type": "int"}]}
    assert column(Decoder(record(old)), b"\x06") == [{name: 3}]
    assert column(Decoder(record(["null", old]), record(old)), b"\x02\x06") == [{name: 3}]
    with pytest.raises(SchemaError, match="f0"):
        Decoder(record(["int", "string"]), record(old))


def of_members(*names: str) -> Json:
    kinds = {"member0": ["null", "int"], "member1": ["null", "string"], "x": ["null", "string"]}
    return {"type": "record", "name": "own", "fields": [{"name": n, "type": kinds[n]} for n in names]}


def test_a_struct_of_the_users_may_have_fields_named_as_members_are() -> None:
    def read(writer: Json, arrow: pa.DataType | None, *raw: bytes) -> list[Any]:
        given = None if arrow is None else pa.schema([("f0", arrow)])
        return column(Decoder(record(writer), arrow_schema=given), *raw)

    number, word = ("member0", pa.int32()), ("member1", pa.string())
    both = {"member0": 5, "member1": "x"}
    value = b"\x02\x0a\x02\x02x"
    own = of_members("member0", "member1")
    more = pa.struct([number, word, ("member2", pa.string())])
    assert read(["null", own], None, b"\x02" + value, b"\0") == [both, None]
    assert read(["null", own], more, b"\x02" + value) == [both | {"member2": None}]
    # Of a field that was dropped meanwhile, the others are still fields.
    dropped = ["null", of_members("member0", "x")]
    assert read(dropped, pa.struct([number]), b"\x02" + value) == [{"member0": 5}]
    assert read(dropped, pa.struct([number, word]), b"\x02" + value) == [{"member0": 5, "member1": None}]
    # Such a struct may be one of a union's types.
    assert read(["null", own, "string"], None, b"\x02" + value, b"\0", b"\x04\x02y") == [
        {"member0": both, "member1": None}, None, {"member0": None, "member1": "y"},
    ]  # fmt: skip
    assert read(["string", own], None, b"\x02" + value, b"\0\x02y") == [
        {"member0": None, "member1": both}, {"member0": "y", "member1": None},
    ]  # fmt: skip


@pytest.mark.req("SE-02")
@pytest.mark.parametrize("nullable", [True, False])
def test_a_struct_whose_fields_are_all_named_as_members_may_be_younger_than_the_record(
    nullable: bool,
) -> None:
    """Added since, next to fields that were dropped: null in what is older."""
    old = {"type": "record", "name": "old", "fields": [{"name": "x", "type": "int"}]}
    writer, raw = (["null", old], b"\x02\x06") if nullable else (old, b"\x06")
    number, word = ("member0", pa.int32()), ("member1", pa.string())

    def read(kind: pa.DataType, writer: Json = writer, raw: bytes = raw) -> list[Any]:
        return column(Decoder(record(writer), arrow_schema=pa.schema([("f0", kind)])), raw)

    assert read(pa.struct([number])) == [{"member0": None}]
    assert read(pa.struct([number, word])) == [{"member0": None, "member1": None}]
    inner = pa.struct([("a", pa.int32())])
    assert read(pa.struct([("member0", inner)])) == [{"member0": None}]
    items = {"type": "array", "items": writer}
    assert read(pa.list_(pa.struct([number])), items, b"\x02" + raw + b"\0") == [[{"member0": None}]]
    # A type that became one of a union's is that member.
    union = pa.struct([number, ("member1", pa.struct([("x", pa.int32()), word]))])
    assert read(union) == [{"member0": None, "member1": {"x": 3, "member1": None}}]


def test_records_of_several_names_in_a_union_become_one_struct() -> None:
    old = {"type": "record", "name": "old", "fields": [{"name": "a", "type": "int"}]}
    new = {
        "type": "record",
        "name": "new",
        "fields": [{"name": "b", "type": "string"}, {"name": "a", "type": "long"}],
    }
    wanted = {
        "type": "record",
        "name": "other",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "none"}],
    }
    decoder = Decoder(record(["null", old, new]), record(["null", wanted]))
    assert column(decoder, b"\x02\x02", b"\0", b"\x04\x02x\x04") == [
        {"a": 1, "b": "none"},
        None,
        {"a": 2, "b": "x"},
    ]


def test_lists_and_maps_are_passed_over_by_the_size_of_their_blocks() -> None:
    lists = {"type": "array", "items": "string"}
    schema = record(lists, {"type": "map", "values": lists}, {"type": "array", "items": "double"}, "int")
    decoder = Decoder(schema, columns=["f3"])
    sized = (
        b"\x01\x04!!\x02\x02a\0"
        + b"\x01\x02?\x02\x02k\x02\x02a\0\0"
        + b"\x01\x10"
        + b"\0" * 8
        + b"\0"
        + b"\x0e"
    )
    plain = b"\x02\x02a\0" + b"\x02\x02k\0\0" + b"\x04" + b"\0" * 16 + b"\0" + b"\x0e"
    empty = b"\0\0\0\x0e"
    # The first block says its size, so that what it holds is not even looked at.
    assert column(decoder, sized, plain, empty) == [7, 7, 7]


def test_blocks_with_and_without_sizes_are_one_list() -> None:
    decoder = Decoder(record({"type": "array", "items": "int"}, {"type": "map", "values": "int"}))
    raw = b"\x03\x04\x02\x04\x02\x06\0" + b"\x01\x06\x02a\x02\0"
    assert decode(decoder, raw).to_pylist() == [{"f0": [1, 2, 3], "f1": [("a", 1)]}]


def test_fields_are_matched_by_name_before_aliases() -> None:
    writer = {
        "type": "record",
        "name": "w",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}],
    }
    reader = {
        "type": "record",
        "name": "other.name",
        "fields": [{"name": "c", "type": "int", "aliases": ["b", "a"]}, {"name": "b", "type": "long"}],
    }
    assert decode(Decoder(writer, reader), b"\x02\x04").to_pylist() == [{"c": 1, "b": 2}]


def test_columns_are_those_asked_for_in_that_order() -> None:
    schema = record("int", "string", "double")
    decoder = Decoder(schema, columns=["f1", "f0"])
    assert decode(decoder, b"\x02\x02x" + b"\0" * 8).to_pylist() == [{"f1": "x", "f0": 1}]
    assert (
        decode(Decoder(schema, columns=[]), b"\x02\x02x" + b"\0" * 8, b"\x02\x02x" + b"\0" * 8).num_rows == 2
    )
    with pytest.raises(MissingColumnError, match="f9"):
        Decoder(schema, columns=["f9"])
    with pytest.raises(ValueError, match="twice"):
        Decoder(schema, columns=["f1", "f1"])


def test_the_arrow_schema_says_what_comes_out() -> None:
    wanted = pa.schema(
        [
            pa.field("f1", pa.string(), metadata={"k": "v"}),
            pa.field("f0", pa.int64(), False),
            pa.field("f2", pa.list_(pa.field("item", pa.int64()))),
            pa.field("new", pa.timestamp("us", "UTC")),
        ],
        metadata={"x": "y"},
    )
    schema = record("int", ["string", "null"], {"type": "array", "items": "int"})
    raw = b"\x02\0\x02x\x02\x0a\0"
    decoder = Decoder(schema, arrow_schema=wanted)
    assert decoder.schema.equals(wanted, check_metadata=True)
    batch = decode(decoder, raw)
    assert batch.schema.equals(wanted, check_metadata=True)
    assert batch.to_pylist() == [{"f1": "x", "f0": 1, "f2": [5], "new": None}]
    part = Decoder(schema, columns=["f2"], arrow_schema=wanted)
    assert decode(part, raw).schema.equals(wanted.field(2).name and pa.schema([wanted.field(2)]))
    both = Decoder(
        schema, record("long", ["null", "string"]), arrow_schema=pa.schema([("f1", pa.large_string())])
    )
    with pytest.raises(SchemaError):
        decode(both, raw)  # types that no table stores are not converted to
    with pytest.raises(MissingColumnError, match="f9"):
        Decoder(schema, columns=["f9"], arrow_schema=wanted)


def test_times_of_day_and_nanoseconds_have_arrows_types() -> None:
    kinds = [
        {"type": "int", "logicalType": "time-millis"},
        {"type": "long", "logicalType": "time-micros"},
        {"type": "long", "logicalType": "timestamp-nanos"},
        {"type": "long", "logicalType": "local-timestamp-nanos"},
        {"type": "fixed", "name": "u", "size": 12, "logicalType": "duration"},
    ]
    decoder = Decoder(record(*kinds))
    assert decoder.schema.types == [
        pa.time32("ms"), pa.time64("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ns"), pa.binary(12),
    ]  # fmt: skip


def test_a_decimal_of_more_than_76_digits_is_refused() -> None:
    with pytest.raises(SchemaError, match="76"):
        Decoder(record(decimal(77, 0)))
