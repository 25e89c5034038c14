"""Bytes that no writer makes: an error that says where, or rows; never a crash, a hang or a great allocation."""

from __future__ import annotations

import json
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import golden_tables
import pytest
from avro_records import decode, record, written
from avro_strategies import rows_of
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.avro import Decoder
from hudi_format.avro.defaults import varint
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import read_avro
from hudi_format.log.reader import LogFileReader

Json = Any


def rows_or_error(decoder: Decoder, *records: bytes) -> None:
    try:
        batch = decode(decoder, *records)
    except HudiError as e:
        error = e
    else:
        batch.validate(full=True)
        assert batch.num_rows == len(records)
        return
    assert 0 <= int(str(error.details["offset"])) <= sum(map(len, records))
    assert error.details["record"] in range(len(records))


@given(rows_of(3), st.data())
def test_a_record_that_is_cut_off_is_corrupt(given_: tuple[Json, list[Any]], data: Any) -> None:
    schema, rows = given_
    decoder = Decoder(schema)
    for raw in written(schema, rows):
        for cut in range(len(raw)):
            with pytest.raises(CorruptFileError):
                decode(decoder, raw[:cut])
            with pytest.raises(CorruptFileError):
                decoder.decode_stream(raw[:cut], 0, 1)


@given(rows_of(3), st.data())
def test_a_record_with_a_changed_byte_gives_rows_or_an_error(
    given_: tuple[Json, list[Any]], data: Any
) -> None:
    schema, rows = given_
    records = written(schema, rows)
    names = [f["name"] for f in schema["fields"]]
    decoders = [
        Decoder(schema),
        Decoder(schema, columns=data.draw(st.lists(st.sampled_from(names), unique=True))),
    ]
    for number, raw in enumerate(records):
        for at in range(len(raw)):
            changed = bytearray(raw)
            changed[at] ^= data.draw(st.integers(1, 255))
            for decoder in decoders:
                rows_or_error(decoder, *records[:number], bytes(changed), *records[number + 1 :])


