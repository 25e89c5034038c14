"""Heartbeats of running writes: files whose renewal shows that the writer is alive.

`.hoodie/.heartbeat/<instant>`; Apache Hudi looks at its modification time only.  Ours says in JSON who
writes it, so that the write of a process that died on this machine counts as dead at once.

Source: HoodieHeartbeatClient of Apache Hudi 0.15.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from queue import Empty, SimpleQueue

from hudi_format._checks import loads
from hudi_format.errors import ConcurrentWriterError, StorageError
from hudi_format.fork_safe import Owned, ProcessLock
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency.own_files import create_own
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.concurrency.store_clock import store_seconds
from hudi_timeline.options.transaction_options import HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES

FOLDER = ".hoodie/.heartbeat"
DEFAULT_INTERVAL_MS: int = HEARTBEAT_INTERVAL_MS.value
DEFAULT_MISSES: int = HEARTBEAT_MISSES.value

# Below this, a late beat of the own thread says more about a busy machine than about the writer.  What
# another writer did meanwhile shows in the files, which are looked at too.
_LEAST_TOLERANCE_S = 5.0
_LONGEST_PID = 18  # digits; longer ones are no number of a process

# Writes of this process that are running; a heartbeat file of this process that is not here is left over.
_running: dict[str, Heartbeat] = {}
_running_lock = ProcessLock()
# The call of a heartbeat that is being ended: it counts for nothing wherever an interrupt comes, and the next one
# to begin ends what is left of it.
_OVER = RunningCall(None)
if hasattr(os, "register_at_fork"):  # the writes of the process that forked are not the child's
    os.register_at_fork(after_in_child=_running.clear)


def heartbeat_path(instant: str, folder: str = FOLDER) -> str:
    return f"{folder}/{instant}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process behind a heartbeat, and its distinguishing marks.

    `boot` and `namespace` say in which numbering `pid` counts, `started` (kernel ticks since boot)
    tells two processes with one number apart; they are "" where the system does not say.
    """

    host: str = ""
    boot: str = ""
    namespace: str = ""
    pid: int = 0
    started: str = ""
    token: str = ""
    interval_ms: int = 0
    misses: int = 0

    def text(self) -> str:
        """The process as one word."""
        return "|".join((self.host, self.boot, self.namespace, str(self.pid), self.started))

    @classmethod
    def of_text(cls, text: str) -> Owner | None:
        """The process of such a word; None for other text."""
        parts = text.split("|")
        if (
            len(parts) != 5
            or not (parts[3].isascii() and parts[3].isdecimal())
            or len(parts[3]) > _LONGEST_PID
        ):
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), parts[4])


@dataclass(frozen=True, slots=True)
class Liveness:
    """Liveness of an instant's writer.

    `age_ms` is the time since the last beat, None without a heartbeat file; `reason` says in words why
    the writer counts as dead or alive.
    """

    alive: bool
    age_ms: int | None
    reason: str
    owner: Owner | None = None

    @property
    def process(self) -> str:
        """The writer's process and host, in words; "" where they are not told."""
        owner = self.owner
        return f"process {owner.pid} on {owner.host}" if owner is not None and owner.pid else ""


def this_process() -> Owner:
    """The identity of this process."""
    return process_of(os.getpid())


def process_of(pid: int) -> Owner:
    """The identity of a process of this machine."""
    return Owner(
        host=socket.gethostname(),
        boot=_text("/proc/sys/kernel/random/boot_id"),
        namespace=_link("/proc/self/ns/pid"),
        pid=pid,
        started=_start_and_state(pid)[0],
    )


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:  # not Linux, or hidden by the container
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _start_and_state(pid: int) -> tuple[str, str]:
    """Start time and state letter of a process; ("", "") where the system does not tell."""
    # The second field is the command in parentheses, which may hold anything.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[19], fields[0]) if len(fields) > 19 else ("", "")


def has_ended(owner: Owner) -> bool:
    """Whether the owner was a process of this machine that has ended."""
    here = this_process()
    if not owner.boot or (owner.boot, owner.namespace) != (here.boot, here.namespace) or owner.pid <= 0:
        return False
    if owner.pid == here.pid and owner.started == here.started:
        return not _is_at_work(owner.token)
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):  # no system has such numbers
        return True
    except PermissionError:  # another user's process: it exists
        pass
    started, state = _start_and_state(owner.pid)
    if not started or not owner.started:  # not told: its age decides
        return False
    return started != owner.started or state in "ZX"


def _is_at_work(token: str) -> bool:
    """Whether a heartbeat of this process belongs to a running write, not an interrupted one."""
    with _running_lock.threads:
        beat = _running.get(token)
    if beat is None:
        return False
    if beat.call is None or not beat.call.is_over:
        return True
    beat.give_up()
    return False


