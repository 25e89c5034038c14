"""Commits that contradict themselves, or what no table can have: an error, and never other rows."""

from dataclasses import replace

import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.testing.tables import TableBuilder


@pytest.fixture
def made():
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit("first", builder.base("first", {"a": 1}))
    return builder


@pytest.mark.req("IN-01")
@pytest.mark.parametrize("partition", ["/p0", "p1", "", ".", "p0/.", "file:///p0"])
def test_a_file_in_another_partition_than_its_commit_says(made, partition):
    made.commit("second", replace(made.log("second", {"a": 2}), partition=partition))
    with pytest.raises(CorruptFileError, match="in the partition") as e:
        made.table.read_incremental("0").to_arrow()
    assert e.value.instant == made.at("second")


def test_sums_that_are_more_than_a_number_can_have(made):
    stat = made.log("second", {"a": 2})
    other = replace(made.base("second", {"b": 1}, group=2), num_writes=2**62, total_write_bytes=2**62)
    made.commit("second", replace(stat, num_writes=2**62, total_write_bytes=2**62), other)
    # As the sum of Java's longs.
    assert made.table.inspect.commits().column("rows_written").to_pylist() == [1, -(2**63)]
