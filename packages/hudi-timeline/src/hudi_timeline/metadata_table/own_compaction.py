"""Compaction and cleaning of the metadata table.

    plan -> requested -> inflight -> a base file per file group -> completed

A compaction has the instant of the last delta commit with three digits behind it.  It runs only where no action of the
table that is older is pending, so that a base file holds nothing that may be rolled back.  One that died is executed
again from its plan; what was appended since lies on its slice.  The caller holds the table's lock.

Source: HoodieBackedTableMetadataWriter.compactIfNecessary and cleanIfNecessary of Apache Hudi 0.15; spec "Metadata
table", section 9.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.file_names import base_file_name, parse_base_file
from hudi_format.log.scanner import BlockScope
from hudi_format.model import FileSlice, WriteStat, join_path
from hudi_format.storage.open import flush
from hudi_index.metadata_table.encoding import base_file_of, record_schema
from hudi_index.metadata_table.index_records import plain_schema, written_schema
from hudi_index.metadata_table.keys import FILES, RECORD_INDEX
from hudi_index.metadata_table.slice_records import read_records
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.own_files import create_if_absent, create_own
from hudi_timeline.file_system_view.file_slices import committed_logs, refuse_shortened
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.metadata_table.deltacommit import create_or_same
from hudi_timeline.metadata_table.own_table import (
    CLEAN_SUFFIX,
    COMPACTION_SUFFIX,
    OwnTable,
    merged,
)
from hudi_timeline.timeline.action_metadata import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    parse_action,
    render_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.commit_metadata import COMPACT, SCHEMA_KEY, CommitMetadata, by_partition
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMMIT,
    COMPACTION,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    instant_path,
)

log = logging.getLogger("hudi")

VERSIONS_RETAINED = 2
"""Slices of a file group that a cleaning leaves, as in Apache Hudi 0.15."""
_POLICY = "KEEP_LATEST_FILE_VERSIONS"


def is_due(own: OwnTable, table: Timeline, delta_commits: int) -> bool:
    """Whether a compaction is pending or due; none is while an older action is pending."""
    if own.timeline.pending(COMPACTION):
        return True
    deltas = own.deltas_since_compaction()
    if len(deltas) < delta_commits:
        return False
    return not any(not i.completed and i.time <= deltas[-1].time for i in table.instants)


def compact(own: OwnTable, table: Timeline, delta_commits: int, partitions: Collection[str]) -> str:
    """Execute pending compactions, or a new one where it is due; returns its instant, or "".

    Args:
        partitions: of the metadata table; what lies in others is left alone.
        table: the table's own timeline, loaded under the lock.

    Raises:
        CorruptFileError, MissingFileError: what is merged cannot be read; the metadata table stays as it is.
    """
    done = ""
    for pending in own.timeline.pending(COMPACTION):
        _execute(own, pending.time, partitions)
        done = pending.time
    if not done and is_due(own, table, delta_commits):
        done = own.deltas_since_compaction()[-1].time + COMPACTION_SUFFIX
        slices = merged(own.every_slice(partitions), done)
        operations = tuple(
            CompactionOperation(
                s.partition,
                s.file_id,
                s.base_instant,
                "" if s.base_file is None else s.base_file.name,
                tuple(f.name for f in s.log_files),
            )
            for s in slices
        )
        path = instant_path(own.snapshot.config, done, COMPACTION, REQUESTED)
        create_own(own.storage, path, CompactionPlan(operations).to_bytes())
        _execute(own, done, partitions)
    return done


def _execute(own: OwnTable, instant: str, partitions: Collection[str]) -> None:
    storage, config = own.storage, own.snapshot.config
    create_if_absent(storage, instant_path(config, instant, COMPACTION, INFLIGHT), b"")
    _remove_leftovers(own, instant, partitions)
    planned = _planned(own, instant)
    slices = {g: of for g, of in own.every_slice(partitions).items() if g in planned}
    parts = merged(slices, instant)
    # What is missing would stay so.
    refuse_shortened(parts, committed_logs(own.snapshot)[0], table=storage.uri)
    made = (_merge(own, part, instant) for part in parts)
    stats = by_partition(stat for stat in made if stat is not None)
    content = CommitMetadata(
        stats, extra={SCHEMA_KEY: record_schema()}, operation=COMPACT, compacted=True
    ).to_json()
    create_or_same(storage, instant_path(config, instant, COMMIT, COMPLETED), content)
    markers.delete(storage, instant)
    log.info("%s: compaction %s is completed", storage.uri, instant)


def _planned(own: OwnTable, instant: str) -> set[tuple[str, str]]:
    """File groups of a pending compaction's plan."""
    path = instant_path(own.snapshot.config, instant, COMPACTION, REQUESTED)
    plan = parse_action(COMPACTION, REQUESTED, own.storage.read(path))
    assert isinstance(plan, CompactionPlan)
    return {(o.partition, o.file_id) for o in plan.operations}


