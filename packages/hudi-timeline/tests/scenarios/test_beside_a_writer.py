"""Reads while another writer archives, cleans and completes, step by step: one whole state, or a clear error."""

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_tables import golden
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import ConcurrentWriterError, MissingFileError, NotAHudiTableError, StorageError
from hudi_format.storage import local, stable_reads
from hudi_format.storage.local import list_at_once
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view import snapshot
from hudi_timeline.reading.metadata_listing import through_metadata
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.timeline.instant import WRITE_ACTIONS
from hudi_timeline.timeline.lsm_timeline import history_files

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SHORT = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}
COMMITS = 6


def removed_when_archived(path, n):
    """What an archival removes of the `n` oldest commits, in Apache Hudi's order: lower states first."""
    meta = path / ".hoodie"
    lower = [meta / f"{at(i)}{s}" for i in range(n) for s in (".commit.requested", ".inflight")]
    return lower + [meta / f"{at(i)}.commit" for i in range(n)]


class Scanned:
    """A folder as the system gives it in pieces: at one entry another process gets to do something."""

    def __init__(self, entries, place, act):
        self.entries, self.place, self.act = entries, place, act

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return

    def __iter__(self):
        for n, entry in enumerate(self.entries):
            if n == self.place:
                self.act()
            yield entry


@pytest.fixture
def in_pieces(monkeypatch):
    """Makes the next listing of `.hoodie` one during which something happens."""

    def prepare(place, act, *, backwards=False):
        real, acts = os.scandir, [act]

        def scandir(path):
            found = real(path)
            if not acts or not path.endswith("/.hoodie"):
                return found
            with found:
                entries = sorted(found, key=lambda e: e.name, reverse=backwards)
            return Scanned(entries, place, acts.pop())

        monkeypatch.setattr(local.os, "scandir", scandir)

    return prepare


