"""Text that is not UTF-8 in Parquet and ORC: an error that names the file and the column, on every level."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_format.file_slice.base_rows import BaseFileRead, BaseFileReader
from hudi_format.parquet._utf8 import first_invalid
from hudi_format.parquet.reader import Pieces, iter_batches, iter_row_groups, read_keys, read_table
from hudi_format.parquet.utf8 import check_text
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.open import open_storage

TEXT = pa.string()


def texts(values, kind=TEXT):
    """A text column of any bytes, which Arrow itself does not check."""
    raw = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(raw), raw.buffers(), raw.null_count)


GOOD = [b"a", None, "\u00e9\U0001f600".encode(), b"", b"x" * 100]
BAD = [*GOOD, b"caf\xe9", b"a"]
BAD_LIST = pa.ListArray.from_arrays([0, 1, 1, 3, 3, 6, 7, 7], texts(BAD))
COLUMNS = {
    "plain": texts(BAD),
    "in a struct": pa.StructArray.from_arrays([pa.array(range(7)), texts(BAD)], ["n", "t"]),
    "in a list": BAD_LIST,
    "in a list of structs": pa.ListArray.from_arrays(
        [0, 7, 7, 7, 7, 7, 7, 7], pa.StructArray.from_arrays([texts(BAD)], ["t"])
    ),
    "in a map": pa.MapArray.from_arrays([0, 7, 7, 7, 7, 7, 7, 7], pa.array(list("abcdefg")), texts(BAD)),
    "keys of a map": pa.MapArray.from_arrays([0, 1, 1, 1, 1, 1, 1, 1], texts([b"\xff"]), pa.array([1])),
}
READS = {
    "read_table": read_table,
    "iter_batches": lambda s, p: list(iter_batches(s, p, batch_rows=3)),
    "iter_row_groups": lambda s, p: list(iter_row_groups(s, p)),
    "pieces": lambda s, p: list(Pieces(s, p)),
    "small pieces": lambda s, p: list(Pieces(s, p, most_bytes=1)),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_parquet_with_text_that_is_not_utf8_is_corrupt(tmp_path, column, read):
    pq.write_table(pa.table({"a": list("abcdefg"), "c": column}), tmp_path / "f.parquet")
    with pytest.raises(CorruptFileError, match=r"not UTF-8 \(column c") as e:
        read(open_storage(str(tmp_path)), "f.parquet")
    assert "f.parquet" in str(e.value)


JSON = pa.json_(pa.string())


def annotated(rows, as_enum):
    """A Parquet file whose texts are annotated as JSON, or as ENUM, which Avro's enumerations are in Apache Hudi's."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=not as_enum)
    data = sink.getvalue().to_pybytes()
    if not as_enum:
        return data
    # Footer, in Thrift's compact form: ConvertedType 19 to 4, and in LogicalType field 12 to 4.
    json, enum = b"\x25\x26\x4c\xcc\0\0\0", b"\x25\x08\x4c\x4c\0\0\0"
    assert json in data
    return data.replace(json, enum)


def in_json(column):
    """The column with JSON for its texts."""
    kind = column.type
    if kind == TEXT:
        return pa.ExtensionArray.from_storage(JSON, column)
    if pa.types.is_struct(kind):
        children = [in_json(column.field(n)) for n in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, [f.name for f in kind])
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(column.offsets, in_json(column.keys), in_json(column.items))
    return (
        pa.ListArray.from_arrays(column.offsets, in_json(column.values)) if pa.types.is_list(kind) else column
    )


