"""Which cases of a parametrized test CI runs, where all of them take too long: `@pytest.mark.sampled(4)`.

About one of so many, and at least one with each value of each parameter, but of those of which each case has a value
of its own; `sampled(4, values=False)` does without the latter, where a case takes many seconds.  The same ones in each
run and on each worker; the others are `slow`, and belong to the long forms.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest


def mark_sampled(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that CI leaves out as `slow`."""
    tests: dict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            tests[item.path, getattr(item, "originalname", item.name)].append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        values = [values_of(c) for c in cases]
        left = set(range(len(cases))) - chosen(values, marker.args[0], **marker.kwargs)
        for n in left:
            cases[n].add_marker(pytest.mark.slow)


def values_of(item: pytest.Item) -> dict[str, str]:
    """A case's parameters, as text that is the same in each process."""
    if not hasattr(item, "callspec"):
        return {}
    out = {}
    for name, value in item.callspec.params.items():
        text = str(getattr(value, "__name__", value))[:200]
        out[name] = text if " at 0x" not in text else f"number {item.callspec.indices[name]}"
    return out


def chosen(cases: Sequence[dict[str, str]], one_of: int, *, values: bool = True) -> set[int]:
    """The places of the cases that run.

    Args:
        one_of: of so many cases about one runs.
        values: whether each value of each parameter that cases share is in one that runs.
    """
    names = {name for case in cases for name in case}
    shared = {name for name in names if len({case.get(name) for case in cases}) < len(cases)}
    brought = [{(name, case[name]) for name in shared if name in case} for case in cases]
    order = sorted(range(len(cases)), key=lambda n: (zlib.crc32(repr(sorted(cases[n].items())).encode()), n))
    out: list[int] = []
    missing = set().union(*brought) if values else set()
    while missing:  # first the case that brings most of what no other has brought
        out.append(max(order, key=lambda n: len(brought[n] & missing)))
        missing -= brought[out[-1]]
    for n in order:
        if n not in out and len(out) < len(cases) / one_of:
            out.append(n)
    return set(out)