@pytest.fixture
def commits(tmp_path):
    """Six commits, each of a file group of its own; of version 6."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    for n in range(COMMITS):
        table.commit(at(n), {("a", file_id(n)): [{"id": f"r{n}", "p": "a", "v": n}]})
    return table


@pytest.mark.req("CC-01", "TM-20", "QR-13")
@pytest.mark.parametrize("backwards", [False, True], ids=["", "backwards"])
@pytest.mark.parametrize("age_s", [0, 60])
@pytest.mark.sampled(3)
def test_an_archival_beside_a_listing_hides_no_commit(commits, in_pieces, backwards, age_s):
    """The listing has an old instant, and lacks later ones; or has an inflight file, and lacks its commit."""
    gone = removed_when_archived(commits.path, 3)
    commits.archive(1, *(e for n in range(3) for e in states(at(n))))
    kept = {p: p.read_bytes() for p in gone}
    for place in range(3 * COMMITS + 4):
        for p, data in kept.items():
            p.write_bytes(data)
        os.utime(commits.path / ".hoodie", (time.time() - age_s,) * 2)
        in_pieces(place, lambda: [p.unlink() for p in gone], backwards=backwards)
        assert ids(commits.open().read().to_arrow()) == [f"r{n}" for n in range(COMMITS)]


@pytest.mark.req("CC-01", "TM-20")
def test_a_file_system_may_note_whole_seconds(commits, in_pieces):
    """Then a change shows in the folder's time only if the one before it had another; FAT notes every second one."""
    gone, folder = removed_when_archived(commits.path, 3), commits.path / ".hoodie"
    commits.archive(1, *(e for n in range(3) for e in states(at(n))))
    kept = {p: p.read_bytes() for p in gone}

    def noted():
        os.utime(folder, (time.time() // 2 * 2,) * 2)

    def archival():
        for p in gone:
            p.unlink()
        noted()

    for place in range(3 * COMMITS + 4):
        for p, data in kept.items():
            p.write_bytes(data)
        noted()
        in_pieces(place, archival)
        assert ids(commits.open().read().to_arrow()) == [f"r{n}" for n in range(COMMITS)]


def test_a_folder_that_never_comes_to_rest_is_an_error(commits, monkeypatch):
    names = iter(range(10**6))
    real = local.LocalStorage.list

    def changing(self, path, **unless):
        (commits.path / ".hoodie" / f"x{next(names)}").touch()
        return real(self, path, **unless)

    monkeypatch.setattr(local.LocalStorage, "list", changing)
    monkeypatch.setattr(local, "MOST_S", 0.05)
    with pytest.raises(StorageError, match="changed during every listing"):
        list_at_once(commits.storage, ".hoodie")


def upserted(path, steps):
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"])
    for step in range(steps):
        table.upsert([{"id": f"r{step % 3}", "p": p, "v": step} for p in "ab"], options=OFF)
    return table


@pytest.mark.req("CC-01", "TM-20", "QR-13")
def test_reads_that_were_made_before_an_archival_give_their_state_after_it(tmp_path):
    table = upserted(tmp_path / "t", 10)
    begin = table.timeline.completed_writes()[0].time
    want = table.read().to_arrow()
    changes = table.read_changes(begin).to_arrow()
    rows = table.read_incremental(begin).to_arrow()
    again = HudiTable.open(str(tmp_path / "t"))  # which has read no commit yet
    made = again.read(), again.read_incremental(begin), again.read_changes(begin)
    assert len(table.archive(options=SHORT).plan.instants) >= 5
    whole, incremental, changed = made
    assert whole.to_arrow().equals(want)
    assert incremental.to_arrow().equals(rows)
    assert changed.to_arrow().equals(changes)


def test_what_is_archived_and_still_on_the_timeline_is_not_missing(commits):
    """An archival writes its archive, then removes files: in between instants are in both places."""
    commits.archive(1, *(e for n in range(3) for e in states(at(n))))
    feed = commits.open().read_incremental("20250101000000000")
    assert feed.complete
    assert ids(feed.to_arrow()) == [f"r{n}" for n in range(COMMITS)]


def archive_by_layout_2(path, n):
    """Archive the `n` oldest commits as Apache Hudi 1.x does it; gives each step as a function."""
    storage = local.LocalStorage(str(path))
    timeline = load_timeline(storage, HudiTable.open(str(path)).config)
    old = [i for i in timeline.instants if i.completed and i.action in WRITE_ACTIONS][:n]
    history = path / ".hoodie" / "timeline" / "history"
    rows = [
        {
            "instantTime": i.time,
            "completionTime": i.completion,
            "action": i.action,
            "metadata": (path / i.path).read_bytes(),
            "plan": None,
            "version": 1,
        }
        for i in old
    ]
    name = f"{old[0].time}_{old[-1].time}_0.parquet"
    number = max((int(p.name[9:]) for p in history.glob("manifest_*")), default=0) + 1
    listed = json.loads((history / f"manifest_{number - 1}").read_text())["files"] if number > 1 else []

    def parquet():
        history.mkdir(parents=True, exist_ok=True)
        columns = [("instantTime", pa.string()), ("completionTime", pa.string()), ("action", pa.string()),
                   ("metadata", pa.binary()), ("plan", pa.binary()), ("version", pa.int32())]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), history / name)

    def manifest():
        entry = {"fileName": name, "fileLen": (history / name).stat().st_size}
        (history / f"manifest_{number}").write_text(json.dumps({"files": [*listed, entry]}))

    def no_version():
        (history / "_version_").unlink(missing_ok=True)

    def empty_version():
        (history / "_version_").touch()

    def version():
        (history / "_version_").write_text(str(number))

    def lower_states():
        for i in old:
            for p in (path / i.folder).glob(f"{i.time}.*"):
                p.unlink()

    removals = [(path / i.path).unlink for i in old]
    return [parquet, manifest, no_version, empty_version, version, lower_states, *removals]


def of_version_8(tmp_path, *names):
    return next(t.unpack(tmp_path) for t in golden("v8", *names))


@pytest.mark.req("CC-01", "TM-20", "QR-13")
@pytest.mark.parametrize("name", ["cow_partitioned", "mor_avro_logs", "mor_compacted_then_logs"])
@pytest.mark.sampled(3)
def test_every_step_of_an_archival_of_version_8(tmp_path, name):
    path = of_version_8(tmp_path, name)
    table = HudiTable.open(str(path))
    want, changes = table.read().to_arrow(), table.read_incremental("000").to_arrow()
    writes = table.timeline.completed_writes()
    made = []
    for step in archive_by_layout_2(path, len(writes) - 2):
        fresh = HudiTable.open(str(path))
        made += [(fresh.read(), want), (fresh.read_incremental("000"), changes)]
        step()
        assert HudiTable.open(str(path)).read().to_arrow().equals(want)
        since = HudiTable.open(str(path)).read_incremental("000").to_arrow()
        assert same_rows(since, changes)
    for scan, answer in made:
        assert same_rows(scan.to_arrow(), answer)


