"""Resize of a bucket index: buckets split and merged in place, by one replacecommit.

    lock { new instant, requested } -> inflight -> plan of what is there now -> new files with markers, without the lock
    lock { nobody wrote to the partitions? rings, settings -> <t>.replacecommit } -> the old file groups are replaced

Each bucket is divided by itself: its slice is read once, and its rows go to the files of the new buckets.  A number of
buckets that is no multiple ("overwrite" of RFC-29) divides several together.  What was read stays until it is cleaned,
so that queries that began before go on.  Until the commit nothing of it is visible; a resize that dies is rolled back
by the next write, of Apache Hudi too.  Of rings it can be planned by one call, and executed by another, or by Apache
Hudi: `pending_resizes`.

Source: RFC-29; clustering of Apache Hudi 0.15 with the consistent-hashing strategies.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from hudi_format.errors import WriteConflictError
from hudi_format.model import WriteStat
from hudi_index.bucket import PartitionedBucketIndex
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.bucket_groups import table_index
from hudi_timeline.file_system_view.bucket_settings import SettingsChange, as_properties
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import Ring, keeps, rings_before, with_rings
from hudi_timeline.file_system_view.outlived_snapshot import LOOKS
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.file_options import NUM_BUCKETS
from hudi_timeline.options.service_config import ResizeConfig, parse_resize_options
from hudi_timeline.services.buckets.pending_resizes import (
    CLUSTER,
    Complete,
    check_resize,
    execute_pending,
    look_into,
    schedule_resize,
)
from hudi_timeline.services.buckets.resize_plan import ResizePlan, make_resize_plan
from hudi_timeline.services.buckets.resize_tasks import Runner, make_resize_tasks, run_on_threads
from hudi_timeline.services.compaction.slice_tasks import stored_schema_text
from hudi_timeline.services.table_service import (
    BOTH,
    EXECUTE,
    SCHEDULE,
    ServiceContext,
    check_mode,
    dry_run_looks_again,
)
from hudi_timeline.table_config import INDEX
from hudi_timeline.timeline.commit_metadata import COMPACT, CommitMetadata
from hudi_timeline.timeline.instant import REPLACE_COMMIT
from hudi_timeline.transaction.conflict_resolution import Rivals
from hudi_timeline.transaction.retries import retried
from hudi_timeline.transaction.ring_files import NewRings, refuse_new_rings
from hudi_timeline.transaction.settings_change import NewSettings
from hudi_timeline.transaction.transaction import Participant, Transaction, begin_transaction

log = logging.getLogger("hudi")


@dataclass(frozen=True)
class ResizeResult:
    """Result of a resize, or of its `dry_run`.

    Attributes:
        instant: of the replacecommit; "" where nothing was written.
        plan: what it splits and merges.
        executed: pending resizes that were executed, oldest first.
        write_stats: the new base files, of those too.
        warnings: what the user should know, one sentence each.
        seconds: how long it took.
        retries: how many tries lost to writes first.
    """

    instant: str
    plan: ResizePlan
    executed: tuple[str, ...] = ()
    write_stats: tuple[WriteStat, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    retries: int = 0

    def __repr__(self) -> str:
        done = f"{self.instant}: {len(self.write_stats):,} files" if self.instant else "nothing written"
        return f"ResizeResult({done}; {self.plan!r}; {self.seconds:.2f} s)"


@dry_run_looks_again
def resize(
    context: ServiceContext,
    config: ResizeConfig | None = None,
    *,
    num_buckets: int | None = None,
    partitions: Collection[str] | None = None,
    engine: str | None = None,
    overwrite: bool = False,
    plan: ResizePlan | None = None,
    mode: str = BOTH,
    dry_run: bool = False,
    run: Runner | None = None,
) -> ResizeResult:
    """Execute the pending resizes of rings, then split and merge buckets.

    Args:
        config: what the context's options say, if not given.
        num_buckets: of each partition, a multiple of what it is; without it full buckets are split, and nearly empty
            ones merged, by the sizes of the options.
        partitions: only these; of an engine that has different numbers of buckets in each.
        engine: EXTENDIBLE_HASHING, to make that of a table with the engine SIMPLE.
        overwrite: take any number of buckets for the engine SIMPLE, by dividing the rows of several buckets together.
        plan: an earlier dry run's; made anew if not given.
        mode: only one of the two: "schedule", which plans a clustering of rings and leaves it to another call, or to
            Apache Hudi; or "execute", for those that are pending.
        dry_run: give the plan and change nothing.
        run: runs the tasks; None for threads of this process.

    Raises:
        UnsupportedError: no bucket index, or file groups and keys that contradict it.
        OptionError, ConflictingOptionError: nothing to do is given, or what the table's buckets cannot become.
        CorruptFileError, MissingFileError: of a file that is read; the table is as it was.
        StaleSnapshotError: files were cleaned, or their commits undone, meanwhile; the same.
        WriteConflictError: the plan that was given does not fit the table any more; or others wrote to the partitions
            meanwhile.
        ConcurrentWriterError: a writer is at work (policy EAGER).
        LockError, StorageError.
    """
    began = time.monotonic()
    check_mode(mode)
    if plan is not None and mode != BOTH:
        raise ValueError(f"plan goes with the mode {BOTH}")
    if plan is not None and (num_buckets, partitions, engine, overwrite) != (None, None, None, False):
        raise ValueError("plan goes without num_buckets, partitions, engine and overwrite")
    config = config or parse_resize_options(context.options.raw)

    def planned(snapshot: TableSnapshot) -> ResizePlan:
        return make_resize_plan(
            snapshot,
            config,
            num_buckets=num_buckets,
            partitions=partitions,
            engine=engine,
            overwrite=overwrite,
        )

    def complete(transaction: Transaction, found: ResizePlan) -> tuple[WriteStat, ...]:
        return _execute(transaction, found, config, run or run_on_threads)

    if mode == SCHEDULE:
        instant, found = schedule_resize(context, config, planned, dry_run=dry_run)
        return ResizeResult(instant, found, warnings=found.skipped, seconds=time.monotonic() - began)
    seen = look_into(context) if mode == EXECUTE else None
    executed = {} if dry_run else execute_pending(context, config, complete)
    files = tuple(s for of in executed.values() for s in of)
    if seen is not None:
        return ResizeResult(
            "", seen, tuple(executed), files, tuple(context.warnings), time.monotonic() - began
        )

    def one_try(lost: int) -> ResizeResult:
        done = _in_one(context, config, planned, plan, complete, dry_run=dry_run, lost=lost)
        return replace(
            done,
            executed=tuple(executed),
            write_stats=(*files, *done.write_stats),
            seconds=time.monotonic() - began,
        )

    # A plan that was given fits only what it was made of.
    once = dry_run or plan is not None
    result = retried(context.options.raw, one_try, readings=0 if once else LOOKS, once=once)
    if result.instant:
        log.info("%s: %r", context.storage.uri, result)
    return result


def _in_one(
    context: ServiceContext,
    config: ResizeConfig,
    planned: Callable[[TableSnapshot], ResizePlan],
    plan: ResizePlan | None,
    complete: Complete,
    *,
    dry_run: bool,
    lost: int,
) -> ResizeResult:
    """One try to plan and execute in one transaction.

    Args:
        lost: how many tries have lost to writes.
    """
    snapshot = context.look()
    check_resize(context, snapshot)
    found = plan or planned(snapshot)  # what is refused is refused before there is an instant
    make_resize_tasks(snapshot, "0", found.moves, found.index("0"), config.files)
    if dry_run or not found:
        return ResizeResult("", found)
    caller = RunningCall.here()
    with begin_transaction(
        context.storage, context.table, operation=CLUSTER, action=REPLACE_COMMIT, options=context.options,
        caller=caller, lost=lost,
    ) as transaction:  # fmt: skip
        now = transaction.snapshot
        check_resize(context, now)  # again: others may have been there
        found = planned(now) if plan is None else _checked(plan, now, transaction)
        if not found:
            transaction.abort("others have done what it was to do", without_trace=True)
            return ResizeResult("", found)
        transaction.inflight({})
        stats = complete(transaction, found)
    return ResizeResult(transaction.instant, found, (), tuple(stats), (*found.skipped, *transaction.warnings))


def _execute(
    transaction: Transaction, plan: ResizePlan, config: ResizeConfig, run: Runner
) -> tuple[WriteStat, ...]:
    instant, snapshot = transaction.instant, transaction.snapshot
    with snapshot.of_its_state():  # writers that go on beside it, and a cleaning after them, take files away
        stats = run(make_resize_tasks(snapshot, instant, plan.moves, plan.index(instant), config.files))
    replaced: dict[str, list[str]] = {}
    for move in plan.moves:
        replaced.setdefault(move.partition, []).extend(move.file_ids)
    participants: list[Participant] = []
    if plan.settings_change:
        stored = snapshot.config.properties
        participants.append(NewSettings(SettingsChange.of(instant, stored, plan.before, plan.after)))
    # After the engine that stops Apache Hudi, which would roll a dead resize back and leave its directories.
    if plan.rings:
        participants.append(NewRings(plan.dated(instant)))
    transaction.commit(
        stats, replaced=replaced, schema_text=stored_schema_text(snapshot), even_if_empty=True,
        extra={INDEX: "BUCKET", **as_properties(plan.after)},
        participants=participants, recheck=_Untouched(plan, transaction),
    )  # fmt: skip
    return tuple(stats)


@dataclass(frozen=True)
class _Untouched:
    """Check under the lock that nobody has written to what is resized since it was planned.

    A write of before the commit may have begun a file group, which no file group of the plan collides with, in a
    bucket that is no more.  Writes to buckets that stay as they are go on beside the resize.
    """

    plan: ResizePlan
    transaction: Transaction = field(repr=False)

    def __call__(self, metadata: CommitMetadata, rivals: Rivals) -> CommitMetadata:
        storage, instant = self.transaction.storage, self.transaction.instant
        replacing = [i.time for i in rivals.commits if i.action == REPLACE_COMMIT]
        before = rings_before(self.transaction.snapshot, self.plan.after)
        for kind in {type(r) for r in self.plan.rings.values()}:
            # Of one that merged empty buckets the commit names no partition.
            everything = [(p, "") for p in self.plan.rings]
            refuse_new_rings(storage, replacing, everything, before, instant=instant, kind=kind)
        for rival, commit in rivals.commits.items():
            if commit.operation == COMPACT:
                continue
            for stat in commit.stats:
                if self.plan.settings_change or not self._stays(stat.partition, stat.file_id, before):
                    raise rivals.changes.conflict(
                        f"{rival.time} wrote to partition {stat.partition or '.'}, whose buckets are resized",
                        table=storage.uri, instant=instant,
                    )  # fmt: skip
        return metadata

    def _stays(self, partition: str, file_id: str, before: Callable[[str], Ring | None]) -> bool:
        """Whether the resize leaves a file group's bucket as it is."""
        after = self.plan.rings.get(partition)
        if after is None:
            return all(m.partition != partition for m in self.plan.moves)
        old = before(partition)
        return old is not None and keeps(old, file_id, after)


