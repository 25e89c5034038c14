"""Commit callbacks of tests: options name them, so they live in a module of their own."""

from collections.abc import Callable

from hudi_timeline.callbacks import Committed

heard: list[Committed] = []
jobs: list[Callable[[Committed], None]] = []


def note(commit: Committed) -> None:
    """Runs the jobs downstream, and remembers the commit."""
    for job in jobs:
        job(commit)
    heard.append(commit)


def fail(commit: Committed) -> None:
    raise RuntimeError("no queue")
