"""Background compaction: pending plans executed on a thread of this process while it writes.

Each round plans a compaction where one is due and no write is open, and executes what is pending, of whichever writer,
but for what another process is at.  An error ends the thread and is raised where the compaction is closed: the plan is
pending as before, and nothing is lost.  A process that ends without closing ends an execution as a kill would: the next
one rolls it back to its plan and runs it again.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from hudi_format.errors import ConcurrentWriterError, HudiError, LockError
from hudi_format.fork_safe import Owned
from hudi_timeline.options.compaction_config import parse_compaction_options
from hudi_timeline.services.compaction import compaction
from hudi_timeline.services.compaction.compaction_planner import is_due
from hudi_timeline.services.compaction.slice_tasks import Runner
from hudi_timeline.services.table_service import EXECUTE, ServiceContext
from hudi_timeline.timeline.instant import COMPACTION

log = logging.getLogger("hudi")

DEFAULT_SECONDS = 5.0


class BackgroundCompaction:
    """Compactions on a thread, from its creation until `close`.

    Attributes:
        executed: instants of the compactions that were completed, oldest first.
        warnings: what the user should know, one sentence each.
    """

    def __init__(
        self,
        context: Callable[[], ServiceContext],
        *,
        seconds: float = DEFAULT_SECONDS,
        run: Runner | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Start the thread.

        Args:
            context: makes the context of a round, which sees the table as it is then.
            seconds: between two rounds.
            run: as of `compaction.compact`.
            now: as of `compaction.compact`.

        Raises:
            ValueError: no time between two rounds.
            UnsupportedError: no merge-on-read table.
            OptionError: options that are unknown, or contradict each other.
        """
        if not seconds > 0:
            raise ValueError(f"seconds between two rounds must be above 0, not {seconds!r}")
        first = context()
        compaction.refuse_copy_on_write(first)
        parse_compaction_options(first.options.raw)  # what can never run is an error here
        self._context, self._seconds, self._run, self._now = context, seconds, run, now
        self.executed: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._owned = Owned()
        # A thread of its own would keep the process from ending; what ends it first waits for a running execution.
        self._thread = threading.Thread(target=self._rounds, name="hudi-background-compaction", daemon=True)
        atexit.register(self._end)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the thread goes on: not closed, and no error."""
        return self._thread.is_alive() and not self._stop.is_set()

    def close(self, *, finish: bool = True) -> None:
        """End the thread, after the execution that is running; idempotent.

        Args:
            finish: what is pending by then is executed first.

        Raises:
            HudiError: of an execution that failed; its plan is still there.
        """
        self._end()
        error, self._error = self._error, None
        if error is not None:
            error.add_note("The compaction in the background ended with this error; its plan is still there.")
            raise error
        if finish and self._owned.here:
            self._round()

    def _end(self) -> None:
        atexit.unregister(self._end)
        self._stop.set()
        if self._owned.here and self._thread is not threading.current_thread():
            self._thread.join()

    def _rounds(self) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix="hudi-background-compaction") as pool:
            while not self._stop.is_set():
                try:
                    done = pool.submit(self._round)
                except RuntimeError:  # the interpreter is ending
                    return
                self._error = done.exception()
                if self._error is not None:  # raised by `close`
                    log.warning("the compaction in the background has ended: %s", self._error)
                    return
                self._stop.wait(self._seconds)

    def _round(self) -> None:
        context = self._context()
        try:
            self._schedule(context)
            for instant in context.look().timeline.pending(COMPACTION):
                if context.is_alive(instant) or compaction.begun_elsewhere(context, instant):
                    continue
                result = compaction.compact(
                    context,
                    mode=EXECUTE,
                    instant=instant.time,
                    seen=True,
                    run=self._run,
                    now=self._now,
                )
                self.executed = (*self.executed, *result.executed)
        except (ConcurrentWriterError, LockError) as e:
            log.info("%s: the compaction is left to another process: %s", context.storage.uri, e)
        finally:
            self.warnings = tuple(dict.fromkeys((*self.warnings, *context.warnings)))

    def _schedule(self, context: ServiceContext) -> None:
        config = parse_compaction_options(context.options.raw)
        due = is_due(context.look().timeline, config, context.clock(self._now))
        if due.is_due:  # else the lock is not taken
            compaction.schedule(context, only_if_due=True, now=self._now)

    def __enter__(self) -> BackgroundCompaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close(finish=False)
        except HudiError as e:  # the error of the block says more
            error.add_note(f"The compaction in the background failed too: {e}")
