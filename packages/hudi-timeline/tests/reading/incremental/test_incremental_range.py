"""Incremental reads: which commits, which files, which rows."""

import os
import warnings

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id, ids, states

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    HollowCommitError,
    InstantNotFoundError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedError,
)
from hudi_timeline import HudiTable
from hudi_timeline.reading.incremental.incremental_range import completion_times

SCHEMA = pa.schema([("p", pa.string()), ("id", pa.string()), ("v", pa.int64())])
POLICY = "hoodie.read.timeline.holes.resolution.policy"
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"


def row(id, v, written, p="a"):
    return {"id": id, "v": v, "p": p, "_hoodie_commit_time": at(written)}


@pytest.fixture
def made(tmp_path):
    """Commits 10, 20, 30, 40: group 0 written in 10, 20 and 30, group 1 in 10 and 40."""
    table = MadeTable(tmp_path / "t", SCHEMA)
    table.commit(
        at(10),
        {("a", file_id(0)): [row("1", 1, 10), row("2", 1, 10)], ("b", file_id(1)): [row("9", 1, 10, "b")]},
    )
    table.commit(at(20), {("a", file_id(0)): [row("1", 1, 10), row("2", 2, 20)]})
    table.commit(at(30), {("a", file_id(0)): [row("1", 3, 30), row("2", 2, 20), row("3", 3, 30)]})
    table.commit(at(40), {("b", file_id(1)): [row("9", 1, 10, "b"), row("8", 4, 40, "b")]})
    return table


def changed(table, begin, end=None, **more):
    return ids(table.open().read_incremental(begin, end, **more, meta_columns=True).to_arrow())


@pytest.mark.req("IN-01")
@pytest.mark.parametrize(
    ("begin", "end", "want"),
    [
        ("000", None, ["1", "2", "3", "8", "9"]),
        ("0", None, ["1", "2", "3", "8", "9"]),
        (at(10), None, ["1", "2", "3", "8"]),
        (at(20), None, ["1", "3", "8"]),
        (at(10), at(20), ["2"]),
        (at(20), at(30), ["1", "3"]),
        (at(15), at(35), ["1", "2", "3"]),
        (at(30), at(40), ["8"]),
        (at(40), None, []),
        (at(20), at(20), []),
        ("2026-01-01 00:00:25", None, ["1", "3", "8"]),
    ],
)
def test_begin_is_exclusive_and_end_inclusive(made, begin, end, want):
    assert changed(made, begin, end) == want


def test_columns_stand_in_the_tables_order_and_values_come_from_the_files(made):
    stats = [made.base_file(at(50), "c", file_id(5), [{"id": "x", "p": "not c", "v": 5}])]
    made.complete(at(50), stats)
    rows = made.open().read_incremental(at(40), meta_columns=True).to_arrow()
    assert rows.column_names[5:] == ["p", "id", "v"]
    assert rows.column("p").to_pylist() == ["not c"]


def test_filters_and_columns(made):
    scan = made.open().read_incremental("000", columns=["id"], filter="v >= 3 and p = 'a'")
    assert scan.to_arrow().to_pydict() == {"id": ["1", "3"]}
    scan = made.open().read_incremental("000", meta_columns=False)
    assert scan.to_arrow().column_names == ["p", "id", "v"]


def test_groups_replaced_in_the_range_are_left_out(made):
    made.commit(at(50), {("a", file_id(7)): [row("20", 5, 50)]}, replaced={"a": (file_id(0),)})
    assert changed(made, "000") == ["20", "8", "9"]
    assert changed(made, "000", at(40)) == ["1", "2", "3", "8", "9"]
    assert changed(made, at(40)) == ["20"]


def test_an_empty_range_has_the_full_schema(made):
    scan = made.open().read_incremental(at(99), meta_columns=True)
    assert scan.to_arrow().num_rows == 0
    assert scan.to_arrow().column_names[5:] == ["p", "id", "v"]


def test_the_schema_may_be_that_of_the_last_instant(made):
    made.schema = pa.schema([*SCHEMA, ("w", pa.string())])
    made.commit(at(50), {("a", file_id(0)): [{**row("1", 5, 50), "w": "x"}]})
    options = {"hoodie.datasource.read.schema.use.end.instanttime": "true"}
    assert "w" in made.open().read_incremental(at(10), at(20), meta_columns=True).to_arrow().column_names
    assert (
        "w"
        not in made.open()
        .read_incremental(at(10), at(20), options=options, meta_columns=True)
        .to_arrow()
        .column_names
    )


