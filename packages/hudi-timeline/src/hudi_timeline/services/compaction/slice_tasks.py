"""Compaction tasks, into base files or into one log block: a slice each, and their worker.

A task holds all that its worker may know: the same worker runs on threads and in Spark's Python workers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import ConflictingOptionError, HudiError, UnsupportedError
from hudi_format.file_names import new_stage_id
from hudi_format.file_slice.compacted_file import SliceCompaction, compact_slice
from hudi_format.file_slice.compacted_log import LogCompaction, compact_log
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.file_slice.writer import FileSpec
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.encoder import block_type
from hudi_format.merge.user_merger import MERGE, parse_merge
from hudi_format.model import FileSlice, WriteStat
from hudi_format.partition_metadata import write_if_absent
from hudi_format.schema.avro import to_avro
from hudi_format.schema.extension_types import own_types
from hudi_format.schema.meta_fields import META_COLUMNS, with_meta
from hudi_format.schema.unions import number_unions, with_unions_of
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.key_observer import BloomSettings, observer_of
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.marked_files import confirm_marked, start_marked
from hudi_timeline.file_system_view.file_slices import committed_logs, known_ranges
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import newest_active
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.reading.merged_query import merged_schema
from hudi_timeline.timeline.instant import COMPACTION, INFLIGHT, LOG_COMPACTION, instant_path


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Compaction of one file slice into a new base file.

    Attributes:
        storage: the table's.
        instant: of the compaction, which is that of the new file too.
        inflight: path of its inflight file; without it no file is begun.
        compaction: the slice, how it is merged, and the file to write.
        bloom: the filter in the footer; None for none.
        virtual: the file's meta columns are left empty.
    """

    storage: Storage
    instant: str
    inflight: str
    compaction: SliceCompaction
    bloom: BloomSettings | None = None
    virtual: bool = False

    @property
    def bytes(self) -> int:
        """Size of the slice's files, to balance tasks."""
        return self.compaction.slice.bytes

    def of_attempt(self, attempt: int) -> CompactionTask:
        """The task with another attempt in the new file's name."""
        spec = self.compaction.spec
        token = of_attempt(spec.write_token, attempt)
        return replace(self, compaction=replace(self.compaction, spec=replace(spec, write_token=token)))


@dataclass(frozen=True, slots=True)
class LogCompactionTask:
    """Log compaction of one file slice, into a new log file; attributes as of `CompactionTask`."""

    storage: Storage
    instant: str
    inflight: str
    compaction: LogCompaction

    @property
    def bytes(self) -> int:
        """Size of the slice's logs, to balance tasks."""
        return self.compaction.slice.log_bytes

    def of_attempt(self, attempt: int) -> LogCompactionTask:
        """The task with another attempt in the new file's name."""
        token = of_attempt(self.compaction.write_token, attempt)
        return replace(self, compaction=replace(self.compaction, write_token=token))


Task = CompactionTask | LogCompactionTask


def of_attempt(token: str, attempt: int) -> str:
    """A write token with another attempt."""
    partition, stage, _ = token.split("-")
    return f"{partition}-{stage}-{attempt}"


def run_task(task: Task) -> WriteStat | None:
    """Write the new file of a slice; None where there is nothing to write, and no base file.

    Raises:
        ConcurrentWriterError: the compaction is over: completed without this attempt, or taken back.
        HudiError: as `compact_slice` or `compact_log`, with table, instant and file.
    """
    return _merge_log(task) if isinstance(task, LogCompactionTask) else _merge_slice(task)


def _merge_log(task: LogCompactionTask) -> WriteStat | None:
    compaction, storage = task.compaction, task.storage
    guards: list[Callable[[], None]] = []

    def begin(name: str) -> Callable[[], None]:
        partition = compaction.slice.partition
        guards.append(start_marked(storage, task.instant, task.inflight, partition, name, markers.APPEND))
        return guards[-1]

    try:
        stat = compact_log(storage, compaction, begin=begin)
    except HudiError as e:
        raise e.at(table=storage.uri, instant=task.instant) from e.__cause__
    if stat is not None:
        confirm_marked(storage, guards[-1], stat.path)
    return stat


