"""Delete blocks of version 3, against fastavro and Apache Hudi's own."""

import io
import struct
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from golden_logs import VERSIONS, golden_logs
from hypothesis import given
from hypothesis import strategies as st
from log_bytes import block

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.log.block import BlockType
from hudi_format.log.delete_block import OrderingType, read_deletes
from hudi_format.log.reader import LogFileReader


def wrapper(name, kind):
    return {"type": "record", "name": f"{name}Wrapper", "fields": [{"name": "value", "type": kind}]}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
WRAPPERS = [
    wrapper("Boolean", "boolean"),
    wrapper("Int", "int"),
    wrapper("Long", "long"),
    wrapper("Float", "float"),
    wrapper("Double", "double"),
    wrapper("Bytes", "bytes"),
    wrapper("String", "string"),
    wrapper("Date", "int"),
    wrapper("Decimal", DECIMAL),
    wrapper("TimeMicros", "long"),
    wrapper("TimestampMicros", "long"),
]
NAMES = [w["name"] for w in WRAPPERS]
ARRAY = wrapper("Array", ["null", {"type": "array", "items": ["null", *NAMES, wrapper("LocalDate", "int")]}])
RECORD = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *WRAPPERS, ARRAY]},
    ],
}
LIST = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": RECORD}}],
    }
)


def encode(records):
    out = io.BytesIO()
    rows = [{"recordKey": k, "partitionPath": p, "orderingVal": v} for k, p, v in records]
    fastavro.schemaless_writer(out, LIST, {"deleteRecordList": rows})
    return out.getvalue()


def content(data, version=3):
    return struct.pack(">ii", version, len(data)) + data


def read(data, version=3):
    log = LogFileReader(block(1, {0: "1"}, content(data, version)), file="f")
    (only,) = log.blocks
    return read_deletes(only, log.content(only))


days = st.integers(-100_000, 100_000)
decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=15, max_value=10**14, min_value=-(10**14)
)
values = {
    "BooleanWrapper": st.booleans(),
    "IntWrapper": st.integers(-(2**31), 2**31 - 1),
    "LongWrapper": st.integers(-(2**63), 2**63 - 1),
    "FloatWrapper": st.floats(width=32, allow_nan=False),
    "DoubleWrapper": st.floats(allow_nan=False),
    "BytesWrapper": st.binary(max_size=9),
    "StringWrapper": st.text(max_size=9),
    "DateWrapper": days,
    "DecimalWrapper": decimals,
    "TimeMicrosWrapper": st.integers(0, 86_399_999_999),
    "TimestampMicrosWrapper": st.integers(0, 2**52),
}
some = st.sampled_from(NAMES).flatmap(lambda n: values[n].map(lambda v: (n, {"value": v})))
ordering = st.one_of(st.none(), some)
texts = st.text(max_size=12)


def plain(kind, value):
    """A value as the wrapper's number or bytes, from what Arrow gives."""
    if kind is OrderingType.DATE:
        return (value - date(1970, 1, 1)).days
    if kind is OrderingType.TIME_MICROS:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


@pytest.mark.req("LF-11")
@given(st.lists(st.tuples(texts, st.one_of(st.none(), texts), ordering), max_size=8))
def test_deletes_are_what_fastavro_wrote(records):
    deletes = read(encode(records))
    assert deletes.keys.to_pylist() == [k for k, _, _ in records]
    assert deletes.partitions.to_pylist() == [p for _, p, _ in records]
    got = [None] * len(records)
    for part in deletes.ordering:
        column = part.values
        if part.type is OrderingType.TIMESTAMP_MICROS:
            column = column.cast(pa.int64())
        for row, value in zip(part.rows.tolist(), column.to_pylist(), strict=True):
            name = NAMES[part.type - 1]
            got[row] = (name, {"value": plain(part.type, value)})
    assert got == [r[2] for r in records]
    default = [v is None or (v[0] == "IntWrapper" and v[1]["value"] == 0) for _, _, v in records]
    assert deletes.is_default.tolist() == default


@pytest.mark.req("LF-11")
@pytest.mark.parametrize("version", VERSIONS)
def test_golden_delete_blocks_are_what_fastavro_reads(version):
    seen = 0
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                if b.type is not BlockType.DELETE:
                    continue
                deletes = read_deletes(b, log.content(b))
                raw = bytes(log.content(b))
                want = fastavro.schemaless_reader(io.BytesIO(raw[8:]), LIST, return_record_name=True)
                rows = want["deleteRecordList"]
                assert deletes.keys.to_pylist() == [r["recordKey"] for r in rows]
                assert deletes.partitions.to_pylist() == [r["partitionPath"] for r in rows]
                numbers = {
                    row: v
                    for part in deletes.ordering
                    for row, v in zip(part.rows.tolist(), in_python(part.values), strict=True)
                }
                assert numbers == {i: ordering_value(r["orderingVal"]) for i, r in enumerate(rows)}
                seen += len(rows)
    assert seen > 20


def in_python(values):
    """Ordering values in Python; of several fields they are tuples already."""
    return values if isinstance(values, list) else values.to_pylist()


