"""`kill -9` of a writer, again and again on one table; after each, the table is looked at.

python tools/soak/kill.py [--engine local|spark] [--type MERGE_ON_READ] [--rounds 40] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hudi_format import NotAHudiTableError
from hudi_format.file_names import META_DIR
from hudi_timeline import HudiTable
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.transaction.orphans import TEMPORARY_AGE_MS
from soak.steps import COPY_ON_WRITE, MERGE_ON_READ, Step, steps, to_rows

SAYS_NOTHING_S = 400.0  # a writer that prints no line for so long hangs


class SoakError(AssertionError):
    """A killed writer left what it must not leave."""


@dataclass
class Report:
    """What happened: for each kill, the step that ran and whether its commit is there."""

    kills: list[str] = field(default_factory=list)
    steps: int = 0

    def __str__(self) -> str:
        kept = sum(k.endswith("kept") for k in self.kills)
        return f"{len(self.kills)} kills, {self.steps} steps written; {kept} kills after the commit's publication"


class Soak:
    """One table under writers that do not live long.

    Args:
        engine: `local` or `spark`.
        path: where the table comes to lie.
        seed: of the rows and of the moments.
        size: rows in a write.
        table_type: of the table.
    """

    def __init__(
        self, engine: str, path: str, seed: int, *, size: int = 3000, table_type: str = COPY_ON_WRITE
    ) -> None:
        self.table_type = table_type
        self.engine, self.path, self.seed, self.size = engine, path, seed, size
        self._rng = random.Random(seed)
        self._steps: list[Step] = []
        self._old: set[Path] = set()  # half-written hoodie.properties that were made a day old
        self._source = steps(seed, size)
        self._typical_s = 0.3 if engine == "local" else 3.0
        self.report = Report()
        self._done = -1  # the last step whose commit is known to be there

    def run(self, rounds: int) -> Report:
        """Kill `rounds` writers; a last one then writes undisturbed, and nothing of the others is left."""
        for _ in range(rounds):
            self._round()
        self._write_undisturbed()
        self._no_leftovers()
        return self.report

    # --- one writer ---------------------------------------------------------------------------------------

    def _start(self, first: int, count: int | None) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(__file__).with_name("writer.py")), self.engine, self.table_type, self.path,
                   str(self.seed), str(self.size), str(first)]  # fmt: skip
        if count is not None:
            command.append(str(count))
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        # A file, not a pipe: nobody reads it while the writer runs, and its JVM may keep it open for longer.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the writer has ended
        # A session of its own: what it starts can be told from everything else.
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, env=environment, start_new_session=True
        )

    def _round(self) -> None:
        """Let a writer begin a step, and kill it some time later."""
        writer = self._start(self._done + 1, None)
        family = [writer.pid]
        try:
            lines = Lines(writer)
            for _ in range(self._rng.choice([1, 1, 2, 3])):
                self._follow(lines)
            family = _family(writer.pid)
            self._wait_for_the_moment(lines)
        finally:
            self._kill(family)
            writer.wait()
        # Lines that it wrote before it died.
        while (line := lines.next(time.monotonic())) is not None:
            self._note(line)
        lines.close()
        self._look(lines.running)
        _wait_until_gone(family)

    def _kill(self, family: list[int]) -> None:
        """End the writer; what it started sees that it is gone."""
        os.kill(family[0], signal.SIGKILL)

    def _wait_for_the_moment(self, lines: Lines) -> None:
        """Up to somewhat more than a step takes, or just after a file of the timeline has appeared."""
        until = time.monotonic() + self._rng.uniform(0, 1.3 * self._typical_s)
        kind = self._rng.choice(["any", "any", ".inflight", "commit"])
        if kind == "any":
            while (line := lines.next(until)) is not None:
                self._note(line)
            return
        before = self._timeline_files()
        until = time.monotonic() + 10 * self._typical_s
        while time.monotonic() < until:
            if any(name.endswith(kind) for name in self._timeline_files() - before):
                break
            time.sleep(0.0005)
        time.sleep(self._rng.choice([0.0, 0.0, 0.05]) * self._rng.random())

    def _timeline_files(self) -> set[str]:
        folder = Path(self.path) / META_DIR
        return set(os.listdir(folder)) if folder.is_dir() else set()

    def _follow(self, lines: Lines) -> None:
        """Until a step has begun; how long the ones before it took is noted."""
        while True:
            began = time.monotonic()
            line = lines.next(began + SAYS_NOTHING_S)
            if line is None:
                raise SoakError(f"the writer gave no sign: {self._said_wrong()}")
            self._note(line)
            if line.startswith("begin"):
                return
            self._typical_s = 0.7 * self._typical_s + 0.3 * (time.monotonic() - began)

    def _note(self, line: str) -> None:
        word, number = line.split()
        if word == "done":
            self._done = max(self._done, int(number))

    def _write_undisturbed(self) -> None:
        writer = self._start(self._done + 1, 2)
        try:
            writer.communicate(timeout=SAYS_NOTHING_S)
        except subprocess.TimeoutExpired:
            os.killpg(writer.pid, signal.SIGKILL)
            raise SoakError(f"the last writer hangs: {self._said_wrong()}") from None
        if writer.returncode != 0:
            raise SoakError(f"the table cannot be written any more: {self._said_wrong()}")
        self._done += 2
        self._look(None)

    def _said_wrong(self) -> str:
        """The end of what the last writer said on standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]

    # --- the table ------------------------------------------------------------------------------------------

    def _look(self, running: int | None) -> None:
        """The rows are those after the last step that was done, or after the one that was killed."""
        got = self._read()
        if got == self._want(self._done):
            outcome = "done before" if running == self._done else "undone"
        elif running == self._done + 1 and got == self._want(running):
            self._done, outcome = running, "kept"
        else:
            raise SoakError(
                f"seed {self.seed}: {len(got)} rows, which are neither those after step {self._done} "
                f"({len(self._want(self._done))}) nor after step {running}; "
                f"{len(got) - len({row[0] for row in got})} of them with a key that is there already; "
                f"kills so far: {self.report.kills}"
            )
        if running is not None:
            operation = self._step(running).operation
            self.report.kills.append(f"step {running} ({operation}): {outcome}")
        self.report.steps = self._done + 1

    def _read(self) -> list[tuple[str, str, int, str]]:
        try:
            table = HudiTable.open(self.path)
        except NotAHudiTableError:
            if self._done >= 0:
                raise
            return []
        if not table.timeline.completed_writes():  # made, but not yet written to: it has no columns
            if self._done >= 0:
                raise SoakError("the table's commits are gone")
            return []
        return to_rows(table.read().to_arrow())

    def _want(self, number: int) -> list[tuple[str, str, int, str]]:
        return sorted(self._step(number).after.values()) if number >= 0 else []

    def _step(self, number: int) -> Step:
        self._steps.extend(islice(self._source, max(0, number + 1 - len(self._steps))))
        return self._steps[number]

    def _aged(self, left: Path) -> bool:
        """Whether a half-written hoodie.properties, which may stay for a day, was made a day old.

        The next write that goes well must take it away: one that is old already is left over.
        """
        if not left.name.startswith(".hoodie.properties.") or left in self._old:
            return False
        then = time.time() - TEMPORARY_AGE_MS / 1000 - 60
        os.utime(left, (then, then))
        self._old.add(left)
        return True

    def _no_leftovers(self) -> None:
        """After a write that went well there is nothing pending and no file of a write that did not."""
        table = HudiTable.open(self.path)
        if pending := table.timeline.pending_writes():
            raise SoakError(f"still pending: {pending}")
        # A quick machine writes enough commits for the first ones to be archived while their files are still there.
        completed = {i.time for i in table.timeline.completed_writes()}
        completed |= {i.time for i in archived_instants(table.storage, table.config) if i.completed}
        root = Path(self.path)
        strays = [
            str(p.relative_to(root))
            for p in root.rglob("*.parquet")
            if META_DIR not in p.parts and p.stem.rpartition("_")[2] not in completed
        ]
        if strays:
            raise SoakError(f"seed {self.seed}: files of writes that never were: {strays}")
        for folder, pattern in ((".temp", "*"), (".heartbeat", "*"), ("", "*.tmp")):
            left = sorted(p.name for p in (root / META_DIR / folder).glob(pattern) if not self._aged(p))
            if left:
                raise SoakError(f"left in {folder}: {left}")