@given(rows_of(0), st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_give_rows_or_an_error(given_: tuple[Json, list[Any]], records: list[bytes]) -> None:
    rows_or_error(Decoder(given_[0]), *records)


@pytest.mark.req("LF-15")
def test_every_byte_of_a_record_of_apache_hudi_may_be_cut_off_or_changed() -> None:
    with zipfile.ZipFile(golden_tables.ROOT / "v6" / "all_types_mor.zip") as archive:
        names = [n for n in archive.namelist() if "/.hoodie/" not in n and ".log." in n]
        log = LogFileReader(archive.read(names[0]))
    block = next(b for b in log.blocks if b.type is BlockType.AVRO_DATA)
    found = read_avro(block, log.content(block))
    start, length = int(found.offsets[0]), int(found.lengths[0])
    raw = memoryview(found.data)[start : start + length].tobytes()
    whole, part = Decoder(block.schema), Decoder(block.schema, columns=["_hoodie_record_key"])
    for at in range(length):
        with pytest.raises(CorruptFileError):
            decode(whole, raw[:at])
        for value in {0, 1, 2, 0x7F, 0x80, 0xFF, raw[at] ^ 1, raw[at] ^ 0x80} - {raw[at]}:
            changed = raw[:at] + bytes([value]) + raw[at + 1 :]
            rows_or_error(whole, changed)
            rows_or_error(part, changed)


EMPTY = {"type": "record", "name": "x", "fields": []}
ITEMS = {"type": "array", "items": "int"}
HUGE = varint(2**62)


@pytest.mark.parametrize(
    ("kind", "raw", "says", "offset"),
    [
        ("string", varint(-1), "length is negative", 0),
        ("string", HUGE + b"abc", "past the end", 0),
        ("bytes", varint(2**31) + b"abc", "past the end", 0),
        ("string", b"\x06ab", "past the end", 0),
        ("string", b"", "cut off", 0),
        ("string", b"\x04a\xff", "not UTF-8", 1),
        ("string", b"\x04\xc0\x80", "not UTF-8", 1),
        ("string", b"\x06\xed\xa0\x80", "not UTF-8", 1),
        ("string", b"\x08\xf4\x90\x80\x80", "not UTF-8", 1),
        ("string", b"\x02\xc3", "not UTF-8", 1),
        ("string", b"\x14" + b"a" * 9 + b"\xe2", "not UTF-8", 1),
        (["null", "string"], b"\x04", "no such branch", 0),
        (["null", "string"], b"\x01", "no such branch", 0),
        (["null", "string"], HUGE, "no such branch", 0),
        ("long", b"\x80" * 10 + b"\x01", "64 bits", 0),
        ("long", b"\xff" * 9 + b"\x02", "64 bits", 0),
        ("long", b"\xff" * 9, "cut off", 0),
        ("int", varint(2**31), "32 bits", 0),
        ("int", varint(-(2**31) - 1), "32 bits", 0),
        ("boolean", b"\x02", "boolean", 0),
        ({"type": "int", "logicalType": "time-millis"}, varint(86_400_000), "within a day", 0),
        ({"type": "long", "logicalType": "time-micros"}, varint(-1), "within a day", 0),
        ("double", b"\0" * 7, "past the end", 0),
        ("float", b"\0" * 3, "past the end", 0),
        ({"type": "fixed", "name": "f", "size": 3}, b"ab", "past the end", 0),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02", "symbol", 0),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x01", "symbol", 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x64", "digits", 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\0", "digits", 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x28\x01" + b"\0" * 19, "digits", 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, b"\x20\x7f" + b"\xff" * 15, "digits", 0),
        ({"type": "bytes", "logicalType": "decimal", "precision": 76}, b"\x40\x80" + b"\0" * 31, "digits", 0),
        ({"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 2}, b"\xff\x9c", "digits", 0),
        (ITEMS, HUGE, "more items", 0),
        (ITEMS, b"\x06\x02\x02", "more items", 0),
        (ITEMS, varint(-(2**63)) + b"\0", "more items", 0),
        (ITEMS, b"\x01\x01\x02\0", "length is negative", 0),
        (ITEMS, b"\x01\x04\x02\0", "another size", 0),
        (ITEMS, b"\x01" + HUGE, "past the end", 0),
        (ITEMS, b"\x02\x02", "cut off", 2),
        ({"type": "array", "items": EMPTY}, HUGE + b"\0", "more items", 0),
        ({"type": "array", "items": EMPTY}, (varint(1000) * 100) + b"\0", "more items", 2),
        ({"type": "map", "values": "string"}, HUGE, "more items", 0),
        ({"type": "map", "values": "string"}, b"\x02\x02\xff\x02a\0", "not UTF-8", 2),
        ("int", b"\x02\x02", "bytes are left", 1),
    ],
    ids=str,
)  # fmt: skip
def test_the_error_says_what_is_wrong_and_where(kind: Json, raw: bytes, says: str, offset: int) -> None:
    decoder = Decoder(record(kind))
    with pytest.raises(CorruptFileError, match=says) as e:
        decode(decoder, raw)
    assert e.value.details["record"] == 0
    assert e.value.details["offset"] == offset
    assert pickle.loads(pickle.dumps(e.value)).details == e.value.details
    if not says.startswith("bytes are left"):
        assert str(e.value.details["column"]).startswith("f0")
        with pytest.raises(CorruptFileError):
            decoder.decode_stream(raw, 0, 1)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("string", varint(-1)),
        ("string", HUGE),
        (["null", "string"], b"\x04"),
        ("long", b"\x80" * 10 + b"\x01"),
        (ITEMS, HUGE),
        (ITEMS, b"\x01\x01"),
        (ITEMS, b"\x01" + HUGE),
        ({"type": "map", "values": "string"}, HUGE),
        ({"type": "array", "items": {"type": "array", "items": "string"}}, HUGE),
        ({"type": "fixed", "name": "f", "size": 2**31 - 1}, b"ab"),
    ],
    ids=str,
)
def test_what_is_passed_over_is_within_the_record_too(kind: Json, raw: bytes) -> None:
    with pytest.raises(CorruptFileError) as e:
        decode(Decoder(record(kind, "int"), columns=["f1"]), raw + b"\0" * 5)
    assert e.value.details["offset"] == 0


def test_a_branch_that_a_union_of_several_types_does_not_have_is_corrupt() -> None:
    decoder = Decoder(record(["null", "int", "long"]), record(["null", "long"]))
    for raw in (b"\x06\0", b"\x01\0", HUGE):
        with pytest.raises(CorruptFileError, match="no such branch"):
            decode(decoder, raw)


def test_items_without_bytes_are_passed_over_at_once() -> None:
    schema = record({"type": "array", "items": EMPTY}, "int")
    assert decode(Decoder(schema, columns=["f1"]), HUGE + b"\0\x02").column(0).to_pylist() == [1]
    some = decode(Decoder(schema), varint(500) + b"\0\x02")
    assert len(some.column(0)[0]) == 500


def test_a_type_that_holds_itself_is_passed_over_to_a_depth() -> None:
    node = {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]}
    decoder = Decoder(record(node, "int"), columns=["f1"])
    assert decode(decoder, b"\x02" * 100 + b"\0\x02").column(0).to_pylist() == [1]
    with pytest.raises(CorruptFileError, match="deep"):
        decode(decoder, b"\x02" * 100_000 + b"\0\x02")
    endless = {"type": "record", "name": "n", "fields": [{"name": "next", "type": "n"}]}
    with pytest.raises(CorruptFileError, match="deep"):
        decode(Decoder(record(endless, "int"), columns=["f1"]), b"\x02")


