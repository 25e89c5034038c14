"""Indexing service: metadata partitions, built while writers go on, and dropped.

    lock { plan -> <t>.indexing.requested }
    lock { heartbeat, file groups, .indexing.inflight, the table's properties name the partitions as inflight }
                                            from here on each writer keeps them, and nobody reads them
    base files from what was committed by then, without the lock
    lock { still ours? what was not kept is caught up, <t>.indexing, the properties name them as complete }

Every step may be the last one of a process: the plan stays, and is executed from the start.  A partition that is half
built is kept by writers, read by nobody, and made anew by the next execution.  Between the completed file and the
properties any writer, or the next build, ends what is left.

Source: HoodieIndexer, ScheduleIndexActionExecutor and RunIndexActionExecutor of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hudi_format.errors import (
    ConcurrentWriterError,
    HudiError,
    InstantNotFoundError,
    OptionError,
    StaleSnapshotError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.open import flush
from hudi_index.metadata_table.keys import COLUMN_STATS
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.own_files import complete_own, create_own
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.outlived_snapshot import LOOKS
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FILES, KEPT
from hudi_timeline.metadata_table import index_build, upkeep
from hudi_timeline.metadata_table.deltacommit import GroupChange
from hudi_timeline.metadata_table.file_indexes import unlisted_note
from hudi_timeline.metadata_table.initialisation import initialise, no_place
from hudi_timeline.metadata_table.own_table import open_own, own_if_there
from hudi_timeline.services.table_service import (
    BOTH,
    EXECUTE,
    SCHEDULE,
    WHILE_RESTORING,
    WITH_INDEXES,
    ServiceContext,
    check_mode,
)
from hudi_timeline.table_config import METADATA_PARTITIONS_INFLIGHT
from hudi_timeline.timeline.action_metadata import IndexedPartition, IndexMetadata, IndexPlan, render_action
from hudi_timeline.timeline.index_builds import IndexBuild, begun_plan, pending_builds
from hudi_timeline.timeline.instant import COMPLETED, INDEXING, INFLIGHT, REQUESTED, instant_path
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction.rollback_guard import refuse_alive

log = logging.getLogger("hudi")

_RECORD_INDEX = "record_index"


@dataclass(frozen=True)
class IndexingResult:
    """Result of building indexes, or of its `dry_run`.

    Attributes:
        scheduled: instant of the plan that was made; "" where none was.
        planned: its partitions of the metadata table.
        executed: instants of the builds that were completed, oldest first.
        built: partitions that are complete now, and were not before.
        refused: why a partition was not made, by its name; one sentence each.
        warnings: what the user should know, one sentence each.
        seconds: how long it took.
    """

    scheduled: str
    planned: tuple[str, ...] = ()
    executed: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    refused: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        planned = (
            f"{self.scheduled or 'not written'}: {', '.join(self.planned)} planned" if self.planned else ""
        )
        built = f"{', '.join(self.built)} built" if self.built else "nothing built"
        refused = f"{', '.join(self.refused)} refused" if self.refused else ""
        return f"IndexingResult({'; '.join(filter(None, (planned, built, refused)))}; {self.seconds:.2f} s)"


@dataclass(frozen=True)
class IndexDropResult:
    """Result of dropping indexes, or of its `dry_run`.

    Attributes:
        dropped: partitions of the metadata table that are no more.
        withdrawn: instants of pending builds that have nothing left to build.
        warnings: what the user should know, one sentence each.
    """

    dropped: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def build_index(
    context: ServiceContext,
    partitions: str | Collection[str] = (),
    *,
    mode: str = BOTH,
    instant: str | None = None,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> IndexingResult:
    """Execute pending builds of these partitions, or of all, then build what is left of them.

    Args:
        partitions: of the metadata table, see `KEPT`; none: what is pending.  The listing `files` is made at once, and
            along with any other.
        mode: only one of the two: "schedule" or "execute".
        instant: of the pending build to execute.
        dry_run: say what would be planned and change nothing.

    Raises:
        UnsupportedError: a partition that is not kept here, or a table that would be harmed.
        ConcurrentWriterError: another process executes the plan, or took it back; something is pending that the listing
            cannot be made beside.
        MissingFileError, CorruptFileError: files of the table; the plan stays pending.
        InstantNotFoundError: no such plan is pending.
        LockError, StorageError.
    """
    began = time.monotonic()
    check_mode(mode)
    if instant is not None and (mode != EXECUTE or partitions):
        raise ValueError("instant goes with mode='execute', and names the partitions")
    if not isinstance(partitions, Iterable):
        raise TypeError(
            f"partitions must be a list of texts, not {type(partitions).__name__}: {partitions!r}"
        )
    asked = tuple(dict.fromkeys((partitions,) if isinstance(partitions, str) else partitions))
    _refuse_unknown(context, asked)
    if context.options.metadata_enable is False:
        raise OptionError(
            "hoodie.metadata.enable=false drops the metadata table, and an index is a part of it",
            table=context.storage.uri, remedy="leave the option out.",
        )  # fmt: skip
    built: list[str] = []
    refused: dict[str, str] = {}
    executed: list[str] = []
    if mode != SCHEDULE and not dry_run:
        for build in _chosen(context, instant, asked):
            done = _execute(context, build)
            executed.append(build.time)
            built += done.built
            refused |= done.refused
    scheduled = ""
    planned: tuple[str, ...] = ()
    if mode != EXECUTE:
        scheduled, planned, made = _schedule(
            context, [p for p in asked if p not in refused], dry_run=dry_run, now=now
        )
        built += made
        if scheduled and mode == BOTH:
            (build,) = _chosen(context, scheduled, ())
            done = _execute(context, build, withdraw=True)
            executed.append(scheduled)
            built += done.built
            refused |= done.refused
    result = IndexingResult(
        scheduled, planned, tuple(executed), tuple(built), refused, tuple(context.warnings),
        time.monotonic() - began,
    )  # fmt: skip
    log.info("%s: %r", context.storage.uri, result)
    return result


def _refuse_unknown(context: ServiceContext, partitions: Sequence[str]) -> None:
    for partition in partitions:
        if partition not in KEPT:
            raise UnsupportedError(
                f"{partition!r} is no partition of the metadata table that is built here",
                table=context.storage.uri,
                remedy=f"name some of {', '.join(KEPT)}, each as an argument of its own.",
            )


def _chosen(context: ServiceContext, instant: str | None, partitions: Collection[str]) -> list[IndexBuild]:
    """Pending builds to execute, oldest first."""
    found = pending_builds(context.storage, context.look().timeline)
    if instant is None:
        return [b for b in found if not partitions or set(b.partitions) & set(partitions)]
    chosen = [b for b in found if b.time == instant]
    if not chosen:
        raise InstantNotFoundError(
            f"no build of an index {instant} is pending", table=context.storage.uri, instant=instant,
            remedy=f"pending builds: {', '.join(b.time for b in found) or 'none'}.",
        )  # fmt: skip
    return chosen


# --- schedule ------------------------------------------------------------------------------------------


def _schedule(
    context: ServiceContext, partitions: Sequence[str], *, dry_run: bool, now: Callable[[], float]
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Plan partitions; returns the instant, those planned, and those made at once."""
    if not partitions:
        return "", (), ()
    storage = context.storage
    if dry_run:
        return "", _missing(context.look(), partitions), ()
    with context.locked() as snapshot:
        planned = _missing(snapshot, partitions)
        made: tuple[str, ...] = ()
        if FILES not in snapshot.config.metadata_partitions:
            snapshot, made = _with_listing(context, snapshot), (FILES,)
        planned = tuple(p for p in planned if p != FILES)
        if not planned:
            return "", (), made
        up_to = _contiguous(snapshot)
        plan = IndexPlan(tuple(IndexedPartition(p, up_to) for p in planned))
        context.check_lock()
        instant = request_instant(
            storage, snapshot.timeline, context.table, INDEXING, render_action(plan), now
        )
    return instant, planned, made


