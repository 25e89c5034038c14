"""Run fuzz targets: with atheris for coverage, or as a replay of seeds, known inputs and fixed mutations.

    python fuzz/run.py --seconds 3                  every target, so long each
    python fuzz/run.py --seconds 600 log_file hfile
    python fuzz/run.py --replay [--mutations 2000]  without atheris; what the sanitizer session runs

Exit code 1 where a target crashed; the input is then in fuzz/findings/<target>/.  An input that has been
understood and mended moves to fuzz/regressions/<target>/, from where every run begins.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import hashlib
import io
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
ROOT = HERE.parent
for _path in (HERE, ROOT / "tests" / "golden"):
    sys.path.insert(0, str(_path))

REGRESSIONS = HERE / "regressions"
FINDINGS = HERE / "findings"
CORPUS = Path(os.environ.get("HUDI_FUZZ_CORPUS", HERE / "corpus"))
M_ARENA_MAX = -8  # of malloc.h
MOST_MEMORY = 3 << 30  # bytes of address space above what the process has when a target begins
LONGEST_INPUT = 20  # seconds
STUCK = 300  # seconds beyond its time after which a target that has not ended is said to hang


def seeds_of(name: str) -> list[bytes]:
    """Seeds made from golden files, and inputs that once went wrong."""
    from targets import TARGETS

    target = TARGETS[name]
    known = sorted((REGRESSIONS / name).glob("*")) if (REGRESSIONS / name).is_dir() else []
    return [p.read_bytes() for p in known] + [s for s in target.seeds() if len(s) <= 4 * target.most]


def write_corpus(name: str) -> Path:
    """The seeds as files, which libFuzzer begins with and adds to."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds_of(name):
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    return folder


def limit_memory() -> None:
    """An allocation for a number that the input made up fails at once."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return  # reserves terabytes of addresses
    import pyarrow as pa

    # What is taken for threads is not for numbers of the input; a machine of many cores has many.
    pa.set_cpu_count(2)
    pa.set_io_thread_count(2)
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)  # each reserves 64 MB of addresses
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, resource.RLIM_INFINITY))


def replay(name: str, mutations_count: int, seed: int) -> int:
    """Number of inputs on which a target goes wrong."""
    from targets import TARGETS
    from targets.target import mutations

    target = TARGETS[name]
    seeds = seeds_of(name)
    if not seeds:
        print(f"{name}: no seeds", file=sys.stderr)
        return 1
    limit_memory()
    taken = wrong = 0
    inputs = [
        b"",
        *seeds,
        *mutations([s for s in seeds if len(s) <= target.most] or seeds, mutations_count, seed),
    ]
    begun = time.monotonic()
    for data in inputs:
        signal.alarm(LONGEST_INPUT)
        try:
            taken += target.try_one(data)
        except Exception as e:  # noqa: BLE001 - any other error is a finding
            wrong += 1
            print(f"{name}: {keep(name, data)}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            if wrong <= 3:
                traceback.print_exc(limit=-4)
        finally:
            signal.alarm(0)
    print(
        f"{name}: {len(inputs)} inputs, {taken} taken, {wrong} wrong, {time.monotonic() - begun:.1f} s",
        flush=True,
    )
    return wrong


def keep(name: str, data: bytes) -> Path:
    path = FINDINGS / name / hashlib.sha1(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def fuzz(names: list[str], seconds: int, jobs: int, seed: int | None) -> int:
    """Run targets (all where none is named) with libFuzzer; 1 where one of them found something.

    Each runs in a fork of this process, which has instrumented the code once.

    Args:
        seed: of the mutations; None for another one in each run.
    """
    import atheris

    ours = ["hudi_format", "hudi_index", "hudi_timeline", "targets"]
    # It names each module.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=ours):
        from targets import TARGETS
    FINDINGS.mkdir(exist_ok=True)
    waiting, failed = list(names) or list(TARGETS), 0
    running: dict[int, tuple[str, Path]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            out = FINDINGS / f"{name}.log"
            child = os.fork()
            if child == 0:
                one(TARGETS[name], seconds, seed, out)
            running[child] = name, out
        child, status = os.wait()
        name, out = running.pop(child)
        failed += told(name, out, status == 0)
    return 1 if failed else 0


def one(target: Any, seconds: int, seed: int | None, out: Path) -> NoReturn:
    """Run libFuzzer in this process, which ends with it; what it says goes to a file."""
    import atheris

    found = FINDINGS / target.name
    found.mkdir(parents=True, exist_ok=True)
    with open(out, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.dump_traceback_later(seconds + STUCK, exit=True)
    limit_memory()
    end_at_once()
    arguments = [
        sys.argv[0], str(CORPUS / target.name), f"-max_total_time={seconds}", f"-max_len={target.most}",
        f"-timeout={LONGEST_INPUT}", "-rss_limit_mb=4096", f"-artifact_prefix={found}/", "-print_final_stats=1",
    ]  # fmt: skip
    if seed is not None:
        arguments.append(f"-seed={seed}")
    words = HERE / "dictionaries" / f"{target.name}.dict"
    if words.is_file():
        arguments.append(f"-dict={words}")

    def run(data: bytes) -> None:
        target.try_one(data)

    atheris.Setup(arguments, run)
    atheris.Fuzz()
    os._exit(0)


def end_at_once() -> None:
    """Let this process end with the status it is given, without the destructors of libraries.

    libFuzzer ends it while the GIL is held; Arrow's destructor of its threads waits for each of them, and one of them
    may wait for the GIL.  Handlers are called in the reverse order of their registration, so Arrow's come first here.
    """
    import pyarrow as pa

    pa.cpu_count(), pa.io_thread_count()
    libc = ctypes.CDLL(None)
    if libc.on_exit(libc._exit, None):
        raise OSError("no handler of this process's end could be registered")


def told(name: str, out: Path, ok: bool) -> bool:
    """Print what became of a target; whether it found something."""
    lines = out.read_text(errors="replace").splitlines()

    def number(word: str) -> str:
        return next((x.split()[-1] for x in lines if word in x), "?")

    line = f"{name}: {'ok' if ok else 'FAILED'}, {number('number_of_executed_units')} inputs, "
    line += f"{number('average_exec_per_sec')} a second, {number('peak_rss_mb')} MB"
    print("\n".join([line, *([] if ok else lines[-40:])]), flush=True)
    return not ok


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="names; all by default")
    parser.add_argument("--seconds", type=int, default=3, help="of each target")
    parser.add_argument(
        "--replay", action="store_true", help="no atheris: seeds, known inputs and fixed mutations"
    )
    parser.add_argument("--mutations", type=int, default=500, help="of each target, with --replay")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument(
        "--seed", type=int, help="of the mutations: the same inputs again, as far as time goes"
    )
    parser.add_argument("--seeds", action="store_true", help="only write the seeds to fuzz/corpus")
    chosen = parser.parse_args()
    if not (chosen.replay or chosen.seeds):
        # Another process makes the seeds: Arrow's threads do not survive a fork.
        ended = subprocess.run([sys.executable, __file__, "--seeds", *chosen.targets], check=False)
        return ended.returncode or fuzz(chosen.targets, chosen.seconds, chosen.jobs, chosen.seed)
    from targets import TARGETS

    unknown = sorted(set(chosen.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    names = chosen.targets or list(TARGETS)
    if chosen.seeds:
        for name in names:
            write_corpus(name)
        return 0
    return 1 if sum(replay(n, chosen.mutations, chosen.seed or 1) for n in names) else 0


if __name__ == "__main__":
    sys.exit(main())
