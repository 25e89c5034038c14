"""Reproducible writes: the same rows, seed and instant make the same files, byte for byte.

What is random or of the clock in a write otherwise: ids of file groups, numbers of attempts in write tokens, those of
rows of partitions that are written side by side, and durations in the commit.  Tasks of Spark have numbers and an order
of rows of their own: there the ids of file groups are the same, and no more is promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hudi_format.errors import UnsupportedError
from hudi_format.model import WriteStat
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import LookupTask
from hudi_timeline.options.transaction_options import WRITE_SEED
from hudi_timeline.writing.planning.write_plan import Plan
from hudi_timeline.writing.workers.tasks import WriteContext


def refuse_random_rings(plan: Plan) -> None:
    """Refuse a seed where file ids come from elsewhere.

    Raises:
        UnsupportedError: consistent hashing, whose rings have ids of their own.
    """
    if plan.config.transaction.seed and plan.bucket is not None and plan.bucket.by_partition:
        raise UnsupportedError(
            f"{WRITE_SEED} is given, and with consistent hashing the partition's ring has the ids of its file groups",
            table=plan.storage.uri,
            remedy=f"leave {WRITE_SEED} out, or use another index.",
            option=WRITE_SEED,
        )


def seeded(task: LookupTask, context: WriteContext) -> LookupTask:
    """The look-up, whose new file groups of buckets have ids of the write's seed."""
    if not context.seed or not isinstance(task.bucket, BucketIndex):
        return task
    return replace(task, bucket=replace(task.bucket, seed=context.seed))


def without_durations(stats: Sequence[WriteStat]) -> list[WriteStat]:
    """Statistics without the time that their files took."""
    return [replace(s, create_time_ms=0, upsert_time_ms=0, scan_time_ms=0) for s in stats]
