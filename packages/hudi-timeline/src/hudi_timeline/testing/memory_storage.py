"""Fast storage in memory, for the many small tables of simulations.

    made = MemoryStorage()
    HudiTable.create(made, schema, name="t", record_keys="id")
    other = made.copy_of()                                   # another table with the same files

Each file appears whole and at once, `create` refuses one that is there, and `replace` has a condition, as of an object
store.  Folders are there while something is in them.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_format.storage.safe_path import check_below


class _Entry(NamedTuple):
    data: bytes
    mtime_ms: int
    version: int


# Of stores: no two have one URI, as what is kept of files by their paths would be taken for that of another store.
_numbers = itertools.count(1)
Touched = Callable[[str, bool, object], None]
"""Gets a file's full path, or a folder's with a slash at its end, whether it is changed or looked at, and what is there
until then: of a file its version, 0 for none, of a folder its entries."""


@dataclass
class _MemoryFiles:
    """Files by full path, and what is in each folder, by name; who touches what is told."""

    content: dict[str, _Entry] = field(default_factory=dict)
    folders: dict[str, dict[str, FileInfo]] = field(default_factory=dict)
    changing: threading.Lock = field(default_factory=threading.Lock)
    touched: Touched | None = None
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def put(self, path: str, data: bytes, mtime_ms: int, *, only: Callable[[_Entry | None], bool]) -> bool:
        """Make or replace a file where `only` says so of what is there."""
        self.touch(path, True)
        with self.changing:
            if not only(self.content.get(path)):
                return False
            self.content[path] = _Entry(data, mtime_ms, next(self._versions))
            folder, _, name = path.rpartition("/")
            self.touch(f"{folder}/", True)
            self.folders.setdefault(folder, {})[name] = FileInfo(name, False, len(data), mtime_ms)
            self._make_parents(folder)
            return True

    def touch(self, path: str, changed: bool = False) -> None:
        """Tell of a look at a file or folder, or a change of it."""
        if self.touched is None:
            return
        if path.endswith("/"):
            self.touched(path, changed, frozenset(self.folders.get(path[:-1], {}).values()))
        else:
            there = self.content.get(path)
            self.touched(path, changed, 0 if there is None else there.version)

    def _make_parents(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            known = self.folders.setdefault(folder, {})
            if name in known:
                break
            self.touch(f"{folder}/", True)
            known[name] = FileInfo(name, True)
            path = folder

    def copy_of(self, root: str, new_root: str) -> _MemoryFiles:
        """The files below a root, below another one."""
        at, inside = len(root), f"{root}/"
        with self.changing:
            out = _MemoryFiles(
                {new_root + p[at:]: e for p, e in self.content.items() if p.startswith(inside)},
                {
                    new_root + p[at:]: dict(names)
                    for p, names in self.folders.items()
                    if p == root or p.startswith(inside)
                },
                _versions=itertools.count(max((e.version for e in self.content.values()), default=0) + 1),
            )
        if out.content:
            out._make_parents(new_root)
        return out

    def take(self, path: str) -> bool:
        self.touch(path, True)
        with self.changing:
            if self.content.pop(path, None) is None:
                return False
            while path:
                folder, _, name = path.rpartition("/")
                known = self.folders.get(folder, {})
                self.touch(f"{folder}/", True)
                known.pop(name, None)
                if known or not folder:
                    break
                del self.folders[folder]
                path = folder
            return True

    def below(self, folder: str) -> list[str]:
        inside = f"{folder}/" if folder else ""
        with self.changing:
            for known in self.folders:
                if known == folder or known.startswith(inside):
                    self.touch(f"{known}/")
            return sorted(p for p in self.content if p.startswith(inside))

    def names_in(self, folder: str) -> list[FileInfo]:
        self.touch(f"{folder}/")
        with self.changing:
            return list(self.folders.get(folder, {}).values())


def _always(entry: _Entry | None) -> bool:
    return True


class MemoryStorage:
    """A store in memory below one base path, whose files live as long as its objects."""

    is_local = False

    def __init__(self, uri: str = "", _files: _MemoryFiles | None = None) -> None:
        """An empty store, or a place in one; see `copy_of`."""
        self._uri = uri or f"memory://simulated-{next(_numbers):09d}/t"
        self._root = self._uri.partition("://")[2]
        self._files = _MemoryFiles() if _files is None else _files
        self._sound: dict[str, _Entry] = {}

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"MemoryStorage({self._uri!r})"

    def copy_of(self) -> MemoryStorage:
        """An independent store with the same files."""
        made = MemoryStorage()
        made._files = self._files.copy_of(self._root, made._root)
        made._sound = self._sound
        return made

    def watch(self, touched: Touched | None) -> None:
        """Tell of each look and each change from here on, in the thread of it; None ends it."""
        self._files.touched = touched

    def state(self) -> Mapping[str, object]:
        """Paths with versions: equal to earlier ones where no file was written or deleted since."""
        with self._files.changing:
            return {path: entry.version for path, entry in self._files.content.items()}

    def digest(self) -> bytes:
        """Digest of all names and contents, in which the store's own URI does not count."""
        mine, every = self._root.encode(), hashlib.blake2b(digest_size=16)
        at, theirs = len(self._root), b"/" * len(mine)
        with self._files.changing:
            held = sorted((path[at:], entry.data) for path, entry in self._files.content.items())
        for path, data in held:
            every.update(f"{path}\0{len(data)}\0".encode())
            every.update(data.replace(mine, theirs) if mine in data else data)
        return every.digest()

    def newest_ms(self) -> int:
        """Modification time of the newest file, in milliseconds since the epoch; 0 for none."""
        with self._files.changing:
            return max((entry.mtime_ms for entry in self._files.content.values()), default=0)

    def keep_sound(self, paths: Iterable[str]) -> None:
        """Note that these files hold what they should, until they change; copies know it too."""
        known = {p: self._files.content.get(f"{self._root}/{p}") for p in paths}
        self._sound = {p: e for p, e in known.items() if e is not None}

    def still_sound(self) -> set[str]:
        """The files that were noted, and are as they were."""
        content, root = self._files.content, self._root
        return {p for p, entry in self._sound.items() if content.get(f"{root}/{p}") is entry}

    # The same files seen from another base path, as of `hudi_format.storage.open.open_beside`.

    @property
    def inner(self) -> Storage:
        return open_storage("memory://beside/t")

    def wrap(self, storage: Storage) -> Storage:
        """The same store at the URI of another storage."""
        return MemoryStorage(storage.uri, self._files)

    def _full(self, path: str, *, changes: bool = False) -> str:
        return f"{self._root}/{check_below(path, self._uri, changes=changes)}" if path else self._root

    # --- looking -------------------------------------------------------------------------------------

    def list(self, path: str) -> builtins.list[FileInfo]:
        return self._files.names_in(self._full(path))

    def info(self, path: str) -> FileInfo | None:
        full = self._full(path)
        name = full.rpartition("/")[2]
        found = self._found(full)
        if found is not None:
            return FileInfo(name, False, len(found.data), found.mtime_ms)
        self._files.touch(f"{full}/")
        return FileInfo(name, True) if full in self._files.folders else None

    def _found(self, full: str) -> _Entry | None:
        self._files.touch(full)
        return self._files.content.get(full)

    def read(self, path: str) -> bytes:
        found = self._found(self._full(path))
        if found is None:
            raise FileNotFoundError(path)
        return found.data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.read(path)[start : start + length] if length > 0 else b""

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    # --- writing -------------------------------------------------------------------------------------

    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_MemoryOutput(self, path), mode="w")

    def create(self, path: str, data: bytes) -> None:
        full = self._full(path, changes=True)
        if not self._files.put(full, bytes(data), _now_ms(), only=lambda there: there is None):
            raise FileExistsError(path)

    def publish(self, path: str, data: bytes) -> None:
        self._files.put(self._full(path, changes=True), bytes(data), _now_ms(), only=_always)

    def touch(self, path: str, data: bytes = b"") -> None:
        self._files.put(self._full(path, changes=True), bytes(data), _now_ms(), only=_always)

    def make_dir(self, path: str) -> None:
        check_below(path, self._uri, changes=True)

    # --- replacing on condition ----------------------------------------------------------------------

    @property
    def can_replace(self) -> bool:
        return True

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        found = self._found(self._full(path))
        return None if found is None else (found.data, str(found.version))

    def replace(self, path: str, data: bytes, version: str) -> bool:
        full = self._full(path, changes=True)

        def same(there: _Entry | None) -> bool:
            return there is not None and str(there.version) == version

        return self._files.put(full, bytes(data), _now_ms(), only=same)

    # --- deleting and moving -------------------------------------------------------------------------

    def delete(self, path: str) -> bool:
        return self._files.take(self._full(path, changes=True))

    def delete_dir(self, path: str) -> None:
        for name in self._files.below(self._full(path, changes=bool(path))):
            self._files.take(name)

    def copy(self, source: str, target: str) -> None:
        old, new = self._full(source), self._full(target, changes=True)
        single = self._found(old)
        if single is not None:
            self._files.put(new, single.data, _now_ms(), only=_always)
            return
        names = self._files.below(old)
        if not names:
            raise FileNotFoundError(source)
        for name in names:
            self._files.touch(name)
            data = self._files.content[name].data
            self._files.put(new + name[len(old) :], data, _now_ms(), only=_always)

    def rename(self, source: str, target: str) -> None:
        self.copy(source, target)
        if not self.delete(source):
            self.delete_dir(source)


def _now_ms() -> int:
    return int(time.time() * 1000)


class _MemoryOutput(io.BytesIO):
    """Stream to a new file, which is there from its end on."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def write(self, data: Any) -> int:
        return super().write(memoryview(data))

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self._storage.touch(self._path, content)