class Heartbeat:
    """A heartbeat renewed by a thread until `stop`.

    Attributes:
        call: who writes; once that call is over without `stop`, as by an interrupt, the heartbeat counts as dead.
            None: it counts until `stop`.
    """

    def __init__(
        self,
        storage: Storage,
        instant: str,
        interval_ms: int,
        misses: int,
        clock: Callable[[], float],
        call: RunningCall | None = None,
        folder: str = FOLDER,
    ) -> None:
        self.call = call
        self._path = heartbeat_path(instant, folder)
        self._owned = Owned()
        self._storage = storage
        self.instant = instant
        self._tolerance_s = max(interval_ms * misses / 1000, _LEAST_TOLERANCE_S)
        self._interval_s = interval_ms / 1000
        self._clock = clock
        # Not an Event: an interrupt within its `set` leaves it locked, and its next `set` would wait for ever.
        self._stopping: SimpleQueue[None] = SimpleQueue()
        self._lost = ""
        self._problem = ""
        # Stores without an atomic replacement show a file half written while it is renewed.
        self._renewing = threading.Lock()
        self.owner = replace(this_process(), token=uuid.uuid4().hex, interval_ms=interval_ms, misses=misses)
        self._content = json.dumps(asdict(self.owner)).encode()
        self._last_beat = clock()
        self._thread = threading.Thread(target=self._run, name=f"hudi-heartbeat-{instant}", daemon=True)
        try:
            with _running_lock.threads:
                _running[self.owner.token] = self
            # Not published: an instant that another writer has taken must stay its own.
            create_own(storage, self._path, self._content)
            self._last_beat = clock()
            self._thread.start()
        except BaseException:
            self._stopping.put(None)
            self._forget()
            raise

    @property
    def is_own(self) -> bool:
        """Whether this process, and not its parent before a fork, started the heartbeat."""
        return self._owned.here

    @property
    def is_taken(self) -> bool:
        """Whether somebody took it for dead and acted on it: the file is gone, or another's.

        Raises:
            StorageError: it cannot be read.
        """
        with self._renewing:
            owner = _read_owner(self._storage, self._path)
        return owner is None or owner.token != self.owner.token

    def _run(self) -> None:
        while self._goes_on():
            if self.call is not None and self.call.is_over:
                self._forget()
                return
            self.beat()

    def _goes_on(self) -> bool:
        """Wait for the next beat; returns whether there is one."""
        try:
            self._stopping.get(timeout=self._interval_s)
        except Empty:
            return True
        return False

    def beat(self) -> None:
        """Renew the heartbeat.

        A removed file is not created again: another writer took it away.
        """
        try:
            if self._storage.info(self._path) is None:
                self._lost = "its heartbeat file was removed"
                self._stopping.put(None)
                return
            with self._renewing:
                self._storage.publish(self._path, self._content)
            self._last_beat = self._clock()
            self._problem = ""
        except StorageError as e:
            # The storage may come back; `check` counts the missed beats.
            self._problem = str(e)
        except ConcurrentWriterError:  # removed between these two lines
            self._lost = "its heartbeat file was removed"
            self._stopping.put(None)

    def check(self) -> None:
        """Check that no other writer can have declared this write dead.

        Raises:
            ConcurrentWriterError: beats were missed, or the heartbeat is gone or another's.
        """
        late_s = self._clock() - self._last_beat
        reason = self._lost
        if not self._owned.here:
            reason = "it belongs to the process that this one was forked from"
        if not reason and late_s > self._tolerance_s:
            reason = f"its last heartbeat was {late_s:.0f} s ago, more than {self._tolerance_s:.0f} s"
            reason += f" ({self._problem})" if self._problem else ""
        if not reason:
            with self._renewing:
                owner = _read_owner(self._storage, self._path)
            if owner is None or owner.token != self.owner.token:
                reason = "its heartbeat file was removed" if owner is None else "another writer holds it"
        if reason:
            raise ConcurrentWriterError(
                f"this write may have been rolled back by another writer: {reason}",
                table=self._storage.uri,
                instant=self.instant,
                remedy=f"run the write again; where beats come late, raise {HEARTBEAT_INTERVAL_MS}.",
            )

    def stop(self) -> None:
        """End the thread and remove the file; idempotent.

        A forked child leaves both to its parent.
        """
        if not self._owned.here:
            return
        try:
            # It counts until its file is gone: who looks in between sees a writer that ends, not one that died.
            self.halt()
            self._storage.delete(self._path)
        finally:
            self._stopping.put(None)  # an interrupt may have come before it was told to end
            self.call = _OVER
            self._forget()

    def give_up(self) -> None:
        """End the thread and leave the file, as a dying process does."""
        if not self._owned.here:
            return
        self.call = _OVER
        self.halt()
        self._forget()

    def halt(self) -> None:
        """End the thread; the file stays valid until it is too old."""
        self._stopping.put(None)
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            # A beat that hangs in the storage must not hang the writer; its file expires by itself.
            self._thread.join(timeout=10)

    def _forget(self) -> None:
        with _running_lock.threads:
            _running.pop(self.owner.token, None)