def same_rows(got, want):
    def rows(table):
        return sorted(map(repr, table.to_pylist()))

    return rows(got) == rows(want)


@pytest.mark.req("CC-01", "TM-20")
def test_a_manifest_that_is_newer_than_the_listing_is_looked_for_again(tmp_path, monkeypatch):
    """The folder is listed, then the version is read; a writer may archive in between."""
    path = of_version_8(tmp_path, "cow_archived")
    config = HudiTable.open(str(path)).config
    storage = local.LocalStorage(str(path))
    steps = archive_by_layout_2(path, 1)
    real, acts = local.LocalStorage.read, [steps]

    def read(self, file):
        if file.endswith("_version_") and acts:
            for step in acts.pop():
                step()
        return real(self, file)

    monkeypatch.setattr(local.LocalStorage, "read", read)
    before = len(json.loads(newest_manifest(path).read_text())["files"])
    assert len(history_files(storage, config)) == before + 1


def newest_manifest(path):
    return max((path / ".hoodie/timeline/history").glob("manifest_*"), key=lambda p: int(p.name[9:]))


@pytest.mark.req("CC-01", "TM-20")
def test_a_version_file_that_is_made_anew_is_not_missed(tmp_path, monkeypatch):
    path = of_version_8(tmp_path, "cow_archived")
    config = HudiTable.open(str(path)).config
    storage = local.LocalStorage(str(path))
    want = history_files(storage, config)
    real = local.LocalStorage.read

    def read(self, file):
        if file.endswith("_version_"):
            raise FileNotFoundError(file)
        return real(self, file)

    monkeypatch.setattr(local.LocalStorage, "read", read)
    assert history_files(storage, config) == want


@pytest.mark.req("CC-01")
def test_a_pending_compaction_whose_plan_is_gone_is_an_error_and_not_fewer_rows(tmp_path):
    path = of_version_8(tmp_path, "mor_pending_compaction")
    scan = HudiTable.open(str(path)).read()
    for plan in Path(path, ".hoodie/timeline").glob("*.compaction.requested"):
        plan.unlink()
    with pytest.raises(MissingFileError, match="read the table again"):
        scan.to_arrow()


@pytest.mark.req("CC-01", "TM-20")
def test_a_clean_that_is_archived_while_a_state_is_asked_for_is_a_typed_error(tmp_path, monkeypatch):
    table = upserted(tmp_path / "t", 8)
    table.clean(options=SHORT)
    newest = table.timeline.completed_writes()[-1].time
    real = local.LocalStorage.read

    def read(self, file):
        if file.endswith(".clean"):
            (tmp_path / "t" / file).unlink()
        return real(self, file)

    monkeypatch.setattr(local.LocalStorage, "read", read)
    with pytest.raises(MissingFileError, match="read the table again"):
        table.read(as_of=newest)
    table.read(as_of=newest)


