"""The metadata table beside every change of a table: what it lists is what storage has."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from listed_tables import KEPT, TYPES, made, names, rows, table, write

from hudi_format.errors import CorruptFileError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table import deltacommit
from hudi_timeline.metadata_table.own_table import open_own
from hudi_timeline.reading.metadata_listing import differences
from hudi_timeline.testing import CRASH, Fault, Faults


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


@pytest.mark.parametrize("table_type", TYPES)
def test_every_operation_is_mirrored_at_its_own_time(storage, table_type):
    made(storage, table_type)
    steps = [
        lambda: write(storage, rows(4, v=1)),
        lambda: write(storage, rows(3, 20), "insert"),
        lambda: write(storage, rows(2).select(["id", "p"]), "delete"),
        lambda: write(storage, rows(2, 30), "insert_overwrite"),
        lambda: write(storage, rows(2, 40), "bulk_insert"),
        lambda: table(storage).delete_partitions(["p1"]),
        lambda: write(storage, rows(4, 50), "insert_overwrite_table"),
    ]
    for step in steps:
        result = step()
        assert result.warnings == ()
        assert differences(storage) == []
        assert f"{result.instant}.deltacommit" in names(storage)
    assert HudiTable._of(storage).verify() == []


def test_a_delta_commit_has_the_form_of_apache_hudis(storage):
    made(storage)
    result = write(storage, rows(4, v=1))
    path = Path(storage.uri) / FOLDER / ".hoodie" / f"{result.instant}.deltacommit"
    commit = json.loads(path.read_text())
    (stat,) = commit["partitionToWriteStats"]["files"]
    assert commit["operationType"] == "UPSERT_PREPPED"
    assert stat["fileId"] == "files-0000-0"
    assert stat["prevCommit"] == "00000000000000010"
    assert stat["baseFile"] == "files-0000-0_0-0-0_00000000000000010.hfile"
    assert stat["logVersion"] == 3
    log = stat["path"].rpartition("/")[2]
    assert stat["logFiles"][-1] == log
    assert len(stat["logFiles"]) == 3
    assert stat["fileSizeInBytes"] == (Path(storage.uri) / FOLDER / stat["path"]).stat().st_size
    profile = json.loads(path.with_name(f"{path.name}.inflight").read_text())["partitionToWriteStats"][
        "files"
    ]
    assert [(s["fileId"], s["numUpdateWrites"]) for s in profile] == [("", 0), ("files-0000-0", 3)]


def test_files_that_the_metadata_table_lost_are_a_typed_error_with_the_way_out(storage):
    made(storage)
    write(storage, rows(4, v=1))
    for path in (Path(storage.uri) / FOLDER / "files").glob("*files-0000-0*"):
        path.unlink()
    before = names(storage)
    with pytest.raises(CorruptFileError, match=r"no file group files-0000-0") as e:
        write(storage, rows(2, v=2))
    assert names(storage) == before
    assert "hoodie.metadata.enable=false" in e.value.remedy
    result = write(storage, rows(2, v=3), "upsert", **{"hoodie.metadata.enable": "false"})
    assert result.instant
    assert not (Path(storage.uri) / FOLDER).exists()


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("nth", [1, 2], ids=["in the metadata table", "in the table"])
def test_a_write_that_dies_in_either_commit_is_rolled_back_in_both(storage, table_type, nth):
    made(storage, table_type)
    write(storage, rows(4, v=1))
    # Both have the same path, each in its own storage.
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*commit", nth=nth))
    with faults.process():
        write(faults.wrap(storage), rows(4, 3, v=7))
    assert faults.dead
    (dead,) = table(storage).timeline.pending_writes()
    assert (open_own(storage).timeline.completed_writes()[-1].time == dead.time) == (nth == 2)
    result = write(storage, rows(1, 90))
    assert result.warnings == ()
    assert differences(storage) == []
    found = names(storage)
    assert not any(n.startswith(f"{dead.time}.") for n in found)
    (rollback,) = [n for n in found if n.endswith(".rollback")]
    assert rollback.removesuffix("006.rollback") + ".deltacommit" in found
    assert HudiTable._of(storage).verify() == []


@pytest.mark.parametrize("table_type", TYPES)
def test_a_completed_commit_that_is_rolled_back_and_a_restore_are_followed(storage, table_type):
    made(storage, table_type)
    first = table(storage).timeline.completed_writes()[0].time
    last = write(storage, rows(4, v=1)).instant
    table(storage).rollback(last)
    assert differences(storage) == []
    write(storage, rows(4, v=2))
    write(storage, rows(4, 10, v=2))
    result = table(storage).restore(first)
    assert not any("metadata table" in w for w in result.warnings)
    assert differences(storage) == []
    write(storage, rows(4, v=3))
    assert differences(storage) == []


def test_a_rollback_of_what_a_compaction_has_merged_strikes_the_files_out(storage):
    made(storage)
    last = write(storage, rows(4, v=1), **{"hoodie.metadata.compact.max.delta.commits": "1"}).instant
    assert f"{last}001.commit" in names(storage)
    table(storage).rollback(last)
    assert differences(storage) == []
    write(storage, rows(4, v=2))
    assert differences(storage) == []


@pytest.mark.parametrize("replacing", [True, False])
def test_a_rollback_of_what_began_a_slice_strikes_out_logs_that_earlier_rollbacks_have_named(
    storage, replacing
):
    made(storage, "MERGE_ON_READ")
    write(storage, rows(4, v=1))
    began = write(
        storage, rows(4, 0 if replacing else 60), "insert_overwrite" if replacing else "bulk_insert"
    )
    late = write(storage, rows(2, 0 if replacing else 60).select(["id", "p"]), "delete")
    for instant in (late.instant, began.instant):
        table(storage).rollback(instant)
        assert differences(storage) == []
    write(storage, rows(4, v=2))
    assert differences(storage) == []
    assert HudiTable._of(storage).verify() == []


@pytest.mark.parametrize("table_type", TYPES)
def test_a_rollback_of_what_was_there_before_the_metadata_table_was_made_is_followed(storage, table_type):
    asked = {
        **KEPT,
        **{f"hoodie.metadata.{i}.enable": "true" for i in ("index.column.stats", "record.index")},
    }
    write(storage, rows(6), **{"hoodie.datasource.write.table.type": table_type})
    before = write(storage, rows(9, 2, v=1)).instant
    with_it = write(storage, rows(3, 20), **asked).instant
    table(storage).rollback(with_it)
    table(storage).rollback(before)
    assert differences(storage) == []
    assert table(storage).config.metadata_partitions == (
        "files",
    )  # indexes have no place for what is no more
    assert HudiTable._of(storage).verify(deep=True) == []
    write(storage, rows(9, 2, v=2), **asked)
    assert HudiTable._of(storage).verify(deep=True) == []


def test_a_rollback_of_a_writer_that_died_before_the_metadata_table_keeps_its_indexes(storage):
    write(storage, rows(6), **KEPT)
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/2*commit"))
    with faults.process():
        write(faults.wrap(storage), rows(4, 3, v=7))
    asked = {"hoodie.metadata.record.index.enable": "true"}
    assert write(storage, rows(4, 8), **asked).warnings == ()
    assert table(storage).config.metadata_partitions == ("files", "record_index")
    assert HudiTable._of(storage).verify(deep=True) == []


def test_cleanings_strike_files_and_partitions_out(storage):
    made(storage)
    table(storage).delete_partitions(["p1"])
    for v in range(1, 5):
        write(storage, rows(1, v=v), **{"hoodie.clean.automatic": "false"})
    result = table(storage, **{"hoodie.cleaner.commits.retained": "1"}).clean()
    assert result.deleted
    assert differences(storage) == []
    assert f"{result.instant}.deltacommit" in names(storage)
    assert not (Path(storage.uri) / "p1").exists()


def test_compactions_of_the_table_are_mirrored(storage):
    made(storage, "MERGE_ON_READ")
    for v in range(1, 4):
        write(storage, rows(4, v=v), **{"hoodie.compact.inline.max.delta.commits": "100"})
    (compaction,) = table(storage).compact().executed
    assert differences(storage) == []
    assert f"{compaction}.deltacommit" in names(storage)


def test_change_data_files_are_listed(storage):
    write(storage, rows(6), **KEPT, **{"hoodie.table.cdc.enabled": "true"})
    write(storage, rows(4, v=1))
    assert [p for p in Path(storage.uri).rglob("*.cdc") if FOLDER not in str(p)]
    assert differences(storage) == []


@pytest.mark.req("MT-11")
def test_one_writer_at_a_time_and_the_same_change_twice_is_there_once(storage, monkeypatch):
    made(storage)
    at_it, most, real = [], [], deltacommit.apply

    def apply(own, instant, changes, slices=None):
        at_it.append(instant)
        most.append(len(at_it))
        try:
            real(own, instant, changes, slices)
            again = open_own(storage)  # what a writer does that died before it knew that it was done
            real(again, instant, changes)
        finally:
            at_it.remove(instant)

    monkeypatch.setattr(deltacommit, "apply", apply)
    optimistic = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}

    def insert(n):
        data = rows(4, 100 * n).set_column(2, "p", [[f"q{n}"] * 4])
        return write(storage, data, "insert", **optimistic)

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(insert, range(1, 4)))
    assert most == [1, 1, 1]
    assert differences(storage) == []
    assert {f"{r.instant}.deltacommit" for r in results} <= names(storage)
    assert table(storage).read().to_arrow().num_rows == 18
    listed = table(storage).read(options={"hoodie.metadata.enable": "true"}).to_arrow()
    assert listed.num_rows == 18
    assert HudiTable._of(storage).verify() == []
