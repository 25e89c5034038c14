"""Replacements that were archived before what they replaced was cleaned: its rows stay away, its files are cleaned."""

import json
import logging
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.archived_replacements import archived_left, archived_replacements
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.services import clean_planner
from hudi_timeline.services.archival import ArchivePlan, remove_instants, write_archive
from hudi_timeline.services.archive_planner import archive_entry
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import RESTORE

KEEP_1 = {"hoodie.cleaner.commits.retained": "1", "hoodie.cleaner.incremental.mode": "true"}


def archive_as_apache(made, *names):
    """What Apache Hudi does with instants that a cleaning was past: it archives them whatever files they have left."""
    config = made.table.config
    times = {made.at(n) for n in names}
    files = tuple(f for f in load_snapshot(made.storage).timeline.files if f.time in times)
    plan = ArchivePlan(tuple(f for f in files if f.completed), files)
    write_archive(made.storage, config, [archive_entry(made.storage, config, f) for f in files], 10)
    remove_instants(made.storage, plan)


def overwritten(table_type="COPY_ON_WRITE", logs=False):
    """A table of which one file group was overwritten by an archived instant, and its files are there."""
    made = TableBuilder(table_type=table_type)
    made.commit("first", made.base("first", {"old": 1}, group=1), made.base("first", {"kept": 2}, group=2))
    if logs:
        made.commit("second", made.log("second", {"old": 3}, on="first", group=1))
    made.commit(
        "overwrite",
        made.base("overwrite", {"new": 4}, group=3),
        replaced={"p0": [made.group(1)]},
        operation="INSERT_OVERWRITE",
    )
    for n in range(3):
        made.commit(f"later{n}", made.base(f"later{n}", {f"l{n}": 5}, group=4 + n, partition="p1"))
    archive_as_apache(made, "first", *(["second"] if logs else []), "overwrite")
    return made


def keys(table, **options):
    return sorted(table.read(["id"], **options).to_arrow()["id"].to_pylist())


LEFT = ["kept", "l0", "l1", "l2", "new"]
SHAPES = [("COPY_ON_WRITE", False), ("MERGE_ON_READ", False), ("MERGE_ON_READ", True)]


@pytest.mark.parametrize(("table_type", "logs"), SHAPES)
def test_rows_that_an_archived_overwrite_replaced_are_not_read(table_type, logs):
    made = overwritten(table_type, logs)
    assert keys(made.table) == LEFT
    assert keys(made.table, as_of=made.at("later1")) == ["kept", "l0", "l1", "new"]


def test_the_plan_says_what_replaced_them():
    made = overwritten()
    lines = str(made.table.read(["id"]).explain())
    assert f"its file group was replaced at {made.at('overwrite')}" in lines


@pytest.mark.parametrize(("table_type", "logs"), SHAPES)
def test_a_cleaning_takes_them_and_then_leaves_a_mark(table_type, logs):
    made = overwritten(table_type, logs)
    gone = made.table.clean(options=KEEP_1)
    assert gone.deleted == 1 + logs
    assert not [f for f in made.storage.list("p0") if made.group(1) in f.name]
    assert not made.table.clean(options=KEEP_1).instant
    marked = load_snapshot(made.storage)
    assert archived_replacements(marked) == ({}, "")  # the archive was looked through
    assert keys(made.table) == LEFT
    # What is archived after the mark is looked at again.
    made.commit("again", made.base("again", {"newer": 6}, group=8), replaced={"p0": [made.group(3)]})
    made.commit("last", made.base("last", {"x": 7}, group=9, partition="p1"))
    archive_as_apache(made, "later0", "later1", "later2", "again")
    assert keys(made.table) == ["kept", "l0", "l1", "l2", "newer", "x"]


def test_a_group_that_was_written_since_is_the_tables():
    made = overwritten()
    made.commit("since", made.base("since", {"old": 9}, group=1, prev="first"))
    assert keys(made.table) == sorted([*LEFT, "old"])
    assert not archived_left(load_snapshot(made.storage)).groups
    made.table.clean(options=KEEP_1)
    assert keys(made.table) == sorted([*LEFT, "old"])


def test_a_file_of_a_write_that_is_not_completed_does_not_bring_them_back():
    made = overwritten()
    made.pending("open", alive=True)
    made.base("open", {"old": 9}, group=1)
    assert keys(made.table) == LEFT


def test_a_restore_to_before_the_overwrite_brings_them_back():
    made = overwritten()
    archive_as_apache(made, "later0", "later1", "later2")
    after = made.at("restore")
    made.storage.create(made.path_of(after, RESTORE, "COMPLETED"), b"")
    made.commit("new", made.base("new", {"n": 1}, group=10, partition="p1"))
    assert not archived_replacements(load_snapshot(made.storage)).groups


def test_a_restore_to_after_the_overwrite_does_not_bring_them_back():
    """Restores are never archived: what was written between the two is archived at some time."""
    made = overwritten()
    made.commit("bad", made.base("bad", {"bad": 1}, group=9, partition="p1"))
    made.table.restore(made.at("later2"))
    for n in (1, 2):
        made.commit(f"new{n}", made.base(f"new{n}", {f"n{n}": 5}, group=10 + n, partition="p1"))
    archive_as_apache(made, "later0", "later1", "later2", "new1")
    assert keys(made.table) == [*LEFT[:-1], "n1", "n2", "new"]


def test_an_overwrite_that_a_held_snapshot_does_not_show_hides_nothing():
    made = overwritten()
    archive_as_apache(made, "later0")
    held = load_snapshot(made.storage)
    made.commit("next", made.base("next", {"newer": 1}, group=8), replaced={"p0": [made.group(3)]})
    made.commit("last", made.base("last", {"x": 7}, group=9, partition="p1"))
    archive_as_apache(made, "later1", "later2", "next")
    assert set(archived_replacements(held).groups) == {("p0", made.group(1))}
    assert set(archived_replacements(load_snapshot(made.storage)).groups) == {
        ("p0", made.group(1)),
        ("p0", made.group(3)),
    }


