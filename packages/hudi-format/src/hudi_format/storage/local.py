"""Storage in a local folder."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from stat import S_ISDIR, S_ISLNK

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_format.model import join_path
from hudi_format.storage.protocol import FileInfo, named
from hudi_format.storage.safe_path import check_below

# A name that is too long is that of no file.
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
_TRIES_TO_EMPTY = 20  # a folder in which others make and remove files meanwhile
_TRIES_TO_MAKE = 5
_NO_FSYNC = (errno.EINVAL, errno.EBADF, errno.EROFS)
"""What file systems answer that do not flush folders."""
FIRST_BYTES, READ_BYTES = 1 << 16, 1 << 20
FOLLOW = "HUDI_FOLLOW_LINKS"
"""`read` in the environment: links that lead out of a table are followed by reads."""
MOST_FOLDERS = 10_000
_NOT_READ = (
    f"links out of a table are not followed: put the files in its place, or set {FOLLOW}=read "
    "in the environment if the target belongs to the table."
)
_NOT_CHANGED = (
    "links out of a table are never written or deleted through: remove the link, or "
    "put its target in its place."
)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class LocalStorage:
    """Storage in a local folder.

    Links may lead to other places of the folder.  Nothing is written or deleted through one that leads out of it, and
    nothing read unless the environment says so (`FOLLOW`); a link itself is deleted as a file is.  For reads a folder
    is looked at once by each object.
    """

    is_local = True

    def __init__(self, root: str, *, flushes: bool = True) -> None:
        self._root = root.rstrip("/") or "/"
        self._flushes = flushes
        self._real: str | None = None
        self._inside: set[str] = set()
        self._entered: dict[str, tuple[int, int]] = {}

    @property
    def uri(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(LocalStorage, flushes=self._flushes), (self._root,)

    def full(self, path: str) -> str:
        """Full path of a relative one.

        Raises CorruptFileError: a path that leads out of the root.
        """
        return f"{self._root}/{check_below(path, self._root)}" if path else self._root

    # --- links ---------------------------------------------------------------------------------------

    def _changed(self, path: str, *, itself: bool = True) -> str:
        """Full path for a write or delete; refuses links that lead out of the root.

        Args:
            itself: the last part counts too; not where a link would be removed or replaced, and not followed.
        """
        full = self.full(check_below(path, self._root, changes=True))
        if not self._is_inside(full if itself or not path else os.path.dirname(full)):
            raise self._linked(path, _NOT_CHANGED)
        return full

    def _seen(self, path: str) -> str:
        """Full path for a read; a link in the last segment is not resolved."""
        full = self.full(path)
        folder = path.rpartition("/")[0]
        if folder and folder not in self._inside:
            if not self._may_read(f"{self._root}/{folder}"):
                raise self._linked(path)
            if len(self._inside) >= MOST_FOLDERS:
                self._inside.clear()
            self._inside.add(folder)
        return full

    def _followed(self, path: str, full: str) -> str:
        """Full path for a read whose last segment is a link."""
        if not self._may_read(full):
            raise self._linked(path)
        return full

    def _may_read(self, full: str) -> bool:
        return os.environ.get(FOLLOW) == "read" or self._is_inside(full)

    def _is_inside(self, full: str) -> bool:
        real = os.path.realpath(full)
        for fresh in (False, True):  # the root itself may be a link, which may be another one by now
            if fresh or self._real is None:
                self._real = os.path.realpath(self._root)
            if _is_below(real, self._real):
                return True
        return False

    def _linked(self, path: str, remedy: str = _NOT_READ) -> StorageError:
        return StorageError(
            "a link leads out of the table's folder", table=self._root, file=path, remedy=remedy
        )

    # --- looking -------------------------------------------------------------------------------------

    def list(self, path: str, *, unless: tuple[str, ...] = ()) -> list[FileInfo]:
        """The entries of `Storage.list`, without links to folders within the table.

        Args:
            unless: files whose names end in one of these are given without size (-1) and time (0).
        """
        out = []
        with self._entries(path) as entries:
            for entry in entries:
                if entry.is_symlink() and self._leads_back(path, entry.name):
                    continue
                if entry.is_symlink() and entry.is_file() and not self._may_read(entry.path):
                    raise self._linked(join_path(path, entry.name))
                if unless and entry.name.endswith(unless) and entry.is_file():
                    out.append(FileInfo(entry.name, False))
                    continue
                try:
                    stat = entry.stat()
                except FileNotFoundError:  # removed between listing and stat
                    continue
                is_dir = entry.is_dir()
                size = -1 if is_dir else stat.st_size
                out.append(FileInfo(entry.name, is_dir, size, stat.st_mtime_ns // 1_000_000))
        return out

    def folders(self, path: str, marks: Collection[str]) -> tuple[Sequence[str], bool]:
        """Names of the folders in a folder, and whether a file with one of the mark names exists.

        A fraction of the time of a listing, where there are many files.
        """
        found, is_marked = [], False
        with self._entries(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.name)
                elif entry.name in marks:
                    is_marked = True
                elif entry.is_symlink() and entry.is_dir() and not self._leads_back(path, entry.name):
                    found.append(entry.name)
        return found, is_marked

    def left_out(self, path: str) -> dict[str, str]:
        """Links that `list` leaves out, with their targets.

        That is a path below the root ("" for the root itself), or a full path where it is none.
        """
        out = {}
        root = os.path.realpath(self._root)
        with self._entries(path) as entries:
            for e in entries:
                if e.is_symlink() and self._leads_back(path, e.name):
                    target = os.path.realpath(f"{self.full(path)}/{e.name}")
                    below = "" if target == root else os.path.relpath(target, root)
                    out[e.name] = below if _is_below(target, root) else target
        return out

    @contextmanager
    def _entries(self, path: str) -> Iterator[Iterable[os.DirEntry[str]]]:
        """What the system lists of a folder; nothing where there is none."""
        with named(self._root, path):
            try:
                entries = os.scandir(self._listed(path))
            except OSError as e:
                if e.errno not in _ABSENT:
                    raise
                yield ()
                return
            with entries:
                yield entries

    def _listed(self, path: str) -> str:
        full = self._seen(path)
        return (
            self._followed(path, full) if path and path not in self._inside and os.path.islink(full) else full
        )

    def _leads_back(self, folder: str, name: str) -> bool:
        """Whether a link leads to another folder of the table or to one of its own parents.

        Those folders are listed where they are; by way of the link their files would come twice, or without an end.
        Of links to other places one is followed on a path: several could lead to each other.
        """
        full = f"{self.full(folder)}/{name}"
        if not os.path.isdir(full):
            return False
        root = os.path.realpath(self._root)
        place, target = os.path.realpath(self.full(folder)), os.path.realpath(full)
        if _is_below(target, root) or _is_below(place, target):
            return True
        return not _is_below(place, root)

    def info(self, path: str) -> FileInfo | None:
        full = self._seen(path)
        with named(self._root, path):
            try:
                stat = os.lstat(full) if path else os.stat(full)
                if S_ISLNK(stat.st_mode):
                    stat = os.stat(self._followed(path, full))
            except OSError as e:
                if e.errno not in _ABSENT:
                    raise
                return None
        is_dir = S_ISDIR(stat.st_mode)
        name = path.rpartition("/")[2]
        return FileInfo(name, is_dir, -1 if is_dir else stat.st_size, stat.st_mtime_ns // 1_000_000)

    def read(self, path: str) -> bytes:
        full = self._seen(path)
        try:
            file = self._opened(path, full)  # half the time of `open` for small files
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
        full = self._seen(path)
        try:
            file = self._opened(path, full)
            try:
                return _read_fully(file, start, length)
            finally:
                os.close(file)
        except OSError as e:  # entering `named` for each of a thousand footers is what costs here
            with named(self._root, path):
                raise e from None

    def _opened(self, path: str, full: str) -> int:
        try:
            return os.open(full, os.O_RDONLY | NO_LINK)
        except OSError as e:
            if e.errno != errno.ELOOP or not os.path.islink(full):
                raise
            return os.open(self._followed(path, full), os.O_RDONLY)

    def open_input(self, path: str) -> pa.NativeFile:
        full = self._seen(path)
        with named(self._root, path):
            if os.path.islink(full):
                full = self._followed(path, full)
            # Not mapped: of a file that becomes shorter meanwhile, by a copy over it or on a network's file system, a
            # map ends the process where a read is an error; and what was touched of a map counts as memory.
            return pa.OSFile(full, "rb")

    # --- writing -------------------------------------------------------------------------------------

    def open_output(self, path: str) -> pa.NativeFile:
        full = self._changed(path)
        with named(self._root, path):
            _make_folders(os.path.dirname(full))
            _drop_checksum(full)
            return pa.OSFile(full, "wb")

    def _write_temporary(self, path: str, full: str, data: bytes) -> str:
        # The name matches no instant, data or marker grammar, so that one left by a crash is ignored.
        temporary = f"{os.path.dirname(full)}/.{os.path.basename(full)}.{uuid.uuid4().hex}.tmp"
        _make_folders(os.path.dirname(full))
        try:
            with open(temporary, "xb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        except FileNotFoundError:
            raise self._taken(path) from None  # with its folder
        except OSError:
            _unlink_quietly(temporary)
            raise
        return temporary

    def create(self, path: str, data: bytes) -> None:
        full = self._changed(path, itself=False)
        with named(self._root, path):
            temporary = self._write_temporary(path, full, data)
            try:
                if not os.path.lexists(full):
                    _drop_checksum(full)
                os.link(temporary, full)  # fails where there is a file, unlike rename
            except FileNotFoundError:
                raise self._taken(path) from None
            finally:
                _unlink_quietly(temporary)

    def publish(self, path: str, data: bytes) -> None:
        full = self._changed(path, itself=False)
        with named(self._root, path):
            temporary = self._write_temporary(path, full, data)
            try:
                _drop_checksum(full)
                os.replace(temporary, full)
            except FileNotFoundError:
                raise self._taken(path) from None
            except OSError:
                _unlink_quietly(temporary)
                raise

    def _taken(self, path: str, when: str = "before it was in its place") -> ConcurrentWriterError:
        """Error of a write whose file was removed before it got its name, or was flushed.

        So it is with a process that was stopped at that moment for so long that others took it for dead.
        """
        return ConcurrentWriterError(
            f"another process removed what was written here {when}: this one was stopped for longer than its lock "
            "lasts, or the folder was deleted",
            table=self._root, file=path,
            remedy="run it again; where processes are stopped for so long, give the lock a longer lease.",
        )  # fmt: skip

    def touch(self, path: str, data: bytes = b"") -> None:
        full = self._changed(path)
        with named(self._root, path):
            _drop_checksum(full)
            try:
                _overwrite(full, data)
            except FileNotFoundError:
                _make_folders(os.path.dirname(full))
                _overwrite(full, data)

    def delete(self, path: str) -> bool:
        full = self._changed(path, itself=False)
        with named(self._root, path):
            try:
                os.unlink(full)
            except FileNotFoundError:
                return False
            _drop_checksum(full)
        return True

    def delete_dir(self, path: str) -> None:
        full = self._changed(path, itself=False)
        self._entered = {}  # the next folder of a name may have the number of the last one
        with named(self._root, path):
            if path and os.path.islink(full):  # what it leads to stays
                os.unlink(full)
                return
            for left in range(_TRIES_TO_EMPTY, -1, -1):
                try:
                    shutil.rmtree(full)
                    return
                except FileNotFoundError:  # all of it, or one file that another process removes too
                    if not os.path.lexists(full):
                        return
                    if not left:
                        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), full) from None
                except OSError as e:
                    if e.errno != errno.ENOTEMPTY or not left:  # not that another has made a file meanwhile
                        raise

    def make_dir(self, path: str) -> None:
        full = self._changed(path)
        with named(self._root, path):
            _make_folders(full)

    def copy(self, source: str, target: str) -> None:
        full, to = self._listed(source), self._changed(target)
        with named(self._root, source):
            if os.path.isdir(full):
                self._check_links(full)
                self._check_links(to)
                shutil.copytree(full, to, dirs_exist_ok=True)
                return
            self._followed(source, full)
            _make_folders(os.path.dirname(to))
            _drop_checksum(to)
            shutil.copyfile(full, to)

    def _check_links(self, folder: str) -> None:
        """Check the links below a folder before a copy, which follows them."""
        for top, folders, files in os.walk(folder):
            for name in (*folders, *files):
                full = f"{top}/{name}"
                if os.path.islink(full) and not self._is_inside(full):
                    raise self._linked(os.path.relpath(full, self._root), _NOT_CHANGED)

    def rename(self, source: str, target: str) -> None:
        full, to = self._changed(source, itself=False), self._changed(target, itself=False)
        self._entered = {}
        with named(self._root, source):
            os.rename(full, to)

    def flush(self, paths: Iterable[str], *, written: bool = True) -> None:
        if not self._flushes:
            return
        folders: set[str] = set()
        for path in paths:
            full = self.full(path)
            if written and path:
                try:
                    with named(self._root, path):
                        _flush_file(full)
                except FileNotFoundError:
                    raise self._taken(path, "before it was on the disk") from None
            # Of the base path itself: the folders above it, some of which may be new.
            folders.update([os.path.dirname(full)] if path else map(str, PurePath(full).parents))
        entered = self._entered
        # A disk takes each flush of a folder for an order to empty its cache, also where nothing is new in it.
        new = {
            f: found for one in folders if one != self._root for f, found in self._not_entered(one, entered)
        }
        for folder in sorted(folders.union(map(os.path.dirname, new)), key=len, reverse=True):
            _flush_folder(folder)
        entered.update(new)

    def _not_entered(
        self, folder: str, entered: Mapping[str, tuple[int, int]]
    ) -> Iterator[tuple[str, tuple[int, int]]]:
        """Folders, from one upwards, whose entries in those above them this object did not flush."""
        while len(folder) > len(self._root):
            try:
                stat = os.stat(folder)
                found = stat.st_dev, stat.st_ino
            except OSError:  # removed meanwhile
                found = -1, -1
            if entered.get(folder) == found:
                return
            yield folder, found
            folder = os.path.dirname(folder)

    def unflushed(self) -> LocalStorage:
        return LocalStorage(self._root, flushes=False)


def _flush_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _flush_folder(path: str) -> None:
    """Flush a folder; ignores removed folders and those above this user's rights."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return
    try:
        os.fsync(file)
    except OSError as e:
        if e.errno not in _NO_FSYNC:
            raise StorageError(f"the storage refused: {e.strerror}", file=path) from e
    finally:
        os.close(file)


