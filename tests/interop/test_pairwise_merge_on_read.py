"""Merge-on-read tables: payload x block format x index x CDC mode x keys x compaction strategy x engine, pair by pair.

Two tables get the same rows, in turn from this project and from Apache Hudi 0.15.0, into each other's file slices.
After each step both hold the same rows, read by both, as they are and by the base files alone; at the end also by
Apache Hudi 1.0.2 and, where it can, by hudi-rs.  A compaction that one schedules the other executes, after more writes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_format.model import CDC_MODES
from interop import hudi_rs, ours
from interop.apache_hudi import ApacheHudi
from interop.pairwise import covering_array
from interop.rows import assert_same_rows
from interop.samples import ALL_TYPES, TRIPS, Row, Shape
from interop.twins import OWN, Twins

FACTORS = {
    "operation": ("bulk_insert", "insert", "upsert"),
    "keys": ("simple", "complex", "nonpartitioned", "timestamp", "custom"),
    "payload": (
        "OverwriteWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
        "AWSDmsAvroPayload",
        "debezium.PostgresDebeziumAvroPayload",
        "debezium.MySqlDebeziumAvroPayload",
    ),
    "index": ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "BUCKET"),
    "types": ("trips", "all_types"),
    "blocks": ("avro", "parquet"),
    "small_files": ("0", "104857600"),
    "cdc": ("off", *CDC_MODES),
    "strategy": (
        "none",
        "LogFileSizeBased",
        "LogFileNumBased",
        "BoundedIO",
        "UnBounded",
        "DayBased",
        "BoundedPartitionAware",
    ),
    "engine": ("python", "spark"),
}
# It refuses maps of structs and payloads that fill values in; of log records it takes the last one, where Apache Hudi
# with OverwriteWithLatestAvroPayload takes the one with the greatest ordering value.
READ_BY_HUDI_RS = ("DefaultHoodieRecordPayload", "EventTimeAvroPayload")
# With these, of the keys of late records, later releases of Apache Hudi give others, and 0.15 tells more changes.
LATEST = ("OverwriteWithLatestAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")
BY_DAY = ("DayBased", "BoundedPartitionAware")
TIME_BASED = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str, dict[str, str]]] = {
    "simple": (("uuid",), ("city",), "SimpleKeyGenerator", {}),
    "complex": (("uuid", "kind"), ("city", "kind"), "ComplexKeyGenerator", {}),
    "nonpartitioned": (("uuid",), (), "NonpartitionedKeyGenerator", {}),
    "timestamp": (("uuid",), ("day",), "TimestampBasedKeyGenerator", TIME_BASED),
    "custom": (
        ("uuid", "kind"), ("city:SIMPLE", "day:TIMESTAMP"), "CustomKeyGenerator",
        TIME_BASED | {"hoodie.keygen.timebased.output.dateformat": "yyyyMMdd"},
    ),
}  # fmt: skip


DMS = "AWSDmsAvroPayload"
MARKS: dict[str, tuple[str, tuple[str | None, ...]]] = {
    DMS: ("Op", (None, "I", "U", "U", "U", "D")),
    "debezium.PostgresDebeziumAvroPayload": ("_change_operation_type", (None, "c", "u", "u", "u", "d")),
    "debezium.MySqlDebeziumAvroPayload": ("_change_operation_type", (None, "c", "u", "u", "u", "d")),
}
"""Columns of the kind of a change, and the kinds; the last one deletes."""
DERIVED: dict[str, tuple[pa.Schema, Callable[[Row, random.Random], Row]]] = {
    DMS: (pa.schema([]), lambda row, draw: {}),
    "debezium.PostgresDebeziumAvroPayload": (
        pa.schema([("_event_lsn", pa.int64()), ("toast", pa.string())]),
        lambda row, draw: {
            "_event_lsn": row["ts"],
            "toast": draw.choice([None, "v", "w", "__debezium_unavailable_value"]),
        },
    ),
    # 0.15 orders positions of MySQL as text and as numbers: here all are of one width.
    "debezium.MySqlDebeziumAvroPayload": (
        pa.schema([("_event_seq", pa.string())]),
        lambda row, draw: {"_event_seq": f"2.{10000 + row['ts']}"},
    ),
}
ORDERING = {
    "debezium.PostgresDebeziumAvroPayload": "_event_lsn",
    "debezium.MySqlDebeziumAvroPayload": "_event_seq",
}
INDEXES = {
    "RECORD_INDEX": {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "3", "hoodie.metadata.enable": "false"},
}
UNLISTED = {"hoodie.metadata.enable": "false"}
FIRST = 30  # rows of the first write
EARLIEST, LAST_FIRST = 1001, f"id-{FIRST:05d}"  # their ordering value, and the last of their keys
SECOND = EARLIEST + 1  # ordering value of those that the second write changes


def _possible(case: Any) -> bool:
    if "debezium" in case["payload"] and case["index"] in ("GLOBAL_SIMPLE", "RECORD_INDEX"):
        return False  # refused before anything is written
    return case["strategy"] not in BY_DAY or case["keys"] == "timestamp"  # partitions that are days


CASES = covering_array(FACTORS, _possible)
# Half a minute each; all of them are in nox session interop_full.
IN_CI = (0,)


def _shape(case: dict[str, str]) -> Shape:
    keys, partitions, keygen, more = KEYS[case["keys"]]
    if case["strategy"] != "none":  # else batch writes execute what is pending
        more = more | {"hoodie.compact.inline": "false"}
    if case["cdc"] != "off":
        more = more | {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": case["cdc"],
            "hoodie.merge.allow.duplicate.on.inserts": "false",
        }
    if case["payload"] in ORDERING:
        more = more | {"hoodie.datasource.write.precombine.field": ORDERING[case["payload"]]}
    types = ALL_TYPES if case["types"] == "all_types" else TRIPS
    derived = (
        [*DERIVED[case["payload"]][0], (MARKS[case["payload"]][0], pa.string())]
        if case["payload"] in DERIVED
        else []
    )
    return Shape(
        "pairwise", keys=keys, partitions=partitions, cities=("oslo", "pune"),
        schema=pa.schema([*types, ("day", pa.string()), *derived]),
        options={
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{case['payload']}",
            "hoodie.index.type": case["index"],
            **INDEXES.get(case["index"], UNLISTED),
            "hoodie.logfile.data.block.format": case["blocks"],
            "hoodie.parquet.small.file.limit": case["small_files"],
            "hoodie.compact.inline.max.delta.commits": "100",
            **more,
        },
    )  # fmt: skip


def _strategy(case: dict[str, str]) -> dict[str, str]:
    return {
        "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy."
        f"{case['strategy']}CompactionStrategy",
        "hoodie.compaction.daybased.target.partitions": "100000",
        "hoodie.compact.inline.max.delta.commits": "1",
        **INDEXES.get(case["index"], UNLISTED),
    }


def _derived(case: dict[str, str]) -> Callable[[Row], Row]:
    """Columns that the payload goes by, of each version of a row."""
    if case["payload"] not in DERIVED:
        return lambda row: {}
    make = DERIVED[case["payload"]][1]
    mark, kinds = MARKS[case["payload"]]

    def derived(row: Row) -> Row:
        draw = random.Random(f"{row['uuid']} {row['ts']}")
        return make(row, draw) | {mark: draw.choice(kinds if _may_delete(case, row["ts"]) else kinds[:-1])}

    return derived


def _may_delete(case: dict[str, str], ts: int) -> bool:
    """Whether Apache Hudi reads logs with records of this ordering value that are marked as deletes, as others do.

    Not late ones: test_payloads.py::test_a_late_mark_of_deletion_in_a_log_deletes_the_base_row_in_0_15_only.  With DMS
    none of a key that has no base row: with BUCKET as it is in the log only, and where a compaction has taken it away
    (test_apache_hudi_reads_no_log_with_a_delete_of_dms_whose_key_has_no_base_row, and the test after it).
    """
    if ts < EARLIEST or case["payload"] != DMS:
        return ts >= EARLIEST
    if case["index"] == "BUCKET":
        return ts == SECOND
    return case["strategy"] == "none" or ts <= SECOND + 1  # what the second write adds


def _deletable(case: dict[str, str], rows: list[Row]) -> list[Row]:
    """Rows that may be deleted: with DMS and BUCKET those of the first write, which went to base files."""
    logged = case["payload"] == DMS and case["index"] == "BUCKET"
    return [r for r in rows if r["uuid"] <= LAST_FIRST] if logged else rows


def _call(apache: ApacheHudi, path: Path, what: str, options: dict[str, str]) -> None:
    name = f"{path.name}_{path.parent.name}".replace("-", "_").replace(".", "_").lower()
    apache.sql(f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{path}'")
    given = ",".join(f"{k}={v}" for k, v in options.items())
    apache.sql(f"CALL run_compaction(op => '{what}', table => '{name}', options => '{given}')")


def _schedule(twins: Twins, case: dict[str, str]) -> None:
    """A plan of ours for the one table, of Apache Hudi for the other; either takes all slices with logs."""
    mine, theirs = twins.paths
    assert ours.table(mine).compact(mode="schedule", options=_strategy(case)).scheduled
    _call(twins.apache, theirs, "schedule", _strategy(case))
    for path in twins.paths:
        (pending,) = ours.table(path).timeline.pending("compaction")
        checks = ours.table(path).validate_compaction(pending.time)
        assert [c.error for c in checks if c.error] == []
        assert ours.table(path).compact(mode="schedule", dry_run=True).plan.operations == ()


def _execute(twins: Twins, case: dict[str, str]) -> None:
    """Either executes the other's plan."""
    mine, theirs = twins.paths
    _call(twins.apache, mine, "execute", _strategy(case))
    assert len(ours.table(theirs).compact(mode="execute", options=_strategy(case)).executed) == 1
    for path in twins.paths:
        assert not ours.table(path).timeline.pending("compaction")