def _merge_slice(task: CompactionTask) -> WriteStat | None:
    compaction, spec, storage = task.compaction, task.compaction.spec, task.storage
    guard: Callable[[], None] | None = None

    def begin() -> Callable[[], None]:
        nonlocal guard
        kind = markers.MERGE
        if compaction.slice.base_file is None:
            kind = markers.CREATE
            write_if_absent(storage, spec.partition, task.instant)
        guard = start_marked(storage, task.instant, task.inflight, spec.partition, spec.name, kind)
        return guard

    try:
        stat = compact_slice(
            storage, compaction, begin=begin, observer=lambda: observer_of(task.bloom, virtual=task.virtual)
        )
    except HudiError as e:
        raise e.at(table=storage.uri, instant=task.instant) from e.__cause__
    if stat is not None and guard is not None:
        confirm_marked(storage, guard, spec.path)
    return stat


Runner = Callable[[Sequence[Task]], list[WriteStat | None]]
"""Runs tasks somewhere; the results are in any order.  An error of one of them is raised."""


def run_on_threads(tasks: Sequence[Task], threads: int | None = None) -> list[WriteStat | None]:
    """Run tasks on threads of this process, the largest first."""
    largest_first = sorted(tasks, key=lambda t: -t.bytes)
    threads = threads or len(os.sched_getaffinity(0))
    return list(side_by_side(run_task, largest_first, threads, "hudi-compaction"))


@dataclass(frozen=True, slots=True)
class _Merging:
    """What the tasks of a compaction have in common.

    Attributes:
        avro: Avro text of the files, with meta columns.
        schema: the columns that data files hold.
        merge: how a read merges a slice, with the memory of one task.
        committed: what completed instants say that they wrote, by path of the log file.
    """

    avro: str
    schema: pa.Schema
    merge: SliceMerge
    committed: Mapping[str, tuple[CommittedRange, ...]]

    def ranges(self, one: FileSlice) -> dict[str, tuple[CommittedRange, ...]]:
        """Committed ranges of a slice's log files."""
        return {f.path: self.committed[f.path] for f in one.log_files if f.path in self.committed}


def _merging(snapshot: TableSnapshot, slices: Sequence[FileSlice], config: CompactionConfig) -> _Merging:
    table = snapshot.config
    avro = stored_schema_text(snapshot)
    dropped = frozenset(table.partition_fields) if table.drop_partition_columns else frozenset()
    schema = pa.schema([f for f in snapshot.schema if f.name not in dropped])
    merge = merge_of(snapshot, config)
    given = config.memory or config.merge_memory
    limit = MemoryLimit.of(given, config.spill_path, config.spill_compress).for_stream()
    merge = replace(merge, limit=limit.shared(max(1, min(len(slices), len(os.sched_getaffinity(0))))))
    committed = known_ranges(slices, committed_logs(snapshot)[0])
    return _Merging(_of_files(avro, dropped, schema, table.name), schema, merge, committed)


def merge_of(snapshot: TableSnapshot, config: CompactionConfig) -> SliceMerge:
    """Merge of a compaction, which is the table's; errors as `make_tasks`."""
    return slice_merge(snapshot, _own_merge(snapshot, config))


def make_log_tasks(
    snapshot: TableSnapshot, instant: str, slices: Sequence[FileSlice], config: CompactionConfig
) -> list[LogCompactionTask]:
    """A task of a log compaction for each slice; errors as `make_tasks`."""
    table, shared = snapshot.config, _merging(snapshot, slices, config)
    return [
        LogCompactionTask(
            snapshot.storage,
            instant,
            instant_path(table, instant, LOG_COMPACTION, INFLIGHT),
            LogCompaction(
                slice=one,
                merge=shared.merge,
                table=merged_schema(table, snapshot.schema),
                schema=shared.schema,
                instant=instant,
                avro_schema=shared.avro,
                version=max(f.version for f in one.log_files) + 1,
                write_token=markers.append_token(number, instant, 0),
                kind=block_type(config.log_block_format),
                codec=config.parquet.codec,
                block_bytes=config.log_block_bytes,
                committed=shared.ranges(one),
            ),
        )
        for number, one in enumerate(slices)
    ]


