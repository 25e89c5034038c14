"""Slices divided among other file groups: each merged row once, in the file that the route says."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slices import rows_of, write_slice

from hudi_format.errors import ConcurrentWriterError
from hudi_format.file_slice.compacted_file import SliceCompaction
from hudi_format.file_slice.divided_slices import divide_slices
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.file_slice.writer import FileSpec
from hudi_format.merge.payloads import payload_rule
from hudi_format.parquet.layout import NO_OBSERVER, ParquetConfig
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage

DATA = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA)])
MERGE = SliceMerge(payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload"), "ts")
NAME = "_hoodie_file_name"


@pytest.fixture
def parts(tmp_path):
    """A storage, and a slice of base rows and logs, of which one row is deleted."""
    storage = open_storage(str(tmp_path))
    base = rows_of([(f"k{n:02d}", {"ts": 5, "v": n}) for n in range(40)], "1", SCHEMA)
    logged = rows_of([(f"k{n:02d}", {"ts": 6, "v": -n}) for n in (0, 8, 50)], "100", SCHEMA)
    gone = (pa.array(["k03"]), pa.array([9], pa.int64()))
    return storage, write_slice(storage, base, [logged, gone], schema=SCHEMA, row_group_rows=7)


def spec(file_id):
    return FileSpec(
        partition="", file_id=file_id, write_token="7-8-9", instant="200", schema=DATA, config=ParquetConfig(),
        sequence_prefix="", entries={"mine": "yes"},
    )  # fmt: skip


def divided(storage, found, specs, route, begin=lambda spec: lambda: None):
    source = SliceCompaction(found, MERGE, SCHEMA, specs[0])
    return divide_slices(storage, [source], specs, route, begin=begin, observer=lambda: NO_OBSERVER)


def by_value(count):
    return lambda rows: np.abs(rows.column("v").to_numpy()) % count


@pytest.mark.req("IX-29")
def test_each_row_stands_once_where_the_route_says(parts, tmp_path):
    storage, found = parts
    specs = [spec(f"f{n}-0") for n in range(3)]
    expected = pa.Table.from_batches(read_file_slice(storage, found, MERGE, SCHEMA), SCHEMA).drop_columns(
        [NAME]
    )
    stats = divided(storage, found, specs, by_value(3))
    assert [s.file_id for s in stats] == ["f0-0", "f1-0", "f2-0"]
    files = [pq.read_table(tmp_path / s.path) for s in stats]
    for number, (stat, file) in enumerate(zip(stats, files, strict=True)):
        assert {abs(v) % 3 for v in file["v"].to_pylist()} == {number}
        assert set(file[NAME].to_pylist()) == {stat.path}
        assert (stat.num_writes, stat.num_inserts, stat.prev_commit) == (len(file), len(file), "null")
        assert stat.file_size_in_bytes == (tmp_path / stat.path).stat().st_size
        assert pq.read_metadata(tmp_path / stat.path).metadata[b"mine"] == b"yes"
    written = pa.concat_tables(files).drop_columns([NAME]).cast(expected.schema)
    key = [("_hoodie_record_key", "ascending")]
    assert written.sort_by(key) == expected.sort_by(key)


def test_a_file_without_rows_is_not_made(parts, tmp_path):
    storage, found = parts
    begun = []

    def begin(one):
        begun.append(one.file_id)
        return lambda: None

    stats = divided(storage, found, [spec("f0-0"), spec("f1-0")], lambda rows: np.ones(len(rows), int), begin)
    assert [s.file_id for s in stats] == begun == ["f1-0"]
    assert not list(tmp_path.glob("f0*"))


def test_files_whose_write_is_over_are_not_left_behind(parts, tmp_path):
    storage, found = parts

    def begin(one):
        def guard():
            if one.file_id == "f1-0":
                raise ConcurrentWriterError("over")

        return guard

    with pytest.raises(ConcurrentWriterError):
        divided(storage, found, [spec("f0-0"), spec("f1-0")], by_value(2), begin)
    assert not list(tmp_path.glob("f1*"))
