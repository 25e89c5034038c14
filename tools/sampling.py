"""Which cases of a parametrized test CI runs, where all of them take too long.

The first of these that there is decides for a test; the cases that it leaves out are `slow`, and belong to the long
forms:

- cases that are marked `in_ci` (`pytest.param(..., marks=pytest.mark.in_ci)`) run, and no others;
- `@pytest.mark.sampled(4)`: about one of so many, and at least one with each value of each parameter, but of those of
  which each case has a value of its own; `sampled(4, values=False)` does without the latter, where a case takes many
  seconds.  The same ones in each run and on each worker;
- a number that the suite gives for its file (`mark_first`): the first of so many.

A case that is marked `slow` itself is none of those that are chosen from.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest


def mark_chosen(items: Iterable[pytest.Item]) -> None:
    """Mark the cases that CI leaves out as `slow`, of tests that name or sample those that it runs."""
    for cases in _by_test(items):
        named = [c for c in cases if _has(c, "in_ci")]
        sampled = [c for c in cases if _has(c, "sampled") and not _has(c, "slow")]
        if named:
            left = [c for c in cases if c not in named]
        elif sampled:
            marker = sampled[0].get_closest_marker("sampled")
            assert marker is not None
            kept = chosen([values_of(c) for c in sampled], marker.args[0], **marker.kwargs)
            left = [c for n, c in enumerate(sampled) if n not in kept]
        else:
            left = []
        _mark_slow(left)


def mark_first(items: Iterable[pytest.Item], one_of: Mapping[str, int]) -> None:
    """Mark all cases but the first of every so many as `slow`, of tests that neither name nor sample theirs.

    Args:
        one_of: the number for the tests of a file, by its name without `.py`.
    """
    for cases in _by_test(i for i in items if i.path.stem in one_of):
        if not any(_has(c, "in_ci") or _has(c, "sampled") for c in cases):
            quick = [c for c in cases if not _has(c, "slow")]
            _mark_slow(c for n, c in enumerate(quick) if n % one_of[c.path.stem])


def refuse_left_out(deselected: Iterable[pytest.Item]) -> None:
    """Refuse a run that leaves out a case that is named for CI because something else marked it `slow`.

    Raises:
        pytest.UsageError: naming the case.
    """
    for case in deselected:
        if _has(case, "in_ci") and _has(case, "slow"):
            raise pytest.UsageError(f"{case.nodeid} is marked in_ci, and slow: CI would not run it")


def _by_test(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    tests: dict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.path, getattr(item, "originalname", item.name)].append(item)
    return list(tests.values())


def _has(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


def _mark_slow(cases: Iterable[pytest.Item]) -> None:
    for case in cases:
        if not _has(case, "slow"):
            case.add_marker(pytest.mark.slow)


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
