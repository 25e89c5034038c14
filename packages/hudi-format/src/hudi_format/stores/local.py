"""Tables in a folder of this machine."""

from __future__ import annotations

import os
import shutil
import uuid

import pyarrow as pa

from hudi_format.stores.protocol import FileInfo, named

# Larger files are read, not mapped: what was touched of a map counts as memory of the process until it is closed.
MOST_MAPPED = 256 << 20
FIRST_BYTES, READ_BYTES = 1 << 16, 1 << 20


class LocalStorage:
    """A folder of this machine."""

    is_local = True

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/") or "/"

    @property
    def uri(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return LocalStorage, (self._root,)

    def full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list(self, path: str, *, unless: tuple[str, ...] = ()) -> list[FileInfo]:
        """As `Storage.list`.

        Args:
            unless: files whose names end in one of these are given without size (-1) and time (0).
        """
        out = []
        with named(self._root, path):
            try:
                entries = os.scandir(self.full(path))
            except (FileNotFoundError, NotADirectoryError):
                return []
            with entries:
                for e in entries:
                    if unless and e.name.endswith(unless) and e.is_file():
                        out.append(FileInfo(e.name, False))
                        continue
                    try:
                        stat = e.stat()
                    except FileNotFoundError:  # removed between listing and stat
                        continue
                    is_dir = e.is_dir()
                    size = -1 if is_dir else stat.st_size
                    out.append(FileInfo(e.name, is_dir, size, stat.st_mtime_ns // 1_000_000))
        return out

    def info(self, path: str) -> FileInfo | None:
        with named(self._root, path):
            try:
                stat = os.stat(self.full(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        is_dir = os.path.isdir(self.full(path))
        name = path.rpartition("/")[2]
        return FileInfo(name, is_dir, -1 if is_dir else stat.st_size, stat.st_mtime_ns // 1_000_000)

    def read(self, path: str) -> bytes:
        try:
            file = os.open(self.full(path), os.O_RDONLY)  # half the time of `open` for small files
            try:
                first = os.read(file, FIRST_BYTES)
                rest = iter(lambda: os.read(file, READ_BYTES), b"")
                return b"".join((first, *rest)) if first else first
            finally:
                os.close(file)
        except OSError as e:  # entering `named` for each of a thousand instants is what costs here
            with named(self._root, path):
                raise e from None

    def read_range(self, path: str, start: int, length: int) -> bytes:
        try:
            file = os.open(self.full(path), os.O_RDONLY)
            try:
                return _read_fully(file, start, length)
            finally:
                os.close(file)
        except OSError as e:  # entering `named` for each of a thousand footers is what costs here
            with named(self._root, path):
                raise e from None

    def open_input(self, path: str) -> pa.NativeFile:
        full = self.full(path)
        with named(self._root, path):
            if os.stat(full).st_size > MOST_MAPPED:
                return pa.OSFile(full, "rb")
            return pa.memory_map(full, "rb")

    def open_output(self, path: str) -> pa.NativeFile:
        full = self.full(path)
        with named(self._root, path):
            os.makedirs(os.path.dirname(full), exist_ok=True)
            _drop_checksum(full)
            return pa.OSFile(full, "wb")

    def _write_temporary(self, full: str, data: bytes) -> str:
        # The name matches no instant, data or marker grammar, so that one left by a crash is ignored.
        temporary = f"{os.path.dirname(full)}/.{os.path.basename(full)}.{uuid.uuid4().hex}.tmp"
        os.makedirs(os.path.dirname(full), exist_ok=True)
        try:
            with open(temporary, "xb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        except OSError:
            _unlink_quietly(temporary)
            raise
        return temporary

    def create(self, path: str, data: bytes) -> None:
        full = self.full(path)
        with named(self._root, path):
            temporary = self._write_temporary(full, data)
            try:
                if not os.path.lexists(full):
                    _drop_checksum(full)
                os.link(temporary, full)  # fails where there is a file, unlike rename
            finally:
                _unlink_quietly(temporary)

    def publish(self, path: str, data: bytes) -> None:
        full = self.full(path)
        with named(self._root, path):
            temporary = self._write_temporary(full, data)
            try:
                _drop_checksum(full)
                os.replace(temporary, full)
            except OSError:
                _unlink_quietly(temporary)
                raise

    def touch(self, path: str, data: bytes = b"") -> None:
        full = self.full(path)
        with named(self._root, path):
            _drop_checksum(full)
            try:
                _overwrite(full, data)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(full), exist_ok=True)
                _overwrite(full, data)

    def delete(self, path: str) -> bool:
        with named(self._root, path):
            try:
                os.unlink(self.full(path))
            except FileNotFoundError:
                return False
            _drop_checksum(self.full(path))
        return True

    def delete_dir(self, path: str) -> None:
        with named(self._root, path):
            try:
                shutil.rmtree(self.full(path))
            except FileNotFoundError:
                return

    def make_dir(self, path: str) -> None:
        with named(self._root, path):
            os.makedirs(self.full(path), exist_ok=True)

    def copy(self, source: str, target: str) -> None:
        full, to = self.full(source), self.full(target)
        with named(self._root, source):
            if os.path.isdir(full):
                shutil.copytree(full, to, dirs_exist_ok=True)
                return
            os.makedirs(os.path.dirname(to), exist_ok=True)
            _drop_checksum(to)
            shutil.copyfile(full, to)

    def rename(self, source: str, target: str) -> None:
        with named(self._root, source):
            os.rename(self.full(source), self.full(target))


def _drop_checksum(full: str) -> None:
    """Remove the `.<name>.crc` that Hadoop keeps beside a local file.

    One that does not fit the file's new content makes Hadoop, and so Apache Hudi, refuse to read it; without
    one the file is read unchecked.
    """
    folder, _, name = full.rpartition("/")
    _unlink_quietly(f"{folder}/.{name}.crc")


def _read_fully(file: int, start: int, length: int) -> bytes:
    """`length` bytes of a descriptor's file, fewer at its end only: the system gives at most 2 GiB a call."""
    data = os.pread(file, length, start)
    while 0 < len(data) < length:
        more = os.pread(file, length - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def _overwrite(path: str, data: bytes) -> None:
    with open(path, "wb") as f:
        f.write(data)


def _unlink_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return
