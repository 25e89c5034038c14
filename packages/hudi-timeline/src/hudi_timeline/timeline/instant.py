"""Instants: an action in one state, and the names of its files.

Layout 1 (table versions 5 and 6): `.hoodie/<requested>.<action>[.<state>]`.  Layout 2 (8 and 9): in a folder of
their own, and the name of a completed one says when it was: `<requested>_<completion>.<action>`.

Source: HoodieInstant of Apache Hudi 0.15, InstantFileNameParserV2 of 1.x.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import total_ordering
from typing import Protocol, TypeVar

from hudi_format.errors import (
    CorruptFileError,
    InstantNotFoundError,
    MissingFileError,
    StaleSnapshotError,
    UnsupportedError,
)
from hudi_format.file_names import META_DIR
from hudi_format.storage.protocol import Storage
from hudi_format.storage.stable_reads import read_whole
from hudi_timeline.table_config import TableConfig

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
_NAME = re.compile(r"([0-9]+)(?:_([0-9]+))?\.([a-z]+)(?:\.([a-z]+))?\Z")


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
        """Path of the file below the table."""
        return f"{self.folder}/{self.file_name}"

    def path_in(self, state: str, completion: str = "") -> str:
        """Path of the instant's file of another state.

        Args:
            completion: see `file_name`.
        """
        return f"{self.folder}/{file_name(self.time, self.action, state, completion)}"

    def order(self) -> tuple[str, str, int, str]:
        """Sort key of instants."""
        return self.time, self.comparable_action, _RANK[self.state], self.completion

    def __lt__(self, other: object) -> bool:
        return self.order() < other.order() if isinstance(other, Instant) else NotImplemented

    def __str__(self) -> str:
        return f"{self.time} {self.action} {self.state.lower()}"


def parse_instant_file(
    name: str, folder: str = META_DIR, *, mtime_ms: int = 0, size: int = -1
) -> Instant | None:
    """The instant of a file of the timeline, or None.

    Names with unknown words are no instants: leftovers of writers' temporary files, and what later
    versions add.

    Args:
        folder: the timeline's, below the table; names in one of its own have completion times.
    """
    match = _NAME.match(name)
    if match is None:
        return None
    time, completion, word, state_word = match.groups()
    by_completion = folder != META_DIR
    if completion is not None and not by_completion:
        return None
    if word == "inflight" and state_word is None and completion is None:
        return Instant(time, COMMIT, INFLIGHT, name, mtime_ms, size, folder=folder)
    if word not in ACTIONS and not (by_completion and word == CLUSTERING):
        return None
    state = _state(word, state_word)
    if state is None or (completion is not None and state != COMPLETED):
        return None
    return Instant(time, word, state, name, mtime_ms, size, completion or "", folder)


def _state(action: str, word: str | None) -> str | None:
    """State of an instant by the second word of its file name; None for invalid names."""
    state = {None: COMPLETED, "inflight": INFLIGHT, "requested": REQUESTED}.get(word)
    if state == COMPLETED and action in _COMPARABLE:
        return None
    # Apache Hudi's is `<time>.inflight`, and its timelines leave out the other name.
    return None if state == INFLIGHT and action == COMMIT else state


def unknown_action(name: str) -> bool:
    """Whether a file name is that of an instant with an unknown action."""
    match = _UNKNOWN.match(name)
    return match is not None and match[1] not in ACTIONS | {CLUSTERING, "inflight", "tmp"}


def instant_key(name: str) -> tuple[str, str]:
    """Time and comparable action of a requested or inflight instant's file."""
    time, _, rest = name.partition(".")
    word = rest.partition(".")[0]
    action = COMMIT if rest == "inflight" else word
    return time, _COMPARABLE.get(action, action)


def file_name(time: str, action: str, state: str, completion: str = "") -> str:
    """File name of an instant in the timeline's folder.

    Args:
        completion: of a completed instant where names have completion times; else "".
    """
    if state == COMPLETED:
        stem = f"{time}_{completion}" if completion else time
        return f"{stem}.{_COMPARABLE.get(action, action)}"
    if state == INFLIGHT and action == COMMIT:
        return f"{time}.inflight"
    return f"{time}.{action}.{state.lower()}"


def instant_path(config: TableConfig, time: str, action: str, state: str, completion: str = "") -> str:
    """Path below the table of a file of an instant, as the table's version names it.

    Of an instant that was listed ask `Instant.path` and `Instant.path_in`.

    Args:
        completion: see `file_name`.
    """
    return f"{config.timeline_folder}/{file_name(time, action, state, completion)}"


