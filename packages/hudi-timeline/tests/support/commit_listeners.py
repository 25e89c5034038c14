"""Commit callbacks of tests: options name them, so they live in a module of their own."""

from collections.abc import Callable

from hudi_timeline.transaction.commit_callback import CommitNotice

heard: list[CommitNotice] = []
jobs: list[Callable[[CommitNotice], None]] = []


def note(commit: CommitNotice) -> None:
    """Runs the jobs downstream, and remembers the commit."""
    for job in jobs:
        job(commit)
    heard.append(commit)


def fail(commit: CommitNotice) -> None:
    raise RuntimeError("no queue")
