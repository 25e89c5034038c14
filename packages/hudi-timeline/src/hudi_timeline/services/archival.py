"""Archival: moves old instants from the active timeline to the archive.

    lock { entries of all states -> a new archive file -> files of pending states deleted -> completed ones, in order }

A process that dies on the way leaves instants in both places; the next archival writes them again, and readers of
the archive take an instant once.

Source: HoodieTimelineArchiver of Apache Hudi 0.15; spec "Timeline", section 8.
"""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, StorageError
from hudi_format.log.block import BlockType, HeaderKey
from hudi_format.log.encoder import avro_content, frame
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import ServiceConfig
from hudi_timeline.services.archive_planner import ArchivePlan, archive_entry, make_plan
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.archived_timeline import archive_files
from hudi_timeline.timeline.avro_files import ARCHIVED_ENTRY, parsed_schema, schema_text
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction import orphans

log = logging.getLogger("hudi")

_TOKEN = "1-0-1"
_NUMBER = re.compile(r"\.archive\.(\d+)_")
_TRIES = 100
_LOOKS = 5


@dataclass(frozen=True)
class ArchiveResult(HtmlView):
    """Result of an archival, or of its `dry_run`.

    Attributes:
        plan: the instants and their files.
        file: the archive file that it wrote, below the table; "" where there was nothing to do.
        seconds: how long it took.
    """

    plan: ArchivePlan
    file: str = ""
    seconds: float = 0.0

    def __repr__(self) -> str:
        if not self.plan:
            return "ArchiveResult(nothing to do)"
        first, last = self.plan.instants[0].time, self.plan.instants[-1].time
        where = f" into {self.file}" if self.file else ", not executed"
        return f"ArchiveResult({len(self.plan.instants):,} instants, {first} to {last}{where}; {self.seconds:.2f} s)"


def archive(
    context: ServiceContext, config: ServiceConfig | None = None, *, dry_run: bool = False
) -> ArchiveResult:
    """Archive the instants due.

    Args:
        config: what the context's options say, if not given.

    Raises:
        CorruptFileError: an instant's file cannot be read; nothing was moved.
        ConcurrentWriterError: others remove instants at the same time, without the lock.
        LockError, StorageError.
    """
    config = config or context.service_config()
    began = time.monotonic()
    storage = context.storage
    if dry_run:
        return ArchiveResult(make_plan(context.look(), config))
    with context.locked() as snapshot:
        plan, entries = _planned(context, snapshot, config)
        if plan.warning:
            context.warnings.append(plan.warning)
        if not plan:
            return ArchiveResult(plan, seconds=time.monotonic() - began)
        # Who was stopped until the lock was another's would archive what that one may have undone.
        context.check_lock()
        path = write_archive(storage, context.table, entries, config.archive_batch)
        context.check_lock()
        remove_instants(storage, plan)
    result = ArchiveResult(plan, path, time.monotonic() - began)
    log.info("%s: %r", storage.uri, result)
    return result


def _planned(
    context: ServiceContext, snapshot: TableSnapshot, config: ServiceConfig
) -> tuple[ArchivePlan, list[dict[str, Any]]]:
    """Plan, and entries of its files.

    One that was stopped while it archived, and has lost the lock since, still removes its instants when it goes on:
    they are in its archive file, and what is left is planned again.

    Raises:
        CorruptFileError, ConcurrentWriterError, LockError: as `archive`.
    """
    gone = ""
    for _ in range(_LOOKS):
        plan = make_plan(snapshot, config)
        if plan:
            # Once instants before it are archived, a file of a write that was rolled back would count as committed.
            orphans.remove_late_files(snapshot, plan.files)
        try:
            return plan, [archive_entry(context.storage, context.table, f) for f in plan.files]
        except FileNotFoundError as e:
            gone = str(e)
        context.check_lock()
        snapshot = context.look()
    raise ConcurrentWriterError(
        f"instants leave the timeline while they are archived ({gone})",
        table=context.storage.uri,
        remedy="archive again when no other process does; all writers and services have to share one lock.",
    )


def write_archive(storage: Storage, table: TableConfig, entries: Sequence[dict[str, Any]], batch: int) -> str:
    """Write a new archive file with the entries; returns its path below the table."""
    data = b"".join(_block(entries[at : at + batch]) for at in range(0, len(entries), batch))
    numbers = (_NUMBER.search(path) for path in archive_files(storage, table))
    number = max((int(m[1]) for m in numbers if m is not None), default=0)
    for _ in range(_TRIES):
        number += 1
        path = f"{table.history_folder}/.commits_.archive.{number}_{_TOKEN}"
        try:
            create_own(storage, path, data)
        except FileExistsError:  # an empty or hidden file, which does not count as one of the archive
            continue
        flush(storage, [path], written=False)  # before the instants go from the timeline
        return path
    raise StorageError(
        f"the numbers of archive files up to {number} are taken", table=storage.uri, file=table.history_folder,
        remedy="move away files of the archive that hold nothing, and archive again.",
    )  # fmt: skip


def _block(entries: Sequence[dict[str, Any]]) -> bytes:
    body = io.BytesIO()
    ends = [0]
    for entry in entries:
        try:
            fastavro.schemaless_writer(body, parsed_schema(ARCHIVED_ENTRY), entry)
        except (ValueError, TypeError, AttributeError, OverflowError) as e:
            raise CorruptFileError(
                f"the content of the instant cannot be archived: {e}",
                instant=str(entry["commitTime"]),
                remedy="restore the instant's file from a backup; nothing is archived before it can be read.",
            ) from None
        ends.append(body.tell())
    content = avro_content(body.getvalue(), np.asarray(ends, np.int64))
    before, after = frame(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema_text(ARCHIVED_ENTRY)}, len(content))
    return b"".join((before, content, after))


def remove_instants(storage: Storage, plan: ArchivePlan) -> None:
    """Remove the instants from the active timeline, completed files last and in order.

    So the timeline has no gap at any moment.
    """
    for instant in plan.instants:
        markers.delete(storage, instant.time)
    for file in plan.files:
        if not file.completed:
            storage.delete(file.path)
    done: list[Instant] = [f for f in plan.files if f.completed]
    for file in sorted(done):
        storage.delete(file.path)
