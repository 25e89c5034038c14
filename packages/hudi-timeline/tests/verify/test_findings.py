"""Faults planted one by one into a sound table: `verify` names exactly that one, and `repair` what can be repaired."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from planted import AFTER, FAULTS, OPTIONS, SCHEMA, UUID, Planted, column, fault, rows

from hudi_format.parquet.footer import BLOOM_FILTER, MAX_KEY
from hudi_format.storage.local import LocalStorage
from hudi_index.bloom.filter import BloomFilter
from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import next_instant
from hudi_timeline.verify.repair import repair
from hudi_timeline.verify.verify import verify


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A table with archived commits, cleanings, a savepoint, a replaced group and a rollback."""
    path = tmp_path_factory.mktemp("sound") / "t"
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])
    for step in range(11):
        table.upsert(rows(step), options=OPTIONS)
    dead = next_instant(table.timeline.newest_time)
    (path / f".hoodie/{dead}.commit.requested").touch()
    (path / f".hoodie/{dead}.inflight").touch()
    table.insert_overwrite(rows(11, "b"), options=OPTIONS)
    table.upsert(rows(12), options=OPTIONS)
    table.savepoint()
    table.upsert(rows(13), options=OPTIONS)
    assert table.verify(deep=True) == []
    return path


# --- hoodie.properties ---------------------------------------------------------------------------------


@fault()
def name_without_its_checksum(t):
    file = t.hoodie / "hoodie.properties"
    file.write_text(file.read_text().replace("hoodie.table.name=t", "hoodie.table.name=u"))
    return [("properties-checksum", ".hoodie/hoodie.properties")]


@fault(repaired=True)
def broken_file_with_a_whole_backup(t):
    file = t.hoodie / "hoodie.properties"
    whole = file.read_bytes()
    (t.hoodie / "hoodie.properties.backup").write_bytes(whole)
    file.write_bytes(whole.replace(b"hoodie.table.name=t", b"hoodie.table.name=u"))
    return [
        ("properties-checksum", ".hoodie/hoodie.properties"),
        ("properties-backup", ".hoodie/hoodie.properties.backup"),
    ]


@fault(repaired=True)
def value_changed_by_hand(t):
    file = t.hoodie / "hoodie.properties"
    file.write_text(
        file.read_text().replace("hoodie.archivelog.folder=archived", "hoodie.archivelog.folder=archive")
    )
    (t.hoodie / "archived").rename(t.hoodie / "archive")
    return [("properties-content", ".hoodie/hoodie.properties")]


@fault(repaired=True)
def update_cut_before_the_new_file(t):
    (t.hoodie / "hoodie.properties").rename(t.hoodie / "hoodie.properties.backup")
    return [("properties-backup", ".hoodie/hoodie.properties.backup")]


@fault(repaired=True)
def update_cut_after_the_new_file(t):
    shutil.copy(t.hoodie / "hoodie.properties", t.hoodie / "hoodie.properties.backup")
    return [("properties-backup", ".hoodie/hoodie.properties.backup")]


@fault()
def impossible_table_type(t):
    t.properties(hoodie__table__type="MERGE_ON_WRITE")
    return [("properties-value", ".hoodie/hoodie.properties")]


# --- the timeline --------------------------------------------------------------------------------------


@fault(repaired=True)
def commit_without_requested(t):
    (t.hoodie / f"{t.last}.commit.requested").unlink()
    return [("timeline-no-requested", f".hoodie/{t.last}.commit.requested")]


@fault(repaired=True)
def commit_without_inflight(t):
    (t.hoodie / f"{t.last}.inflight").unlink()
    return [("timeline-no-inflight", f".hoodie/{t.last}.inflight")]


@fault(repaired=True)
def clean_without_inflight(t):
    time = t.time_of(".clean")
    (t.hoodie / f"{time}.clean.inflight").unlink()
    return [("timeline-no-inflight", f".hoodie/{time}.clean.inflight")]


@fault(repaired=True)
def replacement_without_requested(t):
    time = t.time_of(".replacecommit")
    (t.hoodie / f"{time}.replacecommit.requested").unlink()
    return [("timeline-no-requested", f".hoodie/{time}.replacecommit.requested")]


