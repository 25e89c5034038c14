"""Structs of Thrift's compact protocol: taken apart and put together they are the same; damage is one error."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.parquet.thrift import (
    BINARY,
    I64,
    Cursor,
    integer,
    number_of,
    once,
    optional_number,
    raw_of,
    replaced,
    struct,
    structs,
    varint,
)


def footer():
    out = io.BytesIO()
    table = pa.table({"a": [1, None], "s": [{"x": [1.5]}, None], "t": ["x", "y"]})
    pq.write_table(table.replace_schema_metadata({"k": "v" * 300}), out, write_page_index=True)
    whole = out.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    return whole[-8 - length : -8]


def test_a_footer_put_together_again_is_the_same():
    data = footer()
    assert struct(Cursor(data).fields()) == data
    groups = raw_of(Cursor(data).fields(), 4)
    assert structs([struct(f) for f in Cursor(groups).structs()]) == groups


def test_fields_far_apart_and_many_structs():
    fields = [(1, I64, integer(5)), (40, BINARY, varint(2) + b"ab"), (41, I64, integer(1 << 40))]
    data = struct(fields)
    assert Cursor(data).fields() == fields
    assert Cursor(structs([data] * 300)).structs() == [fields] * 300
    assert (number_of(fields, 41), optional_number(fields, 7)) == (1 << 40, None)
    assert replaced(fields, {1: (I64, integer(6)), 2: (I64, integer(7))})[:2] == [
        (1, I64, integer(6)),
        (2, I64, integer(7)),
    ]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x16", "cut off"),
        (b"\x16" + b"\xff" * 11, "compact encoding"),
        (b"\x1e\x00", "compact encoding"),
        (b"\x1c" * 60, "compact encoding"),
        (b"\x18\xff\xff\xff\xff\x0fab", "cut off"),
    ],
)
def test_damage_is_one_error(data, word):
    with pytest.raises(ValueError, match=word):
        Cursor(data).fields()


def test_every_cut_of_a_footer_is_one_error():
    data = footer()
    for end in range(0, len(data), 7):
        with pytest.raises(ValueError, match="cut off"):
            Cursor(data[:end]).fields()


def test_negative_numbers_and_missing_fields_are_refused():
    with pytest.raises(ValueError, match="negative"):
        number_of([(1, I64, varint(3))], 1)
    with pytest.raises(ValueError, match="missing"):
        raw_of([], 1)


def test_fields_that_are_there_twice_or_not_known_are_refused():
    fields = [(1, I64, b"\x02"), (7, I64, b"\x02")]
    assert once(fields) is once(fields, {1, 2, 7}) is fields
    with pytest.raises(ValueError, match="not known: 7"):
        once(fields, {1, 2})
    with pytest.raises(ValueError, match="twice"):
        once([*fields, fields[0]], {1, 7})


def test_numbers_have_64_bits():
    most = b"\xfe" + b"\xff" * 8
    assert number_of([(1, I64, most + b"\x01")], 1) == (1 << 63) - 1
    for more in (b"\x02", b"\x7f", b"\x81\x00"):
        with pytest.raises(ValueError, match="64 bits"):
            number_of([(1, I64, most + more)], 1)


@pytest.mark.parametrize(
    ("kind", "data", "length"),
    [
        (I64, b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01rest", 10),
        (3, b"\xff.", 1),
        (7, b"12345678.", 8),
        (BINARY, varint(300) + b"x" * 301, 302),
        (12, b"\x11\x12\x04\x02\x06\x00.", 6),  # two booleans, and the field 1 far from them
        (9, b"\x31\x01\x02\x01.", 4),  # three booleans of a byte each
        (9, b"\xf5" + varint(200) + b"\x02" * 201, 203),
        (10, b"\x1c\x00.", 2),
        (11, b"\x00.", 1),
        (11, b"\x02\x85\x01a\x02\x01b\x04.", 8),
    ],
)
def test_every_kind_of_value_is_skipped_to_its_end_and_not_beyond_the_data(kind, data, length):
    cursor = Cursor(data)
    cursor.skip(kind)
    assert cursor.at == length
    for end in range(length):
        with pytest.raises(ValueError, match="cut off"):
            Cursor(data[:end]).skip(kind)
