from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from avro_records import decode, record, written
from avro_strategies import rows_of
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.avro import Decoder, Encoder
from hudi_format.errors import CorruptFileError, MissingColumnError, SchemaError, UnsupportedError

Json = Any


def batch_of(kind: pa.DataType, values: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], ["f0"])


def encoded(schema: Json, batch: pa.RecordBatch) -> list[bytes]:
    data, offsets = Encoder(schema, batch.schema).encode(batch)
    assert offsets[0] == 0
    assert offsets[-1] == data.size
    return [data[a:b].to_pybytes() for a, b in pairwise(offsets)]


@given(rows_of())
def test_bytes_are_those_of_fastavro(given_: tuple[Json, list[Any]]) -> None:
    schema, rows = given_
    records = written(schema, rows)
    assert encoded(schema, decode(Decoder(schema), *records)) == records


@given(rows_of(), st.data())
def test_a_part_of_a_batch_gives_its_part_of_the_bytes(given_: tuple[Json, list[Any]], data: Any) -> None:
    schema, rows = given_
    records = written(schema, rows)
    batch = decode(Decoder(schema), *records)
    begin = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(begin, len(rows)))
    part = batch.slice(begin, end - begin)
    assert encoded(schema, part) == records[begin:end]
    taken = batch.take(pa.array(range(begin, end), pa.int64()))  # laid out anew
    assert encoded(schema, taken) == records[begin:end]


@given(rows_of(), st.data())
def test_columns_are_matched_by_name(given_: tuple[Json, list[Any]], data: Any) -> None:
    schema, rows = given_
    records = written(schema, rows)
    batch = decode(Decoder(schema), *records)
    assert encoded(schema, batch.select(data.draw(st.permutations(batch.schema.names)))) == records


CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
LIST = {"type": "array", "items": ["null", "int"]}


@pytest.mark.parametrize(
    ("avro", "column", "expected"),
    [
        ("long", pa.array([1], pa.int8()), b"\x02"),
        ("double", pa.array([1], pa.int32()), b"\0\0\0\0\0\0\xf0?"),
        ("string", pa.array([-12], pa.int64()), b"\x06-12"),
        ("string", pa.array(["a"], pa.large_string()), b"\x02a"),
        ("string", pa.array(["a"], pa.string_view()), b"\x02a"),
        ("string", pa.array(["a"]).dictionary_encode(), b"\x02a"),
        (["null", "string"], pa.array([None, "a"]).dictionary_encode().slice(1), b"\x02\x02a"),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.array(["B"]), b"\x02"),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.array([1], pa.timestamp("ms", "UTC")), b"\xd0\x0f"),
        (CENTS, pa.array([Decimal("1.5")]), b"\x04\0\x96"),
        (["null", "int", "string"], pa.array(["a"]), b"\x04\x02a"),
        (["null", "int", "string"], pa.array([7], pa.int32()), b"\x02\x0e"),
        (["null", "float", "long"], pa.array([7], pa.int32()), b"\x02\0\0\xe0@"),
        (["string"], pa.array(["a"]), b"\0\x02a"),
        (["null", "int"], pa.nulls(1), b"\0"),
        (["int", "null"], pa.nulls(1), b"\x02"),
        ("null", pa.nulls(1), b""),
        (LIST, pa.array([[1, None]], pa.large_list(pa.int32())), b"\x04\x02\x02\0\0"),
    ],
    ids=str,
)  # fmt: skip
def test_columns_in_other_arrow_types_are_written_in_avros(
    avro: Json, column: pa.Array, expected: bytes
) -> None:
    assert encoded(record(avro), pa.RecordBatch.from_arrays([column], ["f0"])) == [expected]


def test_fields_without_a_column_get_their_default_or_null() -> None:
    schema = record("int", ["null", "int"], ["string", "null"], "long")
    schema["fields"][3]["default"] = 70
    assert encoded(schema, batch_of(pa.int32(), [1])) == [b"\x02\0\x02\x8c\x01"]
    with pytest.raises(MissingColumnError, match="f1"):
        Encoder(record("int", "int"), pa.schema([("f0", pa.int32())]))


