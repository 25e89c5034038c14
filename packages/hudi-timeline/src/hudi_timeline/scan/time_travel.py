"""Whether the table can be read as of an instant, and where open commits make an answer unsteady.

Source: TimelineUtils.validateTimestampAsOf and handleHollowCommitIfNeeded of Apache Hudi 0.15.
"""

from __future__ import annotations

from hudi_format.errors import HollowCommitError, InstantNotFoundError
from hudi_format.storage import Storage
from hudi_timeline.history import history_files
from hudi_timeline.instant import CLEAN, Instant
from hudi_timeline.metadata import avro_records
from hudi_timeline.scan.stability import open_writes
from hudi_timeline.table_config import META_FOLDER, TableConfig
from hudi_timeline.timeline import Timeline, is_clustering


def first_open_write(storage: Storage, timeline: Timeline) -> Instant | None:
    """The oldest write that is not completed.  A pending clustering changes no rows and does not count."""
    return next((i for i in timeline.pending_writes() if not is_clustering(storage, timeline, i)), None)


def has_archive(storage: Storage, config: TableConfig) -> bool:
    """Whether instants were ever moved from the active timeline to the archive."""
    if config.layout_version == 2:
        return bool(history_files(storage, config))
    folder = f"{META_FOLDER}/{config.archive_folder}"
    return any(not e.is_dir and "archive" in e.name for e in storage.list(folder))


def earliest_retained(storage: Storage, timeline: Timeline) -> str:
    """The oldest instant whose files the last clean kept; "" where no clean says."""
    completed = [i for i in timeline.of(CLEAN) if i.completed and i.size != 0]
    if not completed:
        return ""
    last = completed[-1]
    record = avro_records.parse("HoodieCleanMetadata", storage.read(last.path), path=last.path)
    return str(record.get("earliestCommitToRetain") or "")


def check_as_of(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> None:
    """Make sure that the table as of `instant` is still there, and will not change.

    Raises:
        HollowCommitError: a commit at or before that time is still open.
        InstantNotFoundError: files of that time were cleaned; the message names the oldest readable instant.
    """
    pending = first_open_write(storage, timeline)
    if pending is not None and instant >= pending.time:
        blocking = open_writes(storage, timeline, until=instant)
        raise HollowCommitError(
            f"cannot read as of {instant}: " + "; ".join(str(b) for b in blocking),
            table=storage.uri,
            instant=pending.time,
            remedy=f"read as of an instant before {pending.time}, or wait until its writer ends; "
            "the next write rolls it back if its writer is dead.",
            blocked_by=blocking,
        )
    oldest = earliest_retained(storage, timeline)
    writes = timeline.completed_writes()
    if not oldest and writes:
        # A clean that keeps file versions does not say from when on all files are there, and what was
        # archived was cleaned before.
        cleaned = any(i.completed for i in timeline.of(CLEAN)) or has_archive(storage, config)
        oldest = writes[0].time if cleaned else ""
    if instant < oldest:
        raise InstantNotFoundError(
            f"cannot read as of {instant}: files of that time were cleaned",
            table=storage.uri,
            instant=instant,
            remedy=f"the oldest instant that can be read is {oldest}; keep more commits with "
            "hoodie.cleaner.commits.retained.",
            oldest=oldest,
        )
