"""Lists with null elements are warned of where they are written, and nowhere else."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.writing.workers.null_elements import SETTING, with_null_elements

INTS = pa.list_(pa.int32())
PAIR = pa.struct([("q", pa.int32())])
WITH = [
    (INTS, [1, None]),
    (pa.list_(INTS), [[1, None], []]),
    (pa.list_(INTS), [[1], None]),
    (pa.list_(PAIR), [{"q": 1}, None]),
    (pa.map_(pa.string(), INTS), [("k", [1, None])]),
    (pa.list_(pa.map_(pa.string(), INTS)), [[("k", [None])]]),
    (pa.struct([("i", INTS)]), {"i": [None]}),
    (pa.struct([("m", pa.map_(pa.string(), pa.list_(PAIR)))]), {"m": [("k", [None])]}),
]
WITHOUT = [
    (pa.int32(), None),
    (INTS, None),
    (INTS, []),
    (INTS, [1, 2]),
    (pa.list_(INTS), [[]]),
    (pa.list_(PAIR), [{"q": None}]),
    (pa.map_(pa.string(), pa.int32()), [("k", None)]),
    (pa.map_(pa.string(), INTS), [("k", None)]),
    (pa.struct([("i", INTS)]), {"i": None}),
    (pa.struct([("i", INTS)]), None),
    (PAIR, {"q": None}),
]


def column(kind, value):
    """The value beside others, in two chunks that are slices of longer ones."""
    one = pa.array([None, value, None], kind).slice(1)
    return pa.chunked_array([pa.array([None, None], kind).slice(1), one])


@pytest.mark.parametrize(("kind", "value"), WITH, ids=str)
def test_null_elements_are_found_at_any_depth(kind, value):
    assert list(with_null_elements(pa.table({"a": column(*WITHOUT[3]), "v": column(kind, value)}))) == ["v"]


@pytest.mark.parametrize(("kind", "value"), WITHOUT, ids=str)
def test_other_nulls_are_none(kind, value):
    assert not list(with_null_elements(pa.table({"v": column(kind, value)})))


def test_values_below_a_null_list_are_none():
    values = pa.array([1, None, 3], pa.int32())
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), values, mask=pa.array([True, False]))
    assert not list(with_null_elements(pa.table({"v": hidden})))
    items = pa.array([[1], [None], [3]], INTS)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), items)
    assert list(with_null_elements(pa.table({"m": maps})))
    assert not list(with_null_elements(pa.table({"m": maps.slice(2)})))


@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert", "insert_overwrite_table"])
def test_a_write_says_once_which_columns_have_them(tmp_path, operation):
    schema = pa.schema(
        [("id", pa.int32()), ("p", pa.string()), ("l", INTS), ("n", INTS), ("m", pa.map_(pa.string(), INTS))]
    )
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], partition_fields=["p"]
    )
    row = {"id": 1, "p": "x", "l": [1], "n": [], "m": [("k", [1])]}
    assert getattr(table, operation)([row]).warnings == ()
    odd = [{**row, "p": p, "l": [None], "m": [("k", [None, 1])]} for p in "xyz"]
    (warning,) = getattr(table, operation)(odd).warnings
    assert warning.startswith("l, m: lists with null elements")
    assert SETTING in warning
    assert table.upsert([{**row, "id": 2}]).warnings == ()
    assert table.delete([{"id": 1, "p": "x"}]).warnings == ()
    read = table.read(["id", "p", "l"], filter="p = 'y'").to_arrow().to_pylist()
    assert read == [{"id": 1, "p": "y", "l": [None]}]
