"""What a table consists of."""

import json

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id

from hudi_timeline.testing import Act, Case, preemptions

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32())])


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, partition_fields=("n",))
    table.commit(
        at(1),
        {("7", file_id(0)): [{"id": "1", "n": 7}], ("8", file_id(1)): [{"id": "2", "n": 8}]},
        operation="INSERT",
    )
    table.commit(at(2), {("7", file_id(0)): [{"id": "1", "n": 7}, {"id": "3", "n": 7}]})
    table.commit(at(3), {}, replaced={"8": (file_id(1),)}, operation="DELETE_PARTITION")
    table.base_file(at(4), "7", file_id(9), [{"id": "9", "n": 7}])
    table.instant_file(f"{at(4)}.commit.requested")
    return table


def test_commits_say_what_each_did(made):
    rows = made.open().inspect.commits().to_pylist()
    assert [(r["instant"], r["action"], r["state"], r["operation"]) for r in rows] == [
        (at(1), "commit", "COMPLETED", "INSERT"),
        (at(2), "commit", "COMPLETED", "UPSERT"),
        (at(3), "replacecommit", "COMPLETED", "DELETE_PARTITION"),
        (at(4), "commit", "REQUESTED", None),
    ]
    assert [(r["files_added"], r["rows_written"], r["file_groups_replaced"]) for r in rows] == [
        (2, 2, 0),
        (1, 2, 0),
        (0, 0, 1),
        (0, 0, 0),
    ]
    assert rows[0]["partitions"] == 2
    assert rows[0]["completed_at"] is not None
    assert rows[3]["completed_at"] is None
    assert rows[0]["extra"] == []


def test_the_timeline_has_every_action_once(made):
    rows = made.open().inspect.timeline().to_pylist()
    assert [(r["instant"], r["state"]) for r in rows] == [
        (at(1), "COMPLETED"),
        (at(2), "COMPLETED"),
        (at(3), "COMPLETED"),
        (at(4), "REQUESTED"),
    ]


def test_files_are_those_of_the_newest_state(made):
    (file,) = made.open().inspect.files().to_pylist()
    assert (file["partition"], file["file_id"], file["instant"]) == ("7", file_id(0), at(2))
    assert file["size"] == (made.path / file["path"]).stat().st_size


def test_file_slices_are_all_that_is_there(made):
    rows = made.open().inspect.file_slices().to_pylist()
    assert [(r["partition"], r["base_instant"], r["latest"], r["completed"]) for r in rows] == [
        ("7", at(1), False, True),
        ("7", at(2), True, True),
        ("7", at(4), False, False),
        ("8", at(1), False, True),
    ]


def test_partitions_have_typed_values(made):
    rows = made.open().inspect.partitions().to_pylist()
    assert [(r["partition"], r["n"], r["files"], r["newest_instant"]) for r in rows] == [
        ("7", 7, 1, at(2)),
        ("8", 8, 0, None),
    ]


def test_statistics_come_from_footers(made):
    (row,) = made.open().inspect.stats().to_pylist()
    assert (row["rows"], row["row_groups"], row["min_key"], row["bloom_filter"]) == (2, 1, None, None)


@pytest.fixture
def two_commits(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    table.commit(at(1), {("p", file_id(1)): [{"id": "a", "v": 1}]})
    table.commit(at(2), {("q", file_id(2)): [{"id": "b", "v": 2}]})
    return table


@pytest.mark.req("OP-04", "OP-05")
def test_a_commit_says_what_it_wrote_and_how_large_a_row_is(two_commits):
    inspect = two_commits.open().inspect
    (row,) = inspect.commit_partitions(at(2)).to_pylist()
    (file,) = inspect.commit_files(at(2)).to_pylist()
    size = (two_commits.path / file["path"]).stat().st_size
    assert (row["partition"], row["rows_inserted"], row["files_added"], row["bytes_written"]) == (
        "q",
        1,
        1,
        size,
    )
    assert inspect.average_record_size() == inspect.average_record_size(at(2)) == size
    two_commits.complete(at(3), [])
    assert inspect.average_record_size() == size
    assert inspect.average_record_size(at(3)) is None
    assert json.dumps(inspect.commit_partitions(at(3)).to_pylist()) == "[]"


@pytest.mark.parametrize("kind", [("COPY_ON_WRITE", "SIMPLE"), ("MERGE_ON_READ", "EXTENDIBLE_HASHING")])
@pytest.mark.parametrize(
    "name", ["average_record_size", "buckets", "files", "file_slices", "partitions", "stats"]
)
@pytest.mark.parametrize("event", ["erase", "restore"])
@pytest.mark.sampled(4)
def test_a_state_that_goes_while_it_is_looked_at_is_looked_at_anew(kind, name, event):
    look = Act(lambda t: getattr(t.inspect, name)(), name=name)
    for found in preemptions(
        Case({"one": [look], "two": [event]}, kind[0], index=kind[1]), "one", deep=False
    ):
        assert [d.error for d in found.outcome.done if d.actor == "one"] == [None]
