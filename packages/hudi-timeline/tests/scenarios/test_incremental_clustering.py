"""Incremental reads beside clustering: it rewrites rows and changes none."""

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import HollowCommitError
from hudi_timeline.timeline.avro_files import empty_replace_request, render

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("v", pa.int64())])
PLAN = render(
    "HoodieRequestedReplaceMetadata",
    {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": []}, "version": 1},
)


def row(id, v, written):
    return {"id": id, "v": v, "p": "a", "_hoodie_commit_time": at(written)}


@pytest.fixture
def made(tmp_path):
    """Commits 10, 20 and 40 in groups 0 and 1."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(at(10), {("a", file_id(0)): [row("1", 1, 10), row("2", 1, 10)]})
    table.commit(at(20), {("a", file_id(1)): [row("3", 2, 20)]})
    table.commit(at(40), {("a", file_id(0)): [row("1", 4, 40), row("2", 1, 10)]})
    return table


def cluster(table, time):
    """A completed clustering of both groups into one, which keeps the rows' commit times."""
    table.commit(
        time,
        {("a", file_id(5)): [row("1", 4, 40), row("2", 1, 10), row("3", 2, 20)]},
        replaced={"a": (file_id(0), file_id(1))},
        operation="CLUSTER",
    )


def read(table, begin, end=None):
    return table.open().read_incremental(begin, end, meta_columns=True)


@pytest.mark.req("IN-01", "QR-07")
def test_a_completed_clustering_shows_the_rows_of_their_own_commits(made):
    cluster(made, at(50))
    for begin, end, want in (
        ("000", None, ["1", "2", "3"]),
        (at(10), None, ["1", "3"]),
        (at(20), None, ["1"]),
        (at(40), None, []),
        (at(10), at(20), ["3"]),
        (at(20), at(40), ["1"]),
    ):
        scan = read(made, begin, end)
        assert ids(scan.to_arrow()) == want, f"({begin}, {end}]"
        assert scan.complete
    after = [f["path"] for f in read(made, "000").explain().files.to_pylist() if f["read"]]
    assert len(after) == 1, "the clustered file alone"
    made.commit(at(60), {("a", file_id(5)): [row("1", 6, 60), row("2", 1, 10), row("3", 2, 20)]})
    assert ids(read(made, at(40)).to_arrow()) == ["1"]


@pytest.mark.req("IN-02")
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_pending_clustering_stops_nobody(made, state):
    made.instant_file(f"{at(15)}.replacecommit.requested", PLAN)
    if state == "inflight":
        made.instant_file(f"{at(15)}.replacecommit.inflight")
    assert ids(read(made, at(10)).to_arrow()) == ["1", "3"]
    assert ids(made.open().read(as_of=at(30), meta_columns=True).to_arrow()) == ["1", "2", "3"]
    assert made.open().read().checkpoint == at(40)


@pytest.mark.req("IN-02")
def test_a_pending_overwrite_does(made):
    made.instant_file(f"{at(15)}.replacecommit.requested", empty_replace_request())
    with pytest.raises(HollowCommitError):
        read(made, at(10))


@pytest.mark.req("QR-07")
def test_overwritten_groups_are_left_out_and_what_replaced_them_is_there(made):
    made.commit(
        at(50),
        {("a", file_id(7)): [row("9", 5, 50)]},
        replaced={"a": (file_id(0),)},
        operation="INSERT_OVERWRITE",
    )
    assert ids(read(made, "000").to_arrow()) == ["3", "9"]
    assert ids(read(made, at(40)).to_arrow()) == ["9"]
    assert ids(read(made, at(20), at(40)).to_arrow()) == ["1"], "before it, the old group counts"
