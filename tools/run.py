"""The two commands of the README: `python3 tools/run.py demo` and `python3 tools/run.py test`.

Only the standard library is needed to start it: it makes an environment of its own in `.venv`, with nox and
uv from the package index, and nox makes one for each session (noxfile.py).  What is there already is used.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BOOTSTRAP = ("nox>=2025.5", "uv>=0.5")

# What `test` runs, in this order; each is a nox session that can be run alone: `.venv/bin/nox -s NAME`.
TEST_SESSIONS = (
    "lint",
    "layers",
    "wheels",
    "unit-3.11",
    "types",
    "spark",
    "scenario",
    "fuzz_smoke",
    "interop",
    "bench_smoke",
)
# Those that keep one core busy, mostly: with all of `test` they run beside the others, which use two, but wait for
# installations and for JVMs to start.  They begin when the wheels are there.
BESIDE = ("types", "bench_smoke")
WHEELS = "wheels"
_PRINTING = threading.Lock()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="set up, and run the main job on the flights of 2013")
    demo.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to examples/flights.py")
    test = commands.add_parser("test", help="set up what is missing, and pass the tests")
    test.add_argument("sessions", nargs="*", help=f"nox sessions; default: {' '.join(TEST_SESSIONS)}")
    given = parser.parse_args()

    if sys.version_info < (3, 11):
        print(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print(
            "Java is needed to run Spark (17 is what is tested): put it on PATH or set JAVA_HOME.",
            file=sys.stderr,
        )
        return 2
    nox = bootstrap()
    if given.command == "demo":
        return subprocess.call([*nox, "-s", "demo", "--", *given.arguments], cwd=ROOT)
    began = time.monotonic()
    failed = run_sessions(nox, given.sessions or TEST_SESSIONS, () if given.sessions else BESIDE)
    print(f"--- all sessions: {time.monotonic() - began:.0f} s")
    if failed:
        print(f"--- failed: {', '.join(failed)}")
    return 1 if failed else 0


def run_sessions(nox: Sequence[str], sessions: Sequence[str], beside: Sequence[str] = ()) -> list[str]:
    """Run sessions one after the other; gives the names of those that failed.

    Args:
        nox: the command.
        beside: those of them that a second row of sessions takes, once the wheels are built.
    """
    failed = []
    with ThreadPoolExecutor(1) as row:
        others: dict[str, Future[bool]] = {}
        for session in sessions:
            if session in others:
                continue
            if not run_session(nox, session):
                failed.append(session)
            elif session == WHEELS and (os.cpu_count() or 1) > 1:
                others = {s: row.submit(run_session, nox, s, kept=True) for s in beside if s in sessions}
        return failed + [s for s, passed in others.items() if not passed.result()]


def run_session(nox: Sequence[str], session: str, *, kept: bool = False) -> bool:
    """Run one session; gives whether it passed.

    Args:
        kept: its output is shown when it is done, so that it does not mix with another's.
    """
    started = time.monotonic()
    if kept:
        done = subprocess.run(
            [*nox, "-s", session], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output, code = done.stdout.decode(errors="replace"), done.returncode
    else:
        output, code = "", subprocess.call([*nox, "-s", session], cwd=ROOT)
    with _PRINTING:
        took, free = time.monotonic() - started, shutil.disk_usage(ROOT).free / 1e9
        text = f"--- {session}: {'FAILED' if code else 'passed'}, {took:.0f} s, {free:.1f} GB of the disk are free"
        print(output + text, flush=True)
    return code == 0


def bootstrap() -> list[str]:
    """The nox command of the project's own environment, which is made where it is missing."""
    scripts = VENV / ("Scripts" if os.name == "nt" else "bin")
    stamp = VENV / "bootstrap.txt"
    wanted = "\n".join((*BOOTSTRAP, sys.version))
    if not stamp.is_file() or stamp.read_text() != wanted:
        print("Setting up: an environment in .venv (once).", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(scripts / "python"), "-m", "pip", "install", "--quiet", *BOOTSTRAP])
        stamp.write_text(wanted)
    os.environ["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    # Packages are installed for the interpreter that runs this; none is downloaded.
    os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")
    if "UV_CACHE_DIR" not in os.environ and not _same_disk(Path.home(), ROOT):
        # On the same disk the sessions' environments are hard links into the cache; else each is a copy.
        os.environ["UV_CACHE_DIR"] = str(ROOT / ".nox" / "uv-cache")
    return [str(scripts / "python"), "-m", "nox"]


def _same_disk(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:  # a home that is not there
        return False


if __name__ == "__main__":
    sys.exit(main())
