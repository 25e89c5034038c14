"""Progress display of long writes and reads, on a terminal or in a notebook.

One switch: `HUDI_PROGRESS`, `auto` (the default), `true` or `false`; for a write the option `hudi.progress` stands over
it.  `auto` shows it where standard error is a terminal, or in a notebook, and nowhere else.  Nothing is shown in the
first half second, and nothing stays behind.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from hudi_format.errors import InvalidOptionError
from hudi_timeline.options.write_options import PROGRESS

if TYPE_CHECKING:
    from rich.console import Console

SWITCH = "HUDI_PROGRESS"
AUTO, ON, OFF = "auto", "true", "false"
DELAY_S = 0.5


class Reporter(Protocol):
    """Progress receiver.

    Its calls come from one thread, but for `advance`.
    """

    def phase(self, name: str) -> None:
        """Begin a phase; names are those of `CommitResult.timings`."""
        ...

    def advance(self, done: int, total: int) -> None:
        """Report the progress of the phase."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Silent:
    """Shows nothing."""

    def phase(self, name: str) -> None:
        return

    def advance(self, done: int, total: int) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


class ProgressView:
    """Console line with progress: item, phase, fraction, time; removed at the end."""

    def __init__(self, what: str, console: Console, *, delay_s: float = DELAY_S) -> None:
        # Nowhere else: few processes show anything, and importing it takes longer than a small read.
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._what = what
        self._task = self._bar.add_task(what, total=None)
        self._lock = threading.Lock()
        self._ended = False
        self._timer = threading.Timer(delay_s, self._show)
        self._timer.daemon = True

    def _show(self) -> None:
        with self._lock:
            if not self._ended:
                self._bar.start()

    def phase(self, name: str) -> None:
        with self._lock:  # a task of its own: how much there is to do is not known again
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(f"{self._what}: {name}", total=None)

    def advance(self, done: int, total: int) -> None:
        with self._lock:
            self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar.live.is_started:
                self._bar.stop()


def switched(asked: str = AUTO) -> bool:
    """Whether to show progress.

    Args:
        asked: by an option; `auto` leaves it to the switch, and that to where standard error goes.

    Raises:
        InvalidOptionError: the switch has another value.
    """
    if asked == AUTO:
        asked = os.environ.get(SWITCH, AUTO).strip().lower() or AUTO
    if asked not in (AUTO, ON, OFF):
        raise InvalidOptionError(
            f"{SWITCH}={asked!r} is invalid: use {AUTO}, {ON} or {OFF}",
            remedy="correct or unset it.",
            option=PROGRESS,
        )
    if asked != AUTO:
        return asked == ON
    return sys.stderr.isatty() or (_in_ipython() and _console().is_jupyter)


def _in_ipython() -> bool:
    return "IPython" in sys.modules


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def reporter(what: str, asked: str = AUTO) -> Reporter:
    """Progress display of one write or read."""
    return ProgressView(what, _console()) if switched(asked) else Silent()


@contextmanager
def counted(what: str, total: int) -> Iterator[Reporter]:
    """Progress of a read of `total` files."""
    with reporter(what) as shown:
        shown.advance(0, total)
        yield shown