def test_a_savepoint_does_not_hold_what_was_replaced():
    made = overwritten()
    made.table.savepoint()
    made.table.clean(options=KEEP_1)
    assert not [f for f in made.storage.list("p0") if made.group(1) in f.name]


def test_an_archive_that_cannot_be_read_is_told_of_and_costs_no_row(caplog):
    made = overwritten()
    folder = f".hoodie/{made.table.config.archive_folder}"
    for entry in made.storage.list(folder):
        made.storage.publish(f"{folder}/{entry.name}", b"no archive")
    with caplog.at_level(logging.WARNING, "hudi"):
        assert keys(made.table) == sorted([*LEFT, "old"])
    assert "which archived instants replaced files is not known" in caplog.text
    assert not made.table.clean(options=KEEP_1).deleted
    assert not archived_left(load_snapshot(made.storage)).mark


def test_a_long_archive_is_read_from_its_newest_file_on(monkeypatch):
    made = overwritten()
    archive_as_apache(made, "later0")
    folder = f".hoodie/{made.table.config.archive_folder}"
    newest = max(made.storage.list(folder), key=lambda e: (e.mtime_ms, len(e.name), e.name))
    monkeypatch.setattr("hudi_timeline.file_system_view.archived_replacements.MOST_BYTES", newest.size)
    assert not archived_replacements(load_snapshot(made.storage)).groups
    assert archived_left(load_snapshot(made.storage)).groups  # a cleaning looks at all of it


def test_the_newest_file_of_an_archive_is_read_however_long_it_is(monkeypatch):
    """Apache Hudi appends to a file, or merges files, up to hundreds of megabytes."""
    made = overwritten()
    monkeypatch.setattr("hudi_timeline.file_system_view.archived_replacements.MOST_BYTES", 1)
    assert keys(made.table) == LEFT


def test_a_cleaning_of_a_long_archive_deletes_what_a_read_of_it_does_not_know_of(monkeypatch):
    made = overwritten()
    monkeypatch.setattr("hudi_timeline.file_system_view.archived_replacements.MOST_FILES", 0)
    plan = made.table.clean(options=KEEP_1, dry_run=True).plan
    assert made.table.clean(options=KEEP_1, plan=plan).deleted == 1
    assert keys(made.table) == LEFT


def test_an_archive_file_that_is_older_than_the_mark_is_read_too():
    """A clock that was set back, or a copy that keeps times."""
    made = overwritten()
    folder = f".hoodie/{made.table.config.archive_folder}"
    (entry,) = (e for e in made.storage.list(folder) if not e.is_dir)
    made.storage.publish(f"{folder}/.replaced_cleaned_{entry.mtime_ms + 10**6}_1", b"")
    assert keys(made.table) == LEFT


def test_an_overwrite_that_another_cleaning_was_past_is_cleaned_before_it_is_archived(monkeypatch):
    """Apache Hudi shows an instant late; then a cleaning of Apache Hudi's, which does not go back, comes in between."""
    made = TableBuilder()
    made.commit("first", made.base("first", {"old": 1}, group=1))
    made.at("overwrite")
    for n in range(4):
        made.commit(f"later{n}", made.base(f"later{n}", {"l": n}, group=4, partition="p1"))
    table = HudiTable.open(made.uri)
    assert table.clean(options=KEEP_1).deleted
    made.commit("overwrite", made.base("overwrite", {"new": 4}, group=3), replaced={"p0": [made.group(1)]})
    made.commit("more", made.base("more", {"l": 9}, group=4, partition="p1"))
    made.commit("most", made.base("most", {"l": 9}, group=4, partition="p1"))
    with monkeypatch.context() as patched:
        # A cleaning that looks only at what was written since the last one, as Apache Hudi's.
        patched.setattr(clean_planner, "_touched", lambda *_: {"p1"})
        assert made.table.clean(options=KEEP_1).deleted
    assert [f for f in made.storage.list("p0") if made.group(1) in f.name]
    made.commit("end", made.base("end", {"l": 9}, group=4, partition="p1"))
    made.table.clean(options=KEEP_1)
    assert not [f for f in made.storage.list("p0") if made.group(1) in f.name]


@pytest.mark.parametrize("version", ["v8", "v9"])
def test_the_history_of_layout_2_tells_of_them_too(golden_timelines_2, tmp_path, version):
    folder = tmp_path / "t"
    shutil.copytree(golden_timelines_2 / version / "cow_archived", folder)
    storage = LocalStorage(str(folder))
    before = load_snapshot(storage)
    group = min(before.written().newest)  # of the table's files the timeline alone is there
    archived = archived_instants(storage, before.config)
    assert archived_replacements(before).groups == {}
    at = max(i.time for i in archived if i.action == "commit")
    history = folder / before.config.history_folder
    did = CommitMetadata({}, {group[0]: (group[1],)}, is_replace=True).to_json()
    row = {"instantTime": at, "completionTime": at, "action": "replacecommit", "metadata": did, "plan": None}
    name = f"{at}_{at}_0.parquet"
    pq.write_table(pa.Table.from_pylist([row]), history / name)
    (manifest,) = sorted(history.glob("manifest_*"))[-1:]
    files = json.loads(manifest.read_text())
    files["files"].append({"fileName": name, "fileLen": (history / name).stat().st_size})
    manifest.write_text(json.dumps(files))
    assert archived_replacements(load_snapshot(storage)).groups == {group: at}
