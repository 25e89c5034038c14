"""Links to folders that listings leave out: `verify` names each one, and says whether what it leads to is listed."""

import pyarrow as pa
import pytest

from hudi_format.model import WriteStat
from hudi_timeline import HudiTable
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.verify.check_files import lost_writes

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


@pytest.mark.req("NEW-09")
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


@pytest.mark.req("NEW-09")
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


def _stat(file_id, slice_of, n=3, *, at="3", log=True, deletes=0):
    path = f"a/.{file_id}_{slice_of}.log.1_0-0-0" if log else f"a/{file_id}_0-0-0_{at}.parquet"
    return WriteStat(file_id, path, "a", slice_of, num_writes=n - deletes, num_deletes=deletes)


def _lost(*stats, operation="CLUSTER", time="3"):
    """Paths that are lost of a write that ended beside a replacement of the groups `x` and `y` by `u` and `v`."""
    made = {
        Instant("1", "deltacommit", "COMPLETED"): CommitMetadata({"a": [_stat("x", "1", at="1", log=False)]}),
        Instant("2", "replacecommit", "COMPLETED"): CommitMetadata(
            {"a": [_stat(i, "null", at="2", log=False) for i in "uv"]},
            operation=operation,
            replaced={"a": ("x", "y")},
        ),
        Instant(time, "deltacommit", "COMPLETED"): CommitMetadata({"a": list(stats)}),
    }
    found = list(lost_writes(made))
    assert all((i.time, at) == (time, "2") for i, _, at in found)
    return [s.path for _, s, _ in found]


def test_what_is_logged_to_old_and_new_buckets_is_not_lost():
    twice = [
        _stat("x", "1", 3),
        _stat("y", "1", 4, deletes=2),
        _stat("u", "2", 5),
        _stat("v", "2", 2),
        _stat("z", "1", 9),
    ]
    assert _lost(*twice) == []
    assert _lost(*reversed(twice)) == []
    assert _lost(*twice, time="1.5") == []  # before it


@pytest.mark.parametrize(
    ("others", "how"),
    [
        ([], {}),
        ([_stat("u", "2", 2)], {}),  # not all of them
        ([_stat("u", "1", 3)], {}),  # in a slice that the replacement did not begin
        ([_stat("u", "2", 3, log=False)], {}),  # rewritten after it
        ([_stat("u", "2", 3)], {"operation": "INSERT_OVERWRITE"}),
    ],
)
def test_what_is_written_to_replaced_groups_alone_is_lost(others, how):
    late = _stat("x", "1", 3)
    assert _lost(late, *others, **how) == [late.path]
    assert _lost(_stat("x", "1", 3, log=False), _stat("u", "2", 3)) == ["a/x_0-0-0_3.parquet"]
