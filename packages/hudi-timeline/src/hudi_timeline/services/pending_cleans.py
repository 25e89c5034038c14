"""The newest completed cleaning; pending cleanings, and taking them back.

A restore, a rollback and a savepoint need files that a cleaning may be deleting.  They hold the table's lock, and so
does a cleaning of ours while it deletes; before each stretch it looks whether it is still on the timeline.  So a
cleaning of ours can be taken back between two stretches.  Apache Hudi's cleaner looks at nothing once it has begun:
what it is to delete cannot be kept.

Source: SavepointActionExecutor of Apache Hudi 0.15, which refuses commits that a pending cleaning does not retain.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from hudi_format.errors import (
    ConcurrentWriterError,
    CorruptFileError,
    HudiError,
    MissingFileError,
    PartitionPathError,
)
from hudi_format.file_names import parse_data_file
from hudi_format.keygen.partition_path import check_safe
from hudi_format.model import FileSlice, join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.metadata_table.mirror import mirror_clean
from hudi_timeline.timeline.action_metadata import (
    SAVEPOINTED,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    parse_action,
    read_action,
    render_action,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import CLEAN, COMPLETED, INFLIGHT, REQUESTED, Instant

log = logging.getLogger("hudi")

DEAD_AFTER_S = 24 * 3600
"""Age at which the process of another program that began a cleaning counts as dead."""


def last_clean(storage: Storage, timeline: Timeline) -> CleanMetadata | None:
    """Metadata of the newest completed cleaning of the active timeline, or None.

    Raises:
        CorruptFileError: its metadata cannot be read.
    """
    done = timeline.completed(CLEAN)
    if not done:
        return None
    newest = done[-1]
    if newest.size == 0:  # Apache Hudi's readers take an empty file for a cleaning that says nothing
        return CleanMetadata(newest.time)
    try:
        did = read_action(storage, newest)
    except MissingFileError:
        return CleanMetadata(newest.time)
    assert isinstance(did, CleanMetadata)
    return replace(did, start=newest.time)


def pending_plan(storage: Storage, clean: Instant) -> CleanPlan | None:
    """Plan of a pending cleaning; None where all of its files are empty.

    Source: CleanActionExecutor of Apache Hudi 0.15, which takes the plan out of the file of the newest state.

    Raises:
        CorruptFileError: a file that is not empty, and no file with a plan.
    """
    problem: HudiError | None = None
    for state in (REQUESTED, INFLIGHT):
        path = clean.path_in(state)
        try:
            data = storage.read(path)
            plan = parse_action(CLEAN, state, data)
            assert isinstance(plan, CleanPlan)
            check_plan(plan, clean.time)
        except FileNotFoundError:
            continue
        except CorruptFileError as e:
            if data:
                problem = problem or e.at(table=storage.uri, instant=clean.time, file=path)
            continue
        if state == INFLIGHT:  # made whole again, so that nothing takes the instant for damaged later
            storage.publish(clean.path_in(REQUESTED), data)
        return plan
    if problem is not None:
        raise problem
    return None


def check_plan(plan: CleanPlan, instant: str) -> None:
    """Raise CorruptFileError where a plan names what is not below the table, or no data file."""
    if plan.sources:
        raise _unsafe(f"the source file {plan.sources[0]} of a bootstrap", instant)
    for partition in (*plan.files, *plan.partitions):
        try:
            check_safe(partition)
        except PartitionPathError:
            raise _unsafe(f"the partition {partition!r}, which is not below the table", instant) from None
    if "" in plan.partitions:
        raise _unsafe("the table's own folder", instant)
    for partition, names in plan.files.items():
        for name in names:
            if parse_data_file(partition, name) is None:
                raise _unsafe(f"{name!r}, which is not a data file", instant)


def _unsafe(what: str, instant: str) -> CorruptFileError:
    return CorruptFileError(
        f"a plan of the cleaner names {what}",
        instant=instant,
        remedy="delete the cleaning's requested and inflight files; it is then planned anew.",
    )


def is_pending(timeline: Timeline, instant: str) -> bool:
    """Whether a cleaning is pending on the timeline."""
    return any(i.time == instant for i in timeline.pending(CLEAN))


def begun_elsewhere(storage: Storage, clean: Instant, now: float) -> bool:
    """Whether another program has begun a pending cleaning, and may be at it.

    Apache Hudi's has no heartbeat.  Both would complete it, and the one that comes second fails, with its write.  One
    of ours looks at the timeline, so that any process may go on with it.

    Args:
        now: seconds since 1970.
    """
    if clean.state != INFLIGHT or now - clean.mtime_ms / 1000 > DEAD_AFTER_S:
        return False
    if storage.info(clean.path_in(REQUESTED)) is None:
        return False  # without its plan nobody can go on with it
    begun = _begun(storage, clean)
    # An empty file may be anyone's.
    return begun is not None and bool(begun) and not begun.guarded


def planned_names(storage: Storage, timeline: Timeline) -> dict[str, set[str]]:
    """File names in pending cleanings by partition, under the table's lock."""
    out: dict[str, set[str]] = {}
    for clean in timeline.pending(CLEAN):
        plan = pending_plan(storage, clean)
        for partition, names in ({} if plan is None else plan.files).items():
            out.setdefault(partition, set()).update(names)
    return out


