"""Fault-injecting storage: failing, delayed, lost and repeated calls, and crashes.

    faults = Faults(Fault(CRASH, operation="create", path="*.commit", after=True))
    with faults.process():                                  # ends as a killed process does, at the fault
        HudiTable.open(faults.wrap(storage)).upsert(rows)
    HudiTable.open(storage).upsert(rows)                    # the next writer mends what is left
    faults.log                                              # every call, with what was done to it

Which calls are struck is said by number, operation and path, or left to a seed; `struck` gives the faults that did
strike, by number, so that a run of one thread can be repeated exactly.  Heartbeats beat at any time: their calls are
neither counted nor struck, and end with the process.
"""

from __future__ import annotations

import builtins
import io
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import pyarrow as pa

from hudi_format.errors import StorageError
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import FileInfo, FlushingStorage, ReplacingStorage, Storage
from hudi_timeline.concurrency import heartbeat

T = TypeVar("T")

CHANGES = frozenset(
    {
        "create", "publish", "touch", "open_output", "close_output", "delete", "delete_dir", "make_dir",
        "copy", "rename", "replace",
    }
)  # fmt: skip
"""The calls that change a store; `close_output` ends a stream of `open_output`."""
LOOKS = frozenset({"list", "info", "read", "read_range", "open_input", "read_version"})
"""The calls that only look."""
WRITES = frozenset({"create", "publish", "touch", "close_output"})
"""The calls that can be torn: their content can arrive in part."""


class Kind(StrEnum):
    """Kind of fault.

    FAIL: StorageError; with `after`, although the call was done: its answer is lost.
    CRASH: the process ends, before or `after` the call; every later call raises `Crash` too.
    LOSE: nothing is done, and the caller is not told.
    DOUBLE: done twice, as by a client that repeats a request; the second answer counts.
    DELAY: done after some seconds, or answered that late with `after`.
    TEAR: a part of the content arrives, then the process ends.
    STALE: a listing as it was some changes ago.
    STALL: the process is stopped before or `after` the call, while others count its heartbeats as dead.
    """

    FAIL = "fail"
    CRASH = "crash"
    LOSE = "lose"
    DOUBLE = "double"
    DELAY = "delay"
    TEAR = "tear"
    STALE = "stale"
    STALL = "stall"


FAIL, CRASH, LOSE, DOUBLE = Kind.FAIL, Kind.CRASH, Kind.LOSE, Kind.DOUBLE
DELAY, TEAR, STALE, STALL = Kind.DELAY, Kind.TEAR, Kind.STALE, Kind.STALL


