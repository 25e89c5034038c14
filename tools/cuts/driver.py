"""Cuts an operation at its storage calls, lets fresh objects or a fresh process go on, and looks at what is there."""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cuts.operations import EXTRA, OPERATIONS, Operation, next_write
from hudi_format import FileInfo, LocalStorage, Storage
from hudi_timeline import HudiTable
from hudi_timeline.testing import CHANGES, CRASH, TEAR, Fault, Faults
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED

Rows = list[tuple[object, object]]
METADATA = ".hoodie/metadata/"
"""It may be dropped, and made anew."""


class CutError(AssertionError):
    """A cut operation left what it must not leave."""


def content(storage: Storage) -> Rows:
    table = HudiTable._of(storage)
    if not table.timeline.completed_writes():
        return []
    found = table.read(["id", "v"]).to_arrow()
    rows = sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    if table.config.metadata_partitions:
        options = {"hoodie.metadata.enable": "true"}
        through = table.read(["id", "v"], meta_columns=False, options=options).to_arrow()
        listed = sorted(zip(through["id"].to_pylist(), through["v"].to_pylist(), strict=True))
        if listed != rows:
            raise CutError(f"through the metadata table {listed} are read instead of {rows}")
    return rows


@dataclass(frozen=True)
class After:
    """What was found after a cut.

    Attributes:
        at_once: rows before anything was mended; None where that is no state to look at.
        mended: rows after the operation was run again and the next write, without that write's row.
        left: instants, files and folders that should not be there.
        findings: of `verify`.
    """

    at_once: Rows | None
    mended: Rows
    left: list[str]
    findings: list[str]


def go_on(path: str, name: str, *, look: bool, known: frozenset[str]) -> After:
    """Continue on a table whose operation was cut, with fresh objects.

    Args:
        look: read before anything is mended.
        known: files that were there before the operation.
    """
    operation = OPERATIONS[name]
    storage = LocalStorage(path)
    at_once = content(storage) if look else None
    if operation.again:
        operation.act(storage)
    if operation.writes:
        next_write(storage)
    found = content(storage)
    if operation.writes and EXTRA not in [r[0] for r in found]:
        raise CutError("the next write is not there")
    table = HudiTable._of(storage)
    findings = [str(f) for f in table.verify(deep=len(table.config.metadata_partitions) > 1)]
    return After(at_once, [r for r in found if r[0] != EXTRA], left_over(storage, known), findings)


def left_over(storage: Storage, known: frozenset[str]) -> list[str]:
    """What nothing of the table's state explains."""
    timeline = HudiTable._of(storage).timeline
    # A compaction that waits for its run is as it should be.
    found = [
        str(i)
        for i in timeline.instants
        if not i.completed and (i.action, i.state) != (COMPACTION, REQUESTED)
    ]
    named = {s.path for i in timeline.completed_writes() for s in read_commit(storage, i).stats}
    for path in tree(storage):
        if path.startswith(".hoodie/.repair_backup_"):
            continue
        working = path.startswith(
            (".hoodie/.temp/", ".hoodie/.heartbeat/", ".hoodie/.overwrite/", ".hoodie_")
        )
        unfinished = path.endswith((".tmp", ".backup"))
        stray = path.endswith(".parquet") and path not in named and path not in known
        if working or unfinished or stray:
            found.append(path)
    return found