def make_tasks(
    snapshot: TableSnapshot, instant: str, slices: Sequence[FileSlice], config: CompactionConfig
) -> list[CompactionTask]:
    """A task for each slice of a plan.

    Raises:
        UnsupportedError: the merge of the table, or its columns, cannot be executed here.
        FunctionNotAllowedError: a merge function that only the table names.
        ConflictingOptionError: another merge than the table's.
    """
    table, shared = snapshot.config, _merging(snapshot, slices, config)
    bloom = config.bloom if config.bloom_enabled else None
    virtual = not table.populate_meta_fields
    stage = new_stage_id()
    tasks = []
    for number, one in enumerate(slices):
        spec = FileSpec(
            partition=one.partition,
            file_id=one.file_id,
            write_token=f"{number}-{stage}-0",
            instant=instant,
            schema=shared.schema,
            config=config.parquet,
            sequence_prefix="",
            entries={"parquet.avro.schema": shared.avro, "writer.model.name": "avro"},
        )  # fmt: skip
        tasks.append(
            CompactionTask(
                snapshot.storage,
                instant,
                instant_path(table, instant, COMPACTION, INFLIGHT),
                SliceCompaction(
                    one, shared.merge, merged_schema(table, snapshot.schema), spec, shared.ranges(one)
                ),
                bloom,
                virtual,
            )
        )
    return tasks


def _own_merge(snapshot: TableSnapshot, config: CompactionConfig) -> str | None:
    """The merge in the options, which allows the table's function to run.

    Raises:
        ConflictingOptionError: another one than the table's: what a compaction merges stays so.
    """
    stored = snapshot.config.properties.get(MERGE)
    if config.merge and (not stored or parse_merge(stored) != parse_merge(config.merge)):
        raise ConflictingOptionError(
            f"{MERGE}={config.merge} is not how the table merges ({stored or 'its payload'})",
            table=snapshot.storage.uri,
            remedy=f"omit {MERGE}: a compaction merges as the table says.",
            option=MERGE,
        )
    return config.merge


def stored_schema_text(snapshot: TableSnapshot) -> str:
    """Avro text of the table's schema as its newest commit has it, without meta columns.

    Raises:
        UnsupportedError: columns that are read here, and not written.
    """
    newest = newest_active(snapshot)
    text = "" if newest is None else newest[1].schema_text
    text = text or snapshot.config.create_schema or to_avro(snapshot.schema, snapshot.config.name)
    found = [*number_unions(text), *own_types(text)]
    if found:
        raise UnsupportedError(
            f"cannot compact this table yet: the column {found[0]} is of a type that can be read here, but not written",
            table=snapshot.storage.uri,
            remedy="compact the table with Apache Hudi.",
            columns=found,
        )
    return text


def _of_files(text: str, dropped: frozenset[str], schema: pa.Schema, name: str) -> str:
    """Avro text of the files: the table's with meta columns, as it is but for columns that files lack."""
    made = json.loads(to_avro(with_meta(schema), name))
    stored = json.loads(text)
    fields = [f for f in stored["fields"] if f["name"] not in {*META_COLUMNS, *dropped}]
    if [f["name"] for f in fields] != schema.names:
        return with_unions_of(json.dumps(made, separators=(",", ":")), text)
    meta = [f for f in made["fields"] if f["name"] in META_COLUMNS]
    return json.dumps({**stored, "fields": [*meta, *fields]}, separators=(",", ":"))
