"""Files put together of column chunks of others: they read as if written anew, and only known chunks are taken."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_strategies import tables
from hypothesis import HealthCheck, given, settings

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.parquet.kept_chunks import StoredChunks, chunks_of_file
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.reader import Pieces
from hudi_format.parquet.thrift import (
    I64,
    LIST,
    STRUCT,
    Cursor,
    file_end,
    footer_of,
    integer,
    raw_of,
    replaced,
    struct,
    structs,
)
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.storage.local import LocalStorage

OLD, NEW = "p/old.parquet", "p/new.parquet"


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


SMALL = ParquetConfig(kept_chunk_bytes=1)


def write(storage, table, *, path=OLD, **config):
    with BaseFileWriter(
        storage, path, table.schema, config=ParquetConfig(kept_chunk_bytes=1, **config)
    ) as writer:
        writer.write(table)


def rewrite(storage, schema, same, change, **config):
    """The old file with some columns taken over; returns the groups of which that was done."""
    with (
        Pieces(storage, OLD) as old,
        BaseFileWriter(
            storage, NEW, schema, config=ParquetConfig(kept_chunk_bytes=1, **config), entries={"k": "v"}
        ) as writer,
    ):
        kept = writer.keep(old.chunks(1), 0)
        for number in range(old.num_row_groups):
            rows = change(pa.concat_tables(list(old.pieces(number))))
            if number in kept:
                writer.write_kept([rows.slice(0, 3), rows.slice(3)], same, number)
            else:
                writer.write(rows)
    return kept


@given(tables())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=30,
    deadline=None,
)
def test_a_file_of_taken_and_new_chunks_reads_as_the_old_one(storage, table):
    write(storage, table)
    same = set(table.column_names[::2])
    kept = rewrite(storage, table.schema, same, lambda rows: rows)
    assert kept == ({0} if table.num_rows and not any("." in n for n in table.column_names) else set())
    old, new = (pq.ParquetFile(storage.open_input(p)) for p in (OLD, NEW))
    assert new.read().to_pylist() == old.read().to_pylist()
    assert new.metadata.num_rows == table.num_rows
    assert new.metadata.metadata[b"k"] == b"v"


def test_chunks_are_copied_with_their_statistics_and_indexes(storage, tmp_path):
    table = pa.table({"a": pa.array(range(5000)), "b": [f"t{n % 7}" for n in range(5000)], "c": [0.5] * 5000})
    write(storage, table, row_group_rows=2000, page_bytes=1000)
    # The last row groups are small beside each other, so that they are put together.
    assert rewrite(storage, table.schema, {"a", "b"}, lambda r: r, row_group_rows=2000) == {2}
    assert rewrite(
        storage, table.schema, {"a", "b"}, lambda r: r, row_group_rows=2000, row_group_bytes=20_000
    ) == {
        0,
        1,
        2,
    }
    old, new = (pq.ParquetFile(tmp_path / p) for p in (OLD, NEW))
    assert new.read() == old.read()
    for group in range(3):
        for column in range(3):
            before, after = (f.metadata.row_group(group).column(column) for f in (old, new))
            assert after.has_offset_index
            assert after.has_column_index
            assert after.statistics.to_dict() == before.statistics.to_dict()
            if column < 2:
                assert pages(tmp_path / OLD, before) == pages(tmp_path / NEW, after)


def pages(path, chunk):
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    return path.read_bytes()[at : at + chunk.total_compressed_size]


def test_new_row_groups_follow_taken_ones(storage, tmp_path):
    table = pa.table({"a": pa.array(range(100)), "b": ["x"] * 100})
    write(storage, table)
    more = pa.table({"a": pa.array([100, 101]), "b": ["y", None]})
    with (
        Pieces(storage, OLD) as old,
        BaseFileWriter(storage, NEW, table.schema, config=SMALL) as writer,
    ):
        assert writer.keep(old.chunks(1), 2) == {0}
        writer.write_kept([table.select(["b"])], {"a"}, 0)
        writer.write(more)
    found = pq.ParquetFile(tmp_path / NEW)
    assert found.read() == pa.concat_tables([table, more])
    assert [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)] == [100, 2]
    assert [found.metadata.row_group(n).column(0).total_compressed_size > 0 for n in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.array(["x"] * 50), pa.array(["y" * 5000] * 50)),
        (pa.array([b"x"] * 50), pa.array([b"y" * 5000] * 50)),
        (pa.array([0.5] * 50), pa.array([float("nan")] * 50)),
        (pa.array([[0.5]] * 50), pa.array([[float("nan")]] * 50)),
    ],
)
def test_chunks_without_bounds_are_written_and_taken_over(storage, tmp_path, before, after):
    """Arrow makes no column index of a page whose values have no bounds."""

    def rows(values):
        return pa.table({"a": pa.array(range(50)), "b": values, "c": values})

    for old, new in ((before, after), (after, before)):
        write(storage, rows(old))
        changed = rows(old).set_column(1, "b", new)
        assert rewrite(storage, changed.schema, {"a", "c"}, lambda _, c=changed: c) == {0}
        found = pq.ParquetFile(tmp_path / NEW)
        assert repr(found.read().to_pylist()) == repr(changed.to_pylist())
        chunks = [found.metadata.row_group(0).column(n) for n in range(3)]
        assert [c.has_column_index for c in chunks] == [True, new is before, old is before]
        assert all(c.has_offset_index for c in chunks)
        # A row group of new records alone.
        with (
            Pieces(storage, OLD) as stored,
            BaseFileWriter(storage, NEW, changed.schema, config=SMALL) as writer,
        ):
            assert writer.keep(stored.chunks(1), 2) == {0}
            writer.write_kept([rows(old)], changed.column_names, 0)
            writer.write(changed.slice(0, 2))
        assert repr(pq.read_table(tmp_path / NEW).to_pylist()) == repr(
            pa.concat_tables([rows(old), changed.slice(0, 2)]).to_pylist()
        )


@pytest.mark.parametrize(
    ("codec", "schema", "more"),
    [
        ("gzip", pa.schema([("a", pa.int64())]), 0),
        ("zstd", pa.schema([("a", pa.int32())]), 0),
        ("zstd", pa.schema([pa.field("a", pa.int64(), nullable=False)]), 0),
        ("zstd", pa.schema([("a", pa.int64()), ("b", pa.int64())]), 0),
        ("zstd", pa.schema([("a", pa.int64())]), 30),
    ],
)
def test_what_differs_is_not_taken_over(storage, codec, schema, more):
    write(storage, pa.table({"a": pa.array(range(100))}))
    with (
        Pieces(storage, OLD) as old,
        BaseFileWriter(storage, NEW, schema, config=ParquetConfig(codec, kept_chunk_bytes=1)) as writer,
    ):
        assert writer.keep(old.chunks(1), more) == frozenset()


def test_files_of_other_writers_and_without_indexes_are_not_taken_over(storage, tmp_path):
    table = pa.table({"a": pa.array(range(100))})
    (tmp_path / "p").mkdir()
    for options in ({"write_page_index": False}, {"write_page_index": True, "store_schema": True}):
        pq.write_table(table, tmp_path / OLD, compression="zstd", **options)
        with (
            Pieces(storage, OLD) as old,
            BaseFileWriter(storage, NEW, table.schema, config=SMALL) as w,
        ):
            # Arrow's entry for its own schema is no part of the Parquet schema.
            assert w.keep(old.chunks(1), 0) == (frozenset() if not options["write_page_index"] else {0})
    raw = (tmp_path / OLD).read_bytes().replace(b"parquet-cpp-arrow", b"parquet-cpp-other")
    (tmp_path / OLD).write_bytes(raw)
    with (
        Pieces(storage, OLD) as old,
        BaseFileWriter(storage, NEW, table.schema, config=SMALL) as writer,
    ):
        assert writer.keep(old.chunks(1), 0) == frozenset()


def test_every_damaged_byte_of_a_footer_is_one_error_or_none(storage, tmp_path):
    write(storage, pa.table({"a": pa.array(range(100)), "b": ["x"] * 100}))
    whole = (tmp_path / OLD).read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    begin = len(whole) - 8 - length
    refused = 0
    for at in range(length):
        for by in (0xFF, 0x01):
            footer = bytearray(whole[begin:-8])
            footer[at] ^= by
            try:
                found = StoredChunks(bytes(footer), begin, lambda at, n: whole[at : at + n])
            except ValueError:
                refused += 1
                continue
            for group in found.groups:
                for chunk in group.chunks:
                    assert 4 <= chunk.begin <= chunk.begin + chunk.length <= begin
    assert refused > length // 4


def test_a_page_index_that_is_cut_off_is_refused(storage, tmp_path):
    table = pa.table({"a": pa.array(range(100))})
    write(storage, table)
    found = chunks_of_file((tmp_path / OLD).read_bytes())
    found.read = lambda at, n: b"\x19"[:n]
    with BaseFileWriter(storage, NEW, table.schema, config=SMALL) as writer:
        assert writer.keep(found, 0) == {0}
        with pytest.raises(CorruptFileError, match="damaged"):
            writer.write_kept([table], {"a"}, 0)
        writer.abort()
    assert not (tmp_path / NEW).exists()


@pytest.mark.parametrize("place", ["file", "row group", "column chunk", "column metadata"])
def test_a_field_that_is_there_twice_is_refused(storage, tmp_path, place):
    """Arrow takes the last of them: rows that it counts otherwise would be lost."""

    def twice(fields, number):
        (found,) = (f for f in fields if f[0] == number)
        return struct(sorted([*fields, found]) if place == where else fields)

    write(storage, pa.table({"a": pa.array(range(100))}))
    whole = (tmp_path / OLD).read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    begin = len(whole) - 8 - length
    fields = Cursor(whole[begin:-8]).fields()
    (group,) = Cursor(raw_of(fields, 4)).structs()
    (column,) = Cursor(raw_of(group, 1)).structs()
    where = "column metadata"
    meta = twice(Cursor(raw_of(column, 3)).fields(), 5)
    where = "column chunk"
    column = twice(replaced(column, {3: (STRUCT, meta)}), 4)
    where = "row group"
    group = twice(replaced(group, {1: (LIST, structs([column]))}), 3)
    where = "file"
    footer = twice(replaced(fields, {4: (LIST, structs([group]))}), 3)
    with pytest.raises(ValueError, match="twice"):
        StoredChunks(footer, begin, lambda at, n: whole[at : at + n])


def test_chunks_that_lie_over_each_other_are_not_copied(storage, tmp_path):
    """A footer of a stranger could make a large file of a small one."""
    names = [f"c{n}" for n in range(40)]
    write(storage, pa.table({n: pa.array(range(2000)) for n in names}), dictionary=False)
    whole = (tmp_path / OLD).read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    begin = len(whole) - 8 - length
    fields = Cursor(whole[begin:-8]).fields()
    (group,) = Cursor(raw_of(fields, 4)).structs()
    columns = []
    for column in Cursor(raw_of(group, 1)).structs():
        places = {9: (I64, integer(4)), 7: (I64, integer(begin - 4))}
        meta = replaced(Cursor(raw_of(column, 3)).fields(), places)
        columns.append(struct(replaced(column, {3: (STRUCT, struct(meta))})))
    group = replaced(group, {1: (LIST, structs(columns))})
    footer = struct(replaced(fields, {4: (LIST, structs([struct(group)]))}))
    with pytest.raises(ValueError, match="over each other"):
        StoredChunks(footer, begin, lambda at, n: whole[at : at + n])


def test_place_0_of_a_dictionary_means_that_there_is_none(storage, tmp_path):
    """So some writers say it."""
    table = pa.table({"a": pa.array(range(100)), "b": [f"{n}" for n in range(100)]})
    write(storage, table, dictionary=False)
    begin, footer = footer_of((tmp_path / OLD).read_bytes())
    fields = Cursor(footer).fields()
    (group,) = Cursor(raw_of(fields, 4)).structs()
    columns = []
    for column in Cursor(raw_of(group, 1)).structs():
        meta = replaced(Cursor(raw_of(column, 3)).fields(), {11: (I64, integer(0))})
        columns.append(struct(replaced(column, {3: (STRUCT, struct(meta))})))
    group = replaced(group, {1: (LIST, structs(columns))})
    said = struct(replaced(fields, {4: (LIST, structs([struct(group)]))}))
    (tmp_path / OLD).write_bytes((tmp_path / OLD).read_bytes()[:begin] + file_end(said))
    assert rewrite(storage, table.schema, {"a"}, lambda rows: rows) == {0}
    assert pq.read_table(tmp_path / NEW) == table
    assert not pq.ParquetFile(tmp_path / NEW).metadata.row_group(0).column(0).dictionary_page_offset


@pytest.mark.parametrize("taken", [True, False])
def test_values_that_arrow_refuses_are_not_damage_of_the_stored_file(storage, tmp_path, taken):
    kind = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    made = pa.StructArray.from_arrays([pa.array([1, 2])], fields=list(kind))
    write(storage, pa.table({"a": [1, 2], "b": made}))
    bad = pa.table({"a": [1, 2], "b": pa.StructArray.from_arrays([pa.array([1, None])], fields=list(kind))})
    with (
        Pieces(storage, OLD) as old,
        BaseFileWriter(storage, NEW, bad.schema, config=SMALL) as writer,
    ):
        assert writer.keep(old.chunks(1) if taken else None, 0) == ({0} if taken else set())
        if not taken:
            writer.write(bad)
        with pytest.raises(SchemaError, match=r"cannot be written as Parquet: .*non-nullable") as e:
            writer.write_kept([bad], {"a"}, 0) if taken else writer.flush()
        assert e.value.file == NEW
        writer.abort()
    assert not (tmp_path / NEW).exists()
