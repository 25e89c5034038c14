"""An operation on a store that fails: calls fail, fail although they were done, are done twice or lost.

python tools/cuts/random_faults.py [--operation NAME] [--seed N] [--kinds fail,double] repeats one run at random and
prints it; with `--nth N [--after]` the Nth change fails, before or after it is done.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cuts.driver import CutError, content, left_over, tree
from cuts.operations import EXTRA, OPERATIONS, Operation, next_write
from hudi_format import HudiError, LocalStorage, Storage, open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.testing import CHANGES, DOUBLE, FAIL, LOSE, Fault, Faults, Kind

HONEST = (FAIL, DOUBLE)
"""What stores do: they fail, and clients repeat requests."""
LYING = (FAIL, DOUBLE, LOSE)
"""And what they must not do: say that a call was done which was not."""


class FaultyRuns:
    """One operation under faults, on copies of its table.

    Args:
        folder: for tables on disk; None for tables in memory.
    """

    def __init__(self, operation: Operation, folder: Path | None) -> None:
        self.operation, self._folder = operation, folder
        template = self._place()
        operation.prepare(template)
        self._files = {path: template.read(path) for path in tree(template)}
        self._before = content(template) if self._files else []
        done = self._copy()
        operation.act(done)
        self._states = [self._before, content(done)]
        if operation.through:
            table = HudiTable._of(template)
            for instant in table.timeline.completed_writes():
                found = table.read(["id", "v"], as_of=instant.time).to_arrow()
                self._states.append(sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)))

    def _place(self) -> Storage:
        name = uuid.uuid4().hex
        if self._folder is None:
            return open_storage(f"memory://hudi-faults-{name}/t")
        return LocalStorage(str(self._folder / name))

    def _copy(self) -> Storage:
        storage = self._place()
        # The times of a copy that is made within a full second's first millisecond are those of a store that tells no
        # milliseconds, of whose commits a cleaning takes any for the last.
        if time.time() % 1 < 0.005:
            time.sleep(0.005)
        for path, data in self._files.items():
            storage.touch(path, data)
        return storage

    def run(self, seed: int, kinds: Iterable[Kind], rate: float = 0.03) -> Faults:
        """One run, looked at and continued; what struck.

        Raises:
            CutError: it left what it must not leave.  With losses a table may be damaged, and must then say so.
        """
        kinds = tuple(kinds)
        return self._run(Faults.random(seed, rate=rate, kinds=kinds), f"seed {seed}", lost=LOSE in kinds)

    def run_failing(self, nth: int, *, after: bool, path: str = "*") -> Faults:
        """One run whose `nth` change of the store fails, or fails `after` it was done; what struck, if so many came.

        Args:
            path: pattern of those that count.

        Raises:
            CutError: it left what it must not leave.
        """
        fault = Fault(FAIL, operation=CHANGES, path=path, nth=nth, after=after)
        return self._run(Faults(fault), f"change {nth} fails {'after' if after else 'before'} it is done")

    def _run(self, faults: Faults, which: str, *, lost: bool = False) -> Faults:
        storage = self._copy()
        wrapped = faults.wrap(storage)
        told = ""
        try:
            with faults.process():
                self.operation.act(wrapped)
        except (HudiError, OSError) as e:  # what a caller is told
            told = f"{type(e).__name__}: {e}"
        heartbeat.abandon(wrapped)
        where = f"{self.operation.name}, {which}, {faults.struck}, told {told or 'nothing'}"
        try:
            if told and not faults.struck:
                raise CutError("it failed where nothing else did")
            self._look(storage, told or ("the end of its process" if faults.dead else ""), lost=lost)
        except Exception as e:
            e.add_note(where)
            raise
        finally:
            storage.delete_dir("")
        return faults

    def _look(self, storage: Storage, told: str, *, lost: bool) -> None:
        try:
            if not self.operation.creates:
                at_once = content(storage)
                if at_once not in self._states:
                    raise CutError(f"at once {at_once}, which is none of {self._states}")
                if not told and at_once != self._states[1] and not lost:
                    raise CutError(f"it said that it was done, and the rows are {at_once}")
            if self.operation.again:
                self.operation.act(storage)
            if self.operation.writes:
                next_write(storage)
            mended = [r for r in content(storage) if r[0] != EXTRA]
        except HudiError:
            if not lost:
                raise
            return  # a store that lies: what is missing is told
        if mended not in self._states and not (self.operation.creates and not mended):
            raise CutError(f"mended {mended}, which is none of {self._states}")
        if lost:
            return
        left = left_over(storage, frozenset(self._files))
        if left:
            raise CutError(f"left over {left}")
        findings = [str(f) for f in HudiTable._of(storage).verify()]
        if findings:
            raise CutError(f"{findings}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", choices=sorted(OPERATIONS), default="upsert")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="fail,double")
    parser.add_argument("--nth", type=int, default=0)
    parser.add_argument("--after", action="store_true")
    given = parser.parse_args()
    runs = FaultyRuns(OPERATIONS[given.operation], None)
    if given.nth:
        faults = runs.run_failing(given.nth, after=given.after)
    else:
        faults = runs.run(given.seed, [Kind(k) for k in given.kinds.split(",")])
    for call in faults.log:
        print(call.number, call.operation, call.path, call.fault, call.error)


if __name__ == "__main__":
    main()
