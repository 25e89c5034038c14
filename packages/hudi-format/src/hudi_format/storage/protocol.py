"""The `Storage` protocol: all access to files below a table's base path.

Paths are relative to the base path, with "/".  `create` and `publish` are the two calls that carry
correctness: `create` makes a file only if none is there, and readers never see part of it; `publish`
replaces a file in one step.  Every failure of the storage itself is a `StorageError` that names the
file; a file that is not there stays `FileNotFoundError`, one that is there `FileExistsError`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

from hudi_format.errors import StorageError


class FileInfo(NamedTuple):
    """One entry of a listing.

    `name` is the last path segment; `size` in bytes; `mtime_ms` epoch.
    """

    name: str
    is_dir: bool
    size: int = -1
    mtime_ms: int = 0


class Storage(Protocol):
    """Storage below one base path."""

    @property
    def uri(self) -> str:
        """Normalised base path without a trailing slash; a plain path where it is local."""
        ...

    @property
    def is_local(self) -> bool: ...

    def list(self, path: str) -> list[FileInfo]:
        """Entries directly in a folder, unordered; [] where there is no such folder."""
        ...

    def info(self, path: str) -> FileInfo | None:
        """Facts about one file or folder; None where it does not exist."""
        ...

    def read(self, path: str) -> bytes: ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes from byte `start` on, fewer at the file's end; one request to a store."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Random access for Arrow's readers; the caller closes it."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """Stream to a new data file, with parent folders created; the caller closes it."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content atomically; FileExistsError if it exists."""
        ...

    def publish(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically; on stores with folders, only new files are atomic."""
        ...

    def touch(self, path: str, data: bytes = b"") -> None:
        """Create or overwrite a small file, without atomicity."""
        ...

    def delete(self, path: str) -> bool:
        """Delete a file; False where there was none, as far as the store tells."""
        ...

    def delete_dir(self, path: str) -> None:
        """Delete a folder and its content; does nothing where there is none."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a folder; does nothing on stores without folders."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy a file, or a folder with its content, overwriting the target."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; atomic where `is_local`, else by copying.

        A move by copying copies everything before it deletes anything.
        """
        ...


@runtime_checkable
class ReplacingStorage(Protocol):
    """Storage with conditional replacement of a file."""

    @property
    def can_replace(self) -> bool:
        """Whether this store supports conditional replacement."""
        ...

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """Content and version of a file; None where there is none."""
        ...

    def replace(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file if it still has this version; False where it does not."""
        ...


@runtime_checkable
class FlushingStorage(Protocol):
    """Storage with a volatile write cache, which a power failure loses.

    Object stores are none: what they have acknowledged is stored.
    """

    def flush(self, paths: Iterable[str], *, written: bool = True) -> None:
        """Flush files, their names and the folders above them to disk.

        What was done in one folder reaches the disk in order; in several it does not.

        Args:
            paths: also of files that were deleted: that their names are gone is on the disk then; "" for the base path.
            written: the files' content too; False where `create` or `publish` made them, which see to it.
        """
        ...

    def unflushed(self) -> Storage:
        """The same storage with a `flush` that does nothing."""
        ...


@runtime_checkable
class WrappingStorage(Protocol):
    """Storage that wraps another one, e.g. to inject faults."""

    @property
    def inner(self) -> Storage:
        """The wrapped storage."""
        ...

    def wrap(self, storage: Storage) -> Storage:
        """Wrap another storage in the same way."""


@runtime_checkable
class ObjectStorage(Protocol):
    """Storage where each call costs a request, with calls that save some."""

    @property
    def has_folders(self) -> bool:
        """Whether the store has real folders, which may be empty."""
        ...

    def files_below(self, path: str) -> list[str]:
        """Relative paths of all files below a folder, at any depth; [] where there are none."""
        ...

    def open_sized(self, path: str, size: int) -> pa.NativeFile:
        """`open_input` for a file of known size in bytes."""
        ...


# `isinstance` without what Python before 3.12 does at each: taking the whole protocol apart, a hundred times as long.


def is_flushing(storage: Storage) -> TypeGuard[FlushingStorage]:
    """Whether it is a `FlushingStorage`."""
    return hasattr(storage, "flush") and hasattr(storage, "unflushed")


def is_wrapping(storage: Storage) -> TypeGuard[WrappingStorage]:
    """Whether it is a `WrappingStorage`."""
    return hasattr(storage, "inner") and hasattr(storage, "wrap")


def is_object_store(storage: Storage) -> TypeGuard[ObjectStorage]:
    """Whether it is an `ObjectStorage`."""
    return (
        hasattr(storage, "has_folders") and hasattr(storage, "files_below") and hasattr(storage, "open_sized")
    )


def has_no_folders(storage: Storage) -> bool:
    """Whether folders exist only through their files, as in object stores."""
    return is_object_store(storage) and not storage.has_folders


@contextmanager
def named(uri: str, path: str) -> Iterator[None]:
    """Turn an operating system error into a StorageError that names the file."""
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
            errno.ENOTDIR: "correct the path: a part of it is a file.",
            errno.EISDIR: "correct the path: it is a folder.",
            errno.ENAMETOOLONG: "give a shorter path; a partition value with a long text makes a long folder name.",
        }.get(e.errno or 0, "correct the path, or see why the system refuses it.")
        reason = e.strerror or str(e)
        raise StorageError(f"the storage refused: {reason}", table=uri, file=path, remedy=remedy) from e
