"""Partition paths: how values are escaped, and which paths are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import PartitionPathError
from hudi_format.keygen.partition_path import check_safe, escape, segment, split_values


@pytest.mark.req("KG-03")
def test_partition_values_are_escaped_as_apache_hudi_does():
    assert escape("é=?") == "é%3D%3F"
    assert escape("x/y") == "x%2Fy"
    assert escape("1 2}") == "1 2}"
    assert segment("f", None, hive_style=True, url_encode=True) == "f=__HIVE_DEFAULT_PARTITION__"
    assert segment("f", "", hive_style=False, url_encode=False) == "__HIVE_DEFAULT_PARTITION__"


@given(st.lists(st.one_of(st.none(), st.text(min_size=1)), min_size=1, max_size=3), st.booleans())
def test_encoded_partition_values_come_back(values, hive):
    values = [v if v != "__HIVE_DEFAULT_PARTITION__" else "x" for v in values]
    fields = [f"f{i}" for i in range(len(values))]
    path = "/".join(
        segment(f, v, hive_style=hive, url_encode=True) for f, v in zip(fields, values, strict=True)
    )
    assert split_values(path, fields) == values


def test_slashes_in_values_are_put_together_where_that_is_possible():
    assert split_values("2024/03/05", ["day"]) == ["2024/03/05"]
    assert split_values("day=2024/03/05", ["day"]) == ["2024/03/05"]
    assert split_values("a=1/2/b=3", ["a", "b"]) == ["1/2", "3"]
    assert split_values("1/2/3", ["a", "b"]) is None


@pytest.mark.req("TL-01")
@pytest.mark.parametrize("path", ["/abs", "a/../b", "..", "a//b", ".hoodie/x", "a/.", "a\x00b"])
def test_paths_that_leave_the_table_are_refused(path):
    with pytest.raises(PartitionPathError):
        check_safe(path)
