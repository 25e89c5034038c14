"""Instant generator: table-zone wall clock, after all instants of the table.

Instants are compared as text, so a clock that is behind (another zone, the end of summer time, a
machine set wrong) would hide a write behind older ones.  A small difference is stepped over, a greater
one is an error, but for the rollback of a write that had its instant already: to refuse it would leave the write open
until the clock has passed the newest instant.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from hudi_format.errors import ClockError, ConcurrentWriterError, InvalidOptionError
from hudi_format.fork_safe import ProcessLock
from hudi_format.storage.local import TICK_MS
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.options.transaction_options import WRITE_INSTANT
from hudi_timeline.table_config import TIMEZONE, TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import (
    REQUESTED,
    format_instant,
    instant_path,
    next_instant,
    parse_instant,
    zone_of,
)

# Within this, an instant in the future comes from a clock that is a little ahead, or from another
# instant of the same millisecond.
TOLERANCE = timedelta(seconds=1)

TRIES_FOR_INSTANT = 5
"""Instants that are tried where files of others, who do not take our lock, are in the way."""

_lock = ProcessLock()
_last_given: dict[str, str] = {}  # by time zone property


def new_instant(
    timeline: Timeline,
    config: TableConfig,
    now: Callable[[], float] = time.time,
    *,
    table: str = "",
    at: str | None = None,
    however_far: bool = False,
) -> str:
    """New instant time, after every instant of the timeline and those generated before.

    Those of a table whose place this one took count as instants of the timeline.

    Args:
        now: seconds since the epoch.
        table: for error messages only.
        at: the instant to take, if it may be taken.
        however_far: a clock that is behind is no error: the instant is the next one after the table's newest.

    Raises:
        ClockError: the clock is more than a second behind an instant of the table, or that one is no time.
        InvalidOptionError: `at` is no instant, not later than the table's, or later than now.

    The caller holds the table's lock from loading `timeline` until the requested file is there.
    """
    with _lock.threads:
        moment = datetime.fromtimestamp(now(), zone_of(config.timezone)).replace(tzinfo=None)
        newest = max(timeline.newest_time, timeline.overwritten.until)
        if at:
            return _checked(at, newest, moment, table)
        instant = format_instant(moment)
        if instant <= newest:
            instant = _step_over(newest, moment, config, table, however_far)
        last = _last_given.get(config.timezone, "")
        # Where the process's own memory is far ahead, the clock was set back or summer time ended; the
        # table's instants alone decide then.
        if instant <= last and parse_instant(last) - parse_instant(instant) <= TOLERANCE:
            instant = next_instant(last)
        _last_given[config.timezone] = instant
        return instant


def request_instant(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    action: str,
    content: bytes,
    now: Callable[[], float] = time.time,
    *,
    however_far: bool = False,
) -> str:
    """Request an action of a table service, under the table's lock; returns its new instant.

    A requested file that is there already belongs to a process that does not take our lock; the next millisecond is
    free.

    Args:
        content: the plan.
        however_far: as of `new_instant`.

    Raises:
        ConcurrentWriterError: others have taken each of the instants tried.
        ClockError, StorageError.
    """
    for _ in range(TRIES_FOR_INSTANT):
        instant = new_instant(timeline, config, now, table=storage.uri, however_far=however_far)
        path = instant_path(config, instant, action, REQUESTED)
        try:
            create_own(storage, path, content)
        except FileExistsError:
            continue
        flush(storage, [path], written=False)
        return instant
    raise ConcurrentWriterError(
        f"other processes took each of the instants tried for a {action}", table=storage.uri,
        remedy="run it again; configure the same lock provider for all processes.",
    )  # fmt: skip


def _checked(given: str, newest: str, moment: datetime, table: str) -> str:
    """The given instant.

    One in the future would stop writers until then.
    """
    try:
        time_of = parse_instant(given)
    except ValueError:
        time_of = None
    if time_of is None or format_instant(time_of) != given:
        why = "is no instant time (yyyyMMddHHmmssSSS)"
    elif given <= newest:
        why = f"is not later than the table's newest instant, {newest}"
    elif time_of - moment > TOLERANCE:
        why = f"is later than the clock, which says {format_instant(moment)}"
    else:
        return given
    raise InvalidOptionError(
        f"{WRITE_INSTANT}={given} {why}",
        table=table,
        remedy="give a later one, which has passed; or leave it out.",
        option=WRITE_INSTANT,
    )


def wait_for_next_tick(written_ms: int) -> None:
    """Wait until new files get a later modification time than `written_ms`.

    A time that lies ahead, of another machine's clock, is not waited for.
    """
    passed_ms = time.time() * 1000 - written_ms
    if 0 <= passed_ms < TICK_MS:
        time.sleep((TICK_MS - passed_ms) / 1000)


def _step_over(newest: str, moment: datetime, config: TableConfig, table: str, however_far: bool) -> str:
    try:
        ahead = parse_instant(newest) - moment
    except ValueError:
        ahead = timedelta.max
    if ahead <= TOLERANCE or (however_far and ahead != timedelta.max):
        return next_instant(newest)
    by = "" if ahead == timedelta.max else f" {ahead.total_seconds():,.1f} s"
    raise ClockError(
        f"the clock says {format_instant(moment)} ({TIMEZONE}={config.timezone}), which is{by} "
        f"before the table's instant {newest}",
        table=table,
        instant=newest,
        remedy="set this machine's clock and time zone (TZ) to those of the table's other writers, "
        "or wait until the clock has passed that instant.",
        timezone=config.timezone,
        clock=format_instant(moment),
    )
