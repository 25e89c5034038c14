"""Writers and services of one table that are killed and stopped at random; its rows are those of a serial history.

python tools/soak/rivals.py --lock zookeeper --minutes 5 --spark 2 --python 2 --services 3 --apache 1
    [--type MERGE_ON_READ] [--kill-every 15] [--seed N]

Writers on Spark, plain-Python ones and Apache Hudi 0.15.0 upsert, insert, delete and overwrite rows; services clean,
archive and compact beside them; a reader looks at each state.  Whoever is killed (SIGKILL) comes back; whoever is
stopped (SIGSTOP) goes on after it counts as dead.  `soak.serial_history` says what must hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hudi_timeline import HudiTable
from hudi_timeline.options import transaction_options as keys
from interop.apache_hudi import ApacheHudi, OursOnSpark
from interop.spark_process import LONGEST_S, SparkProcess, SparkProcessError
from soak.serial_history import (
    NOTE,
    SCHEMA,
    Batch,
    Batches,
    History,
    committed_batches,
    first_batch,
    rows_of,
    wrong_in_snapshot,
)
from soak.steps import COPY_ON_WRITE, MERGE_ON_READ

LOCKS = ("local", "file_system", "storage", "zookeeper", "dynamodb", "metastore")
BEAT_MS, MISSES = 1000, 8
STOPPED_S = BEAT_MS * MISSES / 1000 + 6  # longer than a lock and a heartbeat count
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": str(BEAT_MS),
    "hoodie.client.heartbeat.tolerable.misses": str(MISSES),
    "hoodie.write.num.retries.on.conflict.failures": "8",
    "hoodie.cleaner.commits.retained": "6",
    "hoodie.keep.min.commits": "10",
    "hoodie.keep.max.commits": "14",
}
FRAME = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    # Lists that Apache Hudi 0.15.0 writes by its row writer are null after its next upsert.
    "hoodie.datasource.write.row.writer.enable": "false",
}
SERVICES = {
    COPY_ON_WRITE: ("clean", "archive"),
    MERGE_ON_READ: ("clean", "archive", "compact", "log_compact"),
}
# What a writer says that lost to another one, or did not get the lock; of Apache Hudi's and ours.
_LOST = ("WriteConflict", "ConcurrentWriterError", "LockError", "HoodieLockException", "HoodieEarlyConflict")


class RivalsError(AssertionError):
    """The table is not what the writers made of it."""


class DeadError(Exception):
    """The process was killed."""


@dataclass(frozen=True)
class Place:
    """Where the table lies, and what all of its writers are told."""

    path: str
    options: Mapping[str, str]


@contextmanager
def place_of(lock: str, folder: Path) -> Iterator[Place]:
    """A table's place with a lock on its real server."""
    of = "hoodie.write.lock."
    with ExitStack() as stack:
        path, options = str(folder / "t"), {}
        if lock == "storage":
            from s3_server import S3Server

            server = S3Server()
            stack.callback(server.stop)
            path = f"s3a://{server.new_bucket()}/t"
            options = {
                **server.hadoop_options,
                of + "provider": keys.STORAGE,
                of + "storage.validity.timeout.secs": "10",
            }
        elif lock == "file_system":
            options = {of + "provider": keys.FILE_SYSTEM, of + "filesystem.expire": "1"}
        elif lock != "local":
            from lock_servers import LockServer

            started = LockServer(lock)
            stack.callback(started.stop)
            stack.push(lambda kind, *_: started.tell(folder / "server.log") if kind else None)
            options = _OF_SERVERS[lock](started.port)
        yield Place(path, {of + "wait_time_ms": "90000", **options})


def _zookeeper(port: int) -> dict[str, str]:
    of = "hoodie.write.lock."
    return {
        of + "provider": keys.ZOOKEEPER,
        of + "zookeeper.url": f"127.0.0.1:{port}",
        of + "zookeeper.port": str(port),
        of + "zookeeper.base_path": "/hudi",
        of + "zookeeper.lock_key": "t",
        of + "zookeeper.session_timeout_ms": "5000",
    }


