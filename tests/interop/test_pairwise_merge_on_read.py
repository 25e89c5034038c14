"""Merge-on-read tables: payload x block format x index x CDC mode x keys x compaction strategy x engine, pair by pair.

Two tables get the same rows, in turn from this project and from Apache Hudi 0.15.0, into each other's file slices.
After each step both hold the same rows, read by both, as they are and by the base files alone; at the end also by
Apache Hudi 1.0.2 and, where it can, by hudi-rs.  A compaction that one schedules the other executes, after more writes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_format.model import CDC_MODES
from interop import hudi_rs, ours
from interop.apache_hudi import ApacheHudi
from interop.pairwise import covering_array
from interop.rows import assert_same_rows
from interop.samples import ALL_TYPES, TRIPS, Shape
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
    ),
    "index": ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE"),
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


def _possible(case: Any) -> bool:
    return case["strategy"] not in BY_DAY or case["keys"] == "timestamp"  # partitions that are days


CASES = covering_array(FACTORS, _possible)
# Half a minute each; all of them are in nox session interop_full.
IN_CI = 2


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
    return Shape(
        "pairwise", keys=keys, partitions=partitions, cities=("oslo", "pune"),
        schema=(ALL_TYPES if case["types"] == "all_types" else TRIPS).append(pa.field("day", pa.string())),
        options={
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{case['payload']}",
            "hoodie.index.type": case["index"],
            "hoodie.metadata.enable": "false",
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
        "hoodie.metadata.enable": "false",
    }


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


def _check_changes(twins: Twins) -> None:
    query = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    for path in twins.paths:
        assert _told(ours.table(path).read_changes("000").to_arrow()) == _told(
            twins.apache.read(path, **query)
        )


def _check_reader(twins: Twins, read: Callable[..., pa.Table]) -> None:
    for path in twins.paths:
        got, mine = read(path).drop_columns(OWN), ours.read(path).drop_columns(OWN)
        assert_same_rows(got, mine, ["uuid"], ordered_columns=False)


@pytest.mark.req("WR-12", "WR-13", "TL-12", "PM-14")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, id="-".join(c.values()), marks=[] if n < IN_CI else [pytest.mark.slow])
        for n, c in enumerate(CASES)
    ],
)
def test_twins(tmp_path: Path, pool: Any, apache: ApacheHudi, case: dict[str, str]) -> None:
    twins = Twins(tmp_path, _shape(case), apache, pool.ours() if case["engine"] == "spark" else None)
    twins.write(case["operation"], twins.new(30))
    twins.write("upsert", twins.changed(8) + twins.new(6))
    twins.check()
    twins.write("delete", twins.rows.some(list(twins.written.values()), 5))
    # Written by 0.15 or by us, what goes to a slice that a pending compaction has begun names no base file in its
    # statistics, and change queries of 0.15 fail on it.
    if case["cdc"] != "off" and case["small_files"] == "0":
        _check_changes(twins)
    if case["strategy"] != "none":
        _schedule(twins, case)
    late = [r | {"ts": r["ts"] - 500} for r in twins.changed(4)]
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
    if case["cdc"] != "off" and case["small_files"] == "0" and case["strategy"] == "none":
        _check_changes(twins)
    if case["types"] == "trips" and case["payload"] in READ_BY_HUDI_RS:
        _check_reader(twins, hudi_rs.read)
    # test_payloads.py::test_of_several_log_records_the_last_wins_in_later_releases_only
    by_commit = case["payload"] == "OverwriteWithLatestAvroPayload" and case["strategy"] == "none"
    if case not in CASES[:IN_CI] and not by_commit:  # in CI no JVM starts for it
        _check_reader(twins, pool.get("1.0.2").read)
