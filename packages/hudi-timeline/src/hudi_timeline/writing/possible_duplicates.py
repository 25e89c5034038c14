"""Warnings about records that may be stored a second time, and refusal of known keys.

Only an upsert by an index over the whole table knows that there is one record of each key.  What other operations do
not look for they cannot count: the warnings say what was not looked for, and how to.  As they are of every such write,
the log has each once for a table and process.  docs/guide/duplicates.md has it operation by operation.

Source: FAQ, "How does Hudi handle duplicate record keys in an input"; operations of Apache Hudi 0.15 by experiment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hudi_format.errors import DuplicateKeyError
from hudi_format.model import BaseFile, WriteStat
from hudi_index.lookup import GLOBAL_KINDS, LookupTask
from hudi_timeline.options.file_options import INDEX_TYPE
from hudi_timeline.options.table_options import RECORD_KEY
from hudi_timeline.options.transaction_options import BY_KEYS, CONFLICT_DETECTION
from hudi_timeline.options.write_options import DUP_POLICY
from hudi_timeline.timeline.active_timeline import SCHEMA_NEUTRAL
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.write_plan import Plan, drops_duplicates, fails_on_known_keys

_ADDING = ("insert", "bulk_insert")

_logged: set[tuple[str, str]] = set()


def first_time(table: str, warning: str) -> bool:
    """Whether a warning about a table is new to this process."""
    new = (table, warning) not in _logged
    _logged.add((table, warning))
    return new


def about_duplicates(plan: Plan, stats: Sequence[WriteStat]) -> Iterator[str]:
    """Warnings of a write.

    Args:
        stats: of the files that it wrote.
    """
    inserted = sum(s.num_inserts for s in stats)
    if not inserted or plan.config.prepped:
        return
    if plan.key_spec.auto:
        if plan.operation in _ADDING or plan.operation == "upsert":
            yield (
                "the table has no record key: rows that are written a second time stand in it twice; name the columns "
                f"that identify a row with {RECORD_KEY} when the table is made"
            )
        return
    if plan.recreate or not _has_writes(plan):
        return
    if plan.operation in _ADDING and plan.bucket is None:
        if not drops_duplicates(plan) and not fails_on_known_keys(plan):
            yield (
                f"{plan.operation} does not look for keys that are in the table already, which then stand in it twice; "
                f"upsert updates them, and insert with {DUP_POLICY}=drop or fail skips or refuses them"
            )
    elif plan.operation == "upsert" and _may_have_moved(plan):
        fields = ", ".join(plan.key_spec.partition_fields)
        yield (
            f"keys were looked for in the partitions of the rows only ({plan.index}): of a record whose {fields} has "
            f"changed the old row stays in its partition; {INDEX_TYPE}=GLOBAL_SIMPLE or GLOBAL_BLOOM moves it"
        )


def added_beside(plan: Plan, stats: Sequence[WriteStat], rivals: Iterable[CommitMetadata]) -> Iterator[str]:
    """Warnings of a write beside which others have added records.

    Where their keys are compared, or each has one bucket, there are none.  Nor are there for operations that say of
    every write that they look for no keys.

    Args:
        stats: of the files that it wrote.
        rivals: what was completed since it began.
    """
    if plan.operation not in (*_ADDING, "upsert") or plan.bucket is not None or plan.key_spec.auto:
        return
    compared = (
        plan.config.transaction.detection == BY_KEYS or drops_duplicates(plan) or fails_on_known_keys(plan)
    )
    if compared or plan.config.prepped or (plan.operation in _ADDING and _has_writes(plan)):
        return
    ours = {s.partition for s in stats if s.num_inserts}
    theirs = {
        s.partition for c in rivals if c.operation not in SCHEMA_NEUTRAL for s in c.stats if s.num_inserts
    }
    if ours and theirs and (plan.index in GLOBAL_KINDS or ours & theirs):
        yield (
            "another write added records while this one was running: a key that both added stands in the table twice; "
            f"with {CONFLICT_DETECTION}={BY_KEYS} in all writers it is a conflict, and a retry of an upsert updates it"
        )


def _has_writes(plan: Plan) -> bool:
    """Whether the table may have had rows when the write was planned."""
    return plan.snapshot is not None and bool(plan.snapshot.timeline.completed_writes())


def _may_have_moved(plan: Plan) -> bool:
    """Whether a key may stand in another partition."""
    spec = plan.key_spec
    outside = set(spec.partition_fields) - set(spec.key_fields)
    return plan.index not in GLOBAL_KINDS and bool(outside)


def refuse_known_keys(
    engine: Engine[Any, Any],
    frame: Any,
    plan: Plan,
    files: Mapping[str, Sequence[BaseFile]],
    task: LookupTask,
) -> Any:
    """Refuse tagged rows with known keys.

    Raises:
        DuplicateKeyError: how many rows have a key that is, by partition.
    """
    tagged = engine.tag(frame, plan.storage, files, task if plan.bucket is None else task.looking())
    known: dict[str, int] = {}
    for row in engine.profile(tagged):
        if row.file_id:
            known[row.partition] = known.get(row.partition, 0) + row.rows
    if known:
        most = sorted(known, key=lambda p: -known[p])
        shown = ", ".join(f"{known[p]:,} in {p or 'the table'}" for p in most[:3])
        raise DuplicateKeyError(
            f"{sum(known.values()):,} rows have a key that is in the table already: {shown}"
            + (f" and {len(most) - 3} more partitions" if len(most) > 3 else ""),
            table=plan.storage.uri,
            remedy=f"use the operation upsert to update them, or set {DUP_POLICY}=drop to skip them.",
            rows=sum(known.values()),
            partitions=most,
        )
    return tagged


__all__ = ["about_duplicates", "added_beside", "first_time", "refuse_known_keys"]