def updates(path, new):
    """The steps by which Apache Hudi changes hoodie.properties; pieces of a long file end anywhere, at lines too."""
    file, backup = path / ".hoodie/hoodie.properties", path / ".hoodie/hoodie.properties.backup"
    old = file.read_bytes()
    cuts = [0, *(n + 1 for n, b in enumerate(new) if b == 10), *range(7, len(new), 41), len(new)]
    return [
        *(lambda n=n: backup.write_bytes(old[:n]) for n in (0, len(old) // 2, len(old))),
        file.unlink,
        *(lambda n=n: file.write_bytes(new[:n]) for n in sorted(set(cuts))),
        backup.unlink,
    ]


@pytest.mark.req("CC-01")
def test_properties_that_are_written_anew_are_read_whole_at_every_step(commits, monkeypatch):
    old = dict(table_config.load(commits.storage).properties)
    new = {**old, "hoodie.table.metadata.partitions": "files", "hoodie.table.type": "MERGE_ON_READ"}
    steps = updates(commits.path, table_config.render(new))
    place = 0

    def go_on(_seconds=0.0):
        nonlocal place
        if place < len(steps):
            steps[place]()
            place += 1

    seen = []
    monkeypatch.setattr(stable_reads.time, "sleep", go_on)
    while place < len(steps):
        seen.append(dict(table_config.load(commits.storage).properties))
        assert seen[-1] in (old, new)
        go_on()
    seen.append(dict(table_config.load(commits.storage).properties))
    assert seen == sorted(seen, key=lambda p: p == new)
    assert (seen[0], seen[-1]) == (old, new)


def test_properties_whose_writer_died_are_not_waited_for_for_ever(commits, monkeypatch):
    file = commits.path / ".hoodie/hoodie.properties"
    old = table_config.load(commits.storage)
    (commits.path / ".hoodie/hoodie.properties.backup").write_bytes(file.read_bytes())
    passed, waits = [0.0], []

    def wait(seconds):
        waits.append(seconds)
        passed[0] += seconds

    monkeypatch.setattr(stable_reads.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(stable_reads.time, "sleep", wait)
    assert table_config.load(commits.storage) == old
    assert stable_reads.PATIENCE_S < sum(waits) < 2 * stable_reads.PATIENCE_S
    file.write_bytes(file.read_bytes()[:-40])
    assert table_config.load(commits.storage).name == old.name


@pytest.mark.parametrize("backup", [True, False])
def test_properties_that_look_unfinished_are_waited_for_once(commits, monkeypatch, backup):
    file = commits.path / ".hoodie/hoodie.properties"
    old = table_config.load(commits.storage)
    if backup:
        (commits.path / ".hoodie/hoodie.properties.backup").write_bytes(file.read_bytes())
    else:
        file.write_bytes(file.read_bytes().rstrip(b"\n"))
    waits = []
    monkeypatch.setattr(stable_reads.time, "sleep", waits.append)
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 0.1)
    assert table_config.load(commits.storage) == old
    assert waits
    waits.clear()
    assert table_config.load(commits.storage) == old
    assert not waits
    file.write_bytes(b"#" + file.read_bytes())
    assert table_config.load(commits.storage) == old
    assert waits


@pytest.mark.req("TM-11", "TM-12", "TM-20")
def test_what_was_archived_before_a_savepoint_is_there_when_only_savepoints_are_left(commits):
    """A restore takes away all commits after its savepoint; those before it were archived in the meantime."""
    commits.archive(1, *(e for n in (0, 1, 3, 4) for e in states(at(n))))
    for n in (0, 1, 3, 4):
        for path in (commits.path / ".hoodie").glob(f"{at(n)}.*"):
            path.unlink()
    for n in (2, 5):
        commits.instant_file(f"{at(n)}.savepoint.inflight")
        commits.instant_file(f"{at(n)}.savepoint", b"only its name counts")
    assert ids(commits.open().read().to_arrow()) == [f"r{n}" for n in range(COMMITS)]


def moves(path):
    """The steps of an upgrade to version 8, in Apache Hudi's order: instants one by one, then the properties."""
    meta, timeline = path / ".hoodie", path / ".hoodie/timeline"
    steps = [timeline.mkdir, (timeline / "history").mkdir]
    for file in sorted(p for p in meta.iterdir() if p.name[0] == "2"):
        name = file.name if file.suffix != ".commit" else f"{file.stem}_{file.stem[:-3]}500.commit"
        steps.append(lambda file=file, name=name: (timeline / name).write_bytes(file.read_bytes()))
        steps.append(file.unlink)

    def properties():
        new = {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"}
        storage = local.LocalStorage(str(path))
        old = dict(table_config.load(storage).properties)
        storage.publish(".hoodie/hoodie.properties", table_config.render({**old, **new}))

    return [*steps, properties]


@pytest.mark.req("CC-01")
def test_no_step_of_an_upgrade_shows_half_a_table(commits, monkeypatch):
    monkeypatch.setattr(snapshot, "MOVING_S", 0.01)
    want = [f"r{n}" for n in range(COMMITS)]
    refused, made = 0, []
    for step in moves(commits.path):
        try:
            scan = commits.open().read()
            assert ids(scan.to_arrow()) == want
            made.append(commits.open().read())
        except ConcurrentWriterError:
            refused += 1
        step()
    assert ids(commits.open().read().to_arrow()) == want
    assert commits.open().table_version == 8
    assert refused == 2 * 3 * COMMITS
    assert [ids(scan.to_arrow()) for scan in made] == [want] * len(made)


@pytest.mark.req("CC-01")
def test_a_read_waits_until_an_upgrade_has_moved_the_timeline(commits, monkeypatch):
    steps = moves(commits.path)
    while len(steps) > 4:
        steps.pop(0)()
    monkeypatch.setattr(snapshot.time, "sleep", lambda _: steps.pop(0)() if steps else None)
    assert ids(commits.open().read().to_arrow()) == [f"r{n}" for n in range(COMMITS)]
    assert not steps


GROWING = [*golden("v6", "mor_avro_logs", "cow_partitioned"), *golden("v8", "mor_parquet_logs")]


@pytest.mark.req("CC-01", "QR-13")
@pytest.mark.parametrize("table", GROWING, ids=str)
@pytest.mark.sampled(3)
def test_no_step_of_a_commit_shows_a_part_of_it(tmp_path, table):
    """Files grow while the instant is pending; then its completed file is made, and filled."""
    path = table.unpack(tmp_path)
    opened = HudiTable.open(str(path))
    newest = opened.timeline.completed_writes()[-1]
    want = opened.read().to_arrow()
    files = [path / s.path for s in read_commit(opened.storage, newest).stats]
    wholes = {f: f.read_bytes() for f in files}
    completed = path / newest.path
    commit = completed.read_bytes()
    completed.unlink()
    before = HudiTable.open(str(path)).read().to_arrow()
    assert not same_rows(before, want)
    for f in files:
        f.unlink()
    assert same_rows(HudiTable.open(str(path)).read().to_arrow(), before)
    scans = []
    for n, (f, whole) in enumerate(wholes.items()):
        for end in (0, 10, len(whole) // 2, len(whole) - 1) if n < 2 else ():
            f.write_bytes(whole[:end])
            table_ = HudiTable.open(str(path))
            assert same_rows(table_.read().to_arrow(), before)
            scans.append(table_.read())
            scans[-1].plan  # noqa: B018  (the file has grown when it is read)
        f.write_bytes(whole)
    assert same_rows(HudiTable.open(str(path)).read().to_arrow(), before)
    completed.write_bytes(commit)
    assert same_rows(HudiTable.open(str(path)).read().to_arrow(), want)
    assert all(same_rows(scan.to_arrow(), before) for scan in scans)


@pytest.mark.req("TM-22", "IN-13", "CC-01")
def test_by_completion_a_commit_that_is_being_filled_comes_once(commits, monkeypatch):
    """Its file's time of modification, which is all that version 6 has, changes until the file is whole."""
    by_completion = {"hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME"}
    newest = commits.path / f".hoodie/{at(COMMITS - 1)}.commit"
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    for n, file in enumerate(sorted((commits.path / ".hoodie").glob("*.commit"))):
        os.utime(file, (time.time() - 10 + n,) * 2)
    monkeypatch.setattr(stable_reads.time, "sleep", lambda _: newest.write_bytes(whole))
    begin, found = "000", []
    for _ in range(3):
        end = commits.open().latest_offset(options=by_completion)
        found += ids(commits.open().read_incremental(begin, end, options=by_completion).to_arrow())
        assert found == [f"r{n}" for n in range(COMMITS)][: len(found)]
        begin = end
    assert found == [f"r{n}" for n in range(COMMITS)]


@pytest.mark.req("CC-01")
def test_a_metadata_table_that_is_taken_away_is_not_needed(tmp_path):
    """The properties were read before; a writer that does without it changes them, then deletes it."""
    path = golden("v6", "cow_partitioned")[0].unpack(tmp_path)
    storage = local.LocalStorage(str(path))
    before = snapshot.open_snapshot(storage)
    assert "files" in before.config.metadata_partitions
    storage.delete_dir(".hoodie/metadata")
    with pytest.raises(NotAHudiTableError):
        through_metadata(before)
    table_config.update(storage, {"hoodie.table.metadata.partitions": ""})
    assert through_metadata(before).slices() == before.slices()
