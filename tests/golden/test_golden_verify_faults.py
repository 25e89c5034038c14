"""Faults planted into tables of Apache Hudi: logs, pending plans, timelines of layout 2, metadata tables."""

import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from golden_tables import SNAPSHOT, assert_same_answer, golden

from hudi_format.log.block import BlockType, HeaderKey
from hudi_format.log.encoder import frame
from hudi_format.log.reader import LogFileReader
from hudi_format.model import join_path
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE
from hudi_format.storage.local import LocalStorage
from hudi_index.bloom.filter import parse_filter
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.avro_files import parse
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.verify.repair import repair
from hudi_timeline.verify.verify import verify

HISTORY = ".hoodie/timeline/history"


class Planted:
    """An unpacked table, with what faults need to know of it."""

    def __init__(self, path):
        self.path = path
        self.table = HudiTable.open(str(path))
        self.writes = self.table.timeline.completed_writes()

    def stats(self, instant):
        return read_commit(self.table.storage, instant).stats

    def newest_log(self):
        """Path of a log file that the newest delta commit wrote, and its blocks."""
        paths = [s.path for i in reversed(self.writes) for s in self.stats(i) if ".log." in s.path]
        with LogFileReader.open(self.table.storage, paths[0]) as log:
            return paths[0], log.blocks

    def newest_base(self):
        files = [(i.time, s.path) for i in self.writes for s in self.stats(i) if s.path.endswith("parquet")]
        return max(files)[1]

    def flip(self, path, offset):
        data = bytearray((self.path / path).read_bytes())
        data[offset] ^= 0xFF
        (self.path / path).write_bytes(data)


FAULTS = []


def fault(*tables, left=None):
    """Register a fault of some tables.

    Args:
        left: the codes that `repair` leaves; None for all, as nothing can be repaired.
    """

    def register(plant):
        for version, name in tables:
            given = pytest.param(version, name, plant, left, id=f"{plant.__name__}-{version}-{name}")
            FAULTS.append(given)
        return plant

    return register


# --- log files -----------------------------------------------------------------------------------------


@fault(("v6", "mor_avro_logs"), ("v9", "mor_parquet_logs"))
def log_whose_magic_is_gone(t):
    path, blocks = t.newest_log()
    t.flip(path, blocks[-1].offset + 1)
    return [("log-damaged", path)]


@fault(("v6", "mor_avro_logs"), ("v8", "mor_avro_logs"))
def log_whose_block_length_lies(t):
    path, blocks = t.newest_log()
    t.flip(path, blocks[-1].offset + 13)
    return [("log-damaged", path)]


@fault(("v6", "mor_avro_logs"), ("v9", "mor_avro_logs"))
def log_that_is_cut(t):
    path, _ = t.newest_log()
    data = (t.path / path).read_bytes()
    (t.path / path).write_bytes(data[:-1])
    return [("log-damaged", path)]


@fault(("v6", "mor_avro_logs"), ("v8", "mor_avro_logs"))
def log_record_that_is_none(t):
    path, blocks = t.newest_log()
    data = next(b for b in blocks if b.type is BlockType.AVRO_DATA)
    t.flip(path, data.content_offset + 9)  # the length of its first record
    return [("log-content", path)]


@fault(("v6", "mor_avro_logs"), left=("log-damaged-uncommitted",))
def log_with_a_block_of_nobody(t):
    path, blocks = t.newest_log()
    data = (t.path / path).read_bytes()
    last = data[blocks[-1].offset :]
    (t.path / path).write_bytes(data + b"#H-DI#" + last[6:])
    return [("log-damaged-uncommitted", path)]


@fault(("v6", "mor_avro_logs"))
def log_with_a_block_without_a_schema(t):
    path, _ = t.newest_log()
    before, after = frame(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: t.writes[-1].time}, 8)
    with (t.path / path).open("ab") as log:
        log.write(before + bytes(8) + after)
    return [("log-header", path), ("log-content", path)]


@fault(("v6", "mor_avro_logs"))
def log_of_a_commit_that_is_lost(t):
    last = t.writes[-1]
    paths = {s.path for s in t.stats(last)}
    for file in (t.path / ".hoodie").glob(f"{last.time}.*"):
        file.unlink()
    return [("log-block-of-no-instant" if ".log." in p else "file-of-no-instant", p) for p in paths]


@fault(("v9", "mor_avro_logs"))
def log_that_is_gone(t):
    path, _ = t.newest_log()
    (t.path / path).unlink()
    return [("file-missing", path)]


# --- plans and timelines -------------------------------------------------------------------------------


@fault(("v6", "mor_pending_compaction"))  # whose name logs carry that were written since
@fault(("v9", "mor_pending_compaction"), left=("file-missing",))
def file_that_a_pending_compaction_reads(t):
    pending = t.table.timeline.pending("compaction")[0]
    folder = t.table.config.timeline_folder
    plan = f"{folder}/{pending.time}.compaction.requested"
    operation = parse("HoodieCompactionPlan", (t.path / plan).read_bytes())["operations"][0]
    path = join_path(operation["partitionPath"], operation["deltaFilePaths"][0])
    (t.path / path).unlink()
    return [("plan-slice-missing", plan), ("file-missing", path)]


