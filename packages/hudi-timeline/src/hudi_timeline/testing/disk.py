"""Simulated disk with power failures: unflushed data is lost partly, and out of order.

    disk = Disk(path)
    table = HudiTable.open(disk.storage())
    table.upsert(rows)
    for moment in range(len(disk.events) + 1):
        disk.image(other_path, moment, random.Random(7))         # what is there after a power failure at that moment

What was done in one folder reaches the disk in order, as journals of file systems see to it, but not further than
they had come; what was done in two folders in no order.  The content of a file that was not flushed is all there,
partly, or not at all.
"""

from __future__ import annotations

import builtins
import os
import random
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudi_format.storage.local import LocalStorage
from hudi_format.storage.protocol import FileInfo, Storage

Folders = tuple[str, ...]


@dataclass
class _DiskFile:
    content: bytes = b""
    flushed: bytes | None = None


@dataclass
class _Event:
    """An operation of a disk: a name change, or a flush of a folder or file.

    Name changes are `add`, `remove`, `rename` and `folder`.
    """

    kind: str
    path: str
    folders: Folders = ()
    file: _DiskFile | None = None
    target: str = ""
    content: bytes = b""


@dataclass
class Disk:
    """Records the operations on a local folder.

    Attributes:
        root: the folder, which may not be there yet.
        events: what was done, in order.
    """

    root: str
    events: list[_Event] = field(default_factory=list)
    _names: dict[str, _DiskFile] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def storage(self, below: str = "") -> RememberedStorage:
        """Storage of the folder, or of one below it, with recorded changes."""
        return RememberedStorage(LocalStorage(f"{self.root}/{below}" if below else self.root), self, below)

    # --- what is done --------------------------------------------------------------------------------------

    def make_folders(self, path: str) -> None:
        with self._lock:
            parts = path.split("/") if path else []
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in self._folders:
                    self._folders.add(folder)
                    self.events.append(_Event("folder", folder, (_above(folder),)))

    def add(self, path: str, content: bytes, *, flushed: bool) -> None:
        with self._lock:
            self.make_folders(_above(path))
            file = _DiskFile(content, content if flushed else None)
            self._names[path] = file
            if flushed:
                self.events.append(_Event("file", path, file=file, content=content))
            self.events.append(_Event("add", path, (_above(path),), file))

    def remove(self, path: str) -> None:
        with self._lock:
            self.events.append(_Event("remove", path, (_above(path),)))
            self._names = {p: f for p, f in self._names.items() if not _is_in(p, path)}
            self._folders = {f for f in self._folders if not _is_in(f, path)}

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            self.events.append(_Event("rename", source, (_above(source), _above(target)), target=target))

            self._names = {_moved(p, source, target): f for p, f in self._names.items()}
            self._folders = {_moved(f, source, target) for f in self._folders}

    def flush(self, path: str, *, written: bool) -> None:
        with self._lock:
            file = self._names.get(path)
            if written and file is not None:
                self.events.append(_Event("file", path, file=file, content=file.content))
            while path:
                path = _above(path)
                self.events.append(_Event("flush", path))

    # --- what is left --------------------------------------------------------------------------------------

    def image(self, target: str, moment: int, chance: random.Random) -> None:
        """Write to `target` a possible disk state after a power failure behind `moment` events."""
        events = self.events[:moment]
        flushed: dict[str, int] = {}
        changes: dict[str, list[int]] = {}
        content: dict[int, bytes] = {}
        for at, event in enumerate(events):
            if event.kind == "flush":
                flushed[event.path] = at
            elif event.kind == "file":
                content[id(event.file)] = event.content
            for folder in event.folders:
                changes.setdefault(folder, []).append(at)
        # How far each folder came: at least to its last flush.
        reach = {
            folder: chance.choice([n for n in (*numbers, -1) if n > flushed.get(folder, -1)] or [moment])
            if any(n > flushed.get(folder, -1) for n in numbers) and chance.random() < 0.7
            else (flushed.get(folder, -1) if chance.random() < 0.7 else moment)
            for folder, numbers in changes.items()
        }
        files: dict[str, _DiskFile] = {}
        folders: set[str] = {""}
        for at, event in enumerate(events):
            if not event.folders or not any(reach[f] >= at for f in event.folders):
                continue
            if event.kind == "folder":
                folders.add(event.path)
            elif event.kind == "add" and event.file is not None:
                files[event.path] = event.file
            elif event.kind == "remove":
                files = {p: f for p, f in files.items() if not _is_in(p, event.path)}
                folders = {f for f in folders if not _is_in(f, event.path)}
            elif event.kind == "rename":
                files = {_moved(p, event.path, event.target): f for p, f in files.items()}
                folders = {_moved(f, event.path, event.target) for f in folders}
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        for folder in sorted(folders, key=len):
            if folder and _reachable(folder, folders):
                os.makedirs(f"{target}/{folder}", exist_ok=True)
        for path, file in files.items():
            if not _reachable(path, folders):
                continue
            data = content.get(id(file))
            if data is None:
                data = file.content[: chance.choice([0, 0, len(file.content) // 2, len(file.content)])]
            with open(f"{target}/{path}", "wb") as out:
                out.write(data)


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _moved(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if _is_in(path, source) else path


def _reachable(path: str, folders: set[str]) -> bool:
    above = _above(path)
    return above == "" or (above in folders and _reachable(above, folders))


class RememberedStorage:
    """Storage that records its operations for a `Disk`; made by `Disk.storage`."""

    is_local = True

    def __init__(self, inner: LocalStorage, disk: Disk, below: str) -> None:
        self.inner = inner
        self._disk = disk
        self._below = below

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # what only looks

    @property
    def uri(self) -> str:
        return self.inner.uri

    def wrap(self, storage: Storage) -> Storage:
        """Storage of the same disk; other storages are returned unchanged."""
        if isinstance(storage, LocalStorage) and storage.uri.startswith(f"{self._disk.root}/"):
            below = storage.uri[len(self._disk.root) + 1 :]
            return self._disk.storage(below) if self.inner._flushes else self._disk.storage(below).unflushed()
        return storage

    def unflushed(self) -> Storage:
        return RememberedStorage(self.inner.unflushed(), self._disk, self._below)

    def flush(self, paths: Iterable[str], *, written: bool = True) -> None:
        if self.inner._flushes:
            for path in paths:
                self._disk.flush(self._full(path), written=written)

    def _full(self, path: str) -> str:
        return f"{self._below}/{path}".strip("/")

    def list(self, path: str) -> builtins.list[FileInfo]:
        return self.inner.list(path)

    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_DiskOutput(self, path), mode="w")

    def create(self, path: str, data: bytes) -> None:
        self.inner.create(path, data)
        self._disk.add(self._full(path), data, flushed=True)

    def publish(self, path: str, data: bytes) -> None:
        self.inner.publish(path, data)
        self._disk.add(self._full(path), data, flushed=True)

    def touch(self, path: str, data: bytes = b"") -> None:
        self.inner.touch(path, data)
        self._disk.add(self._full(path), data, flushed=False)

    def delete(self, path: str) -> bool:
        found = self.inner.delete(path)
        if found:
            self._disk.remove(self._full(path))
        return found

    def delete_dir(self, path: str) -> None:
        if self.inner.info(path) is not None:
            self.inner.delete_dir(path)
            self._disk.remove(self._full(path))

    def make_dir(self, path: str) -> None:
        self.inner.make_dir(path)
        self._disk.make_folders(self._full(path))

    def copy(self, source: str, target: str) -> None:
        raise NotImplementedError("local tables move files by renaming")

    def rename(self, source: str, target: str) -> None:
        self.inner.rename(source, target)
        self._disk.rename(self._full(source), self._full(target))


class _DiskOutput:
    """Stream to a new file, whose content is recorded on close."""

    def __init__(self, storage: RememberedStorage, path: str) -> None:
        self._storage, self._path = storage, path
        self._file = storage.inner.open_output(path)
        self._parts: list[bytes] = []
        self.closed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._file.tell())

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data))
        self._parts.append(part)
        return int(self._file.write(part))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()
            storage = self._storage
            storage._disk.add(storage._full(self._path), b"".join(self._parts), flushed=False)
