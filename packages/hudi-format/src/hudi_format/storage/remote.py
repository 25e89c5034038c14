"""Storage on any store that fsspec reaches.

Object stores have no folders and no rename, and make a file only if none is there by a condition of the
write itself.  Stores with folders, such as HDFS, write under another name and move that into place.
"""

from __future__ import annotations

import difflib
import inspect
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeAlias

import fsspec
import pyarrow as pa

from hudi_format.errors import HudiError, OptionError, StorageError, UnsupportedError
from hudi_format.fork_safe import Owned
from hudi_format.storage.errors import NO_ROOT, code_of, is_taken, refusals
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import FileInfo
from hudi_format.storage.safe_path import check_below
from hudi_format.storage.schemes import FOLDERS, MEMORY, OBJECTS, UNKNOWN, Scheme, normalised, scheme_of
from hudi_format.storage.streams import open_ranges, open_upload

log = logging.getLogger("hudi")

THREADS = 16
_CONFLICT_TRIES = 3
_DELETED_AT_ONCE = 1000  # S3's limit
_NO_SUCH_CALL = ("NotImplemented", "MethodNotAllowed", "405", "501")
_NO_SECRETS = ("endpoint_url", "region_name", "addressing_style", "account_name", "project")
_OF_FSSPEC = (
    "use_listings_cache",
    "listings_expiry_time",
    "max_paths",
    "skip_instance_cache",
    "token",
    "profile",
)
_said: set[str] = set()
# The class below has a method of the name `list`.
Infos: TypeAlias = list[FileInfo]
Names: TypeAlias = list[str]


