"""Precedence: who waits for whom, for how long, and what is left of those that died."""

import os
import subprocess
import sys

import pytest

from hudi_format.errors import ConcurrentWriterError
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.precedence import FOLDER, HELD_UP, Precedence, claims
from hudi_timeline.options.transaction_config import parse_transaction_options

OCC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
OPEN, NONE_OPEN = (lambda: ["20260101000000000"]), list
pytestmark = pytest.mark.req("NEW-31", "TS-33")


class Clock:
    def __init__(self):
        self.s = 100.0

    def __call__(self):
        self.s += 0.001
        return self.s


@pytest.fixture
def standing(storage):
    clock, made = Clock(), []

    def of(priority="NORMAL", lost=0, first=False, mode=OCC):
        options = parse_transaction_options({**mode, "hudi.write.priority": priority})
        made.append(Precedence(storage, options, lost=lost, first=first, clock=clock, now=clock))
        return made[-1]

    of.clock = clock
    yield of
    for one in made:
        one.end()


def waits(one, others=NONE_OPEN):
    try:
        one.give_way(True, others)
    except ConcurrentWriterError as e:
        return e.details[HELD_UP]
    return False


def test_nobody_leaves_a_file_where_nobody_lost(storage, standing):
    for priority in ("NORMAL", "LOW"):
        assert not waits(standing(priority, lost=2))
    assert not waits(standing("HIGH", lost=9, mode={}))  # the only writer
    assert claims(storage) == []


def test_all_wait_for_one_that_lost_often_and_it_for_those_that_are_open(storage, standing):
    loser = standing(lost=3)
    assert waits(loser, OPEN)
    assert not waits(loser)
    others = [standing(p) for p in ("LOW", "NORMAL", "HIGH")]
    assert [waits(o) for o in others] == [True] * 3
    loser.end()
    assert [waits(o) for o in others] == [True, True, False]  # for the one of the class HIGH
    others[2].end()
    assert [waits(o) for o in others[:2]] == [False] * 2
    assert claims(storage) == []


def test_among_several_that_lost_often_the_first_comes_first_whatever_its_class(standing):
    low, high = standing("LOW", lost=3), standing("HIGH", lost=3)
    assert (waits(low), waits(high)) == (False, True)
    low.end()
    assert not waits(high)


def test_those_of_one_class_do_not_wait_for_each_other(standing):
    for priority in ("HIGH", "NORMAL"):
        one, other = standing(priority), standing(priority)
        assert (waits(one, OPEN), waits(other, OPEN)) == (False, False)
        one.end()
        other.end()


def test_a_low_one_begins_where_no_other_write_is_open(standing):
    low = standing("LOW")
    assert waits(low, OPEN)
    assert not waits(low)


@pytest.mark.parametrize("priority", ["LOW", "NORMAL"])
def test_who_is_held_up_for_the_whole_time_has_precedence_then(standing, priority):
    high, held = standing("HIGH"), standing(priority)
    assert waits(held)
    standing.clock.s += 61
    assert waits(held, OPEN)  # for what is open, and nobody begins meanwhile
    assert waits(standing("HIGH"))
    high.end()
    assert not waits(held)
    assert held.warning == "it waited 61.0 s before it began, for writes or services that go first"


def test_nobody_waits_for_ever(standing):
    loser, other = standing(lost=3), standing()
    assert (waits(loser, OPEN), waits(other)) == (True, True)
    standing.clock.s += 61
    assert not waits(loser, OPEN)
    assert "20260101000000000" in loser.warning
    assert waits(other)  # it has precedence after the first
    standing.clock.s += 61
    assert not waits(other)
    assert other.warning


HOLDER = """
import sys
from hudi_format.storage.local import LocalStorage
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.options.transaction_config import parse_transaction_options
options = parse_transaction_options({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
held = Precedence(LocalStorage(sys.argv[1]), options, lost=3)
print("has it", flush=True)
sys.stdin.read()
"""


def test_nobody_waits_for_a_process_that_was_killed(storage, standing, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "table")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"has it\n"
        one = standing()
        assert waits(one)
    finally:
        process.kill()
        process.communicate()
    assert not waits(one)
    assert claims(storage) == []


def test_nobody_waits_for_files_of_another_make(storage, standing, tmp_path):
    storage.create(f"{FOLDER}/notes.txt", b"")
    storage.create(f"{FOLDER}/9-1767225600000-x", b"")
    assert not waits(standing())
    # That of a process which cannot be asked counts as long as a heartbeat does.
    storage.create(f"{FOLDER}/3-0000000000001-x", b"")
    assert waits(standing())
    os.utime(tmp_path / "table" / FOLDER / "3-0000000000001-x", (0, 0))
    assert not waits(standing())


def test_heartbeats_of_writes_are_not_those_of_precedence(storage, standing):
    standing(lost=3)
    assert heartbeat.list_instants(storage) == []


@pytest.mark.parametrize("priority", ["LOW", "NORMAL"])
def test_a_wait_is_bounded_by_twice_the_time_and_told(standing, caplog, priority):
    """Behind one of a higher class that never ends: it is told what it waits for, and how long it did."""
    standing("HIGH")
    one, since = standing(priority), standing.clock.s
    with caplog.at_level("WARNING", logger="hudi"):
        while waits(one, OPEN):
            standing.clock.s += 0.5
    assert 120 <= standing.clock.s - since <= 122
    (told,) = caplog.messages
    assert "hudi.write.precedence.wait_ms" in told
    assert "60000 ms" in told
    assert "it waited 120" in one.warning


def test_a_wait_that_ends_is_a_warning_of_the_result_and_a_short_one_is_none(standing):
    for waited, told in ((0.1, ""), (30.0, "it waited 30.0 s before it began")):
        high, one = standing("HIGH"), standing()
        assert waits(one)
        standing.clock.s += waited
        high.end()
        assert not waits(one)
        assert one.warning.startswith(told)
        assert bool(one.warning) == bool(told)