def give_up_abandoned() -> None:
    """End heartbeats of this process whose calls ended without `stop`, as after an interrupt."""
    with _running_lock.threads:
        begun = list(_running.values())
    for beat in begun:
        if beat.call is not None and beat.call.is_over:
            beat.give_up()


def start(
    storage: Storage,
    instant: str,
    interval_ms: int = DEFAULT_INTERVAL_MS,
    misses: int = DEFAULT_MISSES,
    *,
    clock: Callable[[], float] = time.monotonic,
    call: RunningCall | None = None,
    folder: str = FOLDER,
) -> Heartbeat:
    """Start the heartbeat of a write, before its requested file is created.

    Args:
        clock: seconds that only grow, to tell missed beats.
        call: who writes, see `Heartbeat`.
        folder: of heartbeats of another kind, which `instant` is the name of one of.

    Raises:
        FileExistsError: there is a heartbeat of this instant.
        StorageError: the first beat cannot be written.
    """
    give_up_abandoned()
    return Heartbeat(storage, instant, interval_ms, misses, clock, call, folder)


def abandon(storage: Storage) -> None:
    """End this object's heartbeats and leave their files, as a dying process does."""
    with _running_lock.threads:
        begun = [beat for beat in _running.values() if beat._storage is storage]
    for beat in begun:
        beat.give_up()


@contextmanager
def stopped(storage: Storage) -> Iterator[None]:
    """Scope in which this object's heartbeats count as dead, as a stopped process's do."""
    with _running_lock.threads:
        begun = {token: beat for token, beat in _running.items() if beat._storage is storage}
        for token in begun:
            del _running[token]
    try:
        yield
    finally:
        with _running_lock.threads:
            _running.update(begun)


def _read_owner(storage: Storage, path: str) -> Owner | None:
    """Owner of a heartbeat: None without a file, an empty Owner where it is unknown."""
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        given = asdict(Owner(**loads(data)))
        return Owner(**{name: type(value)(given[name]) for name, value in asdict(Owner()).items()})
    except (ValueError, TypeError, RecursionError, OverflowError):  # Apache Hudi's empty ones, and any other
        return Owner()


def liveness(
    storage: Storage,
    instant: str,
    interval_ms: int = DEFAULT_INTERVAL_MS,
    misses: int = DEFAULT_MISSES,
    *,
    now: Callable[[], float] = time.time,
    folder: str = FOLDER,
    to_act: bool = False,
) -> Liveness:
    """Liveness of the writer of `instant`.

    It is not without a heartbeat file, with one older than interval times misses (the longer of the
    writer's own and the given ones), or when its process is known to have ended.

    Args:
        now: this process's clock, which may be wrong.
        to_act: something is done where the writer is dead: an age that says so is taken by the store's clock too.

    Raises:
        StorageError: the files cannot be looked at, or the store's clock not be asked.
    """
    path = heartbeat_path(instant, folder)
    info = storage.info(path)
    owner = _read_owner(storage, path) if info is not None else None
    if info is None or owner is None:
        return Liveness(False, None, "it has no heartbeat")
    age_ms = int(now() * 1000) - info.mtime_ms
    if has_ended(owner):
        return Liveness(False, age_ms, f"process {owner.pid} on {owner.host} has ended", owner)
    limit_ms = max(interval_ms * misses, owner.interval_ms * owner.misses)
    if age_ms > limit_ms and to_act:
        age_ms = int(store_seconds(storage, folder, now=now) * 1000) - info.mtime_ms
    if age_ms > limit_ms:
        return Liveness(False, age_ms, f"its last heartbeat is {age_ms // 1000} s old", owner)
    return Liveness(True, age_ms, f"its last heartbeat is {max(age_ms, 0) // 1000} s old", owner)


def list_instants(storage: Storage) -> list[str]:
    """Instants with a heartbeat file, in order."""
    return sorted(e.name for e in storage.list(FOLDER) if not e.is_dir and e.name.isdigit())


def delete(storage: Storage, instant: str) -> None:
    """Remove the heartbeat file of a finished write."""
    storage.delete(heartbeat_path(instant))