def _make_folders(full: str) -> None:
    """Make a folder and those above it, where they are not there.

    What else the system says must not pass for the absence or presence of the file that is to lie there.
    """
    for left in range(_TRIES_TO_MAKE, -1, -1):
        try:
            os.makedirs(full, exist_ok=True)
            return
        except FileExistsError:
            # Or a folder that another process made, and has removed since.
            if left and (os.path.isdir(full) or not os.path.lexists(full)):
                continue
            what, remedy = "a file has the name of the folder", "remove the file, or correct the path."
            raise StorageError(f"the storage refused: {what}", file=full, remedy=remedy) from None
        except FileNotFoundError:
            # Now and then: one above it was removed meanwhile.  Always: the file system has its own folders only.
            if not left:
                what, remedy = "no folder can be made here", "give a path on a file system that stores files."
                raise StorageError(f"the storage refused: {what}", file=full, remedy=remedy) from None


def _is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _drop_checksum(full: str) -> None:
    """Remove the `.<name>.crc` that Hadoop keeps beside a local file.

    One that does not fit the file's new content makes Hadoop, and so Apache Hudi, refuse to read it; without
    one the file is read unchecked.
    """
    folder, _, name = full.rpartition("/")
    _unlink_quietly(f"{folder}/.{name}.crc")


