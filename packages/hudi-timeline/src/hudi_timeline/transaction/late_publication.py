"""Late publications: commits of a writer that had lost the lock when its file appeared.

A process may be stopped between its last look at the lock and the creation of that file, for longer than its lease.
Others may have rolled it back meanwhile, or have committed without knowing of it.  So it looks again afterwards: where
the lock was its own all the time, nobody has done anything; else it takes the lock anew and takes back what must not
stand.  Who has seen it in between finds a write that is gone, which is a conflict.
"""

from __future__ import annotations

from contextlib import ExitStack

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError, StorageError, WriteConflictError
from hudi_format.storage.open import flush
from hudi_timeline.concurrency.heartbeat import Heartbeat
from hudi_timeline.concurrency.locks.provider import TableLock
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.active_timeline import completion_ms
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import INFLIGHT, REQUESTED, RESTORE, ROLLBACK, file_name, zone_of
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_plan import make_rollback_plan, read_plan, target_of
from hudi_timeline.transaction.write_basis import Basis


def check(
    lock: TableLock, checked: TableSnapshot, instant: str, action: str, metadata: CommitMetadata
) -> str:
    """Check that the lock was not lost before the write was published; gives a warning, or "".

    Args:
        checked: the table under the lock, when the write was found to be free of conflicts.
        metadata: what was published.

    Raises:
        ConcurrentWriterError: it was rolled back before, and is withdrawn.
        WriteConflictError: others have changed the table since, and it is rolled back.
    """
    with ExitStack() as stack:
        now, lost = anew(lock, checked, stack)
        return lost if now is None else _settle(now, checked, instant, action, metadata, lost)


def check_plan(
    lock: TableLock, checked: TableSnapshot, instant: str, action: str, path: str, beat: Heartbeat
) -> str:
    """Check the same of the execution of a plan; gives a warning, or "".

    What others do beside it does not harm it, but for a rollback, which deletes its files.  Beats that were late harm
    nothing where nobody has acted on it.

    Args:
        action: of the plan.
        path: of the completed file.
        beat: of the execution, whose file another execution at the same instant replaces.

    Raises:
        ConcurrentWriterError: it was rolled back before, and is withdrawn.
    """
    with ExitStack() as stack:
        now, lost = anew(lock, checked, stack)
        if now is None:
            return lost
        if not _is_begun(now, instant, action) or beat.is_taken or is_being_undone(now, instant):
            now.storage.delete(path)
            flush(now.storage, [path], written=False)
            raise _gone(now.storage.uri, instant, lost)
    return ""


def anew(lock: TableLock, checked: TableSnapshot, stack: ExitStack) -> tuple[TableSnapshot | None, str]:
    """The table under the lock, which was lost and is taken anew, and how it was lost.

    None where it was not lost, and where it cannot be had, with a warning then.

    Args:
        checked: the table under the lock before.
        stack: gives the lock back when it ends.
    """
    try:
        lock.verify()
    except (LockError, StorageError, OSError) as e:
        lost = e.message if isinstance(e, HudiError) else str(e)
    else:
        return None, ""
    try:
        lock.lock.release()
        stack.enter_context(lock.held())
        return checked.reloaded(), lost
    except (LockError, StorageError, OSError) as e:  # the commit is visible: nothing was found against it
        return None, (
            f"the lock was lost while the commit was published ({lost}), and cannot be had again to look after it: {e}"
        )


def _is_begun(now: TableSnapshot, instant: str, action: str) -> bool:
    return all(now.timeline.has_file(file_name(instant, action, state)) for state in (REQUESTED, INFLIGHT))


def is_being_undone(now: TableSnapshot, instant: str) -> bool:
    """Whether a rollback of the instant, or a restore, is not finished: files may be gone."""
    timeline = now.timeline
    plans = (read_plan(now.storage, r) for r in timeline.pending(ROLLBACK))
    return any(p is not None and target_of(p).time == instant for p in plans) or any(
        r.time > instant for r in timeline.pending(RESTORE)
    )


def _settle(
    now: TableSnapshot, checked: TableSnapshot, instant: str, action: str, metadata: CommitMetadata, lost: str
) -> str:
    storage, timeline = now.storage, now.timeline
    own = next((i for i in timeline.completed_writes() if (i.time, i.action) == (instant, action)), None)
    if own is None:
        raise _gone(storage.uri, instant, lost)
    if not _is_begun(now, instant, action) or is_being_undone(now, instant):
        # Its files are gone: nobody can have built on it.
        storage.delete(own.path)
        flush(storage, [own.path], written=False)
        raise _gone(storage.uri, instant, lost)
    known = Basis.of(checked.config, checked.timeline)
    changes = known.changes(now.config, timeline)
    others = [i for i in changes.written if i != own]
    met = [i for i in others if _meets(now.commits.get(i), metadata)]
    if not (met or changes.undone or changes.restores or changes.properties or changes.untold):
        return ""
    zone = zone_of(now.config.timezone)
    published = completion_ms(own, zone)
    # It may stand on this one.  On a local disk not one of the same time: whoever sees a commit waits for the next
    # tick of the clock.  Other stores may tell no more than the second.
    last_before = published if storage.is_local else published - 1
    if any(completion_ms(i, zone) > last_before for i in others):
        return (
            f"the lock was lost while the write was published ({lost}), and others have changed the same "
            "before and after it, so that it cannot be taken back; compare the rows"
        )
    rollback_executor.rollback_instant(now, own, plan=make_rollback_plan(storage, timeline, own), own=True)
    raise WriteConflictError(
        f"the table changed after this process had lost the lock ({lost}), and the write is rolled back",
        table=storage.uri,
        instant=instant,
        remedy="run the write again; it then builds on what is there.",
        rival=max((i.time for i in met), default=""),
    )


def _meets(rival: CommitMetadata, ours: CommitMetadata) -> bool:
    """Whether two writes that did not know of each other cannot both stand."""
    return bool(rival.file_groups() & ours.file_groups()) or rival.schema_text != ours.schema_text


def _gone(table: str, instant: str, lost: str) -> ConcurrentWriterError:
    return ConcurrentWriterError(
        f"this write was rolled back by another writer after this process had lost the lock ({lost})",
        table=table,
        instant=instant,
        remedy="run the write again; where processes stop for long, raise the lease of the lock.",
    )