@fault(repaired=True)
def rollback_without_plan(t):
    time = t.time_of(".rollback")
    (t.hoodie / f"{time}.rollback.requested").unlink()
    return [("timeline-no-requested", f".hoodie/{time}.rollback.requested")]


@fault()
def empty_commit(t):
    (t.hoodie / f"{t.last}.commit").write_bytes(b"")
    return [("timeline-empty", f".hoodie/{t.last}.commit")]


@fault()
def commit_of_no_json(t):
    (t.hoodie / f"{t.before}.commit").write_bytes(b'{"partitionToWriteStats" : {')
    return [("timeline-unreadable", f".hoodie/{t.before}.commit")]


@fault(repaired=True)
def empty_clean(t):
    time = t.time_of(".clean")
    (t.hoodie / f"{time}.clean").write_bytes(b"")
    return [("timeline-empty", f".hoodie/{time}.clean")]


@fault(repaired=True)
def rollback_that_cannot_be_decoded(t):
    time = t.time_of(".rollback")
    file = t.hoodie / f"{time}.rollback"
    file.write_bytes(file.read_bytes()[:-40])
    return [("timeline-unreadable", f".hoodie/{time}.rollback")]


@fault(repaired=True)
def plan_of_an_open_clean_that_cannot_be_decoded(t):
    (t.hoodie / f"{AFTER}.clean.requested").write_bytes(b"Obj\x01")
    return [("timeline-unreadable", f".hoodie/{AFTER}.clean.requested")]


@fault(repaired=True)
def open_clean_without_plan(t):
    (t.hoodie / f"{AFTER}.clean.inflight").write_bytes(b"")
    return [("timeline-no-plan", f".hoodie/{AFTER}.clean.requested")]


@fault()
def instant_of_two_actions(t):
    for state in ("", ".requested", ".inflight"):
        source = f"{t.last}.inflight" if state == ".inflight" else f"{t.last}.commit{state}"
        shutil.copy(t.hoodie / source, t.hoodie / f"{t.last}.deltacommit{state}")
    return [("timeline-contradiction", f".hoodie/{t.last}.deltacommit")]


@fault(repaired=True)
def file_that_is_no_instant(t):
    (t.hoodie / "notes.txt").write_text("?")
    return [("timeline-unknown-file", ".hoodie/notes.txt")]


@fault()
def instant_of_an_unknown_action(t):
    (t.hoodie / f"{AFTER}.shredding.requested").touch()
    return [("timeline-unknown-action", f".hoodie/{AFTER}.shredding.requested")]


@fault(repaired=True)
def temporary_file(t):
    name = f".{t.last}.commit.{'0f' * 16}.tmp"
    (t.hoodie / name).write_bytes(b"{")
    os.utime(t.hoodie / name, (1e9, 1e9))
    return [("timeline-temporary", f".hoodie/{name}")]


@fault()
def instant_that_is_no_time(t):
    (t.hoodie / "99999999999999.commit.requested").touch()
    return [("timeline-instant-time", ".hoodie/99999999999999.commit.requested")]


@fault()
def commit_that_is_lost(t):
    for file in t.hoodie.glob(f"{t.before}.*"):
        if "savepoint" not in file.name:
            file.unlink()
    return [
        ("timeline-hole", f".hoodie/{t.before}"),
        ("savepoint-no-commit", f".hoodie/{t.before}.savepoint"),
        *(("file-of-no-instant", t.below(t.file(t.before, p))) for p in "ab"),
    ]


@fault()
def commit_that_was_rolled_back(t):
    record = {
        "startRollbackTime": AFTER, "timeTakenInMillis": 1, "totalFilesDeleted": 0, "commitsRollback": [t.before],
        "partitionMetadata": {}, "version": 1, "instantsRollback": [{"commitTime": t.before, "action": "commit"}],
    }  # fmt: skip
    plan = {
        "instantToRollback": {"commitTime": t.before, "action": "commit"},
        "RollbackRequests": [],
        "version": 1,
    }
    (t.hoodie / f"{AFTER}.rollback.requested").write_bytes(avro_files.render("HoodieRollbackPlan", plan))
    (t.hoodie / f"{AFTER}.rollback.inflight").touch()
    (t.hoodie / f"{AFTER}.rollback").write_bytes(avro_files.render("HoodieRollbackMetadata", record))
    return [("timeline-rolled-back", f".hoodie/{t.before}.commit")]


