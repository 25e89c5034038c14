"""The stability mark of reads, the choice of order, and who blocks a reader."""

import json
import os
import socket
import time

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import ConflictingOptionError, HollowCommitError, InvalidOptionError
from hudi_timeline.concurrency.heartbeat import _start_and_state, this_process

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("v", pa.int64())])


def row(id, v):
    return {"id": id, "v": v, "p": "a", "_hoodie_commit_time": at(v)}


def commit(table, number, group):
    table.commit(at(number), {("a", file_id(group)): [row(str(number), number)]})


def completed(table, number, seconds_ago):
    """A commit's time of completion is that of its file, which a file system may note by ticks or seconds."""
    when = time.time() - seconds_ago
    os.utime(table.path / ".hoodie" / f"{at(number)}.commit", (when, when))


@pytest.fixture
def made(tmp_path):
    """Commits 10 and 30, completed some time ago, and 20 that is open, by this process."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    commit(table, 10, 1)
    commit(table, 30, 3)
    completed(table, 10, 20)
    completed(table, 30, 10)
    table.instant_file(f"{at(20)}.commit.requested")
    return table


def beat(table, instant, seconds_ago=0.0):
    folder = table.path / ".hoodie" / ".heartbeat"
    folder.mkdir(exist_ok=True)
    me = this_process()
    started, _ = _start_and_state(os.getppid())  # a process that lives, and is not this one
    text = {
        "host": me.host,
        "boot": me.boot,
        "namespace": me.namespace,
        "pid": os.getppid(),
        "started": started,
    }
    (folder / instant).write_text(json.dumps({**text, "token": "x", "interval_ms": 60000, "misses": 2}))
    when = time.time() - seconds_ago
    os.utime(folder / instant, (when, when))


@pytest.mark.req("NEW-20", "IN-19")
def test_a_snapshot_says_which_open_commit_can_change_it(made):
    found = made.open().read().stability
    assert not found.stable
    assert [w.instant for w in found.changed_by] == [at(20)]
    assert found.upto == at(10)
    assert at(20) in str(found)
    before = made.open().read(as_of=at(15)).stability
    assert before.stable
    assert before.upto == at(15)
    (made.path / ".hoodie" / f"{at(20)}.commit.requested").unlink()
    assert made.open().read().stability.stable
    assert made.open().read().stability.upto == at(30)


@pytest.mark.req("NEW-20")
def test_a_time_ahead_is_not_final(made):
    (made.path / ".hoodie" / f"{at(20)}.commit.requested").unlink()
    found = made.open().read(as_of="29990101000000000").stability
    assert not found.stable
    assert "future" in found.reason


@pytest.mark.req("NEW-20", "NEW-21")
def test_ranges_are_final_up_to_what_is_open(made):
    table = made.open()
    assert table.read_incremental("000", at(10)).stability.stable
    assert table.read_incremental("000", order="stable").stability.stable
    past = table.read_incremental("000", order="start").stability
    assert [w.instant for w in past.changed_by] == [at(20)]
    assert table.read_incremental("000", order="completion").stability.stable
    assert not table.read_incremental("000", at(30), order="stable").stability.stable


@pytest.mark.req("NEW-21", "IN-03", "IN-04", "IN-05", "IN-06", "IN-08")
@pytest.mark.parametrize(
    ("order", "first", "then", "doubled"),
    [("stable", ["10"], ["20", "30"], False), ("start", ["10", "30"], ["20", "30"], True),
     ("completion", ["10", "30"], ["20"], False)],
)  # fmt: skip
def test_each_order_loses_nothing_and_says_where_to_go_on(made, order, first, then, doubled):
    scan = made.open().read_incremental("000", order=order, meta_columns=True)
    assert ids(scan.to_arrow()) == first
    (made.path / ".hoodie" / f"{at(20)}.commit.requested").unlink()
    commit(made, 20, 2)
    assert (
        ids(made.open().read_incremental(scan.checkpoint, order=order, meta_columns=True).to_arrow()) == then
    )
    assert bool(set(first) & set(then)) == doubled
    changes = made.open().read_changes("000", order=order).to_arrow()
    assert changes.num_rows == 3


@pytest.mark.req("NEW-21", "IN-02")
def test_a_blocked_reader_is_told_by_whom(made):
    beat(made, at(20))
    with pytest.raises(HollowCommitError) as e:
        made.open().read_incremental("000")
    (who,) = e.value.details["blocked_by"]
    assert who.instant == at(20)
    assert who.alive
    assert who.heartbeat_age_s < 60
    assert f"process {os.getppid()} on {socket.gethostname()}" in str(e.value)
    beat(made, at(20), seconds_ago=1000)
    report = made.open().inspect.open_writes().to_pylist()
    assert [(r["instant"], r["alive"], r["state"]) for r in report] == [(at(20), False, "REQUESTED")]
    assert report[0]["heartbeat_age_s"] > 900
    with pytest.raises(HollowCommitError) as e:
        made.open().read(as_of=at(25))
    assert e.value.details["blocked_by"][0].instant == at(20)


@pytest.mark.req("NEW-21")
def test_orders_that_contradict_the_policy_are_refused(made):
    options = {"hoodie.read.timeline.holes.resolution.policy": "BLOCK"}
    assert ids(
        made.open().read_incremental("000", order="stable", options=options, meta_columns=True).to_arrow()
    ) == ["10"]
    for order in ("start", "completion"):
        with pytest.raises(ConflictingOptionError):
            made.open().read_incremental("000", order=order, options=options)


@pytest.mark.req("NEW-06")
def test_a_proof_reads_what_was_left_out(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, row_group_rows=2)
    table.commit(
        at(10),
        {
            ("a", file_id(0)): [{"id": str(n), "v": n, "p": "a"} for n in range(8)],
            ("b", file_id(1)): [{"id": str(n), "v": n, "p": "b"} for n in range(8, 12)],
        },
    )
    scan = table.open().read(["id"], "p = 'a' and v > 5")
    plain = scan.explain().files
    assert plain.column("missed").null_count == plain.num_rows
    proof = {r["partition"]: r for r in scan.explain(prove=True).files.to_pylist()}
    assert proof["b"]["missed"] == 0
    assert not proof["b"]["read"]
    assert proof["a"]["missed"] == 0
    assert proof["a"]["row_groups_read"] == 1
    assert "0 rows missed" in str(scan.explain(prove=True))


@pytest.mark.req("NEW-06")
def test_a_proof_finds_what_skipping_lost(tmp_path, monkeypatch):
    table = MadeTable(tmp_path / "t", SCHEMA, row_group_rows=2)
    table.commit(at(10), {("a", file_id(0)): [{"id": str(n), "v": n, "p": "a"} for n in range(8)]})
    scan = table.open().read(["id"], "v > 3")
    monkeypatch.setattr(
        "hudi_format.parquet.row_group_filter.matching_row_groups", lambda *_: [3]
    )  # lies about group 2
    (found,) = scan.explain(prove=True).files.to_pylist()
    assert found["missed"] == 2


@pytest.mark.req("NEW-21", "TM-23", "IN-08")
@pytest.mark.parametrize(
    ("order", "to", "again"), [("stable", "completion", []), ("start", "completion", ["30"]),
                               ("completion", "start", ["30"]), ("completion", "stable", ["30"])],
)  # fmt: skip
def test_a_reader_goes_on_in_another_order_and_misses_nothing(made, order, to, again):
    """It has read 10, or 10 and 30, when 20 is completed as the last."""
    completed(made, 10, 3600)  # long before 30
    first = made.open().read_incremental("000", order=order, meta_columns=True)
    checkpoint = first.checkpoint
    seen = set(ids(first.to_arrow()))
    found = made.open().convert_checkpoint(checkpoint, order=order, to=to)
    (made.path / ".hoodie" / f"{at(20)}.commit.requested").unlink()
    commit(made, 20, 2)
    rest = set(ids(made.open().read_incremental(found.checkpoint, order=to, meta_columns=True).to_arrow()))
    assert seen | rest == {"10", "20", "30"}
    assert seen & rest == set(again)
    if order == "completion":
        assert found.repeated == (at(30),)


@pytest.mark.req("NEW-21")
def test_checkpoints_of_the_same_bounds_stay_and_the_start_is_the_start(made):
    table = made.open()
    assert table.convert_checkpoint(at(10), order="start", to="stable").checkpoint == at(10)
    assert table.convert_checkpoint("0", order="completion", to="start").checkpoint == "000"
    with pytest.raises(InvalidOptionError, match="sideways"):
        table.convert_checkpoint(at(10), order="sideways", to="start")


def begin(table, number):
    table.instant_file(f"{at(number)}.commit.requested")


def end(table, number):
    (table.path / ".hoodie" / f"{at(number)}.commit.requested").unlink()
    commit(table, number, number)


@pytest.mark.req("CC-34", "IN-06")
def test_commits_are_opened_up_when_the_gaps_before_them_close(tmp_path):
    """Four writers at a time, as in the comment of RFC-22: what is behind a gap is hidden from who asks for it."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    for number in range(1, 5):
        begin(table, number)

    def ids_of(scan):
        return sorted(scan.to_arrow()["id"].to_pylist())

    def seen():
        """Without gaps and with them."""
        everything = table.open().read()
        without = ids_of(table.open().read(as_of=everything.stability.upto))
        assert ids_of(table.open().read_incremental("000", order="stable")) == without
        return without, ids_of(everything)

    shown = []
    for number in (1, 3, 2, 4):
        end(table, number)
        shown.append(seen())
    assert shown == [
        (["1"], ["1"]),
        (["1"], ["1", "3"]),
        (["1", "2", "3"], ["1", "2", "3"]),
        (["1", "2", "3", "4"], ["1", "2", "3", "4"]),
    ]
