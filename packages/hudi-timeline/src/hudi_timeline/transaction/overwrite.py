"""Mode "overwrite": a new table built beside the old one and switched in atomically.

    lock of the table { no live writer? -> a room below `.hoodie`, with a heartbeat }
    the new table, as any other, in <room>/table
    lock of the table { no live writer? -> the new table's commit -> <room>/.switch
                        -> the old table's files out, hoodie.properties first: this decides it -> <room>/.cleared
                        -> the new table's files in, hoodie.properties last -> the room is deleted }

A task of a writer of the old table may close its file later still, and nobody may be left to look for it.  So the new
table's properties say which instants are of the old one: all that there were at the switch, and all that there may have
been when the new table was begun, whose first instant is later.  Whatever has such an instant in its name is no file of
the new table (`OverwrittenInstants`).  The name of a file says the same, for CREATE TABLE of Apache Hudi writes the
properties anew.

Until the switch the old table is what it was, also for other writers where the policy allows several.  A process that
dies before it leaves a room, which the next write removes; one that dies after it leaves no table, until the next write
has finished the switch.  Other writers of the old table end at their next step: their instants are gone.  Nobody looks
for partitions below `.hoodie`, so that no reader takes the files of the one table for those of the other.

Apache Hudi deletes the path and starts anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from hudi_format.errors import ConcurrentWriterError, HudiError
from hudi_format.file_names import META_DIR
from hudi_format.model import OverwrittenInstants
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
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import (
    ListedFolder,
    Timeline,
    list_folder,
    overwritten_by_names,
    overwritten_path,
)
from hudi_timeline.timeline.instant import INSTANT_DIGITS, parse_instant_file
from hudi_timeline.timeline.instant_generator import new_instant
from hudi_timeline.transaction.orphans import STAGING
from hudi_timeline.transaction.rollback_guard import refuse_alive

CLEARED = f"{ROOM}/.cleared"
NEW = f"{ROOM}/table"
OLD = f"{ROOM}/old"
_BEAT = "0" * INSTANT_DIGITS  # the name of the room's heartbeat: no instant has it
_TIMELINE = f"{META_DIR}/{table_config.DEFAULT_TIMELINE}"
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
        self,
        storage: Storage,
        options: TransactionConfig,
        lock: locks.TableLock,
        beat: heartbeat.Heartbeat,
        until: str,
    ) -> None:
        self.storage = open_beside(storage, f"{storage.uri}/{NEW}")
        self.options = replace(options, lock=LockConfig(), failed_writes=EAGER)
        self.switched = False
        self._until = until
        self._table = storage
        self._given = options
        self._lock = lock
        self._beat = beat

    def named(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The new table's properties, with the newest instant that the old one may have.

        Raises:
            ClockError: an instant of the old table lies ahead.
        """
        if not self._given.instant:  # else the given one has to be later than those that are known
            known = Timeline(overwritten=OverwrittenInstants(self._until))
            self._until = new_instant(known, TableConfig(properties), table=self._table.uri)
        return {**properties, **({table_config.OVERWRITTEN_UNTIL: self._until} if self._until else {})}

    @contextmanager
    def switching(self, instant: str, has_commit: Callable[[], bool]) -> Iterator[None]:
        """Scope of the new table's commit, followed by the switch.

        Args:
            instant: that of the commit.

        Raises:
            ConcurrentWriterError: a writer of the old table is alive or has taken the same instant, or another one took
                this write for dead.
        """
        with self._lock.held():
            old = _instants(self._table, self._given, list_folder(self._table))
            if instant in old:
                raise ConcurrentWriterError(
                    "a writer of the table that is overwritten has begun at the same instant",
                    table=self._table.uri, instant=instant, remedy="run the write again.",
                )  # fmt: skip
            self._lock.verify()
            self._beat.check()
            yield
            if has_commit():
                known = OverwrittenInstants(self._until)
                until = max(old, default="")
                if until > known.until:
                    known = OverwrittenInstants(until, instant)
                    entries = {table_config.OVERWRITTEN_UNTIL: until, table_config.OVERWRITTEN_BY: instant}
                    table_config.update(self.storage, entries)
                if known.until:
                    create_if_absent(self.storage, overwritten_path(known), b"")
                self._lock.verify()
                create_if_absent(self._table, SWITCH, b"")
                flush(self._table, [SWITCH], written=False)
                _switch(self._table, self._beat, is_first=True)
                self.switched = True


