"""Change data capture written: the changes of each commit, applied to the rows before it, give the rows after it.

For every operation, in all logging modes, under several payloads, on both table types.
"""

import datetime
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from cdc_tables import (
    ENABLED,
    MODE,
    QUIET,
    SCHEMA,
    Writes,
    applied,
    cdc_files,
    changes,
    counted,
    make,
    rows,
    state,
)
from properties_edits import edit_properties

from hudi_format.errors import ConflictingOptionError, CorruptFileError
from hudi_format.file_names import parse_base_file, parse_cdc_file
from hudi_format.model import CDC_MODES
from hudi_timeline import HudiTable
from hudi_timeline.keys.deduplicate import deduplicate
from hudi_timeline.options.service_options import DedupeType
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.workers.bucket_worker import write_bucket
from hudi_timeline.writing.workers.tasks import TaskToken, as_written

PAYLOAD = "hoodie.datasource.write.payload.class"
PAYLOADS = {
    "latest": {PAYLOAD: "OverwriteWithLatestAvroPayload"},
    "greatest": {PAYLOAD: "DefaultHoodieRecordPayload"},
    "first": {PAYLOAD: "FirstValueAvroPayload"},
    "event time": {PAYLOAD: "EventTimeAvroPayload"},
    "non-defaults": {PAYLOAD: "OverwriteNonDefaultsWithLatestAvroPayload"},
    "partial": {PAYLOAD: "PartialUpdateAvroPayload"},
    "expressions": {"hudi.merge": '{"v": "max"}'},
}


def check_files(table, result):
    """Rewritten base files have one file of changes each, as large as said, and new ones none."""
    for stat in result.write_stats:
        base = parse_base_file(stat.partition, stat.path.rpartition("/")[2])
        if base is None:
            assert not stat.cdc_files  # a log file: its records are the changes
            continue
        assert len(stat.cdc_files) == (stat.prev_commit != "null")
        for path, size in stat.cdc_files.items():
            cdc = parse_cdc_file(stat.partition, path.rpartition("/")[2])
            assert (cdc.file_id, cdc.instant, cdc.write_token) == (
                base.file_id, base.instant, base.write_token,
            )  # fmt: skip
            assert table._storage.info(path).size == size


def payload_of_write(options):
    return {**QUIET, **{k: v for k, v in options.items() if k == PAYLOAD}}


@pytest.mark.req("IN-13")
@pytest.mark.sampled(24, values=False)
@pytest.mark.parametrize(
    ("table_type", "payload", "mode"),
    [("COPY_ON_WRITE", p, m) for p in PAYLOADS for m in CDC_MODES]
    + [("MERGE_ON_READ", p, m) for p in ("latest", "greatest") for m in CDC_MODES],
)
def test_the_changes_of_each_commit_lead_from_the_rows_before_it_to_those_after_it(
    tmp_path, table_type, payload, mode
):
    options = PAYLOADS[payload]
    table = make(tmp_path / "t", mode, table_type=table_type, **options)
    table.insert(rows(*(Writes(table, n, {}).row(key=f"k{n}") for n in range(8))))
    writes = Writes(table, f"{mode} {payload}", payload_of_write(options))
    before, last, rewritten = state(table), table.timeline.completed_writes()[-1].time, 0
    for _ in range(14):
        result = writes.step()
        if not result.instant:
            continue
        check_files(table, result)
        rewritten += sum(len(s.cdc_files) for s in result.write_stats)
        after = state(table)
        assert applied(before, changes(table, last, result.instant)) == after, result
        before, last = after, result.instant
    assert rewritten >= (3 if table_type == "COPY_ON_WRITE" else 1)
    assert applied(Counter(), changes(table, "000")) == before
    assert table.verify() == []


def test_records_that_move_to_another_partition_go_here_and_come_there(tmp_path):
    """Under a global index: a delete in one file group, an insert in another, one of which is new."""
    index = {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
        **QUIET,
    }
    table = make(tmp_path / "t", **index)
    table.insert(
        rows(("k1", "a", 1, "1", {}), ("k2", "b", 1, "2", {}), ("k3", "a", 1, "3", {})), options=index
    )
    before, last = state(table), table.timeline.completed_writes()[-1].time
    moved = rows(("k1", "b", 2, "moved", {}), ("k3", "c", 2, "moved", {}))
    check_files(table, table.upsert(moved, options=index))
    found = changes(table, last)
    assert applied(before, found) == state(table)
    assert Counter(c["op"] for c in found) == {"d": 2, "i": 2}


