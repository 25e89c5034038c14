"""Rollbacks by hand."""

import os

import pyarrow as pa
import pytest
from serviced_tables import KEEP_2, SCHEMA, tree, write

from hudi_format.errors import InstantNotFoundError, MissingFileError, OptionError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import markers
from hudi_timeline.services import cleaning
from hudi_timeline.testing import CRASH, Fault, Faults
from hudi_timeline.testing.interleavings import OPTIONS
from hudi_timeline.testing.workload_table import INITIAL, SAVED, made_table, rows_of
from hudi_timeline.timeline.instant import ROLLBACK, next_instant


@pytest.fixture
def table(tmp_path):
    return HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["k"], partition_fields=["p"])


@pytest.fixture
def path(table, tmp_path):
    return tmp_path / "t"


@pytest.mark.req("RC-01", "RC-03", "NEW-08")
def test_a_write_that_died_is_rolled_back_by_hand_or_by_the_cleaner_of_lazy_writers(table, path):
    write(table, range(2))
    dead = next_instant(table.timeline.newest_time)
    for lazily in (False, True):
        (path / f".hoodie/{dead}.commit.requested").touch()
        (path / f".hoodie/{dead}.inflight").touch()
        there = tree(path)
        assert table.rollback(dry_run=True).undone == (dead,)
        assert tree(path) == there
        if lazily:
            table.clean(options={"hoodie.cleaner.policy.failed.writes": "LAZY"})
        else:
            assert table.rollback().undone == (dead,)
        assert HudiTable.open(str(path)).timeline.find(dead) is None
        dead = next_instant(HudiTable.open(str(path)).timeline.newest_time)


@pytest.mark.req("RC-01")
def test_only_the_newest_commit_is_rolled_back(table, path):
    first, second = write(table, range(2))
    with pytest.raises(UnsupportedError, match="came after"):
        table.rollback(first)
    with pytest.raises(InstantNotFoundError):
        table.rollback("20200101000000000")
    table.savepoint(second)
    with pytest.raises(OptionError, match="savepointed"):
        table.rollback(second)
    table.delete_savepoint(second)
    before = table.read(as_of=first).to_arrow()
    result = table.rollback(second)
    assert (result.files, result.blocks) == (2, 0)
    assert table.read().to_arrow().sort_by("k").equals(before.sort_by("k"))
    # What the cleaner took cannot come back.
    write(table, range(2, 6))
    table.clean(options={**KEEP_2, "hoodie.cleaner.commits.retained": "1"})
    newest = table.timeline.completed_writes()
    table.rollback(newest[-1].time)
    with pytest.raises(MissingFileError) as e:
        table.rollback(newest[-2].time)
    assert "cleaned away" in e.value.remedy


def test_a_write_that_begins_without_the_lock_during_a_rollback_keeps_its_files(table, path, monkeypatch):
    write(table, range(2))
    instant = next_instant(table.timeline.newest_time)
    name = f"f1-0_0-1-1_{instant}.parquet"
    look = markers.list_instants

    def begins_before(storage):
        if storage.info(markers.marker_path(instant, "a", name, markers.CREATE)) is None:
            (path / f".hoodie/.heartbeat/{instant}").touch()
            (path / f".hoodie/{instant}.commit.requested").touch()
            (path / f".hoodie/{instant}.inflight").touch()
            markers.create(storage, instant, "a", name, markers.CREATE)
            (path / "a" / name).write_bytes(b"PAR1")
        return look(storage)

    monkeypatch.setattr(markers, "list_instants", begins_before)
    assert table.rollback().undone == ()
    assert (path / "a" / name).exists()
    assert look(table.storage) == [instant]
    assert (path / f".hoodie/.heartbeat/{instant}").exists()


LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
WRITE = pa.table(
    {"id": ["z"], "p": ["x"], "v": [9], "n": pa.nulls(1, pa.int32()), "s": pa.nulls(1, pa.string())}
)
# What comes after a rollback that died before it changed anything, and whether the commit then stays.
THEN = {
    "nothing": (lambda t, last: None, False),
    "a savepoint of it": (lambda t, last: t.savepoint(last), True),
    "a savepoint that is deleted again": (
        lambda t, last: (t.savepoint(last), t.delete_savepoint(last)),
        True,
    ),
    "a commit of one of many writers": (lambda t, last: t.upsert(WRITE, options=OPTIONS), True),
    "two of them": (lambda t, last: [t.upsert(WRITE, options=OPTIONS) for _ in range(2)], True),
    "a commit that is rolled back": (
        lambda t, last: (
            t.upsert(WRITE, options=OPTIONS),
            t.rollback(t.timeline.completed_writes()[-1].time),
        ),
        True,
    ),
    "a restore to it": (lambda t, last: t.restore(last), True),
    "a cleaning": (lambda t, last: t.clean(options=LAZY), False),
}


@pytest.mark.req("RC-01")
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("state", ["requested", "inflight"])
@pytest.mark.sampled(8)
def test_a_rollback_that_died_before_it_changed_anything_stops_nobody(kind, state, then):
    """The commit is there for everybody until its completed file goes: who goes by it keeps it."""
    call, stays = THEN[then]
    made = made_table(kind).copy_of()
    last = HudiTable.open(made).timeline.completed_writes()[-1].time
    faults = Faults(Fault(CRASH, operation="create", path=f"*.rollback.{state}", after=True))
    with faults.process():
        HudiTable.open(faults.wrap(made)).rollback(last)
    table = HudiTable.open(made)
    assert table.timeline.pending(ROLLBACK)
    assert table.timeline.find(last).completed
    call(table, last)
    HudiTable.open(made).rollback()  # which finishes rollbacks that died
    table = HudiTable.open(made)
    assert not table.timeline.pending(ROLLBACK)
    assert (table.timeline.find(last) is not None) == stays
    rows = rows_of(table)
    assert {k: v for k, v in rows.items() if k != "z"} == (INITIAL if stays else SAVED)
    table.upsert(WRITE)  # of a single writer, who begins with what is pending
    assert rows_of(HudiTable.open(made))["z"] == ("x", 9, ())
    assert not [f for f in table.verify(workers=1) if f.severity == "error"]


@pytest.mark.req("RC-03", "CC-25")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("hours", [0.5, 2])
def test_the_cleaner_of_lazy_writers_finishes_a_rollback_that_nobody_is_at(kind, hours):
    """Its target is off the timeline, so that no write that died names it."""
    made = made_table(kind).copy_of()
    last = HudiTable.open(made).timeline.completed_writes()[-1].time
    faults = Faults(Fault(CRASH, operation="create", path=".hoodie/*.rollback"))
    with faults.process():
        HudiTable.open(faults.wrap(made)).rollback(last)
    table = HudiTable.open(made)
    assert table.timeline.find(last) is None
    (pending,) = table.timeline.pending(ROLLBACK)
    context = table._service({**OPTIONS, **LAZY})
    cleaning.roll_back_expired(context, lambda: pending.mtime_ms / 1000 + hours * 3600)
    assert bool(HudiTable.open(made).timeline.pending(ROLLBACK)) == (hours < 1)
    assert rows_of(HudiTable.open(made)) == SAVED


@pytest.mark.req("RC-03", "CC-25")
def test_the_cleaner_of_lazy_writers_takes_what_rollbacks_have_left(table, path):
    """With this policy no write does when it begins."""
    write(table, range(2))
    gone = next_instant(table.timeline.newest_time)
    (path / f".hoodie/.temp/{gone}/a").mkdir(parents=True)
    late = f"00000000-0000-0000-0000-000000000000-0_0-1-0_{gone}.parquet"
    (path / "a").mkdir(exist_ok=True)
    (path / "a" / late).touch()
    (path / f".hoodie/.temp/{gone}/a/{late}.marker.CREATE").touch()
    (path / ".hoodie/.heartbeat").mkdir(exist_ok=True)
    beat = path / f".hoodie/.heartbeat/{gone}"
    beat.touch()
    os.utime(beat, (0, 0))
    table.clean(options=LAZY)
    assert not beat.exists()
    assert not (path / f".hoodie/.temp/{gone}").exists()
    assert not (path / "a" / late).exists()
