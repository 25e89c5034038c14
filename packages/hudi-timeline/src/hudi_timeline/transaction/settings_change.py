"""Settings of a bucket index that change along with a replacecommit.

    under the lock: hoodie.properties says both, and who decides -> the commit -> hoodie.properties says the new ones

A process that dies in between leaves the first; the next write, or service, settles it by what became of the instant.
Whoever rolls the instant back, before or after its commit, takes the change back too.
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
    unsettled_resize,
)
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.timeline.commit_metadata import CommitMetadata

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
            _store(transaction.storage, self.change.done)
        except (HudiError, OSError) as e:
            transaction.warnings.append(f"{self.name} are left to the next write to complete: {e}")

    def undo(self) -> None:
        if self._transaction is not None:
            _store(self._transaction.storage, self.change.undone)


def settle(snapshot: TableSnapshot) -> TableSnapshot:
    """Complete or take back the change of a process that died, under the lock.

    That of a live one is left alone.

    Raises:
        CorruptFileError: what is to be changed cannot be read.
    """
    change = unsettled_resize(snapshot.config.properties)
    if change is None:
        return snapshot
    done = is_done(change, snapshot.timeline)
    if done is None:
        return snapshot
    _store(snapshot.storage, change.done if done else change.undone)
    return replace(snapshot, config=table_config.load(snapshot.storage))


def take_back(storage: Storage, instant: str) -> None:
    """Take the change of an undone instant back."""
    stored = table_config.load(storage).properties
    for change in (unsettled_resize(stored), last_resize(stored)):
        if change is not None and change.instant == instant:
            _store(storage, change.undone)
            return


def _store(storage: Storage, made: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
    stored = table_config.load(storage).properties
    new = made(stored)
    table_config.update(storage, new, [k for k in stored if k not in new])


__all__ = ["NewSettings", "settle", "take_back"]
