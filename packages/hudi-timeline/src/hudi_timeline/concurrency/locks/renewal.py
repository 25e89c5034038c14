"""Renewal of a lease by a thread, as long as its holder is at work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from hudi_format.errors import LockError
from hudi_format.fork_safe import Owned

log = logging.getLogger("hudi")

_LONGEST_END_S = 10  # a renewal that hangs does not hang the writer


class Renewal:
    """A thread that renews a lease until it is stopped, or the lease is lost.

    Args:
        renew: renews once; LockError where the lease is lost or cannot be renewed now.
        is_over: whether nobody is left to stop it, so that the lease may run out.
        every_s: pause between two renewals.
        name: of the lock, for messages.
    """

    def __init__(
        self, renew: Callable[[], None], is_over: Callable[[], bool], every_s: float, name: str
    ) -> None:
        self._owned = Owned()
        self._renew, self._is_over = renew, is_over
        self._every_s = every_s
        self._name = name
        # Not an Event: an interrupt within its `set` leaves it locked.
        self._stopping: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"hudi-renewal of {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._goes_on() and not self._is_over():
            try:
                self._renew()
            except LockError as e:
                # Who holds it asks before it publishes; the next renewal may come through.
                log.warning("%s was not renewed: %s", self._name, e)

    def _goes_on(self) -> bool:
        try:
            self._stopping.get(timeout=self._every_s)
        except Empty:
            return True
        return False

    def stop(self) -> None:
        """End the thread; does nothing in a forked child, which has none."""
        if not self._owned.here:
            return
        self._stopping.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=_LONGEST_END_S)
