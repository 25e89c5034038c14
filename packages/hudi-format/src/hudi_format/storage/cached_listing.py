"""Storage view that caches one listing of `.hoodie` during planning.

Planning asks for the same folder many times, and for files that are not there; on an object store each question is a
request.  What is written through it ends the moment.  Where looking costs nothing there is no such thing.
"""

from __future__ import annotations

import re

import pyarrow as pa

from hudi_format.file_names import META_DIR
from hudi_format.storage.protocol import FileInfo, ObjectStorage, Storage

# The file of a completed instant, which nobody changes.
_COMPLETED = re.compile(re.escape(META_DIR) + r"/\d{14,17}\.[a-z]+\Z")


class OneMoment:
    """Storage that answers reads of `.hoodie` from one listing and passes on all other calls."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._listed: dict[str, FileInfo] | None = None
        self._read: dict[str, bytes] = {}

    def forget(self) -> None:
        """Drop the cached listing."""
        self._listed = None
        self._read.clear()

    @property
    def uri(self) -> str:
        return self.storage.uri

    @property
    def is_local(self) -> bool:
        return self.storage.is_local

    def _entries(self) -> dict[str, FileInfo]:
        if self._listed is None:
            self._listed = {e.name: e for e in self.storage.list(META_DIR)}
        return self._listed

    def _absent(self, path: str) -> bool:
        """Whether the listing shows that a path does not exist."""
        folder, _, inner = path.partition("/")
        return folder == META_DIR and bool(inner) and inner.partition("/")[0] not in self._entries()

    def list(self, path: str) -> list[FileInfo]:
        if path == META_DIR:
            return [*self._entries().values()]
        return [] if self._absent(path) else self.storage.list(path)

    def info(self, path: str) -> FileInfo | None:
        if self._absent(path):
            return None
        folder, _, name = path.rpartition("/")
        return self._entries()[name] if folder == META_DIR else self.storage.info(path)

    def read(self, path: str) -> bytes:
        if not _COMPLETED.match(path):
            return self.storage.read(path)
        if not self._read.get(path):  # an empty one may be filled just now
            self._read[path] = self.storage.read(path)
        return self._read[path]

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.storage.read_range(path, start, length)

    def open_input(self, path: str) -> pa.NativeFile:
        return self.storage.open_input(path)

    def open_output(self, path: str) -> pa.NativeFile:
        self.forget()
        return self.storage.open_output(path)

    def create(self, path: str, data: bytes) -> None:
        self.forget()
        self.storage.create(path, data)

    def publish(self, path: str, data: bytes) -> None:
        self.forget()
        self.storage.publish(path, data)

    def touch(self, path: str, data: bytes = b"") -> None:
        self.forget()
        self.storage.touch(path, data)

    def delete(self, path: str) -> bool:
        self.forget()
        return self.storage.delete(path)

    def delete_dir(self, path: str) -> None:
        self.forget()
        self.storage.delete_dir(path)

    def make_dir(self, path: str) -> None:
        self.forget()
        self.storage.make_dir(path)

    def copy(self, source: str, target: str) -> None:
        self.forget()
        self.storage.copy(source, target)

    def rename(self, source: str, target: str) -> None:
        self.forget()
        self.storage.rename(source, target)


def one_moment(storage: Storage) -> Storage:
    """The storage with a cached listing; unchanged where it is local."""
    return storage if storage.is_local else OneMoment(storage)


def as_it_is(storage: Storage) -> Storage:
    """The storage behind a cached listing."""
    return storage.storage if isinstance(storage, OneMoment) else storage


def has_no_folders(storage: Storage) -> bool:
    """Whether folders exist only through their files, as in object stores."""
    behind = as_it_is(storage)
    return isinstance(behind, ObjectStorage) and not behind.has_folders


def look_again(storage: Storage) -> None:
    """Drop a storage's cached listing, before waiting for a change."""
    if isinstance(storage, OneMoment):
        storage.forget()
