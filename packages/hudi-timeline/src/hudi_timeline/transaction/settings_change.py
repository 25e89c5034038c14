"""Settings of a bucket index that change along with a replacecommit.

    under the lock: hoodie.properties says both, and who decides -> the commit -> hoodie.properties says the new ones

A process that dies in between leaves the first; the next write, or service, settles it by what became of the instant.
Whoever rolls the instant back, before or after its commit, takes the change back too; for Apache Hudi the next write
does so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hudi_format.errors import HudiError
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.bucket_settings import (
    SettingsChange,
    is_done,
    last_resize,
    resizes,
    settled,
    unsettled_resize,
)
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction.ring_files import delete_rings

if TYPE_CHECKING:
    from hudi_timeline.transaction.transaction import Transaction


@dataclass
class NewSettings:
    """Participant of a replacecommit that changes the settings of the index."""

    change: SettingsChange
    name: str = "the settings of the index in hoodie.properties"
    _transaction: Transaction | None = field(default=None, repr=False)

    def prepare(self, transaction: Transaction, metadata: CommitMetadata) -> None:
        self._transaction = transaction
        table_config.update(transaction.storage, self.change.announced())

    def publish(self) -> None:
        transaction = self._transaction
        if transaction is None:
            return
        try:
            # Who held the lock in between, and found the commit, has completed it, and may have resized again.
            if _is_unsettled(transaction.storage, self.change):
                _store(transaction.storage, self.change.done)
        except (HudiError, OSError) as e:
            transaction.warnings.append(f"{self.name} are left to the next write to complete: {e}")

    def undo(self) -> None:
        if self._transaction is not None:  # what others made of the settings since the lock was lost stays
            take_back(self._transaction.storage, self.change.instant)


def settle(snapshot: TableSnapshot) -> TableSnapshot:
    """Complete or take back the change of a process that died, under the lock.

    That of a live one is left alone.  What Apache Hudi has undone is taken back too, with its rings.

    Raises:
        CorruptFileError: what is to be changed cannot be read.
    """
    storage, stored, timeline = snapshot.storage, snapshot.config.properties, snapshot.timeline
    change = unsettled_resize(stored)
    if change is not None and is_done(change, timeline) is None:
        return snapshot
    new = settled(stored, timeline)
    if new is stored:
        return snapshot
    kept = {c.instant for c in resizes(new)}
    for one in (*resizes(stored), *([] if change is None else [change])):
        if one.instant not in kept:
            delete_rings(storage, one.instant)
    _store(storage, lambda now: settled(now, timeline))
    return replace(snapshot, config=table_config.load(storage))


def take_back(storage: Storage, instant: str) -> None:
    """Take the change of an undone instant back."""
    stored = table_config.load(storage).properties
    for change in (unsettled_resize(stored), last_resize(stored)):
        if change is not None and change.instant == instant:
            _store(storage, change.undone)
            return


def _is_unsettled(storage: Storage, change: SettingsChange) -> bool:
    found = unsettled_resize(table_config.load(storage).properties)
    return found is not None and found.instant == change.instant


def _store(storage: Storage, made: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
    stored = table_config.load(storage).properties
    new = made(stored)
    table_config.update(storage, new, [k for k in stored if k not in new])