@fault(("v9", "mor_pending_compaction"), left=())
def plan_of_a_compaction_that_is_gone(t):
    pending = t.table.timeline.pending("compaction")[0]
    plan = f".hoodie/timeline/{pending.time}.compaction.requested"
    inflight = t.path / f".hoodie/timeline/{pending.time}.compaction.inflight"
    (t.path / plan).unlink()
    inflight.touch()
    return [("timeline-no-plan", plan)]


@fault(("v8", "cow_partitioned"), ("v9", "cow_partitioned"), left=())
def instant_that_is_completed_twice(t):
    last = t.writes[-1]
    other = f"{last.time}_{int(last.completion) + 1000}.{last.action}"
    shutil.copy(t.path / last.path, t.path / ".hoodie/timeline" / other)
    return [("timeline-two-completions", f".hoodie/timeline/{other}")]


@fault(("v9", "cow_partitioned"))
def instant_that_is_completed_before_it_began(t):
    last = t.writes[-1]
    other = f"{last.time}_{int(last.time) - 1000}.{last.action}"
    (t.path / last.path).rename(t.path / ".hoodie/timeline" / other)
    return [("timeline-order", f".hoodie/timeline/{other}")]


@fault(("v9", "cow_partitioned"), left=())
def file_that_is_no_instant(t):
    (t.path / ".hoodie/timeline/notes.txt").touch()
    return [("timeline-unknown-file", ".hoodie/timeline/notes.txt")]


@fault(("v8", "cow_partitioned"))
def timeline_that_is_gone(t):
    (t.path / ".hoodie/timeline").rename(t.path / ".hoodie/elsewhere")
    return [("timeline-folder", ".hoodie/timeline")]


@fault(("v8", "cow_archived"), ("v9", "cow_archived"), left=())
def manifest_that_is_gone(t):
    number = (t.path / HISTORY / "_version_").read_text()
    (t.path / HISTORY / f"manifest_{number}").unlink()
    return [("archive-manifest", f"{HISTORY}/manifest_{number}")]


@fault(("v9", "cow_archived"))
def file_of_the_history_that_is_gone(t):
    number = (t.path / HISTORY / "_version_").read_text()
    name = json.loads((t.path / HISTORY / f"manifest_{number}").read_text())["files"][0]["fileName"]
    (t.path / HISTORY / name).unlink()
    return [("archive-unreadable", f"{HISTORY}/{name}")]


# --- metadata tables -----------------------------------------------------------------------------------


@fault(("v6", "cow_partitioned"), ("v9", "cow_partitioned"), left=())
def metadata_table_that_lost_a_commit(t):
    last = t.writes[-1]
    folder = t.path / ".hoodie/metadata" / t.table.config.timeline_folder
    for file in folder.glob(f"{last.time}[._]*"):
        if file.name.endswith("deltacommit"):
            file.unlink()
    stats = ".hoodie/metadata/partition_stats"
    told = [("mdt-partition-stats", stats)] if (t.path / stats).exists() else []
    return [("mdt-not-listed", s.path) for s in t.stats(last)] + told


@fault(("v6", "mdt_all_indexes"), ("v9", "mdt_all_indexes"), left=())
def metadata_file_that_is_damaged(t):
    files = sorted((t.path / ".hoodie/metadata/files").glob("*.hfile"))
    path = str(files[-1].relative_to(t.path))
    data = bytearray(files[-1].read_bytes())
    data[:8] = b"NOTABLOK"
    files[-1].write_bytes(data)
    return [("base-file-unreadable", path)]


@fault(("v6", "record_index"), left=())
def metadata_partition_that_is_gone(t):
    shutil.rmtree(t.path / ".hoodie/metadata/record_index")
    return [("mdt-missing", ".hoodie/metadata/record_index")]


def rewrite(file, change_rows=None, change_footer=None):
    """Write a base file again, changed: of another size than its commit says, and the metadata table."""
    rows = pq.read_table(file, partitioning=None)
    entries = {k.decode(): v.decode() for k, v in pq.read_metadata(file).metadata.items()}
    entries.pop("ARROW:schema", None)
    rows = change_rows(rows) if change_rows else rows
    if change_footer:
        change_footer(entries)
    size = file.stat().st_size
    with pq.ParquetWriter(
        file, rows.schema.remove_metadata(), store_schema=False, compression="gzip"
    ) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(entries)
    assert file.stat().st_size != size


@fault(("v6", "mdt_all_indexes"), ("v8", "mdt_all_indexes"), left=("file-size",))
def bloom_filter_that_the_index_does_not_know(t):
    def change(entries):
        bloom = parse_filter(entries[BLOOM_FILTER], entries[BLOOM_TYPE])
        bloom.add(pa.array(["another"]))
        entries[BLOOM_FILTER] = bloom.to_base64()

    path = t.newest_base()
    rewrite(t.path / path, change_footer=change)
    # The metadata table says another size too, as the commit does: said once.
    return [("file-size", path), ("mdt-bloom", path)]


