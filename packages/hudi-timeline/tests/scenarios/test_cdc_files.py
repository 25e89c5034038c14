"""Files of changes, and what they go through with their table: cleanings, rollbacks, savepoints, restores, archival."""

import warnings

import pytest
from cdc_tables import QUIET, Writes, applied, cdc_files, changes, counted, make, rows, state

from hudi_format.errors import InstantNotFoundError, MissingFileError
from hudi_format.file_names import parse_base_file, parse_cdc_file
from hudi_format.model import CDC_MODES


def rewritten(table, times=3):
    table.insert(rows(("k1", "a", 1, "1", {}), ("k2", "b", 1, "2", {})), options=QUIET)
    for n in range(times):
        table.upsert(rows(("k1", "a", 2 + n, str(n), {})), options=QUIET)
    return [i.time for i in table.timeline.completed_writes()]


def test_cleanings_take_files_of_changes_with_their_slices(tmp_path):
    table = make(tmp_path / "t")
    rewritten(table)
    assert len(cdc_files(table)) == 3
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    left = [parse_base_file("a", e.name) for e in table._storage.list("a")]
    instants = {f.instant for f in left if f is not None}
    assert {parse_cdc_file("a", f.rpartition("/")[2]).instant for f in cdc_files(table)} <= instants
    assert 1 <= len(cdc_files(table)) < 3
    assert table.verify() == []


def test_rollbacks_and_restores_take_files_of_changes_back(tmp_path):
    table = make(tmp_path / "t")
    instants = rewritten(table)
    table.rollback(instants[-1])
    assert len(cdc_files(table)) == 2
    table.savepoint(instants[1])
    table.restore(instants[1])
    assert [f for f in cdc_files(table) if instants[1] not in f] == []
    assert len(cdc_files(table)) == 1
    assert table.verify() == []
    before = state(table)
    table.upsert(rows(("k1", "a", 9, "again", {})), options=QUIET)
    assert applied(before, changes(table, instants[1])) == state(table)


def test_savepoints_keep_files_of_changes(tmp_path):
    table = make(tmp_path / "t")
    instants = rewritten(table)
    table.savepoint(instants[1])
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert [f for f in cdc_files(table) if instants[1] in f] != []
    assert table.verify() == []


def test_a_lost_or_cut_file_of_changes_is_found(tmp_path):
    table = make(tmp_path / "t")
    rewritten(table)
    first, second = cdc_files(table)[:2]
    (tmp_path / "t" / first).unlink()
    path = tmp_path / "t" / second
    path.write_bytes(path.read_bytes()[:-9])
    assert {f.path for f in table.verify()} == {first, second}


@pytest.mark.sampled(6, values=False)
@pytest.mark.parametrize("mode", CDC_MODES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_are_whole_beside_cleaning_archival_and_compaction_or_are_refused(tmp_path, mode, table_type):
    """Each range gives all of its changes, or an error, or the warning that the oldest are archived."""
    few = {
        "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.cleaner.commits.retained": "2",
        "hoodie.compact.inline.max.delta.commits": "3",
    }  # fmt: skip
    table = make(tmp_path / "t", mode, table_type=table_type)
    states = [("000", state(table))]
    writes = Writes(table, f"{mode}{table_type}", few)
    told = refused = 0
    for step in range(14):
        result = getattr(table, "insert" if not step else "upsert")(writes.some(), options=few)
        states.append((result.instant, state(table)))
        for begin, before in states[-7:-1]:
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", message="the result holds no changes of instants before")
                    found = changes(table, begin)
            except (InstantNotFoundError, MissingFileError, UserWarning):
                refused += 1
                continue
            assert applied(before, found) == states[-1][1], (step, begin)
            told += 1
    assert told > 14
    assert refused
    times = {i.time for i in table.timeline.completed_writes()}
    assert states[1][0] not in times  # archived
    assert table.verify(deep=True) == []


CLEANED = {
    "hoodie.clean.automatic": "false", "hoodie.cleaner.commits.retained": "1", "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0",
}  # fmt: skip


# An archival leaves the newest compaction, which here wrote the slice.
@pytest.mark.parametrize(
    ("table_type", "archived"),
    [("COPY_ON_WRITE", False), ("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)],
    ids=["active", "archived", "compacted"],
)
@pytest.mark.parametrize("logged", [False, True], ids=["found by files", "logged"])
def test_a_replacement_whose_slice_was_cleaned_is_not_told_by_an_older_one(
    tmp_path, table_type, logged, archived
):
    """A savepoint kept the older one, whose rows are not those that went."""
    made = make(tmp_path / "t", "DATA_BEFORE_AFTER" if logged else None, table_type=table_type)
    made.upsert(rows(("a", "x", 1, "old", {}), ("b", "x", 1, "old", {})), options=CLEANED)
    kept = made.savepoint()
    if table_type == "MERGE_ON_READ":
        made.upsert(rows(("a", "x", 2, "log", {})), options=CLEANED)
        assert made.compact(options=CLEANED).executed
    else:
        made.upsert(rows(("a", "x", 2, "new", {})), options=CLEANED)
    before = state(made)
    begin = max(made.history()["instant"].to_pylist())
    replaced = made.insert_overwrite(rows(("c", "x", 3, "c", {})), options=CLEANED).instant
    assert counted(c["before"] for c in changes(made, begin, replaced) if c["op"] == "d") == before
    for n in range(4, 8):
        made.upsert(rows((f"{n}", "y", n, "y", {})), options=CLEANED)
    assert made.clean(options=CLEANED).deleted
    assert [f.name for f in (tmp_path / "t" / "x").glob(f"*_{kept}.parquet")], "what is kept is there"
    if archived:
        made.delete_savepoint(kept)
        keep = {**CLEANED, "hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "6"}
        made.archive(options=keep)
        assert made.timeline.completed_writes()[0].time == replaced
    with pytest.raises(MissingFileError):
        changes(made, begin, replaced)
    assert [c["op"] for c in changes(made, replaced)] == ["i"] * 4
