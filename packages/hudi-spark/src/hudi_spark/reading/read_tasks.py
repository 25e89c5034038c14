"""Tasks of reads in groups, each of which is one of Spark's tasks."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

from hudi_timeline.reading.incremental.cdc_task import ChangeTask
from hudi_timeline.reading.task import ReadTask

Task: TypeAlias = ReadTask | ChangeTask

TASK_BYTES = 128 << 20
"""What one Spark task reads, about."""

SHARE_BYTES = 512 << 20
"""Slices that one worker looks through for changes; it decodes little of them, and a Spark task costs much."""


def grouped(tasks: Sequence[Task], size: int = TASK_BYTES, *, least: int = 1) -> tuple[tuple[Task, ...], ...]:
    """Tasks in groups of about `size` bytes, at least `least` groups."""
    size = min(size, sum(max(t.size, 0) for t in tasks) // max(least, 1))
    groups: list[list[Task]] = []
    room = 0
    for task in tasks:
        if not groups or room < task.size:
            groups.append([])
            room = size
        groups[-1].append(task)
        room -= max(task.size, 0)
    return tuple(tuple(g) for g in groups)


def shares(tasks: Sequence[ReadTask], count: int) -> tuple[tuple[ReadTask, ...], ...]:
    """Tasks in so many groups of about one size at most.

    There are more where that would be much for one worker.
    """
    count = max(count, sum(max(t.size, 0) for t in tasks) // SHARE_BYTES)
    groups: list[list[ReadTask]] = [[] for _ in range(min(count, len(tasks)))]
    loads = [(0, n) for n in range(len(groups))]
    for task in sorted(tasks, key=lambda t: -t.size):
        load, n = heapq.heappop(loads)
        groups[n].append(task)
        heapq.heappush(loads, (load + max(task.size, 0), n))
    return tuple(map(tuple, groups))
