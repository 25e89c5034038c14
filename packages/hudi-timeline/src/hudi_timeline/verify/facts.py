"""What the checks look at, collected once, from a table in any state: damage is a finding here and no error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.instant_time import zone_of
from hudi_format.model import join_path
from hudi_format.names import PARTITION_METADATA
from hudi_format.storage import FileInfo, Storage
from hudi_timeline import metadata_table
from hudi_timeline.instant import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REQUESTED,
    WRITE_ACTIONS,
    Instant,
)
from hudi_timeline.listing import walk
from hudi_timeline.metadata.actions import Action, read_action
from hudi_timeline.metadata.commit import CommitMetadata
from hudi_timeline.metadata.commit_files import CommitFiles
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import Timeline
from hudi_timeline.verify.archived_facts import Archived, read_archived_facts
from hudi_timeline.verify.finding import Report

_T = TypeVar("_T")
_R = TypeVar("_R")

REMOTE_THREADS = 32
TEMPORARY_AGE_MS = 60_000
WRITES = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLUSTERING}


def is_old(entry: FileInfo) -> bool:
    """Whether a temporary file is no more that of a writer at work, which keeps one for moments."""
    return time.time() * 1000 - entry.mtime_ms > TEMPORARY_AGE_MS


@dataclass(frozen=True)
class Facts:
    """A table as it was read.

    Attributes:
        entries: what lies in the timeline's folder.
        timeline: the instants that these make, whatever their files hold.
        contents: what the files of instants say, by path; None for an empty file.
        unreadable: paths of instants' files that could not be read.
        folders: the files of every folder of the table but `.hoodie`, by path below the table.
        workers: how many files are looked at at once.
    """

    storage: Storage
    config: TableConfig
    entries: tuple[FileInfo, ...]
    timeline: Timeline
    contents: Mapping[str, Action | None]
    unreadable: frozenset[str]
    folders: Mapping[str, Sequence[FileInfo]]
    workers: int = 1
    is_metadata: bool = field(default=False)

    @cached_property
    def commits(self) -> dict[Instant, CommitMetadata]:
        """Completed writes that can be read, oldest first."""
        found = ((i, self.contents.get(i.path)) for i in self.timeline.completed_writes())
        return {i: c for i, c in found if isinstance(c, CommitMetadata)}

    @cached_property
    def written(self) -> dict[Instant, CommitFiles]:
        """What completed writes say of files."""
        return {i: CommitFiles.of(c) for i, c in self.commits.items()}

    @cached_property
    def unreadable_times(self) -> frozenset[str]:
        """Times of completed writes of which nothing is known."""
        return frozenset(i.time for i in self.timeline.completed_writes() if i not in self.commits)

    @cached_property
    def partitions(self) -> dict[str, Sequence[FileInfo]]:
        """The files of the folders that are marked as partitions."""
        return {
            p: files
            for p, files in self.folders.items()
            if any(f.name.startswith(PARTITION_METADATA) for f in files)
        }

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of each file by path, without what is below `.hoodie`."""
        return {join_path(p, f.name): f.size for p, files in self.folders.items() for f in files}

    @cached_property
    def archived(self) -> Archived:
        """What the archive says; read where it is asked for."""
        return read_archived_facts(self.storage, self.config)

    @cached_property
    def known_times(self) -> frozenset[str]:
        """The times of the instants on the active timeline that write files, in any state."""
        return frozenset(i.time for i in self.timeline.instants if i.action in WRITES)

    @cached_property
    def pending_times(self) -> frozenset[str]:
        return frozenset(i.time for i in self.timeline.instants if not i.completed)

    def each(self, call: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
        """`call` of each item, several at once, in order."""
        given = list(items)
        if self.workers < 2 or len(given) < 2:
            return [call(i) for i in given]
        with ThreadPoolExecutor(min(self.workers, len(given)), thread_name_prefix="hudi-verify") as pool:
            return list(pool.map(call, given))


def gather(storage: Storage, config: TableConfig, report: Report, workers: int | None = None) -> Facts | None:
    """The facts of a table; None where it has no timeline that could be looked at.

    Args:
        workers: how many files to look at at once; None for a number that fits the machine and the store.
    """
    at_once = workers or ((os.cpu_count() or 1) if storage.is_local else REMOTE_THREADS)
    folder = config.timeline_folder
    entries = storage.list(folder)
    if not entries and config.layout_version == 2 and storage.is_local and storage.info(folder) is None:
        report.add("timeline-folder", folder, "the timeline's folder is not there")
        return None
    timeline = Timeline.of_listing(entries, folder, zone_of(config.timezone))
    contents: dict[str, Action | None] = {}
    unreadable: set[str] = set()
    found = _each(at_once, lambda i: _content(storage, i), timeline.files)
    for instant, content in zip(timeline.files, found, strict=True):
        if isinstance(content, Exception):
            unreadable.add(instant.path)
            empty = instant.completed and instant.size == 0
            code = "timeline-empty" if empty else "timeline-unreadable"
            message = getattr(content, "message", str(content))
            report.add(code, instant.path, message, instant.time, action=instant.action, state=instant.state)
        else:
            contents[instant.path] = content
    return Facts(
        storage,
        config,
        tuple(entries),
        timeline,
        contents,
        frozenset(unreadable),
        walk(storage),
        at_once,
        metadata_table.is_one(config),
    )


def _each(workers: int, call: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="hudi-verify") as pool:
        return list(pool.map(call, items))


def _content(storage: Storage, instant: Instant) -> Action | CorruptFileError | None:
    try:
        return read_action(storage, instant)
    except CorruptFileError as e:
        return e
    except MissingFileError:  # archived or rolled back since the listing; the run is repeated then
        return None
    except UnsupportedError as e:
        # Nothing that any state needs: releases put their own notes into inflight files.
        return None if not instant.completed and instant.state != REQUESTED else _as_corrupt(e)


def _as_corrupt(error: UnsupportedError) -> CorruptFileError:
    return CorruptFileError(error.message, file=error.file, instant=error.instant)