@fault(("v6", "mdt_all_indexes"), ("v9", "mdt_all_indexes"), left=("file-size",))
def values_that_the_column_statistics_do_not_know(t):
    def change(rows):
        at = rows.column_names.index("ts")
        high = pc.add(rows.column("ts"), pa.scalar(10**9, rows.schema.field("ts").type))
        return rows.set_column(at, rows.schema.field(at), high)

    path = t.newest_base()
    rewrite(t.path / path, change)
    return [("file-size", path), ("mdt-column-stats", path)]


@fault(("v6", "record_index"), left=())
def key_that_the_record_index_does_not_know(t):
    path = t.newest_base()
    rewrite(t.path / path, lambda rows: rows.slice(1))
    # Another commit, then, which the metadata table was not told of.
    (commit,) = (t.path / i.path for i in t.writes for s in t.stats(i) if s.path == path)
    content = json.loads(commit.read_text())
    for stat in content["partitionToWriteStats"][path.rpartition("/")[0]]:
        if stat["path"] == path:
            stat.update(numWrites=stat["numWrites"] - 1, fileSizeInBytes=(t.path / path).stat().st_size)
    commit.write_text(json.dumps(content))
    return [("mdt-size", path), ("mdt-record-index", ".hoodie/metadata/record_index")]


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("NEW-08", "NEW-09")
@pytest.mark.parametrize(("version", "name", "plant", "left"), FAULTS)
@pytest.mark.sampled(4)
def test_a_fault_is_named_and_repaired(tmp_path, version, name, plant, left):
    (table,) = golden(version, name)
    path = table.unpack(tmp_path)
    expected = plant(Planted(path))
    before = tree(path)
    storage = LocalStorage(str(path))

    def read(*columns, **given):
        return HudiTable.open(str(path)).read(*columns, **given)

    found = verify(storage, deep=True, scan_of=read)
    assert sorted((f.code, f.path) for f in found) == sorted(expected), "\n".join(map(str, found))
    plan = repair(storage, dry_run=True, deep=True, scan_of=read).plan
    assert tree(path) == before
    result = repair(storage, plan=plan, deep=True, scan_of=read)
    if left is None:
        assert not plan
        assert list(result.left) == found
        assert tree(path) == before
        return
    assert {f.code for f in result.left} == set(left)
    now = tree(path)
    assert all(now.get(n) == d or now[f"{result.folder}/{n}"] == d for n, d in before.items())
    if not left and plant is not key_that_the_record_index_does_not_know:
        assert_same_answer(read(meta_columns=True).to_arrow(), table.question(SNAPSHOT).expected())


# --- indexes by value ------------------------------------------------------------------------------------


def _without_the_first(records):
    return records.slice(1)


def _of_other_keys(records):
    keys = pc.replace_substring(records.column("key"), "id-000", "id-900")
    return records.set_column(0, "key", keys)


def _with(records, **values):
    """Records whose statistics say something else."""
    name = "ColumnStatsMetadata"
    changed = [{**s, **{n: v(s) for n, v in values.items()}} for s in records.column(name).to_pylist()]
    at = records.column_names.index(name)
    return records.set_column(at, name, pa.array(changed, records.schema.field(name).type))


def _of_the_least(records):
    """Bounds of one value each."""
    return _with(records, maxValue=lambda s: s["minValue"])


def _of_one_row_more(records):
    return _with(records, valueCount=lambda s: s["valueCount"] + 1)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("version", ["v8", "v9"])
@pytest.mark.parametrize(
    ("partition", "change", "code"),
    [
        ("secondary_index_idx_second", _without_the_first, "mdt-secondary-index"),
        ("secondary_index_idx_second", _of_other_keys, "mdt-secondary-index"),
        ("partition_stats", lambda records: records.slice(0, 0), None),  # then it says nothing
        ("partition_stats", _without_the_first, "mdt-partition-stats"),
        ("partition_stats", _of_the_least, "mdt-partition-stats"),
        ("expr_index_idx_expr", _of_one_row_more, "mdt-expression-index"),
    ],
)
def test_indexes_by_value_that_disagree_with_rows_are_found(
    opened, monkeypatch, version, partition, change, code
):
    (table,) = golden(version, "mdt_secondary_and_expression")
    read = opened(table)
    scan = MetadataTable.scan

    def changed(self, name):
        records = scan(self, name)
        if name == partition == "partition_stats":
            # Of the table's own columns: those of the meta columns are not compared.
            own = pc.invert(
                pc.starts_with(pc.struct_field(records.column("ColumnStatsMetadata"), "columnName"), "_")
            )
            records = records.filter(own)
        return change(records) if name == partition else records

    monkeypatch.setattr(MetadataTable, "scan", changed)
    assert {f.code for f in read.verify(deep=True)} == ({code} if code else set())
