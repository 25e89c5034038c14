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


def test_marked_cases_are_slow_but_those_of_ci(pytester):
    pytester.makeconftest(
        "from sampling import mark_sampled\n\ndef pytest_collection_modifyitems(items):\n    mark_sampled(items)\n"
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.sampled(4)
        @pytest.mark.parametrize("n", range(8))
        def test_a(n):
            pass

        @pytest.mark.parametrize("n", range(8))
        def test_b(n):
            pass
        """
    )
    done = pytester.runpytest("-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(passed=2 + 8, deselected=6)
