"""A contender's process: it answers one line of JSON on standard output for each on standard input.

What it and the processes below it used, processor time and memory, is read from /proc.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Worker:
    """A contender, seen from the process that measures."""

    def __init__(
        self,
        name: str,
        script: Path,
        arguments: list[str],
        log: Path,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = name
        self._path = log
        self._log = open(log, "w")  # noqa: SIM115 - closed in stop
        self._process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.flush()
            raise SystemExit(f"{self.name} died:\n{self._path.read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        """What the contender answers to one request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # all is measured
            self._process.kill()
            self._process.wait(timeout=60)
        self._log.close()


def serve(name: str, make: Callable[[], Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
    """The contender's side: `make` gets ready and gives what answers a request.

    An answer gets `seconds` unless it has them.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to standard error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    answer = make()
    print(json.dumps({"ready": name}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        os.sync()  # nobody pays for what another wrote
        began = time.perf_counter()
        found = answer(request)
        found.setdefault("seconds", time.perf_counter() - began)
        print(json.dumps(found), file=answers)


def processor_seconds() -> float:
    """Processor time, user and system, of this process and those below it, ended ones too.

    It counts what others on the machine only delay, so that ratios of it hold beside other work.
    """
    own = sum(
        resource.getrusage(who)[i] for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for i in (0, 1)
    )
    ticks = 0
    for pid in family(os.getpid())[1:]:
        try:
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        ticks += sum(int(x) for x in after_name[11:15])
    return own + ticks / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Process ids of a process and of those below it."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            below.setdefault(parent, []).append(int(entry.name))
    found, at = [pid], 0
    while at < len(found):
        found += below.get(found[at], [])
        at += 1
    return found


def resident(pid: int) -> int:
    """Bytes of resident memory of a process and of those below it; pages that several share count once."""
    kilobytes = 0
    for one in family(pid):
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        shares = [line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")]
        kilobytes += sum(int(share) for share in shares)  # none of a process that has ended
    return kilobytes * 1024


def peak_rss() -> int:
    """Most bytes of memory that this process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
