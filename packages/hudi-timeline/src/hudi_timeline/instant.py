"""Instants: one action on the table in one state, and the names of their files.

Layout 1 (table versions 5 and 6): `.hoodie/<requested>.<action>[.<state>]`.  Layout 2 (8 and 9): in a folder of
their own, and the name of a completed one says when it was: `<requested>_<completion>.<action>`.

Source: HoodieInstant of Apache Hudi 0.15, InstantFileNameParserV2 of 1.x.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from hudi_format.errors import CorruptFileError
from hudi_format.names import META_DIR

REQUESTED = "REQUESTED"
INFLIGHT = "INFLIGHT"
COMPLETED = "COMPLETED"
_RANK = {REQUESTED: 0, INFLIGHT: 1, COMPLETED: 2}

COMMIT = "commit"
DELTA_COMMIT = "deltacommit"
REPLACE_COMMIT = "replacecommit"
CLUSTERING = "clustering"  # layout 2 only, while it is pending
COMPACTION = "compaction"
LOG_COMPACTION = "logcompaction"
CLEAN = "clean"
ROLLBACK = "rollback"
RESTORE = "restore"
SAVEPOINT = "savepoint"
INDEXING = "indexing"

WRITE_ACTIONS = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
ACTIONS = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING}

# A compaction ends as a commit, a log compaction as a delta commit, in layout 2 a clustering as a
# replacecommit: one instant, two actions.
_COMPARABLE = {COMPACTION: COMMIT, LOG_COMPACTION: DELTA_COMMIT, CLUSTERING: REPLACE_COMMIT}

_UNKNOWN = re.compile(r"[0-9]{14,17}(?:_[0-9]{14,17})?\.([a-z]+)(?:\.(?:requested|inflight))?\Z")
# ASCII only: int() and the order of text must agree on what a digit is.
_NAME = re.compile(r"([0-9]+)\.([a-z]+)(?:\.([a-z]+))?\Z")
_NAME_2 = re.compile(r"([0-9]+)(?:_([0-9]+))?\.([a-z]+)(?:\.([a-z]+))?\Z")


@total_ordering
@dataclass(frozen=True, slots=True)
class Instant:
    """One state of one action.

    Ordered by time, then action (a compaction counts as the commit that it becomes), then state.
    `file_name` is the name in `folder`; `mtime_ms` its modification time, which version 6 uses
    as the completion time; `size` in bytes, -1 where it was not listed.  `completion` is the time of completion that
    a table of layout 2 says, in the table's time zone; "" elsewhere, and while the instant is pending.
    """

    time: str
    action: str
    state: str
    file_name: str = ""
    mtime_ms: int = 0
    size: int = -1
    completion: str = ""
    folder: str = META_DIR

    @property
    def completed(self) -> bool:
        return self.state == COMPLETED

    @property
    def comparable_action(self) -> str:
        return _COMPARABLE.get(self.action, self.action)

    @property
    def path(self) -> str:
        """The file's path below the table."""
        return f"{self.folder}/{self.file_name}"

    def order(self) -> tuple[str, str, int, str]:
        """What instants are sorted by."""
        return self.time, self.comparable_action, _RANK[self.state], self.completion

    def __lt__(self, other: object) -> bool:
        return self.order() < other.order() if isinstance(other, Instant) else NotImplemented

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
    state = _state(word, state_word)
    if state is None:
        return None
    return Instant(time, word, state, name, mtime_ms, size)


def parse_instant_file_2(name: str, folder: str, *, mtime_ms: int = 0, size: int = -1) -> Instant | None:
    """The instant that a file of a timeline of layout 2 stands for, or None where it is none.

    Args:
        folder: the timeline's, below the table.
    """
    match = _NAME_2.match(name)
    if match is None:
        return None
    time, completion, word, state_word = match.groups()
    if word == "inflight" and state_word is None and completion is None:
        return Instant(time, COMMIT, INFLIGHT, name, mtime_ms, size, folder=folder)
    if word not in ACTIONS and word != CLUSTERING:
        return None
    state = _state(word, state_word)
    if state is None:
        return None
    if state != COMPLETED:
        if completion is not None:
            return None
        return Instant(time, word, state, name, mtime_ms, size, folder=folder)
    return Instant(time, word, state, name, mtime_ms, size, completion or "", folder)


def _state(action: str, word: str | None) -> str | None:
    """What the second word of a name says of an instant; None where no writer gives an action's file such a name."""
    state = {None: COMPLETED, "inflight": INFLIGHT, "requested": REQUESTED}.get(word)
    if state == COMPLETED and action in _COMPARABLE:
        return None
    # Apache Hudi's is `<time>.inflight`, and its timelines leave out the other name.
    return None if state == INFLIGHT and action == COMMIT else state


def unknown_action(name: str) -> bool:
    """Whether a file has the name of an instant of an action that is not known."""
    match = _UNKNOWN.match(name)
    return match is not None and match[1] not in ACTIONS | {CLUSTERING, "inflight", "tmp"}


def instant_key(name: str) -> tuple[str, str]:
    """The time and comparable action of the file of a requested or inflight instant."""
    time, _, rest = name.partition(".")
    word = rest.partition(".")[0]
    action = COMMIT if rest == "inflight" else word
    return time, _COMPARABLE.get(action, action)


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
