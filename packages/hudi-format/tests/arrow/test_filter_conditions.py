"""Conditions as Arrow's expressions."""

import operator

import pyarrow as pa
import pytest

from hudi_format.arrow.filter_conditions import ArrowConditions, FilterColumn, paired

ROWS = pa.table({"id": ["a", "b", "c"], "s": [{"n": 1}, {"n": None}, None], "yes": [True, False, None]})
ID = FilterColumn(("id",), pa.string())
N = FilterColumn(("s", "n"), pa.int64())
YES = FilterColumn(("yes",), pa.bool_())
MAKE = ArrowConditions()


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (MAKE.compare(">=", ID, pa.scalar("b")), "bc"),
        (MAKE.compare("!=", N, pa.scalar(2)), "a"),
        (MAKE.compare("==", ID, ID), "abc"),
        (MAKE.among(ID, [pa.scalar("a"), pa.scalar("c")]), "ac"),
        (MAKE.negated(MAKE.among(N, [pa.scalar(1)])), "bc"),
        (MAKE.like(ID, "_"), "abc"),
        (MAKE.is_null(N), "bc"),
        (MAKE.is_valid(N), "a"),
        (MAKE.flag(YES), "a"),
        (MAKE.negated(MAKE.flag(YES)), "b"),
        (MAKE.never(), ""),
        (MAKE.joined([MAKE.is_null(N), MAKE.flag(YES), MAKE.never()], conjunction=False), "abc"),
        (MAKE.joined([MAKE.is_null(N), MAKE.negated(MAKE.flag(YES))], conjunction=True), "b"),
    ],
)
def test_rows_that_a_condition_keeps(condition, kept):
    assert "".join(ROWS.filter(condition)["id"].to_pylist()) == kept


def test_a_column_shows_its_path():
    assert str(N) == "s.n"


@pytest.mark.parametrize("count", [1, 2, 3, 8, 1001])
def test_a_balanced_tree_keeps_the_order(count):
    assert paired(operator.add, [[n] for n in range(count)]) == list(range(count))
