"""Files of tasks that outlived the rollback of their write: none of their rows appears after an archival."""

from __future__ import annotations

import json

import pytest

from hudi_timeline.concurrency import markers
from hudi_timeline.services.archival import ArchiveResult
from hudi_timeline.testing.table_builder import TableBuilder
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RollbackMetadata,
    read_action,
    render_action,
)
from hudi_timeline.timeline.instant import COMPLETED, INFLIGHT, REQUESTED
from hudi_timeline.transaction import orphans

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
SHORT = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
PROFILE = {"partitionToWriteStats": {"p1": [{"fileId": "", "path": None, "prevCommit": "null"}]}}


def made_with_a_dead_write(kind: str, profile: object = None) -> TableBuilder:
    """A commit, and a write of which no task has done anything yet."""
    made = TableBuilder(table_type=kind)
    made.commit("first", made.base("first", {"a": 1}))
    made.pending("dead", inflight=b"" if profile is None else json.dumps(profile).encode())
    return made


def undone_elsewhere(made: TableBuilder, at: str = "undoing") -> None:
    """Rolled back by a program that found nothing to delete, and names no partition."""
    dead = made.at("dead")
    action = "deltacommit" if made.table.table_type == "MERGE_ON_READ" else "commit"
    for state in (INFLIGHT, REQUESTED):
        made.storage.delete(made.path_of(dead, action, state))
    made.pending(at, "rollback", request=b"")
    done = RollbackMetadata(made.at(at), commits=(dead,), instants=(InstantName(dead, action),))
    made.storage.create(made.path_of(made.at(at), "rollback", COMPLETED), render_action(done))


def undo(made: TableBuilder, how: str) -> None:
    if how == "by us":
        made.table.rollback(made.at("dead"))
    elif how == "by a restore":
        made.table.restore(made.at("first"))
    else:
        undone_elsewhere(made)


def go_on(made: TableBuilder, count: int = 5, first: int = 0) -> None:
    for n in range(first, first + count):
        made.commit(f"later{n}", made.base(f"later{n}", {f"l{n}": n}, group=20 + n))


def archived(made: TableBuilder) -> ArchiveResult:
    return made.table.archive(options=SHORT)


def rows(made: TableBuilder) -> dict[str, int]:
    read = made.table.read(["id", "v"]).to_arrow().to_pylist()
    assert len({r["id"] for r in read}) == len(read)
    return {r["id"]: r["v"] for r in read}


def expected(count: int = 5) -> dict[str, int]:
    return {"a": 1, **{f"l{n}": n for n in range(count)}}


@pytest.mark.req("RC-01")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("undone", ["by us", "by a restore", "elsewhere"])
def test_a_base_file_that_came_after_the_rollback_goes_before_it_would_count(kind: str, undone: str) -> None:
    made = made_with_a_dead_write(kind, PROFILE)
    undo(made, undone)
    late = made.base("dead", {"late": 9}, group=9, partition="p1")
    go_on(made)
    assert rows(made) == expected()
    assert archived(made).plan
    assert made.table.timeline.first_active > made.at("dead")
    assert rows(made) == expected()
    assert made.storage.info(late.path) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollback_names_the_partitions_to_which_the_write_was_to_write(kind: str) -> None:
    made = made_with_a_dead_write(kind, PROFILE)
    made.table.rollback(made.at("dead"))
    (rollback,) = made.table.timeline.of("rollback")
    did = read_action(made.storage, rollback)
    assert isinstance(did, RollbackMetadata)
    assert set(did.partitions) == {"p1"}
    assert did.partitions["p1"].deleted == ()


@pytest.mark.parametrize("content", [b"", b"{", b'{"partitionToWriteStats": {"../x": []}}'])
def test_an_inflight_file_that_says_nothing_of_use_does_not_stop_a_rollback(content: bytes) -> None:
    made = TableBuilder()
    made.commit("first", made.base("first", {"a": 1}))
    made.pending("dead", inflight=content)
    made.table.rollback(made.at("dead"))
    (rollback,) = made.table.timeline.of("rollback")
    did = read_action(made.storage, rollback)
    assert isinstance(did, RollbackMetadata)
    assert did.partitions == {}


