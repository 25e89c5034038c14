"""Known histories, right and wrong ones, before the check of histories is believed."""

from dataclasses import replace

import pytest

from hudi_format.errors import WriteConflictError
from hudi_timeline.testing import Act, Crash, Violation, by_key, is_serializable
from hudi_timeline.testing.interleavings import Done

ADD = Act(lambda t: None, lambda rows: {**rows, "a": rows.get("a", 0) + 1}, "add")
DOUBLE = Act(lambda t: None, lambda rows: {**rows, "a": rows.get("a", 0) * 2}, "double")
CLEAR = Act(lambda t: None, lambda rows: {}, "clear")
LOST = WriteConflictError("lost")


def done(act, began, ended, actor="one", error=None):
    return Done(actor, act, began, ended, error)


BESIDE = [done(ADD, 1, 9), done(DOUBLE, 2, 8, "two")]
AFTER = [done(ADD, 1, 4), done(DOUBLE, 5, 8, "two")]
CASES = {
    "either order of two that overlap": (BESIDE, [4, 3], [2, 1, 5]),
    "one that ended before is before": (AFTER, [4], [3]),
    "an actor's calls follow each other": ([done(ADD, 1, 4), done(DOUBLE, 4, 8)], [4], [3]),
    "a call that raised had no effect": ([done(ADD, 1, 9, error=LOST), done(DOUBLE, 2, 8, "two")], [2], [3, 4]),
    "one that was killed had it or not": (
        [done(ADD, 1, 9, error=Crash()), done(DOUBLE, 2, 8, "two")],
        [2, 3, 4],
        [1, 5],
    ),
    "an update that was lost": ([done(ADD, 1, 9), done(ADD, 1, 9, "two")], [3], [2]),
    "of three": ([*BESIDE, done(ADD, 10, 12, "two")], [5, 4], [3, 6]),
}  # fmt: skip


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("name", CASES)
def test_what_a_serial_order_explains(name):
    acts, right, wrong = CASES[name]
    assert [is_serializable(acts, {"a": 1}, {"a": v}) for v in right] == [True] * len(right)
    assert [is_serializable(acts, {"a": 1}, {"a": v}) for v in wrong] == [False] * len(wrong)


UNDO = Act(lambda t: None, lambda rows: {**rows, "a": 1}, "undo", lasts=True)
BACK = replace(UNDO, goes_back=True)


def seen(value, began, ended):
    return Done("reader", Act(lambda t: None, sees=dict), began, ended, None, {"a": value})


@pytest.mark.parametrize("died", [UNDO, BACK])
def test_one_that_is_finished_by_others_takes_effect_when_it_is(died):
    before = [done(ADD, 1, 2), done(ADD, 3, 4)]
    acts = [*before, done(died, 5, 6, error=Crash()), seen(3, 7, 8)]
    assert is_serializable(acts, {"a": 1}, {"a": 3})
    assert is_serializable(acts, {"a": 1}, {"a": 1})
    assert is_serializable(acts, {"a": 1}, {"a": 2}) == died.goes_back  # one of the two is undone
    assert not is_serializable(acts, {"a": 1}, {"a": 4})
    acts[2] = done(died, 5, 6)
    assert not is_serializable(acts, {"a": 1}, {"a": 1})
    assert not is_serializable(acts, {"a": 1}, {"a": 2})


def test_one_that_goes_back_goes_to_states_that_were_there():
    acts = [done(ADD, 1, 2), done(ADD, 3, 4), done(BACK, 5, 6, error=Crash()), seen(2, 7, 8), seen(1, 9, 10)]
    assert is_serializable(acts, {"a": 1}, {"a": 1})
    assert not is_serializable([*acts, seen(5, 11, 12)], {"a": 1}, {"a": 1})


def test_a_read_beside_one_that_goes_back_shows_a_state_between():
    acts = [done(ADD, 1, 2), done(ADD, 3, 4), done(BACK, 5, 9)]
    assert is_serializable([*acts, seen(2, 6, 8)], {"a": 1}, {"a": 1})
    assert not is_serializable([*acts, seen(5, 6, 8)], {"a": 1}, {"a": 1})
    assert not is_serializable([*acts, seen(2, 10, 12)], {"a": 1}, {"a": 1})
    assert not is_serializable([*acts[:2], done(UNDO, 5, 9), seen(2, 6, 8)], {"a": 1}, {"a": 1})


def test_rows_that_are_lost_or_too_many_have_no_order():
    acts = [done(ADD, 1, 9), done(CLEAR, 2, 8, "two")]
    assert is_serializable(acts, {"a": 1, "b": 1}, {})
    assert is_serializable(acts, {"a": 1, "b": 1}, {"a": 1})
    assert not is_serializable(acts, {"a": 1, "b": 1}, {"a": 2, "b": 1})
    assert not is_serializable([], {"a": 1}, {})


class Twice:
    """A table that holds a key twice."""

    def read(self, columns):
        return self

    def to_arrow(self):
        return self

    def to_pylist(self):
        return [{"id": "a", "v": 1}, {"id": "a", "v": 2}, {"id": "b", "v": 1}]


def test_a_key_that_is_there_twice_is_a_violation():
    with pytest.raises(Violation, match="'a'"):
        by_key("v", key="id")(Twice())