# What soak.writer prints.
_SAID = re.compile(rb"(begin|done) ([0-9]+)")


class Lines:
    """Lines of a process's standard output, waited for until a moment."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process, self._out, self._buffer = process, process.stdout, b""
        self.running: int | None = None  # the step that began last

    def next(self, until: float) -> str | None:
        """The writer's next line; None when the moment has come or the process has ended."""
        while True:
            while b"\n" not in self._buffer:
                ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
                if not ready:
                    return None
                more = os.read(self._out.fileno(), 65536)
                if not more:
                    return None
                self._buffer += more
            line, _, self._buffer = self._buffer.partition(b"\n")
            said = _SAID.fullmatch(line)
            if said is None:
                continue  # a JVM's own: libraries of Apache Hudi print warnings there
            if said[1] == b"begin":
                self.running = int(said[2])
            return line.decode()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        self._out.close()


def _family(pid: int) -> list[int]:
    """A process and all below it, from /proc."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, at = [pid], 0
    while at < len(found):
        found.extend(parents.get(found[at], []))
        at += 1
    return found


def _wait_until_gone(family: list[int]) -> None:
    """The JVM and the Python workers of a killed driver end by themselves; two JVMs at once are too many."""
    until = time.monotonic() + 300
    while any(_runs(pid) for pid in family):
        if time.monotonic() > until:
            raise SoakError(f"processes of a killed writer live on: {family}")
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process has not ended; in a container without an init nobody takes the dead ones away."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--type", choices=(COPY_ON_WRITE, MERGE_ON_READ), default=COPY_ON_WRITE)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak = Soak(given.engine, f"{folder}/table", given.seed, table_type=given.type)
        print(f"engine {given.engine}, seed {given.seed}")
        print(soak.run(given.rounds))
        print("\n".join(soak.report.kills))


if __name__ == "__main__":
    main()
