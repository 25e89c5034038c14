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
import time
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
    failed = []
    began = time.monotonic()
    for session in given.sessions or TEST_SESSIONS:
        started = time.monotonic()
        if subprocess.call([*nox, "-s", session], cwd=ROOT) != 0:
            failed.append(session)
        print(f"--- {session}: {'FAILED' if session in failed else 'passed'}, "
              f"{time.monotonic() - started:.0f} s", flush=True)  # fmt: skip
    print(f"--- all sessions: {time.monotonic() - began:.0f} s")
    if failed:
        print(f"--- failed: {', '.join(failed)}")
    return 1 if failed else 0


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
    return [str(scripts / "python"), "-m", "nox"]


if __name__ == "__main__":
    sys.exit(main())
