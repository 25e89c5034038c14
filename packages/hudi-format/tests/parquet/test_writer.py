from __future__ import annotations

import errno
import gc
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_strategies import tables
from hypothesis import HealthCheck, given, settings

from hudi_format.errors import MissingColumnError, SchemaError, StorageError
from hudi_format.parquet.footer import read_footer
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.reader import Pieces, iter_batches, iter_row_groups, read_table
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.meta_fields import COMMIT_SEQNO, FILE_NAME, RECORD_KEY, with_meta
from hudi_format.storage.local import LocalStorage

PATH = "p/f.parquet"


class Listener:
    """A key observer that remembers."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def add(self, keys: pa.StringArray) -> None:
        assert keys.type == pa.string()
        assert keys.null_count == 0
        self.keys += keys.to_pylist()

    def finish(self) -> Mapping[str, str]:
        return {"count": str(len(self.keys))}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def write(storage: LocalStorage, *parts: pa.Table, schema: pa.Schema | None = None, **config: object) -> int:
    with BaseFileWriter(storage, PATH, schema or parts[0].schema, config=ParquetConfig(**config)) as writer:
        for part in parts:
            writer.write(part)
        return writer.close()


@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17, 100])
def test_nested_values_in_the_smallest_pages_read_back(storage: LocalStorage, size: int) -> None:
    lists = [[1, 2, 3], None, [], [1], [1] * 9]
    for rows in ([lists[0]], [None], [[]], lists, lists * 50):
        table = pa.table(
            {
                "numbers": pa.array(rows, pa.list_(pa.int64())),
                "texts": pa.array([r and [str(x) for x in r] for r in rows], pa.list_(pa.string())),
                "pairs": pa.array(
                    [r and [(str(n), float(x)) for n, x in enumerate(r)] for r in rows],
                    pa.map_(pa.string(), pa.float64()),
                ),
                "inner": pa.array([r and [r, None, r] for r in rows], pa.list_(pa.list_(pa.int64()))),
            }
        )
        write(storage, table, page_bytes=size)
        assert read_table(storage, PATH, schema=table.schema).equals(table), rows[:5]


@given(tables())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_type_and_every_null_reads_back(storage: LocalStorage, table: pa.Table) -> None:
    write(storage, table)
    found = read_table(storage, PATH, schema=table.schema)
    assert found.schema == table.schema
    assert found.equals(table) or found.to_pylist() == table.to_pylist()
    footer = read_footer(storage, PATH)
    assert footer.num_rows == table.num_rows
    assert b"ARROW:schema" not in (footer.metadata.metadata or {})


def test_types_are_laid_out_as_parquet_avro_reads_them(storage: LocalStorage) -> None:
    schema = pa.schema(
        [
            pa.field("l", pa.list_(pa.field("element", pa.int32()))),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
            pa.field("d", pa.decimal128(9, 2)),
            pa.field("t", pa.timestamp("us", "UTC")),
            pa.field("n", pa.timestamp("us")),
        ]
    )
    write(storage, schema.empty_table())
    columns = read_footer(storage, PATH).metadata.schema
    shape = {c.path: (c.physical_type, c.length, json.loads(c.logical_type.to_json())) for c in columns}
    assert shape["l.list.element"][0] == "INT32"
    assert shape["m.key_value.key"][0] == "BYTE_ARRAY"
    assert "m.key_value.value" in shape
    assert shape["d"][:2] == ("FIXED_LEN_BYTE_ARRAY", 4)
    assert shape["t"][2] | {"isAdjustedToUTC": True, "timeUnit": "microseconds"} == shape["t"][2]
    assert shape["n"][2] | {"isAdjustedToUTC": False, "timeUnit": "microseconds"} == shape["n"][2]


def keyed(n: int) -> pa.Table:
    keys = [f"key-{i:06d}" for i in range(n)]
    columns = {
        "_hoodie_commit_time": ["1"] * n,
        COMMIT_SEQNO: [f"1_0_{i}" for i in range(n)],
        RECORD_KEY: keys,
    }
    columns |= {"_hoodie_partition_path": ["p"] * n, FILE_NAME: ["f"] * n, "v": list(range(n))}
    return pa.table(columns)


@pytest.mark.req("SE-07", "IX-04")
def test_the_footer_has_the_entries_of_the_caller_and_of_the_observer(storage: LocalStorage) -> None:
    listener, table = Listener(), keyed(10)
    avro = to_avro(with_meta(table.schema), "t")
    with BaseFileWriter(
        storage, PATH, table.schema, config=ParquetConfig(), observer=listener,
        entries={"parquet.avro.schema": avro},
    ) as writer:  # fmt: skip
        writer.write(table.slice(0, 4))
        writer.write(table.slice(4).to_batches()[0])
        size = writer.close()
        assert writer.num_rows == 10
        assert writer.bytes_written == size
    assert listener.keys == table.column(RECORD_KEY).to_pylist()
    footer = read_footer(storage, PATH)
    assert footer.entries == {"parquet.avro.schema": avro, "count": "10"}
    assert footer.avro_schema is not None
    assert from_avro(footer.avro_schema) == with_meta(table.schema)
    assert footer.size == size == os.path.getsize(storage.full(PATH))


def test_keys_without_a_value_are_not_shown_to_the_observer(storage: LocalStorage) -> None:
    listener = Listener()
    keys = pa.array(["a", None, "b"]).dictionary_encode()
    with BaseFileWriter(
        storage,
        PATH,
        pa.schema([pa.field(RECORD_KEY, pa.string())]),
        config=ParquetConfig(),
        observer=listener,
    ) as writer:
        writer.write(pa.table({RECORD_KEY: keys}))
    assert listener.keys == ["a", "b"]


def test_many_small_writes_become_whole_row_groups(storage: LocalStorage) -> None:
    table = keyed(5_000)
    parts = [table.slice(i, 7) for i in range(0, 5_000, 7)]
    write(storage, *parts)
    footer = read_footer(storage, PATH)
    assert footer.num_row_groups == 1
    assert read_table(storage, PATH).equals(table.combine_chunks())


def test_one_large_write_is_cut_by_bytes_and_by_rows(storage: LocalStorage) -> None:
    table = keyed(5_000)
    write(storage, table, row_group_bytes=table.nbytes // 4)
    sizes = _group_rows(storage)
    assert 4 <= len(sizes) <= 5
    assert max(sizes) <= 1_300
    write(storage, table, row_group_rows=2_000)
    assert _group_rows(storage) == [2_000, 2_000, 1_000]
    assert read_table(storage, PATH).to_pylist() == table.to_pylist()


def test_a_row_wider_than_a_row_group_is_written_alone(storage: LocalStorage) -> None:
    table = pa.table({"t": ["x" * 1_000, "y" * 1_000, "z"]})
    write(storage, table, row_group_bytes=10)
    assert read_table(storage, PATH).to_pylist() == table.to_pylist()
    assert _group_rows(storage) == [1, 1, 1]


def _group_rows(storage: LocalStorage) -> list[int]:
    metadata = read_footer(storage, PATH).metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def test_bytes_written_grow_with_each_row_group(storage: LocalStorage) -> None:
    table = keyed(1_000)
    with BaseFileWriter(storage, PATH, table.schema, config=ParquetConfig(row_group_rows=500)) as writer:
        sizes = [writer.bytes_written]
        for i in range(0, 1_000, 250):
            writer.write(table.slice(i, 250))
            sizes.append(writer.bytes_written)
    assert sizes[0] <= 4
    assert sizes[1] <= 4 < sizes[2] == sizes[3] < sizes[4]


def _encodings(storage: LocalStorage) -> dict[str, tuple[str, ...]]:
    group = read_footer(storage, PATH).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {c.path_in_schema: c.encodings for c in columns}


def test_dictionaries_are_made_where_they_will_be_kept(storage: LocalStorage) -> None:
    n = 40_000
    table = keyed(n).append_column("city", pa.array([f"c{i * 7919 % 500}" for i in range(n)]))
    table = table.append_column("tags", pa.array([[f"t{i % 9}"] for i in range(n)]))
    write(storage, table)
    used = {name for name, kinds in _encodings(storage).items() if "RLE_DICTIONARY" in kinds}
    assert used == {"_hoodie_commit_time", "_hoodie_partition_path", FILE_NAME, "city", "tags.list.element"}
    # What is known of a column is not sampled, and a dictionary of the old file stays one.
    known = {"city": False, "v": True}
    with BaseFileWriter(storage, PATH, table.schema, config=ParquetConfig(), dictionaries=known) as writer:
        writer.write(table)
    told = {name for name, kinds in _encodings(storage).items() if "RLE_DICTIONARY" in kinds}
    assert told == used - {"city"} | {"v"}
    with Pieces(storage, PATH) as file:
        assert {name for name, has in file.dictionaries().items() if has} == told
    write(storage, table, dictionary=False)
    assert not [k for k in _encodings(storage).values() if "RLE_DICTIONARY" in k]


@pytest.mark.parametrize("codec", ["zstd", "gzip", "snappy", "lz4", "uncompressed", ""])
def test_every_codec_reads_back(storage: LocalStorage, codec: str) -> None:
    table = keyed(100)
    write(storage, table, codec=codec)
    chunk = read_footer(storage, PATH).metadata.row_group(0).column(0)
    assert chunk.compression == {"": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert read_table(storage, PATH).equals(table)


def dictionary(*texts: str | None) -> pa.DictionaryArray:
    return pa.array(texts, pa.string()).dictionary_encode()


def test_dictionaries_from_arrow_land_as_plain_text_in_any_mixture(storage: LocalStorage) -> None:
    schema = pa.schema([pa.field("a", pa.string()), pa.field("b", pa.string())])
    null_inside = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["x", None]))
    twice_inside = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["x", "x"]))
    wide = pa.array(["v", "w"], pa.large_string()).dictionary_encode()
    columns: list[tuple[pa.Array, pa.Array]] = [
        (dictionary("x", None), pa.array(["1", "2"])),
        (dictionary("y", "x"), dictionary("3", "4")),
        (pa.array(["p", "q"]), dictionary(None, "3")),
        (null_inside, twice_inside),
        (wide, pa.array(["5", "6"], pa.string_view())),
        (dictionary("z", "z"), dictionary("9", "9")),
    ]
    parts = [pa.table({"a": a, "b": b}) for a, b in columns]
    rows = [row for part in parts for row in part.to_pylist()]
    for limit in (1, 2, 4, 100):
        for order in (parts, parts[::-1]):
            write(storage, *order, schema=schema, row_group_rows=limit)
            assert read_footer(storage, PATH).schema == schema
            found = read_table(storage, PATH).to_pylist()
            assert sorted(found, key=str) == sorted(rows, key=str)


def test_one_dictionary_for_a_row_group_of_many_chunks(storage: LocalStorage) -> None:
    parts = [pa.table({FILE_NAME: dictionary(*[f"f{i % 3}"] * 5_000)}) for i in range(9)]
    write(storage, *parts, schema=pa.schema([pa.field(FILE_NAME, pa.string())]))
    chunk = read_footer(storage, PATH).metadata.row_group(0).column(0)
    assert chunk.total_uncompressed_size < 2_000  # plain text, after a fallback, would take 300,000
    assert (chunk.statistics.min, chunk.statistics.max) == ("f0", "f2")


def test_input_in_any_representation_and_order_is_taken(storage: LocalStorage) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("l", pa.list_(pa.field("element", pa.string())))])
    given_as = pa.table(
        {"l": pa.array([["x"], None], pa.large_list(pa.string_view())), "a": pa.array([1, 2], pa.int8())}
    )
    write(storage, given_as, schema=schema)
    assert read_table(storage, PATH, schema=schema).to_pylist() == [{"a": 1, "l": ["x"]}, {"a": 2, "l": None}]


def test_rows_that_do_not_fit_are_refused_and_the_file_goes(storage: LocalStorage) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    for rows, error in (
        ({"b": [1]}, MissingColumnError),
        ({"a": ["x"]}, SchemaError),
        ({"a": [None]}, SchemaError),
    ):
        with pytest.raises(error) as e:
            write(storage, pa.table(rows), schema=schema)
        assert e.value.file == PATH
        assert storage.info(PATH) is None


def test_an_empty_file_has_its_schema_and_entries(storage: LocalStorage) -> None:
    schema = with_meta(pa.schema([pa.field("a", pa.decimal128(10, 2))]))
    with BaseFileWriter(storage, PATH, schema, config=ParquetConfig(), entries={"k": "v"}):
        pass
    footer = read_footer(storage, PATH)
    assert (footer.num_rows, footer.schema, footer.entries) == (0, schema, {"k": "v"})


@pytest.mark.filterwarnings("error")  # those of finalizers too
def test_an_error_or_an_abort_removes_the_file_and_leaves_nothing_behind(storage: LocalStorage) -> None:
    table = keyed(100)

    def fail() -> None:
        with BaseFileWriter(storage, PATH, table.schema, config=ParquetConfig(row_group_rows=10)) as w:
            w.write(table)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert storage.info(PATH) is None
    writer = BaseFileWriter(storage, PATH, table.schema, config=ParquetConfig(row_group_rows=10))
    writer.write(table)
    writer.abort()
    writer.abort()
    assert storage.info(PATH) is None
    with pytest.raises(ValueError, match="closed"):
        writer.write(table)
    del writer
    gc.collect()  # Arrow's writer must not try to write its footer now


def test_closing_twice_gives_the_size_again(storage: LocalStorage) -> None:
    with BaseFileWriter(storage, PATH, keyed(1).schema, config=ParquetConfig()) as writer:
        size = writer.close()
    assert writer.close() == size
    writer.abort()
    assert storage.info(PATH) is not None  # a file that is finished stays


class FullDisk:
    """A sink that takes so many bytes and no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.closed = False
        self.position = 0

    def write(self, data: bytes) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.position += len(data)
        return len(data)

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("room", [0, 10, 600, 1_500, 4_000])
def test_a_full_disk_is_a_storage_error_and_the_file_goes(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    def open_output(path: str) -> pa.NativeFile:
        storage.touch(path)
        return pa.PythonFile(FullDisk(room), mode="w")

    storage.make_dir("p")
    monkeypatch.setattr(storage, "open_output", open_output)
    with pytest.raises(StorageError, match="No space left") as e:
        write(storage, keyed(500), row_group_rows=100)
    assert e.value.file == PATH
    assert storage.info(PATH) is None
    gc.collect()


@given(tables())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=30)
def test_every_way_of_reading_gives_the_same_rows(storage: LocalStorage, table: pa.Table) -> None:
    write(storage, table, row_group_rows=2)
    rows, schema = table.to_pylist(), table.schema
    for size in (1, 3, None):
        batches = list(iter_batches(storage, PATH, schema=schema, batch_rows=size))
        assert all(b.schema == schema for b in batches)
        assert [row for b in batches for row in b.to_pylist()] == rows
    groups = list(iter_row_groups(storage, PATH, schema=schema))
    assert [row for g in groups for row in g.to_pylist()] == rows
    name = schema.names[-1]
    picked = read_table(storage, PATH, schema=schema, columns=[name], use_threads=False)
    assert picked.equals(table.select([name])) or picked.to_pylist() == table.select([name]).to_pylist()


def test_a_plain_reader_sees_the_same(storage: LocalStorage) -> None:
    table = keyed(50)
    write(storage, table)
    assert pq.read_table(storage.full(PATH)).equals(table)
