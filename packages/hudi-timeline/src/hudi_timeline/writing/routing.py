"""Routing of a write's rows to file groups: for the write itself, and for a dry run of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_format.model import FileSlice, WriteStat
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ, newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import with_rings
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.file_system_view.snapshot import TableSnapshot, is_base_file
from hudi_timeline.metadata_table.record_index import about_lookup
from hudi_timeline.options.write_options import LOOKS_UP, REPLACING
from hudi_timeline.transaction.conflict_strategies import FileGroup
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.latest_slices import LatestSlices, refuse_planned, rows_of
from hudi_timeline.writing.planning.index_choice import about_left
from hudi_timeline.writing.planning.new_table import choose
from hudi_timeline.writing.planning.write_plan import Plan, drops_duplicates, lookup_task, write_action
from hudi_timeline.writing.result import CommitResult
from hudi_timeline.writing.upsert_partitioner import AssignPolicy, SizingRules, assign, average_record_size
from hudi_timeline.writing.workers.tasks import APPEND, CREATE, ProfileRow, Routing


def route(
    profile: Sequence[ProfileRow],
    latest: LatestSlices,
    plan: Plan,
    snapshot: TableSnapshot | None,
    table_type: str,
    *,
    new_files_only: bool = False,
    seed: str = "",
) -> Routing:
    """File groups of the profile's rows.

    Args:
        seed: of the file ids of new file groups; "" for random ones.
        snapshot: the table before the write; None for a new one.
    """
    c = plan.config
    rules = SizingRules(
        c.max_file_bytes, c.small_file_limit_bytes, c.insert_split_size, c.auto_split,
        c.record_size_estimate, c.record_size_threshold, c.small_group_candidates,
    )  # fmt: skip
    policy = AssignPolicy(
        drop_unlocated=plan.operation == "delete",
        drop_located=drops_duplicates(plan) and plan.bucket is None,
        small_files=not new_files_only and plan.operation in ("upsert", "insert"),
        append=plan.operation == "insert" and c.allow_duplicate_on_inserts,
        logs=table_type == MERGE_ON_READ,
        # With it a key that is there is added a second time, as in Apache Hudi; a bulk_insert must not.
        append_located=plan.bucket is not None
        and plan.operation == "insert"
        and c.allow_duplicate_on_inserts,
    )
    return assign(
        profile, latest.slices, _record_size(snapshot, rules), rules, policy, latest.pending, seed=seed
    )


def _record_size(snapshot: TableSnapshot | None, rules: SizingRules) -> Callable[[], int]:
    def commits() -> Iterator[tuple[int, int]]:
        if snapshot is None:
            return
        for instant in reversed(snapshot.timeline.completed_writes()):
            # Of log files the records are as large as they are encoded in them.
            stats = [s for s in snapshot.commits.get(instant).stats if is_base_file(s.path)]
            yield sum(s.total_write_bytes for s in stats), sum(s.num_writes for s in stats)

    return lambda: average_record_size(commits(), rules)


def _taken(profile: Sequence[ProfileRow], plan: Plan) -> list[ProfileRow]:
    """The rows of a profile that are written."""
    if drops_duplicates(plan) and plan.bucket is None:
        return [row for row in profile if not row.file_id]
    return list(profile)


def profile_and_dropped(
    engine: Engine[Any, Any], frame: Any, plan: Plan, latest: LatestSlices, counts: Mapping[str, int]
) -> tuple[list[ProfileRow], frozenset[FileGroup]]:
    """Rows to write, and file groups whose known keys are dropped.

    Args:
        latest: where keys were looked for.
        counts: rows of the write by partition.
    """
    profile = list(engine.profile(frame))
    taken = _taken(profile, plan)
    if not drops_duplicates(plan):
        return taken, frozenset()
    if plan.bucket is None:
        return taken, frozenset((r.partition, r.file_id) for r in profile if r.file_id)
    left = dict(counts)
    for row in taken:
        left[row.partition] -= row.rows
    groups = ((p, s.file_id) for p, of in latest.slices.items() if left.get(p) for s in of)
    return taken, frozenset(groups)


@dataclass(frozen=True)
class Replaced:
    """File groups that a write replaces.

    Attributes:
        slices: their newest slices.
        groups: their ids, by partition.
    """

    slices: Sequence[FileSlice]
    groups: dict[str, list[str]]
    warnings: tuple[str, ...] = ()


def replaced_by(plan: Plan, snapshot: TableSnapshot, counts: Mapping[str, int]) -> Replaced:
    """File groups that an overwrite or a deletion of partitions replaces.

    Args:
        counts: rows of the write by partition.

    Raises:
        UnsupportedError: a pending compaction of deleted partitions.
    """
    partitions: Sequence[str] | None
    warnings: tuple[str, ...] = ()
    groups: dict[str, list[str]] = {}
    if plan.operation == "insert_overwrite_table":
        partitions = None
    elif plan.operation == "insert_overwrite":
        partitions = sorted(plan.config.static_overwrite_partitions or counts)
    else:
        existing = list_partitions(plan.storage, snapshot.config)
        chosen = choose(plan.config.partitions_to_delete, counts, existing)
        partitions, warnings = chosen.found, chosen.warnings()
        groups = {p: [] for p in chosen.listed}
        refuse_planned(snapshot, chosen.found)
    slices = newest_slices_of(snapshot, partitions)
    for file_slice in slices:
        groups.setdefault(file_slice.partition, []).append(file_slice.file_id)
    return Replaced(slices, groups, warnings)


def covered_by(plan: Plan, counts: Mapping[str, int], partitions: Collection[str]) -> Collection[str]:
    """Partitions that an overwrite or a deletion of partitions replaces, of some.

    Args:
        counts: rows of the write by partition.
    """
    if plan.operation == "insert_overwrite_table":
        return partitions
    if plan.operation == "insert_overwrite":
        return {*(plan.config.static_overwrite_partitions or counts)}.intersection(partitions)
    return choose(plan.config.partitions_to_delete, counts, partitions).found


def preview(
    engine: Engine[Any, Any], frame: Any, plan: Plan, counts: Mapping[str, int], timings: Mapping[str, float]
) -> CommitResult:
    """Result of a dry run: what the write would do to the table as it is now.

    Rows that mark deletes count as updates; rows are not merged, so that an older one counts too.
    """
    began = time.monotonic()
    snapshot = plan.snapshot
    table_type = (plan.config if plan.table is None else plan.table).table_type or ""
    replaced: Replaced | None = None
    latest, new_files_only = LatestSlices(), True
    warnings = plan.warnings
    if snapshot is not None and plan.operation in REPLACING:
        replaced = replaced_by(plan, snapshot, counts)
        warnings += replaced.warnings
    looked_up = None
    if plan.operation in (*LOOKS_UP, "insert") and snapshot is not None:
        new_files_only = False
        looks_up = plan.operation in LOOKS_UP or drops_duplicates(plan) or plan.bucket is not None
        everywhere = looks_up and lookup_task(plan).is_global
        latest = LatestSlices.of(snapshot, None if everywhere else sorted(counts))
        if looks_up:
            asked = latest.look_up(plan, snapshot)
            frame = engine.tag(frame, plan.storage, latest.candidates(asked), asked)
            looked_up = engine.looked_up
            warnings += about_lookup(asked, looked_up)
    elif plan.bucket is not None and frame is not None:
        task = lookup_task(plan)
        if snapshot is not None:
            task = replace(task, bucket=with_rings(plan.bucket, snapshot, counts))
        frame = engine.tag(frame, plan.storage, {}, task)
    stats: list[WriteStat] = []
    if frame is not None and plan.operation != "delete_partition":
        profile = _taken(engine.profile(frame), plan)
        routing = route(profile, latest, plan, snapshot, table_type, new_files_only=new_files_only)
        stats = _planned(profile, routing, deletes=plan.operation == "delete")
        looked_up = looked_up and engine.looked_up
        warnings += about_left(plan.config, plan.key_spec, plan.operation, looked_up)
    rate = None if snapshot is None else rate_of(snapshot)
    sizes, spent = _base_sizes(latest), sum(timings.values()) + time.monotonic() - began
    dropped = None
    if replaced is not None and snapshot is not None and not stats:
        dropped = rows_of(replaced.slices, snapshot)
    return CommitResult(
        instant="",
        action=write_action(plan),
        operation=plan.operation_name,
        table=plan.storage.uri,
        write_stats=tuple(stats),
        replaced={} if replaced is None else {p: tuple(ids) for p, ids in replaced.groups.items() if ids},
        timings=dict(timings),
        warnings=warnings,
        ordering_field=plan.ordering_field,
        schema_changes=plan.schema_changes,
        lookup=looked_up,
        dropped_rows=dropped,
        dry_run=True,
        rewritten_bytes=_rewritten(stats, sizes),
        forecast=None if rate is None else forecast(stats, sizes, rate, engine.parallelism, spent),
    )


def _base_sizes(latest: LatestSlices) -> dict[tuple[str, str], int]:
    """Sizes of base files by partition and file id; -1 for unknown ones."""
    return {
        (s.partition, s.file_id): s.base_file.size
        for of in latest.slices.values()
        for s in of
        if s.base_file is not None
    }


def _rewritten(stats: Sequence[WriteStat], sizes: Mapping[tuple[str, str], int]) -> int | None:
    """Size of the base files of file groups that are rewritten; None where one is not known."""
    again = [
        sizes.get((s.partition, s.file_id), 0)
        for s in stats
        if s.prev_commit != "null" and "logVersion" not in s.extra
    ]
    return None if any(size < 0 for size in again) else sum(again)


def _planned(profile: Sequence[ProfileRow], routing: Routing, *, deletes: bool) -> list[WriteStat]:
    """A statistic for each file that would be written."""
    known = {(r.partition, r.file_id): r for r in profile if r.file_id}
    stats = []
    for bucket in routing.buckets:
        found = None if bucket.kind == CREATE else known.get((bucket.partition, bucket.file_id))
        stored, moved = (0, 0) if found is None else (found.rows, found.moved)
        stats.append(
            WriteStat(
                bucket.file_id, "", bucket.partition,
                prev_commit="null" if bucket.kind == CREATE else bucket.base_instant,
                num_inserts=bucket.expected_rows - stored,
                num_update_writes=0 if deletes else stored - moved,
                num_deletes=stored if deletes else moved,
                extra={"logVersion": "1"} if bucket.kind == APPEND else {},
            )
        )  # fmt: skip
    return stats


# --- forecast of a write -------------------------------------------------------------------------------

_COMMITS = 10  # newest ones that are looked at


@dataclass(frozen=True, slots=True)
class WriteRate:
    """Rate of writing so far.

    Attributes:
        record_bytes: of a record in a base file.
        ms_per_byte: of one worker.
    """

    record_bytes: float
    ms_per_byte: float

    @classmethod
    def of(cls, stats: Iterable[WriteStat]) -> WriteRate | None:
        """Rate of written files; None where they do not say their sizes and times."""
        rows = size = timed = took = 0
        for stat in stats:
            ms = stat.upsert_time_ms + stat.create_time_ms
            if stat.total_write_bytes <= 0:
                continue
            if "logVersion" not in stat.extra:
                rows, size = rows + max(stat.num_writes, 0), size + stat.total_write_bytes
            if ms > 0:
                timed, took = timed + stat.total_write_bytes, took + ms
        return cls(size / rows, took / timed) if rows and took else None


def rate_of(snapshot: TableSnapshot) -> WriteRate | None:
    """Rate of a table's newest commits; None where they say none.

    Raises:
        MissingFileError, CorruptFileError: a commit cannot be read.
    """
    newest = itertools.islice(reversed(snapshot.timeline.completed_writes()), _COMMITS)
    return WriteRate.of(stat for instant in newest for stat in snapshot.commits.get(instant).stats)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of what a write takes.

    Attributes:
        bytes: that are written.
        seconds: from the call to the commit, without services that follow it.
    """

    bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"about {self.bytes / 1e6:.1f} MB in {self.seconds:.1f} s"


def forecast(
    planned: Sequence[WriteStat],
    sizes: Mapping[tuple[str, str], int],
    rate: WriteRate,
    workers: int,
    spent: float,
) -> Forecast:
    """Forecast of planned files.

    Args:
        planned: a statistic for each file that would be written, without sizes.
        sizes: of the base files that are there, by partition and file id; -1 for unknown ones.
        workers: files that are written side by side.
        spent: seconds until the rows were routed, which the write takes again.
    """
    each = []
    for stat in planned:
        fresh, changed = stat.num_inserts, stat.num_update_writes + stat.num_deletes
        if "logVersion" in stat.extra:
            each.append((fresh + changed) * rate.record_bytes)
        else:
            stored = 0 if stat.prev_commit == "null" else max(0, sizes.get((stat.partition, stat.file_id), 0))
            each.append(stored + (fresh - stat.num_deletes) * rate.record_bytes)
    each = [max(0.0, size) for size in each]
    slowest = max(max(each, default=0.0), sum(each) / max(1, workers))
    return Forecast(round(sum(each)), spent + slowest * rate.ms_per_byte / 1000)
