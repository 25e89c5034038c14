"""Detection of conflicts by record key: other keys never collide, one new key never becomes two rows."""

import shutil
from contextlib import nullcontext

import pyarrow as pa
import pytest
from rival_writers import GLOBAL, Between, Losing, adds, adds_twice_and_cleans, make, rows, state

from hudi_format.errors import UnsupportedError, WriteConflictError
from hudi_timeline import HudiTable
from hudi_timeline.writing import row_conflicts

BEFORE, DURING = "before the instant", "while it writes"
OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.parquet.small.file.limit": "0",
}
KEYS = {**OCC, "hudi.write.conflict.detection": "keys"}
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}

pytestmark = pytest.mark.req("NEW-16", "CC-17")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "t"
    make(str(path)).upsert(rows("bx", "cx", v=1, ts=1))
    return path


@pytest.fixture
def path(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    return str(tmp_path / "t")


def beside(path, monkeypatch, *keys, options=OCC, operation="upsert"):
    def rival(table):
        getattr(HudiTable.open(table), operation)(rows(*keys, ts=5, v=5), options=options)

    return Between(monkeypatch, path, rival, DURING)


def values(path):
    found = HudiTable.open(path).read(["id", "p", "v"], meta_columns=False).to_arrow().to_pylist()
    return sorted((r["id"] + r["p"], r["v"]) for r in found)


@pytest.mark.req("NEW-17")
def test_writers_of_other_keys_of_one_file_group_both_succeed(path, monkeypatch):
    between = beside(path, monkeypatch, "ax")
    result = HudiTable.open(path).upsert(rows("bx", ts=9, v=9), options=KEYS)
    assert between.refused is None
    assert "no key was written by both" in " ".join(result.warnings)
    assert values(path) == [("ax", 5), ("bx", 9), ("by", 1), ("cq", 1), ("cx", 1)]
    assert HudiTable.open(path).verify(deep=True) == []


def test_by_file_groups_they_are_a_conflict(path, monkeypatch):
    beside(path, monkeypatch, "ax")
    with pytest.raises(WriteConflictError):
        HudiTable.open(path).upsert(rows("bx", ts=9), options=OCC)


def test_writers_of_the_same_key_are_a_conflict_and_a_retry_comes_after(path, monkeypatch):
    between = beside(path, monkeypatch, "ax", "bx")
    with pytest.raises(WriteConflictError) as e:
        HudiTable.open(path).upsert(rows("bx", ts=9), options=KEYS)
    assert e.value.keys == ("b",)
    assert state(path) == between.state
    beside(path, monkeypatch, "ax", "bx")
    assert HudiTable.open(path).upsert(rows("bx", ts=9, v=9), options={**KEYS, **RETRY}).retries == 1
    assert ("bx", 9) in values(path)


@pytest.mark.parametrize("rival", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_a_key_that_two_writers_add_is_one_row(path, monkeypatch, rival):
    between = beside(path, monkeypatch, "nx", operation=rival)
    ours = rows("nx", "mx", ts=9, v=9)
    if rival != "insert_overwrite":
        with pytest.raises(WriteConflictError) as e:
            HudiTable.open(path).upsert(ours, options=KEYS)
        assert e.value.keys == ("n",)
        assert e.value.retry_safe
        assert state(path) == between.state
        beside(path, monkeypatch, "ox", operation=rival)
    HudiTable.open(path).upsert(ours, options={**KEYS, **RETRY})
    assert [v for v in values(path) if v[0] in ("nx", "mx")] == [("mx", 9), ("nx", 9)]
    assert HudiTable.open(path).verify(deep=True) == []


def test_without_it_there_are_two_rows_as_in_apache_hudi(path, monkeypatch):
    beside(path, monkeypatch, "nx")
    HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options=OCC)
    assert [v for v in values(path) if v[0] == "nx"] == [("nx", 5), ("nx", 9)]


@pytest.mark.req("NEW-17")
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_what_would_be_added_again_is_not_run_again(path, monkeypatch, operation):
    between = beside(path, monkeypatch, "nx")
    with pytest.raises(WriteConflictError) as e:
        getattr(HudiTable.open(path), operation)(rows("nx", ts=9), options={**KEYS, **RETRY})
    assert not e.value.retry_safe
    assert "upsert" in e.value.remedy
    assert state(path) == between.state


@pytest.mark.parametrize("keys", [("bx", "nx"), ("bx", "mx")])
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_conflict_of_file_groups_is_not_run_again_where_that_would_add_a_key_of_others(
    path, monkeypatch, operation, keys
):
    """The other write changes the file that ours fills up, and adds its own rows to another one."""
    filling = {"hoodie.parquet.small.file.limit": "104857600"}
    beside(path, monkeypatch, *keys, options={**OCC, **filling})
    write = getattr(HudiTable.open(path), operation)
    ours = rows("nx", ts=9, v=9)
    if operation == "insert" and "nx" in keys:
        with pytest.raises(WriteConflictError, match="wrote 1 of the same record keys first") as e:
            write(ours, options={**KEYS, **RETRY, **filling})
        assert (e.value.retry_safe, e.value.keys) == (False, ("n",))
        assert "upsert" in e.value.remedy
    else:
        assert write(ours, options={**KEYS, **filling}).retries == 1
    there = [v for v in values(path) if v[0] == "nx"]
    assert there == [("nx", 5 if operation == "insert" and "nx" in keys else 9)]


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_what_was_written_to_files_that_were_cleaned_is_a_conflict(path, monkeypatch, operation):
    Between(monkeypatch, path, adds_twice_and_cleans, DURING)
    write = getattr(HudiTable.open(path), operation)
    if operation == "upsert":
        assert write(rows("nx", ts=9, v=9), options={**KEYS, **RETRY}).retries == 1
    else:  # it would be added again
        with pytest.raises(WriteConflictError, match="was cleaned since") as e:
            write(rows("nx", ts=9, v=9), options={**KEYS, **RETRY})
        assert not e.value.retry_safe
        assert "upsert" in e.value.remedy
    assert [v for v in values(path) if v[0] == "nx"] == [("nx", 9 if operation == "upsert" else 6)]


def nothing(path):
    pass


def archives(path):
    """Add our key, and then others until that commit is archived."""
    adds("nx")(path)
    keep = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    for key in "opq":
        adds(f"{key}x", options={**OCC, **keep})(path)


@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_key_that_others_added_between_two_tries_is_one_row(path, monkeypatch, operation, tries):
    """Each try loses the file that it fills up; before the last one another writer adds our key to a new file."""
    filling = {**OCC, "hoodie.parquet.small.file.limit": "104857600"}
    during = [adds(key, options=filling, operation="upsert") for key in ("bx", "cx", "bx")[:tries]]
    Losing(monkeypatch, path, during, [*[nothing] * (tries - 1), adds("nx")])
    write, ours = getattr(HudiTable.open(path), operation), rows("nx", ts=9, v=9)
    if operation == "upsert":
        assert write(ours, options={**KEYS, **filling}).retries == tries
    else:
        with pytest.raises(WriteConflictError, match="wrote 1 of the same record keys first") as e:
            write(ours, options={**KEYS, **filling})
        assert (e.value.retry_safe, e.value.keys) == (False, ("n",))
    assert [v for v in values(path) if v[0] == "nx"] == [("nx", 9 if operation == "upsert" else 5)]
    assert HudiTable.open(path).verify(deep=True) == []


def test_what_was_archived_between_two_tries_is_not_added_again(path, monkeypatch):
    filling = {**OCC, "hoodie.parquet.small.file.limit": "104857600"}
    Losing(monkeypatch, path, [adds("bx", options=filling, operation="upsert")], [archives])
    with pytest.raises(WriteConflictError, match="is archived") as e:
        HudiTable.open(path).insert(rows("nx", ts=9, v=9), options={**KEYS, **filling})
    assert not e.value.retry_safe
    assert [v for v in values(path) if v[0] == "nx"] == [("nx", 5)]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_key_that_others_added_before_the_first_instant_is_one_row(path, monkeypatch, operation):
    Between(monkeypatch, path, adds("nx"), BEFORE)
    with pytest.raises(WriteConflictError, match="wrote 1 of the same record keys first"):
        getattr(HudiTable.open(path), operation)(rows("nx", ts=9, v=9), options={**KEYS, **RETRY})
    assert [v for v in values(path) if v[0] == "nx"] == [("nx", 5)]


@pytest.mark.parametrize("key", ["nx", "mx"])
def test_the_first_writes_of_a_table_are_compared_too(tmp_path, monkeypatch, key):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, rows("ax"), name="t", record_keys="id", partition_fields="p", ordering_fields="ts"
    )
    Between(monkeypatch, path, adds(key), BEFORE)
    same = pytest.raises(WriteConflictError, match="wrote 1 of the same record keys first")
    with same if key == "nx" else nullcontext():
        table.insert(rows("nx", ts=9, v=9), options=KEYS)
    assert values(path) == ([("nx", 5)] if key == "nx" else [("mx", 5), ("nx", 9)])


