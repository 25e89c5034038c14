"""Table inspection as Arrow tables: commits, timeline, files, slices, partitions, stats.

Every call looks at the table anew.  Times of instants are text, sizes are bytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from hudi_format.arrow.arrays import column_of, flags, integers, table_of, texts
from hudi_format.errors import HudiError, InstantNotFoundError, UnsupportedError
from hudi_format.model import BaseFile, FileSlice, LogFile, WriteStat
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_TYPE, MAX_KEY, MIN_KEY, read_footer
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.base_files import base_files
from hudi_timeline.file_system_view.file_slices import every_slice, newest_slices
from hudi_timeline.file_system_view.outlived_snapshot import looks_again
from hudi_timeline.file_system_view.partition_values import partition_columns, path_values
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, load_snapshot, open_snapshot
from hudi_timeline.reading.stability import open_writes
from hudi_timeline.reading.time_travel import earliest_retained, first_open_write, kept_commits
from hudi_timeline.timeline.action_metadata import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    read_action,
)
from hudi_timeline.timeline.active_timeline import Timeline, completed_at, completion_ms
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import (
    COMPLETED,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    WRITE_ACTIONS,
    Instant,
    zone_of,
)

BASE, LOG = "base", "log"

COMMITS = pa.schema(
    [
        ("instant", pa.string()), ("action", pa.string()), ("state", pa.string()), ("operation", pa.string()),
        ("partitions", pa.int64()), ("files_added", pa.int64()), ("files_updated", pa.int64()),
        ("file_groups_replaced", pa.int64()), ("rows_written", pa.int64()), ("rows_inserted", pa.int64()),
        ("rows_updated", pa.int64()), ("rows_deleted", pa.int64()), ("bytes_written", pa.int64()),
        ("write_errors", pa.int64()), ("completed_at", pa.timestamp("ms", "UTC")), ("readable", pa.bool_()),
        ("extra", pa.map_(pa.string(), pa.string())),
    ]
)  # fmt: skip
TIMELINE = pa.schema(
    [
        ("instant", pa.string()), ("action", pa.string()), ("state", pa.string()), ("file", pa.string()),
        ("modified_at", pa.timestamp("ms", "UTC")), ("size", pa.int64()), ("completion", pa.string()),
    ]
)  # fmt: skip
FILES = pa.schema(
    [
        ("path", pa.string()), ("partition", pa.string()), ("file_id", pa.string()), ("instant", pa.string()),
        ("write_token", pa.string()), ("size", pa.int64()), ("kind", pa.string()),
    ]
)  # fmt: skip
FILE_SLICES = pa.schema(
    [
        ("partition", pa.string()), ("file_id", pa.string()), ("base_instant", pa.string()),
        ("base_file", pa.string()), ("size", pa.int64()), ("latest", pa.bool_()), ("completed", pa.bool_()),
        ("log_files", pa.int64()), ("log_bytes", pa.int64()),
    ]
)  # fmt: skip
OPEN_WRITES = pa.schema(
    [
        ("instant", pa.string()), ("action", pa.string()), ("state", pa.string()), ("alive", pa.bool_()),
        ("heartbeat_age_s", pa.float64()), ("owner", pa.string()), ("why", pa.string()),
    ]
)  # fmt: skip
COMMIT_PARTITIONS = pa.schema(
    [
        ("partition", pa.string()), ("action", pa.string()), ("files_added", pa.int64()),
        ("files_updated", pa.int64()), ("rows_inserted", pa.int64()), ("rows_updated", pa.int64()),
        ("rows_written", pa.int64()), ("bytes_written", pa.int64()), ("write_errors", pa.int64()),
    ]
)  # fmt: skip
COMMIT_FILES = pa.schema(
    [
        ("partition", pa.string()), ("action", pa.string()), ("file_id", pa.string()), ("path", pa.string()),
        ("previous_commit", pa.string()), ("rows_updated", pa.int64()), ("rows_written", pa.int64()),
        ("bytes_written", pa.int64()), ("write_errors", pa.int64()), ("file_size", pa.int64()),
    ]
)  # fmt: skip
ROLLBACKS = pa.schema(
    [
        ("instant", pa.string()), ("action", pa.string()), ("state", pa.string()),
        ("undone", pa.list_(pa.string())), ("files_deleted", pa.int64()), ("command_blocks", pa.int64()),
        ("took_ms", pa.int64()),
    ]
)  # fmt: skip
STATS = pa.schema(
    [
        ("path", pa.string()), ("partition", pa.string()), ("rows", pa.int64()), ("row_groups", pa.int64()),
        ("size", pa.int64()), ("min_key", pa.string()), ("max_key", pa.string()),
        ("bloom_filter", pa.string()),
    ]
)  # fmt: skip


def _total(numbers: Iterable[int]) -> int:
    """Sum with Java's 64-bit overflow."""
    return (sum(numbers) + (1 << 63)) % (1 << 64) - (1 << 63)