def _read_fully(file: int, start: int, length: int) -> bytes:
    """`length` bytes of a file, fewer at its end; the system gives at most 2 GiB per call."""
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


# A folder of a local disk as it was at one moment, while another process makes and removes files in it.
#
# The system gives a long folder in pieces, and sizes one by one: a listing that runs beside an archival may have an
# instant and lack a later one that was removed at the same time, or lack the completed file of an instant whose
# inflight file it has.  Both would pass for writes that were never completed.

# The system notes the time of a change by its tick, 10 ms at most: a folder that is older was not changed in the tick
# in which it is looked at, and any change from then on shows.
TICK_MS = 20
# Of file systems that note whole seconds, of which FAT notes every second one.
COARSE_TICK_MS = 2020
# An archival removes some thousand files a second.
MOST_S, PAUSE_S = 30.0, 0.002


def list_at_once(storage: LocalStorage, folder: str, *, unless: tuple[str, ...] = ()) -> list[FileInfo]:
    """Consistent listing of a local folder under concurrent changes.

    Raises:
        StorageError: files come and go all the time.
    """
    until = time.monotonic() + MOST_S
    names: set[str] | None = None
    while True:
        before = storage.info(folder)
        if before is None:
            return []
        tick = TICK_MS if before.mtime_ms % 1000 else COARSE_TICK_MS
        is_old = time.time() * 1000 - before.mtime_ms > tick
        entries = storage.list(folder, unless=unless)
        after = storage.info(folder)
        if is_old and after is not None and after.mtime_ms == before.mtime_ms:
            return entries
        found = {e.name for e in entries}
        if found == names:  # the same twice: so it was in between
            return entries
        if time.monotonic() > until:
            raise StorageError(
                f"the folder changed during every listing for {MOST_S:.0f} s",
                table=storage.uri,
                file=folder,
                remedy="read the table again when its writer has finished archiving.",
            )
        if names is not None:
            time.sleep(PAUSE_S)
        names = found