class FsspecStorage:
    """A store below one URL.

    Pickles with its options, so that tasks reach the store; its text never shows them.
    """

    is_local = False

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None = None) -> None:
        """Open a store.

        Raises UnsupportedError: the package for the scheme is missing.
        """
        self._uri = normalised(uri)
        self._scheme = scheme_of(uri)
        self._options = dict(storage_options or {})
        self._secrets = tuple(_texts(self._options))
        self._made, root = _file_system(self._uri, self._scheme, self._options)
        self._owned = Owned()
        self._root = root.rstrip("/")
        self.has_folders = self._scheme.kind in (FOLDERS, UNKNOWN)

    @property
    def _fs(self) -> Any:
        if not self._owned.here:  # fsspec's threads and connections do not live on in a forked child
            self._made, _ = _file_system(self._uri, self._scheme, self._options)
            self._owned = Owned()
        return self._made

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"FsspecStorage({self._uri!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return FsspecStorage, (self._uri, self._options)

    def beside(self, uri: str) -> FsspecStorage:
        """The same store below another URL."""
        return FsspecStorage(uri, self._options)

    def full(self, path: str) -> str:
        """Full path of a relative one.

        Raises CorruptFileError: a path that leads out of the root.
        """
        return f"{self._root}/{check_below(path, self._uri)}" if path else self._root

    def _changing(self, path: str) -> AbstractContextManager[None]:
        """Error translation of `_guard` for writes and deletes."""
        return self._guard(check_below(path, self._uri, changes=True))

    def _guard(self, path: str) -> AbstractContextManager[None]:
        return refusals(self._uri, path, self._scheme, self._secrets)

    # --- looking -------------------------------------------------------------------------------------

    def list(self, path: str) -> list[FileInfo]:
        with self._guard(path):
            return self._listed(path)

    def _listed(self, path: str) -> Infos:
        """Entries of a folder; [] where there is none."""
        try:
            return self._entries(path)
        except (FileNotFoundError, NotADirectoryError) as e:
            if code_of(e) in NO_ROOT:
                raise
            return []

    def _entries(self, path: str) -> Infos:
        full = self.full(path)
        if self._scheme.name == "s3":
            return self._objects(full)
        self._fs.invalidate_cache(full)
        found = self._fs.ls(full, detail=True)
        # The listing of a file is the file itself, and a folder may have a mark of its own name.
        inner = [e for e in found if str(e["name"]).strip("/") != full.strip("/")]
        # The listing of some stores, HTTP's for one, tells no sizes.
        return [self._info(self._fs.info(e["name"]) if _size_is_missing(e) else e) for e in inner]

    def _objects(self, full: str) -> Infos:
        """One S3 listing, without s3fs's extra request for an empty result's parent."""
        bucket, key, _ = self._fs.split_path(full)
        prefix = f"{key}/" if key else ""
        out: Infos = []
        more: dict[str, str] = {}
        while True:
            page = self._fs.call_s3(
                "list_objects_v2", self._fs.req_kw, Bucket=bucket, Prefix=prefix, Delimiter="/", **more
            )
            folders = (p["Prefix"][len(prefix) : -1] for p in page.get("CommonPrefixes", ()))
            out += [FileInfo(name, True) for name in folders if name]
            out += [
                _info({**o, "name": o["Key"], "size": o["Size"]})
                for o in page.get("Contents", ())
                if o["Key"] != prefix
            ]
            if not page.get("IsTruncated"):
                return out
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def _info(self, entry: Mapping[str, Any]) -> FileInfo:
        if _size_is_missing(entry):
            raise StorageError(
                "the store does not report file sizes, so that missing parts would go unnoticed",
                table=self._uri,
                file=str(entry["name"]),
                remedy="use a store that reports sizes, or copy the table to one.",
            )
        return _info(entry)

    def info(self, path: str) -> FileInfo | None:
        try:
            with self._guard(path):
                self._fs.invalidate_cache(self.full(path).rpartition("/")[0])
                return self._info(self._fs.info(self.full(path)))
        except FileNotFoundError:
            return None

    def read(self, path: str) -> bytes:
        # Several requests side by side would need the size first, which is a request of its own.
        plain = {"max_concurrency": 1} if self._scheme.name == "s3" else {}
        with self._guard(path):
            data: bytes = self._fs.cat_file(self.full(path), **plain)
            return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        with self._guard(path):
            try:
                data: bytes = self._fs.cat_file(self.full(path), start=start, end=start + length)
            except OSError as e:
                if code_of(e) in ("416", "InvalidRange"):  # it begins at the file's end
                    return b""
                raise
            return data

    def open_input(self, path: str) -> pa.NativeFile:
        found = self.info(path)
        if found is None or found.is_dir:
            raise FileNotFoundError(path)
        return self.open_sized(path, found.size)

    def open_sized(self, path: str, size: int) -> pa.NativeFile:
        full = self.full(path)

        def fetch(start: int, end: int) -> bytes:
            with self._guard(path):
                data: bytes = self._fs.cat_file(full, start=start, end=end)
                return data

        return open_ranges(fetch, size)

    # --- writing -------------------------------------------------------------------------------------

    def open_output(self, path: str) -> pa.NativeFile:
        with self._changing(path):
            self._make_parent(path)
            file = self._fs.open(self.full(path), "wb")
        return open_upload(file, lambda: self._guard(path))

    def create(self, path: str, data: bytes) -> None:
        with self._changing(path):
            if self.has_folders:
                self._create_by_rename(path, data)
                return
            for attempt in range(_CONFLICT_TRIES):
                try:
                    self._put_if_absent(path, data)
                    return
                except OSError as e:
                    # Two writes at one moment: the store refuses one before it knows which of them wins.
                    if "ConditionalRequestConflict" in str(e) and attempt + 1 < _CONFLICT_TRIES:
                        continue
                    if is_taken(e):
                        raise FileExistsError(path) from None
                    raise

    def _put_if_absent(self, path: str, data: bytes) -> None:
        put = self._fs.pipe_file
        taken = inspect.signature(getattr(self._fs, "_pipe_file", put)).parameters
        if "mode" in taken:
            put(self.full(path), data, mode="create")
        elif "overwrite" in taken:
            put(self.full(path), data, overwrite=False)
        else:
            raise UnsupportedError(
                f"the installed {self._scheme.package} does not support conditional writes",
                table=self._uri,
                remedy=f"run pip install --upgrade {self._scheme.package}.",
            )

    def _create_by_rename(self, path: str, data: bytes) -> None:
        if self._scheme.kind == UNKNOWN and self._scheme.name not in _said:
            _said.add(self._scheme.name)
            log.warning(
                "%s://: this store may overwrite files on rename; write to a table there from one "
                "process at a time",
                self._scheme.name,
            )
        if self._fs.exists(self.full(path)):
            raise FileExistsError(path)
        temporary = self._write_temporary(path, data)
        try:
            self._fs.mv(temporary, self.full(path))
        except OSError:
            self._fs.rm_file(temporary)
            if self._fs.exists(self.full(path)):
                raise FileExistsError(path) from None
            raise

    def _write_temporary(self, path: str, data: bytes) -> str:
        # The name matches no instant, data or marker grammar, so that one left by a crash is ignored.
        folder, _, name = self.full(path).rpartition("/")
        self._fs.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        with self._fs.open(temporary, "wb") as f:
            f.write(data)
        return temporary

    def publish(self, path: str, data: bytes) -> None:
        with self._changing(path):
            if not self.has_folders:
                self._fs.pipe_file(self.full(path), data)
                return
            if self._fs.exists(self.full(path)):
                # A rename does not replace, and between a deletion and a rename the file would be missing: what
                # is replaced while others look at it (heartbeats) is read with care.
                self._fs.pipe_file(self.full(path), data)
                return
            self._fs.mv(self._write_temporary(path, data), self.full(path))

    def touch(self, path: str, data: bytes = b"") -> None:
        with self._changing(path):
            self._make_parent(path)
            self._fs.pipe_file(self.full(path), data)

    def _make_parent(self, path: str) -> None:
        # On object stores this would make a bucket that is missing, be it by a slip in its name.
        if self.has_folders:
            self._fs.makedirs(self.full(path).rpartition("/")[0], exist_ok=True)

    def make_dir(self, path: str) -> None:
        with self._changing(path):
            if self.has_folders:
                self._fs.makedirs(self.full(path), exist_ok=True)

    # --- replacing on condition ----------------------------------------------------------------------

    @property
    def can_replace(self) -> bool:
        return self._scheme.name == "s3"

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        bucket, key, _ = self._fs.split_path(self.full(path))
        try:
            with self._guard(path):
                found = self._fs.call_s3("get_object", Bucket=bucket, Key=key)
                return fsspec.asyn.sync(self._fs.loop, found["Body"].read), str(found["ETag"])
        except FileNotFoundError:
            return None

    def replace(self, path: str, data: bytes, version: str) -> bool:
        with self._changing(path):
            try:
                self._fs.pipe_file(self.full(path), data, IfMatch=version)
            except OSError as e:
                if is_taken(e) or isinstance(e, FileNotFoundError):
                    return False
                raise
        return True

    # --- deleting and moving -------------------------------------------------------------------------

    def delete(self, path: str) -> bool:
        try:
            with self._changing(path):
                self._fs.rm_file(self.full(path))
        except FileNotFoundError:
            return False
        return True

    def delete_dir(self, path: str) -> None:
        with self._changing(path):
            self._delete_files(self._files(path))
            if self.has_folders and self._fs.exists(self.full(path)):
                self._fs.rm(self.full(path), recursive=True)

    def files_below(self, path: str) -> Names:
        with self._guard(path):
            start = len(self.full(path)) + 1
            return [name[start:] for name in self._files(path)]

    def _files(self, path: str) -> Names:
        """Full names of all files below a folder.

        Found by listing: in fsspec's own rm a "*" is a wildcard.
        """
        if self._scheme.name == "s3":  # whose listings go to any depth
            self._fs.invalidate_cache(self.full(path))
            inside = self.full(path) + "/"
            flat = self._fs.find(self.full(path), detail=True)
            return sorted(n for n, e in flat.items() if e["type"] == "file" and n.startswith(inside))
        found, pending = [], [path]
        while pending:
            folder = pending.pop()
            for entry in self._listed(folder):
                inner = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir:
                    pending.append(inner)
                else:
                    found.append(self.full(inner))
        return found

    def _delete_files(self, names: Iterable[str]) -> None:
        left = list(names)
        if self._scheme.name == "s3" and len(left) > 1:
            left = self._delete_at_once(left)
        for _ in side_by_side(self._fs.rm_file, left, THREADS, "hudi-store"):
            pass

    def _delete_at_once(self, names: Names) -> Names:
        """Delete many objects in few requests; returns those left to delete one by one."""
        left = []
        for start in range(0, len(names), _DELETED_AT_ONCE):
            some = names[start : start + _DELETED_AT_ONCE]
            keys = {self._fs.split_path(n)[1]: n for n in some}
            wanted = {"Objects": [{"Key": k} for k in keys], "Quiet": True}
            try:
                bucket = self._fs.split_path(some[0])[0]
                answer = self._fs.call_s3("delete_objects", Bucket=bucket, Delete=wanted)
            except (NotImplementedError, OSError) as e:
                if not isinstance(e, NotImplementedError) and code_of(e) not in _NO_SUCH_CALL:
                    raise
                left += some  # a store that speaks S3 without this call
                continue
            # A refusal of one of them is told by its own deletion.
            left += [keys[e["Key"]] for e in answer.get("Errors", ())]
        return left

    def copy(self, source: str, target: str) -> None:
        self._copy(source, target)

    def _copy(self, source: str, target: str) -> Names:
        with self._guard(source), self._changing(target):
            files = self._files(source) or [self.full(source)]
            old, new = self.full(source), self.full(target)

            def copy(name: str) -> None:
                to = new + name[len(old) :]
                if self.has_folders:
                    self._fs.makedirs(to.rpartition("/")[0], exist_ok=True)
                self._fs.cp_file(name, to)

            for _ in side_by_side(copy, files, THREADS, "hudi-store"):
                pass
        return files

    def rename(self, source: str, target: str) -> None:
        if self.has_folders:
            with self._changing(source), self._changing(target):
                self._make_parent(target)
                self._fs.mv(self.full(source), self.full(target), recursive=True)
            return
        check_below(source, self._uri, changes=True)
        files = self._copy(source, target)
        with self._guard(source):
            self._delete_files(files)


