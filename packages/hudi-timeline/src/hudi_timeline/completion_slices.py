"""File slices of tables of version 8 and later: a log file belongs to the slice that its commit's completion meets.

The name of a log file carries the time of its own delta commit.  It belongs to the newest slice that was begun at or
before that commit was completed, so that a compaction need not wait for writers: what they complete after it was
scheduled is applied to its result.

Source: HoodieFileGroup.addLogFile and CompletionTimeQueryViewV2 of Apache Hudi 1.x; spec "v8 and v9 differences",
section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from hudi_format.model import LogFile
from hudi_format.names import log_sort_key
from hudi_format.storage import Storage
from hudi_timeline.history import history_instants
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import Timeline
from hudi_timeline.view import Group


class Completions:
    """When writes were completed.  The history is opened only where the active timeline does not say."""

    def __init__(self, storage: Storage, config: TableConfig, timeline: Timeline) -> None:
        self._storage = storage
        self._config = config
        self._first_active = timeline.first_active
        self._active = {i.time: i.completion for i in timeline.completed_writes()}

    def of(self, instant: str) -> str:
        """The time of completion; "" for a write that is not completed.

        Raises:
            CorruptFileError, MissingFileError: the history cannot be read.
        """
        found = self._active.get(instant)
        if found is not None:
            return found
        if instant >= self._first_active:
            return ""
        # Archived before the table's upgrade, which wrote down no time of completion.
        return self._archived.get(instant, instant)

    def is_completed(self, instant: str) -> bool:
        return instant in self._active or instant < self._first_active

    @cached_property
    def _archived(self) -> Mapping[str, str]:
        return {
            i.time: i.completion
            for i in history_instants(self._storage, self._config, until=self._first_active)
        }


def slice_instants(
    begun: Iterable[str], logs: Sequence[LogFile], completions: Completions
) -> dict[str, list[LogFile]]:
    """The log files of one group by the instant that began their slice; every slice that there is has an entry.

    Args:
        begun: the instants of completed base files and of pending compactions.
        logs: of completed instants.
    """
    slices: dict[str, list[LogFile]] = {instant: [] for instant in begun}
    for file in sorted(logs, key=log_sort_key):
        slices.setdefault(_begin_of(slices, file.instant, completions), []).append(file)
    return slices


def _begin_of(slices: Mapping[str, object], instant: str, completions: Completions) -> str:
    newest = max(slices, default=instant)
    if newest <= instant:  # and it was completed later still
        return newest if newest in slices else instant
    completion = completions.of(instant)
    if len(completion) != len(newest):  # times of the metadata table with a suffix
        completion = instant
    return max((s for s in slices if s <= completion), default=instant)


def newest_slice(
    group: Group, slices: Mapping[str, Sequence[LogFile]], pending: str, as_of: str | None
) -> tuple[str, list[LogFile]] | None:
    """The instant that began the newest slice, and its log files; None where there is none.

    A slice that a pending compaction began is given together with the one before it.

    Args:
        pending: the instant of the group's pending compaction, "" for none.
        as_of: slices that were begun later do not count, nor files of later instants; None for all.
    """
    begun = sorted(i for i in slices if as_of is None or i <= as_of)
    if as_of is None and not begun:
        return None
    first = begun[-1] if begun else ""
    files = list(slices[first]) if begun else []
    if first == pending and len(begun) > 1:
        first = begun[-2]
        files = [*slices[first], *files]
    if as_of is not None:
        # A commit that a compaction overtook is in a later slice.  Apache Hudi 1.x misses its log files as of its own
        # instant, and has its base files.
        later = (f for i, of in slices.items() if i > as_of for f in of)
        files = [f for f in (*files, *later) if f.instant <= as_of]
        if not begun and not files:
            return None
        first = first or min(f.instant for f in files)
    return first, sorted(files, key=log_sort_key)


__all__ = ["Completions", "newest_slice", "slice_instants"]