@fault()
def savepoint_of_no_commit(t):
    time = t.time_of(".savepoint")
    other = t.time_of(".clean")
    for state in ("", ".inflight"):
        shutil.copy(t.hoodie / f"{time}.savepoint{state}", t.hoodie / f"{other}.savepoint{state}")
    return [("savepoint-no-commit", f".hoodie/{other}.savepoint")]


@fault()
def file_of_a_savepoint_that_is_gone(t):
    file = t.file(t.before)
    file.unlink()
    return [("savepoint-file-missing", t.below(file)), ("old-file-missing", t.below(file))]


@fault(repaired=True)
def open_clean_of_a_live_file(t):
    file = t.file(t.last)
    plan = {
        "earliestInstantToRetain": None, "lastCompletedCommitTimestamp": t.last, "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {}, "version": 2, "partitionsToBeDeleted": [],
        "filePathsToBeDeletedPerPartition": {"a": [{"filePath": str(file), "isBootstrapBaseFile": False}]},
    }  # fmt: skip
    (t.hoodie / f"{AFTER}.clean.requested").write_bytes(avro_files.render("HoodieCleanerPlan", plan))
    return [("plan-deletes-live-file", f".hoodie/{AFTER}.clean.requested")]


# --- names and folders ---------------------------------------------------------------------------------


@fault(repaired=True)
def partition_that_is_not_marked(t):
    (t.path / "a/.hoodie_partition_metadata").unlink()
    return [("partition-metadata-missing", "a/.hoodie_partition_metadata")]


@fault(repaired=True)
def partition_of_another_depth(t):
    file = t.path / "a/.hoodie_partition_metadata"
    file.write_text(file.read_text().replace("partitionDepth=1", "partitionDepth=3"))
    return [("partition-metadata", "a/.hoodie_partition_metadata")]


@fault(repaired=True)
def foreign_file(t):
    (t.path / "a/part-00000.parquet").write_bytes(b"PAR1")
    return [("name-unknown", "a/part-00000.parquet")]


@fault(repaired=True)
def crc_of_other_content(t):
    (t.hoodie / f".{t.last}.commit.crc").write_bytes(b"crc\x00\x00\x00\x02\x00" + bytes(4))
    return [("crc-mismatch", f".hoodie/.{t.last}.commit.crc")]


@fault(repaired=True)
def crc_of_no_file(t):
    (t.path / "a/.gone.parquet.crc").write_bytes(b"crc\x00\x00\x00\x02\x00")
    return [("crc-orphan", "a/.gone.parquet.crc")]


# --- files against commits -----------------------------------------------------------------------------


@fault()
def file_that_is_gone(t):
    file = t.file(t.last)
    file.unlink()
    return [("file-missing", t.below(file))]


@fault()
def older_file_that_is_gone(t):
    time = t.time_of(".replacecommit")
    file = t.file(time, "b")
    file.unlink()
    return [("old-file-missing", t.below(file))]


@fault()
def file_of_another_size(t):
    file = t.file(t.last)

    def change(content):
        content["partitionToWriteStats"]["a"][0]["fileSizeInBytes"] += 1

    t.edit(f"{t.last}.commit", change)
    return [("file-size", t.below(file))]


@fault()
def commit_with_another_file_id(t):
    def change(content):
        content["partitionToWriteStats"]["a"][0]["fileId"] = UUID

    t.edit(f"{t.last}.commit", change)
    return [("commit-stat", f".hoodie/{t.last}.commit")]


@fault()
def commit_whose_schema_is_none(t):
    def change(content):
        content["extraMetadata"]["schema"] = (
            '{"type":"record","name":"r","fields":[{"name":"k","type":"text"}]}'
        )

    t.edit(f"{t.last}.commit", change)
    return [("commit-schema", f".hoodie/{t.last}.commit")]


@fault(repaired=True)
def file_of_no_instant(t):
    name = f"{UUID}_0-0-0_{AFTER}.parquet"
    shutil.copy(t.file(t.last), t.path / "a" / name)
    return [("file-of-no-instant", f"a/{name}")]


