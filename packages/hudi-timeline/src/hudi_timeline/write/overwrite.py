"""mode "overwrite": a table replaced by a new one, without losing the old one to a failure.

Apache Hudi deletes the path and starts anew.  Here the old table's files are first moved into one hidden
folder below the base path, which on object stores means that they are copied, and deleted only once the new
table has its first commit; a write that fails, or whose process dies, gives the old table back.

States, by what is on the storage: no aside folder - nothing to do; aside folder and a completed commit in the
new table - the old one can go; aside folder and no completed commit - the old one comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_format.errors import ConcurrentWriterError, NotAHudiTableError
from hudi_format.names import META_DIR
from hudi_format.storage import Storage
from hudi_timeline import heartbeat, table_config
from hudi_timeline.one_moment import has_no_folders
from hudi_timeline.timeline import load_timeline

ASIDE = ".hoodie_overwritten"
# There while everything of the old table, and nothing of the new one, lies in the aside folder.
MOVED = f"{ASIDE}/.moved"
PROPERTIES = "hoodie.properties"


def recover(storage: Storage) -> None:
    """Finish or undo an overwrite whose process died.

    Raises:
        ConcurrentWriterError: the overwriting process is alive.
    """
    if not (storage.list(ASIDE) if has_no_folders(storage) else storage.info(ASIDE)):
        return
    if _has_commit(storage):
        storage.delete_dir(ASIDE)
        return
    _restore(storage)


@contextmanager
def aside(storage: Storage) -> Iterator[None]:
    """Within: the base path is empty, to be filled with a new table.  An exception brings the old one back."""
    _set_aside(storage)
    try:
        yield
    except BaseException:
        if not _has_commit(storage):
            _restore(storage, own=True)
        raise
    storage.delete_dir(ASIDE)


def _set_aside(storage: Storage) -> None:
    storage.make_dir(ASIDE)
    # The table's metadata goes first: from then on the path is no table, and `recover` knows what to do.
    names = sorted((e.name for e in storage.list("") if e.name != ASIDE), key=lambda n: n != META_DIR)
    for name in names:
        _move(storage, name, f"{ASIDE}/{name}")
    storage.touch(MOVED)


def _move(storage: Storage, source: str, target: str) -> None:
    """Move a file or folder so that a table's metadata is there whole, or is no table.

    Where a move is a copy and a deletion, a crash may come between any two files: the properties, without
    which there is no table, go first and come last.
    """
    if storage.is_local or PROPERTIES not in {e.name for e in storage.list(source)}:
        storage.rename(source, target)
        return
    others = sorted(e.name for e in storage.list(source) if e.name != PROPERTIES)
    for name in (*others, PROPERTIES):
        storage.copy(f"{source}/{name}", f"{target}/{name}")
    storage.delete(f"{source}/{PROPERTIES}")
    storage.delete_dir(source)


def _restore(storage: Storage, *, own: bool = False) -> None:
    if storage.info(MOVED) is not None:
        # What lies beside the aside folder is the new table's; without the mark it is still the old one's.
        if not own:
            _refuse_if_alive(storage)
        for entry in storage.list(""):
            if entry.name != ASIDE:
                storage.delete_dir(entry.name) if entry.is_dir else storage.delete(entry.name)
        storage.delete(MOVED)
    _move_back(storage)


def _move_back(storage: Storage) -> None:
    # The metadata comes last, so that the table is whole once it is a table.
    names = sorted((e.name for e in storage.list(ASIDE)), key=lambda n: n == META_DIR)
    for name in names:
        _move(storage, f"{ASIDE}/{name}", name)
    storage.delete_dir(ASIDE)


def _refuse_if_alive(storage: Storage) -> None:
    try:
        config = table_config.load(storage)
    except NotAHudiTableError:
        return
    for instant in load_timeline(storage, config).pending_writes():
        state = heartbeat.liveness(storage, instant.time)
        if state.alive:
            raise ConcurrentWriterError(
                "the table is being overwritten by another writer",
                table=storage.uri,
                instant=instant.time,
                remedy="wait for it to end.",
            )


def _has_commit(storage: Storage) -> bool:
    try:
        config = table_config.load(storage)
    except NotAHudiTableError:
        return False
    return bool(load_timeline(storage, config).completed_writes())