def _missing(snapshot: TableSnapshot, partitions: Sequence[str]) -> tuple[str, ...]:
    """Those of the partitions that are neither complete nor planned, in the order in which they are made.

    Raises UnsupportedError.
    """
    config = snapshot.config
    builds = pending_builds(snapshot.storage, snapshot.timeline)
    there = {*config.metadata_partitions, *(p for b in builds for p in b.partitions)}
    missing = tuple(p for p in KEPT if p in partitions and p not in there)
    half = [p for p in missing if p in config.metadata_partitions_inflight]
    if half and FILES in config.metadata_partitions:  # else it goes when the listing is made
        raise UnsupportedError(
            f"another program has left {', '.join(half)} half built, and may be at it",
            table=snapshot.storage.uri,
            remedy=f"drop it first: `hudi index drop PATH {' '.join(half)}`.",
        )
    if not config.populate_meta_fields and _RECORD_INDEX in missing:
        raise UnsupportedError(
            "a table with virtual keys has no record index", table=snapshot.storage.uri,
            remedy="leave record_index out.",
        )  # fmt: skip
    return missing


def _contiguous(snapshot: TableSnapshot) -> str:
    """Newest completed write before which none is pending; Apache Hudi's executor begins to catch up behind it."""
    pending = min((i.time for i in snapshot.timeline.pending_writes()), default=None)
    done = [i.time for i in snapshot.timeline.completed_writes() if pending is None or i.time < pending]
    return done[-1] if done else "00000000000000"


