"""Cleaning: deletes file versions outside the retention, recorded as a clean instant.

    lock { plan -> <t>.clean.requested } -> lock { .inflight, delete files ... delete files, empty folders, <t>.clean }

Every step may be the last one of a process: the plan says what is left, and the next cleaning finishes it first.
A file that is gone already is no failure.  Files are deleted under the lock, which is given back every second: a
restore, a rollback or a savepoint comes in between, and takes the cleaning back where it needs a file that is planned
to go (`pending_cleans`).

Source: CleanPlanActionExecutor and CleanActionExecutor of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from hudi_format.errors import (
    ConcurrentWriterError,
    InstantNotFoundError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.model import join_path
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.concurrency.locks.provider import check_begun, verify_held
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.archived_replacements import archived_left, is_mark
from hudi_timeline.file_system_view.file_slices import newest_slices
from hudi_timeline.file_system_view.listing import METAFILES
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import KEEP_VERSIONS, ServiceConfig
from hudi_timeline.options.transaction_config import LAZY
from hudi_timeline.reading import stability
from hudi_timeline.services.clean_planner import earliest_to_retain, is_due, make_clean_plan
from hudi_timeline.services.pending_cleans import (
    begun_elsewhere,
    clean_metadata,
    is_pending,
    last_clean,
    paths_of,
    pending_plan,
    publish_metadata,
)
from hudi_timeline.services.savepoints import savepointed_files
from hudi_timeline.services.table_service import ServiceContext, dry_run_looks_again
from hudi_timeline.timeline.action_metadata import CleanPlan
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.instant import (
    CLEAN,
    COMPLETED,
    INFLIGHT,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    instant_path,
    zone_of,
)
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction import rollback_executor

log = logging.getLogger("hudi")

_THREADS = 16
LOCKED_S, REST_S = 1.0, 0.3
"""How long files are deleted under the lock, and how long others may take it before it goes on."""
ROLLBACK_OVER_S = 3600
"""A rollback that has been pending for so long is over, whoever began it."""


@dataclass(frozen=True)
class CleanResult(HtmlView):
    """Result of a cleaning, or of its `dry_run`.

    Attributes:
        instant: its instant time; "" where nothing was written.
        plan: what it deletes.
        deleted: files that it deleted; 0 of a plan that was not executed.
        failed: names of files that could not be deleted, by partition.
        finished: instants of earlier cleanings that were finished first.
        warnings: what the user should know, one sentence each.
        seconds: how long it took.
    """

    instant: str
    plan: CleanPlan
    deleted: int = 0
    failed: dict[str, list[str]] = field(default_factory=dict)
    finished: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        what = f"{self.deleted:,} of {self.plan.count:,} files deleted" if self.instant else "nothing to do"
        if not self.instant and self.plan:
            what = f"{self.plan.count:,} files would be deleted"
        since = f", readable since {self.plan.earliest.time}" if self.plan.earliest is not None else ""
        return (
            f"CleanResult({self.instant + ': ' if self.instant else ''}{what}{since}; {self.seconds:.2f} s)"
        )


def wants_clean(context: ServiceContext, snapshot: TableSnapshot, config: ServiceConfig) -> bool:
    """Whether there may be cleans to finish, writes to roll back, or files to delete."""
    timeline = snapshot.timeline
    if timeline.pending(CLEAN):
        return True
    if context.options.failed_writes == LAZY and (
        timeline.pending_writes() or any(_is_over(r, time.time()) for r in timeline.pending(ROLLBACK))
    ):
        return True
    zone = zone_of(context.table.timezone)
    by_versions = config.clean_policy == KEEP_VERSIONS
    if not by_versions and earliest_to_retain(timeline, config, context.clock(), zone) is None:
        return False
    return is_due(last_clean(context.storage, timeline), timeline, config)


@dry_run_looks_again
def clean(
    context: ServiceContext,
    config: ServiceConfig | None = None,
    *,
    only_if_due: bool = False,
    dry_run: bool = False,
    plan: CleanPlan | None = None,
    instant: str = "",
    now: Callable[[], float] = time.time,
) -> CleanResult:
    """Clean the table.

    Args:
        config: what the context's options say, if not given.
        only_if_due: do nothing before there were enough commits since the last time.
        dry_run: give the plan and change nothing.
        plan: an earlier dry run's; made anew if not given.
        instant: of a pending cleaning, which alone is finished, also where another program has begun it.

    Raises:
        InstantNotFoundError: no such cleaning is pending.
        CorruptFileError, MissingFileError: what the plan depends on cannot be read; nothing was deleted.
        LockError, StorageError.
    """
    config = config or context.service_config()
    began = time.monotonic()
    storage = context.storage
    if instant:
        if plan is not None:
            raise OptionError(
                "a cleaning is either made of a plan or a pending one",
                table=storage.uri,
                remedy="leave out plan or instant.",
            )
        found, did = finish_named(context, instant, dry_run=dry_run)
        named = "" if dry_run else instant
        return CleanResult(
            named, found, did.deleted, did.failed, (named,) if named else (), tuple(context.warnings),
            time.monotonic() - began,
        )  # fmt: skip
    if dry_run:
        plan = plan or _plan(context, context.look(), config, only_if_due, now, locked=False)
        return CleanResult("", plan, seconds=time.monotonic() - began)
    if context.options.failed_writes == LAZY:
        roll_back_expired(context, now)
    finished = finish_pending(context, context.look(), now)
    with context.locked() as snapshot:
        if plan is None:
            plan = _plan(context, snapshot, config, only_if_due, now)
        else:
            _refuse_needed(snapshot, plan, "")
        timeline = snapshot.timeline
        blocked = timeline.pending(CLEAN) and not config.clean_allow_multiple
        if not plan or blocked:
            warnings = tuple(context.warnings)
            return CleanResult(
                "", plan, finished=finished, warnings=warnings, seconds=time.monotonic() - began
            )
        instant = request_instant(storage, timeline, context.table, CLEAN, plan.to_bytes(storage.uri), now)
    did = _execute(context, instant, plan, _undone(timeline))
    result = CleanResult(
        instant, plan, did.deleted, did.failed, finished, tuple(context.warnings), time.monotonic() - began
    )
    log.info("%s: %r", storage.uri, result)
    return result


def _plan(
    context: ServiceContext,
    snapshot: TableSnapshot,
    config: ServiceConfig,
    only_if_due: bool,
    now: Callable[[], float],
    *,
    locked: bool = True,
) -> CleanPlan:
    storage, timeline = snapshot.storage, snapshot.timeline
    if only_if_due and not is_due(last_clean(storage, timeline), timeline, config):
        return CleanPlan(config.clean_policy)
    reads = stability.instants(storage.uri, timeline.completed_writes())
    archived = archived_left(snapshot)
    if locked and archived.mark and not archived.groups:
        _leave_mark(context, archived.mark)
    return make_clean_plan(
        snapshot, config, now=context.clock(now), open_reads=reads, archived=archived.groups
    )


def _leave_mark(context: ServiceContext, mark: str) -> None:
    """Leave the mark of archived replacements whose files are all gone, under the lock."""
    storage, folder = context.storage, context.table.history_folder
    older = [e.name for e in storage.list(folder) if is_mark(e.name) and e.name != mark]
    storage.publish(f"{folder}/{mark}", b"")
    for name in older:
        storage.delete(f"{folder}/{name}")


def roll_back_expired(context: ServiceContext, now: Callable[[], float] = time.time) -> tuple[str, ...]:
    """Roll back writes with expired heartbeats (policy LAZY); returns their instants.

    Half written files of dead writers go with them, and what an earlier rollback has left: with this policy no write
    does it when it begins.
    """
    storage = context.storage
    done = []
    with context.locked() as snapshot:
        marked, beating = markers.list_instants(storage), heartbeat.list_instants(storage)
        if marked or beating:  # the timeline is looked at after them
            snapshot = snapshot.reloaded()
        snapshot = rollback_executor.withdraw_overtaken(snapshot)
        for pending in reversed(snapshot.timeline.pending_writes()):
            if is_clustering(storage, snapshot.timeline, pending):
                continue
            if not context.is_alive(pending):
                rollback_executor.rollback_instant(snapshot, pending)
                snapshot = snapshot.reloaded()
                done.append(pending.time)
        snapshot = rollback_executor.finish_pending(snapshot, left=lambda r: not _is_over(r, now()))
        context.sweep(snapshot.timeline, marked, beating)
    return tuple(done)


def _is_over(rollback: Instant, now: float) -> bool:
    """Whether nobody is at a pending rollback.

    One of ours is only seen under the lock when its process died.  Apache Hudi's takes no lock, and would fail where
    another completes it.
    """
    return now - rollback.mtime_ms / 1000 > ROLLBACK_OVER_S


def finish_named(
    context: ServiceContext, instant: str, *, dry_run: bool = False
) -> tuple[CleanPlan, _Progress]:
    """Execute one unfinished clean plan, whoever began it.

    Raises:
        InstantNotFoundError: there is none of that instant.
        CorruptFileError, UnsupportedError: its plan cannot be read, or would do harm.
    """
    storage, snapshot = context.storage, context.look()
    pending = snapshot.timeline.pending(CLEAN)
    found = next((i for i in pending if i.time == instant), None)
    plan = None if found is None else pending_plan(storage, found)
    if plan is None:
        raise InstantNotFoundError(
            f"no cleaning {instant} is pending" if found is None else f"the cleaning {instant} has no plan",
            table=storage.uri,
            instant=instant,
            remedy=f"pending cleanings: {', '.join(i.time for i in pending) or 'none'}.",
        )
    _refuse_needed(snapshot, plan, instant)
    if dry_run:
        return plan, _Progress([])
    return plan, _execute(context, instant, plan, _undone(snapshot.timeline))


def finish_pending(
    context: ServiceContext, snapshot: TableSnapshot, now: Callable[[], float] = time.time
) -> tuple[str, ...]:
    """Execute unfinished clean plans, oldest first, but those that others may be at.

    The inflight file holds the plan too, and serves where the requested one is gone.  A cleaning whose files were
    never written whole is withdrawn.  The context has a warning of those that are left.
    """
    storage = context.storage
    done = []
    for listed in snapshot.timeline.pending(CLEAN):
        if _is_left(context, listed, now()):
            continue
        plan = pending_plan(storage, listed)
        if plan is None:
            with context.locked() as later:
                # Another process may have filled or completed it meanwhile.
                if is_pending(later.timeline, listed.time) and pending_plan(storage, listed) is None:
                    storage.delete(listed.path_in(INFLIGHT))
                    storage.delete(listed.path_in(REQUESTED))
            continue
        snapshot = snapshot.reloaded()
        instant = next((i for i in snapshot.timeline.pending(CLEAN) if i.time == listed.time), None)
        # Ended, taken back by a restore, or begun by another program since it was listed.
        if instant is None or (instant.state != listed.state and _is_left(context, instant, now())):
            continue
        _refuse_needed(snapshot, plan, instant.time)
        _execute(context, instant.time, plan, _undone(snapshot.timeline))
        done.append(instant.time)
    return tuple(done)


def _is_left(context: ServiceContext, clean: Instant, now: float) -> bool:
    """Whether a pending cleaning is left to the program that began it, with a warning."""
    if not begun_elsewhere(context.storage, clean, now):
        return False
    context.warnings.append(
        f"cleaning {clean.time} was begun by another program, which does not say whether it is alive; "
        f"if it is dead, finish it: `hudi clean PATH --instant {clean.time}`"
    )
    return True


def _refuse_needed(snapshot: TableSnapshot, plan: CleanPlan, instant: str) -> None:
    """Raise if an earlier plan deletes files needed by the newest snapshot or a savepoint."""
    storage, timeline = snapshot.storage, snapshot.timeline
    needed = {f.path: "the table" for f in snapshot.written().newest.values()}
    # Also what archived commits wrote, which is the newest again after a restore.
    # A read opens less of a long archive than the cleaning that made the plan did.
    left = archived_left(snapshot).groups
    slices = [
        s for s in newest_slices(replace(snapshot, lenient=True)) if (s.partition, s.file_id) not in left
    ]
    needed |= dict.fromkeys(paths_of(slices), "the table")
    needed |= {join_path(*file): "a savepoint" for file in savepointed_files(storage, timeline)}
    planned = sorted(join_path(p, n) for p, names in plan.files.items() for n in names)
    path = next((p for p in planned if p in needed), None)
    if path is not None:
        raise UnsupportedError(
            f"the planned cleaning would delete {path}, which {needed[path]} needs",
            table=storage.uri,
            instant=instant,
            file=path,
            remedy="the table was restored or savepointed since: "
            + ("delete the cleaning's requested and inflight files." if instant else "make the plan anew."),
        )


@dataclass
class _Progress:
    """Progress of a plan's execution.

    Attributes:
        left: partitions and names of files.
        failed: names of files that could not be deleted, by partition.
        undone: the rollbacks, restores and savepoints that the plan was compared with.
    """

    left: list[tuple[str, str]]
    deleted: int = 0
    failed: dict[str, list[str]] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()


def _execute(
    context: ServiceContext, instant: str, plan: CleanPlan, undone: frozenset[tuple[str, str]]
) -> _Progress:
    """Execute a requested plan until done or taken back.

    Args:
        undone: see `_Progress`.
    """
    storage = context.storage
    began = time.monotonic()
    progress = _Progress([(p, n) for p, names in plan.files.items() for n in names], undone=undone)
    while True:
        with context.locked() as snapshot:
            timeline = snapshot.timeline
            if not is_pending(timeline, instant):
                log.info("%s: cleaning %s was ended by another process", storage.uri, instant)
                return progress
            if _undone(timeline) != progress.undone:
                _refuse_needed(snapshot, replace(plan, files=_by_partition(progress.left)), instant)
                progress.undone = _undone(timeline)
            inflight = instant_path(context.table, instant, CLEAN, INFLIGHT)
            if storage.info(inflight) is None:
                try:
                    create_own(storage, inflight, replace(plan, guarded=True).to_bytes(storage.uri))
                except FileExistsError:
                    raise ConcurrentWriterError(
                        "another program has begun this cleaning meanwhile", table=storage.uri, instant=instant,
                        remedy="wait until it is completed; configure the same lock provider for all processes.",
                    ) from None  # fmt: skip
                check_begun(storage, inflight, instant_path(context.table, instant, CLEAN, REQUESTED))
            flush(storage, [inflight], written=False)  # the plan outlives what it deletes
            _delete_some(storage, progress)
            if not progress.left:
                verify_held()
                gone = _delete_folders(snapshot, plan)
                took_ms = int((time.monotonic() - began) * 1000)
                done = clean_metadata(instant, plan, progress.failed, gone, took_ms)
                if not publish_metadata(
                    storage, instant_path(context.table, instant, CLEAN, COMPLETED), done
                ):
                    log.info("%s: cleaning %s was finished by another process", storage.uri, instant)
                return progress
        rest()


def rest() -> None:
    """Pause to let waiting writers take the lock."""
    time.sleep(REST_S)


def _undone(timeline: Timeline) -> frozenset[tuple[str, str]]:
    """Instants that may need files of the plan again."""
    return frozenset((i.time, i.action) for a in (ROLLBACK, RESTORE, SAVEPOINT) for i in timeline.of(a))


def _by_partition(files: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for partition, name in files:
        out[partition] = (*out.get(partition, ()), name)
    return out


def _delete_some(storage: Storage, progress: _Progress) -> None:
    """Delete files for about a second, several at once."""

    def delete(path: tuple[str, str]) -> bool:
        try:
            storage.delete(join_path(*path))
        except StorageError as e:
            log.warning("%s: %s could not be deleted: %s", storage.uri, join_path(*path), e)
            return False
        return True

    until = time.monotonic() + LOCKED_S
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="hudi-clean") as pool:
        while progress.left:
            verify_held()  # once it is another's, a savepoint or restore of its may need them
            paths = progress.left[:_THREADS]
            # A few are not worth the threads.
            done = list(map(delete, paths) if len(progress.left) < _THREADS else pool.map(delete, paths))
            for (partition, name), good in zip(paths, done, strict=True):
                if good:
                    progress.deleted += 1
                else:
                    progress.failed.setdefault(partition, []).append(name)
            del progress.left[: len(paths)]
            flush(storage, [join_path(*path) for path in paths], written=False)
            if time.monotonic() >= until:
                return


def _delete_folders(snapshot: TableSnapshot, plan: CleanPlan) -> set[str]:
    """Delete empty partition folders, unless a writer is active.

    It may be about to write there.
    """
    storage = snapshot.storage
    if not plan.partitions or snapshot.reloaded().timeline.pending_writes():
        return set()
    gone = set()
    for partition in plan.partitions:
        if all(not e.is_dir and _says_nothing(e.name) for e in storage.list(partition)):
            storage.delete_dir(partition)
            gone.add(partition)
    return gone


def _says_nothing(name: str) -> bool:
    """Whether a file name may remain in an empty partition, such as Hadoop's checksums."""
    return name in METAFILES or (name.startswith(".") and name.endswith(".crc"))