def tree(storage: Storage) -> dict[str, FileInfo]:
    """All files below the table's path."""
    found, pending = {}, [""]
    while pending:
        folder = pending.pop()
        for entry in storage.list(folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir:
                pending.append(path)
            else:
                found[path] = entry
    return dict(sorted(found.items()))


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


class Cutter:
    """One operation on copies of its table."""

    def __init__(self, operation: Operation, folder: Path, pool: ProcessPoolExecutor | None = None) -> None:
        """Args: pool: of processes that live for one task, for every 20th cut."""
        self.operation = operation
        self._folder, self._pool = folder, pool
        self._template = folder / "template"
        self._template.mkdir()
        operation.prepare(LocalStorage(str(self._template)))
        self._known = frozenset(files(self._template))
        self._cuts = 0
        self.seen: set[str] = set()

    @cached_property
    def _states(self) -> list[Rows]:
        """The legal states, the last one being that of the operation done."""
        before = LocalStorage(str(self._template))
        states: list[Rows] = [[]] if self.operation.creates else []
        if self._known:
            states.append(content(before))
            if self.operation.through:
                table = HudiTable._of(before)
                for instant in reversed(table.timeline.completed_writes()):
                    found = table.read(["id", "v"], as_of=instant.time).to_arrow()
                    states.append(sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)))
        states.append(self._undisturbed[0])
        return states

    @cached_property
    def _undisturbed(self) -> tuple[Rows, list[bool], frozenset[str]]:
        """Rows after the operation, its calls (whether each is a change), and files that stay through all of it."""
        path = self._copy()
        faults = Faults()
        with faults.process():
            self.operation.act(faults.wrap(LocalStorage(str(path))))
        rows = content(LocalStorage(str(path)))
        if self.operation.writes:
            next_write(LocalStorage(str(path)))
        left = left_over(LocalStorage(str(path)), self._known)
        if left:
            raise CutError(f"{self.operation.name}, not cut at all, leaves {left}")
        stay = self._known & frozenset(files(path))
        shutil.rmtree(path)
        return rows, [c.is_change for c in faults.log], stay

    def _copy(self) -> Path:
        self._cuts += 1
        path = self._folder / f"t{self._cuts}"
        shutil.copytree(self._template, path)
        return path

    @property
    def calls(self) -> list[bool]:
        """The operation's calls when nothing goes wrong: whether each is a change."""
        return self._undisturbed[1]

    def run(self, *, long: bool = False) -> int:
        """Cut before the first and after calls that change the store; how many cuts that were.

        After every other one and the last: those of odd or of even number, as the operation's name says.

        Args:
            long: after each change; before each and at every other call too, where a cut leaves what the cut after the
                change before it leaves; and in the middle of everything that is written.
        """
        kinds = [Fault(CRASH, operation=CHANGES, after=True)]
        if long:
            kinds += [Fault(CRASH, operation=CHANGES), Fault(CRASH), Fault(CRASH, after=True), Fault(TEAR)]
        else:
            self.cut(Fault(CRASH, operation=CHANGES))
        step = 1 if long else 2
        for kind in kinds:
            nth = 1 + zlib.crc32(self.operation.name.encode()) % step
            while self.cut(replace(kind, nth=nth)):
                nth += step
            if nth > 1 and step > 1:
                self.cut(replace(kind, nth=nth - 1))
        return self._cuts

    def cut(self, fault: Fault) -> bool:
        """One cut, and what comes after it; False where the operation was done before."""
        path = self._copy()
        place = "in" if fault.kind is TEAR else "after" if fault.after else "before"
        where = f"{self.operation.name}, cut {place} call {fault.nth}"
        faults = Faults(fault)
        with faults.process():
            self.operation.act(faults.wrap(LocalStorage(str(path))))
        if not faults.dead:
            shutil.rmtree(path)
            return False
        where += f" ({faults.log[-1].operation} {faults.log[-1].path})"
        look = not self.operation.creates
        fresh = self._pool is not None and self._cuts % 20 == 3
        try:
            if fresh:
                _end(path)
                assert self._pool is not None
                task = self._pool.submit(go_on, str(path), self.operation.name, look=look, known=self._known)
                after = task.result(timeout=400)
            else:
                after = go_on(str(path), self.operation.name, look=look, known=self._known)
        except Exception as e:
            e.add_note(f"{where}{', in a fresh process' if fresh else ''}")
            raise
        if fault.kind is TEAR:
            # Nobody takes these temporary files away: that of hoodie.properties may be another caller's, who holds no
            # lock, and to find those in partitions every write would have to list all of them.
            stay = re.compile(r"/\.hoodie\.properties|/\.\.hoodie_partition_metadata\.")
            after = replace(
                after,
                left=[p for p in after.left if not stay.search(p)],
                findings=[f for f in after.findings if not stay.search(f)],
            )
        self._check(after, path, where)
        shutil.rmtree(path)
        return True

    def _check(self, after: After, path: Path, where: str) -> None:
        done = self._states[-1]
        if after.at_once is not None:
            if after.at_once not in self._states:
                raise CutError(f"{where}: at once {after.at_once}, which is none of {self._states}")
            self.seen.add("new" if after.at_once == done else "old")
        if after.mended not in ([done] if self.operation.again else self._states):
            raise CutError(f"{where}: mended {after.mended}, which is none of {self._states}")
        settled = not self.operation.again and not self.operation.through
        if after.at_once is not None and settled and after.mended != after.at_once:
            raise CutError(f"{where}: {after.at_once} became {after.mended}")
        if after.left:
            raise CutError(f"{where}: left over {after.left}")
        if after.findings:
            raise CutError(f"{where}: {after.findings}")
        gone = {n for n in self._undisturbed[2] - frozenset(files(path)) if not n.startswith(METADATA)}
        if gone and not self.operation.creates:
            raise CutError(f"{where}: gone {sorted(gone)}")
        for name in self._undisturbed[2] if not self.operation.creates else ():
            if (
                not name.endswith("hoodie.properties")
                and not name.startswith(METADATA)
                and (path / name).read_bytes() != (self._template / name).read_bytes()
            ):
                raise CutError(f"{where}: {name} has changed")


def _end(path: Path) -> None:
    """Make the heartbeats that lie there those of a process that has ended, which is what the cut stands for."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for beat in (path / ".hoodie").rglob(".heartbeat/*"):  # an overwriting has one in a room of its own
        owner = json.loads(beat.read_bytes())
        beat.write_text(json.dumps({**owner, "pid": ended.pid, "started": "1"}))


def pool() -> ProcessPoolExecutor:
    """A fresh process for each task; they are forked from one that has imported what they need and seen no table."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hudi_timeline", "pyarrow.parquet"])
    return ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)


def all_operations(names: Iterable[str] = ()) -> Iterator[Operation]:
    for name in names or OPERATIONS:
        yield OPERATIONS[name]
