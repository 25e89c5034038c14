"""Writers and services of one table that are killed and stopped, beside the serial history of their commits.

`python tools/soak/rivals.py` runs any number of them for any time, Apache Hudi among them.
"""

import random
from dataclasses import replace

import pytest

from hudi_timeline import HudiTable
from soak.rivals import LOCKS, Place, Rivals, place_of, same_for_apache
from soak.serial_history import (
    FIRST,
    NOTE,
    OVERWRITTEN_KEYS,
    SCHEMA,
    Batch,
    Batches,
    History,
    committed_batches,
    first_batch,
    replayed,
    rows_of,
    wrong_in_snapshot,
)
from soak.steps import COPY_ON_WRITE, MERGE_ON_READ


@pytest.fixture
def history():
    """Three batches after the first, of which the writers know two to be there."""
    found = History()
    changed = Batch("a-1", "upsert", (("shared-p0-1", "p0", "a-1"), ("a-1-0", "p0", "a-1")))
    gone = Batch("a-2", "delete", (("a-1-0", "p0", "a-2"),))
    whole = Batch(
        "b-1", "insert_overwrite", tuple((f"whole-b-{n}", "whole", "b-1") for n in range(OVERWRITTEN_KEYS))
    )
    for batch in (first_batch(), changed, gone, whole):
        found.begin(batch)
    for batch in (changed, whole):
        found.end(batch)
    return found


ALL = [FIRST, "a-1", "b-1", "a-2"]


def rows(history, names):
    return list(replayed(history.begun[n] for n in names).values())


@pytest.mark.parametrize("committed", [ALL, [FIRST, "b-1", "a-1"], [FIRST, "a-1", "a-2", "b-1"]])
def test_a_serial_history_explains_its_rows(history, committed):
    assert history.problems(committed, rows(history, committed)) == []
    assert wrong_in_snapshot(rows(history, committed)) == []


def without(key):
    return lambda there: [r for r in there if r[0] != key]


def with_value(key, value):
    return lambda there: [(k, p, value if k == key else v) for k, p, v in there]


@pytest.mark.parametrize(
    ("committed", "change", "says"),
    [
        (ALL, with_value("shared-p0-1", FIRST), "shared-p0-1 is"),  # a lost update
        (ALL, with_value("shared-p0-1", "a-2"), "shared-p0-1 is"),
        (ALL, without("shared-p1-3"), "shared-p1-3 is None"),
        (ALL, lambda there: [*there, ("a-1-0", "p0", "a-1")], "a-1-0 is"),  # a row that came back
        (ALL, lambda there: [*there, there[0]], "stands 2 times"),
        ([*ALL, "a-1"], None, "a-1 was committed 2 times"),
        ([FIRST, "b-1"], None, "a-1 was said to be committed"),
        ([*ALL, "c-1"], None, "c-1 is committed, and nobody began it"),
        ([FIRST, "a-1", "a-2"], lambda there: there, "b-1 was said"),
    ],
)
def test_a_bad_history_is_found(history, committed, change, says):
    there = rows(history, [n for n in committed if n in history.begun])
    found = history.problems(committed, change(there) if change else there)
    assert any(says in text for text in found), found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda there: [*there, there[0]], "stands 2 times"),
        (lambda there: [*there, ("x", "whole", "c-1")], "the overwritten partition"),
        (without("whole-first-0"), "the overwritten partition"),
        (without("shared-p0-0"), "of the shared keys"),
    ],
)
def test_a_state_that_no_batch_leaves_is_found(change, says):
    there = list(first_batch().rows)
    assert wrong_in_snapshot(there) == []
    assert any(says in text for text in wrong_in_snapshot(change(there)))


def test_the_rows_of_a_table_are_those_of_its_batches_also_when_they_are_archived(tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    history, batches = History(), Batches("a", seed=1)
    given = [first_batch()]
    short = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    for _ in range(8):
        batch = given[-1]
        history.begin(batch)
        getattr(table, batch.operation)(batch.to_arrow(), options={**short, NOTE: batch.name})
        history.end(batch)
        batches.done(batch)
        given.append(batches.next())
    given.pop()
    assert len(HudiTable.open(table.uri).timeline.completed_writes()) < 6
    assert {b.operation for b in given} == {"upsert", "insert", "delete", "insert_overwrite"}
    committed = committed_batches(HudiTable.open(table.uri))
    assert committed == [b.name for b in given]
    there = rows_of(HudiTable.open(table.uri).read(["id", "p", "v"]).to_arrow())
    assert history.problems(committed, there) == []


@pytest.mark.parametrize(
    ("python", "services", "kill_every_s", "seconds"),
    [(1, 0, 0.0, 3.0), pytest.param(3, 2, 2.0, 60.0, marks=pytest.mark.slow)],
)
def test_killed_writers_and_services_leave_a_serial_history(
    tmp_path, python, services, kill_every_s, seconds
):
    place = Place(str(tmp_path / "t"), {})
    seed = random.randrange(10**6)
    rivals = Rivals(place, seed=seed, python=python, services=services, kill_every_s=kill_every_s)
    report = rivals.run(seconds)
    print(report)
    assert report.commits > 1
    assert bool(report.signals["killed"]) == bool(kill_every_s)


@pytest.mark.slow
@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("table_type", [COPY_ON_WRITE, MERGE_ON_READ])
def test_rivals_for_minutes_on_each_lock(tmp_path, lock, table_type):
    apache = int(lock == "zookeeper")
    with place_of(lock, tmp_path) as place:
        place = replace(place, options={**place.options, "hoodie.metadata.enable": "false"})
        seed = random.randrange(10**6)
        print(lock, table_type, seed)
        print(Rivals(place, seed=seed, table_type=table_type, spark=1, apache=apache).run(240))
        assert not apache or same_for_apache(place) == []
