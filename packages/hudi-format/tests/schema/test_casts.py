"""Arrow columns cast as tables need it: chunks, and what lies below nulls."""

from __future__ import annotations

import decimal
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.avro import DEFAULT
from hudi_format.schema.casts import convert


def of(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("c", kind)])


def test_long_text_is_cut_into_chunks_that_32_bit_offsets_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudi_format.schema.casts._MAX_CHUNK_BYTES", 100)
    text = ["x" * 30] * 20
    for kind in (pa.large_string(), pa.string_view(), pa.large_list(pa.large_string())):
        data = [[t] for t in text] if kind == pa.large_list(pa.large_string()) else text
        column = pa.chunked_array([pa.array(data, kind)])
        target = normalize_schema(of(kind)).field(0).type
        found = convert(column, target, "c")
        assert found.num_chunks > 1
        assert found.to_pylist() == data


def test_what_lies_below_a_null_is_no_value() -> None:
    # A null struct over a struct that is there, over a value that is not; and codes into an empty dictionary.
    inner = pa.StructArray.from_arrays([pa.array([1, None], pa.int16())], ["x"])
    outer = pa.StructArray.from_arrays([inner], ["i"], mask=pa.array([False, True]))
    target = pa.struct([pa.field("i", pa.struct([pa.field("x", pa.int32(), False)]), False)])
    found = convert(outer, target, "c")
    found.validate(full=True)
    assert found.to_pylist() == [{"i": {"x": 1}}, None]

    codes = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([], pa.string()), safe=False)
    above = pa.StructArray.from_arrays(
        [codes], fields=[pa.field("d", codes.type, False)], mask=pa.array([True])
    )
    assert convert(above, pa.struct([pa.field("d", pa.string(), False)]), "c").to_pylist() == [None]

    for values, kind in ((["12", "abc"], pa.decimal128(10, 2)), ([12, 1 << 40], pa.decimal128(5, 0))):
        below = pa.StructArray.from_arrays([pa.array(values)], ["x"], mask=pa.array([False, True]))
        for nullable in (True, False):
            field = pa.field("x", kind, nullable)
            assert convert(below, pa.struct([field]), "c").to_pylist() == [{"x": decimal.Decimal(12)}, None]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_values_below_a_null_list_are_passed_over(kind: Callable[[pa.DataType], pa.DataType]) -> None:
    lists = pa.ListArray if kind is pa.list_ else pa.LargeListArray
    offsets = pa.array([0, 1, 2, 3], pa.int32() if kind is pa.list_ else pa.int64())
    values = pa.array([1, None, 3], pa.int16())
    column = lists.from_arrays(offsets, values, mask=pa.array([False, True, False]))
    target = pa.list_(pa.field("element", pa.int32(), False))
    for given, want in ((column, [[1], None, [3]]), (column.slice(1), [None, [3]])):
        found = convert(given, target, "c")
        found.validate(full=True)
        assert found.to_pylist() == want


def test_values_below_a_null_map_are_passed_over() -> None:
    whole = pa.array([[("a", 1)], [("b", None)], [("c", 3)]], pa.map_(pa.string(), pa.int16()))
    fields = [whole.type.key_field, whole.type.item_field]
    children = [pa.StructArray.from_arrays([whole.keys, whole.items], fields=fields)]
    column = pa.Array.from_buffers(
        whole.type, 3, [pa.py_buffer(b"\x05"), whole.buffers()[1]], 1, children=children
    )
    target = pa.map_(pa.string(), pa.field("value", pa.int32(), False))
    for given, want in ((column, [[("a", 1)], None, [("c", 3)]]), (column.slice(1), [None, [("c", 3)]])):
        found = convert(given, target, "c")
        found.validate(full=True)
        assert found.to_pylist() == want


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        (pa.binary(), r'"\u00ff"', b"\xff"),
        (pa.struct([("x", pa.binary())]), r'{"x": "\u00ff"}', {"x": b"\xff"}),
        (pa.list_(pa.binary()), r'["\u00ff", "a"]', [b"\xff", b"a"]),
        (pa.map_(pa.string(), pa.binary()), r'{"k": "\u00ff"}', [("k", b"\xff")]),
        (pa.decimal128(5, 2), r'"\u0001\u0000"', decimal.Decimal("2.56")),
        (
            pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
            "5",
            {"member0": 5, "member1": None},
        ),
        (pa.struct([("x", pa.int64()), ("y", pa.string())]), '{"x": 1}', {"x": 1, "y": None}),
        (
            pa.struct([("u", pa.struct([("member0", pa.int32()), ("member1", pa.string())]))]),
            '{"u": null}',
            {"u": None},
        ),
        (pa.struct([pa.field("x", pa.int64(), metadata={DEFAULT: b"7"})]), "{}", {"x": 7}),
    ],
    ids=str,
)
def test_defaults_inside_of_records_are_those_of_avro(kind: pa.DataType, default: str, value: object) -> None:
    absent = pa.field("new", kind, nullable=False, metadata={DEFAULT: default.encode()})
    outer = pa.struct([pa.field("old", pa.int64()), absent])
    given = pa.array([{"old": 1}], pa.struct([("old", pa.int64())]))
    found = convert(given, outer, "c")
    assert found.field("new").to_pylist() == [value]


NO_MAP = """
import pyarrow as pa
from hudi_format.errors import SchemaError
from hudi_format.schema.avro import DEFAULT
from hudi_format.schema.casts import convert

MAP = pa.map_(pa.string(), pa.int64())
for kind, default in ((MAP, b"[null]"), (pa.list_(MAP), b"[[null]]"), (pa.struct([("m", MAP)]), b'{"m": [null]}')):
    outer = pa.struct([pa.field("old", pa.int64()), pa.field("new", kind, False, {DEFAULT: default})])
    try:
        convert(pa.array([{"old": 1}], pa.struct([("old", pa.int64())])), outer, "c")
    except SchemaError as e:
        print(e.details["column"])
"""


def test_a_default_of_a_map_that_is_no_map_is_none_and_does_not_end_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", NO_MAP], capture_output=True, text=True, check=False)
    assert ended.stdout == "c.new\n" * 3, ended


def test_nothing_but_a_change_of_the_tables_rounds():
    with pytest.raises(SchemaError):
        convert(pa.array([0.000015]), pa.decimal128(30, 5), "d")


def test_nothing_but_a_change_of_the_tables_makes_dates_of_text():
    with pytest.raises(SchemaError):
        convert(pa.array(["2024-02-29"]), pa.date32(), "d")
