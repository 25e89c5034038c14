"""Simulated interleavings of operations and services, as many as are asked for.

    python tools/simulate.py 0 1000000 [--processes 2]     # seeds; a failing one is shrunk, and the run fails
    python tools/simulate.py 4711 4712                     # one of them again
    python tools/simulate.py 0 10000 --processor-seconds 450    # or as many of them as end in that time
    python tools/simulate.py --pairs                       # each pair of acts on each kind of table
    python tools/simulate.py --pairs 0 500                 # the first 500 of them

A seed draws the acts, their table, faults and clocks, and the order of their steps (`hudi_timeline.testing.workload`).
Of a pair one act comes into the midst of the other, before each of its steps (`hudi_timeline.testing.preemptions`).
There one run decides all places until a step that sees or changes what the other act did: it is said how many ran,
and how many interleavings these decide.
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hudi_timeline.testing import preemptions, shrunk
from hudi_timeline.testing.acts import acts_on
from hudi_timeline.testing.workload import BY_KEYS, OPTIONS, Case, drawn
from hudi_timeline.testing.workload_table import TABLES

# At a time: seeds, and pairs, each of which is some 20 interleavings.
BLOCK, PAIRS = 50, 4
SAID_EACH_S = 200.0  # of processor time
# Of what a simulation makes little is in cycles, and a collection goes through all of it again.
COLLECTED_EACH = 50_000
MOST_FAILURES = 20


def failure(seed: int, switches: Sequence[tuple[int, str]] | None = None) -> Exception | None:
    """What is wrong with an interleaving; None for nothing."""
    try:
        drawn(seed).run(switches=switches)
    except Exception as e:  # noqa: BLE001  also one that is no error of ours is wrong
        return e
    return None


class Block(NamedTuple):
    """What became of some seeds or pairs."""

    done: int
    ran: int = 0
    decided: int = 0
    processor_s: float = 0.0
    found: tuple[str, ...] = ()


def of_seeds(first: int, last: int) -> Block:
    """Drawn interleavings, and a text for each that fails."""
    began, found = time.process_time(), []
    for seed in range(first, last):
        if (e := failure(seed)) is not None:
            found.append(f"seed {seed}: {drawn(seed)}\n  {type(e).__name__}: {e}{_few(seed, e)}")
    return Block(last - first, last - first, last - first, time.process_time() - began, tuple(found))


@cache
def all_pairs() -> list[tuple[str, str, str, str]]:
    """Each act in the midst of each other on each kind of table, in an order in which any part of them is mixed."""
    found = [(*kind, one, two) for kind in TABLES for one in acts_on(*kind) for two in acts_on(*kind)]
    random.Random("pairs").shuffle(found)
    return found


def of_pairs(first: int, last: int) -> Block:
    """Every preemption of pairs, and a text for each that fails."""
    began, ran, places, found = time.process_time(), 0, 0, []
    for number in range(first, last):
        table_type, index, one, two = all_pairs()[number]
        # By file groups two that add one key may leave it twice, as Apache Hudi's do.
        by_groups = number % 4 == 0 and "upsert_new" not in (one, two)
        case = Case({"one": [one], "two": [two]}, table_type, OPTIONS if by_groups else BY_KEYS, index=index)
        try:
            for preemption in preemptions(case, "one"):
                ran, places = ran + 1, places + preemption.places
        except Exception as e:  # noqa: BLE001
            found.append(f"pair {number}: {case}\n  {type(e).__name__}: {e}")
    return Block(last - first, ran, places, time.process_time() - began, tuple(found))


def of_block(task: tuple[bool, int, int]) -> Block:
    """Seeds or pairs."""
    pairs, first, last = task
    logging.disable(logging.CRITICAL)
    return of_pairs(first, last) if pairs else of_seeds(first, last)


def _few(seed: int, error: Exception) -> str:
    """The few switches that it takes, where the error says all of them."""
    _, said, text = str(error).rpartition("Switches: ")
    if not said:
        return ""
    switches = [(int(at), actor) for at, actor in _pairs(text)]
    few = shrunk(switches, lambda s: failure(seed, s) is not None)
    return f"\n  shrunk to {list(few)}" if failure(seed, few) is not None else ""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.strip("[]()").split("), ("):
        at, _, actor = pair.partition(", ")
        yield at, actor.strip("'\"")


def _begin() -> None:
    """Begin of a process: no collection goes through the libraries, which stay for ever."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_EACH, 20, 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("last", type=int, nargs="?", default=None)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--processor-seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.last is None and not given.pairs:
        parser.error("give the first and the last seed, or --pairs")
    last = len(all_pairs()) if given.last is None else given.last
    last, size = (min(last, len(all_pairs())), PAIRS) if given.pairs else (last, BLOCK)
    tasks = [(given.pairs, at, min(at + size, last)) for at in range(given.first, last, size)]
    began, said, all_of = time.monotonic(), 0.0, Block(0)
    # Each process lives for some blocks: what a library keeps for ever is not kept for a million tables.
    with multiprocessing.get_context("spawn").Pool(given.processes, _begin, maxtasksperchild=100) as pool:
        for block in pool.imap_unordered(of_block, tasks):
            all_of = Block(*(one + other for one, other in zip(all_of, block, strict=True)))
            for text in block.found:
                print(text, flush=True)
            spent = all_of.processor_s >= given.processor_seconds
            ends = spent or len(all_of.found) >= MOST_FAILURES or all_of.done == last - given.first
            if ends or all_of.processor_s >= said + SAID_EACH_S:
                said = all_of.processor_s
                of = f" of {all_of.done:,} pairs, which decide {all_of.decided:,}" if given.pairs else ""
                each = f"{all_of.processor_s / max(all_of.ran, 1) * 1000:.0f} ms of a processor each"
                print(
                    f"{all_of.ran:,} interleavings{of}; "
                    f"{len(all_of.found)} failed; {each}; {time.monotonic() - began:.0f} s",
                    flush=True,
                )
            if ends:
                if all_of.done < last - given.first:
                    print(f"ended after {all_of.processor_s:,.0f} s of a processor", flush=True)
                break
    return 1 if all_of.found else 0


if __name__ == "__main__":
    sys.exit(main())
