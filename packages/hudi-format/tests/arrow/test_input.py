"""Arrow data of other makers: whole arrays, or an error by column."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hudi_format.arrow.input import checked_reader, checked_table, reader_of, whole_batch
from hudi_format.errors import SchemaError

INNER = pa.map_(pa.string(), pa.int32())


def no_values(kind=INNER):
    """An array of no values and no offset, as Spark sends it: Arrow may not look at its buffer."""
    entries = pa.struct([kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind, 0, [None, pa.foreign_buffer(4096, 0)], children=[pa.array([], entries)]
    )


def empty_lists(rows=3):
    offsets = pa.py_buffer(bytes(4 * rows + 4))
    return pa.Array.from_buffers(pa.list_(INNER), rows, [None, offsets], children=[no_values()])


def test_batches_become_whole_at_every_depth():
    lists = empty_lists()
    struct = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array([False, True, False]))
    fixed = pa.FixedSizeListArray.from_arrays(empty_lists(6), 2)
    entries = pa.StructArray.from_arrays([pa.array(["a", "b", "c"]), lists], fields=[
        pa.field("key", pa.string(), False), pa.field("value", lists.type)])  # fmt: skip
    maps = pa.Array.from_buffers(
        pa.map_(pa.string(), lists.type), 3, [None, pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]],
        children=[entries],
    )  # fmt: skip
    views = pa.ListViewArray.from_arrays(
        pa.array([0, 1, 1], pa.int32()), pa.array([1, 2, 0], pa.int32()), lists
    )
    codes = pa.DictionaryArray.from_arrays(
        pa.nulls(3, pa.int8()),
        pa.Array.from_buffers(pa.string(), 0, [None, *(pa.foreign_buffer(4096, 0),) * 2]),
    )
    batch = pa.record_batch([lists, struct, fixed, maps, views, codes], names=list("abcdef"))
    rows = batch.to_pylist()
    for given in (batch, batch.slice(1, 2)):
        whole = whole_batch(given)
        whole.validate(full=True)
        assert whole.schema == given.schema
        assert whole.to_pylist() == (rows if given is batch else rows[1:])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:  # which reads the first offset of each array
            writer.write_batch(whole)
        assert whole.select(["a", "b", "d"]).nbytes > 0
        assert whole_batch(whole) is whole
    sound = pa.record_batch({"a": [[1], []], "b": ["x", "y"]})
    assert whole_batch(sound) is sound


def broken():
    yield "offsets", pa.Array.from_buffers(
        pa.list_(pa.int8()), 2,
        [None, pa.py_buffer(np.array([0, 9, 1], np.int32))], children=[pa.array([1], pa.int8())]
    )  # fmt: skip
    yield (
        "text",
        pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
        ),
    )
    yield "codes", pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["a"]), safe=False)


@pytest.mark.parametrize(("name", "array"), list(broken()), ids=[n for n, _ in broken()])
def test_invalid_data_are_refused_by_column(name, array):
    table = pa.table({"v": array})
    with pytest.raises(SchemaError, match="column v is not valid Arrow data"):
        checked_table(table)
    with pytest.raises(SchemaError, match="column v is not valid Arrow data"):
        checked_reader(pa.RecordBatchReader.from_batches(table.schema, table.to_batches())).read_all()


def test_a_stream_that_fails_says_after_how_many_batches():
    rows = pa.table({"id": ["1"]})

    def source():
        yield from rows.to_batches()
        raise OSError("gone")

    reader = checked_reader(pa.RecordBatchReader.from_batches(rows.schema, source()))
    with pytest.raises(SchemaError, match="the stream of rows after 1 batches failed: gone"):
        reader.read_all()


CODES = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.struct([("a", CODES)]), [None, None]),
        (pa.struct([("a", CODES)]), [None, {"a": None}]),
        (pa.struct([("n", pa.int64()), ("s", pa.struct([("a", CODES), ("b", CODES)]))]),
         [None, {"n": 1, "s": None}, {"n": None, "s": {"a": None, "b": "x"}}]),
        (pa.struct([pa.field("a", CODES, nullable=False)]), [None]),
    ],
)  # fmt: skip
def test_codes_that_arrow_leaves_below_null_structs_are_nulls(kind, values):
    """Arrow's builders write code 0 there, also where the dictionary has no value."""
    array = pa.array(values, kind)
    with pytest.raises(pa.ArrowInvalid):
        array.validate(full=True)
    table = pa.table({"id": range(len(values)), "v": array})
    for found in (checked_table(table), checked_reader(table.to_reader()).read_all()):
        assert found.schema == table.schema
        assert found["v"].to_pylist() == values
        found.validate(full=True)


def test_codes_beyond_their_dictionary_are_refused_below_structs_that_are_there():
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["a"]), safe=False)
    for mask in ([True, False], [False, False]):
        array = pa.StructArray.from_arrays([codes], names=["a"], mask=pa.array(mask))
        with pytest.raises(SchemaError, match="is not valid Arrow data"):
            checked_table(pa.table({"v": array}))


def test_a_scanner_is_a_stream_of_what_it_is_asked_for():
    data = ds.dataset(pa.table({"a": range(5), "b": range(5)}))
    scanner = data.scanner(columns=["b"], filter=pc.field("a") > 2)
    assert reader_of(scanner).read_all() == scanner.to_table() == pa.table({"b": [3, 4]})
    with pytest.raises(pa.ArrowInvalid, match="nowhere"):
        reader_of(data.scanner(filter=pc.field("nowhere") > 2))


def test_a_scanner_of_another_library_makes_its_own_stream():
    class Scanner:
        def to_reader(self):
            return pa.table({"a": [1]}).to_reader()

    assert reader_of(Scanner()).read_all().to_pylist() == [{"a": 1}]