class Crash(BaseException):
    """Simulated end of the process.

    Not an Exception: nothing that handles errors may handle this.
    """


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and the calls that it affects.

    Attributes:
        number: the call with that number, counted from 1 over all calls; 0 for any.
        operation: a method of `Storage` or several; () for any that the kind can strike.
        path: a pattern of paths below the base path; `*` stands for slashes too.
        nth: of the calls that match all of the above, the first to be struck, from 1.
        times: how many from there on; 0 for all.
        after: once the call is done (FAIL, CRASH, DELAY, STALL).
        seconds: of DELAY.
        keep: the part of the bytes that arrives (TEAR).
        lag: how many changes ago the listing was true (STALE).
        error: the text of FAIL's error.
    """

    kind: Kind
    number: int = 0
    operation: str | frozenset[str] | tuple[str, ...] = ()
    path: str = "*"
    nth: int = 1
    times: int = 1
    after: bool = False
    seconds: float = 0.0
    keep: float = 0.5
    lag: int = 1
    error: str = "the store does not answer"

    def matches(self, number: int, operation: str, path: str) -> bool:
        """Whether the fault affects the call."""
        if self.number and number != self.number:
            return False
        if not _can_strike(self.kind, operation):
            return False
        wanted = (self.operation,) if isinstance(self.operation, str) else self.operation
        return (not wanted or operation in wanted) and fnmatchcase(path, self.path)


def _can_strike(kind: Kind, operation: str) -> bool:
    if kind is TEAR:
        return operation in WRITES
    if kind is STALE:
        return operation == "list"
    if kind is LOSE:
        return operation in CHANGES and operation not in ("open_output", "replace")
    return kind is not DOUBLE or operation not in ("open_output", "open_input", "close_output")


@dataclass(frozen=True, slots=True)
class Call:
    """One call in the log.

    `fault` is what struck it; `error` the class of what it raised; "" for nothing.
    """

    number: int
    operation: str
    path: str
    fault: str = ""
    error: str = ""

    @property
    def is_change(self) -> bool:
        return self.operation in CHANGES


class Faults:
    """Faults of one process; all storages that it wraps share one count of calls."""

    def __init__(
        self,
        *faults: Fault,
        sleep: Callable[[float], None] = time.sleep,
        stall: Callable[[], None] = lambda: None,
    ) -> None:
        """Faults of a process.

        Args:
            sleep: waits for DELAY.
            stall: what others do during STALL.
        """
        self.faults = faults
        self.log: list[Call] = []
        self.dead = False
        self._random: _Random | None = None
        self._met = [0] * len(faults)
        self._sleep = sleep
        self._stall = stall
        self._lock = threading.RLock()
        self._storages: list[Storage] = []
        self._struck: list[Fault] = []
        self._now = threading.local()

    @classmethod
    def random(
        cls,
        seed: int,
        *,
        rate: float = 0.02,
        kinds: Iterable[Kind] = (FAIL, LOSE, DOUBLE),
        operations: Iterable[str] = (),
        path: str = "*",
        sleep: Callable[[float], None] = time.sleep,
    ) -> Faults:
        """Random faults by seed: each matching call fails with probability `rate`.

        What is chosen depends on the seed, the number of the call and its operation.
        """
        found = cls(sleep=sleep)
        found._random = _Random(seed, rate, tuple(kinds), frozenset(operations), path)
        return found

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.log)

    @property
    def changes(self) -> int:
        """Number of calls that change a store."""
        return sum(c.is_change for c in self.log)

    @property
    def struck(self) -> tuple[Fault, ...]:
        """Faults that occurred, by call number: `Faults(*struck)` repeats them."""
        return tuple(self._struck)

    def wrap(self, storage: Storage) -> Storage:
        """The storage with these faults."""
        wrapped = FaultyStorage(storage, self)
        self._storages.append(wrapped)
        return wrapped

    @contextmanager
    def process(self) -> Iterator[Faults]:
        """Scope of a simulated process: a crash ends it and stops its heartbeats; files stay."""
        try:
            yield self
        except Crash:
            if not self.dead:
                raise
        finally:
            if self.dead:
                for storage in self._storages:
                    heartbeat.abandon(storage)

    # --- for the storage -----------------------------------------------------------------------------

    def strike(self, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None]) -> T:
        """Execute a call, subject to its fault.

        Args:
            act: the call itself; may be done twice or not at all.
            tear: does the call with a part of its content.
        """
        if threading.current_thread().name.startswith("hudi-heartbeat"):
            if self.dead:
                raise StorageError("the process is gone", file=path)
            return act()
        fault, number = self._begin(operation, path)
        self._now.lag = fault.lag if fault is not None and fault.kind is STALE else 0
        try:
            result = act() if fault is None else self._do(fault, operation, path, act, tear)
        except BaseException as e:
            self._note(number, type(e).__name__)
            raise
        return result

    @property
    def lag(self) -> int:
        """Number of latest changes that this thread's next listing omits; 0 if not stale."""
        return int(getattr(self._now, "lag", 0))

    @property
    def keeps_journal(self) -> bool:
        """Whether listings may be stale, so that changes must be recorded."""
        kinds = self._random.kinds if self._random is not None else [f.kind for f in self.faults]
        return STALE in kinds

    def _begin(self, operation: str, path: str) -> tuple[Fault | None, int]:
        with self._lock:
            if self.dead:
                raise Crash(f"{operation} {path}")
            number = len(self.log) + 1
            fault = self._choose(number, operation, path)
            if fault is not None:
                at = replace(fault, number=number, operation=(), path="*", nth=1, times=1)
                self._struck.append(at)
                if fault.kind in (CRASH, TEAR):
                    self.dead = True
            self.log.append(Call(number, operation, path, fault.kind.value if fault else ""))
            return fault, number

    def _choose(self, number: int, operation: str, path: str) -> Fault | None:
        if self._random is not None:
            return self._random.choose(number, operation, path)
        chosen = None
        for at, fault in enumerate(self.faults):
            if not fault.matches(number, operation, path):
                continue
            self._met[at] += 1
            past = self._met[at] - fault.nth
            if chosen is None and past >= 0 and (not fault.times or past < fault.times):
                chosen = fault
        return chosen

    def _do(
        self, fault: Fault, operation: str, path: str, act: Callable[[], T], tear: Callable[[float], None]
    ) -> T:
        if fault.kind is TEAR:
            tear(fault.keep)
            raise Crash(f"{operation} {path}")
        if not fault.after:
            self._hold_up(fault)
        if fault.kind is LOSE:
            return _nothing(operation)  # type: ignore[return-value]
        if fault.kind is DOUBLE:
            act()
        if fault.after or fault.kind in (DOUBLE, DELAY, STALE, STALL):
            result = act()
            if fault.after:
                self._hold_up(fault)
            if fault.kind not in (FAIL, CRASH):
                return result
        if fault.kind is FAIL:
            raise StorageError(fault.error, file=path)
        raise Crash(f"{operation} {path}")

    def _hold_up(self, fault: Fault) -> None:
        """Wait or stop, if the fault is of that kind."""
        if fault.kind is DELAY:
            self._sleep(fault.seconds)
        if fault.kind is not STALL:
            return
        with ExitStack() as stack:
            for storage in self._storages:
                stack.enter_context(heartbeat.stopped(storage))
            self._stall()

    def _note(self, number: int, error: str) -> None:
        with self._lock:
            self.log[number - 1] = replace(self.log[number - 1], error=error)


