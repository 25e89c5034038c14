"""A covering array: few cases in which every pair of values of any two factors comes up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations


def covering_array(
    factors: Mapping[str, Sequence[str]],
    possible: Callable[[Mapping[str, str]], bool] = lambda case: True,
    *,
    seed: int = 0,
    tries: int = 60,
) -> list[dict[str, str]]:
    """Cases that cover each pair of values that some possible case has.

    Greedy: of some random cases that cover a pair still missing, the one that covers most.  The same arguments
    give the same cases.

    Args:
        possible: whether a whole case makes sense.
        tries: random completions looked at for each case.
    """
    rng = random.Random(seed)
    names = list(factors)
    missing = {((a, x), (b, y)) for a, b in combinations(names, 2) for x in factors[a] for y in factors[b]}
    cases: list[dict[str, str]] = []
    while missing:
        pair = min(missing)
        best: dict[str, str] | None = None
        gain = 0
        for _ in range(tries):
            case = {n: rng.choice(list(factors[n])) for n in names} | dict(pair)
            if not possible(case):
                continue
            new = len(missing.intersection(pairs_of(case)))
            if new > gain:
                best, gain = {n: case[n] for n in names}, new
        if best is None:  # no possible case has it
            missing.discard(pair)
            continue
        cases.append(best)
        missing.difference_update(pairs_of(best))
    return cases


def pairs_of(case: Mapping[str, str]) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs of (factor, value) in a case."""
    return set(combinations(case.items(), 2))
