"""Delta commits of the metadata table, and their rollback.

    requested -> inflight -> a log file per touched file group -> completed

Each step may be the last one of a process.  What a delta commit says counts once the instant of the same time is
completed on the table's own timeline, whoever wrote it; one whose instant is rolled back is taken back by a command
block.  A delta commit that is made again replaces nothing: its blocks say the same twice.  The caller holds the table's
lock.

Source: HoodieBackedTableMetadataWriter and SparkHoodieBackedTableMetadataWriter of Apache Hudi 0.15; spec "Metadata
table", sections 7 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError, CorruptFileError
from hudi_format.file_names import parse_log_file
from hudi_format.log.writer import LogWriter, WrittenLog
from hudi_format.model import FileSlice, WriteStat
from hudi_format.storage.open import flush
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.metadata_table.encoding import FOR_SHORT, hfile_of, record_schema, stored_schema
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.concurrency.own_files import create_if_absent, create_own
from hudi_timeline.metadata_table.own_table import ROLLBACK_SUFFIX, OwnTable
from hudi_timeline.options.transaction_options import METADATA_ENABLE
from hudi_timeline.timeline.action_metadata import (
    InstantName,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
    parse_action,
    render_action,
)
from hudi_timeline.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, by_partition
from hudi_timeline.timeline.instant import (
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REQUESTED,
    ROLLBACK,
    Instant,
    instant_path,
)

THREADS = 8
OPERATION = "UPSERT_PREPPED"
_COMMAND_TOKEN = "1-0-1"


@dataclass(frozen=True, slots=True, eq=False)
class GroupChange:
    """Records to put into one file group.

    Attributes:
        records: with a column `key`, each key once.
        deletes: keys to delete.
    """

    records: pa.RecordBatch | None = None
    deletes: tuple[str, ...] = ()


Changes = Mapping[str, Mapping[str, GroupChange]]
"""Changes by partition of the metadata table and file id."""


def apply(
    own: OwnTable, instant: str, changes: Changes, slices: Mapping[tuple[str, str], FileSlice] | None = None
) -> None:
    """Make a delta commit; one of that time that is there already is made again.

    Args:
        instant: of the table's action that it mirrors.
        slices: of the partitions, where they were looked at; as of `OwnTable.slices`.

    Raises:
        CorruptFileError: the metadata table lacks one of the file groups; nothing is written.
        StorageError: it is not completed; nothing of it counts.
        LockError, ConcurrentWriterError: another process has made it meanwhile.
    """
    storage, config = own.storage, own.snapshot.config
    slices = own.slices(changes) if slices is None else slices
    groups = [(p, file_id) for p, of in changes.items() for file_id in of]
    # Encoded before anything is written, so that a record that does not fit leaves nothing.
    contents = list(side_by_side(lambda g: _content(changes[g[0]][g[1]]), groups, THREADS))
    lacking = next((g for g in groups if g not in slices), None)
    if lacking is not None:
        raise CorruptFileError(
            f"the metadata table has no file group {lacking[1]} in its partition {lacking[0]}",
            table=storage.uri,
            instant=instant,
            remedy=f"write with {METADATA_ENABLE}=false, which removes it; it can be made anew afterwards.",
        )
    completed = instant_path(config, instant, DELTA_COMMIT, COMPLETED)
    if _states(own, instant).get(COMPLETED) is not None:
        verify_held()
        storage.delete(completed)
    create_if_absent(storage, instant_path(config, instant, DELTA_COMMIT, REQUESTED), b"")
    profile = {p: _profile(p, of, slices) for p, of in changes.items()}
    create_if_absent(
        storage,
        instant_path(config, instant, DELTA_COMMIT, INFLIGHT),
        CommitMetadata(profile, operation=OPERATION).to_json(),
    )
    stats = [
        stat
        for n, (partition, file_id) in enumerate(groups)
        for stat in _append(
            storage, instant, n, slices[partition, file_id], changes[partition][file_id], contents[n]
        )
    ]
    flush(storage, [s.path for s in stats])
    # Once the lock is another's, what is mirrored here may have been rolled back: its files would be listed for ever.
    verify_held()
    complete(own, instant, stats, OPERATION)
    markers.delete(storage, instant)


def complete(
    own: OwnTable, instant: str, stats: Sequence[WriteStat], operation: str, *, again: bool = False
) -> None:
    """Complete a delta commit with these files.

    Args:
        again: in the place of what it was completed with.
    """
    content = CommitMetadata(
        by_partition(stats), extra={SCHEMA_KEY: record_schema()}, operation=operation
    ).to_json()
    path = instant_path(own.snapshot.config, instant, DELTA_COMMIT, COMPLETED)
    if again:
        own.storage.publish(path, content)
        flush(own.storage, [path], written=False)
    else:
        create_or_same(own.storage, path, content)


def create_or_same(storage: Storage, path: str, content: bytes) -> None:
    """Create a file, also where the store reports a failure after it has done the work.

    Raises:
        LockError, ConcurrentWriterError: another process has made it meanwhile.
    """
    try:
        create_own(storage, path, content)
    except FileExistsError:
        verify_held()
        raise ConcurrentWriterError(
            "another process has made the same in the metadata table", table=storage.uri, file=path,
            remedy="run it again; configure the same lock provider for all processes.",
        ) from None  # fmt: skip
    flush(storage, [path], written=False)


def _states(own: OwnTable, instant: str) -> dict[str, Instant]:
    return {f.state: f for f in own.timeline.files_of({(instant, DELTA_COMMIT)})}


def _profile(
    partition: str, groups: Mapping[str, GroupChange], slices: Mapping[tuple[str, str], FileSlice]
) -> tuple[WriteStat, ...]:
    """Planned updates as of Apache Hudi's inflight files, which begin with an empty one."""
    planned = [WriteStat("", "", partition)]
    for file_id, change in groups.items():
        rows = 0 if change.records is None else change.records.num_rows
        base = slices[partition, file_id].base_instant
        planned.append(
            WriteStat(file_id, "", partition, prev_commit=base, num_update_writes=rows + len(change.deletes))
        )
    return tuple(planned)


