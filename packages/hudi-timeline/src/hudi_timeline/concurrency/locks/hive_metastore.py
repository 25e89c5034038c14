"""Lock of HiveMetastoreBasedLockProvider: an exclusive lock of a Hive metastore on a table.

The metastore keeps a queue for each table, and gives up a lock that it has not heard of for as long as its
`hive.txn.timeout` says; the holder is heard of by heartbeats.

Source: HiveMetastoreBasedLockProvider of Apache Hudi 0.15; the service ThriftHiveMetastore of Hive 2.3.
"""

from __future__ import annotations

import getpass
import logging
import math
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from hudi_format.errors import InvalidOptionError, LockError
from hudi_format.fork_safe import Owned
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.holding import Holding, is_dead, process_in
from hudi_timeline.concurrency.locks.provider import InProcessLock, is_abandoned
from hudi_timeline.concurrency.locks.renewal import Renewal
from hudi_timeline.concurrency.locks.thrift_client import (
    BOOL,
    I32,
    I64,
    LIST,
    STRING,
    STRUCT,
    Answer,
    Field,
    RefusedError,
    Struct,
    ThriftClient,
    ThriftError,
)
from hudi_timeline.options.transaction_config import LockConfig
from hudi_timeline.options.transaction_options import HIVE_HEARTBEAT_MS, HIVE_URIS

log = logging.getLogger("hudi")

_URI = re.compile(r"thrift://(\[[0-9A-Fa-f:.]+\]|[^:/\s\[\]]+):(\d{1,5})/?\Z")
_TIMEOUT_S = 60
# The service tells nobody that it is his turn, so those who wait ask: the first in the queue so often, the others the
# rarer the farther back they stand.  Each answer takes the service a transaction of its database; asked by many at
# once, one that keeps its locks in Derby ends up giving no answers at all.
_TURN_S, _LONGEST_TURN_S = 0.05, 1.0
_LOOK_S = 1.0  # how often those who wait look at the whole queue
_LONGEST_S = 120  # after which a request that is not answered is not sent again
_TRIES_TO_GIVE_BACK = 2  # what was done under the lock is done: nobody waits long for its end

# Of the service: enumerations, and numbers of fields.
_EXCLUSIVE, _OF_TABLE, _NO_TRANSACTION = 3, 2, 6
_ACQUIRED, _WAITING = 1, 2
_ID, _STATE = 1, 2
_SHOWN_ID, _SHOWN_STATE, _SHOWN_TYPE, _SHOWN_HEARTBEAT, _SHOWN_SINCE = 1, 5, 6, 8, 9
_SHOWN_USER, _SHOWN_HOST, _SHOWN_AGENT = 10, 11, 13