def by_key(table, **when):
    return {r["k"]: r for r in table.read(columns=SCHEMA.names, **when).to_arrow().to_pylist()}


def in_turn(before, found):
    """The rows by record key alone after changes, which are applied one after the other."""
    after = dict(before)
    for change in found:
        if change["op"] == "d":
            assert after.pop(change["before"]["k"]) == change["before"]
        else:
            assert (change["op"] == "u") == (change["after"]["k"] in after), change
            after[change["after"]["k"]] = change["after"]
    return after


@pytest.mark.parametrize("logged", ["DATA_BEFORE_AFTER", "OP_KEY_ONLY", ""])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.sampled(6, values=False)
def test_changes_can_be_applied_by_key_in_the_order_in_which_they_are_given(tmp_path, table_type, logged):
    """Of a key that goes from one file group and comes in another, in one commit, the delete is first."""
    index = {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
        **QUIET,
    }
    given = {**index, ENABLED: "true", MODE: logged} if logged else index
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, name="t", table_type=table_type, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["ts"], options=given,
    )  # fmt: skip
    keys = [f"{p}{n}" for p in "abcdef" for n in range(2)]
    table.insert(rows(*((k, k[0], 1, "first", {}) for k in keys)), options=index)
    states = [(table.timeline.completed_writes()[-1].time, by_key(table))]

    def told(result):
        since, before = states[-1]
        found = changes(table, since, result.instant)
        now = by_key(table)
        assert in_turn(before, found) == now
        states.append((result.instant, now))
        return Counter(c["op"] for c in found)

    # Round and round: each partition gives a record and gets one; another one is deleted, one is new.
    moved = [(f"{p}0", q, 2, "moved", {}) for p, q in zip("abcdef", "bcdefa", strict=True)]
    more = [
        ("a1", "a", 2, "", {"_hoodie_is_deleted": True}),
        ("new", "f", 2, "new", {}),
        ("b1", "b", 2, "again", {}),
    ]
    assert told(table.upsert(rows(*moved, *more), options=index)) == {"d": 7, "i": 7, "u": 1}
    back = [(f"{p}0", p, 3, "back", {}) for p in "abcdef"]
    assert told(table.upsert(rows(*back), options=index)) == {"d": 6, "i": 6}
    assert told(table.upsert(rows(("b1", "b", 4, "only", {})), options=index)) == {"u": 1}
    # The same keys again, in the file groups of an overwrite.
    whole = rows(*((k, k[0], 5, "second", {}) for k in keys))
    there = len(by_key(table))
    assert told(table.insert_overwrite_table(whole, options=index)) == {"d": there, "i": len(keys)}
    assert told(table.insert_overwrite(whole.slice(0, 6), options=index)) == {"d": 6, "i": 6}
    assert in_turn(states[0][1], changes(table, states[0][0])) == by_key(table)


def test_rows_marked_by_a_delete_field_are_deletes(tmp_path):
    marked = {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "gone"}
    payload = PAYLOADS["greatest"]
    table = make(tmp_path / "t", "OP_KEY_ONLY", **payload)
    table.insert(rows(("k1", "a", 1, "1", {}), ("k3", "a", 1, "3", {})))
    last = table.timeline.completed_writes()[-1].time
    table.upsert(rows(("k1", "a", 2, "gone", {}), ("k5", "a", 2, "gone", {})), options={**payload, **marked})
    (found,) = changes(table, last)
    assert (found["op"], found["before"]["k"], found["after"]) == ("d", "k1", None)


@pytest.mark.parametrize("mode", CDC_MODES)
def test_a_commit_that_changes_no_record_logs_none(tmp_path, mode):
    """A late record, a delete of a key that is not there: Apache Hudi asks for a file of changes all the same."""
    table = make(tmp_path / "t", mode, **PAYLOADS["greatest"])
    table.insert(rows(("k1", "a", 5, "1", {})))
    last = table.timeline.completed_writes()[-1].time
    result = table.upsert(
        rows(("k1", "a", 1, "late", {}), ("k9", "a", 1, "none", {"_hoodie_is_deleted": True})),
        options=PAYLOADS["greatest"],
    )
    check_files(table, result)
    assert [len(s.cdc_files) for s in result.write_stats] == [1]
    assert changes(table, last) == []


