"""Instants: one action on the table in one state, and the names of their files.

Source: Hudi's timeline layout version 1 (table versions 5 and 6), HoodieInstant of 0.15.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from hudi_format.errors import CorruptFileError

REQUESTED = "REQUESTED"
INFLIGHT = "INFLIGHT"
COMPLETED = "COMPLETED"
_RANK = {REQUESTED: 0, INFLIGHT: 1, COMPLETED: 2}

COMMIT = "commit"
DELTA_COMMIT = "deltacommit"
REPLACE_COMMIT = "replacecommit"
COMPACTION = "compaction"
LOG_COMPACTION = "logcompaction"
CLEAN = "clean"
ROLLBACK = "rollback"
RESTORE = "restore"
SAVEPOINT = "savepoint"
INDEXING = "indexing"

WRITE_ACTIONS = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
ACTIONS = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING}

# A compaction ends as a commit, a log compaction as a delta commit: one instant, two actions.
_COMPARABLE = {COMPACTION: COMMIT, LOG_COMPACTION: DELTA_COMMIT}

# ASCII only: int() and the order of text must agree on what a digit is.
_NAME = re.compile(r"([0-9]+)\.([a-z]+)(?:\.([a-z]+))?\Z")


@total_ordering
@dataclass(frozen=True, slots=True)
class Instant:
    """One state of one action.

    Ordered by time, then action (a compaction counts as the commit that it becomes), then state.
    `file_name` is the name below `.hoodie`; `mtime_ms` its modification time, which version 6 uses
    as the completion time; `size` in bytes, -1 where it was not listed.
    """

    time: str
    action: str
    state: str
    file_name: str = ""
    mtime_ms: int = 0
    size: int = -1

    @property
    def completed(self) -> bool:
        return self.state == COMPLETED

    @property
    def comparable_action(self) -> str:
        return _COMPARABLE.get(self.action, self.action)

    @property
    def path(self) -> str:
        """The file's path below the table."""
        return f".hoodie/{self.file_name}"

    def _order(self) -> tuple[str, str, int]:
        return self.time, self.comparable_action, _RANK[self.state]

    def __lt__(self, other: object) -> bool:
        return self._order() < other._order() if isinstance(other, Instant) else NotImplemented

    def __str__(self) -> str:
        return f"{self.time} {self.action} {self.state.lower()}"


def parse_instant_file(name: str, *, mtime_ms: int = 0, size: int = -1) -> Instant | None:
    """The instant that a file of `.hoodie` stands for, or None where it is none.

    Names with unknown words are no instants: leftovers of writers' temporary files, and what later
    versions add.
    """
    match = _NAME.match(name)
    if match is None:
        return None
    time, word, state_word = match.groups()
    if word == "inflight" and state_word is None:
        return Instant(time, COMMIT, INFLIGHT, name, mtime_ms, size)
    if word not in ACTIONS:
        return None
    state = {None: COMPLETED, "inflight": INFLIGHT, "requested": REQUESTED}.get(state_word)
    if state is None or (state == COMPLETED and word in _COMPARABLE):
        return None
    return Instant(time, word, state, name, mtime_ms, size)


def file_name(time: str, action: str, state: str) -> str:
    """The name of an instant's file below `.hoodie`."""
    if state == COMPLETED:
        return f"{time}.{_COMPARABLE.get(action, action)}"
    if state == INFLIGHT and action == COMMIT:
        return f"{time}.inflight"
    return f"{time}.{action}.{state.lower()}"


def instant_path(time: str, action: str, state: str) -> str:
    """The path of an instant's file below the table."""
    return f".hoodie/{file_name(time, action, state)}"


def empty_file_error(instant: Instant, table: str) -> CorruptFileError:
    """The error for a completed write whose file holds nothing.

    No conforming writer publishes one; what it wrote or replaced cannot be known, so it is neither
    read as a commit nor passed over.
    """
    return CorruptFileError(
        f"the file of the completed {instant.action} is empty",
        table=table,
        instant=instant.time,
        file=instant.path,
        remedy="restore the file from a backup; if the write is known to have failed, delete "
        f"{instant.path} alone, and the next write rolls the instant back.",
    )
