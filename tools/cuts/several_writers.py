"""A change of the store that fails beneath one of several writers, and another writer that goes on.

The operation has the options of optimistic concurrency control or the policy LAZY, so that no write mends what another
one has left.  After the fault another writer writes, then a cleaning rolls back what is dead, then the operation is run
again where a user would do so.  `python tools/cuts/several_writers.py NAME OPTIONS KIND NTH [--before]` repeats a run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cuts.driver import CutError, content, left_over
from cuts.operations import EXTRA, OPERATIONS, Operation, _table, next_write, options_of
from cuts.random_faults import FaultyRuns
from hudi_format import Storage, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.testing import CHANGES, Fault, Faults, Kind
from hudi_timeline.timeline.instant import RESTORE

LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
_OCC = {**LAZY, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
_PROVIDER = "hoodie.write.lock.provider"
_EARLY = "hoodie.write.concurrency.early.conflict."
SEVERAL: Mapping[str, Mapping[str, str]] = {
    "lazy": LAZY,
    "in process": {**_OCC, _PROVIDER: "InProcessLockProvider"},
    "lock file": {**_OCC, _PROVIDER: "FileSystemBasedLockProvider"},
    "early": {
        **_OCC,
        _PROVIDER: "InProcessLockProvider",
        f"{_EARLY}detection.enable": "true",
        f"{_EARLY}check.commit.conflict": "true",
    },
    "keys": {**_OCC, _PROVIDER: "InProcessLockProvider", "hudi.write.conflict.detection": "keys"},
}
"""Options of several writers, by name."""
_KEEPS_FILES = {"hoodie.cleaner.commits.retained": "100"}
_WRITABLE = 6


class SeveralWriters(FaultyRuns):
    """One operation under faults, in a table of several writers, on copies of its table.

    Args:
        options: a name of `SEVERAL`.
    """

    def __init__(self, operation: Operation, options: str) -> None:
        super().__init__(operation, None)
        self._options = SEVERAL[options]

    def run_at(self, kind: Kind, nth: int, *, after: bool, path: str = "*") -> Faults:
        """One run whose `nth` change of the store is struck, before or `after` it was done.

        Raises:
            CutError: it left what it must not leave.
        """
        fault = Fault(kind, operation=CHANGES, path=path, nth=nth, after=after)
        return self._run(Faults(fault), f"{kind} {nth} {'after' if after else 'before'} it is done")

    def _run(self, faults: Faults, which: str, *, lost: bool = False) -> Faults:
        with options_of(self._options):
            return super()._run(faults, which, lost=lost)

    def _look(self, storage: Storage, told: str, *, lost: bool) -> None:
        operation = self.operation
        if not operation.creates:
            at_once = content(storage)
            if at_once not in self._states or (not told and at_once != self._states[1]):
                raise CutError(f"at once {at_once}, of {self._states}")
        if not operation.creates and _table(storage).timeline.pending(RESTORE):
            operation.act(storage)  # before all else, as every other call says
        writable = operation.creates or _table(storage).table_version >= _WRITABLE
        if operation.writes and writable:
            next_write(storage)
            self._check(storage, "beside")
        if not operation.creates and writable:
            _table(storage).clean(options=_KEEPS_FILES)
            self._check(storage, "cleaned")
        if operation.again:
            # A rollback is refused beneath the other one's write, if it had not changed anything.
            with suppress(UnsupportedError):
                operation.act(storage)
        if operation.writes:
            next_write(storage)
        if operation.creates:
            _table(storage).clean(options=_KEEPS_FILES)
        self._check(storage, "mended")
        if left := left_over(storage, frozenset(self._files)):
            raise CutError(f"left over {left}")
        if findings := [str(f) for f in HudiTable._of(storage).verify()]:
            raise CutError(f"{findings}")

    def _check(self, storage: Storage, when: str) -> None:
        found = [r for r in content(storage) if r[0] != EXTRA]
        if found not in self._states and not (self.operation.creates and not found):
            raise CutError(f"{when} {found}, which is none of {self._states}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operation", choices=sorted(OPERATIONS))
    parser.add_argument("options", choices=SEVERAL)
    parser.add_argument("kind", choices=["fail", "crash"])
    parser.add_argument("nth", type=int)
    parser.add_argument("--before", action="store_true")
    given = parser.parse_args()
    runs = SeveralWriters(OPERATIONS[given.operation], given.options)
    for call in runs.run_at(Kind(given.kind), given.nth, after=not given.before, path=".hoodie/*").log:
        print(call.number, call.operation, call.path, call.fault, call.error)


if __name__ == "__main__":
    main()