def _content(change: GroupChange) -> bytes | None:
    """HFile of a file group's records; None for none."""
    records = change.records
    return hfile_of(records, level=FOR_SHORT) if records is not None and records.num_rows else None


def _append(
    storage: Storage, instant: str, number: int, target: FileSlice, change: GroupChange, content: bytes | None
) -> list[WriteStat]:
    """Append the blocks of one file group; returns a statistic per log file.

    Args:
        content: as of `_content`.
    """
    rows = 0 if change.records is None else change.records.num_rows
    with _writer(storage, instant, target, markers.append_token(number, instant, 0)) as writer:
        if content is not None:
            writer.append_hfile(content)
        if change.deletes:
            partitions = pa.repeat(target.partition, len(change.deletes))
            writer.append_deletes(pa.array(change.deletes, pa.string()), partitions)
        written = writer.close()
    earlier = [f.name for f in reversed(target.log_files)]
    return [_stat(target, earlier, w, rows, len(change.deletes)) for w in written]


def _writer(
    storage: Storage, instant: str, target: FileSlice, token: str, *, schema: bool = True
) -> LogWriter:
    def announce(name: str) -> None:
        markers.create(storage, instant, target.partition, name, markers.APPEND)

    return LogWriter(
        storage,
        target.partition,
        target.file_id,
        target.base_instant,
        instant=instant,
        schema=stored_schema() if schema else "",
        write_token=token,
        version=max((f.version for f in target.log_files), default=0) + 1,
        announce=announce,
    )


def _stat(target: FileSlice, earlier: Sequence[str], log: WrittenLog, rows: int, deletes: int) -> WriteStat:
    base = "" if target.base_file is None else target.base_file.name
    return log.stat(target.base_instant, base, earlier, rows=rows, deletes=deletes)