@pytest.mark.parametrize("mode", CDC_MODES)
def test_all_rows_of_a_file_that_go_at_once_are_deletes(tmp_path, mode):
    """Marked as deleted in an upsert: without a file of changes Apache Hudi tells of none of them."""
    table = make(tmp_path / "t", mode)
    table.insert(rows(*((f"k{n}", "a", 1, "1", {}) for n in range(3))))
    last = table.timeline.completed_writes()[-1].time
    gone = {"_hoodie_is_deleted": True}
    result = table.upsert(rows(*((f"k{n}", "a", 2, "1", gone) for n in range(3))))
    assert [(s.num_writes, len(s.cdc_files)) for s in result.write_stats] == [(0, 1)]
    assert Counter(c["op"] for c in changes(table, last)) == {"d": 3}


def test_a_column_that_comes_later_is_null_in_images_before(tmp_path):
    table = make(tmp_path / "t")
    table.insert(rows(("k1", "a", 1, "1", {}), ("k3", "a", 1, "3", {})))
    last = table.timeline.completed_writes()[-1].time
    more = rows(("k1", "a", 2, "2", {})).append_column("w", pa.array([7], pa.int64()))
    table.upsert(more)
    (found,) = changes(table, last)
    assert (found["before"]["w"], found["after"]["w"], found["before"]["v"]) == (None, 7, "1")


def test_tables_without_meta_columns_log_their_keys(tmp_path):
    table = make(tmp_path / "t", "OP_KEY_ONLY", **{"hoodie.populate.meta.fields": "false"})
    table.insert(rows(("k1", "a", 1, "1", {}), ("k3", "a", 1, "3", {})))
    before, last = state(table), table.timeline.completed_writes()[-1].time
    table.upsert(rows(("k1", "a", 2, "2", {}), ("k5", "a", 2, "5", {})))
    assert applied(before, changes(table, last)) == state(table)


def test_a_deduplication_logs_the_rows_that_it_takes_out(tmp_path):
    table = make(tmp_path / "t")
    for step in range(3):
        table.insert(
            rows(("k1", "a", step, str(step), {}), (f"k{step * 2 + 3}", "a", 1, "x", {})), options=QUIET
        )
    before, last = state(table), table.timeline.completed_writes()[-1].time
    context = ServiceContext(table._storage)
    assert deduplicate(context, "a", kind=DedupeType.UPSERT).rows == 2
    found = changes(table, last)
    assert applied(before, found) == state(table)
    assert [(c["op"], c["before"]["v"]) for c in found] == [("d", "0"), ("d", "1")]
    assert len(cdc_files(table)) == 3
    assert table.verify() == []


WIDE = pa.schema(
    [
        ("k", pa.string()),
        ("small", pa.decimal128(5, 2)),
        ("large", pa.decimal128(38, 10)),
        ("flag", pa.bool_()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("g", pa.float64()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("of", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("rows", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.map_(pa.string(), pa.string()))]))),
    ]
)


def wide(step, numbers):
    def value(i):
        return {
            "k": f"k{i}", "small": Decimal(i) / 4, "large": Decimal(step) + Decimal(i) / 1024,
            "flag": i % 2 == 0, "i": i - 2, "f": i / 2, "g": i / 3, "raw": bytes([0, 255, i]),
            "day": datetime.date(1969, 12, 28 + i % 4), "at": datetime.datetime(2026, 1, 1, step, tzinfo=datetime.UTC),
            "local": datetime.datetime(1960, 1, 1, i), "of": [("a", [i, None]), ("", [])],
            "rows": [{"x": None, "y": [("é", None)]}, None],
        }  # fmt: skip

    return pa.Table.from_pylist([value(i) if i % 4 else {"k": f"k{i}"} for i in numbers], schema=WIDE)


@pytest.mark.parametrize("mode", CDC_MODES)
def test_values_of_all_types_are_logged_as_they_are(tmp_path, mode):
    path = tmp_path / "t"
    table = HudiTable.create(path, WIDE, name="t", record_keys=["k"], options={ENABLED: "true", MODE: mode})

    def everything():
        return counted(table.read(columns=WIDE.names).to_arrow().to_pylist())

    table.insert(wide(0, range(9)))
    before, last = everything(), table.timeline.completed_writes()[-1].time
    table.upsert(wide(1, range(0, 12, 2)))
    after, end = everything(), table.timeline.completed_writes()[-1].time
    assert applied(before, changes(table, last)) == after
    table.delete(wide(0, [1, 2, 3, 4]))
    assert applied(after, changes(table, end)) == everything()