def _nothing(operation: str) -> object:
    """Result of a call that was not executed; a deletion reports success."""
    return True if operation == "delete" else None


@dataclass(frozen=True, slots=True)
class _Random:
    seed: int
    rate: float
    kinds: tuple[Kind, ...]
    operations: frozenset[str]
    path: str

    def choose(self, number: int, operation: str, path: str) -> Fault | None:
        source = random.Random(f"{self.seed}/{number}/{operation}")
        if source.random() >= self.rate:
            return None
        kinds = [k for k in self.kinds if _can_strike(k, operation)]
        if not kinds or (self.operations and operation not in self.operations):
            return None
        if not fnmatchcase(path, self.path):
            return None
        return Fault(
            source.choice(kinds),
            after=source.random() < 0.5,
            seconds=source.random() / 1000,
            keep=source.random(),
            lag=source.randint(1, 5),
        )


# The storage that `Faults` strikes: any other storage, each of whose calls may go wrong.


class FaultyStorage:
    """Storage below one base path whose calls go through `Faults`.

    Pickled, as for a task elsewhere, it is the storage inside: faults strike in the process that made them.
    """

    def __init__(self, inner: Storage, faults: Faults) -> None:
        """Storage with faults; made by `Faults.wrap`."""
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
        """The listing without the newest changes of this process."""
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
        return pa.PythonFile(_FaultyOutput(file, self, path), mode="w")

    def create(self, path: str, data: bytes) -> None:
        self._in_one_step("create", path, data, self.inner.create)

    def publish(self, path: str, data: bytes) -> None:
        self._in_one_step("publish", path, data, self.inner.publish)

    def _in_one_step(self, operation: str, path: str, data: bytes, act: Callable[[str, bytes], None]) -> None:
        """A write of which, torn, there is at most the temporary file that would have got the name."""

        def tear(part: float) -> None:
            if self.is_local:
                folder, _, name = path.rpartition("/")
                self.inner.touch(f"{folder}/.{name}.{uuid.uuid4().hex}.tmp", data[: int(len(data) * part)])

        self._change(operation, path, lambda: act(path, data), tear)

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
        """Flush of the inner storage; neither counted nor failed, as a process cannot observe it."""
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
        """End a stream; its content arrives whole or in part."""

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


class _FaultyOutput(io.RawIOBase):
    """Stream to a new file, buffered until closed, so that it can be torn or lost."""

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
        """Does nothing: only the end of the stream counts."""

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._storage.end(self._path, self._file, self._held.getvalue())


def _same(storage: Storage) -> Storage:
    return storage