@pytest.mark.parametrize("as_enum", [False, True], ids=["JSON", "ENUM"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("column", [n for n in COLUMNS if n != "keys of a map"])
def test_text_with_another_annotation_is_checked_too(tmp_path, column, read, as_enum):
    raw = pa.array([b"\xff"] * 7)  # bytes beside it stay bytes
    rows = pa.table({"b": raw, "c": in_json(COLUMNS[column]), "l": pa.ListArray.from_arrays(range(8), raw)})
    (tmp_path / "f.parquet").write_bytes(annotated(rows, as_enum))
    storage = open_storage(str(tmp_path))
    with pytest.raises(CorruptFileError, match=r"not UTF-8 \(column c") as e:
        read(storage, "f.parquet")
    assert "f.parquet" in str(e.value)
    assert read_table(storage, "f.parquet", columns=["b", "l"]).num_rows == 7


@pytest.mark.parametrize("as_enum", [False, True], ids=["JSON", "ENUM"])
def test_text_with_another_annotation_is_read_as_text(tmp_path, as_enum):
    (tmp_path / "f.parquet").write_bytes(annotated(pa.table({"c": in_json(texts(GOOD))}), as_enum))
    found = read_table(open_storage(str(tmp_path)), "f.parquet", schema=pa.schema([("c", TEXT)]))
    assert found.column("c").combine_chunks().equals(texts(GOOD))


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_orc_with_text_that_is_not_utf8_is_corrupt(tmp_path, column):
    rows = pa.table({"a": list("abcdefg"), "c": column})
    po.write_table(rows, str(tmp_path / "f.orc"))
    storage = open_storage(str(tmp_path))
    with pytest.raises(CorruptFileError, match=r"not UTF-8 \(column c") as e:
        BaseFileReader(BaseFileRead(storage, "f.orc", rows.schema)).read()
    assert "f.orc" in str(e.value)
    assert BaseFileReader(BaseFileRead(storage, "f.orc", rows.schema.remove(1))).read().num_rows == 7


def test_dictionaries_are_checked(tmp_path):
    pq.write_table(pa.table({"c": COLUMNS["plain"]}), tmp_path / "f.parquet")
    with pytest.raises(CorruptFileError, match=r"not UTF-8 \(column c\)"):
        read_table(open_storage(str(tmp_path)), "f.parquet", dictionary_columns=["c"])


def test_columns_that_are_not_read_are_not_checked(tmp_path):
    pq.write_table(pa.table({"a": list("abcdefg"), "c": COLUMNS["plain"]}), tmp_path / "f.parquet")
    assert read_table(open_storage(str(tmp_path)), "f.parquet", columns=["a"]).num_rows == 7


def test_record_keys_are_checked(tmp_path):
    pq.write_table(pa.table({RECORD_KEY: texts([b"k", b"\xed\xa0\x80"])}), tmp_path / "f.parquet")
    with pytest.raises(CorruptFileError, match=r"_hoodie_record_key, row 1"):
        read_keys(open_storage(str(tmp_path)), "f.parquet")


def test_bytes_and_text_of_any_script_are_read(tmp_path):
    rows = pa.table({"c": texts(GOOD), "b": pa.array([b"\xff"] * 5), "d": texts(GOOD).dictionary_encode()})
    pq.write_table(rows, tmp_path / "f.parquet")
    assert (
        read_table(open_storage(str(tmp_path)), "f.parquet").column("c").combine_chunks().equals(texts(GOOD))
    )


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=40), st.text().map(str.encode))),
    st.booleans(),
    st.data(),
)
def test_exactly_what_python_decodes_is_utf8(values, large, data):
    array = texts(values, pa.large_string() if large else pa.string())
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))

    def decodes(value):
        try:
            return value is None or isinstance(value.decode(), str)
        except UnicodeDecodeError:
            return False

    wrong = [n for n, v in enumerate(values[start:stop]) if not decodes(v)]
    rows = pa.table({"c": array.slice(start, stop - start)})
    if wrong:
        with pytest.raises(ValueError, match=f"column c, row {wrong[0]}\\)"):
            check_text(rows)
    else:
        check_text(rows)


def test_a_character_that_a_boundary_cuts_is_none():
    data, whole = "aé".encode(), [0, 1, 3]
    offsets = pa.array([0, 2, 3], pa.int32()).buffers()[1]
    array = pa.Array.from_buffers(TEXT, 2, [None, offsets, pa.py_buffer(data)])
    with pytest.raises(ValueError, match="row 0"):
        check_text(pa.table({"c": array}))
    assert first_invalid(np.frombuffer(data, np.uint8), np.array(whole, np.int32)) == -1


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_offsets_that_leave_the_bytes_are_told(kind):
    data = np.frombuffer(b"abc", np.uint8)
    for bad in ([0, 4], [-1, 2], [2, 1], [0, 3, 1, 3]):
        assert first_invalid(data, np.array(bad, kind)) == -2
        assert first_invalid(data[:0], np.array(bad, kind)) == -2
    assert first_invalid(data[:0], np.array([0, 0], kind)) == -1
    with pytest.raises(ValueError, match="one offset more"):
        first_invalid(data, np.array([], kind))


def test_long_text_with_one_wrong_byte_anywhere():
    rng = random.Random(5)
    for _ in range(200):
        raw = bytearray(b"x" * rng.randint(1, 300))
        check_text(pa.table({"c": texts([bytes(raw)])}))
        raw[rng.randrange(len(raw))] = rng.choice([0x80, 0xC0, 0xFF, 0xE9])
        with pytest.raises(ValueError, match="UTF-8"):
            check_text(pa.table({"c": texts([b"", bytes(raw)])}))