def test_an_insert_that_drops_known_keys_is_run_again(path, monkeypatch):
    beside(path, monkeypatch, "nx")
    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    HudiTable.open(path).insert(rows("nx", "mx", ts=9, v=9), options={**KEYS, **RETRY, **drop})
    assert [v for v in values(path) if v[0] in ("nx", "mx")] == [("mx", 9), ("nx", 5)]


@pytest.mark.parametrize("index", [{}, GLOBAL])
def test_one_key_in_two_partitions_is_a_conflict_of_a_global_index_only(tmp_path, monkeypatch, index):
    path = str(tmp_path / "t")
    make(path, **index)
    beside(path, monkeypatch, "ny", options={**OCC, **index})
    if not index:
        HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options=KEYS)
        return
    with pytest.raises(WriteConflictError) as e:
        HudiTable.open(path).upsert(rows("nx", ts=9, v=9), options={**KEYS, **index})
    assert e.value.keys == ("n",)


def test_of_merge_on_read_tables_the_logs_are_compared(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, rows("ax"), name="t", table_type="MERGE_ON_READ", record_keys="id", partition_fields="p",
        ordering_fields="ts",
    )  # fmt: skip
    table.insert(rows("ax", "bx", "cx", v=1, ts=1))
    beside(path, monkeypatch, "ax")
    HudiTable.open(path).upsert(rows("bx", ts=9, v=9), options=KEYS)
    assert values(path) == [("ax", 5), ("bx", 9), ("cx", 1)]
    beside(path, monkeypatch, "ax")
    with pytest.raises(WriteConflictError) as e:
        HudiTable.open(path).upsert(rows("ax", ts=9), options=KEYS)
    assert e.value.keys == ("a",)


def test_files_are_read_once_and_before_the_lock(path, monkeypatch):
    read = []
    written = row_conflicts.written_keys
    monkeypatch.setattr(
        row_conflicts, "written_keys",
        lambda storage, config, instant, stats: (read.append(instant), written(storage, config, instant, stats))[1],
    )  # fmt: skip
    between = beside(path, monkeypatch, "rx")
    result = HudiTable.open(path).upsert(rows("sx", ts=9), options=KEYS)
    assert between.ran
    assert len(read) == 2
    assert read[1] == result.instant
    read.clear()
    HudiTable.open(path).upsert(rows("qx", ts=9), options=KEYS)  # alone
    assert read == []


def test_tables_whose_files_hold_no_keys_are_refused(tmp_path):
    options = {"hoodie.populate.meta.fields": "false"}
    path = str(tmp_path / "t")
    table = HudiTable.create(
        path, pa.table({"id": ["a"], "v": [1]}), name="t", record_keys="id", options=options
    )
    with pytest.raises(UnsupportedError, match="meta columns"):
        table.bulk_insert(pa.table({"id": ["a"], "v": [1]}), options={**KEYS, **options})
    assert table.timeline.completed_writes() == ()