def test_more_records_than_bytes_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        Decoder(record("int")).decode_stream(b"\0" * 10, 0, 11)
    with pytest.raises(CorruptFileError):
        Decoder(record()).decode_stream(b"", 0, 2**62)
    assert Decoder(record()).decode_stream(b"", 0, 10)[0].num_rows == 10


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1), (0, 5), (5, 0), (2**62, 2**62)])
def test_a_record_outside_the_data_is_refused(offset: int, length: int) -> None:
    with pytest.raises(CorruptFileError, match="leaves the data"):
        Decoder(record("int")).decode(b"\0\0\0\0", [offset], [length])


@pytest.mark.parametrize("start", [-1, 3])
def test_a_start_outside_the_data_is_the_callers_mistake(start: int) -> None:
    with pytest.raises(ValueError, match="start"):
        Decoder(record("int")).decode_stream(b"\0\0", start, 0)
    with pytest.raises(ValueError, match="length"):
        Decoder(record("int")).decode(b"\0", [0], [])


def test_the_first_bad_text_of_many_is_the_one_named() -> None:
    texts = ["é" * 10, "plain", "日本", ""]
    good = [varint(len(t.encode())) + t.encode() for t in texts * 100]
    decoder = Decoder(record("string"))
    assert decode(decoder, *good).column(0).to_pylist() == texts * 100
    bad = [*good[:250], b"\x04a\x80", *good]
    with pytest.raises(CorruptFileError, match="record 250, column f0"):
        decode(decoder, *bad)
    # A character in two texts is no character, though the bytes of both together are one.
    with pytest.raises(CorruptFileError, match="record 0"):
        decode(decoder, b"\x02\xc3", b"\x02\xa9")


def test_a_decoder_may_be_used_by_several_threads() -> None:
    schema = record(["null", "string"], "long")
    records = [b"\x02\x02x" + varint(i) for i in range(20_000)]
    decoder = Decoder(json.dumps(schema))
    expected = decode(decoder, *records)
    with ThreadPoolExecutor(4) as pool:
        assert all(b.equals(expected) for b in pool.map(lambda _: decode(decoder, *records), range(16)))
