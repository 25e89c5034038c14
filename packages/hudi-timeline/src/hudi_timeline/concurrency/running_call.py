"""Running calls: whether the function that holds a lock or write is still executing.

KeyboardInterrupt may come between any two steps, also at the first one of a function that would give something back.
A notebook then keeps the traceback, and with it every object of the call: that an object is there says nothing.
That the function which held it has ended does.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from types import FrameType

_MADE_BY_YIELD = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class RunningCall:
    """The call of a function."""

    __slots__ = ("_frame",)

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame

    @classmethod
    def here(cls) -> RunningCall:
        """The running call: of the nearest non-generator function on the stack.

        A generator that waits at its `yield`, as those of context managers, is not running although it goes on.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and (
            frame.f_code.co_flags & _MADE_BY_YIELD or frame.f_code.co_filename == contextlib.__file__
        ):
            frame = frame.f_back
        return cls(frame)

    @property
    def is_over(self) -> bool:
        """Whether the function has returned or raised."""
        if self._frame is not None:
            try:
                # Refused as long as the frame is executed, in whichever thread; afterwards only a traceback
                # could still show the variables of these functions of ours.
                self._frame.clear()
            except RuntimeError:
                return False
            self._frame = None
        return True
