"""How often and how long the table's lock is held: at the begin and the commit of a write, and for plans of services.

So the lock's server sees two requests of a write, however long that takes, and none of a reader.
"""

import re

import pytest
from recording_lock import RecordingLock

from hudi_format.errors import LockError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.services import cleaning
from hudi_timeline.services.compaction import compaction, log_compaction

LOCK = {
    "hoodie.write.lock.provider": "recording_lock:RecordingLock",
    "hoodie.write.lock.wait_time_ms": "1",
    "hoodie.write.lock.client.num_retries": "0",
}
ALONE = {
    **LOCK,
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
BLOCKS = "hoodie.log.compaction.blocks.threshold"
_INSTANT = re.compile(r"\.hoodie/\d+\.(.+)")


@pytest.fixture
def events(monkeypatch):
    """What is locked, which files are made and which data files are deleted, in their order."""
    monkeypatch.setattr(RecordingLock, "events", [])
    monkeypatch.setattr(RecordingLock, "holders", {})

    def recorded(name):
        real = getattr(LocalStorage, name)

        def call(storage, path, *given):
            RecordingLock.events.append(path if name == "create" else f"{name} {path}")
            return real(storage, path, *given)

        monkeypatch.setattr(LocalStorage, name, call)

    for name in ("create", "open_output", "delete"):
        recorded(name)
    return RecordingLock.events


def made(tmp_path, kind):
    table = HudiTable.create(
        str(tmp_path / "t"),
        [{"id": "a", "ts": 0}],
        record_keys=["id"],
        ordering_fields=["ts"],
        table_type=kind,
    )
    for number in range(3):
        table.upsert([{"id": "a", "ts": number}], options=ALONE)
    return table


def by_hold(events):
    """What was made under the lock, and what without it: instants' files by action and state, and data files."""
    held, free, holds = [], [], False
    for event in events:
        if event in ("lock", "unlock"):
            holds = event == "lock"
        elif found := _INSTANT.fullmatch(event):
            (held if holds else free).append(found[1])
        elif event.startswith(("open_output ", "delete ")) and ".hoodie/" not in event:
            (held if holds else free).append("data file")
    return held, free


ACTS = {
    "upsert": ("COPY_ON_WRITE", lambda t: t.upsert([{"id": "a", "ts": 9}], options=ALONE),
               ["commit.requested", "commit"], ["inflight", "data file"]),
    "compact": ("MERGE_ON_READ", lambda t: t.compact(options=ALONE),
                ["compaction.requested", "compaction.inflight", "commit"], ["data file"]),
    "log_compact": ("MERGE_ON_READ", lambda t: t.log_compact(options={**ALONE, BLOCKS: "2"}),
                    ["logcompaction.requested", "logcompaction.inflight", "deltacommit"], ["data file"]),
}  # fmt: skip


@pytest.mark.req("CC-33", "PF-13")
@pytest.mark.parametrize("mode", [{}, OCC], ids=["a single writer", "several"])
@pytest.mark.parametrize("name", ACTS)
def test_the_lock_is_held_for_plans_and_commits_and_not_for_the_work_between_them(
    tmp_path, events, name, mode
):
    kind, act, under_it, without = ACTS[name]
    table = HudiTable.open(made(tmp_path, kind).uri, options=mode)
    events.clear()
    act(table)
    assert by_hold(events) == (under_it, without)
    assert RecordingLock.holders == {}


@pytest.mark.req("TS-32", "TS-04")
@pytest.mark.parametrize("mode", [{}, OCC], ids=["a single writer", "several"])
@pytest.mark.parametrize(
    ("act", "module", "planner", "more"),
    [
        ("compact", compaction, "make_compaction_plan", {}),
        ("log_compact", log_compaction, "make_log_compaction_plan", {BLOCKS: "2"}),
    ],
    ids=["compact", "log_compact"],
)
def test_nobody_commits_while_a_service_is_scheduled(
    tmp_path, events, monkeypatch, act, module, planner, more, mode
):
    """What a plan is made of stands until the plan does: it is made and published under one hold of the lock."""
    table = HudiTable.open(made(tmp_path, "MERGE_ON_READ").uri, options=mode)
    before = HudiTable.open(table.uri).timeline.instants
    make, planned = getattr(module, planner), []

    def beside_a_rival(*given, **named):
        with pytest.raises(LockError, match="not free within 1 ms"):
            HudiTable.open(table.uri, options=mode).upsert([{"id": "rival", "ts": 1}], options=ALONE)
        planned.append(list(events))
        return make(*given, **named)

    monkeypatch.setattr(module, planner, beside_a_rival)
    events.clear()
    getattr(table, act)(mode="schedule", options={**ALONE, **more})
    (seen,) = planned
    after = HudiTable.open(table.uri).timeline.instants
    assert len(after) == len(before) + 1
    assert set(after) > set(before), "the rival left nothing"
    # Of the hold in which it was planned.
    since = events[len(seen) :]
    assert since.index(next(e for e in since if e.endswith("requested"))) < since.index("unlock")
    assert (
        HudiTable.open(table.uri, options=mode).upsert([{"id": "rival", "ts": 1}], options=ALONE).inserted
        == 1
    )


@pytest.mark.req("CC-33")
def test_a_cleaning_deletes_under_the_lock_and_gives_it_back_every_second(tmp_path, events, monkeypatch):
    """What it deletes a restore may need, which therefore waits for it; writers have their turn in between."""
    table = made(tmp_path, "COPY_ON_WRITE")
    table.upsert([{"id": "a", "ts": 9}], options=ALONE)
    monkeypatch.setattr(cleaning, "LOCKED_S", 0)
    monkeypatch.setattr(cleaning, "_THREADS", 1)
    events.clear()
    table.clean(options={**ALONE, "hoodie.cleaner.commits.retained": "1"})
    held, free = by_hold(events)
    assert held == ["clean.requested", "clean.inflight", "data file", "data file", "clean"]
    assert free == []
    assert events.count("lock") == 1 + held.count("data file")


@pytest.mark.req("CC-37")
@pytest.mark.parametrize("mode", [{}, OCC], ids=["a single writer", "several"])
def test_a_write_takes_the_lock_twice_and_a_reader_never(tmp_path, events, mode):
    table = made(tmp_path, "COPY_ON_WRITE")
    for rows in (1, 1000):
        events.clear()
        table.upsert([{"id": f"k{n}", "ts": n} for n in range(rows)], options={**ALONE, **mode})
        assert events.count("lock") == 2, "whatever it writes"
    events.clear()
    reader = HudiTable.open(table.uri, options=LOCK)
    assert reader.read().to_arrow().num_rows == reader.count() == 1001
    assert reader.read_incremental("000").to_arrow().num_rows == 1001
    assert events == []


@pytest.mark.req("CC-37")
def test_without_the_lock_no_write_begins_and_all_reads_go_on(tmp_path, events):
    table = made(tmp_path, "COPY_ON_WRITE")
    before = HudiTable.open(table.uri).timeline.instants
    RecordingLock.holders[table.uri] = object()
    with pytest.raises(LockError, match=r"not free within 1 ms.*another writer") as e:
        table.upsert([{"id": "b", "ts": 1}], options={**ALONE, **OCC})
    assert "hoodie.write.lock.wait_time_ms" in e.value.remedy
    assert HudiTable.open(table.uri).timeline.instants == before
    assert HudiTable.open(table.uri).count() == 1
    RecordingLock.holders.clear()
    assert table.upsert([{"id": "b", "ts": 1}], options={**ALONE, **OCC}).inserted == 1
