"""Calls of Python code from Arrow's threads, which the interpreter's end waits for.

Arrow reads ahead of whoever reads a dataset, and goes on for a while when nobody reads any more.  A thread of its own
that calls Python code while the interpreter ends is not let in: the process hung, or was aborted, where a dataset was
read in part when its script ended.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from weakref import WeakSet

from hudi_format.fork_safe import ProcessLock

# What is neither in a call nor at work for so long has read as far ahead as it does.
_QUIET_S = 0.05
_LOOK_S = 0.01
# Of threads that never rest, such as a daemon's that reads on.
_MOST_S = 30.0


class CallsOfArrow:
    """Count of the calls that are on their way: `with of_arrow:` around each.

    Attributes:
        callers: objects whose methods Arrow may call later; without one there is nothing to wait for.
    """

    def __init__(self) -> None:
        self.callers: WeakSet[object] = WeakSet()
        self._lock = ProcessLock()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._open: dict[int, int] = {}  # by thread

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock.threads:
            if self._pid != os.getpid():  # the calls of a forked child's parent end there
                self._begin()
            self._open[me] = self._open.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._lock.threads:
            left = self._open.get(me, 0) - 1
            if left > 0:
                self._open[me] = left
            else:
                self._open.pop(me, None)

    def wait(self) -> None:
        """Wait until Arrow has no more calls to make for a reader that has stopped."""
        if not self.callers or self._pid != os.getpid():
            return
        ends, quiet, worked = time.monotonic() + _MOST_S, 0.0, time.process_time()
        while quiet < _QUIET_S and time.monotonic() < ends:
            before, worked = worked, time.process_time()
            busy = worked - before > _LOOK_S / 2  # Arrow's threads decode what they have read
            quiet = 0.0 if self._open or busy else quiet + _LOOK_S
            time.sleep(_LOOK_S)


of_arrow = CallsOfArrow()
atexit.register(of_arrow.wait)
