"""Two processes with different clocks, by minutes, write one table with one lock: nothing is lost, and order is kept.

The clock of a process is shifted by a library that is loaded before libc.  That of the store, which stamps files, is
not.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.options.transaction_options import FILE_SYSTEM, STORAGE
from s3_server import S3Server

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = "hoodie.write.lock."
MINUTES = 300.0
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "500",
    "hoodie.client.heartbeat.tolerable.misses": "4",
    "hoodie.write.num.retries.on.conflict.failures": "8",
    "hoodie.parquet.small.file.limit": "0",
    LOCK + "wait_time_ms": "30000",
}
SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static double shift(void) { return atof(getenv("CLOCK_SHIFT_S")); }

int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, t);
    if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        long long ns = t->tv_sec * 1000000000LL + t->tv_nsec + (long long)(shift() * 1e9);
        t->tv_sec = ns / 1000000000LL;
        t->tv_nsec = ns % 1000000000LL;
    }
    return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""
WRITER = """
import json, sys, time
from hudi_format.errors import HudiError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.options.transaction_config import parse_transaction_options

path, options = sys.argv[1], json.loads(sys.argv[2])


def write(keys, v, wait_s):
    table = HudiTable.open(path, options=options)
    rows = [{"id": key, "v": v} for key in keys]
    return table.upsert(rows, validators=[lambda change: time.sleep(wait_s)]).instant


def clean():
    HudiTable.open(path, options=options).clean()


def hold(seconds):
    asked = parse_transaction_options({k: v for k, v in options.items() if not k.startswith("fs.")})
    with lock_of(open_storage(path, options=options), asked, table_name="t").held():
        begun = time.monotonic()
        time.sleep(seconds)
        return [begun, time.monotonic()]


print(json.dumps(time.time()), flush=True)
for line in sys.stdin:
    name, *args = json.loads(line)
    try:
        answer = {"done": globals()[name](*args)}
    except HudiError as e:
        answer = {"refused": type(e).__name__, "said": str(e)}
    print(json.dumps(answer), flush=True)