def _dynamodb(port: int) -> dict[str, str]:
    of = "hoodie.write.lock."
    return {
        of + "provider": keys.DYNAMODB,
        of + "dynamodb.table": "locks",
        of + "dynamodb.partition_key": "t",
        of + "dynamodb.region": "us-east-1",
        of + "dynamodb.endpoint_url": f"http://127.0.0.1:{port}",
        of + "wait_time_ms": "12000",  # it is the length of a lease too
        of + "client.num_retries": "8",
        of + "client.wait_time_ms_between_retry": "100",
        "hoodie.aws.access.key": "AKIATEST",
        "hoodie.aws.secret.key": "secret",
    }


def _metastore(port: int) -> dict[str, str]:
    of = "hoodie.write.lock."
    return {
        of + "provider": keys.HIVE_METASTORE,
        of + "hivemetastore.uris": f"thrift://127.0.0.1:{port}",
        of + "hivemetastore.database": "default",
        of + "hivemetastore.table": "t",
        of + "heartbeat_interval_ms": "1000",
    }


_OF_SERVERS: Mapping[str, Callable[[int], dict[str, str]]] = {
    "zookeeper": _zookeeper,
    "dynamodb": _dynamodb,
    "metastore": _metastore,
}


class PythonProcess:
    """A `soak.rival_process`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("rival_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def ask(self, do: str, options: Mapping[str, str], **more: object) -> tuple[str, str]:
        """How a request ended, and what it said.

        Raises:
            DeadError: the process ended before it answered.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"do": do, "path": self._place.path, "options": {**self._place.options, **options}, **more}
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DeadError from None
        ready, _, _ = select.select([self._process.stdout], [], [], LONGEST_S)
        if not ready:
            self.kill()
            return "failed", f"{do} gave no answer in {LONGEST_S} s"
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise DeadError
        answer = json.loads(line)
        return answer["end"], answer["said"]

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(60)

    def close(self) -> None:
        self.kill()
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                with suppress(BrokenPipeError):
                    end.close()


@dataclass
class Report:
    """What happened.

    Attributes:
        ends: how often which rival's work ended how.
        failures: what of ours ended otherwise than by success, a conflict or a lock that was not free.
        refusals: the same of Apache Hudi, whose table has to be right nevertheless.
    """

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    commits: int = 0

    def __str__(self) -> str:
        lines = [f"{self.commits} batches committed; {dict(self.signals)}"]
        names = sorted({name for name, _ in self.ends})
        for name in names:
            lines.append(f"  {name}: {dict(sorted((e, n) for (m, e), n in self.ends.items() if m == name))}")
        return "\n".join(lines)


class Rival(threading.Thread):
    """One participant: works until it is told to stop, and comes back when its process is killed."""

    def __init__(self, name: str, report: Report, start: Callable[[], PythonProcess | SparkProcess]) -> None:
        super().__init__(name=name, daemon=True)
        self._report, self._start = report, start
        self.process: PythonProcess | SparkProcess | None = None
        self.stopping = threading.Event()
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._work_until_dead()
        except BaseException as e:
            self.failed = e
            raise

    def _work_until_dead(self) -> None:
        process = self._start()
        self.process = process
        try:
            while process.running and not self.stopping.is_set():
                end, said = self.work(process)
                self._report.ends[self.name, end] += 1
                if end == "failed":
                    of = self._report.refusals if self.name.startswith("apache") else self._report.failures
                    of.append(f"{self.name}: {said}")
        except DeadError:
            self._report.ends[self.name, "killed"] += 1
        finally:
            self.process = None
            process.close()

    def work(self, process: PythonProcess | SparkProcess) -> tuple[str, str]:
        raise NotImplementedError