@fault(repaired=True)
def file_of_a_task_that_was_tried_twice(t):
    name = f"{UUID}_7-7-7_{t.last}.parquet"
    shutil.copy(t.file(t.last), t.path / "a" / name)
    return [("file-stray", f"a/{name}")]


@fault()
def file_of_no_archived_instant(t):
    archived = {
        i.time for i in archived_instants(LocalStorage(str(t.path)), HudiTable.open(str(t.path)).config)
    }
    time = next(str(n) for n in range(int(t.commits[0]) - 1, 0, -1) if str(n) not in archived)
    assert min(archived) < time
    name = f"{UUID}_0-0-0_{time}.parquet"
    shutil.copy(t.file(t.last), t.path / "a" / name)
    return [
        ("file-of-no-archived-instant", f"a/{name}"),
        ("row-commit-time", f"a/{name}"),  # a copy of later rows
        ("duplicate-key", max(f"a/{name}", t.below(t.file(t.last)))),  # which readers see
    ]


@fault()
def replaced_group_that_is_written(t):
    file = t.file(t.last)

    def change(content):
        content["partitionToReplaceFileIds"]["a"] = [file.name.partition("_")[0]]

    time = t.time_of(".replacecommit")
    t.edit(f"{time}.replacecommit", change)
    return [("replaced-group-written", t.below(t.file(time_, "a"))) for time_ in (t.before, t.last)]


# --- base files ----------------------------------------------------------------------------------------


@fault()
def footer_that_is_none(t):
    file = t.file(t.last)
    data = bytearray(file.read_bytes())
    data[-6] = 0x7F  # the footer's length
    file.write_bytes(data)
    return [("base-file-unreadable", t.below(file))]


@fault()
def fewer_rows_than_the_commit_says(t):
    def change(content):
        content["partitionToWriteStats"]["a"][0]["numWrites"] += 1

    t.edit(f"{t.last}.commit", change)
    return [("base-file-rows", t.below(t.file(t.last)))]


@fault()
def file_without_meta_columns(t):
    file = t.file(t.last)
    stated = json.loads(pq.read_metadata(file).metadata[b"parquet.avro.schema"])
    stated["fields"] = [f for f in stated["fields"] if f["name"] != "_hoodie_record_key"]
    t.rewrite(
        file,
        lambda rows: rows.drop_columns(["_hoodie_record_key"]),
        {"parquet.avro.schema": json.dumps(stated)},
    )
    return [("base-file-meta-columns", t.below(file))]


@fault()
def file_without_a_meta_column_of_its_avro_schema(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: rows.drop_columns(["_hoodie_record_key"]))
    return [("base-file-meta-columns", t.below(file))]


@fault()
def file_without_a_column_of_its_avro_schema(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: rows.drop_columns(["v"]))
    return [("base-file-unreadable", t.below(file))]


@fault()
def bloom_filter_that_is_none(t):
    file = t.file(t.last)
    t.rewrite(file, change_footer={BLOOM_FILTER: "AAAA"})
    return [("base-file-bloom", t.below(file))]


@fault()
def bloom_filter_of_other_keys(t):
    file = t.file(t.last)
    other = BloomFilter.create()
    other.add(pa.array(["z"]))
    t.rewrite(file, change_footer={BLOOM_FILTER: other.to_base64()})
    return [("base-file-bloom-keys", t.below(file))]


@fault()
def key_range_that_is_too_narrow(t):
    file = t.file(t.last)
    t.rewrite(file, change_footer={MAX_KEY: "a1"})
    return [("base-file-key-range", t.below(file))]


@fault()
def statistics_that_are_wrong(t):
    file = t.file(t.last)
    data = file.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    value = (1013).to_bytes(8, "little")
    assert data[footer:].count(value) >= 2
    file.write_bytes(data[:footer] + data[footer:].replace(value, (1014).to_bytes(8, "little")))
    return [("base-file-statistics", t.below(file))]


@fault()
def pages_that_are_damaged(t):
    file = t.file(t.last)
    data = bytearray(file.read_bytes())
    data[4:60] = b"\xff" * 56
    file.write_bytes(data)
    return [("base-file-data", t.below(file))]


