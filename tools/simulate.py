"""Simulated interleavings of operations and services, as many as are asked for.

    python tools/simulate.py 0 1000000 [--processes 2]     # seeds; a failing one is shrunk, and the run fails
    python tools/simulate.py 4711 4712                     # one of them again
    python tools/simulate.py 0 10000 --processor-seconds 450    # or as many of them as end in that time

A seed draws the acts, their table, faults and clocks, and the order of their steps (`hudi_timeline.testing.workload`).
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence

from hudi_timeline.testing import shrunk
from hudi_timeline.testing.workload import drawn

BLOCK = 50
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


def of_block(seeds: tuple[int, int]) -> tuple[int, float, list[str]]:
    """Number of seeds, processor seconds, and a text for each that fails."""
    first, last = seeds
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    found = []
    for seed in range(first, last):
        error = failure(seed)
        if error is not None:
            found.append(f"seed {seed}: {drawn(seed)}\n  {type(error).__name__}: {error}{_few(seed, error)}")
    return last - first, time.process_time() - began, found


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
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--processor-seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    blocks = [(at, min(at + BLOCK, given.last)) for at in range(given.first, given.last, BLOCK)]
    began, done, cpu, failed = time.monotonic(), 0, 0.0, 0
    # Each process lives for some blocks: what a library keeps for ever is not kept for a million tables.
    with multiprocessing.get_context("spawn").Pool(given.processes, _begin, maxtasksperchild=100) as pool:
        for count, seconds, found in pool.imap_unordered(of_block, blocks):
            done, cpu, failed = done + count, cpu + seconds, failed + len(found)
            for text in found:
                print(text, flush=True)
            spent = cpu >= given.processor_seconds
            if done % (20 * BLOCK) == 0 or done == given.last - given.first or spent:
                each = f"{cpu / done * 1000:.0f} ms of a processor each"
                print(
                    f"{done:,} interleavings, {failed} failed; {each}; {time.monotonic() - began:.0f} s",
                    flush=True,
                )
            if spent and done < given.last - given.first:
                print(f"{given.processor_seconds:,.0f} s of a processor are over", flush=True)
            if spent or failed >= MOST_FAILURES:
                break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