def _file_system(uri: str, scheme: Scheme, options: Mapping[str, Any]) -> tuple[Any, str]:
    given = dict(options)
    if scheme.kind != MEMORY:
        given.setdefault("use_listings_cache", False)  # a commit of another process must be seen
    try:
        _check_names(uri, scheme, options)
        fs, root = fsspec.core.url_to_fs(uri, **given)
        return fs, str(root)
    except HudiError:  # some are ValueErrors too
        raise
    except ImportError as e:
        name = uri.partition("://")[0]
        raise UnsupportedError(
            f"{name}:// needs a missing package ({e})",
            table=uri,
            remedy="install it." if scheme.kind == UNKNOWN else f"run pip install {scheme.package}.",
        ) from None
    except OSError as e:  # HDFS without Hadoop's native library, an address that is none
        reason = (str(e).splitlines() or [type(e).__name__])[0]
        raise StorageError(
            f"the store cannot be opened: {reason}",
            table=uri,
            remedy=f"check the address, and the requirements of {scheme.package}.",
        ) from None
    except ValueError as e:
        if "Protocol not known" in str(e):
            raise UnsupportedError(
                f"no file system is known for {uri.partition('://')[0]}://",
                table=uri,
                remedy="correct the path, or install the fsspec package for it.",
            ) from None
        raise OptionError(
            f"invalid storage options: {e}", table=uri, remedy=f"see the options of {scheme.package}."
        ) from None
    except TypeError as e:
        raise OptionError(
            f"invalid storage options: {e}", table=uri, remedy=f"see the options of {scheme.package}."
        ) from None


