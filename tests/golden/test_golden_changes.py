"""Change data capture of the golden tables: as Apache Hudi gives it, and what can be told without a log."""

import json
import pickle
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import CDC, LAYOUT_2, SNAPSHOT, assert_same_changes, golden

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_timeline.table import HudiTable
from hudi_timeline.timeline.instant import REPLACE_COMMIT

COW = ("cdc_cow_op_key_only", "cdc_cow_data_before", "cdc_cow_data_before_after")
MOR = ("cdc_mor_op_key_only", "cdc_mor_data_before", "cdc_mor_data_before_after")
TABLES = golden("v6", *COW, *MOR)
TABLES += [t for v in LAYOUT_2 for t in golden(v) if t.name in (*COW, *MOR)]
TABLES += [t for v in ("images_v6", "images_v9") for t in golden(v)]  # bytes in either form of an image
QUESTIONS = [(t, q) for t in TABLES for q in t.questions(CDC)]
# Tables without a log of changes, whose older files are all there.
UNLOGGED = golden(
    "v6",
    "cow_partitioned", "cow_insert_overwrite", "cow_clustered", "mor_avro_logs", "mor_parquet_logs",
    "mor_compacted_then_logs", "mor_rollback", "mor_pending_compaction", "bucket_simple_mor",
    "bucket_consistent_mor", "payload_DefaultHoodieRecordPayload", "soft_and_flagged_deletes",
)  # fmt: skip
# Their first commits wrote log files that several of them share, named by their slice.
UPGRADED = [*golden("v8", "upgraded_from_6", "upgraded_payload_AWSDms"), *golden("v9", "upgraded_from_6")]


def replaced_at(table):
    return {i.time for i in table.timeline.of(REPLACE_COMMIT)}


@pytest.mark.req("IN-13")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
@pytest.mark.sampled(8)
def test_changes_are_those_that_apache_hudi_gives(opened, table, question):
    read = opened(table)
    scan = read.read_changes(question.begin)
    found = scan.to_arrow()
    assert_same_changes(found, question.expected(), replaced_at(read))
    assert scan.count() == found.num_rows
    assert found.column("ts_ms").to_pylist() == sorted(found.column("ts_ms").to_pylist())
    rebuilt = pa.concat_tables(pickle.loads(pickle.dumps(t)).to_table() for t in scan.plan_files())
    assert rebuilt.equals(found)


def applied(feed, key):
    """The rows, as JSON objects by key, that a change feed builds up."""
    rows = {}
    for op, before, after in zip(
        *(feed.column(n).to_pylist() for n in ("op", "before", "after")), strict=True
    ):
        if op == "d":
            rows.pop(before[key])
        else:
            assert (op == "u") == (after[key] in rows)
            if before is not None:
                assert before == rows[after[key]]
            rows[after[key]] = after
    return rows


@pytest.mark.req("IN-13", "IN-16")
@pytest.mark.parametrize("table", [*TABLES, *UNLOGGED, *UPGRADED], ids=str)
@pytest.mark.sampled(8)
def test_changes_in_their_order_build_the_snapshot(opened, table):
    """Every change once and with its true images, logged or told by comparing files."""
    key = table.meta["key_fields"]
    feed = opened(table).read_changes("000", images="struct").to_arrow()
    snapshot = opened(table).read(meta_columns=False).to_arrow()
    rows = feed.column("after").type
    want = pa.table([snapshot.column(f.name) for f in rows], schema=pa.schema(list(rows))).to_pylist()
    assert applied(feed, key) == {r[key]: r for r in want}


@pytest.mark.parametrize("table", UPGRADED, ids=str)
def test_commits_to_which_an_upgrade_gave_one_time_of_completion_change_what_they_changed(tmp_path, table):
    """It takes times of modification, which some stores keep in seconds."""
    path = table.unpack(tmp_path)
    feed = HudiTable.open(str(path)).read_changes("000", images="struct").to_arrow()
    writes = HudiTable.open(str(path)).timeline.completed_writes()
    tied = [i for i in writes if i.completion <= writes[3].completion]
    for instant in tied:
        (path / instant.path).rename(path / instant.path.replace(instant.completion, tied[-1].completion))
    read = HudiTable.open(str(path))
    assert {i.completion for i in read.timeline.completed_writes()} == {
        i.completion for i in writes if i not in tied[:-1]
    }
    assert read.read_changes("000", images="struct").to_arrow().equals(feed)


@pytest.mark.parametrize("table", UPGRADED, ids=str)
def test_a_key_has_the_history_that_the_feed_tells(opened, table):
    read, key = opened(table), table.meta["key_fields"]
    keys = read.read(columns=["_hoodie_record_key"]).to_arrow().column(0)
    history = read.key_history(keys).changes.to_pylist()
    feed = read.read_changes("000", images="struct").to_arrow().to_pylist()
    told = Counter((h["change"], str(h["before"]), str(h["after"])) for h in history)
    assert told == Counter(
        (c["op"], str(c["before"]), str(c["after"]))
        for c in feed
        if (c["after"] or c["before"])[key] in set(keys.to_pylist())
    )


