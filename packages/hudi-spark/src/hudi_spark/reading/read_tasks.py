"""Reading of base files in Python workers, where Spark's own scan is unusable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_timeline.reading.cdc_task import ChangeTask
from hudi_timeline.reading.task import ReadTask

Task: TypeAlias = ReadTask | ChangeTask

TASK_BYTES = 128 << 20
"""What one Spark task reads, about."""


@dataclass(frozen=True)
class ReadFiles:
    """Worker that reads groups of files: each incoming row is a group number."""

    groups: tuple[tuple[Task, ...], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for task in self.groups[number]:
                    yield from task.to_batches()


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