def _check_names(uri: str, scheme: Scheme, options: Mapping[str, Any]) -> None:
    """Refuse option names unknown to the store's package, which might ignore them."""
    if scheme.kind != OBJECTS:
        return
    known = {*_OF_FSSPEC}
    for cls in fsspec.get_filesystem_class(scheme.name).__mro__:
        if "__init__" in vars(cls):
            known |= {
                n for n in inspect.signature(cls.__init__).parameters if n not in ("self", "args", "kwargs")
            }
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise OptionError(
                f"{scheme.package} has no storage option {name!r}",
                table=uri,
                remedy=f"did you mean {near[0]!r}?" if near else f"see the options of {scheme.package}.",
                option=name,
            )


def _texts(value: object) -> Iterator[str]:
    """All texts in nested options that may be secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in _NO_SECRETS:
                yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _size_is_missing(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") != "directory" and entry.get("size") is None


def _info(entry: Mapping[str, Any]) -> FileInfo:
    name = str(entry["name"]).rstrip("/").rpartition("/")[2]
    is_dir = entry.get("type") == "directory"
    moment = next(
        (entry[k] for k in ("mtime", "LastModified", "last_modified", "created") if entry.get(k)), 0
    )
    if isinstance(moment, datetime):
        moment = moment.timestamp()
    mtime_ms = int(moment * 1000) if isinstance(moment, (int, float)) else 0
    return FileInfo(name, is_dir, -1 if is_dir else int(entry["size"]), mtime_ms)