def empty_file_error(instant: Instant, table: str) -> CorruptFileError:
    """Error for a completed write with an empty file.

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


# Instant times: text of 17 digits, `yyyyMMddHHmmssSSS`, wall clock of the table's time zone.
#
# Old tables have 14 digits, read as if the milliseconds were 999; metadata tables append a suffix of
# three digits.  Instants are compared as text.

INSTANT_DIGITS = 17
_DIGITS = re.compile(r"\d+\Z")
_FORMS = (
    ("%Y-%m-%d", 10), ("%Y-%m-%d %H:%M", 16), ("%Y-%m-%d %H:%M:%S", 19), ("%Y-%m-%d %H:%M:%S.%f", 23)
)  # fmt: skip


def format_instant(moment: datetime) -> str:
    """Instant time of a wall-clock moment, truncated to milliseconds."""
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def parse_instant(instant: str) -> datetime:
    """The wall-clock moment of an instant, without zone.

    Raises:
        ValueError: not an instant time, such as the bootstrap instants `00000000000001`.
    """
    if not _DIGITS.match(instant) or len(instant) < 14:
        raise ValueError(f"not an instant time: {instant!r}")
    parts = (instant[:4], instant[4:6], instant[6:8], instant[8:10], instant[10:12], instant[12:14])
    base = datetime(*map(int, parts))  # type: ignore[arg-type]
    millis = int(instant[14:INSTANT_DIGITS]) if len(instant) >= INSTANT_DIGITS else 999
    return base + timedelta(milliseconds=millis)


def next_instant(instant: str) -> str:
    """The smallest instant time after `instant`."""
    return format_instant(parse_instant(instant) + timedelta(milliseconds=1))


def zone_of(timezone_property: str) -> tzinfo | None:
    """Zone of `hoodie.table.timeline.timezone`; None is this machine's local zone."""
    return UTC if timezone_property.upper() == "UTC" else None


class Committed(Protocol):
    """Result of a write, which stands for its instant."""

    @property
    def instant(self) -> str: ...


def named_instant(value: str | Committed) -> str:
    """Instant time of a text, or of a write's result."""
    return value if isinstance(value, str) else str(getattr(value, "instant", value))


def parse_query_instant(value: str | date | Committed, zone: tzinfo | None = None) -> str:
    """Instant time of a user's time: text, a date or datetime, or the result of a write.

    Text is digits, or `yyyy-MM-dd` with optional time.

    A datetime with a zone, and an ISO text that ends in one (`Z`, `+02:00`), is turned into the table's zone.

    Raises:
        InstantNotFoundError: another form; the message lists the forms that are accepted.
    """
    if isinstance(value, datetime) and value == value:  # pandas' NaT is a datetime, and equals nothing
        try:
            return format_instant(value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value)
        except OverflowError:  # the year 10000, or that before 1, in the table's zone
            raise InstantNotFoundError(
                f"{value} is not within the years 1 to 9999 of the table's time zone",
                remedy="give a time within them.",
            ) from None
    if isinstance(value, date) and value == value:
        value = value.isoformat()
    value = getattr(value, "instant", value)
    text = value.strip() if isinstance(value, str) else ""
    if _DIGITS.match(text) and len(text) in (14, INSTANT_DIGITS):
        return text
    for pattern, length in _FORMS:
        normal = text.replace("T", " ", 1)
        if len(normal) != length:
            continue
        try:
            moment = datetime.strptime(normal, pattern)
        except ValueError:
            break
        # Seconds without a fraction mean the whole second, as for instants of 14 digits.
        return format_instant(moment)[:14] + "999" if length == 19 else format_instant(moment)
    with_zone = _with_zone(text)
    if with_zone is not None:
        instant = parse_query_instant(with_zone, zone)
        return instant if "." in text else instant[:14] + "999"
    number = isinstance(value, int) and not isinstance(value, bool)
    raise InstantNotFoundError(
        f"cannot read {value!r} as a point in time"
        + (": states of a Hudi table have no numbers" if number else ""),
        remedy="give an instant of history() (14 or 17 digits), 'yyyy-MM-dd', 'yyyy-MM-dd HH:mm:ss' "
        "or 'yyyy-MM-dd HH:mm:ss.SSS', the latter two also with a zone such as +02:00.",
    )


def _with_zone(text: str) -> datetime | None:
    """Moment of an ISO text with a time zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


_T = TypeVar("_T")


def read_instant(storage: Storage, instant: Instant, parse: Callable[[bytes], _T]) -> _T:
    """Parsed content of an instant's file; a completed one is awaited.

    What others left in lower states is read as it is: by who undoes it, when its writer is gone.

    Raises:
        StaleSnapshotError: the file is not there any more.
        CorruptFileError, UnsupportedError: as `parse` raised them, with table, instant and file.
    """
    try:
        if instant.completed:
            return read_whole(storage, instant.path, parse)
        return parse(storage.read(instant.path))
    except FileNotFoundError:
        raise gone_since(instant, storage.uri) from None
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, instant=instant.time, file=instant.path) from None


def gone_since(instant: Instant, table: str) -> StaleSnapshotError:
    """Error for an instant's file that was listed, and is gone."""
    return StaleSnapshotError(
        "the instant's file is missing",
        table=table,
        instant=instant.time,
        file=instant.path,
        remedy="read the table again: the instant was archived or rolled back meanwhile.",
    )


def plan_gone(storage: Storage, instant: Instant) -> MissingFileError:
    """Error for a pending compaction whose plan is not there, though its inflight file may be."""
    if instant.state == REQUESTED or storage.info(instant.path) is None:
        return gone_since(instant, storage.uri)
    if instant.action == COMPACTION:
        lost = "the plan of the pending compaction is missing, and with it which slices it began"
        remedy = (
            "do not delete the inflight file; restore the plan from a backup, or in a table of version 6 make it anew: "
            f"`hudi compact repair PATH {instant.time}`."
        )
    else:
        lost = f"the plan of the pending {instant.action} is missing"
        remedy = f"roll it back: `hudi rollback PATH {instant.time}`."
    return MissingFileError(
        lost, table=storage.uri, instant=instant.time, file=instant.path_in(REQUESTED), remedy=remedy
    )
