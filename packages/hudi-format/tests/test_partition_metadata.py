"""The file that makes a folder a partition."""

from datetime import UTC, datetime

import pytest

from hudi_format import properties
from hudi_format.partition_metadata import depth_of, render, write_if_absent
from hudi_format.storage.local import LocalStorage

T = "20261121052138047"


@pytest.mark.req("TL-05")
@pytest.mark.parametrize(("partition", "depth"), [("", 0), ("oslo", 1), ("2024/03/05", 3), ("a=x y/b=1", 2)])
def test_the_depth_is_the_number_of_folders(partition, depth):
    assert depth_of(partition) == depth


def test_the_text_is_that_of_apache_hudi():
    lines = render(T, 2).decode("ascii").splitlines()
    assert lines[0] == "#partition metadata"
    assert lines[1].startswith("#")
    assert lines[2:] == [f"commitTime={T}", "partitionDepth=2"]
    assert properties.parse(render(T, 2)) == {"commitTime": T, "partitionDepth": "2"}


def test_javas_date_line():
    assert properties.java_date(datetime(2026, 11, 1, 5, 2, 3, tzinfo=UTC)) == "Sun Nov 01 05:02:03 UTC 2026"


@pytest.mark.parametrize("partition", ["", "p/q"])
def test_it_is_written_once_and_never_changed(tmp_path, partition):
    storage = LocalStorage(str(tmp_path))
    path = f"{partition}/.hoodie_partition_metadata".lstrip("/")
    assert write_if_absent(storage, partition, T)
    first = storage.read(path)
    assert not write_if_absent(storage, partition, "20991121052138047")
    assert storage.read(path) == first


def test_another_writer_may_come_first(tmp_path):
    class Late(LocalStorage):
        def info(self, path):
            return None

    storage = Late(str(tmp_path))
    assert write_if_absent(storage, "p", T)
    assert not write_if_absent(storage, "p", "20991121052138047")
    assert T.encode() in storage.read("p/.hoodie_partition_metadata")