@contextmanager
def replacing(
    storage: Storage, old: TableConfig, options: TransactionConfig, caller: RunningCall
) -> Iterator[Replacement]:
    """Scope of an overwrite; without a switch the new table is removed.

    Args:
        old: configuration of the table that is to be replaced.

    Raises:
        ConcurrentWriterError: a writer of the table is alive (policy EAGER), or another one overwrites it.
        ClockError: where the new table is made, see `Replacement.named`.
    """
    lock = lock_of(storage, options)
    beat = None
    try:
        with lock.held():
            listed = list_folder(storage)
            if listed.has(ROOM):
                settle(storage)
                listed = list_folder(storage)
            until = max(_instants(storage, options, listed), default="")
            beat = heartbeat.start(_room(storage), _BEAT, *options.beats, call=caller)
        replacement = Replacement(storage, options, lock, beat, max(until, old.overwritten.until))
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
    who = state.process
    return ConcurrentWriterError(
        "the table is being overwritten" + (f" by {who}" if who else ""),
        table=storage.uri,
        remedy=f"wait for it to end and run the write again; if its writer is known to be dead, delete "
        f"{ROOM}/{heartbeat.heartbeat_path(_BEAT)}, and the next write mends the table.",
        host=owner.host if owner else "",
        pid=owner.pid if owner else 0,
    )


def _instants(storage: Storage, options: TransactionConfig, listed: ListedFolder) -> set[str]:
    """Instants of the old table, and the newest one of the table that it has overwritten.

    Args:
        listed: the folder `.hoodie`, listed just now.

    Raises:
        ConcurrentWriterError: another writer is active and the policy forbids it.
    """
    if options.failed_writes == EAGER:
        try:
            timeline = load_snapshot(storage, table_config.load(storage), listed=listed).timeline
        except ConcurrentWriterError:
            raise
        except HudiError:
            pass  # what cannot be read is replaced all the same
        else:
            for write in timeline.pending_writes():
                refuse_alive(storage, write, options)
            return {timeline.overwritten.until, *(i.time for i in timeline.instants)}
    folders = {META_DIR: listed.entries}
    if listed.has(_TIMELINE):
        folders[_TIMELINE] = storage.list(_TIMELINE)
    found = (parse_instant_file(e.name, folder) for folder, of in folders.items() for e in of if not e.is_dir)
    known = overwritten_by_names(e.name for e in listed.entries)
    return {known.until, *(i.time for i in found if i is not None)}


def _is_decided(storage: Storage) -> bool:
    """Whether a started switch can only be finished."""
    if storage.info(SWITCH) is None:
        return False
    return storage.info(table_config.PROPERTIES_FILE) is None or storage.info(CLEARED) is not None


# --- the switch: each step may be repeated --------------------------------------------------------------


def _switch(storage: Storage, beat: heartbeat.Heartbeat | None, *, is_first: bool = False) -> None:
    if is_first or storage.info(CLEARED) is None:
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
    found = {f"{META_DIR}/{e.name}": e.is_dir for e in storage.list(META_DIR) if e.name not in _KEPT}
    paths = sorted(found, key=lambda p: p not in (table_config.PROPERTIES_FILE, table_config.BACKUP_FILE))
    found |= {e.name: e.is_dir for e in storage.list("")}
    paths += [p for p in found if p not in paths and p != META_DIR and not p.startswith(STAGING)]
    for path in paths:
        _take_away(storage, path, is_dir=found[path])
        if path == table_config.PROPERTIES_FILE:
            flush(storage, [path], written=False)  # decided: else what follows might be all that is done
    flush(storage, [table_config.PROPERTIES_FILE], written=False)


def _take_away(storage: Storage, path: str, *, is_dir: bool) -> None:
    if storage.is_local:  # in one step, however much it is
        storage.rename(path, f"{OLD}/{uuid.uuid4().hex}")
    elif is_dir:
        storage.delete_dir(path)
    else:
        storage.delete(path)


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
        there = storage.info(path)
        if there is not None:  # what tasks of the old table's writers made since
            _take_away(storage, path, is_dir=there.is_dir)
        storage.rename(f"{NEW}/{path}", path)
    flush(storage, [table_config.PROPERTIES_FILE], written=False)