@pytest.mark.req("RC-01")
@pytest.mark.parametrize("undone", ["by us", "by a restore", "elsewhere"])
def test_blocks_that_came_after_the_rollback_are_taken_back_before_they_would_count(undone: str) -> None:
    made = made_with_a_dead_write("MERGE_ON_READ", {"partitionToWriteStats": {"p0": []}})
    undo(made, undone)
    late = made.log("dead", {"a": 9, "late": 9})
    made.commit("kept", made.log("kept", {"a": 2}))
    go_on(made)
    assert archived(made).plan
    assert made.table.timeline.first_active > made.at("dead")
    assert rows(made) == {**expected(), "a": 2}
    logs = {e.name for e in made.storage.list("p0") if ".log." in e.name}
    assert len(logs) == 3, "the late one, that of the commit, and the command"
    assert late.path.rpartition("/")[2] in logs
    # And once.
    go_on(made, first=5)
    archived(made)
    assert {e.name for e in made.storage.list("p0") if ".log." in e.name} == logs
    assert rows(made) == {**expected(10), "a": 2}
    assert not markers.list_instants(made.storage)


@pytest.mark.parametrize("kind", KINDS)
def test_markers_left_by_tasks_that_outlived_the_rollback_go_with_their_files(kind: str) -> None:
    made = made_with_a_dead_write(kind, PROFILE)
    made.table.rollback(made.at("dead"))
    late = made.base("dead", {"late": 9}, group=9, partition="p2")  # a partition that its plan did not name
    markers.create(made.storage, made.at("dead"), "p2", late.path.rpartition("/")[2], markers.CREATE)
    go_on(made)
    archived(made)
    assert made.storage.info(late.path) is None
    assert not markers.list_instants(made.storage)
    assert rows(made) == expected()


def test_the_table_is_listed_once_for_a_rollback_that_names_no_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed: list[str] = []
    whole = orphans.walk
    monkeypatch.setattr(orphans, "walk", lambda s: listed.append(s.uri) or whole(s))
    made = made_with_a_dead_write("COPY_ON_WRITE")
    undone_elsewhere(made)
    go_on(made)
    archived(made)
    assert len(listed) == 1
    go_on(made, first=5)
    assert archived(made).plan
    assert len(listed) == 1, "the timeline is past it"
    assert made.table.timeline.of("rollback")


def test_a_rollback_that_is_archived_before_the_instant_that_it_undid_is_looked_up_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = TableBuilder()
    made.commit("first", made.base("first", {"a": 1}))
    made.pending("dead")
    undone_elsewhere(made)
    for n in range(5):
        made.pending(f"other{n}")
        made.table.rollback(made.at(f"other{n}"))
    late = made.base("dead", {"late": 9}, group=9, partition="p1")
    done = archived(made)
    assert made.at("undoing") in [i.time for i in done.plan.instants]
    assert made.table.timeline.first_active < made.at("dead")
    assert made.storage.info(late.path) is None


@pytest.mark.req("RC-01")
def test_files_of_a_write_that_was_undone_are_found_where_others_archived_past_them() -> None:
    made = made_with_a_dead_write("COPY_ON_WRITE")
    undone_elsewhere(made)
    go_on(made)
    archived(made)
    late = made.base("dead", {"late": 9}, group=9, partition="p1")
    assert "late" in rows(made)
    found = [f.path for f in made.table.verify() if f.code == "file-of-no-archived-instant"]
    assert found == [late.path]


def test_a_file_from_before_the_oldest_archived_write_is_found_where_a_rollback_of_it_is_known() -> None:
    made = TableBuilder()
    made.pending("dead")
    undone_elsewhere(made)
    go_on(made, 6)
    archived(made)
    late = made.base("dead", {"late": 9}, group=9, partition="p1")
    unknown = made.base("dead", {"other": 9}, group=8, partition="p1")
    renamed = unknown.path.replace(made.at("dead"), str(int(made.at("dead")) - 1))
    made.storage.touch(renamed, made.storage.read(unknown.path))
    made.storage.delete(unknown.path)
    found = [f.path for f in made.table.verify() if f.code == "file-of-no-archived-instant"]
    assert found == [late.path], "of the other the archive may have been deleted"
