"""Mode "overwrite": a new table built beside the old one and switched in atomically.

    lock of the table { no live writer? -> a room below `.hoodie`, with a heartbeat }
    the new table, as any other, in <room>/table
    lock of the table { no live writer? -> the new table's commit -> <room>/.switch
                        -> the old table's files out, hoodie.properties first: this decides it -> <room>/.cleared
                        -> the new table's files in, hoodie.properties last -> the room is deleted }

Until the switch the old table is what it was, also for other writers where the policy allows several.  A process that
dies before it leaves a room, which the next write removes; one that dies after it leaves no table, until the next write
has finished the switch.  Other writers of the old table end at their next step: their instants are gone.  Nobody looks
for partitions below `.hoodie`, so that no reader takes the files of the one table for those of the other.

Apache Hudi deletes the path and starts anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from hudi_format.errors import ConcurrentWriterError, HudiError
from hudi_format.file_names import META_DIR
from hudi_format.storage.open import flush, open_beside
from hudi_format.storage.protocol import Storage, has_no_folders
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks import provider as locks
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.concurrency.own_files import create_if_absent
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options.transaction_config import EAGER, LockConfig, TransactionConfig
from hudi_timeline.table_config import OVERWRITE_ROOM as ROOM
from hudi_timeline.table_config import OVERWRITE_SWITCH as SWITCH
from hudi_timeline.timeline.instant import INSTANT_DIGITS
from hudi_timeline.transaction.orphans import STAGING
from hudi_timeline.transaction.rollback_guard import refuse_alive

CLEARED = f"{ROOM}/.cleared"
NEW = f"{ROOM}/table"
OLD = f"{ROOM}/old"
_BEAT = "0" * INSTANT_DIGITS  # the name of the room's heartbeat: no instant has it
# What stays in `.hoodie`: the room, and what lock providers keep there, which is held.
_KEPT = (ROOM.rpartition("/")[2], ".locks", "lock")


def about_scope(operation: str, asked: str | None, *, anew: bool) -> tuple[str, ...]:
    """Warnings of a write that replaces more or less of the table than its options say.

    Args:
        asked: what `hoodie.datasource.overwrite.mode` says, STATIC for all and DYNAMIC for partitions.
        anew: whether the table is made anew.
    """
    if anew and (asked == "DYNAMIC" or (asked is None and operation == "insert_overwrite")):
        return (
            'mode("overwrite") makes the table anew with these rows alone, as in Apache Hudi, where partitions were '
            'asked for: mode("append") with the operation insert_overwrite replaces those of the rows',
        )
    if not anew and asked == "STATIC" and operation == "insert_overwrite":
        return (
            "hoodie.datasource.overwrite.mode=STATIC counts in SQL only, as in Apache Hudi: the partitions of the rows "
            "are replaced; the operation insert_overwrite_table replaces all",
        )
    return ()


class Replacement:
    """The new table of an overwrite.

    Attributes:
        storage: where the new table is made.
        options: of its transaction, whose lock is its own.
        switched: whether it has taken the place.
    """

    def __init__(
        self, storage: Storage, options: TransactionConfig, lock: locks.TableLock, beat: heartbeat.Heartbeat
    ) -> None:
        self.storage = open_beside(storage, f"{storage.uri}/{NEW}")
        self.options = replace(options, lock=LockConfig(), failed_writes=EAGER)
        self.switched = False
        self._table = storage
        self._given = options
        self._lock = lock
        self._beat = beat

    @contextmanager
    def switching(self, has_commit: Callable[[], bool]) -> Iterator[None]:
        """Scope of the new table's commit, followed by the switch.

        Raises:
            ConcurrentWriterError: a writer of the old table is alive, or another one took this write for dead.
        """
        with self._lock.held():
            _refuse_writers(self._table, self._given)
            self._lock.verify()
            self._beat.check()
            yield
            if has_commit():
                self._lock.verify()
                create_if_absent(self._table, SWITCH, b"")
                flush(self._table, [SWITCH], written=False)
                _switch(self._table, self._beat)
                self.switched = True


@contextmanager
def replacing(storage: Storage, options: TransactionConfig, caller: RunningCall) -> Iterator[Replacement]:
    """Scope of an overwrite; without a switch the new table is removed.

    Raises:
        ConcurrentWriterError: a writer of the table is alive (policy EAGER), or another one overwrites it.
    """
    lock = lock_of(storage, options)
    beat = None
    try:
        with lock.held():
            settle(storage)
            _refuse_writers(storage, options)
            beat = heartbeat.start(
                _room(storage), _BEAT, options.heartbeat_interval_ms, options.heartbeat_misses, call=caller
            )
        replacement = Replacement(storage, options, lock, beat)
        yield replacement
        if not replacement.switched:
            _remove(storage, lock)
    except BaseException as e:
        if beat is not None:
            try:
                if not _remove(storage, lock):
                    e.add_note("The new table is complete; the next write puts it into its place.")
            except (HudiError, OSError) as undo_error:
                e.add_note(f"The new table could not be removed ({undo_error}); the next write sees to it.")
        raise
    finally:
        if beat is not None:
            beat.give_up()


def _remove(storage: Storage, lock: locks.TableLock) -> bool:
    """Remove an unswitched table; False where the switch is decided."""
    with lock.held():
        if _is_decided(storage):
            return False
        storage.delete_dir(ROOM)
        return True


def settle(storage: Storage, *, beside_others: bool = False) -> bool:
    """Finish or undo the overwrite of a dead process, under the table's lock.

    Args:
        beside_others: leave one alone that goes on.

    Returns:
        Whether the table is another one now.

    Raises:
        ConcurrentWriterError: its process is alive.
    """
    if not (storage.list(ROOM) if has_no_folders(storage) else storage.info(ROOM)):
        return False
    state = heartbeat.liveness(_room(storage), _BEAT, to_act=True)
    if state.alive:
        if beside_others:
            return False
        raise _overwritten(storage, state)
    decided = _is_decided(storage)
    if decided:
        _switch(storage, None)
    else:
        storage.delete_dir(ROOM)
    return decided


def finish(storage: Storage, options: TransactionConfig) -> bool:
    """Finish the switch of a dead process where no table exists; whether one exists now.

    Raises:
        ConcurrentWriterError: its process is alive.
    """
    if storage.info(SWITCH) is None:
        return False
    with lock_of(storage, options).held():
        settle(storage)
    return True


def _room(storage: Storage) -> Storage:
    return open_beside(storage, f"{storage.uri}/{ROOM}")


def _overwritten(storage: Storage, state: heartbeat.Liveness) -> ConcurrentWriterError:
    owner = state.owner
    who = f" by process {owner.pid} on {owner.host}" if owner is not None and owner.pid else ""
    return ConcurrentWriterError(
        f"the table is being overwritten{who}",
        table=storage.uri,
        remedy=f"wait for it to end and run the write again; if its writer is known to be dead, delete "
        f"{ROOM}/{heartbeat.heartbeat_path(_BEAT)}, and the next write mends the table.",
        host=owner.host if owner else "",
        pid=owner.pid if owner else 0,
    )


def _refuse_writers(storage: Storage, options: TransactionConfig) -> None:
    """Raise if another writer is active and the policy forbids it."""
    if options.failed_writes != EAGER:
        return
    try:
        pending = load_snapshot(storage, table_config.load(storage)).timeline.pending_writes()
    except ConcurrentWriterError:
        raise
    except HudiError:
        return  # what cannot be read is replaced all the same
    for write in pending:
        refuse_alive(storage, write, options)


def _is_decided(storage: Storage) -> bool:
    """Whether a started switch can only be finished."""
    if storage.info(SWITCH) is None:
        return False
    return storage.info(table_config.PROPERTIES_FILE) is None or storage.info(CLEARED) is not None


# --- the switch: each step may be repeated --------------------------------------------------------------


def _switch(storage: Storage, beat: heartbeat.Heartbeat | None) -> None:
    if storage.info(CLEARED) is None:
        _clear(storage)
        create_if_absent(storage, CLEARED, b"")
        flush(storage, [CLEARED], written=False)
    _move_in(storage)
    if beat is not None:
        beat.halt()  # else it might make the room anew while it is removed
    storage.delete(SWITCH)
    flush(storage, [SWITCH], written=False)
    storage.delete_dir(ROOM)


def _clear(storage: Storage) -> None:
    """Remove the old table, its properties first, which ends the table."""
    storage.make_dir(OLD)
    paths = [f"{META_DIR}/{e.name}" for e in storage.list(META_DIR) if e.name not in _KEPT]
    paths.sort(key=lambda p: p not in (table_config.PROPERTIES_FILE, table_config.BACKUP_FILE))
    paths += [e.name for e in storage.list("") if e.name != META_DIR and not e.name.startswith(STAGING)]
    for path in paths:
        _take_away(storage, path)
        if path == table_config.PROPERTIES_FILE:
            flush(storage, [path], written=False)  # decided: else what follows might be all that is done
    flush(storage, [table_config.PROPERTIES_FILE], written=False)


def _take_away(storage: Storage, path: str) -> None:
    if storage.is_local:  # in one step, however much it is
        storage.rename(path, f"{OLD}/{uuid.uuid4().hex}")
        return
    found = storage.info(path)
    if found is not None:
        storage.delete_dir(path) if found.is_dir else storage.delete(path)


def _move_in(storage: Storage) -> None:
    """Move the new table into place, its properties last, which makes it a table."""
    paths = [e.name for e in storage.list(NEW) if e.name != META_DIR]
    inner = [f"{META_DIR}/{e.name}" for e in storage.list(f"{NEW}/{META_DIR}") if e.name not in _KEPT]
    paths += sorted(inner, key=lambda p: p == table_config.PROPERTIES_FILE)
    for path in paths:
        if path == table_config.PROPERTIES_FILE:
            flush(storage, [path], written=False)
        if not storage.is_local:
            storage.copy(f"{NEW}/{path}", path)
            continue
        if storage.info(path) is not None:  # what tasks of the old table's writers made since
            _take_away(storage, path)
        storage.rename(f"{NEW}/{path}", path)
    flush(storage, [table_config.PROPERTIES_FILE], written=False)
