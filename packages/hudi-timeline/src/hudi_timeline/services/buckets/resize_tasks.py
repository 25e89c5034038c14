"""Tasks of a resize, a split or merge each, and their worker.

A task holds all that its worker may know: the same worker runs on threads and in Spark's Python workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_format.errors import HudiError, UnsupportedError
from hudi_format.file_names import new_stage_id
from hudi_format.file_slice.compacted_file import SliceCompaction
from hudi_format.file_slice.divided_slices import divide_slices
from hudi_format.file_slice.writer import FileSpec
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import record_keys
from hudi_format.model import WriteStat
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.key_observer import BloomSettings, observer_of
from hudi_index.bucket import FEATURE, BucketIndex
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.marked_files import confirm_marked, start_marked
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.compaction_config import CompactionConfig
from hudi_timeline.services.buckets.resize_plan import BucketMove
from hudi_timeline.services.compaction.slice_tasks import make_tasks, of_attempt
from hudi_timeline.timeline.instant import INFLIGHT, REPLACE_COMMIT, instant_path


@dataclass(frozen=True, slots=True)
class ResizeTask:
    """Division of the slices of a move among the new buckets.

    Attributes:
        storage: the table's.
        instant: of the resize.
        inflight: path of its inflight file; without it no file is begun.
        index: of after the resize, with the ring of the partition.
        numbers: new buckets, in the order of `specs`.
        specs: their files.
        keys: makes record keys of the columns where the meta columns are left empty.
        bloom: the filter in the footers; None for none.
    """

    storage: Storage
    instant: str
    inflight: str
    sources: tuple[SliceCompaction, ...]
    index: BucketIndex
    numbers: tuple[int, ...]
    specs: tuple[FileSpec, ...]
    keys: KeySpec | None = None
    bloom: BloomSettings | None = None

    @property
    def bytes(self) -> int:
        """Size of the slices' files, to balance tasks."""
        return sum(s.slice.bytes for s in self.sources)

    def of_attempt(self, attempt: int) -> ResizeTask:
        """The task with another attempt in the names of the new files."""
        specs = (replace(s, write_token=of_attempt(s.write_token, attempt)) for s in self.specs)
        return replace(self, specs=tuple(specs))

    def route(self, rows: pa.Table) -> np.ndarray:
        """Number of the file of each row.

        Raises:
            UnsupportedError: a key that belongs to none of them: it was written with other settings.
        """
        if self.keys is None:
            keys = rows.column(RECORD_KEY)
        else:
            keys = record_keys(rows, self.keys)
        found = self.index.of(keys, self.specs[0].partition)
        order = np.argsort(self.numbers)
        numbers = np.asarray(self.numbers)[order]
        at = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
        wrong = np.flatnonzero(numbers[at] != found)
        if len(wrong):
            old = ", ".join(s.slice.file_id for s in self.sources)
            raise UnsupportedError(
                f"{len(wrong):,} keys of file group {old} belong to other buckets, first "
                f"{keys[int(wrong[0])].as_py()!r}: they were written with other settings",
                table=self.storage.uri, feature=FEATURE,
                remedy="read the table and write its rows to a new one, or replace the rows of the partition with "
                "insert_overwrite.",
            )  # fmt: skip
        return order[at]


def make_resize_tasks(
    snapshot: TableSnapshot,
    instant: str,
    moves: Sequence[BucketMove],
    index: BucketIndex,
    config: CompactionConfig,
) -> list[ResizeTask]:
    """A task for each move; errors as `make_tasks` of a compaction.

    Args:
        index: of after the resize, with the rings.
    """
    compactions = iter(make_tasks(snapshot, instant, [s for m in moves for s in m.slices], config))
    table = snapshot.config
    keys = None if table.populate_meta_fields else table.record_key_spec()
    inflight = instant_path(table, instant, REPLACE_COMMIT, INFLIGHT)
    stage = new_stage_id()
    tasks = []
    count = 0
    for move in moves:
        made = [next(compactions) for _ in move.slices]
        base = made[0].compaction.spec
        specs = []
        for file_id in move.targets.values():
            specs.append(replace(base, file_id=file_id, write_token=f"{count}-{stage}-0"))
            count += 1
        tasks.append(
            ResizeTask(
                snapshot.storage,
                instant,
                inflight,
                tuple(t.compaction for t in made),
                index,
                tuple(move.targets),
                tuple(specs),
                keys,
                made[0].bloom,
            )
        )
    return tasks


def run_resize_task(task: ResizeTask) -> list[WriteStat]:
    """Write the new files of a move; returns the statistics of those that have rows.

    Raises:
        ConcurrentWriterError: the resize is over: completed without this attempt, or rolled back.
        HudiError: as `divide_slices` and `ResizeTask.route`, with table, instant and file.
    """
    storage = task.storage
    guards: dict[str, Callable[[], None]] = {}

    def begin(spec: FileSpec) -> Callable[[], None]:
        guards[spec.path] = start_marked(
            storage, task.instant, task.inflight, spec.partition, spec.name, markers.CREATE
        )
        return guards[spec.path]

    try:
        stats = divide_slices(
            storage, task.sources, task.specs, task.route, begin=begin,
            observer=partial(observer_of, task.bloom, virtual=task.keys is not None),
        )  # fmt: skip
    except HudiError as e:
        raise e.at(table=storage.uri, instant=task.instant) from e.__cause__
    for stat in stats:
        confirm_marked(storage, guards[stat.path], stat.path)
    return stats


Runner = Callable[[Sequence[ResizeTask]], list[WriteStat]]
"""Runs tasks somewhere; the results are in any order.  An error of one of them is raised."""


def run_on_threads(tasks: Sequence[ResizeTask]) -> list[WriteStat]:
    """Run tasks on threads of this process, the largest first."""
    largest_first = sorted(tasks, key=lambda t: -t.bytes)
    done = side_by_side(run_resize_task, largest_first, len(os.sched_getaffinity(0)), "hudi-resize")
    return [stat for stats in done for stat in stats]
