"""Pending cleanings: their files, and taking them back.

A restore, a rollback and a savepoint need files that a cleaning may be deleting.  They hold the table's lock, and so
does a cleaning of ours while it deletes; before each stretch it looks whether it is still on the timeline.  So a
cleaning of ours can be taken back between two stretches.  Apache Hudi's cleaner looks at nothing once it has begun:
what it is to delete cannot be kept.

Source: SavepointActionExecutor of Apache Hudi 0.15, which refuses commits that a pending cleaning does not retain.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, HudiError
from hudi_format.model import FileSlice, join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.services.clean_planner import CleanPlan
from hudi_timeline.services.clean_records import SAVEPOINTED
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import CLEAN, COMPLETED, INFLIGHT, REQUESTED, Instant, instant_path

log = logging.getLogger("hudi")

GUARDED = "hudi.clean.guarded"
"""In the inflight file of a cleaning whose executor looks at the timeline, under the lock, before it deletes."""


def pending_plan(storage: Storage, instant: str) -> CleanPlan | None:
    """Plan of a pending cleaning; None where all of its files are empty.

    Source: CleanActionExecutor of Apache Hudi 0.15, which takes the plan out of the file of the newest state.

    Raises:
        CorruptFileError: a file that is not empty, and no file with a plan.
    """
    problem: HudiError | None = None
    for state in (REQUESTED, INFLIGHT):
        path = instant_path(instant, CLEAN, state)
        try:
            data = storage.read(path)
            plan = CleanPlan.of_record(avro_files.parse("HoodieCleanerPlan", data, path=path), instant)
        except FileNotFoundError:
            continue
        except CorruptFileError as e:
            if data:
                problem = problem or e.at(table=storage.uri, instant=instant, file=path)
            continue
        if state == INFLIGHT:  # made whole again, so that nothing takes the instant for damaged later
            storage.publish(instant_path(instant, CLEAN, REQUESTED), data)
        return plan
    if problem is not None:
        raise problem
    return None


def is_pending(timeline: Timeline, instant: str) -> bool:
    """Whether a cleaning is pending on the timeline."""
    return any(i.time == instant for i in timeline.pending(CLEAN))


def planned_names(storage: Storage, timeline: Timeline) -> dict[str, set[str]]:
    """File names in pending cleanings by partition, under the table's lock."""
    out: dict[str, set[str]] = {}
    for clean in timeline.pending(CLEAN):
        plan = pending_plan(storage, clean.time)
        for partition, names in ({} if plan is None else plan.files).items():
            out.setdefault(partition, set()).update(names)
    return out


def paths_of(slices: Iterable[FileSlice]) -> set[str]:
    """Paths of the slices' files."""
    found = {s.base_file.path for s in slices if s.base_file is not None}
    return found.union(f.path for s in slices for f in s.log_files)


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
        plan = pending_plan(storage, clean.time)
        planned = [] if plan is None else [join_path(p, n) for p, names in plan.files.items() for n in names]
        hit = sorted(set(planned).intersection(needed))
        if not hit and clean.time <= after:
            continue
        begun = _begun(storage, clean)
        if plan is None or begun is None:
            storage.delete(instant_path(clean.time, CLEAN, INFLIGHT))
            storage.delete(instant_path(clean.time, CLEAN, REQUESTED))
            log.info("%s: cleaning %s is withdrawn by a %s", storage.uri, clean.time, by)
        elif GUARDED in begun:
            _complete_early(storage, clean.time, plan)
            log.info("%s: cleaning %s is ended by a %s", storage.uri, clean.time, by)
        elif hit:
            raise ConcurrentWriterError(
                f"a cleaning that another program began would delete {hit[0]}, which the {by} needs",
                table=storage.uri,
                instant=clean.time,
                file=hit[0],
                remedy="wait until it is completed, or run clean() to complete it; if nobody executes it any more, "
                "delete its requested and inflight files.",
            )


def _begun(storage: Storage, clean: Instant) -> Mapping[str, str] | None:
    """Extra metadata of a clean's inflight file; None where there is none."""
    path = instant_path(clean.time, CLEAN, INFLIGHT)
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        record = avro_files.parse("HoodieCleanerPlan", data, path=path)
    except CorruptFileError:  # made, and not filled
        return {}
    return record.get("extraMetadata") or {}


def _complete_early(storage: Storage, instant: str, plan: CleanPlan) -> None:
    """Complete a cleaning with the files deleted so far.

    It does not say from when on all states are whole, so that the next cleaning looks at everything again.
    """
    there = list_partition_files(storage, plan.files)
    gone = {
        partition: tuple(n for n in names if n not in {f.name for f in there.get(partition, ())})
        for partition, names in plan.files.items()
    }
    done = CleanPlan(
        plan.policy, None, plan.last_commit, {p: n for p, n in gone.items() if n}, (), plan.savepoints
    )
    publish_metadata(storage, instant, clean_metadata(instant, done, {}, set(), 0))


def publish_metadata(storage: Storage, instant: str, record: dict[str, object]) -> bool:
    """Complete a cleaning; False where another process has done so."""
    try:
        content = avro_files.render("HoodieCleanMetadata", record)
        storage.create(instant_path(instant, CLEAN, COMPLETED), content)
    except FileExistsError:
        return False
    flush(storage, [instant_path(instant, CLEAN, COMPLETED)], written=False)
    return True


def clean_metadata(
    instant: str, plan: CleanPlan, failed: Mapping[str, Collection[str]], gone: Collection[str], took_ms: int
) -> dict[str, object]:
    """Record of a completed cleaning.

    Args:
        failed: names of files that could not be deleted, by partition.
        gone: partitions whose folders were deleted.
    """
    partitions = {}
    for partition in sorted({*plan.files, *gone}):
        names = plan.files.get(partition, ())
        bad = list(failed.get(partition, ()))
        partitions[partition] = {
            "partitionPath": partition,
            "policy": plan.policy,
            "deletePathPatterns": list(names),
            "successDeleteFiles": [n for n in names if n not in bad],
            "failedDeleteFiles": bad,
            "isPartitionDeleted": partition in gone,
        }
    return {
        "startCleanTime": instant,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": plan.count - sum(map(len, failed.values())),
        "earliestCommitToRetain": plan.earliest.time if plan.earliest is not None else "",
        "lastCompletedCommitTimestamp": plan.last_commit,
        "partitionMetadata": partitions,
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {SAVEPOINTED: ",".join(plan.savepoints)} if plan.savepoints else {},
    }


__all__ = [
    "GUARDED",
    "clean_metadata",
    "is_pending",
    "paths_of",
    "pending_plan",
    "planned_names",
    "publish_metadata",
    "take_back",
]
