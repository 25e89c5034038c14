"""Index in an SQLite file, for the writers of one machine.

    hoodie.index.class=sqlite
    hudi.index.argument.path=/var/lib/hudi/trips.sqlite

The file belongs to one table.  Changes are transactions of SQLite, so that a process which dies leaves the state before
or after one.  A network file system is no place for it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_format.errors import ConflictingOptionError, CorruptFileError, InvalidOptionError, StorageError
from hudi_index.custom_index.index_class import IndexedTable, StoreChange, StoredIndex, StoredKeys

_FORMAT = 1
_AT_ONCE = 500  # variables of a statement: any build of SQLite takes 999
_WAIT_SECONDS = 60.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS file_groups "
    "(number INTEGER PRIMARY KEY, partition TEXT NOT NULL, file_id TEXT NOT NULL, UNIQUE (partition, file_id))",
    "CREATE TABLE IF NOT EXISTS instants (number INTEGER PRIMARY KEY, instant TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS places (key TEXT NOT NULL, file_group INTEGER NOT NULL, instant INTEGER NOT NULL, "
    "PRIMARY KEY (key, file_group)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS places_of_groups ON places (file_group)",
)


class SqliteIndex(StoredIndex):
    """Index in an SQLite file.

    Args:
        arguments: `path` of the file, on a disk of this machine; it is made if it is not there.
    """

    def __init__(self, arguments: Mapping[str, str]) -> None:
        others = sorted(set(arguments) - {"path"})
        path = arguments.get("path", "").strip()
        if others or not path:
            raise InvalidOptionError(
                f"the index sqlite takes no {', '.join(others)}"
                if others
                else "the index sqlite has no file",
                remedy="give hudi.index.argument.path, the path of its file, and nothing else.",
            )
        self._path = os.path.abspath(path)

    def store(self, table: IndexedTable) -> SqliteStore:
        made = SqliteStore(self._path, table.uri)
        made.open()
        return made


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """Store in an SQLite file.

    Attributes:
        path: of the file.
        table: URI of the table that it belongs to.
    """

    path: str
    table: str

    def open(self) -> None:
        """Make the file, or check whose it is.

        Raises:
            ConflictingOptionError: another table's, or of another format.
            StorageError, CorruptFileError.
        """
        with self._transaction() as db:
            for statement in _TABLES:
                db.execute(statement)
            said = dict(db.execute("SELECT name, value FROM about").fetchall())
            if not said:
                db.executemany(
                    "INSERT INTO about VALUES (?, ?)", [("format", str(_FORMAT)), ("table", self.table)]
                )
            elif (said.get("format"), said.get("table")) != (str(_FORMAT), self.table):
                raise ConflictingOptionError(
                    f"the file of the index belongs to {said.get('table')!r}, in its format {said.get('format')!r}",
                    table=self.table,
                    file=self.path,
                    remedy="give each table a file of its own in hudi.index.argument.path.",
                )

    def note(self) -> str:
        with self._reading() as db:
            return _note(db)

    def change(self, change: StoreChange) -> bool:
        with self._transaction() as db:
            if _note(db) != change.after:
                return False
            if change.renew:
                _clear(db)
            db.execute("INSERT OR IGNORE INTO instants (instant) VALUES (?)", (change.instant,))
            (instant,) = db.execute(
                "SELECT number FROM instants WHERE instant = ?", (change.instant,)
            ).fetchone()
            numbers = [self._group(db, group) for group in change.groups]
            db.execute("CREATE TEMP TABLE held (key TEXT NOT NULL, file_group INTEGER NOT NULL)")
            of_key = (
                np.array(numbers or [0], dtype=np.int64)[change.group].tolist() if len(change.keys) else []
            )
            db.executemany(
                "INSERT INTO held VALUES (?, ?)", zip(change.keys.to_pylist(), of_key, strict=True)
            )
            if not change.renew:
                db.execute("CREATE INDEX held_keys ON held (key, file_group)")
                db.executemany(
                    "DELETE FROM places WHERE file_group = ? AND NOT EXISTS (SELECT 1 FROM held WHERE "
                    "held.key = places.key AND held.file_group = places.file_group)",
                    [(n,) for n in numbers],
                )
            db.execute(
                "INSERT OR IGNORE INTO places SELECT key, file_group, ? FROM held ORDER BY key", (instant,)
            )
            db.execute("INSERT OR REPLACE INTO about VALUES ('note', ?)", (change.note,))
        return True

    def find(self, keys: pa.Array) -> StoredKeys:
        asked = sorted(keys.to_pylist())
        rows: list[tuple[str, int, int]] = []
        with self._reading() as db:
            for at in range(0, len(asked), _AT_ONCE):
                part = asked[at : at + _AT_ONCE]
                marks = ",".join("?" * len(part))
                rows += db.execute(
                    f"SELECT key, file_group, instant FROM places WHERE key IN ({marks})", part
                ).fetchall()
            groups = {
                n: (p, i) for n, p, i in db.execute("SELECT number, partition, file_id FROM file_groups")
            }
            instants = dict(db.execute("SELECT number, instant FROM instants").fetchall())
        try:
            of_group, group_at = np.unique([r[1] for r in rows], return_inverse=True)
            of_instant, instant_at = np.unique([r[2] for r in rows], return_inverse=True)
            return StoredKeys(
                pa.array([r[0] for r in rows], pa.string()),
                group_at.astype(np.int64),
                tuple(groups[int(n)] for n in of_group),
                instant_at.astype(np.int64),
                tuple(instants[int(n)] for n in of_instant),
            )
        except KeyError as e:
            raise CorruptFileError(
                f"the index has keys of a file group or instant {e} that it does not know", file=self.path
            ) from None

    @staticmethod
    def _group(db: sqlite3.Connection, group: tuple[str, str]) -> int:
        db.execute("INSERT OR IGNORE INTO file_groups (partition, file_id) VALUES (?, ?)", group)
        found = db.execute("SELECT number FROM file_groups WHERE partition = ? AND file_id = ?", group)
        return int(found.fetchone()[0])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as db:
            db.execute("BEGIN")  # one state for all statements
            try:
                yield db
            finally:
                db.rollback()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.commit()
            finally:
                if db.in_transaction:
                    db.rollback()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)) as db:
                yield db
        except sqlite3.OperationalError as e:  # locked for too long, no folder, no space
            raise StorageError(
                f"the index cannot be read or written: {e}", table=self.table, file=self.path,
                remedy="correct hudi.index.argument.path, or end the process that holds the file.",
            ) from None  # fmt: skip
        except sqlite3.DatabaseError as e:
            raise CorruptFileError(
                f"the index cannot be read: {e}", table=self.table, file=self.path,
                remedy="delete the file: the next write makes it anew.",
            ) from None  # fmt: skip


def _note(db: sqlite3.Connection) -> str:
    found = db.execute("SELECT value FROM about WHERE name = 'note'").fetchone()
    return "" if found is None else str(found[0])


def _clear(db: sqlite3.Connection) -> None:
    for name in ("places", "file_groups", "instants"):
        db.execute(f"DELETE FROM {name}")
    db.execute("DELETE FROM about WHERE name = 'note'")
