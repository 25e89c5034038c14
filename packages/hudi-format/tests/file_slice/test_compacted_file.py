"""A slice merged into a base file: the rows of a read, with the counts of what was merged."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slices import rows_of, write_slice

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import ConcurrentWriterError
from hudi_format.file_slice import base_rows, compacted_file
from hudi_format.file_slice.compacted_file import SliceCompaction, compact_slice
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.file_slice.writer import FileSpec
from hudi_format.merge.payloads import payload_rule
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage

DATA = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA)])
MERGE = SliceMerge(payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload"), "ts")
NAME = "_hoodie_file_name"


@pytest.fixture
def parts(tmp_path):
    """A storage, and a slice of 40 base rows: 4 of them change, one is deleted, one loses, 2 are new."""
    storage = open_storage(str(tmp_path))
    base = rows_of([(f"k{n:02d}", {"ts": 5, "v": n}) for n in range(40)], "1", SCHEMA)
    logged = rows_of([(f"k{n:02d}", {"ts": 6, "v": -n}) for n in (0, 8, 16, 24, 50, 51)], "100", SCHEMA)
    older = rows_of([("k30", {"ts": 1, "v": -1})], "101", SCHEMA)
    gone = (pa.array(["k03", "k99"]), pa.array([9, 9], pa.int64()))
    return storage, write_slice(storage, base, [logged, older, gone], schema=SCHEMA, row_group_rows=7)


def compaction_of(found, merge=MERGE):
    spec = FileSpec(
        partition=found.partition, file_id=found.file_id, write_token="7-8-9", instant="200", schema=DATA,
        config=ParquetConfig(), sequence_prefix="", entries={"mine": "yes"},
    )  # fmt: skip
    return SliceCompaction(found, merge, SCHEMA, spec)


def merged(storage, found):
    return pa.Table.from_batches(read_file_slice(storage, found, MERGE, SCHEMA), SCHEMA).drop_columns([NAME])


@pytest.mark.req("PM-15", "TL-24")
@pytest.mark.parametrize("limit", [None, MemoryLimit(2000, given=True)])
def test_the_file_holds_the_rows_of_a_read(parts, tmp_path, limit):
    storage, found = parts
    merge = MERGE if limit is None else SliceMerge(MERGE.rule, "ts", limit=limit)
    expected = merged(storage, found)
    stat = compact_slice(storage, compaction_of(found, merge))
    file = tmp_path / stat.path
    written = pq.read_table(file)
    assert set(written[NAME].to_pylist()) == {file.name}
    key = [("_hoodie_record_key", "ascending")]
    assert written.drop_columns([NAME]).cast(expected.schema).sort_by(key) == expected.sort_by(key)
    assert (stat.num_writes, stat.num_inserts, stat.num_deletes) == (41, 2, 1)
    assert stat.num_update_writes == 4
    assert stat.prev_commit == found.base_file.instant
    assert (stat.file_size_in_bytes, stat.total_write_bytes) == (file.stat().st_size,) * 2
    assert pq.read_metadata(file).metadata[b"mine"] == b"yes"
    assert stat.extra["totalLogRecords"] == 7
    assert stat.extra["totalLogBlocks"] == 3
    assert stat.extra["totalLogFilesCompacted"] == len(found.log_files)


def test_a_file_whose_write_is_over_is_not_left_behind(parts, tmp_path):
    storage, found = parts

    def over():
        raise ConcurrentWriterError("the write is over")

    with pytest.raises(ConcurrentWriterError):
        compact_slice(storage, compaction_of(found), begin=lambda: over)
    assert not list(tmp_path.rglob("*_7-8-9_200.parquet"))


def test_memory_holds_a_few_row_groups_whatever_the_file_has(tmp_path, monkeypatch):
    """Arrow's bytes beside each part on its way into the file."""
    storage, schema = (
        open_storage(str(tmp_path)),
        SCHEMA.set(SCHEMA.names.index("v"), pa.field("v", pa.string())),
    )
    group, groups, wide = 4000, 5, 2000
    made = [(f"k{n:05d}", {"ts": 5, "v": f"{n:0{wide}d}"}) for n in range(group * groups)]
    logged = [(key, values | {"ts": 6}) for key, values in made[::100]]
    found = write_slice(storage, rows_of(made, "1", schema), [rows_of(logged, "100", schema)], schema=schema,
                        row_group_rows=group)  # fmt: skip
    size = group * wide
    del made, logged
    spec = FileSpec(
        partition="", file_id=found.file_id, write_token="7-8-9", instant="200",
        schema=pa.schema([("ts", pa.int64()), ("v", pa.string())]), sequence_prefix="", entries={},
        config=ParquetConfig(row_group_bytes=size, dictionary=False),
    )  # fmt: skip
    held, as_stored = [], compacted_file.as_stored

    def watched(rows, spec):
        held.append(pa.total_allocated_bytes() - before)
        return as_stored(rows, spec)

    monkeypatch.setattr(compacted_file, "as_stored", watched)
    monkeypatch.setattr(base_rows, "PART_BYTES", size // 8)
    before = pa.total_allocated_bytes()
    stat = compact_slice(storage, SliceCompaction(found, MERGE, schema, spec))
    assert (stat.num_writes, stat.num_update_writes) == (group * groups, group * groups // 100)
    assert max(held) < 3 * size