def paths_of(slices: Iterable[FileSlice]) -> set[str]:
    """Paths of the slices' files."""
    return {f.path for s in slices for f in s.files}


def take_back(
    storage: Storage, timeline: Timeline, needed: Collection[str], *, by: str, after: str = "~"
) -> None:
    """Take back pending cleanings of needed files, under the table's lock.

    One that has not begun is withdrawn.  One of ours that has begun is completed with what it has deleted so far, which
    its process finds before it deletes anything more.

    Args:
        needed: paths of files that are there.
        by: what needs them, for messages.
        after: cleanings of ours that were planned after this time are taken back in any case.

    Raises:
        ConcurrentWriterError: Apache Hudi may be at it.
        CorruptFileError: a plan cannot be read.
    """
    for clean in timeline.pending(CLEAN):
        plan = pending_plan(storage, clean)
        planned = [] if plan is None else [join_path(p, n) for p, names in plan.files.items() for n in names]
        hit = sorted(set(planned).intersection(needed))
        if not hit and clean.time <= after:
            continue
        begun = _begun(storage, clean)
        if plan is None or begun is None:
            storage.delete(clean.path_in(INFLIGHT))
            storage.delete(clean.path_in(REQUESTED))
            log.info("%s: cleaning %s is withdrawn by a %s", storage.uri, clean.time, by)
        elif begun.guarded:
            _complete_early(storage, clean, plan)
            log.info("%s: cleaning %s is ended by a %s", storage.uri, clean.time, by)
        elif hit:
            raise ConcurrentWriterError(
                f"a cleaning that another program began would delete {hit[0]}, which the {by} needs",
                table=storage.uri,
                instant=clean.time,
                file=hit[0],
                remedy="wait until it is completed; if its executor is dead, complete it "
                f"(`hudi clean PATH --instant {clean.time}`), or delete its requested and inflight files.",
            )


def _begun(storage: Storage, clean: Instant) -> CleanPlan | None:
    """Plan in a clean's inflight file; None where there is no such file."""
    try:
        plan = parse_action(CLEAN, INFLIGHT, storage.read(clean.path_in(INFLIGHT)))
    except FileNotFoundError:
        return None
    except CorruptFileError:  # made, and not filled
        return CleanPlan()
    assert isinstance(plan, CleanPlan)
    return plan


def _complete_early(storage: Storage, clean: Instant, plan: CleanPlan) -> None:
    """Complete a cleaning with the files deleted so far.

    It does not say from when on all states are whole, so that the next cleaning looks at everything again.
    """
    there = list_partition_files(storage, plan.files)
    gone = {
        partition: tuple(n for n in names if n not in {f.name for f in there.get(partition, ())})
        for partition, names in plan.files.items()
    }
    done = replace(plan, earliest=None, files={p: n for p, n in gone.items() if n}, partitions=())
    publish_metadata(storage, clean.path_in(COMPLETED), clean_metadata(clean.time, done, {}, set(), 0))


def publish_metadata(storage: Storage, path: str, metadata: CleanMetadata) -> bool:
    """Complete a cleaning by its completed file; False where another process has done so.

    The metadata table has it before.
    """
    mirror_clean(storage, table_config.load(storage), metadata)
    try:
        create_own(storage, path, render_action(metadata))
    except FileExistsError:
        return False
    flush(storage, [path], written=False)
    return True


def clean_metadata(
    instant: str, plan: CleanPlan, failed: Mapping[str, Collection[str]], gone: Collection[str], took_ms: int
) -> CleanMetadata:
    """Metadata of a completed cleaning.

    Args:
        failed: names of files that could not be deleted, by partition.
        gone: partitions whose folders were deleted.
    """
    partitions = {}
    for partition in sorted({*plan.files, *gone}):
        names, bad = plan.files.get(partition, ()), tuple(failed.get(partition, ()))
        good = tuple(n for n in names if n not in bad)
        partitions[partition] = CleanedPartition(
            partition, plan.policy, tuple(names), good, bad, partition in gone
        )
    return CleanMetadata(
        instant,
        took_ms,
        plan.count - sum(map(len, failed.values())),
        plan.earliest.time if plan.earliest is not None else "",
        plan.last_commit,
        partitions,
        {SAVEPOINTED: ",".join(plan.savepoints)} if plan.savepoints else {},
        version=2,
    )
