"""The one seam to storage: everything under a table's base path goes through a `Storage`.

Paths are relative to the base path, with "/".  `create` and `publish` are the two calls that carry
correctness: `create` makes a file only if none is there, and readers never see part of it; `publish`
replaces a file in one step.  Every failure of the storage itself is a `StorageError` that names the
file; a file that is not there stays `FileNotFoundError`, one that is there `FileExistsError`.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs

from hudi_format.errors import StorageError

_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class FileInfo:
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
        """Make or replace a file with this content, in one step."""
        ...

    def touch(self, path: str, data: bytes = b"") -> None:
        """Make or overwrite a small file without any guarantee but that it then exists."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False where there was none."""
        ...

    def delete_dir(self, path: str) -> None:
        """Remove a folder and all in it; nothing happens where there is none."""
        ...

    def make_dir(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; in one step where `is_local`, else by copying."""
        ...


def open_storage(uri: str, storage_options: Mapping[str, Any] | None = None) -> Storage:
    """The storage below `uri`: a local path, `file:` or any scheme that fsspec knows."""
    text = str(uri)
    parsed = urlparse(text)
    if parsed.scheme in ("", "file") or len(parsed.scheme) == 1:
        path = text if parsed.scheme != "file" else unquote(parsed.path)
        return LocalStorage(os.path.abspath(os.path.expanduser(path)))
    scheme = _SCHEME_ALIASES.get(parsed.scheme, parsed.scheme)
    return FsspecStorage(scheme + text[len(parsed.scheme) :], storage_options)


@contextmanager
def _named(uri: str, path: str) -> Iterator[None]:
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


class LocalStorage:
    """A folder of this machine."""

    is_local = True

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/") or "/"

    @property
    def uri(self) -> str:
        return self._root

    def __reduce__(self) -> tuple[object, ...]:
        return LocalStorage, (self._root,)

    def full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list(self, path: str) -> list[FileInfo]:
        out = []
        with _named(self._root, path):
            try:
                entries = os.scandir(self.full(path))
            except (FileNotFoundError, NotADirectoryError):
                return []
            with entries:
                for e in entries:
                    try:
                        stat = e.stat()
                    except FileNotFoundError:  # removed between listing and stat
                        continue
                    is_dir = e.is_dir()
                    size = -1 if is_dir else stat.st_size
                    out.append(FileInfo(e.name, is_dir, size, stat.st_mtime_ns // 1_000_000))
        return out

    def info(self, path: str) -> FileInfo | None:
        with _named(self._root, path):
            try:
                stat = os.stat(self.full(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        is_dir = os.path.isdir(self.full(path))
        name = path.rpartition("/")[2]
        return FileInfo(name, is_dir, -1 if is_dir else stat.st_size, stat.st_mtime_ns // 1_000_000)

    def read(self, path: str) -> bytes:
        with _named(self._root, path), open(self.full(path), "rb") as f:
            return f.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with _named(self._root, path), open(self.full(path), "rb", buffering=0) as f:
            f.seek(start)
            return _read_fully(f, length)

    def open_input(self, path: str) -> pa.NativeFile:
        with _named(self._root, path):
            return pa.memory_map(self.full(path), "rb")

    def open_output(self, path: str) -> pa.NativeFile:
        full = self.full(path)
        with _named(self._root, path):
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
        with _named(self._root, path):
            temporary = self._write_temporary(full, data)
            try:
                if not os.path.lexists(full):
                    _drop_checksum(full)
                os.link(temporary, full)  # fails where there is a file, unlike rename
            finally:
                _unlink_quietly(temporary)

    def publish(self, path: str, data: bytes) -> None:
        full = self.full(path)
        with _named(self._root, path):
            temporary = self._write_temporary(full, data)
            try:
                _drop_checksum(full)
                os.replace(temporary, full)
            except OSError:
                _unlink_quietly(temporary)
                raise

    def touch(self, path: str, data: bytes = b"") -> None:
        full = self.full(path)
        with _named(self._root, path):
            _drop_checksum(full)
            try:
                _overwrite(full, data)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(full), exist_ok=True)
                _overwrite(full, data)

    def delete(self, path: str) -> bool:
        with _named(self._root, path):
            try:
                os.unlink(self.full(path))
            except FileNotFoundError:
                return False
            _drop_checksum(self.full(path))
        return True

    def delete_dir(self, path: str) -> None:
        with _named(self._root, path):
            try:
                shutil.rmtree(self.full(path))
            except FileNotFoundError:
                return

    def make_dir(self, path: str) -> None:
        with _named(self._root, path):
            os.makedirs(self.full(path), exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        with _named(self._root, source):
            os.rename(self.full(source), self.full(target))


def _drop_checksum(full: str) -> None:
    """Remove the `.<name>.crc` that Hadoop keeps beside a local file.

    One that does not fit the file's new content makes Hadoop, and so Apache Hudi, refuse to read it; without
    one the file is read unchecked.
    """
    folder, _, name = full.rpartition("/")
    _unlink_quietly(f"{folder}/.{name}.crc")


def _read_fully(f: io.FileIO, length: int) -> bytes:
    """`length` bytes, fewer at the file's end only: the system gives at most 2 GiB a call."""
    data = f.read(length) or b""
    while 0 < len(data) < length:
        more = f.read(length - len(data))
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


class FsspecStorage:
    """Any store that fsspec reaches.  `create` needs a store with conditional or exclusive writes."""

    is_local = False

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._uri = uri.rstrip("/")
        self._options = dict(storage_options or {})
        scheme = urlparse(uri).scheme
        options = dict(self._options)
        if scheme != "memory":
            options.setdefault("use_listings_cache", False)  # a commit of another process must be seen
        self._fs, root = fsspec.core.url_to_fs(self._uri, **options)
        self._root = root.rstrip("/")

    @property
    def uri(self) -> str:
        return self._uri

    def __reduce__(self) -> tuple[object, ...]:
        return FsspecStorage, (self._uri, self._options)

    def full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def list(self, path: str) -> list[FileInfo]:
        with _named(self._uri, path):
            self._fs.invalidate_cache(self.full(path))
            try:
                entries = self._fs.ls(self.full(path), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        own = self.full(path).rstrip("/")
        return [_info(e) for e in entries if str(e["name"]).rstrip("/") != own]

    def info(self, path: str) -> FileInfo | None:
        with _named(self._uri, path):
            self._fs.invalidate_cache(self.full(path).rpartition("/")[0])
            try:
                return _info(self._fs.info(self.full(path)))
            except FileNotFoundError:
                return None

    def read(self, path: str) -> bytes:
        with _named(self._uri, path):
            data: bytes = self._fs.cat_file(self.full(path))
            return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        with _named(self._uri, path):
            data: bytes = self._fs.cat_file(self.full(path), start=start, end=start + length)
            return data

    def open_input(self, path: str) -> pa.NativeFile:
        with _named(self._uri, path):
            return self._arrow().open_input_file(self.full(path))

    def open_output(self, path: str) -> pa.NativeFile:
        with _named(self._uri, path):
            self._fs.makedirs(self.full(path).rpartition("/")[0], exist_ok=True)
            return self._arrow().open_output_stream(self.full(path))

    def _arrow(self) -> pafs.PyFileSystem:
        return pafs.PyFileSystem(pafs.FSSpecHandler(self._fs))

    def create(self, path: str, data: bytes) -> None:
        with _named(self._uri, path):
            self._fs.makedirs(self.full(path).rpartition("/")[0], exist_ok=True)
            try:
                self._fs.pipe_file(self.full(path), data, mode="create")
            except FileExistsError:
                raise
            except OSError as e:
                # s3fs reports the store's refusal of a conditional put as a plain OSError.
                if "PreconditionFailed" in str(e) or "precondition" in str(e).lower():
                    raise FileExistsError(errno.EEXIST, "exists", path) from e
                raise

    def publish(self, path: str, data: bytes) -> None:
        with _named(self._uri, path):
            self._fs.makedirs(self.full(path).rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(self.full(path), data)

    def touch(self, path: str, data: bytes = b"") -> None:
        self.publish(path, data)

    def delete(self, path: str) -> bool:
        with _named(self._uri, path):
            try:
                self._fs.rm_file(self.full(path))
            except FileNotFoundError:
                return False
        return True

    def delete_dir(self, path: str) -> None:
        with _named(self._uri, path):
            try:
                self._fs.rm(self.full(path), recursive=True)
            except FileNotFoundError:
                return

    def make_dir(self, path: str) -> None:
        with _named(self._uri, path):
            self._fs.makedirs(self.full(path), exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        with _named(self._uri, source):
            self._fs.mv(self.full(source), self.full(target), recursive=True)


def _info(entry: Mapping[str, Any]) -> FileInfo:
    name = str(entry["name"]).rstrip("/").rpartition("/")[2]
    is_dir = entry.get("type") == "directory"
    moment = entry.get("mtime") or entry.get("LastModified") or entry.get("created")
    if isinstance(moment, datetime):
        moment = moment.timestamp()
    mtime_ms = int(moment * 1000) if isinstance(moment, (int, float)) else 0
    return FileInfo(name, is_dir, -1 if is_dir else int(entry.get("size") or 0), mtime_ms)
