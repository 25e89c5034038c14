"""Incremental reads in the order in which commits were completed, and checkpoints that lose nothing."""

import os
from datetime import UTC

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import ConflictingOptionError, HollowCommitError, InstantNotFoundError
from hudi_timeline.options.read_options import HOLLOW_POLICY
from hudi_timeline.timeline.instant import parse_instant

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("v", pa.int64())])
POLICY = "hoodie.read.timeline.holes.resolution.policy"
BY_COMPLETION = {POLICY: "USE_TRANSITION_TIME"}


def row(id, v, written):
    return {"id": id, "v": v, "p": "a", "_hoodie_commit_time": at(written)}


def complete(table, written, completed, groups):
    """A commit whose completed file has a time of its own."""
    table.commit(at(written), groups)
    moment = parse_instant(at(completed)).replace(tzinfo=UTC).timestamp()  # the table's own zone
    os.utime(table.path / ".hoodie" / f"{at(written)}.commit", (moment, moment))


@pytest.fixture
def made(tmp_path):
    """Commit 10 is completed at 15, 20 only at 45, 30 at 35: each in a file group of its own, 30 rewrites 10's."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    complete(table, 10, 15, {("a", file_id(0)): [row("1", 1, 10), row("2", 1, 10)]})
    complete(table, 20, 45, {("a", file_id(1)): [row("3", 2, 20)]})
    complete(table, 30, 35, {("a", file_id(0)): [row("1", 3, 30), row("2", 1, 10)]})
    return table


def read(table, begin, end=None, **options):
    return table.open().read_incremental(begin, end, options={**BY_COMPLETION, **options}, meta_columns=True)


@pytest.mark.req("IN-05", "IN-07", "IN-18")
@pytest.mark.parametrize(
    ("begin", "end", "want"),
    [
        ("000", None, ["1", "2", "3"]),
        ("000", at(15), ["1", "2"]),
        (at(15), None, ["1", "3"]),
        (at(15), at(35), ["1"]),
        (at(35), None, ["3"]),
        (at(20), at(40), ["1"]),
        (at(45), None, []),
    ],
)
def test_bounds_are_times_of_completion(made, begin, end, want):
    assert ids(read(made, begin, end).to_arrow()) == want


@pytest.mark.req("IN-03", "IN-06", "IN-08")
def test_a_consumer_that_follows_its_checkpoints_sees_every_commit_once(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA)
    complete(table, 10, 15, {("a", file_id(0)): [row("1", 1, 10)]})
    seen, checkpoint = [], "000"
    late = {("a", file_id(1)): [row("2", 2, 20)]}
    for step in (
        lambda: complete(table, 30, 35, {("a", file_id(2)): [row("3", 3, 30)]}),
        lambda: complete(table, 20, 45, late),
        lambda: None,
    ):
        scan = read(table, checkpoint)
        seen += ids(scan.to_arrow())
        checkpoint = scan.checkpoint
        step()
    seen += ids(read(table, checkpoint).to_arrow())
    assert seen == ["1", "3", "2"]


@pytest.mark.req("IN-02", "IN-04", "IN-08")
def test_checkpoints_lie_before_what_is_still_open(made):
    assert made.open().read().checkpoint == at(30)
    assert made.open().read_incremental(at(10)).checkpoint == at(30)
    assert made.open().read_incremental(at(30)).checkpoint == at(30)
    made.instant_file(f"{at(25)}.inflight")
    assert made.open().read().checkpoint == at(20)
    with pytest.raises(HollowCommitError):
        made.open().read_incremental("000")
    scan = made.open().read_incremental("000", options={POLICY: "BLOCK"}, meta_columns=True)
    assert scan.checkpoint == at(20)
    assert ids(read(made, at(15)).to_arrow()) == ["1", "3"], "what is open is completed later"


def test_archived_commits_count_by_their_completion(made):
    made.archive(1, *states(at(5)))
    with pytest.raises(InstantNotFoundError):
        read(made, at(3))
    assert ids(read(made, at(12)).to_arrow()) == ["1", "2", "3"]


@pytest.mark.req("IN-05", "IN-17", "IN-18")
def test_what_took_long_and_was_archived_at_once_is_not_passed_over(made):
    made.archive(1, (at(5), "commit", "COMPLETED", at(40)))
    with pytest.raises(InstantNotFoundError) as e:
        read(made, at(35))
    assert e.value.details["oldest"] == at(15)
    assert f"begin at {at(40)} or later" in e.value.remedy, "with the time at which it was completed"
    assert "full_scan" not in e.value.remedy, "which that order does not have"
    assert ids(read(made, at(40)).to_arrow()) == ["3"]
    assert ids(made.open().read_incremental(at(10), meta_columns=True).to_arrow()) == ["1", "3"], (
        "by times of requests it is older"
    )


def test_reads_by_completion_have_no_scan_of_the_whole_table_before_version_8_and_offer_none(made):
    made.archive(1, *states(at(5)))
    with pytest.warns(UserWarning, match="they are archived$"):
        assert made.open().read_incremental(at(3), order="completion", on_missing="skip").to_arrow().num_rows
    for how in ({"order": "completion"}, {"options": {HOLLOW_POLICY: "USE_TRANSITION_TIME"}}):
        with pytest.raises(ConflictingOptionError, match="cannot go with a scan of the whole table before"):
            made.open().read_incremental(at(3), on_missing="full_scan", **how)


def test_an_archive_that_was_written_before_the_begin_is_not_opened(made):
    path = made.archive(1, (at(5), "commit", "COMPLETED", at(40)))
    moment = parse_instant(at(35)).replace(tzinfo=UTC).timestamp() - 7200
    os.utime(path, (moment, moment))
    assert ids(read(made, at(35)).to_arrow()) == ["3"]


def test_a_damaged_archive_does_not_stop_a_begin_on_the_timeline(made, caplog):
    path = made.archive(1, (at(5), "commit", "COMPLETED", at(40)))
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * 40 + data[140:])
    assert ids(read(made, at(35)).to_arrow()) == ["3"]
    assert "may be missing" in caplog.text
