"""Exact routing: which of n tasks a row goes to, against Spark's own hash partitioning.

`repartition(n, column)` sends a row to `pmod(murmur3(column), n)`; n values hashed into n places leave a third of
them empty.  So each task gets a number that Spark's hash sends exactly there.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from hudi_timeline.write.tasks import Bucket

# Work that one task should have at least, so that thousands of small file groups do not mean as many tasks.
TASK_BYTES = 128 << 20
# Incoming rows that one task should have at most; they are sorted by bucket in it.
TASK_ROWS = 100_000
_MASK = 0xFFFFFFFF


def _rotl(x: int, n: int) -> int:
    return ((x << n) | (x >> (32 - n))) & _MASK


def spark_hash_int(value: int, seed: int = 42) -> int:
    """Spark's `hash` of one int column: Murmur3 x86 32 of its four bytes, signed."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotl(k, 15) * 0x1B873593 & _MASK
    h = _rotl(seed ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


def slots(n: int) -> list[int]:
    """For each of n tasks, a number that `repartition(n, number)` sends to it."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < n:
        found.setdefault(spark_hash_int(candidate) % n, candidate)
        candidate += 1
    return [found[i] for i in range(n)]


def spread(buckets: Sequence[Bucket], parallelism: int, asked: int | None = None) -> list[int]:
    """The task of each bucket: as many tasks as the work needs, about equally loaded.

    Args:
        asked: tasks that the user asked for, in the place of twice the `parallelism`.  There are more where each would
            get too much, and never more than buckets, as in Apache Hudi.
    """
    if not buckets:
        return []
    total = sum(b.expected_bytes for b in buckets)
    rows = sum(b.expected_rows for b in buckets)
    tasks = min(len(buckets), max(asked or 2 * parallelism, -(-total // TASK_BYTES), -(-rows // TASK_ROWS)))
    heap = [(0, task) for task in range(tasks)]
    out = [0] * len(buckets)
    for bucket in sorted(buckets, key=lambda b: -b.expected_bytes):
        load, task = heapq.heappop(heap)
        out[bucket.number] = task
        heapq.heappush(heap, (load + bucket.expected_bytes + 1, task))
    return out
