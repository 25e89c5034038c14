"""`verify` on tables that our own writer and services leave behind, and how `repair` goes about its work."""

import json
import threading

import pyarrow as pa
import pytest
from golden_tables import golden
from listed_tables import KEPT, made, write
from listed_tables import rows as keyed
from listed_tables import table as table_of
from typer.testing import CliRunner

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.cli.main import app
from hudi_timeline.reading.metadata_listing import differences
from hudi_timeline.testing import CRASH, Fault, Faults
from hudi_timeline.timeline import avro_files
from hudi_timeline.verify.verify import verify

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
SHORT = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


def rows(step, partitions="ab"):
    return [{"k": f"{p}{i}", "p": p, "v": step} for p in partitions for i in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def table(path):
    return HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("NEW-09")
def test_nothing_is_found_after_sixty_commits_with_cleaning_archival_savepoint_and_restore(table, path):
    for step in range(58):
        table.upsert(rows(step), options=SHORT)
        if step % 20 == 7:
            table.delete(rows(0, "a")[:1], options=SHORT)
    saved = table.savepoint()
    table.insert_overwrite(rows(58, "b"), options=SHORT)
    table.delete_partitions(["a"], options=SHORT)
    assert table.verify(deep=True) == []
    table.restore(saved)
    table.delete_savepoint(saved)
    before = tree(path)
    assert table.verify(deep=True) == []
    assert tree(path) == before
    table.upsert(rows(60), options=SHORT)
    assert table.verify(deep=True) == []


@pytest.mark.req("NEW-09")
def test_a_table_that_cannot_be_opened_is_looked_at_all_the_same(table, path):
    table.upsert(rows(0))
    (path / ".hoodie/hoodie.properties").unlink()
    run = CliRunner().invoke(app, ["verify", str(path), "--json"])
    assert run.exit_code == 1
    assert [f["code"] for f in json.loads(run.stdout)["findings"]] == ["properties-unreadable"]


def test_a_writer_at_work_is_no_fault(table, path):
    table.upsert(rows(0))
    done = threading.Event()

    def write():
        step = 1
        while not done.is_set():
            HudiTable.open(str(path)).upsert(rows(step), options=SHORT)
            step += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [f for _ in range(15) for f in table.verify()]
    finally:
        done.set()
        writer.join()
    assert found == []
    assert table.verify(deep=True) == []


@pytest.mark.parametrize("table", golden("v6", "mdt_all_indexes"), ids=str)
def test_index_records_that_lack_what_the_newest_writer_knows_are_checked(table, tmp_path):
    """As Apache Hudi 1.0.2 leaves a table of version 6: it adds a field that must not be null, with a default."""
    path = table.unpack(tmp_path)
    assert HudiTable.open(str(path)).verify(deep=True) == []
    newest = max((path / ".hoodie/metadata/.hoodie").glob("*.deltacommit"))
    commit = json.loads(newest.read_text())
    schema = json.loads(commit["extraMetadata"]["schema"])
    (stats,) = (f["type"][1] for f in schema["fields"] if f["name"] == "ColumnStatsMetadata")
    stats["fields"].append({"name": "isTightBound", "type": "boolean", "default": False})
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    newest.write_text(json.dumps(commit))
    assert HudiTable.open(str(path)).verify(deep=True) == []


@pytest.mark.parametrize("table", golden("v6", "mdt_all_indexes"), ids=str)
def test_partitions_of_a_metadata_table_that_no_record_has_marked_yet_are_no_finding(table, tmp_path):
    """Apache Hudi leaves them so where a table's first write has no rows."""
    path = table.unpack(tmp_path)
    for name in ("column_stats", "bloom_filters"):
        for mark in (path / ".hoodie/metadata" / name).glob("*.hoodie_partition_metadata*"):
            mark.unlink()
    assert HudiTable.open(str(path)).verify(deep=True) == []


def test_a_cleaning_that_was_entered_into_the_metadata_table_again_is_no_finding(table, path):
    """Apache Hudi rolls the entry back that another process made of a cleaning of its own, and makes it anew."""
    listed = {**SHORT, "hoodie.metadata.enable": "true"}
    for step in range(4):
        written = table.upsert(rows(step), options=listed).instant
    (cleaned,) = [i.time for i in HudiTable.open(str(path)).timeline.of("clean")][-1:]
    own = path / ".hoodie/metadata/.hoodie"

    def undo(target, at):
        record = {
            "startRollbackTime": at, "timeTakenInMillis": 1, "totalFilesDeleted": 0, "commitsRollback": [target],
            "partitionMetadata": {}, "version": 1,
            "instantsRollback": [{"commitTime": target, "action": "deltacommit"}],
        }  # fmt: skip
        plan = {
            "instantToRollback": {"commitTime": target, "action": "deltacommit"},
            "RollbackRequests": [],
            "version": 1,
        }
        (own / f"{at}.rollback.requested").write_bytes(avro_files.render("HoodieRollbackPlan", plan))
        (own / f"{at}.rollback.inflight").touch()
        (own / f"{at}.rollback").write_bytes(avro_files.render("HoodieRollbackMetadata", record))

    assert (own / f"{cleaned}.deltacommit").exists()
    undo(cleaned, f"{int(written) + 1}")
    assert [str(f) for f in table.verify() if f.severity != "info"] == []
    # What the table itself does not have is none of it.
    alone = min(f.name.partition(".")[0] for f in own.glob("*.deltacommit"))
    undo(alone, f"{int(written) + 2}")
    assert [f.code for f in table.verify() if f.severity != "info"] == ["timeline-rolled-back"]


def test_files_that_were_found_damaged_are_looked_at_again_and_sound_ones_are_not(table, path):
    table.upsert(rows(0))
    sound = set()
    storage = open_storage(str(path))
    assert verify(storage, deep=True, sound=sound) == []
    files = sorted(path.rglob("*.parquet"))
    assert sound == {str(f.relative_to(path)) for f in files}
    data = bytearray(files[0].read_bytes())
    data[4:40] = bytes(36)  # the first page
    files[0].write_bytes(data)
    assert verify(storage, deep=True, sound=sound) == []
    sound.discard(str(files[0].relative_to(path)))
    for _ in range(2):
        assert "base-file-data" in {f.code for f in verify(storage, deep=True, sound=sound)}
    assert sound == {str(f.relative_to(path)) for f in files[1:]}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("nth", [1, 2], ids=["died in the metadata table", "died in the table"])
@pytest.mark.parametrize("markers_stay", [True, False], ids=["with markers", "without markers"])
@pytest.mark.sampled(3)
def test_a_rollback_that_died_once_the_instant_was_gone_is_no_finding(
    tmp_path, table_type, nth, markers_stay
):
    """Lazy writers go on beside it; once it is finished, the metadata table lists what is there."""
    storage = open_storage(str(tmp_path / "t"))
    made(storage, table_type)
    lazy = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.clean.automatic": "false",
    }
    write(storage, keyed(4, v=1), **KEPT, **lazy)
    died = Faults(Fault(CRASH, operation="create", path=".hoodie/2*commit", nth=nth))
    with died.process():
        write(died.wrap(storage), keyed(4, 3, v=7), **lazy)
    (dead,) = table_of(storage).timeline.pending_writes()
    if not markers_stay:
        storage.delete_dir(f".hoodie/.temp/{dead.time}")
    rolling = Faults(Fault(CRASH, operation="delete", path=f".hoodie/{dead.time}.*.requested", after=True))
    with rolling.process():
        table_of(rolling.wrap(storage), **lazy).rollback()
    assert died.dead
    assert rolling.dead
    assert table_of(storage).timeline.find(dead.time) is None
    assert len(table_of(storage).timeline.pending("rollback")) == 1

    assert table_of(storage).verify(deep=True) == []
    write(storage, keyed(2, 20, v=8), **lazy)
    assert len(table_of(storage).timeline.pending("rollback")) == 1
    assert table_of(storage).verify(deep=True) == []
    table_of(storage, **lazy).rollback()
    assert table_of(storage).timeline.pending("rollback") == ()
    assert differences(storage) == []
    assert table_of(storage).verify(deep=True) == []


def test_log_files_that_no_rollback_names_are_a_finding_beside_one_that_is_pending(tmp_path):
    storage = open_storage(str(tmp_path / "t"))
    made(storage, "MERGE_ON_READ")
    write(storage, keyed(4, v=1))
    died = Faults(Fault(CRASH, operation="create", path=".hoodie/2*commit", nth=2))
    with died.process():
        write(died.wrap(storage), keyed(1, 0, v=7))
    rolling = Faults(Fault(CRASH, operation="delete", path=".hoodie/2*.deltacommit.requested", after=True))
    with rolling.process():
        table_of(rolling.wrap(storage)).rollback()
    assert table_of(storage).verify() == []
    (log,) = [f.name for f in storage.list("p1") if ".log." in f.name]
    other = log.replace(".log.1_", ".log.2_")
    assert other != log
    storage.copy(f"p1/{log}", f"p1/{other}")
    assert [(f.code, f.path) for f in table_of(storage).verify() if f.severity == "error"] == [
        ("mdt-not-listed", f"p1/{other}")
    ]
