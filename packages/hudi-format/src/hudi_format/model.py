"""Values shared by all packages: files, file slices, write statistics.

Plain, frozen, picklable: they cross to Spark executors.  Paths are relative to the table's base
path and use "/" on every platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def join_path(partition: str, name: str) -> str:
    """Path of a file below the base path; the partition of a non-partitioned table is ""."""
    return f"{partition}/{name}" if partition else name


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One base file.  `size` is in bytes, -1 where it was not listed."""

    partition: str
    name: str
    file_id: str
    instant: str
    write_token: str = ""
    size: int = -1

    @property
    def path(self) -> str:
        return join_path(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file.

    `instant` is the base instant (v6) or the delta commit's time (v8 and later).
    """

    partition: str
    name: str
    file_id: str
    instant: str
    version: int
    write_token: str = ""
    size: int = -1

    @property
    def path(self) -> str:
        return join_path(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file and the log files written after it."""

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """All files, the base file first."""
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)

    @property
    def bytes(self) -> int:
        """Size of all files, as far as they were listed."""
        return sum(max(f.size, 0) for f in self.files)

    @property
    def log_bytes(self) -> int:
        """Size of the log files, as far as they were listed."""
        return sum(max(f.size, 0) for f in self.log_files)


@dataclass(frozen=True, slots=True)
class OverwrittenInstants:
    """Instants of the table that was overwritten at the same path: all up to `until`, but `by`.

    A task of a writer of that table may close its file when this one is in its place.  `by` is the write that made
    this one, which others may have begun after.  "" for a table that took no other's place.
    """

    until: str = ""
    by: str = ""

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, str) and instant <= self.until and instant != self.by


NOT_OVERWRITTEN = OverwrittenInstants()
"""Of a table that took no other's place."""


@dataclass(frozen=True, slots=True)
class VisibleInstants:
    """Instants visible to a read: completed ones, and the table's before the active timeline.

    `first_active` is the oldest instant of the active timeline in any completed state; everything of the table
    before it was archived, hence completed.  "" means that nothing was ever archived.  `overwritten` are instants of
    the table that was there before.
    """

    completed: frozenset[str]
    first_active: str = ""
    overwritten: OverwrittenInstants = NOT_OVERWRITTEN

    def __contains__(self, instant: object) -> bool:
        return instant in self.completed or (
            isinstance(instant, str) and instant < self.first_active and instant not in self.overwritten
        )


OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER = "OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"
CDC_MODES = (OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER)
"""Modes of supplemental logging: what a record of a CDC file holds."""


@dataclass(frozen=True, slots=True)
class WriteStat:
    """Statistics of one file written by a commit; the fields of HoodieWriteStat.

    `prev_commit` is the base instant of the slice that was rewritten, "null" (the text) for a new
    file group.  Sizes in bytes, times in milliseconds.

    Two are no fields of a commit.  `null_elements`: columns of the written rows whose lists hold nulls.  `new_keys`:
    the keys that a rewritten base file has and the one before it had not, where that one has no others; None where
    that is not known, or was not asked for.
    """

    file_id: str
    path: str
    partition: str
    prev_commit: str = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    file_size_in_bytes: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    create_time_ms: int = 0
    upsert_time_ms: int = 0
    scan_time_ms: int = 0
    null_elements: tuple[str, ...] = ()
    new_keys: pa.Array | None = field(default=None, compare=False, repr=False)
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def cdc_files(self) -> Mapping[str, int]:
        """Sizes in bytes of the CDC files beside the file, by path."""
        found = self.extra.get("cdcStats")
        return found if isinstance(found, dict) else {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The file and the CDC files beside it."""
        return (self.path, *self.cdc_files)