def _told(changes: pa.Table) -> Counter[tuple[str, ...]]:
    """Changes by operation, time and key; their images are compared in test_cdc.py."""
    out: Counter[tuple[str, ...]] = Counter()
    for change in changes.to_pylist():
        before, after = (json.loads(change[n] or "null") for n in ("before", "after"))
        out[change["op"], change["ts_ms"], (after or before)["uuid"]] += 1
    return out


def _check_changes(twins: Twins, case: dict[str, str], late: Collection[str] = frozenset()) -> None:
    """The same changes by both.

    Args:
        late: keys of records that lost to earlier ones, of which Apache Hudi may tell updates that we do not tell
            (test_cdc.py::test_of_a_log_record_that_loses_to_an_earlier_one_apache_hudi_tells_a_change).
    """
    query = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    mine = [_told(ours.table(path).read_changes("000").to_arrow()) for path in twins.paths]
    assert mine[0]
    assert _by_commit(mine[0]) == _by_commit(mine[1])
    if case["payload"] == DMS:  # test_cdc.py::test_apache_hudi_tells_nothing_of_a_log_with_a_delete_of_dms
        return
    for path, told in zip(twins.paths, mine, strict=True):
        theirs = _told(twins.apache.read(path, **query))
        assert not told - theirs
        assert [c for c in theirs - told if c[0] != "u" or c[2] not in late] == []


