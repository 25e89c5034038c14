"""Reads that outlive the state they stand for: all of its rows or an error that says so, and never fewer rows."""

import os
import pickle
import shutil
import warnings

import duckdb
import polars
import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_format.arrow.arrays import put_together
from hudi_format.errors import (
    ConcurrentWriterError,
    HudiError,
    InstantNotFoundError,
    MissingFileError,
    StaleSnapshotError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.reading import stability
from hudi_timeline.reading.incremental.incremental_range import completion_times
from hudi_timeline.testing import Act, Case, preemptions
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import CLEAN

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
OFF = {"hoodie.table.services.enabled": "false"}
HARD = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.parquet.small.file.limit": "0",
}
VERSIONS = {
    **HARD,
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
WARM = {
    **HARD,
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
PARTITIONS = "abc"


def rows(ts, partitions=PARTITIONS, n=3):
    return [{"id": f"{p}{i}", "p": p, "v": ts, "ts": ts} for p in partitions for i in range(n)]


@pytest.fixture(autouse=True)
def _as_in_another_process(monkeypatch):
    """Cleanings of the process that reads spare what is read."""
    monkeypatch.setattr(stability, "instants", lambda *_: [])


@pytest.fixture
def table(tmp_path):
    """A table whose partitions "a" and "b" were written by commits that are archived."""
    made = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    made.upsert(rows(1), options=WARM)
    for ts in range(2, 10):
        made.upsert(rows(ts, "c"), options=WARM)
    return made


def given(found):
    """Rows as (key, value), sorted; of changes as they are."""
    if "op" in found.column_names:
        return sorted(map(str, found.to_pylist()))
    return sorted(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


def in_tasks(scan):
    return put_together([pickle.loads(pickle.dumps(t)).to_table() for t in scan.plan_files()], scan.schema)


def asked(table):
    """Reads of each kind, made now; each gives its rows when it is called."""
    writes = [i.time for i in table.timeline.completed_writes()]
    last, before = writes[-1], writes[-2]
    second = sorted(completion_times(open_snapshot(table.storage)).values())[-2]
    scans = {
        "snapshot": table.read(),
        "read optimized": table.read(query="read_optimized"),
        "filter": table.read(filter="p = 'a' or p = 'c'"),
        "as of the newest": table.read(as_of=last),
        "as of an earlier one": table.read(as_of=before),
        "paths": table.read(options={"hoodie.datasource.read.paths": f"{table.uri}/a"}),
        "range": table.read_incremental(before),
        "range, stable": table.read_incremental(before, order="stable"),
        "range, from start": table.read_incremental(before, order="start"),
        "range of completion": table.read_incremental(second, order="completion"),
        "whole by range": table.read_incremental("000", on_missing="full_scan"),
        "changes": table.read_changes(before),
    }
    calls = {name: scan.to_arrow for name, scan in scans.items()}
    counted = table.read()
    calls["count"] = lambda: pa.table({"id": ["rows"], "v": [counted.count()]})
    pickled = pickle.dumps(table.read())
    calls["pickled"] = lambda: pickle.loads(pickled).to_arrow()
    streamed, planned, tasks = table.read(), table.read(), table.read()
    calls["duckdb"] = lambda: duckdb.from_arrow(streamed.to_batches()).to_arrow_table()
    calls["polars"] = lambda: polars.DataFrame(planned).to_arrow()
    made = [pickle.dumps(t) for t in tasks.plan_files()]
    calls["tasks"] = lambda: put_together([pickle.loads(t).to_table() for t in made], tasks.schema)
    later = table.read()
    calls["tasks, later"] = lambda: in_tasks(later)
    return calls


def upserts(table):
    for ts in range(100, 108):
        table.upsert(rows(ts), options=HARD)


def by_versions(table):
    for ts in range(100, 108):
        table.upsert(rows(ts), options=VERSIONS)


def overwritten(table):
    for ts in range(100, 108):
        table.insert_overwrite_table(rows(ts), options=HARD)


def partitions_deleted(table):
    table.delete_partitions(["a", "b"], options=HARD)
    for ts in range(100, 108):
        table.upsert(rows(ts, "c"), options=HARD)


def cleaned(table):
    table.upsert(rows(100), options=OFF)
    table.upsert(rows(101), options=OFF)
    table.upsert(rows(102), options=OFF)
    table.clean(options=HARD)


def restored(table):
    table.restore(table.timeline.completed_writes()[-2].time)


def restored_and_written(table):
    restored(table)
    upserts(table)


def rolled_back(table):
    table.rollback(table.timeline.completed_writes()[-1].time)


def made_anew(table):
    shutil.rmtree(table.uri)
    new = HudiTable.create(
        table.uri, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    for ts in range(100, 108):
        new.upsert(rows(ts), options=HARD)


EVENTS = [upserts, by_versions, overwritten, partitions_deleted, cleaned, restored, restored_and_written]
EVENTS += [rolled_back, made_anew]


@pytest.mark.req("CC-01", "QR-13", "IN-17")
@pytest.mark.filterwarnings("ignore:.*skip")
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.__name__)
@pytest.mark.sampled(6)
def test_a_read_gives_its_rows_or_says_that_it_cannot(table, event):
    want = {name: given(call()) for name, call in asked(table).items()}
    calls = asked(table)
    event(HudiTable.open(table.uri))
    refused = {}
    for name, call in calls.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert given(call()) == want[name], name
        except (HudiError, duckdb.Error, OSError) as e:
            refused[name] = e
    for name, e in refused.items():  # streams end with the text of the error
        assert isinstance(e, MissingFileError) or "HUDI-E04" in str(e), (name, e)
    if event in (upserts, by_versions, overwritten, partitions_deleted, made_anew):
        assert isinstance(refused["snapshot"], StaleSnapshotError) or event is made_anew
        assert "read the table again" in refused["snapshot"].remedy


@pytest.fixture
def small(tmp_path):
    """A table of two commits, which are on its timeline."""
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys="id", partition_fields="p", ordering_fields="ts"
    )
    for ts in (1, 2):
        made.upsert(rows(ts), options=OFF)
    return made


READINGS = {
    "whole": lambda scan: given(scan.to_arrow()),
    "batches": lambda scan: given(scan.to_batches(2).read_all()),
    "count": lambda scan: scan.count(),
    "rows": lambda scan: sorted((r["id"], r["v"]) for r in scan),
}


@pytest.mark.req("CC-01")
@pytest.mark.parametrize(
    "event", [cleaned, rolled_back, restored_and_written, made_anew], ids=lambda e: e.__name__
)
@pytest.mark.sampled(3)
def test_a_planned_read_whose_files_went_with_their_state_says_that_it_is_stale(small, event):
    scans = {}
    for name, read in READINGS.items():
        for filter in (None, "p = 'a'"):
            want, scan = read(small.read(filter=filter)), small.read(filter=filter)
            assert scan.files.num_rows == (3 if filter is None else 1)
            scans[name, filter] = (want, scan)
    event(HudiTable.open(small.uri))
    refused = {}
    for (name, filter), (want, scan) in scans.items():
        try:
            assert READINGS[name](scan) == want
        except (MissingFileError, OSError) as e:
            refused[name, filter] = e
    assert refused or event is cleaned
    for asked_for, e in refused.items():  # streams end with the text of the error
        assert isinstance(e, StaleSnapshotError) or "HUDI-E0403" in str(e), (asked_for, e)
    if event in (rolled_back, restored_and_written):
        with pytest.raises(StaleSnapshotError, match="undone") as e:
            scans["whole", None][1].to_arrow()
        assert "read the table again" in e.value.remedy


@pytest.mark.req("CC-01")
def test_a_planned_read_whose_file_alone_is_gone_names_it(small):
    scan = small.read()
    os.remove(f"{small.uri}/{scan.files.column('path')[0].as_py()}")
    for read in READINGS.values():
        with pytest.raises((MissingFileError, OSError)) as e:
            read(scan)
        assert not isinstance(e.value, StaleSnapshotError)
        assert "HUDI-E0402" in str(e.value)
        assert scan.files.column("path")[0].as_py() in str(e.value)


@pytest.mark.req("CC-01")
def test_look_ups_plan_again_where_the_table_went_on(table, monkeypatch):
    """`get` promises no instant: it gives the rows of a newer state."""
    acts = [by_versions]
    real = LocalStorage.list

    def late(self, path, **options):
        if not path.startswith(".hoodie") and acts:
            acts.pop()(HudiTable.open(table.uri))
        return real(self, path, **options)

    monkeypatch.setattr(LocalStorage, "list", late)
    assert given(table.get(["a0", "c1"])) == [("a0", 107), ("c1", 107)]
    assert not acts


def undone_at(monkeypatch, table, name):
    """The newest commit is undone just before its file is read next; gives what is left to be undone."""
    newest = table.timeline.completed_writes()[-1]
    left, real = [rolled_back], getattr(LocalStorage, name)

    def late(self, path, **how):
        if path == newest.path and left:
            left.pop()(HudiTable.open(table.uri))
        return real(self, path, **how)

    monkeypatch.setattr(LocalStorage, name, late)
    return left


@pytest.mark.req("CC-01")
def test_a_commit_that_is_undone_while_a_read_begins_is_no_part_of_it(small, monkeypatch):
    left = undone_at(monkeypatch, small, "read")
    scan = HudiTable.open(small.uri).read()
    assert not left
    assert given(scan.to_arrow()) == given(pa.Table.from_pylist(rows(1), schema=SCHEMA))


@pytest.mark.req("CC-01")
def test_a_table_whose_commits_are_undone_faster_than_they_can_be_read_says_so(small, monkeypatch):
    newest, real = small.timeline.completed_writes()[-1], LocalStorage.read

    def gone(self, path, **how):
        if path == newest.path:
            raise FileNotFoundError(path)
        return real(self, path, **how)

    monkeypatch.setattr(LocalStorage, "read", gone)
    with pytest.raises(StaleSnapshotError, match="the instant's file is missing") as e:
        HudiTable.open(small.uri).read()
    assert e.value.remedy.startswith("read the table again")


@pytest.mark.req("TS-19", "QR-13")
@pytest.mark.parametrize("options", [HARD, VERSIONS], ids=["commits", "versions"])
@pytest.mark.sampled(2)
def test_no_earlier_state_lacks_rows_that_were_cleaned(tmp_path, options):
    table = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    keep = {**options, "hoodie.keep.min.commits": "6", "hoodie.keep.max.commits": "7"}
    want = {}
    for ts in range(1, 16):
        at = table.upsert(rows(ts, PARTITIONS[ts % 3]), options=keep).instant
        want[at] = given(table.read().to_arrow())
    answered, refused = 0, []
    for at in [i.time for i in table.timeline.completed_writes()]:
        try:
            assert given(table.read(as_of=at).to_arrow()) == want[at], at
            answered += 1
        except (StaleSnapshotError, InstantNotFoundError) as e:
            refused.append((at, e.code))
    assert answered
    assert refused
    for at, code in refused:
        if code == StaleSnapshotError.code:
            with pytest.warns(UserWarning, match="rows are missing"):
                assert len(given(table.read(as_of=at, on_missing="skip").to_arrow())) < len(want[at])


def scan_files(table):
    scan = table.read()
    logs = (f.path for part in scan.plan.logs for f in part.slice.log_files)
    return {*scan.files.column("path").to_pylist(), *logs}


MERGED = [*golden("v6", "mor_avro_logs"), *golden("v8", "mor_avro_logs"), *golden("v9", "mor_avro_logs")]


@pytest.mark.req("CC-01", "QR-13")
@pytest.mark.parametrize("table", MERGED, ids=str)
@pytest.mark.sampled(3)
def test_a_cleaning_of_a_merge_on_read_table_is_noticed(tmp_path, table):
    """Each file group in turn: its files go, by a cleaning that began after the snapshot was read."""
    path = table.unpack(tmp_path)
    read = HudiTable.open(str(path))
    groups = {}
    for folder, files in walk(read.storage).items():
        for f in files:
            if f.name.endswith(".parquet") or ".log." in f.name:
                file_id = f.name.lstrip(".").partition("_")[0]
                groups.setdefault((folder, file_id), []).append(f.name)
    want = read.read().to_arrow().num_rows
    folder = read.config.timeline_folder
    now = "29990101000000000"
    # All writes but the newest as if archived: what they wrote is not checked by their commits.
    for file in read.timeline.files[:-1]:
        if file.time < read.timeline.completed_writes()[-1].time and os.path.exists(f"{path}/{file.path}"):
            os.unlink(f"{path}/{file.path}")
    if read.read().to_arrow().num_rows != want:
        pytest.skip("its commits are needed")  # times of completion
    newest = scan_files(read)
    for (partition, _), names in groups.items():
        scan = read.read()
        plan = {
            "earliestInstantToRetain": None, "lastCompletedCommitTimestamp": "", "policy": "KEEP_LATEST_COMMITS",
            "filesToBeDeletedPerPartition": {}, "version": 2, "partitionsToBeDeleted": [], "extraMetadata": {},
            "filePathsToBeDeletedPerPartition": {
                partition: [{"filePath": f"{path}/{partition}/{n}", "isBootstrapBaseFile": False} for n in names]
            },
        }  # fmt: skip
        made = [f"{folder}/{now}.clean.requested", f"{folder}/{now}.clean.inflight"]
        for name in made:
            read.storage.create(name, avro_files.render("HoodieCleanerPlan", plan))
        kept = {n: (path / partition / n).read_bytes() for n in names}
        for n in names:  # one by one
            (path / partition / n).unlink()
            if f"{partition}/{n}" in newest:
                with pytest.raises(StaleSnapshotError, match="were cleaned since"):
                    pickle.loads(pickle.dumps(scan)).to_arrow()
        with pytest.raises(StaleSnapshotError, match="were cleaned since"):
            scan.to_arrow()
        for n, data in kept.items():
            (path / partition / n).write_bytes(data)
        assert read.read().to_arrow().num_rows == want
        for name in made:
            read.storage.delete(name)


@pytest.mark.parametrize("states", [["inflight"], ["requested", "inflight"]], ids=" and ".join)
@pytest.mark.parametrize("table", [*golden("v6", "cow_archived"), *golden("v9", "cow_archived")], ids=str)
def test_a_cleaning_that_was_begun_and_has_no_plan_stops_no_read(tmp_path, table, states):
    """A writer that died leaves empty files, and who copies a table may leave one of them out."""
    read = HudiTable.open(str(table.unpack(tmp_path)))
    want = read.read().to_arrow()
    for state in states:
        read.storage.create(f"{read.config.timeline_folder}/20260101000000000.clean.{state}", b"")
    assert given_ids(read.read().to_arrow()) == given_ids(want)
    assert read.count() == want.num_rows


def given_ids(found):
    return sorted(found.column("uuid").to_pylist())


def ranged(read):
    """Act that reads a range; where files are missing that went since the snapshot was opened, the error says so."""

    def call(table):
        scan = read(table)
        try:
            return scan.to_arrow()
        except StaleSnapshotError:
            raise
        except MissingFileError:  # of a state that was there before: the range begins too early
            known, now = scan.snapshot.timeline, HudiTable.open(table.storage).timeline
            assert {i.time for i in known.completed_writes()} <= {i.time for i in now.completed_writes()}
            assert {i.time for i in now.of(CLEAN)} <= {i.time for i in known.of(CLEAN)}

    return Act(call, name="range")


RANGES = {"changes": lambda t: t.read_changes("000"), "rows": lambda t: t.read_incremental("000")}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("event", ["erase", "restore", "clean", "upsert_inline"])
@pytest.mark.parametrize("what", RANGES)
@pytest.mark.sampled(4)
def test_a_range_whose_files_go_before_each_step_of_its_reading_says_that_they_went(kind, event, what):
    seen = set()
    for found in preemptions(Case({"one": [ranged(RANGES[what])], "two": [event]}, kind), "one", deep=False):
        seen |= {type(d.error) for d in found.outcome.done if d.actor == "one"}
    assert seen <= {type(None), StaleSnapshotError, ConcurrentWriterError}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("event", ["erase", "restore", "clean"])
@pytest.mark.sampled(3)
def test_traces_of_keys_are_looked_for_again_where_files_went_meanwhile(kind, event):
    report = Act(lambda t: t.erasure_report(["b"]), name="report")
    for found in preemptions(Case({"one": [report], "two": [event]}, kind), "one", deep=False):
        assert [d.error for d in found.outcome.done if d.actor == "one"] == [None]


LOOKS = {
    "count": lambda t: t.count(),
    "head": lambda t: t.head(1),
    "compaction_status": lambda t: t.compaction_status(),
    "clean": lambda t: t.clean(dry_run=True, options={"hoodie.cleaner.commits.retained": "1"}),
    "compact": lambda t: t.compact(dry_run=True),
    "log_compact": lambda t: t.log_compact(
        dry_run=True, options={"hoodie.log.compaction.blocks.threshold": "2"}
    ),
    "deduplicate": lambda t: t.deduplicate(dry_run=True),
    "resize": lambda t: t.resize_buckets(8, dry_run=True, options={"hoodie.index.type": "BUCKET"}),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("event", ["erase", "restore"])
@pytest.mark.sampled(6)
def test_what_holds_no_lock_and_gives_one_answer_is_asked_again_where_files_went_meanwhile(name, event):
    look = Act(LOOKS[name], name=name)
    for found in preemptions(
        Case({"one": [look], "two": [event]}, "MERGE_ON_READ", index="SIMPLE"), "one", deep=False
    ):
        assert [d.error for d in found.outcome.done if d.actor == "one"] == [None]
