"""Lock of ZookeeperBasedLockProvider: a queue of nodes, the first of which holds it.

The queue is `<base_path>/<lock_key>`.  The nodes have the names and numbers that Apache Hudi's client gives them, so
that its writers and ours wait for each other.  A node goes with the session of its writer: when that ends, or dies and
is not heard of for as long as the session lasts.

Source: InterProcessMutex of Apache Curator 2.13, which Apache Hudi 0.15 uses.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from hudi_format.errors import InvalidOptionError, LockError, UnsupportedError
from hudi_format.fork_safe import Owned
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding, process_in
from hudi_timeline.concurrency.locks.provider import InProcessLock
from hudi_timeline.options.transaction_options import (
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_SESSION_MS,
    ZOOKEEPER_URL,
)

log = logging.getLogger("hudi")

Answer = TypeVar("Answer")

# A node in the queue: Curator makes `_c_<uuid>-lock-<number>`.
_QUEUED = re.compile(r".*lock-(-?\d{1,11})\Z", re.DOTALL)


# Pause of a handle that has no place in the queue.
_LOOK_AGAIN_S = 0.02


class _SessionEndedError(LockError):
    """ZooKeeper has ended the session, and removed its nodes."""


class ZookeeperLock:
    """A lock in ZooKeeper.

    Args:
        hosts: comma separated, each with its port or without; may end in a path below which everything lies.
        path: of the node whose children are the queue.
        port: of hosts without one.
        session_ms: after how long a holder that is not heard of loses the lock.
        connection_ms: how long to wait for a connection.
        retries, pause_ms, most_pause_ms: of requests that are not answered.
    """

    def __init__(
        self,
        hosts: str,
        path: str,
        *,
        port: int | None = None,
        session_ms: int,
        connection_ms: int,
        retries: int,
        pause_ms: int,
        most_pause_ms: int,
    ) -> None:
        self._kazoo = _library()
        self._hosts = _with_port(hosts, port)
        self._path = _node_path(path)
        self._threads = InProcessLock(self.name)
        self._session_s = session_ms / 1000
        self._connection_s = connection_ms / 1000
        self._retry = {
            # kazoo counts all tries, and takes 0 for no end.
            "max_tries": retries + 1,
            # Who is not heard of for as long has lost the lock, and need not ask any longer.
            "deadline": max(self._session_s, self._connection_s),
            "delay": pause_ms / 1000,
            "max_delay": max(most_pause_ms / 1000, 0.001),
            "ignore_expire": False,
        }
        self._owned = Owned()
        self._client: Any = None
        self._node = ""
        self._held = False

    @property
    def name(self) -> str:
        return f"ZooKeeper node {self._path} on {self._hosts}"

    def try_acquire(self) -> bool:
        if not self._threads.try_acquire():
            return False
        try:
            self._held = self._ask(self._is_first)
        except _SessionEndedError:
            self.release()  # the next try has a session and a place in the queue of its own
            return False
        except BaseException:
            self.release()
            raise
        if not self._held:
            self._threads.release()  # the place in the queue stays
        return self._held

    def _ask(self, question: Callable[[Any], Answer]) -> Answer:
        """Answer of ZooKeeper, with its errors as ours."""
        try:
            return question(self._connected())
        except self._kazoo.expired:
            raise _SessionEndedError(f"the lock was lost: {self.name}, its session has ended") from None
        except self._kazoo.errors as e:
            reason = type(e).__name__ + (f": {e}" if str(e) else "")
            raise LockError(
                f"ZooKeeper gives no answer about {self._path} on {self._hosts} ({reason})",
                remedy=f"check {ZOOKEEPER_URL} and that ZooKeeper runs, then run the write again.",
            ) from None

    def _connected(self) -> Any:
        if self._client is None or not self._owned.here:
            self._owned = Owned()
            self._node, self._held = "", False
            self._client = self._kazoo.client(
                hosts=self._hosts,
                timeout=self._session_s,
                connection_retry=self._retry,
                command_retry=self._retry,
            )
            try:
                self._client.start(timeout=self._connection_s)
            except BaseException:  # what was stopped is not asked again
                client, self._client = self._client, None
                self._end(client)
                raise
        return self._client

    def _answer(self, asked: Any) -> Any:
        """Answer to a request; kazoo's timeout error where none comes, as behind a network that passes nothing on."""
        return asked.get(timeout=self._session_s)

    def _is_first(self, client: Any) -> bool:
        if not self._node:
            self._enqueue(client)
        queue = self._queue(client)
        if self._node not in queue:  # the session ended meanwhile, and its node with it
            self._node = ""
            return False
        return queue[0] == self._node

    def _enqueue(self, client: Any) -> None:
        name = f"_c_{uuid.uuid4()}-lock-"
        content = heartbeat.this_process().text().encode()

        def create() -> str:
            # A request whose answer was lost is not repeated where it was done.
            with suppress(self._kazoo.no_node):
                for child in self._answer(client.get_children_async(self._path)):
                    if child.startswith(name):
                        return str(child)
            made: str = self._answer(
                client.create_async(
                    f"{self._path}/{name}", content, ephemeral=True, sequence=True, makepath=True
                )
            )
            return made.rpartition("/")[2]

        self._node = client.retry(create)

    def _queue(self, client: Any) -> list[str]:
        """Names of the nodes in the queue, the holder's first."""

        def ask() -> list[str]:
            self._answer(client.sync_async(self._path))  # what is read next is not older than this moment
            children = self._answer(client.get_children_async(self._path))
            numbers = {child: _QUEUED.match(child) for child in children}
            return sorted((c for c, m in numbers.items() if m), key=lambda c: int(numbers[c][1]))  # type: ignore[index]

        try:
            found: list[str] = client.retry(ask)
        except self._kazoo.no_node:
            return []
        return found

    def wait_for_turn(self, seconds: float) -> None:
        gone = threading.Event()

        def watched(client: Any) -> bool:
            """Whether a node stands before ours, which sets `gone` when it goes."""
            queue = self._queue(client)
            if self._node not in queue[1:]:
                return False
            before = queue[queue.index(self._node) - 1]
            # The watch is called when the session ends, too.
            asked = f"{self._path}/{before}", lambda _: gone.set()
            if client.retry(lambda: self._answer(client.exists_async(*asked))) is None:
                gone.set()
            return True

        try:
            # Else another thread of this process has the lock, or the next try gets a new place.
            if self._node and self._ask(watched):
                gone.wait(seconds)
                return
        except _SessionEndedError:
            return
        time.sleep(min(seconds, _LOOK_AGAIN_S))

    def verify(self) -> None:
        self._threads.verify()
        if self._client is None or not self._held or not self._owned.here:
            raise self._lost("it is not held")

        def look(client: Any) -> None:
            if self._queue(client)[:1] != [self._node]:
                raise self._lost("its node is gone or no longer the first one")
            node = f"{self._path}/{self._node}"
            status = client.retry(lambda: self._answer(client.exists_async(node)))
            # kazoo begins a new session where one has ended, to which the node does not belong.
            if status is None or status.ephemeralOwner != client.client_id[0]:
                raise self._lost("its session has ended")

        try:
            self._ask(look)
        except _SessionEndedError:
            raise self._lost("its session has ended") from None

    def _lost(self, why: str) -> LockError:
        return LockError(
            f"the lock was lost: {self.name}, {why}",
            remedy=f"run the write again; where sessions end in long pauses, raise {ZOOKEEPER_SESSION_MS}.",
        )

    def release(self) -> None:
        client, self._client = self._client, None
        self._node, self._held = "", False
        try:
            # A forked child ends no session of its parent.
            if client is not None and self._owned.here:
                self._end(client)
        finally:
            self._threads.release()

    def _end(self, client: Any) -> None:
        """End a session, and its node with it."""
        try:
            client.stop()
            client.close()
        except (*self._kazoo.errors, OSError) as e:
            # What was done under the lock stays done; the session runs out by itself.
            log.warning("%s could not be given back and runs out with its session: %s", self.name, e)

    def holding(self) -> Holding | None:
        def look(client: Any) -> Holding | None:
            queue = self._queue(client)
            if not queue:
                return None
            try:
                node = f"{self._path}/{queue[0]}"
                content, status = client.retry(lambda: self._answer(client.get_async(node)))
            except self._kazoo.no_node:
                return None
            holder = bytes(content or b"").decode("utf-8", "replace")
            return Holding(
                queue[0], holder or queue[0], process_in(holder), int(status.ctime), waiting=len(queue) - 1
            )

        return self._ask(look)

    def end_holding(self, token: str) -> bool:
        if _QUEUED.match(token) is None or "/" in token:
            return False

        def end(client: Any) -> bool:
            try:
                client.retry(lambda: self._answer(client.delete_async(f"{self._path}/{token}")))
            except self._kazoo.no_node:
                return False
            return True

        return self._ask(end)

    def holder(self) -> str:
        found = None if (own := self._threads.holder()) else self.holding()
        return own or ("" if found is None or found.token == self._node else found.holder)


