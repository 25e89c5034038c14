"""KeyboardInterrupt at a chosen step of Python code.

    count = steps_of(lambda: table.upsert(rows))
    with Interrupt(at=17) as struck:                         # the 17th step raises
        table.upsert(rows)
    struck.where                                             # "c_return protocol.py:93 hold < commit.py:198 begin"

Steps are entries of Python functions and returns from C functions, where CPython looks for signals, and, which is more
than it does, returns from Python functions.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_STEPS = ("call", "c_return", "return")
_SHOWN = 4


class Interrupt:
    """Context manager that raises KeyboardInterrupt at one step, and swallows it at its end.

    Attributes:
        steps: how many there were.
        where: the step that was struck, with its callers; "" for none.
        error: the exception as it arrived; None where it did not.
    """

    def __init__(self, at: int = 0, *, within: tuple[str, ...] = ("hudi_",)) -> None:
        """Interrupt at a step.

        Args: at: the step, from 1; 0 for none.  within: parts of the paths of the code whose steps count.
        """
        self._at = at
        self._within = within
        self._counts: dict[Any, bool] = {}
        self.steps = 0
        self.where = ""
        self.error: BaseException | None = None

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("KeyboardInterrupt comes to the main thread only")
        sys.setprofile(self._step)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        sys.setprofile(None)
        self.error = error
        return isinstance(error, KeyboardInterrupt)

    def _step(self, frame: FrameType, event: str, arg: object) -> None:
        if event not in _STEPS or frame.f_code in _OWN:
            return
        code = frame.f_code
        wanted = self._counts.get(code)
        if wanted is None:
            wanted = self._counts[code] = any(part in code.co_filename for part in self._within)
        if not wanted:
            return
        self.steps += 1
        if self.steps == self._at:
            sys.setprofile(None)
            self.where = f"{event} {_callers(frame)}"
            raise KeyboardInterrupt


_OWN = (Interrupt.__enter__.__code__, Interrupt.__exit__.__code__)


def _callers(frame: FrameType | None) -> str:
    shown: list[str] = []
    while frame is not None and len(shown) < _SHOWN:
        code = frame.f_code
        shown.append(f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(shown)


def steps_of(act: Callable[[], object], *, within: tuple[str, ...] = ("hudi_",)) -> int:
    """Number of steps of an uninterrupted call."""
    with Interrupt(within=within) as counted:
        act()
    return counted.steps