@fault()
def rows_of_another_partition(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: column(rows, "_hoodie_partition_path", ["a", "b", "a"]))
    return [("row-partition", t.below(file))]


@fault()
def rows_of_a_later_commit(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: column(rows, "_hoodie_commit_time", [t.last, AFTER, t.last]))
    return [("row-commit-time", t.below(file))]


@fault()
def row_without_a_key(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: column(rows, "_hoodie_record_key", ["a0", "a1", None]))
    return [("row-key", t.below(file))]


@fault()
def key_that_is_there_twice(t):
    file = t.file(t.last)
    t.rewrite(file, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))
    return [("duplicate-key", t.below(file))]


# --- the metadata table, leftovers, the archive --------------------------------------------------------


@fault(repaired=True)
def metadata_table_that_is_gone(t):
    t.properties(hoodie__table__metadata__partitions="files")
    return [("mdt-missing", ".hoodie/metadata")]


@fault(repaired=True)
def metadata_table_that_is_not_used(t):
    (t.hoodie / "metadata/files").mkdir(parents=True)
    (t.hoodie / "metadata/files/x").touch()
    return [("mdt-not-used", ".hoodie/metadata")]


@fault(repaired=True)
def markers_of_no_instant(t):
    (t.hoodie / f".temp/{AFTER}/a").mkdir(parents=True)
    (t.hoodie / f".temp/{AFTER}/a/x_0-0-0_{AFTER}.parquet.marker.CREATE").touch()
    return [("markers-left", f".hoodie/.temp/{AFTER}")]


@fault(repaired=True)
def heartbeat_of_no_instant(t):
    file = t.hoodie / f".heartbeat/{AFTER}"
    file.parent.mkdir(exist_ok=True)
    file.touch()
    os.utime(file, (1e9, 1e9))
    return [("heartbeat-left", f".hoodie/.heartbeat/{AFTER}")]


@fault(repaired=True)
def staged_rows_of_long_ago(t):
    folder = t.path / f".hoodie_staging_{'0' * 32}"
    folder.mkdir()
    (folder / "x").touch()
    os.utime(folder / "x", (1e9, 1e9))
    os.utime(folder, (1e9, 1e9))
    return [("staging-left", folder.name)]


@fault()
def archive_that_is_damaged(t):
    file = next((t.hoodie / "archived").glob(".commits_*"))
    data = bytearray(file.read_bytes())
    data[20] ^= 0xFF
    file.write_bytes(data)
    return [("archive-unreadable", t.below(file))]


def tree(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.req("NEW-08", "NEW-09")
@pytest.mark.parametrize("planted", FAULTS, ids=lambda f: f.name)
@pytest.mark.sampled(4)
def test_a_fault_is_named_and_repaired(sound, tmp_path, planted):
    path = tmp_path / "t"
    shutil.copytree(sound, path)
    expected = planted.plant(Planted(path))
    storage = LocalStorage(str(path))
    before = tree(path)

    def read(*columns, **given):
        return HudiTable.open(str(path)).read(*columns, **given)

    found = verify(storage, deep=True, scan_of=read)
    assert sorted((f.code, f.path) for f in found) == sorted(expected), "\n".join(map(str, found))
    plan = repair(storage, dry_run=True, deep=True, scan_of=read).plan
    assert tree(path) == before
    assert all(bool(r.steps) != bool(r.reason) for r in plan.repairs)
    result = repair(storage, plan=plan, deep=True, scan_of=read)
    if not planted.repaired:
        assert [r.finding for r in plan.unrepaired] == list(found)
        assert tree(path) == before
        return
    assert result.left == ()
    # Nothing is lost: what is no more where it was is in the backup folder, as it was.
    now = tree(path)
    for name, data in before.items():
        assert now.get(name) == data or now[f"{result.folder}/{name}"] == data
    table = HudiTable.open(str(path))
    assert table.read(["k", "v"], meta_columns=False).to_arrow().sort_by("k").to_pylist() == [
        {"k": r["k"], "v": r["v"]} for r in rows(13)
    ]
    if AFTER not in table.timeline.newest_time:
        table.upsert(rows(14), options=OPTIONS)
        assert table.verify(deep=True) == []
        assert set(table.read().to_arrow().column("v").to_pylist()) == {1014}