class _Kazoo:
    """The client library; imported where a lock of ZooKeeper is asked for."""

    def __init__(self) -> None:
        self.client = import_module("kazoo.client").KazooClient
        exceptions = import_module("kazoo.exceptions")
        self.no_node = exceptions.NoNodeError
        self.expired = exceptions.SessionExpiredError
        # Names that cannot be resolved and sockets that fail come as they are.
        self.errors = (
            exceptions.KazooException,
            import_module("kazoo.handlers.threading").KazooTimeoutError,
            import_module("kazoo.retry").RetryFailedError,
            socket.error,
        )


def _library() -> _Kazoo:
    try:
        return _Kazoo()
    except ImportError as e:
        raise UnsupportedError(
            f"locks in ZooKeeper need a missing package ({e})",
            remedy='run pip install "hudi-timeline[zookeeper]".',
        ) from None


def _with_port(hosts: str, port: int | None) -> str:
    """Hosts, those without a port with this one."""
    addresses, slash, below = hosts.strip().partition("/")
    named = [a.strip() for a in addresses.split(",") if a.strip()]
    if not named:
        raise InvalidOptionError(
            f"{ZOOKEEPER_URL}={hosts!r} names no host",
            remedy="give host:port,host:port.",
            option=ZOOKEEPER_URL,
        )
    if port is not None:
        named = [a if re.search(r":\d+\Z", a) else f"{a}:{port}" for a in named]
    return ",".join(named) + slash + below


def _node_path(path: str) -> str:
    parts = [p for p in path.split("/") if p]
    if any(p in (".", "..") or "\0" in p for p in parts):
        raise InvalidOptionError(
            f"{path!r} is no path of a ZooKeeper node",
            remedy=f"change {ZOOKEEPER_BASE_PATH}.",
            option=ZOOKEEPER_BASE_PATH,
        )
    return "/" + "/".join(parts)