def _remove_leftovers(own: OwnTable, instant: str, partitions: Collection[str]) -> None:
    """Remove base files of an execution that died, the names of which nothing says."""
    for partition, entries in list_partition_files(own.storage, partitions).items():
        for entry in entries:
            base = parse_base_file(partition, entry.name)
            if base is not None and base.instant == instant:
                own.storage.delete(base.path)


def _merge(own: OwnTable, part: FileSlice, instant: str) -> WriteStat | None:
    """Merge one file slice into a base file; deleted entries are left out, as nothing older is left.

    None where no record is left: the slice stays as it is.
    """
    storage, timeline = own.storage, own.timeline
    scope = BlockScope(
        visible=timeline.visible(), inflight=frozenset(i.time for i in timeline.pending_writes())
    )
    stored = read_records(storage, part, scope, plain_schema(part.partition))
    rows = _without_deleted(stored, part.partition).cast(written_schema(part.partition))
    if not rows.num_rows:
        return None
    name = base_file_name(part.file_id, "0-0-0", instant, "hfile")
    markers.create(storage, instant, part.partition, name, markers.MERGE)
    content = base_file_of(rows)
    path = join_path(part.partition, name)
    create_own(storage, path, content)
    flush(storage, [path])
    return WriteStat(
        part.file_id,
        path,
        part.partition,
        prev_commit=part.base_instant,
        num_writes=rows.num_rows,
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
        extra={
            "totalLogRecords": rows.num_rows,
            "totalLogFilesCompacted": len(part.log_files),
            "totalLogSizeCompacted": sum(f.size for f in part.log_files),
            "totalUpdatedRecordsCompacted": rows.num_rows,
        },
    )


def _without_deleted(batch: pa.RecordBatch, partition: str) -> pa.RecordBatch:
    """Records without those, or the files in them, that say of themselves that they are deleted."""
    payload = batch.column(2)
    if partition == RECORD_INDEX:
        return batch
    if partition != FILES:
        return batch.filter(pc.fill_null(pc.invert(pc.struct_field(payload, "isDeleted")), True))
    lists = [
        None if entries is None else [(n, e) for n, e in entries if not e["isDeleted"]]
        for entries in payload.to_pylist()
    ]
    field = batch.schema.field(2)
    return batch.set_column(2, field, pa.array(lists, field.type))


def clean(own: OwnTable, partitions: Collection[str]) -> int:
    """Delete old slices and the markers of finished instants; returns the number of files.

    A cleaning that died is done again under its own time.
    """
    storage, config, timeline = own.storage, own.snapshot.config, own.timeline
    pending_times = {i.time for i in timeline.instants if not i.completed}
    for marked in markers.list_instants(storage):
        if marked not in pending_times:
            markers.delete(storage, marked)
    spent: dict[str, tuple[str, ...]] = {}
    for (partition, _), slices in own.every_slice(partitions).items():
        with_base = [s for s in slices if s.base_file is not None]
        if len(with_base) <= VERSIONS_RETAINED:
            continue
        first_kept = with_base[-VERSIONS_RETAINED].base_instant
        for s in slices:
            if s.base_instant < first_kept:
                bases = (s.base_file.name,) if s.base_file else ()
                spent[partition] = (*spent.get(partition, ()), *(f.name for f in s.log_files), *bases)
    pending = timeline.pending(CLEAN)
    if not spent and not pending:
        return 0
    time = pending[0].time if pending else own.last_compaction.removesuffix(COMPACTION_SUFFIX) + CLEAN_SUFFIX
    if any(i.completed for i in timeline.of(CLEAN) if i.time == time):
        return 0
    plan = CleanPlan(_POLICY, last_commit=own.last_compaction, files=spent)
    for state in (REQUESTED, INFLIGHT):
        create_if_absent(storage, instant_path(config, time, CLEAN, state), plan.to_bytes(storage.uri))
    for partition, names in spent.items():
        for name in names:
            storage.delete(join_path(partition, name))
    _complete_clean(own, time, spent)
    return sum(map(len, spent.values()))


def _complete_clean(own: OwnTable, time: str, spent: Mapping[str, tuple[str, ...]]) -> None:
    partitions = {p: CleanedPartition(p, _POLICY, names, names) for p, names in spent.items()}
    count = sum(map(len, spent.values()))
    metadata = CleanMetadata(time, 0, count, "", own.last_compaction, partitions, version=2)
    path = instant_path(own.snapshot.config, time, CLEAN, COMPLETED)
    create_if_absent(own.storage, path, render_action(metadata))