class WritingRival(Rival):
    def __init__(
        self, name: str, report: Report, start: Callable[[], PythonProcess | SparkProcess], history: History,
        seed: int, place: Place, frame: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__(name, report, start)
        self._history, self._place, self._frame = history, place, frame
        self._batches, self._rng = Batches(name, seed), random.Random(f"{seed} options of {name}")

    def work(self, process: PythonProcess | SparkProcess) -> tuple[str, str]:
        batch = self._batches.next()
        self._history.begin(batch)
        options = {
            **OCC,
            NOTE: batch.name,
            "hoodie.parquet.small.file.limit": self._rng.choice(("0", "1000000")),
        }
        end, said = self._write(process, batch, options)
        if end == "done":
            self._history.end(batch)
            self._batches.done(batch)
        return end, said

    def _write(
        self, process: PythonProcess | SparkProcess, batch: Batch, options: Mapping[str, str]
    ) -> tuple[str, str]:
        if isinstance(process, PythonProcess):
            return process.ask("write", options, operation=batch.operation, name=batch.name, rows=batch.rows)
        given = {
            **FRAME, **self._frame, **self._place.options, **options,
            "hoodie.datasource.write.operation": batch.operation,
        }  # fmt: skip
        try:
            process.write(self._place.path, batch.to_arrow(), given)
        except SparkProcessError as e:
            if not process.running or "ended with code" in str(e):
                raise DeadError from e
            return ("lost" if any(word in str(e) for word in _LOST) else "failed"), str(e)
        return "done", ""


class ServingRival(Rival):
    """Runs table services, one after the other, or reads."""

    def __init__(
        self, name: str, report: Report, start: Callable[[], PythonProcess], services: tuple[str, ...],
        rest_s: float,
    ) -> None:  # fmt: skip
        super().__init__(name, report, start)
        self._services, self._rest_s, self._turn = services, rest_s, 0

    def work(self, process: PythonProcess | SparkProcess) -> tuple[str, str]:
        assert isinstance(process, PythonProcess)
        self.stopping.wait(self._rest_s)
        if not self._services:
            end, said = process.ask("look", {})
            return ("failed" if said else end), said
        service = self._services[self._turn % len(self._services)]
        self._turn += 1
        return process.ask("serve", OCC, service=service)


class Rivals:
    """A table and its rivals.

    Args:
        place: of the table, which is made.
        spark, python, services, apache: how many of each.
        kill_every_s: on average; 0 for never.
    """

    def __init__(
        self, place: Place, *, seed: int, table_type: str = COPY_ON_WRITE, spark: int = 0, python: int = 2,
        services: int = 3, apache: int = 0, kill_every_s: float = 10.0, stop: bool = True,
        frame: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.place, self.seed = place, seed
        self.report, self.history = Report(), History()
        self._rng = random.Random(f"{seed} signals")
        self._kill_every_s, self._stop = kill_every_s, stop
        self._resumes: list[threading.Timer] = []
        first = first_batch()
        self.history.begin(first)
        table = HudiTable.create(
            place.path, SCHEMA, name="t", table_type=table_type, record_keys=["id"], partition_fields=["p"],
            ordering_fields=["ts"], options={k: v for k, v in place.options.items() if k.startswith("fs.")},
        )  # fmt: skip
        own = {k: v for k, v in place.options.items() if not k.startswith("fs.")}  # the store is open
        table.insert(first.to_arrow(), options={**own, **OCC, NOTE: first.name})
        self.history.end(first)
        more = {**(frame or {}), "hoodie.datasource.write.table.type": table_type}
        kinds: list[tuple[str, int, Callable[[], PythonProcess | SparkProcess]]] = [
            ("spark", spark, OursOnSpark),
            ("python", python, lambda: PythonProcess(place)),
            ("apache", apache, lambda: ApacheHudi("0.15.0")),
        ]
        self.rivals: list[Rival] = [
            WritingRival(f"{kind}{n}", self.report, start, self.history, seed, place, more)
            for kind, count, start in kinds
            for n in range(count)
        ]
        known = SERVICES[table_type]
        for n in range(services):
            rest = 0.3 + 0.4 * n
            turn = known[n % len(known) :] + known[: n % len(known)]
            self.rivals.append(
                ServingRival(f"service{n}", self.report, lambda: PythonProcess(place), turn, rest)
            )
        self.rivals.append(ServingRival("reader", self.report, lambda: PythonProcess(place), (), 0.5))

    def run(self, seconds: float) -> Report:
        """Let them work; then all end, and the table is looked at.

        Raises:
            RivalsError: what is wrong.
        """
        for rival in self.rivals:
            rival.start()
        try:
            self._disturb(time.monotonic() + seconds)
        finally:
            for rival in self.rivals:
                rival.stopping.set()
            for timer in self._resumes:
                timer.cancel()
            for rival in self.rivals:
                _resume(rival)
                rival.join(LONGEST_S)
        return self._checked()

    def _disturb(self, until: float) -> None:
        while time.monotonic() < until and not any(r.failed for r in self.rivals):
            pause_s = self._rng.expovariate(1 / self._kill_every_s) if self._kill_every_s else 1.0
            time.sleep(max(0.0, min(pause_s, until - time.monotonic())))
            if not self._kill_every_s or time.monotonic() >= until:
                continue
            rival = self._rng.choice([r for r in self.rivals if r.name != "reader"])
            process = rival.process
            if process is None or not process.running:  # it is starting
                continue
            if self._stop and self._rng.random() < 0.3:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGSTOP)
                self.report.signals["stopped"] += 1
                timer = threading.Timer(STOPPED_S, _resume, (rival,))
                timer.daemon = True
                timer.start()
                self._resumes.append(timer)
            else:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                self.report.signals["killed"] += 1

    def _checked(self) -> Report:
        problems = [f"{r.name} has not ended" for r in self.rivals if r.is_alive()]
        problems += [f"{r.name}: {r.failed!r}" for r in self.rivals if r.failed]
        if self.report.signals:
            time.sleep(BEAT_MS * MISSES / 1000 + 1)  # who died counts as dead now
        options = {**self.place.options, **OCC}
        table = HudiTable.open(self.place.path, options=options)
        table.clean()
        table = HudiTable.open(self.place.path, options=options)
        committed = committed_batches(table)
        self.report.commits = len(committed)
        rows = rows_of(table.read(["id", "p", "v"]).to_arrow())
        problems += self.history.problems(committed, rows)
        problems += wrong_in_snapshot(rows)
        # What killed writers leave in passing is removed when it is a day old.
        problems += [str(found) for found in table.verify(deep=True) if found.severity != "info"]
        problems += self.report.failures
        if problems:
            shown = "\n".join(problems[:30])
            raise RivalsError(f"seed {self.seed}: {len(problems)} problems\n{shown}\n{self.report}")
        return self.report


def _resume(rival: Rival) -> None:
    process = rival.process
    if process is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)


