"""Records of earlier cleanings.

Source: CleanerUtils and CleanMetadataMigrator of Apache Hudi 0.15.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_format.storage.protocol import Storage
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import CLEAN, Instant

SAVEPOINTED = "savepointed_timestamps"


@dataclass(frozen=True, slots=True)
class LastClean:
    """The newest completed cleaning.

    Attributes:
        earliest: the oldest instant whose files it kept; "" where it went by versions, or says nothing.
        last_commit: the newest commit when it was planned; "" where it does not say.
        savepoints: the savepoints that it spared.
    """

    instant: str
    earliest: str = ""
    last_commit: str = ""
    savepoints: tuple[str, ...] = ()


def last_clean(storage: Storage, timeline: Timeline) -> LastClean | None:
    """The newest completed cleaning of the active timeline, or None.

    Raises:
        CorruptFileError: its metadata cannot be read.
    """
    done: list[Instant] = [i for i in timeline.of(CLEAN) if i.completed]
    if not done:
        return None
    newest = done[-1]
    if newest.size == 0:  # Apache Hudi's readers take an empty file for a cleaning that says nothing
        return LastClean(newest.time)
    try:
        record = avro_files.read_record(storage, "HoodieCleanMetadata", newest.path, newest.time)
    except FileNotFoundError:
        return LastClean(newest.time)
    spared = str((record.get("extraMetadata") or {}).get(SAVEPOINTED) or "")
    return LastClean(
        newest.time,
        str(record.get("earliestCommitToRetain") or ""),
        str(record.get("lastCompletedCommitTimestamp") or ""),
        tuple(t for t in spared.split(",") if t),
    )