@pytest.mark.req("TM-01")
@pytest.mark.parametrize(
    "table",
    [
        *golden("v6", "cdc_cow_data_before", "cow_insert_overwrite", "mor_avro_logs"),
        *golden("v9", "cdc_mor_data_before"),
    ],
    ids=str,
)
@pytest.mark.sampled(3)
def test_the_actions_up_to_an_instant_build_the_table_of_that_instant(opened, table):
    key = table.meta["key_fields"]
    read = opened(table)
    for instant in read.timeline.completed_writes():
        feed = read.read_changes("000", instant.completion or instant.time, images="struct").to_arrow()
        state = read.read(as_of=instant.time, meta_columns=False).to_arrow().to_pylist()
        assert applied(feed, key) == {r[key]: r for r in state}


def test_columns_and_filters(opened):
    (table,) = golden("v6", "cdc_cow_data_before")
    whole = opened(table).read_changes("000").to_arrow()
    found = opened(table).read_changes("000", columns=["after", "op"], filter="op = 'u'").to_arrow()
    assert found.equals(whole.filter(pc.equal(whole.column("op"), "u")).select(["after", "op"]))
    instants = sorted(set(whole.column("ts_ms").to_pylist()))
    part = opened(table).read_changes(instants[0], instants[2]).to_arrow()
    assert set(part.column("ts_ms").to_pylist()) == set(instants[1:3])


@pytest.mark.req("NEW-06")
def test_the_plan_says_which_files_tell_the_changes(opened):
    (table,) = golden("v6", "cdc_mor_op_key_only")
    rows = opened(table).read_changes("000").explain().files.to_pylist()
    assert any(
        r["path"].endswith(".cdc") and r["reason"].startswith("the changes that were logged") for r in rows
    )
    assert any(".log." in r["path"] and r["reason"].startswith("the records of") for r in rows)
    assert all(r["read"] for r in rows)
    (compacted,) = golden("v6", "mor_compacted_then_logs")
    rows = opened(compacted).read_changes("000").explain().files.to_pylist()
    assert any("changes no rows" in r["reason"] for r in rows if not r["read"])


@pytest.mark.parametrize("name", ["cdc_cow_op_key_only", "cdc_mor_data_before"])
def test_a_file_of_changes_that_is_cut_or_gone_is_an_error(name, tmp_path):
    (table,) = golden("v6", name)
    read = HudiTable.open(str(table.unpack(tmp_path)))
    for unit in [u for u in read.read_changes("000").plan.changes if u.cdc]:
        file = tmp_path / name / unit.cdc[0].path
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(CorruptFileError):
            read.read_changes("000").to_arrow()
        file.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
        file.unlink()
        with pytest.raises(MissingFileError) as e:
            read.read_changes("000").to_arrow()
        assert unit.cdc[0].name in str(e.value)
        file.write_bytes(whole)


@pytest.mark.req("IN-17")
@pytest.mark.parametrize(
    "name", ["cdc_cow_op_key_only", "cow_partitioned", "cdc_mor_data_before", "mor_avro_logs"]
)
def test_rows_before_a_change_that_were_cleaned_are_an_error_and_not_inserts(name, tmp_path):
    (table,) = golden("v6", name)
    read = HudiTable.open(str(table.unpack(tmp_path)))
    units = [u for u in read.read_changes("000").plan.changes if u.kind in ("logged", "records", "compared")]
    gone = next(u.before.slice.base_file.path for u in units if u.before is not None)
    (tmp_path / name / gone).unlink()
    with pytest.raises(MissingFileError) as e:
        read.read_changes("000").to_arrow()
    assert "begin at a later instant" in e.value.remedy


@pytest.mark.req("IN-17")
@pytest.mark.parametrize("version", LAYOUT_2)
def test_no_file_of_the_rows_before_a_change_is_lost_unnoticed(version, tmp_path):
    (table,) = golden(version, "bucket_simple_mor")
    read = HudiTable.open(str(table.unpack(tmp_path)))
    begin = read.timeline.completed_writes()[-2].completion
    units = [u for u in read.read_changes(begin).plan.changes if u.kind == "records"]
    before = [f for u in units for f in (u.before.slice.base_file, *u.before.slice.log_files)]
    assert {type(f).__name__ for f in before} == {"BaseFile", "LogFile"}
    for file in before:  # of commits before the range
        place = tmp_path / table.name / file.path
        content = place.read_bytes()
        place.unlink()
        with pytest.raises(MissingFileError) as e:
            read.read_changes(begin).to_arrow()
        assert file.name in str(e.value)
        assert "begin at a later instant" in e.value.remedy
        place.write_bytes(content)


