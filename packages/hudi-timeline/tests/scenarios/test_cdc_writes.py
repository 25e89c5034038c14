"""Change data capture written: the changes of each commit, applied to the rows before it, give the rows after it.

For every operation, in all logging modes, under several payloads, on both table types; and what a file of changes goes
through with its table: cleanings, rollbacks, savepoints, restores, archival, verify.
"""

import datetime
import random
import warnings
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from properties_edits import edit_properties

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    InstantNotFoundError,
    MissingFileError,
)
from hudi_format.file_names import parse_base_file, parse_cdc_file
from hudi_format.model import CDC_MODES
from hudi_timeline import HudiTable
from hudi_timeline.keys.deduplicate import DedupeType, deduplicate
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.workers.bucket_worker import write_bucket
from hudi_timeline.writing.workers.tasks import TaskToken, as_written

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
ENABLED, MODE = "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode"
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
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(*given):
    made = [{"k": k, "p": p, "ts": ts, "v": v, **more} for k, p, ts, v, more in given]
    return pa.Table.from_pylist([{"_hoodie_is_deleted": False, **r} for r in made], schema=SCHEMA)


def make(path, mode="DATA_BEFORE_AFTER", *, table_type="COPY_ON_WRITE", **options):
    given = {ENABLED: "true", MODE: mode, **options} if mode else options
    return HudiTable.create(
        path, SCHEMA, name="t", table_type=table_type, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["ts"], options=given,
    )  # fmt: skip


def counted(values):
    return Counter(repr(v) for v in values)


def state(table):
    found = table.read(columns=SCHEMA.names).to_arrow()
    return counted(found.to_pylist())


def changes(table, begin, end=None):
    return table.read_changes(begin, end, images="struct").to_arrow().to_pylist()


def applied(before, found):
    """The state after changes, each of which must fit the state before it."""
    after = before.copy()
    for change in found:
        kind, old, new = change["op"], change["before"], change["after"]
        assert (old is None, new is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[
            kind
        ]
        if old is not None:
            assert after[repr(old)] > 0, change
            after[repr(old)] -= 1
        if new is not None:
            after[repr(new)] += 1
    return +after


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


class Writes:
    """Random writes to a table of few keys."""

    def __init__(self, table, seed, options):
        self.table, self.random, self.options = table, random.Random(seed), options
        self.fresh = 0

    def row(self, *, key, deletes=0.0):
        r = self.random
        more = {"n": None if r.random() < 0.3 else {"x": r.randrange(9), "y": [str(r.randrange(9)), ""]}}
        if r.random() < deletes:
            more["_hoodie_is_deleted"] = True
        v = None if r.random() < 0.3 else str(r.randrange(1000))
        # The partition follows from the key: an index within partitions takes a key in two of them for two records.
        return key, "ab"[len(key) % 2 ^ int(key[1:]) % 2], r.randrange(10), v, more

    def some(self, **how):
        """Rows of known and new keys; of each key one, because the shortest mode logs no more than keys."""
        keys = self.random.sample(range(8), self.random.randrange(1, 6))
        return rows(*(self.row(key=f"k{n}", **how) for n in keys))

    def new(self):
        self.fresh += 3
        return rows(*(self.row(key=f"k{100 + self.fresh + n}") for n in range(3)))

    def step(self):
        t, o = self.table, self.options
        act = self.random.choice(
            [
                lambda: t.upsert(self.some(), options=o),
                lambda: t.upsert(self.some(deletes=0.5), options=o),
                lambda: t.upsert(self.some(deletes=1), options=o),
                lambda: t.insert(self.new(), options=o),
                lambda: t.insert(
                    self.new(), options={**o, "hoodie.merge.allow.duplicate.on.inserts": "false"}
                ),
                lambda: t.delete(self.some(), options=QUIET),
                lambda: t.delete("ts > 6", options=QUIET),
                lambda: t.insert_overwrite(self.new(), options=o),
                lambda: t.insert_overwrite_table(self.some(), options=o),
                lambda: t.delete_partitions(["a"], options=QUIET),
                lambda: t.bulk_insert(self.new(), options=o),
            ]
        )
        return act()


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


# --- what becomes of the files ---------------------------------------------------------------------------


def cdc_files(table):
    folders = ("a", "b")
    return sorted(f"{p}/{e.name}" for p in folders for e in table._storage.list(p) if e.name.endswith(".cdc"))


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