# --- rollback ------------------------------------------------------------------------------------------


def roll_back(own: OwnTable, target: str, at: str) -> None:
    """Take a delta commit back, in whatever state; from any earlier point of failure.

    Its completed file goes first, then command blocks follow its blocks, then its other files go.

    Args:
        at: the instant of the table's own rollback.

    Raises:
        CorruptFileError: the delta commit cannot be read.
        LockError: the lock was lost on the way.
    """
    storage, config = own.storage, own.snapshot.config
    time = at + ROLLBACK_SUFFIX
    states = _states(own, target)
    if not states:
        return
    # A run that died may have taken the delta commit's own words away; its plan has them.
    requested = instant_path(config, time, ROLLBACK, REQUESTED)
    touched = _planned(storage, requested) or _touched(own, target, states.get(COMPLETED))
    slices = [s for of in own.every_slice({p for p, _, _ in touched}).values() for s in of]
    found = [s for s in slices if (s.partition, s.file_id, s.base_instant) in touched]
    requests = tuple(
        RollbackRequest(s.partition, s.file_id, s.base_instant, log_blocks=dict.fromkeys(touched[key], 1))
        for s in found
        if (key := (s.partition, s.file_id, s.base_instant))
    )
    name = InstantName(target, DELTA_COMMIT)
    create_if_absent(storage, requested, render_action(RollbackPlan(name, requests)))
    create_if_absent(storage, instant_path(config, time, ROLLBACK, INFLIGHT), b"")
    # Once the lock is another's, the target may have been run again at its instant, and be completed.
    verify_held()
    if COMPLETED in states:
        storage.delete(states[COMPLETED].path)
        flush(storage, [states[COMPLETED].path], written=False)
    partitions: dict[str, dict[str, int]] = {}
    for part in found:
        verify_held()
        with _writer(storage, time, part, _COMMAND_TOKEN, schema=False) as writer:
            writer.append_rollback(target)
            written = writer.close()
        flush(storage, [w.file.path for w in written])
        partitions.setdefault(part.partition, {}).update({w.file.path: w.file.size for w in written})
    verify_held()
    for state in (INFLIGHT, REQUESTED):
        if state in states:
            storage.delete(states[state].path)
    rolled = {p: RolledBackPartition(p, command_logs=logs) for p, logs in partitions.items()}
    metadata = RollbackMetadata(time, 0, 0, (target,), rolled, (name,))
    completed = instant_path(config, time, ROLLBACK, COMPLETED)
    create_if_absent(storage, completed, render_action(metadata))
    flush(storage, [completed], written=False)
    markers.delete(storage, target)
    markers.delete(storage, time)


def _planned(storage: Storage, path: str) -> dict[tuple[str, str, str], list[str]]:
    """Log files in the plan of an earlier run, as of `_touched`."""
    try:
        plan = parse_action(ROLLBACK, REQUESTED, storage.read(path))
    except (FileNotFoundError, CorruptFileError):
        return {}
    assert isinstance(plan, RollbackPlan)
    return {(r.partition, r.file_id, r.base_instant): list(r.log_blocks) for r in plan.requests}


def _touched(own: OwnTable, target: str, completed: Instant | None) -> dict[tuple[str, str, str], list[str]]:
    """Log files that a delta commit wrote or announced, by partition, file id and the slice's instant."""
    places = [(m.partition, m.file_name) for m in markers.list_markers(own.storage, target)]
    if completed is not None:
        for stat in own.snapshot.commits.get(completed).stats:
            partition, _, name = stat.path.rpartition("/")
            places.append((partition, name))
    found: dict[tuple[str, str, str], list[str]] = {}
    for partition, name in places:
        log = parse_log_file(partition, name)
        if log is not None:
            found.setdefault((partition, log.file_id, log.instant), []).append(name)
    return found
