"""Commits that contradict themselves, or what no table can have: an error, and never other rows."""

from dataclasses import replace

import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.testing.table_builder import TableBuilder


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


def _renamed(made, label, action, old, new):
    path = f".hoodie/{made.at(label)}.{action}"
    data = made.storage.read(path)
    assert old in data
    made.storage.delete(path)
    made.storage.create(path, data.replace(old, new, 1))


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("name", [b'"partitionToWriteStats"', b'"path"', b'"fileId"'])
def test_a_commit_without_what_it_wrote_is_not_one_that_wrote_nothing(made, name):
    made.commit("second", made.log("second", {"a": 2}))
    _renamed(made, "second", "deltacommit", name, name[:2] + b"_" + name[3:])
    for read in (made.table.read, lambda: made.table.read_incremental("0")):
        with pytest.raises(CorruptFileError, match="no commit metadata") as e:
            read().to_arrow()
        assert e.value.instant == made.at("second")


@pytest.mark.req("NEW-37")
def test_a_replacement_without_what_it_replaced_brings_nothing_back(made):
    made.commit("second", made.base("second", {"b": 1}, group=2), replaced={"p0": [made.group(1)]})
    _renamed(made, "second", "replacecommit", b'"partitionToReplaceFileIds"', b'"partitionToReplaceFileIdz"')
    with pytest.raises(CorruptFileError, match="a replacement without partitionToReplaceFileIds"):
        made.table.read().to_arrow()