@pytest.mark.req("IN-17")
@pytest.mark.parametrize(
    "name", ["v8/merge_partial_event_time", "v9/merge_partial_event_time", "partial_v9/partial_stacked"]
)
def test_a_record_that_changes_a_row_and_leaves_its_commit_time_is_a_change(opened, name):
    (table,) = golden(*name.split("/"))
    read = opened(table)
    state = Counter()
    for change in read.read_changes("000", images="struct").to_arrow().to_pylist():
        state.subtract(str(row) for row in [change["before"]] if row)
        assert min(state.values(), default=0) >= 0, (
            "what a change was before is what the changes before it left"
        )
        state.update(str(row) for row in [change["after"]] if row)
    assert +state == Counter(map(str, read.read().to_arrow().to_pylist()))


@pytest.mark.parametrize(
    "name", ["v8/merge_partial_event_time", "v9/merge_partial_event_time", "partial_v9/partial_stacked"]
)
def test_the_history_of_a_key_has_changes_that_leave_the_commit_time(opened, name):
    (table,) = golden(*name.split("/"))
    read = opened(table)
    rows = read.read(columns=["_hoodie_record_key", *read.schema.names]).to_arrow()
    state = {}
    for change in read.key_history(rows.column(0)).changes.to_pylist():
        assert state.get(change["key"]) == change["before"], (
            "what a change was before is what the last one left"
        )
        state[change["key"]] = change["after"]
    assert state == {row.pop("_hoodie_record_key"): row for row in rows.to_pylist()}


@pytest.mark.parametrize(
    "name",
    [
        "v8/archived_overlapping",
        "v9/archived_overlapping",
        "cleaned_v8/consistent_hashing_cleaned",
        "v6/cow_cleaned",
        "v6/drop_partition_columns",
        "v6/mor_drop_partition_columns",
    ],
)
def test_every_row_has_a_history_whatever_is_archived_or_cleaned(opened, name):
    """Of file groups without base files too, whose commits name themselves as those before them, and with the values
    that only paths have."""
    (table,) = golden(*name.split("/"))
    read = opened(table)
    rows = read.read(columns=["_hoodie_record_key", *read.schema.names]).to_arrow()
    last = {}
    for change in read.key_history(rows.column(0)).changes.to_pylist():
        if change["change"]:
            assert last.get(change["key"], change["before"]) == change["before"]
        last[change["key"]] = change["after"]
    assert last == {row.pop("_hoodie_record_key"): row for row in rows.to_pylist()}


def test_a_begin_whose_files_were_cleaned_is_an_error(opened):
    (table,) = golden("v6", "cow_archived")
    with pytest.raises(MissingFileError) as e:
        opened(table).read_changes("000").to_arrow()
    assert "begin at a later instant" in e.value.remedy
    newest = opened(table).timeline.completed_writes()[-2].time
    assert opened(table).read_changes(newest).to_arrow().num_rows


def test_changes_of_bootstrapped_rows_are_refused(opened):
    (table,) = golden("v6", "bootstrap_metadata_only")
    with pytest.raises(UnsupportedError) as e:
        opened(table).read_changes("000").to_arrow()
    assert e.value.remedy


def test_images_are_json_with_the_keys_of_the_table(opened):
    (table,) = golden("v6", "cdc_cow_data_before_after")
    want = set(table.question(SNAPSHOT).expected().column_names)
    feed = opened(table).read_changes("000", filter="op = 'i'").to_arrow()
    for text in feed.column("after").to_pylist():
        assert set(json.loads(text)) <= want


@pytest.mark.req("NEW-37", "IN-13")
@pytest.mark.parametrize("name", ["cdc_cow_op_key_only", "cdc_mor_data_before"])
def test_logged_changes_that_are_lost_after_planning_are_missed(tmp_path, name):
    """The size is looked at when the scan is planned; what stands in the file is held against the commit too."""
    (table,) = golden("v6", name)
    scan = HudiTable.open(str(table.unpack(tmp_path))).read_changes("000")
    whole = scan.to_arrow()
    unit = next(u for u in scan.plan.changes if u.cdc)
    file = tmp_path / name / unit.cdc[0].path
    data = file.read_bytes()
    assert data.count(unit.instant.encode()) == 1
    other = data.replace(unit.instant.encode(), b"2" + b"0" * 16)
    for bad in (other, data[:-1], data[: len(data) // 2], b"", bytes(len(data))):
        file.write_bytes(bad)
        with pytest.raises(CorruptFileError) as e:
            scan.to_arrow()
        assert (e.value.file, e.value.instant) == (unit.cdc[0].path, unit.instant)
        assert 0 <= e.value.details["offset"] <= len(data)
    file.write_bytes(data + b"#HUDI#")  # the beginning of what nobody committed
    assert scan.to_arrow().equals(whole)
