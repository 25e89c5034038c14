"""Images of changed rows as JSON texts, with and without nulls; whole tables of Apache Hudi's are golden tests."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.file_slice.cdc_images import image_texts

MOMENT = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


def images(table, nulls=True):
    return image_texts(table, nulls=nulls).to_pylist()


@given(
    st.lists(
        st.fixed_dictionaries(
            {"t": st.one_of(st.none(), st.text()), "n": st.one_of(st.none(), st.integers(-5, 5))}
        )
    )
)
def test_texts_are_json_whatever_their_characters(rows):
    table = pa.Table.from_pylist(rows, pa.schema([("t", pa.string()), ("n", pa.int64())]))
    assert [json.loads(t) for t in images(table)] == rows
    without = [{k: v for k, v in r.items() if v is not None} for r in rows]
    assert [json.loads(t) for t in images(table, nulls=False)] == without


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, pa.bool_(), "true"),
        (1.0, pa.float64(), "1.0"),
        (float("nan"), pa.float64(), '"NaN"'),
        (float("-inf"), pa.float32(), '"-Infinity"'),
        (dt.date(1970, 1, 3), pa.date32(), "2"),
        (MOMENT, pa.timestamp("ms", "UTC"), "86400000"),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        ([MOMENT], pa.list_(pa.timestamp("us", "UTC")), "[86400000000]"),
        ({"a": None, "b": 2}, pa.struct([("a", pa.string()), ("b", pa.int8())]), '{"a":null,"b":2}'),
        ([("k", Decimal("0.10"))], pa.map_(pa.string(), pa.decimal128(5, 2)), '{"k":0.10}'),
        ('é\n"\\\x01', pa.string(), '"é\\n\\"\\\\\\u0001"'),
    ],
)
def test_a_value_is_the_one_that_the_table_stores(value, kind, text):
    table = pa.table({"c": pa.array([value, None], kind)})
    assert images(table) == [f'{{"c":{text}}}', '{"c":null}']
    assert images(table, nulls=False)[1] == "{}"


def test_bytes_are_characters_where_nulls_are_there_and_base64_where_not():
    table = pa.table({"b": [b"\x00\xff"]})
    assert json.loads(images(table)[0]) == {"b": "\x00\xff"}
    assert json.loads(images(table, nulls=False)[0]) == {"b": "AP8="}


def test_a_table_without_columns_has_empty_objects_and_chunks_make_no_difference():
    assert images(pa.table({"a": [1, 2]}).select([])) == ["{}", "{}"]
    chunked = pa.table({"a": pa.chunked_array([["x"], [], ["y"]]).dictionary_encode()})
    assert images(chunked) == ['{"a":"x"}', '{"a":"y"}']


def test_nested_times_that_python_does_not_have_are_numbers_too():
    far, day = pa.array([2**62, None, 0], pa.timestamp("us", "UTC")), pa.array([2**30, 0, None], pa.date32())
    structs = pa.StructArray.from_arrays([far, day], ["t", "d"])
    maps = pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], far)
    table = pa.table(
        {"t": far, "s": structs, "l": pa.ListArray.from_arrays([0, 2, 2, 3], structs), "m": maps}
    )
    assert [json.loads(t) for t in images(table)] == [
        {"t": 2**62, "s": {"t": 2**62, "d": 2**30}, "m": {"a": 2**62},
         "l": [{"t": 2**62, "d": 2**30}, {"t": None, "d": 0}]},
        {"t": None, "s": {"t": None, "d": 0}, "l": [], "m": {"b": None}},
        {"t": 0, "s": {"t": 0, "d": None}, "l": [{"t": 0, "d": None}], "m": {"c": 0}},
    ]  # fmt: skip
