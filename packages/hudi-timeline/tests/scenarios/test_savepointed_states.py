"""Time travel to savepoints: all that the table held then or an error, whatever became of its files since."""

import os
import shutil

import pyarrow as pa
import pytest
from serviced_tables import KEEP_2, OFF, rows, write

from hudi_format.errors import InstantNotFoundError, MissingFileError, StaleSnapshotError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.reading import stability
from hudi_timeline.services.archival import ArchivePlan, remove_instants, write_archive
from hudi_timeline.services.archive_planner import archive_entry
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import parse_instant_file

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("v", pa.int64())])
ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
BEYOND = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.beyond.savepoint": "true",
}
METADATA = {"hoodie.metadata.enable": "true"}
NOT_COMPACTED = {**OFF, "hoodie.compact.inline": "false"}
COMPACTED = {**OFF, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}


@pytest.fixture(autouse=True)
def _as_in_another_process(monkeypatch):
    """Cleanings of the process that reads spare what is read."""
    monkeypatch.setattr(stability, "instants", lambda *_: [])


def made(path, kind=COW):
    return HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"], table_type=kind
    )


def held(table, at=None, **how):
    found = HudiTable.open(table.uri).read(as_of=at, **how).to_arrow()
    return sorted(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))


def state(value, partitions="ab"):
    return sorted((r["k"], r["v"]) for r in rows(value, partitions))


def next_after(instant):
    return str(int(instant) + 1)


def archive(table, *times):
    """Move the instants of these times to the archive, all but savepoints."""
    storage, config = LocalStorage(table.uri), table.config
    files = [
        f for f in HudiTable.open(table.uri).timeline.files if f.time in times and f.action != "savepoint"
    ]
    write_archive(storage, config, [archive_entry(storage, config, f) for f in files], len(files))
    remove_instants(storage, ArchivePlan(tuple(f for f in files if f.completed), tuple(files)))


def overwritten(table):
    table.insert_overwrite_table(rows(7), options=OFF)


def a_partition_deleted(table):
    table.delete_partitions(["a"], options=OFF)


def upserted(table):
    table.upsert(rows(7), options=OFF)


@pytest.mark.req("TM-11", "QR-03")
@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("policy", [KEEP_2, ONE_VERSION], ids=["commits", "versions"])
@pytest.mark.parametrize("event", [upserted, overwritten, a_partition_deleted])
@pytest.mark.parametrize("options", [{}, METADATA], ids=["", "metadata"])
@pytest.mark.sampled(4)
def test_a_savepoint_is_read_after_cleanings_and_what_lies_between_is_not(
    tmp_path, kind, policy, event, options
):
    table = made(tmp_path / "t", kind)
    for_all = {**COMPACTED, **options} if kind == MOR else {**OFF, **options}
    done = write(table, range(3), for_all)
    table.savepoint(done[2], options=options)
    event(table)
    write(table, range(10, 16), for_all)
    assert table.clean(options={**policy, **options}).deleted > 0
    for asked in (OFF, METADATA):
        for at in (done[2], next_after(done[2])):
            assert held(table, at, options=asked) == state(2)
        with pytest.raises((InstantNotFoundError, StaleSnapshotError)):
            held(table, done[1], options=asked)
        with pytest.raises((InstantNotFoundError, StaleSnapshotError)):
            held(table, done[0], options=asked)
    if kind == COW:
        assert held(table, done[2], query="read_optimized") == state(2)
    commits = table.inspect.commits()
    assert dict(zip(commits["instant"].to_pylist(), commits["readable"].to_pylist(), strict=True))[done[2]]
    table.delete_savepoint(done[2])
    table.clean(options={**policy, "hoodie.cleaner.incremental.mode": "false", **options})
    with pytest.raises((InstantNotFoundError, StaleSnapshotError)):
        held(table, done[2])


@pytest.mark.req("TM-11", "QR-03")
def test_the_error_of_a_cleaned_time_names_the_savepoints(tmp_path):
    table = made(tmp_path / "t")
    done = write(table, range(3))
    table.savepoint(done[1])
    write(table, range(3, 8))
    table.clean(options=KEEP_2)
    with pytest.raises(InstantNotFoundError) as e:
        held(table, done[2])
    assert done[1] in e.value.remedy
    table.delete_savepoint(done[1])
    for at in done[:3]:
        with pytest.raises(InstantNotFoundError) as e:
            held(table, at)
        assert done[1] not in e.value.remedy


