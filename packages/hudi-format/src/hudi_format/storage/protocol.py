"""The one seam to storage: everything under a table's base path goes through a `Storage`.

Paths are relative to the base path, with "/".  `create` and `publish` are the two calls that carry
correctness: `create` makes a file only if none is there, and readers never see part of it; `publish`
replaces a file in one step.  Every failure of the storage itself is a `StorageError` that names the
file; a file that is not there stays `FileNotFoundError`, one that is there `FileExistsError`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from hudi_format.errors import StorageError


class FileInfo(NamedTuple):
    """One entry of a listing.  `name` is the last path segment; `size` in bytes; `mtime_ms` epoch."""

    name: str
    is_dir: bool
    size: int = -1
    mtime_ms: int = 0


class Storage(Protocol):
    """Storage below one base path."""

    @property
    def uri(self) -> str:
        """The normalised base path, without a trailing slash: a plain path where it is local."""
        ...

    @property
    def is_local(self) -> bool: ...

    def list(self, path: str) -> list[FileInfo]:
        """What lies directly in a folder, in no order; [] where there is no such folder."""
        ...

    def info(self, path: str) -> FileInfo | None:
        """Facts about one file or folder, None where there is none."""
        ...

    def read(self, path: str) -> bytes: ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes from byte `start` on, fewer where the file ends before; one request to a store."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Random access for Arrow's readers.  The caller closes it."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream to a new data file; folders above it are made.  The caller closes it."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Make a file with this content, in one step; FileExistsError if there is one."""
        ...

    def publish(self, path: str, data: bytes) -> None:
        """Make or replace a file with this content, in one step; on stores with folders that is so for new files."""
        ...

    def touch(self, path: str, data: bytes = b"") -> None:
        """Make or overwrite a small file without any guarantee but that it then exists."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False where there was none, as far as the store tells."""
        ...

    def delete_dir(self, path: str) -> None:
        """Remove a folder and all in it; nothing happens where there is none."""
        ...

    def make_dir(self, path: str) -> None:
        """Make a folder; stores that have none do nothing."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy a file, or a folder with all in it, over what may be at the target."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; in one step where `is_local`, else by copying.

        A move by copying copies everything before it deletes anything.
        """
        ...


@runtime_checkable
class ReplacingStorage(Protocol):
    """A storage that can replace a file on condition that nobody has changed it meanwhile."""

    @property
    def can_replace(self) -> bool:
        """Whether this store has such writes."""
        ...

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """Content and version of a file, None where there is none."""
        ...

    def replace(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file whose version still is this one; False where it is not."""
        ...


@runtime_checkable
class FlushingStorage(Protocol):
    """A storage that keeps what it is given in memory for a while: a power failure takes it.

    Object stores are none: what they have acknowledged is stored.
    """

    def flush(self, paths: Iterable[str], *, written: bool = True) -> None:
        """Return once files, and the names of them and of the folders above them, are on the disk.

        What was done in one folder reaches the disk in order; in several it does not.

        Args:
            paths: also of files that were deleted: that their names are gone is on the disk then; "" for the base path.
            written: the files' content too; False where `create` or `publish` made them, which see to it.
        """
        ...

    def unflushed(self) -> Storage:
        """The same storage, whose `flush` does nothing."""
        ...


@runtime_checkable
class WrappingStorage(Protocol):
    """A storage that stands before another, such as one that fails on purpose."""

    @property
    def inner(self) -> Storage:
        """The one behind it."""
        ...

    def wrap(self, storage: Storage) -> Storage:
        """Stand before another one in the same way."""


@runtime_checkable
class ObjectStorage(Protocol):
    """A storage where each look costs a request: what it can tell or do with fewer of them."""

    @property
    def has_folders(self) -> bool:
        """Whether there are folders of their own, which may be empty."""
        ...

    def files_below(self, path: str) -> list[str]:
        """Paths of all files below a folder, relative to it, at any depth; [] where there are none."""
        ...

    def open_sized(self, path: str, size: int) -> pa.NativeFile:
        """As `open_input`, of a file whose size in bytes a listing told."""
        ...


@contextmanager
def named(uri: str, path: str) -> Iterator[None]:
    """Turn a refusal of the operating system into a StorageError that names the file."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, StorageError):
        raise
    except OSError as e:
        remedy = {
            errno.ENOSPC: "free space on the table's storage, then run the write again.",
            errno.EDQUOT: "raise the quota of the table's storage, then run the write again.",
            errno.EACCES: "grant this user access to the table's folder.",
            errno.EPERM: "grant this user access to the table's folder.",
            errno.EROFS: "the file system is read-only; mount it for writing.",
        }.get(e.errno or 0, "")
        reason = e.strerror or str(e)
        raise StorageError(f"the storage refused: {reason}", table=uri, file=path, remedy=remedy) from e