def ordering_value(wrapped):
    """What fastavro gives for one value, or for several fields."""
    value = wrapped[1]["value"]
    return tuple(v[1]["value"] for v in value) if isinstance(value, list) else value


@pytest.mark.req("LF-11", "LF-12")
def test_deletes_with_and_without_ordering_values_are_told_apart():
    found = set()
    for data in golden_logs("v6", "payload_AWSDmsAvroPayload").values():
        with LogFileReader(data) as log:
            for b in log.blocks:
                if b.type is BlockType.DELETE:
                    deletes = read_deletes(b, log.content(b))
                    found |= {p.type for p in deletes.ordering}
                    given = np.zeros(len(deletes), bool)
                    for part in deletes.ordering:
                        given[part.rows] = [
                            v != 0 or part.type is not OrderingType.INT for v in part.values.to_pylist()
                        ]
                    assert (given == ~deletes.is_default).all()
    assert found == {OrderingType.INT, OrderingType.LONG}


@pytest.mark.req("LF-12")
def test_a_delete_block_follows_the_data_block_of_its_append():
    pairs = 0
    for version in VERSIONS:
        for data in golden_logs(version).values():
            found = LogFileReader(data).blocks
            for first, second in pairwise(found):
                if first.instant == second.instant and BlockType.DELETE in (first.type, second.type):
                    assert (first.type.has_records, second.type) == (True, BlockType.DELETE)
                    pairs += 1
    assert pairs > 5


@pytest.mark.req("LF-11")
def test_several_ordering_fields_come_as_tuples():
    items = [
        ("LongWrapper", {"value": 7}),
        None,
        ("StringWrapper", {"value": "ä"}),
        ("LocalDateWrapper", {"value": 3}),
        ("DecimalWrapper", {"value": Decimal("1.5")}),
    ]
    deletes = read(encode([("a", "", ("ArrayWrapper", {"value": items})), ("b", None, None)]))
    (part,) = deletes.ordering
    assert part.type is OrderingType.ARRAY
    assert part.values == [(7, None, "ä", date(1970, 1, 1) + timedelta(3), Decimal("1.5"))]
    assert deletes.is_default.tolist() == [False, True]


def test_values_of_several_types_stay_apart():
    deletes = read(
        encode([("a", "", ("LongWrapper", {"value": 7})), ("b", "", ("StringWrapper", {"value": "7"}))])
    )
    assert [(p.type, p.rows.tolist(), p.values.to_pylist()) for p in deletes.ordering] == [
        (OrderingType.LONG, [0], [7]),
        (OrderingType.STRING, [1], ["7"]),
    ]
    one = read(encode([("a", "", ("LongWrapper", {"value": 7})), ("b", "", ("IntWrapper", {"value": 0}))]))
    assert one.is_default.tolist() == [False, True]
    assert read(encode([("a", "", None)])).is_default.tolist() == [True]


def test_arrays_in_counted_blocks_are_read():
    item = b"\x02\x02k\x02\x00\x00"
    data = b"\x01" + bytes([2 * len(item)]) + item + b"\x02" + item + b"\x00"
    assert read(data).keys.to_pylist() == ["k", "k"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        b"\x02\x02\x04a",
        b"\x02\x00\x00\x00\x00",  # no key
        b"\x02\x02\x02k\x00\x1a\x00",  # a branch that there is not
        b"\x02\x02\x02k\x04\x00\x00",
        b"\x02\x02\x02\xff\x00\x00\x00",  # a key that is no text
        b"\x02\x02\x02k\x00\x04\x80\x80\x80\x80\x20\x00",  # an int of more than 32 bits
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # -2**63 records
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # 2**63 - 1 records
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",  # -2**63 records of no bytes
        b"\x02\x02\x02k\x00\x18\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00",  # and ordering values
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x00\x00",  # more after the end
        b"\x02\x02\x02k\x00\x02\x05\x00",  # a boolean that is neither
    ],
)
def test_lists_that_do_not_add_up_are_errors(data):
    with pytest.raises(CorruptFileError) as caught:
        read(data)
    assert caught.value.file == "f"
    assert caught.value.details["offset"] >= 22


def test_lengths_and_versions_are_checked():
    log = LogFileReader(block(1, {0: "1"}, content(b"\x00") + b"x"), file="f")
    with pytest.raises(CorruptFileError, match="deletes of 1 bytes declared in a content of 10"):
        read_deletes(log.blocks[0], log.content(log.blocks[0]))
    with pytest.raises(UnsupportedError, match="version 4"):
        read(b"\x00", version=4)
    with pytest.raises(CorruptFileError):
        read(b"\x00", version=0)
    log = LogFileReader(block(1, {0: "1"}, b"\0\0\0\3"), file="f")
    with pytest.raises(CorruptFileError):
        read_deletes(log.blocks[0], log.content(log.blocks[0]))


@given(st.binary(max_size=60))
def test_any_bytes_are_deletes_or_an_error(data):
    try:
        deletes = read(data)
    except CorruptFileError:
        return
    assert len(deletes) <= len(data) // 3
    want = fastavro.schemaless_reader(io.BytesIO(data), LIST)["deleteRecordList"]
    assert deletes.keys.to_pylist() == [r["recordKey"] for r in want]
