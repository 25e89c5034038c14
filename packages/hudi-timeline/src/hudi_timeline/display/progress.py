"""Progress display of long writes and reads, on a terminal or in a notebook.

One switch: `HUDI_PROGRESS`, `auto` (the default), `true` or `false`; for a write the option `hudi.progress` stands over
it.  `auto` shows it where standard error is a terminal, or in a notebook, and nowhere else.  Nothing is shown in the
first half second, and nothing stays behind.  In a notebook it is HTML, which needs no widgets.
"""

from __future__ import annotations

import contextvars
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Self

from hudi_format.errors import InvalidOptionError
from hudi_timeline.options.write_options import PROGRESS

if TYPE_CHECKING:
    from rich.console import Console

SWITCH = "HUDI_PROGRESS"
AUTO, ON, OFF = "auto", "true", "false"
DELAY_S = 0.5
NOTEBOOK_PAUSE_S = 0.2  # between two pictures: each is a message to the browser


class Reporter:
    """Progress receiver that shows nothing.

    Its calls come from one thread, but for `advance`.
    """

    def phase(self, name: str) -> None:
        """Begin a phase; names are those of `CommitResult.timings`."""

    def advance(self, done: int, total: int) -> None:
        """Report the progress of the phase."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _View(Reporter):
    """Display that comes after a while, and is gone at the end."""

    def __init__(self, delay_s: float) -> None:
        self._lock = threading.Lock()
        self._ended = False
        # Which cell of a notebook an output belongs to is told by the context of the thread.
        context = contextvars.copy_context()
        self._timer = threading.Timer(delay_s, lambda: context.run(self._come))
        self._timer.daemon = True

    def _come(self) -> None:
        with self._lock:
            if not self._ended:
                self._show()

    def _show(self) -> None:
        raise NotImplementedError

    def _hide(self) -> None:
        """Take away what may be shown."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            self._hide()


class ProgressView(_View):
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
        super().__init__(delay_s)

    def _show(self) -> None:
        self._bar.start()

    def _hide(self) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def phase(self, name: str) -> None:
        with self._lock:  # a task of its own: how much there is to do is not known again
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(f"{self._what}: {name}", total=None)

    def advance(self, done: int, total: int) -> None:
        with self._lock:
            self._bar.update(self._task, completed=done, total=total)


class NotebookView(_View):
    """HTML output of a notebook's cell with progress, as `ProgressView`; emptied at the end."""

    def __init__(self, what: str, *, delay_s: float = DELAY_S) -> None:
        self._what, self._phase = what, ""
        self._done, self._total = 0, 0
        self._began = self._drawn = time.monotonic()
        self._handle: Any = None
        self._screen: Any = importlib.import_module("IPython.display")
        super().__init__(delay_s)

    def _show(self) -> None:
        self._handle = self._screen.display(self._screen.HTML(self._html()), display_id=True)

    def _hide(self) -> None:
        if self._handle is not None:
            self._handle.update({}, raw=True)  # an output without content, of which nothing is to be seen

    def _html(self) -> str:
        title = escape(f"{self._what}: {self._phase}" if self._phase else self._what)
        of = f" value='{self._done}' max='{self._total}'" if self._total else ""
        count = f" {self._done:,}/{self._total:,}" if self._total else ""
        return f"<div>{title} <progress{of}></progress>{count} {time.monotonic() - self._began:.0f} s</div>"

    def _draw(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._handle is not None and (at_once or now - self._drawn >= NOTEBOOK_PAUSE_S):
            self._drawn = now
            self._handle.update(self._screen.HTML(self._html()))

    def phase(self, name: str) -> None:
        with self._lock:
            self._phase, self._done, self._total = name, 0, 0
            self._draw(at_once=True)

    def advance(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = done, total
            self._draw()


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
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process; Databricks and Colab have such kernels too."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


@dataclass
class Phases:
    """Seconds per phase, in order of execution."""

    seconds: dict[str, float] = field(default_factory=dict)
    shown: Reporter = field(default_factory=Reporter)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        self.shown.phase(name)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began


def reporter(what: str, asked: str = AUTO) -> Reporter:
    """Progress display of one write or read."""
    if not switched(asked):
        return Reporter()
    return NotebookView(what) if _in_notebook() else ProgressView(what, _console())


@contextmanager
def counted(what: str, total: int) -> Iterator[Reporter]:
    """Progress of a read of `total` files."""
    with reporter(what) as shown:
        shown.advance(0, total)
        yield shown
