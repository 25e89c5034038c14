"""Every operation and service beside every other one, in interleavings that a seed chooses."""

import itertools
import os
from dataclasses import replace

import pytest
from polling_lock import PollingLock

from hudi_format.errors import CorruptFileError
from hudi_timeline.options.transaction_options import LOCK_PROVIDER
from hudi_timeline.testing import (
    CRASH,
    DELAY,
    DOUBLE,
    FAIL,
    STALL,
    TEAR,
    Act,
    Fault,
    Violation,
    check,
    workload,
)
from hudi_timeline.testing.acts import ACTS, acts_on
from hudi_timeline.testing.faulty_storage import CHANGES
from hudi_timeline.testing.workload import BY_KEYS, OPTIONS, Case, drawn
from hudi_timeline.testing.workload_table import INITIAL, TABLES, made_table, rows_of

# Of what the session `simulation` tries 100,000, and `simulation_smoke` some in CI.
DRAWN = 80 if os.environ.get("HUDI_SOAK") else 30
STORAGE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
MINE = "polling_lock:PollingLock"


@pytest.mark.req("NEW-12", "CC-01")
@pytest.mark.parametrize("name", ACTS)
@pytest.mark.sampled(24, values=False)
def test_each_with_each(name):
    """An interleaving of each pair with one act; which, and on which table, its place says."""
    for seed, (one, two) in enumerate(itertools.combinations_with_replacement(ACTS, 2)):
        kinds = [(kind, i) for kind, i in TABLES if {one, two} <= {*acts_on(kind, i)}]
        if one == name and kinds:
            table_type, index = kinds[seed % len(kinds)]
            options = OPTIONS if seed % 4 == 0 and two != "upsert_new" else BY_KEYS
            Case({"one": [one], "two": [two]}, table_type, options, index=index).run(seed, deep=False)


@pytest.mark.req("NEW-12", "RC-04")
def test_drawn_cases_leave_what_some_order_explains():
    """Several acts of several actors, with lost puts and answers, repeated and torn calls, crashes and clocks."""
    for seed in range(DRAWN):
        drawn(seed).run()


@pytest.mark.req("NEW-31")
@pytest.mark.parametrize("priority", ["LOW", "NORMAL", "HIGH"])
@pytest.mark.sampled(3)
def test_drawn_cases_in_which_who_lost_once_has_precedence(priority):
    options = {
        **BY_KEYS,
        "hudi.write.priority": priority,
        "hudi.write.precedence.after": "1",
        "hudi.write.precedence.wait_ms": "500",
    }
    for seed in range(9000, 9000 + DRAWN // 4):
        replace(drawn(seed), options=options).run()


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("provider", [STORAGE, MINE], ids=["storage", "mine"])
def test_other_locks_are_simulated_too(provider):
    outcome = Case({"one": ["upsert"], "two": ["upsert"]}).run(1, options={LOCK_PROVIDER: provider})
    assert [d.error for d in outcome.done] == [None, None]


@pytest.mark.req("NEW-12")
def test_a_lock_of_a_user_that_does_not_hold_is_found(monkeypatch):
    monkeypatch.setattr(PollingLock, "try_acquire", lambda self: True)
    monkeypatch.setattr(PollingLock, "verify", lambda self: None)
    case = Case({"one": ["upsert"], "two": ["upsert"]})

    def many():
        for seed in range(100):
            case.run(seed, options={LOCK_PROVIDER: MINE})

    with pytest.raises(Violation, match="no serial order"):
        many()


def test_an_error_that_says_that_something_is_broken_is_a_violation():
    def broken(table):
        raise CorruptFileError("half a file")

    with pytest.raises(Violation, match="half a file"):
        Case({"one": [Act(broken, name="broken")]}).run(0)


@pytest.mark.parametrize("act", ["restore", "rollback"])
@pytest.mark.sampled(2)
def test_one_that_dies_between_a_write_and_a_read_is_on_its_way(act):
    """At each change: half of it is done, readers see it, and it is finished afterwards."""
    between = ["add_column"] if act == "restore" else ["clean"]
    case = Case({"one": [act], "two": ["read"], "three": between}, "MERGE_ON_READ")
    first = [(0, "three")]
    for nth in range(1, 40):
        died = replace(case, faults={"one": [Fault(CRASH, operation=CHANGES, nth=nth, after=True)]})
        outcome = died.run(1, switches=first, deep=False)
        if all(d.error is None for d in outcome.done):
            break
    assert 5 < nth < 39


def test_a_seed_draws_the_same_case():
    assert drawn(5) == drawn(5)
    assert len({repr(drawn(n)) for n in range(40)}) == 40


def test_seeds_draw_all_that_can_go_wrong():
    kinds = {fault.kind for n in range(400) for of in drawn(n).faults.values() for fault in of}
    assert kinds == {CRASH, DELAY, DOUBLE, FAIL, STALL, TEAR}
    assert any(drawn(n).clocks for n in range(40))


def test_the_check_reads_the_data_of_files_that_changed_since_they_were_found_sound():
    outcome = Case({"one": ["bulk_insert"]}).run(0)
    storage = outcome.storage
    (new,) = [p for p in storage.still_sound() if p not in made_table().still_sound()]
    data = storage.read(new)
    at = data.index(
        b"k10", data.index(b"hoodie_min_record_key")
    )  # which only the deep checks compare with the keys
    storage.touch(new, data[:at] + b"k99" + data[at + 3 :])
    with pytest.raises(Violation, match="its keys go from 'k10'"):
        check(outcome, rows_of, {**INITIAL}, keys_once=True)


@pytest.mark.parametrize(("end", "checks"), [(CRASH, 2), (DOUBLE, 1)], ids=["killed", "repeated"])
def test_what_was_mended_is_checked_again(end, checks, monkeypatch):
    """Where nothing was to mend, the files are those that were checked."""
    seen = []
    monkeypatch.setattr(workload, "_check_all", lambda outcome, *args, **kwargs: seen.append(outcome))
    Case({"one": ["upsert"]}, faults={"one": [Fault(end, operation="create", path="*.commit")]}).run(0)
    assert len(seen) == checks