def same_for_apache(place: Place) -> list[str]:
    """What Apache Hudi 0.15.0 reads otherwise than we do."""
    with ApacheHudi("0.15.0") as apache:
        theirs = sorted(rows_of(apache.read(place.path)))
    table = HudiTable.open(place.path, options=dict(place.options))
    ours = sorted(rows_of(table.read(["id", "p", "v"]).to_arrow()))
    return [] if theirs == ours else [f"Apache Hudi reads {sorted(set(theirs) ^ set(ours))[:10]} otherwise"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lock", choices=LOCKS, default="local")
    parser.add_argument("--minutes", type=float, default=5.0)
    for kind, count in (("spark", 0), ("python", 2), ("services", 3), ("apache", 0)):
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--type", choices=(COPY_ON_WRITE, MERGE_ON_READ), default=COPY_ON_WRITE)
    parser.add_argument("--kill-every", type=float, default=10.0, help="seconds, on average; 0: never")
    parser.add_argument("--kill-only", action="store_true", help="nobody is stopped")
    parser.add_argument("--metadata", choices=("true", "false"), help="hoodie.metadata.enable of all writers")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--keep", type=Path, help="folder for the table, which is left there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rivals-") as scratch:
        folder = (given.keep or Path(scratch)) / uuid.uuid4().hex
        folder.mkdir(parents=True)
        with place_of(given.lock, folder) as place:
            if given.metadata:
                place = Place(place.path, {**place.options, "hoodie.metadata.enable": given.metadata})
            print(f"{given.lock}, {given.type}, seed {given.seed}, {place.path}", flush=True)
            rivals = Rivals(
                place, seed=given.seed, table_type=given.type, spark=given.spark, python=given.python,
                services=given.services, apache=given.apache, kill_every_s=given.kill_every,
                stop=not given.kill_only,
            )  # fmt: skip
            try:
                print(rivals.run(60 * given.minutes))
            finally:
                print("\n".join(f"REFUSED {text[:600]}" for text in rivals.report.refusals[:10]))
            if given.apache:
                found = same_for_apache(place)
                if found:
                    raise RivalsError(f"seed {given.seed}: {found}")


if __name__ == "__main__":
    main()