def _counts(stats: Sequence[WriteStat]) -> dict[str, int]:
    """Sums of write statistics, in the columns of COMMITS and COMMIT_PARTITIONS."""
    return {
        "files_added": sum(s.prev_commit == "null" for s in stats),
        "files_updated": sum(s.prev_commit != "null" for s in stats),
        "rows_written": _total(s.num_writes for s in stats),
        "rows_inserted": _total(s.num_inserts for s in stats),
        "rows_updated": _total(s.num_update_writes for s in stats),
        "bytes_written": _total(s.total_write_bytes for s in stats),
        "write_errors": _total(s.total_write_errors for s in stats),
    }


class Inspector:
    """Inspection of one table, as `HudiTable.inspect`."""

    def __init__(self, storage: Storage, commits: CommitCache | None = None) -> None:
        self._storage = storage
        self._commits = commits or CommitCache(storage)

    def __repr__(self) -> str:
        views = [n for n, f in vars(Inspector).items() if callable(f) and not n.startswith("_")]
        return f"Inspector of {self._storage.uri}: {'(), '.join(views)}()"

    def _snapshot(self) -> TableSnapshot:
        return open_snapshot(self._storage, commits=self._commits)

    def _now(self) -> TableSnapshot:
        """Snapshot without a feature check."""
        return load_snapshot(self._storage, commits=self._commits)

    def open_writes(self) -> pa.Table:
        """Pending writes with their writers, oldest first; a stable reader waits for these."""
        found = open_writes(self._storage, self._now().timeline)
        return table_of([asdict(w) for w in found], OPEN_WRITES)

    def commits(self) -> pa.Table:
        """Writes of the active timeline, oldest first, pending ones included (columns: COMMITS).

        A pending write counts nothing.  `readable` says whether the table can be read as of it: its files are there,
        and no earlier write is pending; null where the last cleaning cannot be read.  `extra` is its extra metadata
        without the schema.
        """
        rows = []
        snapshot = self._snapshot()
        readable = self._readable(snapshot.timeline)
        zone = zone_of(snapshot.config.timezone)
        for instant in snapshot.timeline.instants:
            if instant.action not in WRITE_ACTIONS:
                continue
            # A requested replacecommit is an Avro plan; only completed files hold the write's metadata.
            metadata = self._commits.get(instant) if instant.completed else CommitMetadata()
            stats = metadata.stats
            rows.append(
                {
                    "instant": instant.time,
                    "action": instant.action,
                    "state": instant.state,
                    "operation": metadata.operation if instant.completed else None,
                    "partitions": len({s.partition for s in stats} | set(metadata.replaced)),
                    "file_groups_replaced": sum(len(ids) for ids in metadata.replaced.values()),
                    "rows_deleted": _total(s.num_deletes for s in stats),
                    **_counts(stats),
                    "completed_at": completion_ms(instant, zone) if instant.completed else None,
                    "readable": readable(instant),
                    "extra": [(k, v) for k, v in metadata.extra.items() if k != "schema"],
                }
            )
        return table_of(rows, COMMITS)

    def _readable(self, timeline: Timeline) -> Callable[[Instant], bool | None]:
        """Whether the table can be read as of a write of the timeline."""
        pending = first_open_write(self._storage, timeline)
        try:
            oldest: str | None = earliest_retained(self._storage, timeline)
        except HudiError:  # of a clean that `verify` tells of
            oldest = None

        kept = kept_commits(timeline)

        def readable(instant: Instant) -> bool | None:
            if not instant.completed or (pending is not None and instant.time >= pending.time):
                return False
            if instant.time in kept:
                return True
            return None if oldest is None else instant.time >= oldest

        return readable

    def history(self, limit: int | None = None) -> pa.Table:
        """Completed writes of the active timeline, newest first (columns: COMMITS)."""
        if limit is not None and operator.index(limit) < 0:
            raise ValueError(f"the number of commits must not be below 0, and is {limit}")
        rows = self.commits()
        rows = rows.filter(flags([s == COMPLETED for s in rows.column("state").to_pylist()]))
        return rows.take(integers(range(rows.num_rows - 1, -1, -1))).slice(0, limit)

    def newest_writes(self, most: int = 5) -> pa.Table:
        """The newest completed writes in few columns, for a look."""
        names = ["instant", "operation", "rows_inserted", "rows_updated", "rows_deleted", "bytes_written"]
        return self.history(most).select(names)

    def rollbacks(self) -> pa.Table:
        """Rollbacks and restores, oldest first, with their effects (columns: ROLLBACKS).

        What a pending one does to files is not known; of a plan that was never written whole nothing is.
        """
        timeline = self._now().timeline
        rows = [self._rollback(i, timeline) for i in timeline.instants if i.action in (ROLLBACK, RESTORE)]
        return table_of(rows, ROLLBACKS)

    def _rollback(self, instant: Instant, timeline: Timeline) -> dict[str, object]:
        row: dict[str, object] = {"instant": instant.time, "action": instant.action, "state": instant.state}
        if not instant.completed:
            # The plan stands in the requested file, also of an inflight one.
            plans = [
                f for f in timeline.files
                if (f.time, f.action, f.state) == (instant.time, instant.action, REQUESTED)
            ]  # fmt: skip
            plan = read_action(self._storage, plans[0]) if plans else None
            names = plan.instants if isinstance(plan, RestorePlan) else ()
            if isinstance(plan, RollbackPlan) and plan.target is not None:
                names = (plan.target,)
            return {**row, "undone": [n.time for n in names]}
        done = read_action(self._storage, instant)
        if isinstance(done, RestoreMetadata):
            parts = [r for of in done.rollbacks.values() for r in of]
        else:
            assert isinstance(done, RollbackMetadata)
            parts = [done]
        row |= {"undone": list(done.commits), "took_ms": done.took_ms}
        row["files_deleted"] = sum(r.files_deleted for r in parts)
        row["command_blocks"] = sum(len(p.command_logs) for r in parts for p in r.partitions.values())
        return row

    def commit_partitions(self, instant: str) -> pa.Table:
        """A write's statistics by partition, as hudi-cli's `commit showpartitions`.

        Columns: COMMIT_PARTITIONS.

        Raises:
            InstantNotFoundError: there is no such write on the active timeline.
        """
        action, metadata = self._commit(instant)
        rows = [
            {
                "partition": partition,
                "action": action,
                **_counts(stats),
            }
            for partition, stats in sorted(metadata.partition_to_stats.items())
        ]
        return table_of(rows, COMMIT_PARTITIONS)

    def commit_files(self, instant: str) -> pa.Table:
        """Files of a completed write, as hudi-cli's `commit showfiles` (columns: COMMIT_FILES).

        Raises:
            InstantNotFoundError: there is no such write on the active timeline.
        """
        action, metadata = self._commit(instant)
        rows = [
            {
                "partition": partition,
                "action": action,
                "file_id": s.file_id,
                "path": s.path,
                "previous_commit": None if s.prev_commit == "null" else s.prev_commit,
                "rows_updated": s.num_update_writes,
                "rows_written": s.num_writes,
                "bytes_written": s.total_write_bytes,
                "write_errors": s.total_write_errors,
                "file_size": s.file_size_in_bytes,
            }
            for partition, stats in sorted(metadata.partition_to_stats.items())
            for s in stats
        ]
        return table_of(rows, COMMIT_FILES)

    @looks_again
    def average_record_size(self, instant: str | None = None) -> float | None:
        """Average bytes per row in a write; None where unknown.

        Args:
            instant: of a completed write; the newest that wrote rows if not given.  Overheads of a file weigh little
                where it has many rows only.

        Raises:
            InstantNotFoundError: there is no such write on the active timeline.
        """
        if instant is not None:
            return _bytes_per_row(self._commit(instant)[1])
        for found in reversed(self._now().timeline.completed_writes()):
            size = _bytes_per_row(self._commits.get(found))
            if size is not None:
                return size
        return None

    def _commit(self, instant: str) -> tuple[str, CommitMetadata]:
        timeline = self._now().timeline
        found = next((i for i in timeline.completed_writes() if i.time == instant), None)
        if found is None:
            raise InstantNotFoundError(
                f"the active timeline has no completed write {instant}",
                table=self._storage.uri,
                instant=instant,
                remedy="`hudi commits PATH` lists them.",
            )
        return found.action, self._commits.get(found)

    def timeline(self) -> pa.Table:
        """Actions of the active timeline in their highest state (columns: TIMELINE).

        `completion` is the time at which an instant was completed, as bounds of incremental reads by completion are
        given; null of a pending one.
        """
        snapshot = self._snapshot()
        zone = zone_of(snapshot.config.timezone)
        rows = [
            {
                "instant": i.time,
                "action": i.action,
                "state": i.state,
                "file": i.file_name,
                "modified_at": i.mtime_ms,
                "size": i.size,
                "completion": completed_at(i, zone) if i.completed else None,
            }
            for i in snapshot.timeline.instants
        ]
        return table_of(rows, TIMELINE)

    @looks_again
    def files(self) -> pa.Table:
        """Files of the newest snapshot, `kind` "base" or "log" (columns: FILES)."""
        rows = [
            (f.path, f.partition, f.file_id, f.instant, f.write_token, f.size, _kind(f))
            for s in newest_slices(self._snapshot())
            for f in _files_of(s)
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(FILES)
        return pa.table([column_of(c, t) for c, t in zip(columns, FILES.types, strict=True)], schema=FILES)

    @looks_again
    def file_slices(self) -> pa.Table:
        """All file slices in the table's folders, of every instant (columns: FILE_SLICES).

        `base_file` and `size` (its bytes) are null of a slice that has log files only.  `latest` is the newest of its
        group; where a compaction is pending that is the slice before it, and its logs are those of both.
        """
        snapshot = self._snapshot()
        listing = snapshot.listing().files
        newest = {(s.partition, s.file_id): s for s in newest_slices(snapshot, listing)}
        visible = snapshot.visible()
        rows = []
        for found in every_slice(snapshot, listing):
            last, base = newest.get((found.partition, found.file_id)), found.base_file
            # Another file of the same instant is a leftover of a task that was tried twice.
            latest = (
                last is not None
                and last.base_instant == found.base_instant
                and (base is None or base == last.base_file)
            )
            rows.append(
                {
                    "partition": found.partition,
                    "file_id": found.file_id,
                    "base_instant": found.base_instant,
                    "base_file": None if base is None else base.name,
                    "size": None if base is None else base.size,
                    "latest": latest,
                    "completed": found.base_instant in visible,
                    "log_files": len(found.log_files),
                    "log_bytes": sum(f.size for f in found.log_files),
                }
            )
        return table_of(rows, FILE_SLICES)

    @looks_again
    def buckets(self) -> pa.Table:
        """Buckets of the table's bucket index: partition, number, file group and size.

        Raises:
            UnsupportedError: a table without a bucket index.
        """
        from hudi_timeline.file_system_view.bucket_groups import bucket_table

        return bucket_table(self._snapshot())

    @looks_again
    def partitions(self) -> pa.Table:
        """Partitions: path, partition values, files, bytes, newest instant.

        Log files count as files of the newest state too.  Values that paths do not say are null; those of a column with
        the name of another fact are in `<name>_value`.
        """
        snapshot = self._snapshot()
        listing = snapshot.listing().files
        paths = sorted(listing)
        columns = partition_columns(snapshot.config, snapshot.schema, from_path=True)
        table = path_values(paths, columns, uri=self._storage.uri).table
        own = {"partition", "files", "bytes", "newest_instant"}
        values = [f"{n}_value" if n in own else n for n in table.column_names[1:]]
        table = table.rename_columns(["partition", *values])
        facts: Mapping[str, list[tuple[int, str]]] = {p: [] for p in paths}
        for found in newest_slices(snapshot, listing):
            facts[found.partition] += [(f.size, f.instant) for f in _files_of(found)]
        of = [facts[p] for p in paths]
        table = table.append_column("files", integers([len(f) for f in of]))
        table = table.append_column("bytes", integers([sum(s for s, _ in f) for f in of]))
        newest = [max((i for _, i in f), default=None) for f in of]
        return table.append_column("newest_instant", texts(newest))

    @looks_again
    def stats(self, partitions: Iterable[str] | None = None) -> pa.Table:
        """Footer statistics of the newest base files (columns: STATS).

        Rows are those of the files: what logs say about them is not merged.
        """
        snapshot = self._snapshot()
        files = base_files(snapshot.files(partitions))
        other = next((b for b in files if not b.path.endswith(".parquet")), None)
        if other is not None:
            raise UnsupportedError(
                "footers of base files that are not Parquet are not read",
                table=self._storage.uri, file=other.path,
                remedy="inspect.files() names the files and their sizes; read().count() counts rows.",
            )  # fmt: skip
        with snapshot.of_its_state():
            footers = [*on_threads(self._storage, lambda b: read_footer(self._storage, b.path), files)]
        rows = [
            {
                "path": b.path,
                "partition": b.partition,
                "rows": f.num_rows,
                "row_groups": f.num_row_groups,
                "size": b.size,
                "min_key": f.entries.get(MIN_KEY),
                "max_key": f.entries.get(MAX_KEY),
                "bloom_filter": f.entries.get(BLOOM_TYPE, "SIMPLE") if BLOOM_FILTER in f.entries else None,
            }
            for b, f in zip(files, footers, strict=True)
        ]
        return table_of(rows, STATS)


def _bytes_per_row(metadata: CommitMetadata) -> float | None:
    """Average record size as Apache Hudi computes it (AverageRecordSizeUtils)."""
    rows = sum(s.num_writes for s in metadata.stats)
    size = sum(s.total_write_bytes for s in metadata.stats)
    return size / rows if rows > 0 and size > 0 else None


def _files_of(part: FileSlice) -> list[BaseFile | LogFile]:
    return [*([] if part.base_file is None else [part.base_file]), *part.log_files]


def _kind(file: BaseFile | LogFile) -> str:
    return BASE if isinstance(file, BaseFile) else LOG
