"""The storage that `Faults` strikes: any other storage, each of whose calls may go wrong."""

from __future__ import annotations

import builtins
import io
import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pyarrow as pa

from hudi_format.storage import FileInfo, FlushingStorage, ReplacingStorage, Storage, flush
from hudi_timeline.testing.faults import Faults

T = TypeVar("T")


class FaultyStorage:
    """A storage below one base path whose calls go through `Faults`.

    Pickled, as for a task elsewhere, it is the storage inside: faults strike in the process that made them.
    """

    def __init__(self, inner: Storage, faults: Faults) -> None:
        """Use `Faults.wrap`."""
        self.inner = inner
        self._faults = faults
        # (folder, name, facts before the change or None where there was nothing), oldest first
        self._journal: builtins.list[tuple[str, str, FileInfo | None]] = []

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def is_local(self) -> bool:
        return self.inner.is_local

    def __repr__(self) -> str:
        return f"FaultyStorage({self.inner!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _same, (self.inner,)

    def wrap(self, storage: Storage) -> Storage:
        """Another storage of the same process."""
        return self._faults.wrap(storage)

    def _look(self, operation: str, path: str, act: Callable[[], T]) -> T:
        return self._faults.strike(operation, path, act, lambda part: None)

    def _change(
        self, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None] | None = None
    ) -> T:
        def noted() -> T:
            if self._faults.keeps_journal:
                folder, _, name = path.rpartition("/")
                self._journal.append((folder, name, self.inner.info(path)))
            return act()

        return self._faults.strike(operation, path, noted, tear or (lambda part: None))

    # --- looking -------------------------------------------------------------------------------------

    def list(self, path: str) -> builtins.list[FileInfo]:
        def act() -> builtins.list[FileInfo]:
            found = self.inner.list(path)
            lag = self._faults.lag
            return self._earlier(path, found, lag) if lag else found

        return self._look("list", path, act)

    def _earlier(self, path: str, found: builtins.list[FileInfo], lag: int) -> builtins.list[FileInfo]:
        """The listing without the newest changes that this process made."""
        entries = {e.name: e for e in found}
        for folder, name, before in reversed(self._journal[-lag:]):
            if folder != path:
                continue
            if before is None:
                entries.pop(name, None)
            else:
                entries[name] = before
        return builtins.list(entries.values())

    def info(self, path: str) -> FileInfo | None:
        return self._look("info", path, lambda: self.inner.info(path))

    def read(self, path: str) -> bytes:
        return self._look("read", path, lambda: self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._look("read_range", path, lambda: self.inner.read_range(path, start, length))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._look("open_input", path, lambda: self.inner.open_input(path))

    # --- writing -------------------------------------------------------------------------------------

    def open_output(self, path: str) -> pa.NativeFile:
        # On a disk the file is there from now on, elsewhere from its end on.
        file = self._change(
            "open_output", path, lambda: self.inner.open_output(path) if self.is_local else None
        )
        return pa.PythonFile(_Output(file, self, path), mode="w")

    def create(self, path: str, data: bytes) -> None:
        def tear(part: float) -> None:
            # One step: of a torn one there is at most the temporary file that would have got the name.
            if self.is_local:
                folder, _, name = path.rpartition("/")
                self.inner.touch(f"{folder}/.{name}.{uuid.uuid4().hex}.tmp", data[: int(len(data) * part)])

        self._change("create", path, lambda: self.inner.create(path, data), tear)

    def publish(self, path: str, data: bytes) -> None:
        def tear(part: float) -> None:
            if self.is_local:
                folder, _, name = path.rpartition("/")
                self.inner.touch(f"{folder}/.{name}.{uuid.uuid4().hex}.tmp", data[: int(len(data) * part)])

        self._change("publish", path, lambda: self.inner.publish(path, data), tear)

    def touch(self, path: str, data: bytes = b"") -> None:
        def tear(part: float) -> None:
            self.inner.touch(path, data[: int(len(data) * part)])

        self._change("touch", path, lambda: self.inner.touch(path, data), tear)

    def make_dir(self, path: str) -> None:
        self._change("make_dir", path, lambda: self.inner.make_dir(path))

    # --- replacing on condition ----------------------------------------------------------------------

    @property
    def can_replace(self) -> bool:
        return isinstance(self.inner, ReplacingStorage) and self.inner.can_replace

    def _replacing(self) -> ReplacingStorage:
        if not isinstance(self.inner, ReplacingStorage):
            raise TypeError(f"{self.inner!r} does not replace files on condition")
        return self.inner

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        return self._look("read_version", path, lambda: self._replacing().read_version(path))

    def replace(self, path: str, data: bytes, version: str) -> bool:
        return self._change("replace", path, lambda: self._replacing().replace(path, data, version))

    # --- flushing ----------------------------------------------------------------------------------------

    def flush(self, paths: Iterable[str], *, written: bool = True) -> None:
        """Of the storage inside; it changes nothing that a process sees, so it is neither counted nor struck."""
        flush(self.inner, paths, written=written)

    def unflushed(self) -> Storage:
        inner = self.inner
        return self.wrap(inner.unflushed() if isinstance(inner, FlushingStorage) else inner)

    # --- deleting and moving -------------------------------------------------------------------------

    def delete(self, path: str) -> bool:
        return self._change("delete", path, lambda: self.inner.delete(path))

    def delete_dir(self, path: str) -> None:
        self._change("delete_dir", path, lambda: self.inner.delete_dir(path))

    def copy(self, source: str, target: str) -> None:
        self._change("copy", target, lambda: self.inner.copy(source, target))

    def rename(self, source: str, target: str) -> None:
        self._change("rename", target, lambda: self.inner.rename(source, target))

    def end(self, path: str, file: pa.NativeFile | None, data: bytes) -> None:
        """End a stream: its content arrives, all of it or not."""

        def arrive(content: bytes) -> None:
            out = file if file is not None and not file.closed else self.inner.open_output(path)
            with out:
                out.write(content)

        def tear(part: float) -> None:
            if self.is_local:  # on an object store nothing is there before the end
                arrive(data[: int(len(data) * part)])

        try:
            if not self._faults.dead:
                self._change("close_output", path, lambda: arrive(data), tear)
        finally:
            if file is not None:
                file.close()


class _Output(io.RawIOBase):
    """A stream into a new file whose content is held until it is closed, so that it can be torn or lost."""

    def __init__(self, file: pa.NativeFile | None, storage: FaultyStorage, path: str) -> None:
        self._file, self._storage, self._path = file, storage, path
        self._held = io.BytesIO()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._held.tell()

    def write(self, data: Any) -> int:
        return self._held.write(memoryview(data))

    def flush(self) -> None:
        """Nothing: what counts is the end."""

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._storage.end(self._path, self._file, self._held.getvalue())


def _same(storage: Storage) -> Storage:
    return storage
