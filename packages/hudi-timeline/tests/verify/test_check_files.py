"""Links to folders that listings leave out: `verify` names each one, and says whether what it leads to is listed."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"])
    made.insert([{"id": p, "p": p, "v": 1} for p in "abc"])
    assert made.verify(deep=True) == []
    return made


def links(table):
    return {
        f.path: (str(f.severity), f.details["target"], f.details["listed"])
        for f in HudiTable.open(table.storage.uri).verify()
        if f.code == "link-not-listed"
    }


@pytest.mark.req("NEW-09", "TL-05")
def test_a_partition_that_stands_behind_a_link_is_told(table, tmp_path):
    path = tmp_path / "t"
    (path / ".hoodie" / "kept").mkdir()
    (path / "a").rename(path / ".hoodie" / "kept" / "a")
    (path / "a").symlink_to(".hoodie/kept/a")
    assert links(table) == {"a": ("warning", ".hoodie/kept/a", False)}
    (found,) = [f for f in table.verify() if f.code == "link-not-listed"]
    assert "which no listing of the table shows" in found.message
    assert not found.repairable
    assert (path / "a").is_symlink()


@pytest.mark.req("NEW-09", "TL-05")
def test_links_to_what_is_listed_and_links_of_files(table, tmp_path):
    path = tmp_path / "t"
    (path / "newest").symlink_to("b")
    (path / "c" / "up").symlink_to("..")
    (path / "c" / "whole").symlink_to(path)
    (path / "c" / ".x.parquet.crc").symlink_to("nowhere")  # leads to nothing
    (path / "other").symlink_to(path / "b" / ".hoodie_partition_metadata")  # to a file
    (path / "_other" / ".hoodie").mkdir(parents=True)  # another table's
    (path / "_other" / "p").mkdir()
    (path / "p").symlink_to("_other/p")
    assert links(table) == {
        "newest": ("warning", "b", True),
        "c/up": ("warning", "", True),
        "c/whole": ("warning", "", True),
        "p": ("warning", "_other/p", False),
    }
    assert sorted(table.read().to_arrow().column("id").to_pylist()) == ["a", "b", "c"]