"""


@dataclass(frozen=True)
class Place:
    path: str
    options: Mapping[str, str]


class Writer:
    """A process with a clock of its own."""

    def __init__(self, place: Place, library: Path, shift_s: float) -> None:
        env = {**os.environ, "LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(shift_s)}
        argv = [sys.executable, "-c", WRITER, place.path, json.dumps(dict(place.options))]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        assert self._process.stdout is not None
        self.clock = float(json.loads(self._process.stdout.readline()))

    def ask(self, *request: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.kill()
        self._process.wait(30)
        for end in (self._process.stdin, self._process.stdout):
            assert end is not None
            end.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("clocks of processes are shifted by a library, and there is no C compiler")
    folder = tmp_path_factory.mktemp("shift")
    (folder / "shift.c").write_text(SHIFT)
    made = folder / "shift.so"
    argv = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(folder / "shift.c"), "-ldl"]
    subprocess.run(argv, check=True)
    return made


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "storage":
        server: S3Server = request.getfixturevalue("s3_server")
        own = {LOCK + "provider": STORAGE, LOCK + "storage.validity.timeout.secs": "10"}
        made = Place(f"s3a://{server.new_bucket()}/t", {**OCC, **own, **server.hadoop_options})
    else:
        own = {LOCK + "provider": FILE_SYSTEM, LOCK + "filesystem.expire": "1"}
        made = Place(str(tmp_path / uuid.uuid4().hex), {**OCC, **own})
    store = {k: v for k, v in made.options.items() if k.startswith("fs.")}
    HudiTable.create(made.path, SCHEMA, name="t", record_keys=["id"], options=store)
    return made


@pytest.fixture
def writer(place: Place, library: Path) -> Iterator[Callable[[float], Writer]]:
    started: list[Writer] = []

    def start(shift_s: float) -> Writer:
        started.append(Writer(place, library, shift_s))
        return started[-1]

    yield start
    for one in started:
        one.close()


def both(*acts: Callable[[], None]) -> None:
    """Run acts side by side."""
    with ThreadPoolExecutor(len(acts)) as pool:
        for future in [pool.submit(act) for act in acts]:
            future.result(120)


def rows_of(place: Place) -> dict[str, int]:
    table = HudiTable.open(place.path, options=dict(place.options))
    assert table.verify(deep=True) == []
    found = table.read(["id", "v"]).to_arrow().to_pylist()
    assert len(found) == len({r["id"] for r in found})
    return {r["id"]: r["v"] for r in found}


def pending(place: Place) -> bool:
    timeline = HudiTable.open(place.path, options=dict(place.options)).timeline
    return bool(timeline.pending_writes())


PLACES = pytest.mark.parametrize("place", ["file_system", "storage"], indirect=True)
pytestmark = [pytest.mark.req("TM-07"), pytest.mark.sampled(2)]


@PLACES
@pytest.mark.parametrize("shift_s", [MINUTES, pytest.param(-MINUTES, marks=pytest.mark.slow), 0.6])
@pytest.mark.sampled(3)
def test_all_commits_are_there_in_the_order_of_their_instants(place, writer, shift_s):
    here, there = writer(0.0), writer(shift_s)
    assert abs(there.clock - here.clock - shift_s) < 30
    done: dict[str, list[tuple[str, int]]] = {"here": [], "there": []}
    refused = {"here": 0, "there": 0}

    def writes(one: Writer, name: str) -> Callable[[], None]:
        def act() -> None:
            for n in range(4):
                write(one, name, n)

        return act

    def write(one: Writer, name: str, n: int) -> None:
        answer = one.ask("write", [f"{name}-{n}", f"{name}-all"], n, 0.0)
        if "done" in answer:
            done[name].append((str(answer["done"]), n))
        else:
            assert answer["refused"] == "ClockError", answer
            refused[name] += 1

    both(writes(here, "here"), writes(there, "there"))
    # Whose clock is ahead is never refused; whose is behind is told so, once there is an instant of the other one.
    ahead, behind = ("there", "here") if shift_s > 0 else ("here", "there")
    told = refused[behind]
    write(here if behind == "here" else there, behind, 4)
    assert refused[behind] == told + (abs(shift_s) > 1)
    assert (refused[ahead], len(done[ahead])) == (0, 4)
    assert len(done[behind]) + refused[behind] == 5
    if abs(shift_s) < 1:
        assert refused[behind] == 0
    instants = [i for of in done.values() for i, _ in of]
    assert len(set(instants)) == len(instants)
    assert all(of == sorted(of) for of in done.values())
    wanted = {f"{name}-{n}": n for name, of in done.items() for _, n in of}
    wanted |= {f"{name}-all": of[-1][1] for name, of in done.items() if of}
    assert rows_of(place) == wanted
    timeline = HudiTable.open(place.path, options=dict(place.options)).timeline
    completed = [i.time for i in timeline.completed_writes()]
    assert completed == sorted(instants)


@pytest.mark.parametrize(
    ("place", "shift_s"),
    [
        pytest.param("file_system", MINUTES, marks=pytest.mark.slow),
        ("storage", MINUTES),
        pytest.param("file_system", -MINUTES, marks=pytest.mark.slow),
    ],
    indirect=["place"],
)
@pytest.mark.sampled(3)
def test_a_live_write_is_not_taken_for_dead(place, writer, shift_s):
    """It beats each half a second, counts as dead after two, and waits for four, while the other one cleans."""
    here, there = writer(0.0), writer(shift_s)
    answers: dict[str, dict[str, object]] = {}
    over = threading.Event()

    def slow() -> None:
        try:
            answers["slow"] = here.ask("write", ["slow"], 1, 4.0)
        finally:
            over.set()

    def others() -> None:
        n = 0
        # Not before the slow one has its instant: a clock that is behind gets none once there are later ones.
        while not (over.is_set() or pending(place)):
            time.sleep(0.05)
        while not over.is_set():
            answers[f"write {n}"] = there.ask("write", [f"fast-{n}"], n, 0.0)
            answers[f"clean {n}"] = there.ask("clean")
            n += 1

    both(slow, others)
    assert "done" in answers["slow"], answers
    written = {n: a for n, a in answers.items() if n.startswith("write")}
    assert {str(a.get("refused", "ClockError")) for a in answers.values()} == {"ClockError"}, answers
    wanted = {f"fast-{n.split()[1]}": int(n.split()[1]) for n, a in written.items() if "done" in a}
    assert rows_of(place) == {"slow": 1, **wanted}


@pytest.mark.parametrize(("place", "shift_s"), [("file_system", MINUTES)], indirect=["place"])
def test_a_held_lock_is_not_taken_for_left_over(place, writer, shift_s):
    spans: list[list[float]] = []

    def holds(one: Writer) -> Callable[[], None]:
        def act() -> None:
            for _ in range(2):
                answer = one.ask("hold", 1.0)
                span = answer.get("done")
                assert isinstance(span, list), answer
                spans.append(span)

        return act

    both(holds(writer(0.0)), holds(writer(shift_s)))
    spans.sort()
    assert len(spans) == 4
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