def test_files_of_attempts_that_lost_go_with_the_commit(tmp_path):
    """Two attempts of one task: each leaves a base file and a file of changes, of which the commit names one."""
    table = make(tmp_path / "t")
    table.insert(rows(("k1", "a", 1, "1", {}), ("k3", "a", 1, "3", {})))
    engine, twice = LocalEngine(1), []

    def write(frame, context, routing):
        twice.append(LocalEngine.write(engine, frame, context, routing))
        attempt = TaskToken(0, 0, 1)
        mine = as_written(frame.rows, context.row_schema())
        twice.append(write_bucket(context, routing.buckets[0], mine, attempt))
        assert len(cdc_files(table)) == 2
        return twice[1]

    engine.write = write
    given = {**QUIET, "hoodie.datasource.write.operation": "upsert"}
    result = execute(engine, table._storage, rows(("k1", "a", 2, "2", {})), given)
    assert cdc_files(table) == [f for s in result.write_stats for f in s.cdc_files]
    assert "_0-0-1.cdc" in cdc_files(table)[0]
    assert table.verify() == []


@pytest.mark.parametrize("mode", CDC_MODES)
def test_merge_on_read_tables_log_what_is_merged_into_small_files(tmp_path, mode):
    """Records of log files are changes themselves."""
    table = make(tmp_path / "t", mode, table_type="MERGE_ON_READ")
    writes = [
        lambda: table.insert(rows(*((f"k{n}", "a", 1, "1", {}) for n in range(4))), options=QUIET),
        lambda: table.insert(rows(("k7", "a", 1, "7", {})), options=QUIET),
        lambda: table.upsert(rows(("k1", "a", 2, "2", {}), ("k9", "b", 1, "9", {})), options=QUIET),
        lambda: table.delete(rows(("k2", "a", 3, "", {})), options=QUIET),
    ]
    before, last, logged = Counter(), "000", []
    for write in writes:
        result = write()
        check_files(table, result)
        logged.append(sum(len(s.cdc_files) for s in result.write_stats))
        assert applied(before, changes(table, last)) == state(table)
        before, last = state(table), result.instant
    assert logged == [0, 1, 0, 0]
    assert table.verify() == []


# --- options ---------------------------------------------------------------------------------------------


def test_the_logging_mode_is_the_tables_in_any_case_and_stays(tmp_path):
    table = make(tmp_path / "t", "data_before")
    stored = table.config.properties
    assert (stored[ENABLED], stored[MODE]) == ("true", "DATA_BEFORE")
    table.insert(rows(("k1", "a", 1, "1", {})), options={ENABLED: "true", MODE: "Data_Before"})
    for asked in ({MODE: "op_key_only"}, {ENABLED: "false"}):
        with pytest.raises(ConflictingOptionError, match="cdc"):
            table.insert(rows(("k3", "a", 1, "1", {})), options=asked)
    assert len(table.timeline.completed_writes()) == 1


def test_a_table_that_logs_no_changes_does_not_begin_to(tmp_path):
    table = HudiTable.create(tmp_path / "t", SCHEMA, name="t", record_keys=["k"], options={ENABLED: "false"})
    assert MODE not in table.config.properties
    for asked in ({ENABLED: "true"}, {MODE: "op_key_only"}):
        with pytest.raises(ConflictingOptionError, match="cdc"):
            table.insert(rows(("k3", "a", 1, "1", {})), options=asked)


def test_a_mode_without_what_it_is_for_is_refused(tmp_path):
    with pytest.raises(ConflictingOptionError, match=r"cdc\.enabled=true"):
        HudiTable.create(tmp_path / "t", SCHEMA, name="t", record_keys=["k"], options={MODE: "DATA_BEFORE"})
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_stored_mode_that_there_is_not_is_damage(tmp_path):
    make(tmp_path / "t")
    edit_properties(tmp_path / "t", "=DATA_BEFORE_AFTER", "=EVERYTHING")
    with pytest.raises(CorruptFileError, match="EVERYTHING"):
        HudiTable.open(tmp_path / "t")
