"""The two commands of the README: `python3 tools/run.py demo` and `python3 tools/run.py test`.

Only the standard library is needed to start it: it makes an environment of its own in `.venv`, with nox and
uv from the package index, and nox makes one for each session (noxfile.py).  What is there already is used.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import sessions as known
from sessions import BY_NAME

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BOOTSTRAP = ("nox", "uv")
CONSTRAINTS = ROOT / "requirements" / "ci.txt"  # their versions, and those of all that the sessions install

LONGEST_S = 4500  # of one of SESSIONS: the longest took 3,600 s on a slow machine; what takes longer hangs
GRACE_S = 10  # for what a session left to end by itself
LOADING_S = 0.5  # until a process that was started has its environment
# In the environment of all processes of a session: who started them is not always alive, and some make groups of
# their own (PySpark's daemon).
MARK = "HUDI_CI_SESSION"
# The commit at which all sessions passed here last: `test --since green`.
GREEN = ROOT / ".nox" / "green"
WORKERS = "HUDI_TEST_WORKERS"  # processes of tests in a session (noxfile.py)
# Tests flush what they publish, thousands of times: in memory that costs nothing, on a disk a good part of CI's time.
MEMORY_DISK = Path("/dev/shm")
# What must be free there, and of the machine's memory, in bytes: the tests' files take one, Spark's JVMs the rest.
MEMORY_DISK_BYTES, MEMORY_BYTES = 4 << 30, 12 << 30
_PRINTING = threading.Lock()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="set up, and run the main job on the flights of 2013")
    demo.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to examples/flights.py")
    test = commands.add_parser("test", help="set up what is missing, and pass the tests")
    test.add_argument("sessions", nargs="*", help=f"nox sessions; default: {', '.join(BY_NAME)}")
    test.add_argument(
        "--since", default=os.environ.get("HUDI_CI_SINCE"), metavar="COMMIT",
        help="only the sessions that the changes since a commit can break, which passed; 'green' is the last here",
    )  # fmt: skip
    test.add_argument("--list", action="store_true", help="say which sessions would run")
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
    if given.command == "demo":
        return subprocess.call([*bootstrap(), "-s", "demo", "--", *given.arguments], cwd=ROOT)
    chosen = given.sessions or choose(given.since)
    if given.list:
        print("\n".join(chosen))
        return 0
    nox = bootstrap()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    began = time.monotonic()
    # One more than cores: each waits now and then, for installations, stores and JVMs.
    at_once = 1 if given.sessions or (os.cpu_count() or 1) < 2 else (os.cpu_count() or 1) + 1
    failed = run_sessions(nox, chosen, at_once=at_once)
    print(f"--- {len(chosen)} sessions: {time.monotonic() - began:.0f} s")
    if failed:
        print(f"--- failed: {', '.join(failed)}")
        return 1
    if not given.sessions and (commit := known.head(ROOT)):
        GREEN.parent.mkdir(exist_ok=True)
        GREEN.write_text(commit, encoding="utf-8")
    return 0


def choose(since: str | None) -> list[str]:
    """The sessions that changes since a commit can break; all of them where no commit is given, or it is not known."""
    if since == "green":
        since = GREEN.read_text(encoding="utf-8").strip() if GREEN.is_file() else "(none that passed here)"
    changed = known.changed_since(ROOT, since) if since else None
    if changed is not None:
        chosen = known.affected(changed)
        print(f"{len(changed)} files differ from {since}: {', '.join(chosen) or 'nothing to do'}", flush=True)
        return chosen
    if since:
        print(f"The commit {since} is not known here, so all sessions run.", flush=True)
    return list(BY_NAME)


def run_sessions(nox: Sequence[str], names: Sequence[str], *, at_once: int = 1) -> list[str]:
    """Run sessions; gives the names of those that failed.

    Args:
        nox: the command.
        names: in the order in which they begin, where they have what they need by then.
        at_once: sessions that run at the same time, with one process of tests each.
    """
    waiting = list(names)
    passed: dict[str, bool] = {}
    changed = threading.Condition()

    def needs(name: str) -> list[str]:
        return [n for n in BY_NAME[name].needs if n in names] if name in BY_NAME else []

    def take() -> str | None:
        """The next session that has what it needs, once there is one; None where none is left."""
        with changed:
            while waiting:
                for name in waiting:
                    if all(need in passed for need in needs(name)):
                        waiting.remove(name)
                        return name
                changed.wait()
            return None

    def work() -> None:
        while (name := take()) is not None:
            found = False
            try:
                if missing := [n for n in needs(name) if not passed[n]]:
                    _say(f"--- {name}: NOT RUN, it needs {', '.join(missing)}")
                else:
                    found = run_session(nox, name, kept=at_once > 1, workers=1 if at_once > 1 else None)
            finally:
                with changed:
                    passed[name] = found
                    changed.notify_all()

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(at_once)]:
                worker.result()
            return [n for n in names if not passed[n]]
        except BaseException:
            with changed:
                waiting.clear()
                changed.notify_all()
            end_processes(_mark())
            raise


def run_session(
    nox: Sequence[str],
    session: str,
    *,
    kept: bool = False,
    workers: int | None = None,
    longest_s: float | None = None,
) -> bool:
    """Run one session; gives whether it passed.  Its processes end with it, at the latest.

    Args:
        kept: its output is shown when it is done, so that it does not mix with another's; its tests' files are in
            memory, where there is enough, and go with it.
        workers: processes of its tests; by default as many as there are cores, at most two.
        longest_s: seconds after which it is said to hang; by default `LONGEST_S` for what `test` runs, and no end for
            the long forms, which are named one by one.
    """
    started = time.monotonic()
    if longest_s is None and session in BY_NAME:
        longest_s = LONGEST_S
    mark = f"{_mark()}{session};"
    environment = {**os.environ, MARK: os.environ.get(MARK, "") + mark}
    if workers is not None:
        environment[WORKERS] = str(workers)
    said = ""
    if kept:
        _say(f"--- {session} begins")
    # A file, not a pipe: a process that the session left behind would keep a pipe open.
    with ExitStack() as stack:
        output = stack.enter_context(tempfile.TemporaryFile())
        if kept and (memory := memory_disk()) is not None:
            folder = tempfile.TemporaryDirectory(prefix="hudi-tests-", dir=memory, ignore_cleanup_errors=True)
            environment["TMPDIR"] = stack.enter_context(folder)
        to: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT} if kept else {}
        process = subprocess.Popen(
            [*nox, "-s", session], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, **to
        )
        try:
            process.wait(longest_s)
        except subprocess.TimeoutExpired:
            said = f"--- {session}: HUNG, ended after {longest_s:.0f} s; these processes ran:\n"
            said += "".join(f"---   {line}\n" for line in _lines(_processes(mark)))
            # faulthandler, which pytest enables, shows where each Python process is.
            for pid, command in _processes(mark).items():
                if "python" in command and "java" not in command.split()[0]:
                    _signal(pid, signal.SIGABRT)
            time.sleep(2)
            end_processes(mark, grace_s=0)
            process.kill()  # where there is no /proc
        finally:
            if process.poll() is not None and not said:
                left = end_processes(mark)
                said = "".join(f"--- {session} left, and now ended: {line}\n" for line in _lines(left))
        with suppress(subprocess.TimeoutExpired):  # nobody ends a process that waits for a broken disk
            process.wait(GRACE_S)
        output.seek(0)
        text = output.read().decode(errors="replace") + said
    code = process.poll() if process.poll() is not None else -1
    took, free = time.monotonic() - started, shutil.disk_usage(ROOT).free / 1e9
    text += (
        f"--- {session}: {'FAILED' if code else 'passed'}, {took:.0f} s, {free:.1f} GB of the disk are free"
    )
    _say(text)
    return code == 0


def memory_disk() -> Path | None:
    """A file system in memory for the tests' files; None where there is none, or memory is short."""
    try:
        entries = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(entries["MemAvailable"].split()[0]) << 10
        free = shutil.disk_usage(MEMORY_DISK).free
    except (OSError, KeyError, ValueError):
        return None  # no Linux
    enough = free >= MEMORY_DISK_BYTES and available >= MEMORY_BYTES
    return MEMORY_DISK if enough and os.access(MEMORY_DISK, os.W_OK | os.X_OK) else None