def test_a_file_that_the_cleaner_took_is_an_error_with_a_way_round(made):
    (old,) = [f for f in (made.path / "a").glob("*.parquet") if at(20) in f.name]
    old.unlink()
    with pytest.raises(MissingFileError) as e:
        changed(made, at(10), at(20))
    assert "end at a later commit or give no end" in e.value.remedy
    assert changed(made, at(10), at(30)) == ["1", "2", "3"]  # the newest file of the range is there
    assert changed(made, at(10)) == ["1", "2", "3", "8"]
    assert FALLBACK in e.value.remedy
    for how in ({"options": {FALLBACK: "true"}}, {"on_missing": "full_scan"}):
        with pytest.warns(UserWarning, match="rows are missing"):
            assert changed(made, at(10), at(20), **how) == ["2"]


@pytest.mark.parametrize("how", [{"order": "completion"}, {"options": {POLICY: "USE_TRANSITION_TIME"}}])
def test_no_scan_of_the_whole_table_is_advised_where_it_is_refused(made, how):
    (old,) = [f for f in (made.path / "a").glob("*.parquet") if at(20) in f.name]
    old.unlink()
    # The time of a commit's file is when it was completed: in memory all are of one millisecond.
    for second, done in enumerate(sorted((made.path / ".hoodie").glob("*.*commit")), start=1_700_000_000):
        os.utime(done, (second, second))
    times = list(completion_times(made.open().read().snapshot).values())
    with pytest.raises(MissingFileError) as e:
        changed(made, times[0], times[1], **how)
    assert "end at a later commit or give no end" in e.value.remedy
    assert "full_scan" not in e.value.remedy
    assert FALLBACK not in e.value.remedy
    assert changed(made, times[0], **how) == ["1", "2", "3", "8"]


def test_without_an_end_no_cleaner_is_to_blame(made):
    (newest,) = [f for f in (made.path / "a").glob("*.parquet") if at(30) in f.name]
    newest.unlink()
    with pytest.raises(MissingFileError) as e:
        changed(made, at(10))
    assert "if the cleaner removed it" not in e.value.remedy
    assert "put the file back" in e.value.remedy


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("policy", ["KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_COMMITS"])
def test_a_full_scan_gives_what_is_left_by_whichever_policy_was_cleaned(tmp_path, kind, policy):
    """By file versions it was an error: such a clean does not say from when on all files are there."""
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = HudiTable.create(tmp_path / "t", schema, name="t", table_type=kind, record_keys="id")
    off = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    begin = table.upsert(pa.table([["a"], [0]], schema=schema), options=off).instant
    table.upsert(pa.table([["b"], [1]], schema=schema), options=off)
    if kind == "MERGE_ON_READ":
        table.compact(options=off)
    end = table.upsert(pa.table([["c"], [2]], schema=schema), options=off).instant
    for v in (3, 4):
        table.upsert(pa.table([["a"], [v]], schema=schema), options=off)
        if kind == "MERGE_ON_READ":
            table.compact(options=off)
    few = {"hoodie.cleaner.fileversions.retained": "1", "hoodie.cleaner.commits.retained": "1"}
    table.clean(options={"hoodie.cleaner.policy": policy, **few})
    with pytest.raises(MissingFileError, match=r"on_missing='full_scan'"):
        table.read_incremental(begin, end).to_arrow()
    scan = table.read_incremental(begin, end, on_missing="full_scan")
    with pytest.warns(UserWarning, match="rows are missing"):
        assert sorted(scan.to_arrow().column("id").to_pylist()) == ["b", "c"]
    assert not scan.plan.complete


def test_the_full_scan_finds_rows_whose_files_are_gone(made):
    (old,) = [f for f in (made.path / "a").glob("*.parquet") if at(20) in f.name]
    old.unlink()
    # Row 2 of commit 20 is in the file of commit 30; without an end the whole table answers.
    options = {FALLBACK: "true"}
    assert changed(made, at(10), options=options) == ["1", "2", "3", "8"]


def test_a_file_of_the_wrong_size_is_an_error(made):
    (new,) = [f for f in (made.path / "b").glob("*.parquet") if at(40) in f.name]
    new.write_bytes(new.read_bytes() + b"x")
    with pytest.raises(CorruptFileError):
        changed(made, at(30))


@pytest.mark.parametrize("open_file", ["{}.commit.requested", "{}.inflight", "{}.replacecommit.inflight"])
def test_a_commit_that_is_open_before_completed_ones_fails_the_read(made, open_file):
    made.instant_file(open_file.format(at(25)))
    with pytest.raises(HollowCommitError) as e:
        changed(made, at(10))
    assert e.value.instant == at(25)
    assert "BLOCK" in e.value.remedy
    assert changed(made, at(10), options={POLICY: "BLOCK"}) == ["2"]
    assert changed(made, at(10), at(20)) == ["2"]  # nothing completed after the open one is in the range


def test_an_open_commit_after_all_others_does_no_harm(made):
    made.instant_file(f"{at(45)}.inflight")
    assert changed(made, at(30)) == ["8"]


def test_options_are_checked(made):
    with pytest.raises(InvalidOptionError):
        changed(made, "000", options={POLICY: "MAYBE"})
    with pytest.raises(InvalidOptionError):
        changed(made, "000", options={FALLBACK: "yes"})