def _by_commit(told: Counter[tuple[str, ...]]) -> Counter[tuple[object, ...]]:
    """Changes with the numbers of their commits in the place of times."""
    times = sorted({time for _, time, _ in told})
    return Counter({(op, times.index(time), key): n for (op, time, key), n in told.items()})


def _check_reader(twins: Twins, read: Callable[..., pa.Table], late: Collection[str] = frozenset()) -> None:
    """The same rows by another reader, but for those of some keys, which it has too."""
    for path in twins.paths:
        got, mine = read(path).drop_columns(OWN), ours.read(path).drop_columns(OWN)
        assert got.num_rows == mine.num_rows
        got, mine = (t.filter(pa.array([k not in late for k in t["uuid"].to_pylist()])) for t in (got, mine))
        assert_same_rows(got, mine, ["uuid"], ordered_columns=False)


@pytest.mark.req("WR-12", "WR-13", "TL-12", "PM-14")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id="-".join(c.values()), marks=[pytest.mark.in_ci] if n in IN_CI else [])
        for n, c in enumerate(CASES)
    ],
)
def test_two_tables_with_one_history_are_twins(
    tmp_path: Path, pool: Any, apache: ApacheHudi, case: dict[str, str]
) -> None:
    spark = pool.ours() if case["engine"] == "spark" else None
    twins = Twins(tmp_path, _shape(case), apache, spark, derived=_derived(case))
    first = twins.new(FIRST)
    assert {r["ts"] for r in first} == {EARLIEST}
    assert max(r["uuid"] for r in first) == LAST_FIRST
    twins.write(case["operation"], first)
    changed = twins.changed(8)
    assert {r["ts"] for r in changed} == {SECOND}
    twins.write("upsert", changed + twins.new(6))
    twins.check()
    twins.write("delete", twins.rows.some(_deletable(case, list(twins.written.values())), 5))
    # Written by 0.15 or by us, what goes to a slice that a pending compaction has begun names no base file in its
    # statistics, and change queries of 0.15 fail on it.
    if case["cdc"] != "off" and case["small_files"] == "0":
        _check_changes(twins, case)
    if case["strategy"] != "none":
        _schedule(twins, case)
    late = [twins.completed(r | {"ts": r["ts"] - 500}) for r in twins.changed(4)]
    seen = {r["uuid"] for r in late}
    twins.write("upsert", late + [r for r in twins.changed(6) if r["uuid"] not in seen] + twins.new(3))
    twins.check()
    if case["strategy"] != "none":
        _execute(twins, case)
        twins.check()
    optimized = {"hoodie.datasource.query.type": "read_optimized"}
    for path in twins.paths:
        want = apache.read(path, **optimized).drop_columns(OWN)
        got = ours.table(path).read(query="read_optimized", meta_columns=True).to_arrow().drop_columns(OWN)
        assert_same_rows(got, want, ["uuid"], ordered_columns=False)
        assert ours.table(path).verify() == []
    # test_payloads.py::test_of_several_log_records_the_last_wins_in_later_releases_only
    lost = {r["uuid"] for r in late} if case["payload"] in LATEST and case["strategy"] == "none" else set()
    if case["cdc"] != "off" and case["small_files"] == "0" and case["strategy"] == "none":
        _check_changes(twins, case, lost)
    if case["types"] == "trips" and case["payload"] in READ_BY_HUDI_RS:
        _check_reader(twins, hudi_rs.read)
    if CASES.index(case) not in IN_CI:  # in CI no JVM starts for it
        _check_reader(twins, pool.get("1.0.2").read, lost)
