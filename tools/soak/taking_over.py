"""`kill -9` of one writer, and another implementation that goes on: Apache Hudi after us, and we after Apache Hudi.

After each kill the other one writes the next step: what the killed one left is rolled back, and the rows are right.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hudi_format.file_names import META_DIR
from hudi_timeline import HudiTable
from soak.kill import SAYS_NOTHING_S, Lines, Report, Soak, SoakError
from soak.steps import Step

EMPTY_METADATA = "partition-metadata"


class TakingOver(Soak):
    """One table under writers of one implementation that are killed, and a writer of another that is not.

    Args:
        engine: whose writers are killed: `local` or `apache`.
        other: writes a step.
    """

    def __init__(
        self, engine: str, path: str, seed: int, other: Callable[[Step], object], *, size: int = 600
    ) -> None:
        super().__init__(engine, path, seed, size=size)
        self._other = other
        self.rolled_back = 0
        if engine == "apache":
            self._typical_s = 4.0

    def run(self, rounds: int) -> Report:
        """Kill `rounds` writers, each followed by a write of the other implementation."""
        for _ in range(rounds):
            self._round()
            pending = self._pending()
            self._take_over()
            left = pending & self._pending()
            if left:
                raise SoakError(f"seed {self.seed}: the other writer left {sorted(left)}")
            self.rolled_back += len(pending)
        return self.report

    def _wait_for_the_moment(self, lines: Lines) -> None:
        """When a write has become inflight, and a little later."""
        before = self._timeline_files()
        # However long it takes here: a table of which not even its properties are there is nobody's to go on with.
        until = time.monotonic() + SAYS_NOTHING_S
        while time.monotonic() < until and not lines.ended:
            if any(name.endswith(".inflight") for name in self._timeline_files() - before):
                break
            time.sleep(0.0005)
        time.sleep(self._rng.uniform(0, 0.1 * self._typical_s))

    def _kill(self, family: list[int]) -> None:
        """Apache Hudi works in the JVM below the process, which would end in good order if it were left alive."""
        for pid in reversed(family):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _pending(self) -> set[str]:
        """Writes that were begun and not completed."""
        if not (Path(self.path) / META_DIR / "hoodie.properties").exists():
            return set()
        return {i.time for i in HudiTable.open(self.path).timeline.pending_writes()}

    def _take_over(self) -> None:
        step = self._step(self._done + 1)
        self._other(step)
        self._done += 1
        self._look(None)
        table = HudiTable.open(self.path)
        # Apache Hudi creates a partition's metadata file and fills it afterwards: killed in between, it leaves an empty
        # one, which no later write fills, of whichever writer.  `repair` does.
        if any(f.code == EMPTY_METADATA for f in table.verify()):
            table.repair(only=[EMPTY_METADATA])
        faults = [
            str(f)
            for f in table.verify()
            # A heartbeat of ours stays until our next write; Apache Hudi looks at none when it writes alone.
            if f.code != "heartbeat-left"
        ]
        if faults:
            raise SoakError(f"seed {self.seed}, after step {step.number} by the other writer: {faults}")
