"""Partitions to delete: by name, by pattern, by rows; and names that no partition has."""

import pytest

from hudi_format.errors import UnknownPartitionError
from hudi_timeline.writing.new_table import PartitionsToDelete, choose, require_all

THERE = ["y=2024/m=01", "y=2024/m=02", "y=2025/m=01", "[x]", "x", "a*b"]


@pytest.mark.parametrize(
    ("names", "found", "unknown"),
    [
        (["x"], ("x",), ()),
        (["/y=2025/m=01/"], ("y=2025/m=01",), ()),
        (["y=2024/*"], ("y=2024/m=01", "y=2024/m=02"), ()),
        (["y=2024/%2A", "x", "x"], ("x", "y=2024/m=01", "y=2024/m=02"), ()),
        (["[x]"], ("[x]",), ()),
        (["[x]*"], ("[x]",), ()),
        (["?"], (), ("?",)),
        (["a*b"], ("a*b",), ()),
        (["Y=2025/m=01", "y=2026/*"], (), ("Y=2025/m=01", "y=2026/*")),
    ],
)
def test_names_and_patterns_choose_what_is_there(names, found, unknown):
    assert choose(names, ["x"], THERE) == PartitionsToDelete(found, unknown)


def test_without_names_the_partitions_of_the_rows_count_as_they_are():
    assert choose([], ["x", "a*b", "z*"], THERE) == PartitionsToDelete(("a*b", "x"), ("z*",))


def test_the_commit_lists_unknown_names_and_no_patterns():
    chosen = choose(["x", "nope", "no*"], [], THERE)
    assert chosen.listed == ("nope", "x")
    assert chosen.warnings() == ("nope, no* are no partitions of the table: nothing was deleted there",)
    assert choose(["nope"], [], THERE).warnings()[0].startswith("nope is no partition of")
    assert choose(["x"], [], THERE).warnings() == ()


def test_unknown_names_are_refused_with_those_that_were_probably_meant():
    require_all(choose(["x"], [], THERE), THERE, table="/t")
    with pytest.raises(UnknownPartitionError, match=r"did you mean y=2025/m=01") as e:
        require_all(choose(["y=2025/m=1"], [], THERE), THERE, table="/t")
    assert e.value.details["partitions"] == ["y=2025/m=1"]