FIXED = {"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 5, "scale": 0}


@pytest.mark.parametrize(
    ("avro", "column", "says"),
    [
        ("int", pa.array([1, None], pa.int32()), "null"),
        ("string", pa.array(["a", None]), "null"),
        (FIXED, pa.array([Decimal(32767), Decimal(32768)], pa.decimal128(5, 0)), "digits"),
        (FIXED, pa.array([Decimal(-32768), Decimal(-32769)], pa.decimal128(5, 0)), "digits"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.array(["A", "AA"]), "symbol"),
        ({"type": "array", "items": "int"}, pa.array([[1], [2, None]], pa.list_(pa.int32())), "null"),
        ({"type": "map", "values": "int"}, pa.array([[], [("k", None)]], pa.map_(pa.string(), pa.int32())), "null"),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_by_column_and_row(
    avro: Json, column: pa.Array, says: str
) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["f0"])
    with pytest.raises(SchemaError, match=says) as e:
        Encoder(record(avro), batch.schema).encode(batch)
    assert e.value.details["row"] == 1
    assert str(e.value.details["column"]).startswith("f0")


@pytest.mark.parametrize(
    ("avro", "arrow", "error"),
    [
        ("int", pa.int64(), SchemaError),
        ("int", pa.string(), SchemaError),
        ("int", pa.struct([("a", pa.int32())]), SchemaError),
        ({"type": "array", "items": "int"}, pa.int32(), SchemaError),
        (record("int"), pa.struct([("f0", pa.int32()), ("other", pa.int32())]), SchemaError),
        ("null", pa.int32(), SchemaError),
        (["null", "int", "boolean"], pa.string(), UnsupportedError),
        (["null", "int"], pa.string(), SchemaError),
    ],
    ids=str,
)
def test_a_column_that_cannot_be_written_is_refused_before_any_row(
    avro: Json, arrow: pa.DataType, error: Any
) -> None:
    with pytest.raises(error) as e:
        Encoder(record(avro), pa.schema([("f0", arrow)]))
    assert str(e.value.details["column"]).startswith("f0")


def test_a_column_that_the_records_do_not_have_is_refused() -> None:
    with pytest.raises(SchemaError, match="more"):
        Encoder(record("int"), pa.schema([("f0", pa.int32()), ("more", pa.int32())]))
    with pytest.raises(SchemaError, match="duplicated"):
        Encoder(record("int"), pa.schema([("f0", pa.int32()), ("f0", pa.int32())]))


def test_a_batch_of_another_schema_is_refused() -> None:
    encoder = Encoder(record("long"), pa.schema([("f0", pa.int64())]))
    with pytest.raises(SchemaError, match="schema differs"):
        encoder.encode(batch_of(pa.int32(), [1]))


def test_no_rows_are_no_bytes() -> None:
    assert encoded(record("int"), batch_of(pa.int32(), [])) == []


def test_records_longer_than_expected_are_written_whole() -> None:
    lists = pa.array([[None] * 100_000, ["x" * 1_000_000]], pa.list_(pa.string()))
    schema = record({"type": "array", "items": ["null", "string"]})
    batch = pa.RecordBatch.from_arrays([lists], ["f0"])
    assert decode(Decoder(schema), *encoded(schema, batch)).column(0).to_pylist() == lists.to_pylist()


def test_a_schema_that_is_none_is_corrupt() -> None:
    with pytest.raises(CorruptFileError):
        Encoder(json.dumps("int"), pa.schema([]))


UNION = ["null", "int", "string", {"type": "array", "items": ["int", "string"]}]
MEMBERS = pa.struct(
    [
        ("member0", pa.int32()),
        ("member1", pa.string()),
        ("member2", pa.list_(pa.struct([("member0", pa.int32()), ("member1", pa.string())]))),
    ]
)


def member(**given: Any) -> Json:
    return dict.fromkeys(["member0", "member1", "member2"]) | given


@pytest.mark.parametrize("sliced", [False, True])
def test_a_struct_of_members_becomes_a_union(sliced: bool) -> None:
    first, second = {"member0": 1, "member1": None}, {"member0": None, "member1": "x"}
    values = [
        None,
        member(member0=-5),
        member(member1="s"),
        member(member2=[first, second]),
        member(member2=[]),
    ]
    plain_values = [None, -5, "s", [1, "x"], []]
    batch = batch_of(MEMBERS, [member(member0=9), *values]).slice(1) if sliced else batch_of(MEMBERS, values)
    records = encoded(record(UNION), batch)
    assert records == written(record(UNION), [{"f0": v} for v in plain_values])
    assert decode(Decoder(record(UNION)), *records).column(0).to_pylist() == values
    inner = {"type": "record", "name": "in", "fields": [{"name": "a", "type": UNION}]}
    held = pa.RecordBatch.from_arrays([pa.StructArray.from_arrays([batch.column(0)], ["a"])], ["f0"])
    assert encoded(record(inner), held) == records


@pytest.mark.parametrize(
    ("value", "says"),
    [(member(), "members"), (member(member0=1, member1="x"), "members"), (None, "null")],
    ids=str,
)
def test_a_union_has_one_value(value: Json, says: str) -> None:
    batch = batch_of(MEMBERS, [member(member0=1), value])
    with pytest.raises(SchemaError, match=says) as e:
        encoded(record(UNION[1:]), batch)
    assert e.value.details["row"] == 1
    with pytest.raises(SchemaError, match="the members member0, member1, member2, where the union has 2"):
        encoded(record(["null", "int", "string"]), batch)