@pytest.mark.req("TM-11", "QR-03")
def test_beyond_a_savepoint_only_its_own_state_is_there(tmp_path):
    table = made(tmp_path / "t")
    saved = write(table, range(1), BEYOND)[0]
    table.savepoint(saved)
    later = write(table, range(1, 9), BEYOND)
    left = [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
    assert left[0] == saved
    assert later[0] not in left
    for at in (saved, str(int(later[0]) - 1)):
        assert held(table, at) == state(0)
    with pytest.raises(InstantNotFoundError) as e:
        held(table, later[0])
    assert e.value.details["oldest"] > later[0]
    assert held(table, later[-1]) == state(8)


@pytest.mark.parametrize("version", ["5", "6", "8", "9"])
def test_it_is_read_in_tables_of_all_versions(tmp_path, version):
    table = made(tmp_path / "t")
    done = write(table, range(3))
    table.savepoint(done[1])
    write(table, range(3, 8))
    table.clean(options=KEEP_2)
    folder, storage = tmp_path / "t" / ".hoodie", LocalStorage(table.uri)
    if version in "89":
        (folder / "timeline").mkdir()
        for name in os.listdir(folder):
            found = parse_instant_file(name, ".hoodie")
            if found is not None:
                to = name.replace(".", f"_{next_after(found.time)}.", 1) if found.completed else name
                shutil.move(folder / name, folder / "timeline" / to)
    layout = "2" if version in "89" else "1"
    table_config.update(storage, {"hoodie.table.version": version, "hoodie.timeline.layout.version": layout})
    assert held(table, done[1]) == state(1)
    for at in (done[0], done[2]):
        with pytest.raises(InstantNotFoundError):
            held(table, at)


def savepoint_by_hand(table, at):
    """A savepoint as Apache Hudi makes it: of the files that are there."""
    names = {p: [f for f in os.listdir(f"{table.uri}/{p}") if at in f] for p in "ab"}
    record = {
        "savepointedBy": "", "savepointedAt": 1, "comments": "", "version": 1,
        "partitionMetadata": {
            p: {"partitionPath": p, "savepointDataFile": found} for p, found in names.items()
        },
    }  # fmt: skip
    with open(f"{table.uri}/.hoodie/{at}.savepoint", "wb") as file:
        file.write(avro_files.render("HoodieSavepointMetadata", record))


@pytest.mark.req("TM-11", "QR-03")
@pytest.mark.parametrize("clean_archived", [False, True])
@pytest.mark.parametrize("commits_archived", [False, True])
def test_a_savepoint_made_after_its_files_were_cleaned_gives_no_fewer_rows(
    tmp_path, commits_archived, clean_archived
):
    """With the policy of file versions nobody can tell that from the cleaning's bounds."""
    table = made(tmp_path / "t")
    first = write(table, [0])[0]
    saved = table.upsert(rows(1, "b"), options=OFF).instant
    later = table.upsert(rows(2, "a"), options=OFF).instant
    cleaned = table.clean(options=ONE_VERSION).instant
    savepoint_by_hand(table, saved)
    if commits_archived:
        archive(table, first)
    if clean_archived:
        archive(table, cleaned)
    with pytest.raises(StaleSnapshotError, match="were cleaned") as e:
        held(table, saved)
    assert e.value.instant == cleaned
    assert held(table, later) == sorted(state(2, "a") + state(1, "b"))
    skipped = held(table, saved, on_missing="skip")
    assert skipped == state(1, "b")


@pytest.mark.req("QR-03")
@pytest.mark.parametrize("filter", [None, "p = 'a'"])
@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_clean_that_is_archived_before_the_commits_is_not_forgotten(tmp_path, kind, filter):
    """Cleans are archived by their own number, while a savepoint or a pending compaction holds the commits."""
    table = made(tmp_path / "t", kind)
    first = write(table, [0])[0]
    second = table.upsert(rows(1, "b"), options=OFF).instant
    table.upsert(rows(2), options=OFF)
    if kind == MOR:
        assert table.compact()
    cleaned = table.clean(options=ONE_VERSION).instant
    archive(table, cleaned, first)
    with pytest.raises(StaleSnapshotError, match="were cleaned"):
        held(table, second, filter=filter)
    assert held(table, cleaned) == held(table) == state(2)


@pytest.mark.req("QR-03", "RC-06")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_was_restored_is_read_as_of_its_time(tmp_path, is_deleted):
    """The last cleaning retained instants that the restore has undone."""
    table = made(tmp_path / "t")
    done = write(table, range(3))
    table.savepoint(done[2])
    undone = write(table, range(3, 8))
    table.clean(options=KEEP_2)
    table.restore(done[2])
    if is_deleted:
        table.delete_savepoint(done[2])
    for at in (done[2], *undone):
        assert held(table, at) == state(2)
    with pytest.raises(InstantNotFoundError) as e:
        held(table, done[1])
    assert e.value.details["oldest"] == done[2]
    after = write(table, [20, 21])
    for at, value in zip((done[2], *after), (2, 20, 21), strict=True):
        assert held(table, at) == state(value)
    commits = table.inspect.commits()
    readable = dict(zip(commits["instant"].to_pylist(), commits["readable"].to_pylist(), strict=True))
    assert [readable[i] for i in (done[1], done[2], *after)] == [False, True, True, True]
    archive(table, *done[:2])
    for at in (done[2], *undone):
        assert held(table, at) == state(2), "files of what was undone are of no state"


@pytest.mark.req("RC-06")
def test_a_restore_before_the_last_cleaning_makes_nothing_readable(tmp_path):
    table = made(tmp_path / "t")
    done = write(table, range(4))
    table.restore(done[1])
    later = write(table, range(10, 16))
    table.clean(options=KEEP_2)
    for at in (*done[:2], later[0]):
        with pytest.raises(InstantNotFoundError):
            held(table, at)


@pytest.mark.parametrize("event", [upserted, overwritten, a_partition_deleted])
@pytest.mark.parametrize("restored", [False, True])
def test_a_missing_file_of_an_earlier_state_is_no_damage_of_the_newest(tmp_path, event, restored):
    """The timeline has no cleaning, as where someone took it away; no copy mends what is not broken."""
    table = made(tmp_path / "t")
    first = write(table, [0])[0]
    event(table)
    since = HudiTable.open(table.uri).timeline.completed_writes()[-1].time
    later = write(table, [9])[0]
    if restored:
        table.restore(since)
    newest = held(table)
    for name in os.listdir(f"{table.uri}/a"):
        if first in name:
            os.remove(f"{table.uri}/a/{name}")
    assert held(table) == newest
    assert held(table, since) == (newest if restored else held(table, str(int(later) - 1)))
    for how in ({}, {"filter": "p = 'a'"}):
        with pytest.raises(StaleSnapshotError, match="neither the timeline nor its archive") as e:
            held(table, first, **how)
        assert since in e.value.remedy
        assert first in e.value.file


def test_a_missing_file_of_the_newest_state_too_is_damage(tmp_path):
    table = made(tmp_path / "t")
    first = write(table, [0])[0]
    table.upsert(rows(1, "b"), options=OFF)
    (name,) = [n for n in os.listdir(f"{table.uri}/a") if first in n]
    os.remove(f"{table.uri}/a/{name}")
    for at in (first, None):
        with pytest.raises(MissingFileError, match="of a completed commit is missing") as e:
            held(table, at)
        assert not isinstance(e.value, StaleSnapshotError)


def columns(table, at):
    return {n for n in HudiTable.open(table.uri).read(as_of=at).schema.names if not n.startswith("_")}


def archived_with_columns(path, kind, by_id):
    """A savepoint, and an archived commit after it that renamed a column and added one, or did the latter alone.

    Gives the table, the savepoint's commit, the archived one and the name of the column `v` there.
    """
    table, options = made(path, kind), NOT_COMPACTED if kind == MOR else OFF
    saved = write(table, [0], options)[0]
    table.savepoint(saved)
    name = "w" if by_id else "v"
    if by_id:
        table.alter().rename("v", "w").add("x", "string").execute()
    wide = [{"k": r["k"], "p": r["p"], name: r["v"], "x": "y"} for r in rows(1)]
    altered = table.upsert(wide, options=options).instant
    gone = [i.time for i in HudiTable.open(table.uri).timeline.completed_writes() if i.time > saved]
    if by_id:
        table.alter().add("z", "long").rename("w", "u").execute()
    else:
        table.upsert([{**r, "v": 2, "z": 1} for r in wide], options=options)
    archive(table, *gone)
    return table, saved, altered, name


@pytest.mark.req("QR-03")
@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("by_id", [False, True])
def test_behind_a_savepoint_the_columns_are_those_of_the_archived_commit_before_the_time(
    tmp_path, kind, by_id
):
    table, saved, altered, name = archived_with_columns(tmp_path / "t", kind, by_id)
    assert HudiTable.open(table.uri).timeline.completed_writes()[0].time == saved
    assert columns(table, saved) == {"k", "p", "v"}
    assert held(table, saved) == state(0)
    for at in (altered, next_after(altered)):
        assert columns(table, at) == {"k", "p", name, "x"}
        found = HudiTable.open(table.uri).read(as_of=at).to_arrow()
        assert (found[name].to_pylist(), found["x"].to_pylist()) == ([1] * 6, ["y"] * 6)
        assert HudiTable.open(table.uri).read(as_of=at, filter=f"{name} = 1 and x = 'y'").count() == 6
    assert columns(table, None) == {"k", "p", "u" if by_id else "v", "x", "z"}


@pytest.mark.req("RC-06")
def test_columns_of_an_archived_commit_that_was_undone_do_not_come_back(tmp_path):
    table, saved, altered, _ = archived_with_columns(tmp_path / "t", COW, False)
    table.restore(saved)
    for at in (saved, altered, None):
        assert columns(table, at) == {"k", "p", "v"}
        assert held(table, at) == state(0)
    write(table, [3])
    assert columns(table, altered) == {"k", "p", "v"}


@pytest.mark.parametrize("kind", [COW, MOR])
def test_where_newer_commits_say_nothing_of_the_schema_the_archived_one_does(tmp_path, kind):
    """Those of services have a copy of the schema before, which may be any."""
    table, _, altered, _ = archived_with_columns(tmp_path / "t", kind, False)
    folder = tmp_path / "t" / ".hoodie"
    newest = HudiTable.open(table.uri).timeline.completed_writes()[-1]
    path = folder / newest.file_name
    path.write_text(path.read_text().replace('"UPSERT"', '"COMPACT"'))
    assert columns(table, altered) == columns(table, None) == {"k", "p", "v", "x"}