def test_a_begin_that_is_no_time_is_refused(made):
    with pytest.raises(InstantNotFoundError):
        changed(made, "yesterday")


@pytest.fixture
def archived(made):
    """Commit 10 and 20 are in the archive, with the file of 20 still there."""
    made.archive(1, *states(at(10)), *states(at(20)))
    for file in (made.path / ".hoodie").iterdir():
        if file.name.startswith((at(10), at(20))):
            file.unlink()
    return made


def test_from_the_start_archived_instants_are_missed_with_a_warning(archived):
    scan = archived.open().read_incremental("000")
    with pytest.warns(UserWarning, match="archived"):
        assert ids(scan.to_arrow()) == ["1", "3", "8"]
    assert not scan.complete
    assert "archived" in scan.warnings[0]


@pytest.mark.req("IN-13")
def test_changes_from_the_start_up_to_an_archived_instant_are_not_none(archived):
    """What follows the table from its start would go on after them, and never know."""
    table = archived.open()
    with pytest.raises(InstantNotFoundError) as e:
        table.read_changes("000", at(20)).to_arrow()
    assert e.value.details["oldest"] == at(30)
    # The whole table does not say what rows were: what cannot be asked for is not proposed.
    assert "skip" in e.value.remedy
    assert "full_scan" not in e.value.remedy
    left = table.read_changes("000", at(20), on_missing="skip")
    with pytest.warns(UserWarning, match="archived"):
        assert left.to_arrow().num_rows == 0
    with pytest.warns(UserWarning, match="archived"):
        assert table.read_changes("000", at(30)).to_arrow().num_rows


def test_a_begin_among_archived_instants_names_the_oldest_instant(archived):
    with pytest.raises(InstantNotFoundError) as e:
        changed(archived, at(15))
    assert at(30) in e.value.remedy
    assert "full_scan" in e.value.remedy
    assert e.value.details["oldest"] == at(30)


@pytest.mark.parametrize("end", [None, at(30)])
def test_instants_that_were_archived_behind_a_savepoint_are_not_passed_over(made, end):
    """Its commit stays on the timeline, so that a begin there is not before the first one."""
    made.archive(1, *states(at(20)))
    for file in (made.path / ".hoodie").glob(f"{at(20)}*"):
        file.unlink()
    made.instant_file(f"{at(10)}.savepoint.inflight")
    made.instant_file(f"{at(10)}.savepoint", b"x")
    for begin in (at(10), at(15)):
        with pytest.raises(InstantNotFoundError, match=f"archived, up to {at(20)}") as e:
            changed(made, begin, end)
        assert e.value.details["oldest"] == at(30)
    later = [] if end else ["8"]
    assert changed(made, at(20), end) == ["1", "3", *later]
    with pytest.warns(UserWarning, match="archived"):
        assert changed(made, at(10), end, on_missing="skip") == ["1", "3", *later]
    assert changed(made, at(10), end, on_missing="full_scan") == ["1", "2", "3", *later]


def test_the_full_scan_answers_for_archived_instants(archived):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert changed(archived, at(15), options={FALLBACK: "true"}) == ["1", "2", "3", "8"]
        assert changed(archived, "000", options={FALLBACK: "true"}) == ["1", "2", "3", "8", "9"]
        assert changed(archived, at(20), at(30), options={FALLBACK: "true"}) == ["1", "3"]


def test_without_an_archive_any_begin_before_the_first_commit_is_the_start(made):
    assert changed(made, at(5)) == ["1", "2", "3", "8", "9"]


def test_a_table_without_meta_columns_is_refused(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, properties={"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedError, match="meta columns"):
        table.open().read_incremental("000")


def test_an_explanation_says_which_versions_are_left_out(made):
    text = str(made.open().read_incremental("000", filter="v > 0").explain(verbose=True))
    assert "reads 2 of 5 files" in text
    assert "an older version" in text


@pytest.mark.parametrize("query", ["read_incremental", "read_changes"])
@pytest.mark.parametrize("digits", [17, 14, 8])
def test_a_range_that_ends_before_it_begins_is_refused(made, query, digits):
    table = made.open()
    with pytest.raises(ConflictingOptionError, match="before it begins") as caught:
        getattr(table, query)(at(30), "20240101000000000"[:digits])
    assert caught.value.details["option"] == "hoodie.datasource.read.end.instanttime"
    assert "in order" in caught.value.remedy
    with pytest.raises(ConflictingOptionError, match="before it begins"):
        getattr(table, query)("2030-01-02", "2030-01-01")
    # Not so the empty range between two polls, and a begin that nothing came after.
    for begin, end in (
        (at(30), at(30)),
        (at(40), None),
        ("20400101000000000", None),
        ("2030-01-01", "20300101"),
    ):
        assert getattr(table, query)(begin, end).to_arrow().num_rows == 0