def _say(text: str) -> None:
    with _PRINTING:
        print(text, flush=True)


def _mark() -> str:
    return f";{os.getpid()}:"


def end_processes(mark: str, grace_s: float = GRACE_S) -> dict[int, str]:
    """End all processes that have a mark, and gives those that did not end by themselves in `grace_s`."""
    until = time.monotonic() + grace_s
    while (left := _processes(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    found, until = dict(left), time.monotonic() + GRACE_S
    while left and time.monotonic() < until:
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.1)
        left = _processes(mark)
        found.update(left)
    return found


def _processes(mark: str) -> dict[int, str]:
    """The commands, by process id, of all live processes with a mark; none where there is no /proc."""
    found = {}
    for folder in _process_folders():
        try:
            variables = _variables(folder)
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile, or is another user's
        marked = any(v.startswith(f"{MARK}=".encode()) and mark.encode() in v for v in variables)
        if marked and command and int(folder.name) != os.getpid():
            found[int(folder.name)] = command
    return found


def _variables(folder: Path) -> list[bytes]:
    """A process's environment; one that was started just now has none for a moment, while its program is loaded."""
    until = time.monotonic() + LOADING_S
    while not (found := (folder / "environ").read_bytes()) and time.monotonic() < until:
        (folder / "exe").readlink()  # not there for threads of the kernel and for what has ended
        time.sleep(0.01)
    return found.split(b"\0")


def _process_folders() -> Iterator[Path]:
    with suppress(OSError):
        yield from (p for p in Path("/proc").iterdir() if p.name.isdigit())


def _lines(processes: dict[int, str]) -> list[str]:
    return [f"{pid} {command[:200]}" for pid, command in sorted(processes.items())]


def _signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def bootstrap() -> list[str]:
    """The nox command of the project's own environment, which is made where it is missing."""
    # An index that answers slowly, or not once, is asked again.
    os.environ.setdefault("UV_HTTP_TIMEOUT", "120")
    os.environ.setdefault("UV_HTTP_RETRIES", "8")
    os.environ.setdefault("PIP_RETRIES", "8")
    os.environ.setdefault("PIP_DEFAULT_TIMEOUT", "60")
    scripts = VENV / ("Scripts" if os.name == "nt" else "bin")
    stamp = VENV / "bootstrap.txt"
    wanted = "\n".join((*BOOTSTRAP, CONSTRAINTS.read_text(encoding="utf-8"), sys.version))
    if not stamp.is_file() or stamp.read_text() != wanted:
        print("Setting up: an environment in .venv (once).", flush=True)
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(scripts / "python"), "-m", "pip", "install", "--quiet",
                               "--constraint", str(CONSTRAINTS), *BOOTSTRAP])  # fmt: skip
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
