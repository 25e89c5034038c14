"""Which cases of a parametrized test CI runs, where not all of them."""

import itertools

import pytest

from sampling import chosen

SMALL = [dict(zip(("act", "index"), pair, strict=True)) for pair in itertools.product("abcdef", "12345")]


@pytest.mark.parametrize("one_of", [2, 3, 5, 10, 100])
def test_each_value_that_cases_share_runs(one_of):
    runs = chosen(SMALL, one_of)
    assert {SMALL[n]["act"] for n in runs} == set("abcdef")
    assert {SMALL[n]["index"] for n in runs} == set("12345")
    assert len(SMALL) / one_of <= len(runs) <= len(SMALL) / one_of + 10


def test_values_may_be_left_out_where_cases_take_long():
    runs = chosen(SMALL, 10, values=False)
    assert len(runs) == 3
    assert runs < chosen(SMALL, 2, values=False)


def test_values_of_one_case_do_not_make_all_of_them_run():
    cases = [{"table": str(n % 3), "question": str(n)} for n in range(30)]
    runs = chosen(cases, 10)
    assert 3 <= len(runs) <= 5
    assert {cases[n]["table"] for n in runs} == set("012")


def test_a_value_of_a_single_case_runs():
    cases = [{"rival": "adds", "operation": operation} for operation in "abcdefgh"] + [
        {"rival": "drops", "operation": "a"}
    ]
    assert 8 in chosen(cases, 100)


def test_the_choice_is_of_the_cases_and_not_of_their_places():
    names = [SMALL[n] for n in sorted(chosen(SMALL, 4))]
    turned = SMALL[::-1]
    assert sorted(map(repr, names)) == sorted(repr(turned[n]) for n in chosen(turned, 4))


def test_cases_without_parameters_run_in_their_number():
    assert chosen([{}], 5) == {0}
    assert len(chosen([{}] * 10, 5)) == 2


pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from sampling import mark_chosen, mark_first, refuse_left_out

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    {before}
    mark_chosen(items)
    {after}

def pytest_deselected(items):
    refuse_left_out(items)
"""
FIRST = 'mark_first(items, {"test_some": 4})'
TESTS = """
import pytest

@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", range(8))
def test_sampled(n):
    pass

@pytest.mark.parametrize("n", range(8))
def test_all(n):
    pass

NAMED = [pytest.param(n, marks=[pytest.mark.in_ci] if n in (1, 6, 7) else []) for n in range(8)]

@pytest.mark.parametrize("n", NAMED)
def test_named(n):
    pass

@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", NAMED)
def test_named_and_sampled(n):
    pass

@pytest.mark.parametrize("n", [pytest.param(n, marks=[pytest.mark.slow] if n % 2 == 0 else []) for n in range(8)])
def test_some_slow(n):
    pass
"""


def ran(pytester, before="pass", after="pass"):
    """Numbers of the cases that CI runs, by test; what went wrong otherwise."""
    pytester.makeconftest(CONFTEST.format(before=before, after=after))
    pytester.makepyfile(test_some=TESTS)
    done = pytester.runpytest("-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "-v")
    found = {}
    for line in done.outlines:
        if " PASSED" in line:
            test, _, number = line.split("::")[1].split(" ")[0].rstrip("]").partition("[")
            found.setdefault(test, []).append(int(number))
    return found, "\n".join(done.errlines)


def test_marked_cases_are_slow_but_those_of_ci(pytester):
    found, _ = ran(pytester)
    assert len(found.pop("test_sampled")) == 2
    assert found == {
        "test_all": [*range(8)], "test_named": [1, 6, 7], "test_named_and_sampled": [1, 6, 7],
        "test_some_slow": [1, 3, 5, 7],
    }  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_number_of_a_file_chooses_of_what_nothing_else_does(pytester, when):
    """Cases that are named run whatever their places are, and slow ones have none."""
    found, _ = ran(pytester, **{when: FIRST})
    assert len(found.pop("test_sampled")) == 2
    assert found == {
        "test_all": [0, 4], "test_named": [1, 6, 7], "test_named_and_sampled": [1, 6, 7], "test_some_slow": [1],
    }  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_named_case_that_something_else_leaves_out_ends_the_run(pytester, when):
    found, error = ran(pytester, **{when: "items[17].add_marker(pytest.mark.slow)"})
    assert found == {}
    assert "test_named[1] is marked in_ci, and slow: CI would not run it" in error