class HiveMetastoreLock:
    """A lock in a Hive metastore.

    Args:
        config: database, table and addresses.
        pause: between tries of requests that are not answered, and between looks while it waits for its turn.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        config: LockConfig,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = _addresses(config.hive_uris or "")
        self._database, self._table = config.hive_database or "", config.hive_table or ""
        self._uris = config.hive_uris or ""
        self._config = config
        self._pause, self._clock = pause, clock
        self._threads = InProcessLock(self.name)
        self._owned = Owned()
        self._asking = threading.Lock()
        self._client: ThriftClient | None = None
        self._agent = ""
        self._id = 0
        self._held = False
        self._renewal: Renewal | None = None
        self._ahead = 0  # in the queue
        self._looked = -math.inf

    @property
    def name(self) -> str:
        return f"lock of {self._database}.{self._table} in the Hive metastore {self._uris}"

    # --- requests ---------------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        fields: Struct,
        *,
        again: Callable[[], Any] | None = None,
        tries: int | None = None,
    ) -> Any:
        """Answer of the metastore, asked anew where none came.

        Args:
            again: asked first before a request that has an effect is repeated; its answer ends that.
            tries: of a request without an answer; None for as many as the options say.

        Raises RefusedError, LockError.
        """
        pause_s, problem = self._config.pause_ms / 1000, ""
        until = self._clock() + _LONGEST_S
        for left in range((tries or self._config.retries + 1) - 1, -1, -1):
            try:
                if problem and again is not None and (found := again()) is not None:
                    return found
                return self._once(method, (1, STRUCT, fields))
            except ThriftError as e:
                problem = str(e)
            if self._clock() >= until:
                break
            if left:
                self._pause(pause_s)
                pause_s = min(2 * pause_s, self._config.most_pause_ms / 1000)
        raise self._no_answer(problem)

    def _no_answer(self, problem: str) -> LockError:
        return LockError(
            f"the Hive metastore gives no answer about {self.name}: {problem}",
            remedy=f"check {HIVE_URIS} and that the metastore runs, without Kerberos or TLS, and keeps locks "
            "(hive.support.concurrency, a transaction manager), then run the write again.",
        )

    def _once(self, method: str, *arguments: Field) -> Any:
        with self._asking:
            if self._client is None or not self._owned.here:
                self._client = self._connection()
            try:
                return self._client.call(method, *arguments)
            except ThriftError:
                self._disconnect()
                raise

    def _connection(self) -> ThriftClient:
        problem = ThriftError("no address")
        for host, port in self._addresses:
            try:
                return ThriftClient(host, port, _TIMEOUT_S)
            except ThriftError as e:
                problem = e
        raise problem

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _shown(self) -> list[Answer]:
        """Locks on the table, and those that wait for one."""
        request: Struct = [(1, STRING, self._database), (2, STRING, self._table), (4, BOOL, False)]
        try:
            found = self._once("show_locks", (1, STRUCT, request))
        except RefusedError as e:
            raise LockError(
                f"the Hive metastore does not show the locks of {self.name}: {e}",
                remedy="look into the metastore's log, and try again.",
            ) from None
        return [e for e in (found or {}).get(1, []) if isinstance(e.get(_SHOWN_ID), int)]

    # --- the lock ---------------------------------------------------------------------------------------

    def try_acquire(self) -> bool:
        if not self._threads.try_acquire():
            return False
        try:
            self._held = self._take()
        except BaseException:
            self.release()
            raise
        if not self._held:
            self._threads.release()  # the place in the queue stays
            return False
        every_s = self._config.hive_heartbeat_ms / 2000
        self._renewal = Renewal(self._renew, lambda: is_abandoned(self), every_s, self.name)
        return True

    def wait_for_turn(self, seconds: float) -> None:
        self._pause(min(seconds, _LONGEST_TURN_S, _TURN_S * max(self._ahead, 1)))

    def _take(self) -> bool:
        try:
            answer = self._check() if self._id and self._owned.here else self._enqueue()
        except RefusedError as e:
            if not self._id:
                raise LockError(
                    f"the Hive metastore refuses {self.name}: {e}",
                    remedy="check that it keeps locks (hive.support.concurrency, a transaction manager).",
                ) from None
            self._id = 0  # it was not heard of in time, and has lost its place
            return False
        self._id = int(answer.get(_ID, 0))
        state = answer.get(_STATE)
        if state == _ACQUIRED:
            return True
        if state != _WAITING:
            self._id = 0
            return False
        if self._clock() - self._looked >= _LOOK_S:
            self._look_at_queue()
        return False

    def _enqueue(self) -> Answer:
        self._owned = Owned()
        self._client = None  # one of the process that forked this one is not shared
        self._agent = f"{uuid.uuid4()} {heartbeat.this_process().text()}"
        component: Struct = [
            (1, I32, _EXCLUSIVE),
            (2, I32, _OF_TABLE),
            (3, STRING, self._database),
            (4, STRING, self._table),
            (6, I32, _NO_TRANSACTION),
        ]
        request: Struct = [
            (1, LIST, (STRUCT, [component])),
            (3, STRING, _user()),
            (4, STRING, socket.gethostname()),
            (5, STRING, self._agent),
        ]
        answer: Answer = self._ask("lock", request, again=self._own_in_queue) or {}
        if not isinstance(answer.get(_ID), int):
            raise LockError(
                f"the Hive metastore gives no number to {self.name}", remedy=f"check {HIVE_URIS}."
            )
        return answer

    def _own_in_queue(self) -> Answer | None:
        """This lock, by who asked for it.

        A request's answer may be lost; and a metastore that came back without its state counts from the beginning, so
        that another's lock has our number.
        """
        for shown in self._shown():
            if _text(shown.get(_SHOWN_AGENT)) == self._agent:
                return {_ID: shown[_SHOWN_ID], _STATE: shown.get(_SHOWN_STATE)}
        return None

    def _check(self) -> Answer:
        answer: Answer = self._ask("check_lock", [(1, I64, self._id)]) or {}
        if answer.get(_STATE) == _ACQUIRED and not self._has_number():
            return {}
        return answer

    def _has_number(self) -> bool:
        """Whether the lock with our number is ours."""
        try:
            found = self._own_in_queue()
        except ThriftError as e:
            raise self._no_answer(str(e)) from None
        return found is not None and found[_ID] == self._id

    def _look_at_queue(self) -> None:
        """Count who stands before us, and give back what processes of this machine hold that are no more."""
        self._looked = self._clock()
        try:
            shown = self._shown()
        except ThriftError:
            return  # they are given up in time
        self._ahead = 0
        for lock in shown:
            if is_dead(process_in(_text(lock.get(_SHOWN_AGENT)))):
                self._unlock(lock[_SHOWN_ID])
            elif lock[_SHOWN_ID] < self._id:
                self._ahead += 1

    def _unlock(self, number: int, tries: int | None = None) -> bool:
        """Give a lock back; returns whether it was there."""
        try:
            self._ask("unlock", [(1, I64, number)], tries=tries)
        except RefusedError:
            return False
        return True

    def _renew(self) -> None:
        number = self._id
        try:
            self._ask("heartbeat", [(1, I64, number)])
        except RefusedError:
            if number == self._id:
                self._held = False
                raise self._lost() from None

    def verify(self) -> None:
        self._threads.verify()
        if not self._held or not self._owned.here:
            raise self._lost()
        try:
            state = self._check().get(_STATE)  # which is a heartbeat too
        except RefusedError:
            state = None
        if state != _ACQUIRED:
            self._held = False
            raise self._lost()

    def _lost(self) -> LockError:
        return LockError(
            f"the lock was lost, or is not held: {self.name}",
            remedy=f"run the write again; where heartbeats come late, lower {HIVE_HEARTBEAT_MS} below the metastore's "
            "hive.txn.timeout.",
        )

    def release(self) -> None:
        renewal, self._renewal = self._renewal, None
        try:
            if not self._owned.here:  # the lock is that of the process that forked this one
                self._client = None
                return
            if renewal is not None:
                renewal.stop()
            # Interrupted, or without an answer, before it was known which number it has; or another's has it by now.
            if self._agent and (self._id or self._client is None) and (number := self._number_in_queue()):
                self._unlock(number, _TRIES_TO_GIVE_BACK)
        except LockError as e:
            # What was done under the lock stays done; the metastore gives it up in time.
            log.warning("%s could not be given back and is given up in time: %s", self.name, e)
        finally:
            self._id, self._agent, self._held = 0, "", False
            self._ahead, self._looked = 0, -math.inf
            if self._owned.here:
                self._disconnect()
            self._threads.release()

    def _number_in_queue(self) -> int:
        try:
            found = self._own_in_queue()
        except ThriftError as e:
            log.warning("%s may wait in the queue until it is given up: %s", self.name, e)
            return 0
        return 0 if found is None else int(found[_ID])

    def holding(self) -> Holding | None:
        try:
            shown = self._shown()
        except ThriftError as e:
            raise self._no_answer(str(e)) from None
        first = next((s for s in shown if s.get(_SHOWN_STATE) == _ACQUIRED), None)
        if first is None:
            return None
        agent = _text(first.get(_SHOWN_AGENT))
        process = process_in(agent)
        user = f"{_text(first.get(_SHOWN_USER))}@{_text(first.get(_SHOWN_HOST))}"
        since, renewed = first.get(_SHOWN_SINCE), first.get(_SHOWN_HEARTBEAT)
        return Holding(
            str(first[_SHOWN_ID]),
            agent if process is not None else user,
            process,
            since if isinstance(since, int) else None,
            renewed if isinstance(renewed, int) else None,
            waiting=len(shown) - 1,
        )

    def end_holding(self, token: str) -> bool:
        # The metastore takes the number of a lock that is no more without a word.
        found = self.holding()
        return found is not None and found.token == token and self._unlock(int(token))

    def holder(self) -> str:
        found = None if (own := self._threads.holder()) else self.holding()
        return own or ("" if found is None else found.holder)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def _addresses(uris: str) -> list[tuple[str, int]]:
    found = []
    for uri in (u.strip() for u in uris.split(",")):
        match = _URI.match(uri)
        if match is None or not 0 < int(match[2]) < 1 << 16:
            raise InvalidOptionError(
                f"{HIVE_URIS}={uri!r} is no address of a metastore",
                remedy="give thrift://host:port, several with commas between them.",
                option=HIVE_URIS,
            )
        found.append((match[1].strip("[]"), int(match[2])))
    return found
