"""Catch-up of a store of keys: what it lacks of a table's completed commits.

A store has a note of the commits that it knows.  Its next change reads the keys of the file groups that newer commits
touched, as these now are.  It is made anew where commits that it knows were undone, where a restore or an undone commit
came in between, and where what came in between may be archived already.

Nothing of a pending write ever goes into a store, so nothing has to be taken back when one fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_format.errors import CorruptFileError
from hudi_index.custom_index.index_class import StoreChange
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slices import newest_slices_of, slices_of_groups
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.key_changes import slice_keys
from hudi_timeline.timeline.action_metadata import RollbackMetadata, read_action
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import RESTORE, ROLLBACK, Instant


@dataclass(frozen=True, slots=True)
class StoreNote:
    """Note of a store: the active timeline that it was last brought up to.

    Attributes:
        writes: completed writes, with the modification time of each one's file: a table that was made anew may have
            the same instants.
        undone: completed rollbacks and restores.
        pending: instants in any other state.
        newest: newest instant of all.
    """

    writes: Mapping[str, int]
    undone: frozenset[str]
    pending: frozenset[str]
    newest: str

    @classmethod
    def of(cls, timeline: Timeline) -> StoreNote:
        """Note of a store that knows all of a timeline."""
        return cls(
            {i.time: i.mtime_ms for i in timeline.completed_writes()},
            frozenset(i.time for i in _undoing(timeline)),
            frozenset(i.time for i in timeline.instants if not i.completed),
            max((i.time for i in timeline.instants), default=""),
        )

    @classmethod
    def parse(cls, text: str) -> StoreNote:
        """Note from its text.

        Raises:
            CorruptFileError: it is none.
        """
        try:
            said: dict[str, Any] = json.loads(text)
            writes = {str(t): int(at) for t, at in said["writes"].items()}
            return cls(writes, frozenset(said["undone"]), frozenset(said["pending"]), str(said["newest"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
            raise CorruptFileError(
                f"the note of the index cannot be read: {e!r}", remedy="run `hudi index rebuild`."
            ) from None

    def text(self) -> str:
        """Text of the note, the same for equal notes."""
        return json.dumps(
            {
                "writes": dict(sorted(self.writes.items())),
                "undone": sorted(self.undone),
                "pending": sorted(self.pending),
                "newest": self.newest,
            }
        )

    def is_ahead(self, timeline: Timeline) -> bool:
        """Whether it knows of writes that a timeline lacks: later ones, or undone ones."""
        return not self.writes.keys() <= {i.time for i in timeline.completed_writes()}


def next_change(snapshot: TableSnapshot, text: str, *, anew: bool = False) -> StoreChange | None:
    """Change that a store lacks; None where it is up to date.

    Args:
        snapshot: loaded after the store's note was read, where the note is ahead of an earlier one.
        text: the note, "" of an empty store.
        anew: whatever the store has.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading commits and file slices.
    """
    writes = snapshot.timeline.completed_writes()
    note = StoreNote.of(snapshot.timeline)
    known = StoreNote.parse(text) if text and not anew else None
    if known is not None and not _must_renew(snapshot, known):
        missing = [i for i in writes if i.time not in known.writes]
        if not missing and not _undoing_since(snapshot.timeline, known):
            return None
        touched = _touched(snapshot, missing)
        return _change(snapshot, text, note, sorted(touched), missing)
    return _change(snapshot, text, note, None, list(writes))


def _must_renew(snapshot: TableSnapshot, known: StoreNote) -> bool:
    """Whether what a store knows may be wrong where no newer commit says so."""
    timeline = snapshot.timeline
    first, archived = timeline.first_active, timeline.archived()
    completed = {i.time: i.mtime_ms for i in timeline.completed_writes()}
    there = {i.time for i in timeline.instants}
    if any(completed.get(t, at if t in archived else None) != at for t, at in known.writes.items()):
        return True  # undone, or of a table that was made anew
    if known.newest < first or any(t < first and t not in there for t in known.pending):
        return True  # what was completed in between may be archived
    for instant in _undoing_since(timeline, known):
        if instant.action == RESTORE:
            return True
        did = read_action(snapshot.storage, instant)
        if not isinstance(did, RollbackMetadata) or known.writes.keys() & set(did.commits):
            return True
    return False


def _undoing(timeline: Timeline) -> list[Instant]:
    return [i for i in timeline.instants if i.action in (ROLLBACK, RESTORE) and i.completed]


def _undoing_since(timeline: Timeline, known: StoreNote) -> list[Instant]:
    return [i for i in _undoing(timeline) if i.time not in known.undone]


def _touched(snapshot: TableSnapshot, missing: list[Instant]) -> set[Group]:
    """File groups whose keys may have changed."""
    found: set[Group] = set()
    for instant in missing:
        commit = snapshot.commits.get(instant)
        if commit.compacted:
            continue
        # A base file that was rewritten with updates alone has the keys that it had.
        found |= {
            (s.partition, s.file_id)
            for s in commit.stats
            if s.num_inserts or s.num_deletes or s.prev_commit in ("", "null") or ".log." in s.path
        }
        found |= commit.replaced_groups
    return found


def _change(
    snapshot: TableSnapshot, after: str, note: StoreNote, touched: list[Group] | None, by: list[Instant]
) -> StoreChange:
    """Change of file groups to what they hold now.

    Args:
        touched: None for all of the table.
        by: writes that the change goes by.
    """
    slices = newest_slices_of(snapshot) if touched is None else slices_of_groups(snapshot, set(touched))
    groups = [(s.partition, s.file_id) for s in slices] if touched is None else touched
    keys = slice_keys(snapshot, slices)
    number = {g: n for n, g in enumerate(groups)}
    own = [number[s.partition, s.file_id] for s in slices]
    return StoreChange(
        after,
        note.text(),
        touched is None,
        tuple(groups),
        pa.concat_arrays([pa.array([], pa.string()), *keys]),
        np.repeat(np.array(own, dtype=np.int64), [len(of) for of in keys]),
        max((i.time for i in by), default=""),
    )