def _checked(plan: ResizePlan, now: TableSnapshot, transaction: Transaction) -> ResizePlan:
    """The given plan, which must fit the table.

    Raises:
        WriteConflictError: its settings, rings or slices are others now.
    """
    slices = {(s.partition, s.file_id): s for s in newest_slices_of(now)}
    stale = [s for m in plan.moves for s in m.slices if slices.get((s.partition, s.file_id)) != s]
    index = table_index(now)
    known = with_rings(plan.after, now, plan.rings)
    others = []
    if isinstance(known, PartitionedBucketIndex):
        ids = {p: frozenset(i for q, i in slices if q == p) for p in plan.rings}
        others = [p for p in ids if plan.made_of.get(p) != (known.ring(p).instant, ids[p])]
    if index != plan.before:
        why = f"the table has {index.num_buckets} buckets by {','.join(index.fields)} now"
    elif stale:
        why = f"file group {stale[0].file_id} of partition {stale[0].partition or '.'} has other files"
    elif others:
        why = f"partition {others[0] or '.'} has other buckets, or other file groups"
    elif plan.before.num_buckets != plan.after.num_buckets and len(slices) != sum(
        len(m.slices) for m in plan.moves
    ):
        why = "there are other file groups"
    else:
        return plan
    raise WriteConflictError(
        f"the plan does not fit the table any more: {why}", table=now.storage.uri, instant=transaction.instant,
        remedy="make the plan anew.", option=NUM_BUCKETS,
    )  # fmt: skip
