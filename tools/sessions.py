"""What CI runs: the sessions of noxfile.py, what each of them takes, and which of them a change can break.

`tools/run.py test` runs all of them; with `--since COMMIT` those whose inputs differ from that commit's: a state that
passed and the sessions that a change can break make a state that passed.  Inputs are rather too wide than too narrow:
what tests share counts for all of them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("hudi-format", "hudi-index", "hudi-timeline", "hudi-spark")  # in layer order
EVERYTHING = ("",)
# What every session is made of.
SET_UP = (
    "noxfile.py", "pyproject.toml", "requirements/", ".ci/", "tools/run.py", "tools/sessions.py", "tools/lock.py",
)  # fmt: skip
# What tests of all sessions share: fixtures, servers, helpers, golden tables, other packages' support.
SHARED = (
    *SET_UP, "conftest.py", "tools/", "tests/golden/",
    *(f"packages/{p}/tests/{f}/" for p in PACKAGES for f in ("support", "data")),
)  # fmt: skip
# What the documentation site is made of, beside the packages.
SITE = (
    "mkdocs.yml", "docs/", "tools/pages/", "SECURITY.md", "CONTRIBUTING.md", "benchmarks/results/",
    *(f"packages/{p}/README.md" for p in PACKAGES),
)  # fmt: skip
# Read by no session but those that take everything.
UNREAD = re.compile(r"(?:.*/)?(?:CHANGELOG\.md|LICENSE|NOTICE|\.gitignore|changes/.*)|tools/check_\w+\.py")


def _sources(*packages: str) -> tuple[str, ...]:
    """All of the packages' wheels that is run."""
    return tuple(f"packages/{p}/{f}" for p in packages for f in ("src/", "pyproject.toml", "setup.py"))


def _tests(package: str) -> tuple[str, ...]:
    """Of one package's tests, which read READMEs too."""
    below = PACKAGES[: PACKAGES.index(package) + 1]
    own = (f"packages/{package}/tests/", f"packages/{package}/README.md", "README.md")
    return (*SHARED, *_sources(*below), *own)


@dataclass(frozen=True)
class Session:
    """A session of noxfile.py.

    Attributes:
        inputs: the files and folders (ending in `/`) that decide whether it passes; "" is everything.
        needs: sessions whose products it installs.
    """

    name: str
    inputs: tuple[str, ...]
    needs: tuple[str, ...] = ("build",)

    def takes(self, path: str) -> bool:
        """Whether a file is one of its inputs."""
        if self.inputs == EVERYTHING or path in self.inputs:
            return True
        if UNREAD.fullmatch(path):
            return False
        return any(i.endswith("/") and path.startswith(i) for i in self.inputs)


BOTH = ("build", "pysparks")
# The order in which those begin that have what they need: first what others need and what fails at once, then what
# takes longest, so that the whole does not end with one session while other cores have nothing to do.
SESSIONS = (
    Session("build", (*SET_UP, *_sources(*PACKAGES)), needs=()),
    Session("pysparks", SET_UP, needs=()),
    Session("lint", EVERYTHING, needs=()),
    Session("layers", EVERYTHING, needs=()),
    Session("interop", (*SHARED, *_sources(*PACKAGES), "tests/interop/"), BOTH),
    Session("spark(3.5)", _tests("hudi-spark"), BOTH),
    Session("unit-3.11(hudi-timeline)", _tests("hudi-timeline")),
    Session("scenario", (*SHARED, *_sources(*PACKAGES), "tests/scenarios/"), BOTH),
    Session("simulation_smoke", (*SET_UP, *_sources(*PACKAGES[:3]), "tools/simulate.py")),
    Session("bench_smoke", (*SHARED, *_sources(*PACKAGES), "benchmarks/"), BOTH),
    Session("spark(4)", _tests("hudi-spark"), BOTH),
    Session("documents", EVERYTHING, BOTH),
    Session("unit-3.11(hudi-format)", _tests("hudi-format")),
    Session("fuzz_smoke", (*SHARED, *_sources(*PACKAGES[:3]), "fuzz/")),
    Session("types", (*SET_UP, *_sources(*PACKAGES)), BOTH),
    Session("lowest-3.11", tuple(dict.fromkeys(i for p in PACKAGES[:3] for i in _tests(p)))),
    Session("docs", (*SET_UP, *_sources(*PACKAGES), *SITE)),
    Session("wheels", (*SET_UP, *_sources(*PACKAGES), "tools/check_wheels.py"), BOTH),
    Session("unit-3.11(hudi-index)", _tests("hudi-index")),
)
BY_NAME = {session.name: session for session in SESSIONS}


def affected(paths: Iterable[str]) -> list[str]:
    """The sessions that a change of these files can break, and those that they need."""
    changed = list(paths)
    chosen = {s.name for s in SESSIONS if any(s.takes(path) for path in changed)}
    return with_needs(chosen)


def with_needs(names: Iterable[str]) -> list[str]:
    """Sessions and those that they need, in the order in which they run."""
    chosen = set(names)
    chosen |= {need for name in chosen if name in BY_NAME for need in BY_NAME[name].needs}
    return [s.name for s in SESSIONS if s.name in chosen]


def changed_since(root: Path, commit: str) -> list[str] | None:
    """The files that differ from a commit, those that git does not know yet too; None where it is not to be had.

    A clone of one commit knows no other.
    """
    commands = (
        ("diff", "--name-only", "--no-renames", "-z", commit, "--"),
        ("ls-files", "--others", "--exclude-standard", "-z"),
    )
    found: list[str] = []
    for command in commands:
        text = _git(root, command)
        if text is None:
            return None
        found += [path for path in text.split("\0") if path]
    return sorted(set(found))


def head(root: Path) -> str | None:
    """The commit that is checked out, where nothing differs from it."""
    commit = _git(root, ("rev-parse", "HEAD"))
    return None if commit is None or changed_since(root, "HEAD") else commit.strip()


def _git(root: Path, arguments: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None  # no git here
    return done.stdout if done.returncode == 0 else None
