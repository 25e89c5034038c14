"""Log blocks of a slice merged into one: readers that know it, and those that do not, give the same rows."""

from dataclasses import replace

import pyarrow as pa
import pytest
from slices import rows_of, write_slice

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import ConcurrentWriterError, CorruptFileError, UnsupportedError
from hudi_format.file_names import parse_log_file
from hudi_format.file_slice.compacted_log import LogCompaction, compact_log, count_blocks
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.merge.payloads import PAYLOADS, payload_rule
from hudi_format.merge.user_merger import custom_rule
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage

DATA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
SCHEMA = pa.schema([f.with_nullable(True) for f in with_meta(DATA)])
MERGE = SliceMerge(payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload"), "ts")


def at(ts):
    return pa.scalar(ts, pa.int64()).cast(pa.timestamp("us", "UTC")).as_py()


def records(values, instant):
    given = [(k, {"ts": at(ts), "v": v, "_hoodie_is_deleted": gone}) for k, ts, v, gone in values]
    return rows_of(given, instant, SCHEMA)


@pytest.fixture
def parts(tmp_path):
    """A storage, and a slice of 40 base rows with updates, deletes with and without effect, and marked records."""
    storage = open_storage(str(tmp_path))
    base = records([(f"k{n:02d}", 5, n, False) for n in range(40)], "1")
    logged = records([(f"k{n:02d}", 6, -n, n == 16) for n in (0, 8, 16, 24, 50, 51)], "100")
    older = records([("k30", 1, -1, True), ("k00", 2, None, False), ("k03", 9, 1, False)], "101")
    gone = (pa.array(["k03", "k99", "k08"]), pa.array([9, 9, 2], pa.int64()))
    last = records([("k51", 7, 7, True), ("k60", 1, 1, False)], "102")
    found = write_slice(storage, base, [logged, older, gone, last], schema=SCHEMA, row_group_rows=7)
    return storage, found


def compaction_of(found, merge=MERGE, **how):
    version = max(f.version for f in found.log_files) + 1
    avro = to_avro(SCHEMA, "t")
    return LogCompaction(found, merge, SCHEMA, DATA, "900", avro, version, "7-8-9", **how)


def with_file(found, stat):
    log = parse_log_file(found.partition, stat.path.rpartition("/")[2], stat.file_size_in_bytes)
    return replace(found, log_files=(*found.log_files, log))


def merged(storage, found, merge=MERGE):
    rows = pa.Table.from_batches(read_file_slice(storage, found, merge, SCHEMA), SCHEMA)
    return rows.sort_by("_hoodie_record_key")


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA])
@pytest.mark.parametrize("limit", [None, MemoryLimit(2000, given=True)])
def test_a_read_gives_the_same_rows_before_and_after(parts, kind, limit):
    storage, found = parts
    merge = replace(MERGE, limit=limit)
    expected = merged(storage, found)
    stat = compact_log(storage, compaction_of(found, merge, kind=kind))
    assert merged(storage, with_file(found, stat)) == expected
    assert (stat.num_writes, stat.num_deletes) == (8, 2)
    assert count_blocks(storage, with_file(found, stat), MERGE) == 0
    with LogFileReader.open(storage, stat.path) as reader:
        kinds = [b.type for b in reader.blocks]
        assert len({b.header[4] for b in reader.blocks}) == 1
    assert set(kinds) == {kind, BlockType.DELETE}


# Ordering values of one payload are log positions, which the records here have none of.
@pytest.mark.parametrize("payload", sorted(p for p in PAYLOADS if not payload_rule(p).sequence))
def test_a_reader_that_does_not_know_of_it_gives_the_same_rows_too(parts, tmp_path, payload):
    storage, found = parts
    merge = SliceMerge(payload_rule(payload), "ts")
    expected = merged(storage, found, merge)
    stat = compact_log(storage, compaction_of(found, merge))
    assert merged(storage, with_file(found, stat), merge) == expected
    # As a scan that passes over the header: the new blocks come behind all others.
    path = tmp_path / stat.path
    data = path.read_bytes()
    with LogFileReader.open(storage, stat.path) as reader:
        texts = {b.header[4] for b in reader.blocks}
    (text,) = texts
    key = (4).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text.encode()
    assert data.count(key) == 2
    other = (6).to_bytes(4, "big") + len(text).to_bytes(4, "big") + b"0" * len(text)
    path.write_bytes(data.replace(key, other))
    assert merged(storage, with_file(found, stat), merge) == expected


def test_a_file_whose_write_is_over_is_not_left_behind(parts, tmp_path):
    storage, found = parts
    before = sorted(tmp_path.rglob("*"))

    def over():
        raise ConcurrentWriterError("the write is over")

    with pytest.raises(ConcurrentWriterError):
        compact_log(storage, compaction_of(found), begin=lambda name: over)
    assert sorted(tmp_path.rglob("*")) == before


def test_damage_is_an_error_that_names_the_file_and_leaves_none(parts, tmp_path):
    storage, found = parts
    path = tmp_path / found.log_files[0].path
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptFileError) as e:
        compact_log(storage, compaction_of(found))
    assert e.value.file == found.log_files[0].path
    assert not list(tmp_path.rglob("*_7-8-9"))


def test_a_merge_of_the_users_is_refused(parts):
    storage, found = parts
    merge = SliceMerge(custom_rule('{"v": "sum"}'), "ts")
    with pytest.raises(UnsupportedError, match="base row"):
        compact_log(storage, compaction_of(found, merge))
