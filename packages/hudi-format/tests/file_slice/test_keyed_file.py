"""Rows of a base file by record keys: those that a filter over all rows keeps, of pages that hold them alone."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from arrow_strategies import tables
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_format.file_slice.base_rows import BaseFileRead, BaseFileReader
from hudi_format.file_slice.keyed_file import WantedKeys, open_keyed
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.thrift import (
    BINARY,
    I32,
    LIST,
    Cursor,
    file_end,
    footer_of,
    integer,
    once,
    raw_of,
    replaced,
    struct,
    structs,
)
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.local import LocalStorage

PATH = "f.parquet"
pytestmark = pytest.mark.req("NEW-26")


class Counted(LocalStorage):
    """Storage that counts the bytes that are read of open files."""

    read_bytes = 0

    def open_input(self, path):
        inner = super().open_input(path)
        counting = self

        class File:
            closed = False

            def read_at(self, length, at):
                counting.read_bytes += length
                return inner.read_at(length, at)

            def read(self, length=-1):
                data = inner.read(length)
                counting.read_bytes += len(data)
                return data

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.close()

            def close(self):
                inner.close()

            def __getattr__(self, name):
                return getattr(inner, name)

        return File()


def found(storage, keys, schema, layouts=None):
    """Rows by keys; None where the whole file is to be read."""
    file = open_keyed(
        storage, PATH, WantedKeys(pa.array(keys, pa.string()), {} if layouts is None else layouts), schema
    )
    if file is None:
        return None
    names = [n for n in schema.names if n in file.names]
    rows = list(file.batches(names, 7))
    assert sum(b.num_rows for b in rows) == file.rows
    return pa.Table.from_batches(rows) if rows else pa.schema([schema.field(n) for n in names]).empty_table()


def expected(storage, keys, schema):
    """Rows that a reader of the whole file gives."""
    kept = pc.field(RECORD_KEY).isin(pa.array(keys, pa.string()))
    read = BaseFileRead(storage, PATH, schema, filter=kept, filter_columns=(RECORD_KEY,))
    file = BaseFileReader(read)
    try:
        return file.read()
    finally:
        file.close()


def keyed(rows, count, seed, nulls=False):
    """So many rows, drawn from some, with keys of which a few stand twice, in any order."""
    draw = random.Random(seed)
    keys = [f"k{draw.randrange(count * 9 // 10 + 1):0{draw.choice([3, 5])}}é" for _ in range(count)]
    if seed % 3:
        keys.sort()
    if nulls and count:
        keys[draw.randrange(count)] = None
    many = rows.take(pa.array([draw.randrange(rows.num_rows) for _ in range(count)], pa.int64()))
    return many.append_column(RECORD_KEY, pa.array(keys, pa.string()))


def test_pages_without_rows_are_no_damage(tmp_path):
    """Arrow writes one where it gives a dictionary up."""
    storage, kind = LocalStorage(str(tmp_path)), pa.list_(pa.field("element", pa.int32()))
    lists = [[n] * (n % 3) for n in range(60)]
    keys = pa.array([f"k{n:03d}" for n in range(60)])
    rows = pa.table({"empty": pa.array([[]] * 60, kind), "lists": pa.array(lists, kind), RECORD_KEY: keys})
    pq.write_table(
        rows, tmp_path / PATH, data_page_version="1.0", write_page_index=True, data_page_size=1,
        write_batch_size=3, row_group_size=7, store_schema=False,
    )  # fmt: skip
    schema = pq.read_schema(tmp_path / PATH).remove_metadata()
    for asked in (["k006"], ["k005", "k006"], ["k000", "k013", "k014", "k059"]):
        given_ = found(storage, asked, schema)
        assert given_ is not None
        assert given_.to_pylist() == expected(storage, asked, schema).to_pylist()
        assert given_.num_rows == len(asked)


@given(
    tables().filter(lambda t: t.num_rows and RECORD_KEY not in t.column_names),
    st.integers(0, 200),
    st.integers(0, 1000),
    st.sampled_from(["1.0", "2.0"]),
    st.sampled_from(["none", "snappy", "zstd", "gzip"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 40, 1 << 20]),
    st.sampled_from([7, 64, 1000]),
)
@settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
    ],
    max_examples=25,
    deadline=None,
)
def test_rows_by_key_are_those_that_a_filter_keeps(
    tmp_path, rows, count, seed, version, codec, index, dictionary, page, group
):
    storage = LocalStorage(str(tmp_path))
    table = keyed(rows, count, seed, nulls=seed % 2 == 0)
    pq.write_table(
        table, tmp_path / PATH, data_page_version=version, compression=codec, write_page_index=index,
        use_dictionary=dictionary, data_page_size=page, write_batch_size=3, row_group_size=group,
        store_schema=False,
    )  # fmt: skip
    try:
        pq.read_table(tmp_path / PATH)
    except pa.ArrowInvalid:
        reject()  # a row group that begins with a page without rows, which Arrow writes and cannot read
    schema = pq.read_schema(tmp_path / PATH).remove_metadata()
    draw = random.Random(seed)
    there = table.column(RECORD_KEY).drop_null().to_pylist()
    layouts = {}
    for asked in (1, 3, count // 5):
        keys = sorted({*draw.sample(there, min(asked, len(there))), "k000", "zz"})
        some = pa.schema(draw.sample(list(schema), draw.randrange(1, len(schema) + 1)))
        some = some if RECORD_KEY in some.names else some.append(schema.field(RECORD_KEY))
        given_ = found(storage, keys, some, layouts)
        assert (given_ is None) == (len(keys) * 4 > count)
        if given_ is not None:
            # Not NaN alone: -0.0 too is told from 0.0 by its bytes.
            assert given_.to_pylist() == expected(storage, keys, some).to_pylist()
            assert given_.schema.types == expected(storage, keys, some).schema.types


def written(tmp_path, rows=200_000, *, storage=None, **options):
    """A file with sorted keys by the writer of base files."""
    storage = storage or LocalStorage(str(tmp_path))
    n = pa.array(range(rows))
    table = pa.table(
        {
            RECORD_KEY: pc.utf8_lpad(n.cast(pa.string()), 8, "0"),
            "text": pc.binary_join_element_wise(n.cast(pa.string()), pa.scalar("x" * 40), ""),
            "n": n,
            "same": pa.array(["one"] * rows),
        }
    )
    with BaseFileWriter(storage, PATH, table.schema, config=ParquetConfig(**options)) as writer:
        writer.write(table)
    return storage, table


def test_only_pages_with_the_keys_are_read(tmp_path):
    storage = Counted(str(tmp_path))
    _, table = written(tmp_path, storage=storage)
    size = (tmp_path / PATH).stat().st_size
    layouts = {}
    key = "00123456"
    assert found(storage, [key], table.schema, layouts).equals(table.slice(123456, 1))
    assert storage.read_bytes < size / 3  # 64 KiB of it for the footer
    storage.read_bytes = 0
    assert found(storage, [key], table.schema.remove(1), layouts).num_rows == 1
    assert storage.read_bytes < size / 8  # without the footer, and without the longest column
    storage.read_bytes = 0
    assert found(storage, ["absent"], table.schema, layouts).num_rows == 0
    assert found(storage, ["99999999"], table.schema, layouts).num_rows == 0
    assert not storage.read_bytes


def test_a_file_that_was_exchanged_is_looked_at_anew(tmp_path):
    storage, table = written(tmp_path, 2000)
    layouts = {}
    assert found(storage, ["00000007"], table.schema, layouts).num_rows == 1
    _, shorter = written(tmp_path, 1000)
    assert found(storage, ["00001007"], shorter.schema, layouts).num_rows == 0
    assert found(storage, ["00000999"], shorter.schema, layouts).equals(shorter.slice(999))


@pytest.mark.parametrize("group", [7, 1 << 20])
def test_many_keys_are_left_to_the_reader_of_whole_files(tmp_path, group):
    storage, table = written(tmp_path, 400, row_group_rows=group)
    keys = table.column(RECORD_KEY).to_pylist()
    assert found(storage, keys[::4], table.schema).equals(table.take(pa.array(range(0, 400, 4))))
    assert found(storage, keys[:101], table.schema) is None


def test_columns_that_the_file_lacks_are_left_out(tmp_path):
    storage, table = written(tmp_path, 100)
    more = table.schema.append(pa.field("new", pa.int64()))
    assert found(storage, ["00000003"], more).equals(table.slice(3, 1))


def test_a_file_of_another_kind_or_with_arrows_schema_is_read_as_a_whole(tmp_path):
    storage, table = written(tmp_path, 100)
    pq.write_table(table, tmp_path / PATH, store_schema=True)
    assert found(storage, ["00000003"], table.schema) is None
    pq.write_table(table.drop_columns([RECORD_KEY]), tmp_path / PATH, store_schema=False)
    assert found(storage, ["00000003"], table.schema) is None
    pq.write_table(table.set_column(0, RECORD_KEY, pa.array(range(100))), tmp_path / PATH, store_schema=False)
    assert found(storage, ["3"], table.schema) is None


def test_damaged_files_are_left_to_the_reader_of_whole_files(tmp_path):
    storage, table = written(tmp_path, 3000, codec="none", page_bytes=4096)
    whole = (tmp_path / PATH).read_bytes()
    draw = random.Random(5)
    length = int.from_bytes(whole[-8:-4], "little")
    # Bytes of the footer, and of the page indexes before it.
    places = [len(whole) - 8 - draw.randrange(1, length + 1200) for _ in range(300)]
    other = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        (tmp_path / PATH).write_bytes(damaged)
        rows = found(storage, ["00001234"], table.schema)
        other += rows is None
        if rows is not None and rows.num_rows:
            assert rows.column(RECORD_KEY).to_pylist() == ["00001234"]
    assert other > 30
    for cut in range(0, len(whole), 997):
        (tmp_path / PATH).write_bytes(whole[:cut])
        assert found(storage, ["00001234"], table.schema) is None
    (tmp_path / PATH).write_bytes(b"\0" * 4 + whole[4:])
    rows = found(storage, ["00001234"], table.schema)
    assert rows is None or rows.equals(table.slice(1234, 1))


def test_a_column_without_values_is_left_to_the_reader_of_whole_files(tmp_path):
    storage, table = written(tmp_path, 3000)
    whole = (tmp_path / PATH).read_bytes()
    begin, footer = footer_of(whole)
    fields = once(Cursor(footer).fields())
    root, *columns = Cursor(raw_of(fields, 2)).structs()
    root = replaced(root, {5: (I32, integer(len(columns) + 1))})
    empty = [(3, I32, integer(1)), (4, BINARY, b"\x01e"), (5, I32, integer(0))]
    schema = structs([struct(f) for f in (root, *columns, empty)])
    (tmp_path / PATH).write_bytes(whole[:begin] + file_end(struct(replaced(fields, {2: (LIST, schema)}))))
    wanted = table.schema.append(pa.field("e", pa.struct([("x", pa.int64())])))
    assert found(storage, ["00000003"], wanted) is None
    with pytest.raises(CorruptFileError, match="no values"):
        expected(storage, ["00000003"], wanted)


def test_text_that_is_not_utf8_is_refused_where_it_is_given(tmp_path):
    storage = LocalStorage(str(tmp_path))
    table = pa.table({RECORD_KEY: [f"{n:03}" for n in range(100)], "text": [b"ok"] * 50 + [b"\xff"] * 50})
    text = pa.array(table.column("text").to_pylist(), pa.binary()).view(pa.string())
    pq.write_table(table.set_column(1, "text", text), tmp_path / PATH, store_schema=False)
    schema = pa.schema([(RECORD_KEY, pa.string()), ("text", pa.string())])
    assert found(storage, ["001"], schema).column("text").to_pylist() == ["ok"]
    assert found(storage, ["099"], schema) is None
    with pytest.raises(CorruptFileError, match="UTF-8"):
        expected(storage, ["099"], schema)