def _with_listing(context: ServiceContext, snapshot: TableSnapshot, besides: str = "") -> TableSnapshot:
    """The snapshot with the partition `files`, made where nothing is pending besides one build.

    Of several builds whose metadata table was dropped the first makes it for all that nobody runs.
    """
    others = [i for i in snapshot.timeline.instants if not i.completed and i.time != besides]
    others = [i for i in others if not besides or i.action != INDEXING or context.is_alive(i)]
    if pending := next(iter(others), None):
        raise ConcurrentWriterError(
            f"the table has no metadata table, and none can be made while {pending} is pending",
            table=context.storage.uri,
            instant=pending.time,
            remedy="run that plan: `hudi index run`, or build_index(mode='execute')."
            if pending.action == INDEXING
            else "build the index again when it is completed or rolled back.",
        )
    context.table, _ = initialise(snapshot, (), context.options.indexes)
    return replace(snapshot, config=context.table)


# What became of a partition that writers were to keep.
_DROPPED = "a write could not keep it and dropped it; its warning says why"

# --- execution -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Done:
    built: tuple[str, ...]
    refused: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A build that this process executes.

    Attributes:
        snapshot: of when the file groups were made.
        made_at: instants of the partitions' file groups.
        listing: whether `files` was made.
    """

    build: IndexBuild
    snapshot: TableSnapshot
    made_at: dict[str, str]
    beat: Heartbeat
    data: bytes
    listing: bool

    @property
    def time(self) -> str:
        return self.build.time


def _execute(context: ServiceContext, build: IndexBuild, *, withdraw: bool = False) -> _Done:
    """Execute a plan.

    Args:
        withdraw: the plan goes too where the execution fails.
    """
    _refuse_unknown(context, build.partitions)
    for _ in range(LOOKS):
        with suppress(StaleSnapshotError):
            return _try(context, build, withdraw=withdraw, is_last=False)
    return _try(context, build, withdraw=withdraw, is_last=True)


def _try(context: ServiceContext, build: IndexBuild, *, withdraw: bool, is_last: bool) -> _Done:
    """Execute a plan as of a state whose files others may undo or clean meanwhile.

    Raises:
        StaleSnapshotError: they did; unless it is the last try, the plan is pending still.
    """
    beat: Heartbeat | None = None
    try:
        look = context.look()
        with look.of_its_state():
            counts = {
                p: index_build.group_count(look, p, context.options.indexes)
                for p in build.partitions
                if p != FILES and p not in look.config.metadata_partitions
            }
        begun = _begin(context, build, counts, RunningCall.here())
        beat = begun.beat
        contents = {}
        for partition, made_at in begun.made_at.items():
            with begun.snapshot.of_its_state():
                found = index_build.read_content(begun.snapshot, partition, context.options.indexes)
            if not found.refused:
                own = own_if_there(context.storage)
                if own is not None:  # else a write has dropped it, which is said below
                    stats = index_build.write_content(own, partition, made_at, found.records, beat.check)
                    found = replace(found, stats=stats)
            contents[partition] = found
        done = _complete(context, begun, contents)
        if COLUMN_STATS in begun.made_at and COLUMN_STATS in done.built:
            note = unlisted_note(begun.snapshot.schema, context.options.indexes.columns)
            context.warnings += [note] if note else []
    except BaseException as e:
        goes = withdraw and (is_last or not isinstance(e, StaleSnapshotError))
        _give_back(context, build, beat, e, withdraw=goes)
        raise
    try:
        beat.stop()
    except (StorageError, OSError) as e:
        beat.give_up()
        context.warnings.append(
            f"the heartbeat of the completed build {begun.time} could not be removed: {e}"
        )
    return done


def _begin(
    context: ServiceContext, build: IndexBuild, counts: Mapping[str, int], call: RunningCall
) -> _Begun:
    """Make the file groups that writers keep from now on."""
    storage = context.storage
    with context.locked() as snapshot:
        instant = next((i for i in snapshot.timeline.pending(INDEXING) if i.time == build.time), None)
        if instant is None:
            raise _taken_away(storage.uri, build.time, "it is not pending any more")
        refuse_alive(storage, instant, context.options)
        (build,) = [b for b in pending_builds(storage, snapshot.timeline) if b.time == build.time]
        listing = FILES not in snapshot.config.metadata_partitions
        if listing:
            snapshot = _with_listing(context, snapshot, besides=build.time)
        beat = context.heartbeat_at(build.time, call)
        try:
            snapshot = _without_begun(context, snapshot, build)
            there = snapshot.config.metadata_partitions
            todo = [p for p in build.partitions if p in counts and p not in there]
            made_at = {p: index_build.make_groups(snapshot, p, counts[p]) for p in todo}
            context.check_lock()
            data = render_action(begun_plan(build.plan, made_at))
            try:
                create_own(storage, instant.path_in(INFLIGHT), data)
            except FileExistsError:
                raise _taken_away(storage.uri, build.time, "another process began it") from None
            flush(storage, [instant.path_in(INFLIGHT)], written=False)
            inflight = sorted({*snapshot.config.metadata_partitions_inflight, *todo})
            context.table = table_config.update(storage, {METADATA_PARTITIONS_INFLIGHT: ",".join(inflight)})
        except BaseException:
            beat.stop()
            raise
    return _Begun(build, replace(snapshot, config=context.table), made_at, beat, data, listing)


def _without_begun(context: ServiceContext, snapshot: TableSnapshot, build: IndexBuild) -> TableSnapshot:
    """The snapshot without what an execution that died has left, under the lock.

    First nobody keeps the partitions any more, then the plan is only requested, then the file groups do not count.
    """
    storage = context.storage
    gone = [p for p in build.partitions if p in snapshot.config.metadata_partitions_inflight]
    context.table, _ = metadata_config.drop_partitions(storage, snapshot.config, gone, why="")
    if build.instant.state == INFLIGHT:
        storage.delete(build.instant.path)
        flush(storage, [build.instant.path], written=False)
    index_build.forget_groups(snapshot, [at for p in build.partitions if (at := build.made_at(p))])
    return replace(snapshot, config=context.table)


def _complete(
    context: ServiceContext, begun: _Begun, contents: Mapping[str, index_build.BuiltIndex]
) -> _Done:
    """Catch up, complete the build, and name its partitions as complete."""
    storage, time = context.storage, begun.time
    refused = {p: found.refused for p, found in contents.items() if found.refused}
    with context.locked() as snapshot:
        begun.beat.check()
        _check_ours(context, begun, snapshot)
        listing = begun.listing and FILES in snapshot.config.metadata_partitions
        if begun.listing and not listing:
            refused[FILES] = _DROPPED
        changes: dict[str, Mapping[str, GroupChange]] = {}
        for partition, found in contents.items():
            if partition in refused:
                continue
            if partition not in snapshot.config.metadata_partitions_inflight:
                refused[partition] = _DROPPED
                continue
            index_build.name_content(open_own(storage), begun.made_at[partition], found.stats)
            missed = index_build.not_kept(begun.snapshot, snapshot, partition)
            changes[partition], why = index_build.catch_up(
                snapshot, partition, missed, context.options.indexes
            )
            if not why and partition == _RECORD_INDEX:
                why = no_place(index_build.key_of_two_groups(snapshot, found.records))
            if why:
                refused[partition] = why
        context.table, _ = metadata_config.drop_partitions(storage, snapshot.config, refused, why="")
        built = tuple(p for p in contents if p not in refused)
        if not built and not listing:
            _withdraw(context, begun.build)
            return _Done((), refused)
        index_build.apply_catch_up(replace(snapshot, config=context.table), time, changes, built)
        up_to = index_build.completed_at(snapshot.timeline)
        parts = tuple(IndexedPartition(p, up_to) for p in (*((FILES,) if listing else ()), *built))
        context.check_lock()
        begun.beat.check()
        path = instant_path(context.table, time, INDEXING, COMPLETED)
        complete_own(
            storage, path, render_action(IndexMetadata(parts)), what="build of an index", instant=time
        )
        context.table = upkeep.switch(storage, context.table, built)
    return _Done(tuple(p.partition for p in parts), refused)


def _check_ours(context: ServiceContext, begun: _Begun, snapshot: TableSnapshot) -> None:
    """Raise where the build must not be completed, under the lock."""
    instant = next((i for i in snapshot.timeline.of(INDEXING) if i.time == begun.time), None)
    if instant is None or instant.state != INFLIGHT:
        raise _taken_away(context.storage.uri, begun.time, "its inflight file is gone, or it was completed")
    if context.storage.read(instant.path) != begun.data:
        raise _taken_away(context.storage.uri, begun.time, "another process began it anew")


def _withdraw(context: ServiceContext, build: IndexBuild) -> None:
    """Take a plan away, under the lock; its partitions are gone by then."""
    storage = context.storage
    for state in (INFLIGHT, REQUESTED):
        storage.delete(build.instant.path_in(state))
    flush(storage, [build.instant.path_in(REQUESTED)], written=False)


def _give_back(
    context: ServiceContext, build: IndexBuild, beat: Heartbeat | None, error: BaseException, *, withdraw: bool
) -> None:  # fmt: skip
    """Take a failed execution back to its plan; what cannot be done now is left to the next one.

    Args:
        beat: of the execution; None where it had not begun.
        withdraw: the plan goes too.
    """
    storage, time = context.storage, build.time
    # A forked child that ends does not end what its parent does.
    if (beat is None and not withdraw) or (beat is not None and not beat.is_own):
        return
    log.info("%s: the build %s is taken back: %r", storage.uri, time, error)
    try:
        with context.locked(allowed=WHILE_RESTORING, keep_metadata=True) as snapshot:
            if beat is not None:
                beat.check()  # else what is there is another execution's
            if any(i.time == time and i.completed for i in snapshot.timeline.of(INDEXING)):
                error.add_note(
                    f"The build itself is completed as {time}; the next write ends what is left of it."
                )
            for found in pending_builds(storage, snapshot.timeline):
                if found.time != time or (beat is None and found.instant.state == INFLIGHT):
                    continue
                _without_begun(context, snapshot, found)
                if withdraw:
                    _withdraw(context, found)
        if beat is not None:
            beat.stop()
    except (HudiError, OSError) as e:
        if beat is not None:
            beat.give_up()
        error.add_note(
            f"The failed build {time} could not be taken back at once ({e}); nobody reads what there is of it, and the "
            "next build does that."
        )


def _taken_away(table: str, time: str, what: str) -> ConcurrentWriterError:
    return ConcurrentWriterError(
        f"this build of an index was taken back, or completed, by another process: {what}",
        table=table, instant=time,
        remedy="look at the timeline; where the plan is still pending, build the index again.",
    )  # fmt: skip


# --- dropping ------------------------------------------------------------------------------------------


def drop_index(
    context: ServiceContext, partitions: str | Collection[str], *, dry_run: bool = False
) -> IndexDropResult:
    """Drop metadata partitions, and pending builds of them; `files` drops all of them.

    Raises:
        ConcurrentWriterError: another process is building one of them.
        OptionError: one of them is not there, or none is named; nothing is dropped.
        LockError, StorageError.
    """
    storage = context.storage
    partitions = (partitions,) if isinstance(partitions, str) else partitions
    if dry_run:
        dropped, builds = _to_drop(context, context.looked(allowed=WITH_INDEXES), partitions)
        return IndexDropResult(dropped, tuple(b.time for b in builds))
    with context.locked(allowed=WITH_INDEXES, keep_metadata=True) as snapshot:
        dropped, builds = _to_drop(context, snapshot, partitions)
        for build in builds:
            refuse_alive(storage, build.instant, context.options)
        if FILES in dropped:
            context.table, warning = metadata_config.drop(storage, snapshot.config, why="it was asked for")
        else:
            context.table, warning = metadata_config.drop_partitions(
                storage, snapshot.config, dropped, why="it was asked for"
            )
            made_at = [at for b in builds for p in b.partitions if (at := b.made_at(p))]
            index_build.forget_groups(snapshot, made_at)
        for build in builds:
            _withdraw(context, build)
            heartbeat.delete(storage, build.time)
        context.warnings += [warning] if warning else []
    return IndexDropResult(dropped, tuple(b.time for b in builds), tuple(context.warnings))


def _to_drop(
    context: ServiceContext, snapshot: TableSnapshot, partitions: Collection[str]
) -> tuple[tuple[str, ...], tuple[IndexBuild, ...]]:
    """Partitions and pending builds that go; a build goes whole, with what it has begun."""
    pending = pending_builds(snapshot.storage, snapshot.timeline)
    every = metadata_config.built(snapshot.config)
    asked = {*every, *partitions} if FILES in partitions else set(partitions)
    builds = tuple(b for b in pending if FILES in partitions or asked & set(b.partitions))
    begun = {p for b in builds for p in b.partitions if p in snapshot.config.metadata_partitions_inflight}
    there = dict.fromkeys((*every, *(p for b in pending for p in b.partitions)))
    absent = {*partitions} - {*there, *((FILES,) if there else ())}
    if absent or not partitions:
        names = ", ".join(sorted(absent))
        raise OptionError(
            f"the metadata table has no {names}" if absent else "no index to drop was named",
            table=context.storage.uri,
            remedy=f"it has {', '.join(there)}." if there else "it has no index; there is nothing to drop.",
        )
    return tuple(p for p in every if p in asked or p in begun), builds
