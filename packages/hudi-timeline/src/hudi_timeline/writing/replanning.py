"""Replanning of a write whose table changed since its plan.

Between the plan and the instant other writers may commit: on Spark the rows are evaluated in between, for minutes.
The rows are not evaluated a second time.  A new plan counts where they can be written by it as they are: workers give
them null for columns that they lack, and wider types.  Where they cannot, the write is a conflict, before any file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_format.errors import (
    HudiError,
    MissingColumnError,
    MissingFileError,
    OptionError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.model import WriteStat
from hudi_format.schema.changes import DROPPED, schema_changes
from hudi_format.schema.evolution import reconcile
from hudi_format.storage.protocol import Storage
from hudi_index.consistent_hashing import HashingMetadata
from hudi_index.extendible_hashing import ExtendibleBucketIndex, HashingDirectory
from hudi_index.lookup import GLOBAL_KINDS, KINDS
from hudi_timeline.file_system_view.hashing_rings import rings_before
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.write_options import ADDS_ROWS, LOOKS_UP, WRITES_NO_ROWS
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import REPLACE_COMMIT
from hudi_timeline.transaction.conflict_resolution import Rivals
from hudi_timeline.transaction.ring_files import refuse_new_rings
from hudi_timeline.transaction.schema_history import ALTER_SCHEMA
from hudi_timeline.transaction.schema_rebase import Recheck
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import Basis, Changes
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.planning.bucket_index import refuse_second_groups
from hudi_timeline.writing.planning.index_choice import in_commit, index_to_record, recorded_index
from hudi_timeline.writing.planning.write_plan import (
    APPEND,
    Plan,
    plan_for,
    plan_write,
    prepare_task,
    write_action,
)
from hudi_timeline.writing.possible_duplicates import added_beside
from hudi_timeline.writing.row_conflicts import KeyCheck, LookedUp, ReadCheck, ReadRows, also_replaced

# How often a plan is made anew where others take away what it reads.
_LOOKS = 5


def first_plan(
    engine: Engine[Any, Any], storage: Storage, data: Any, config: WriteConfig, mode: str, *, opened: bool = False
) -> Plan | None:  # fmt: skip
    """Plan of a write before it begins; arguments and errors as of `plan_write`.

    Without the lock commits may be archived or rolled back while it reads them: it is made again then.
    """
    for _ in range(_LOOKS - 1):
        try:
            return plan_write(engine, storage, data, config, mode, opened=opened)
        except MissingFileError as e:
            if not _is_gone(storage, e):
                raise
    return plan_write(engine, storage, data, config, mode, opened=opened)


def _is_gone(storage: Storage, error: MissingFileError) -> bool:
    """Whether an instant that was listed has left the timeline."""
    return error.instant != "" and error.file.startswith(META_FOLDER) and storage.info(error.file) is None


@dataclass(frozen=True)
class Replanner:
    """Inputs of a plan besides the table.

    Attributes:
        data: its schema is looked at, nothing else; it may be used up.
        check: raises where a schema does not go with what else was asked of the write.
        read_from: the rows of the table that the rows themselves were made of; None where they come from elsewhere.
    """

    engine: Engine[Any, Any]
    data: Any
    config: WriteConfig
    check: Callable[[Plan], None]
    read_from: ReadRows | None = None

    def __call__(self, plan: Plan, transaction: Transaction) -> Plan:
        """The plan for the table at the write's instant; `plan` where it is unchanged.

        Raises:
            WriteConflictError: the rows that were evaluated cannot be written by a plan for that table.
        """
        snapshot = transaction.snapshot
        now = (snapshot.config, snapshot.timeline)
        read = self.read_from
        if (
            read is not None
            and (stale := read.basis.changes(*now))
            and not read.outlive(stale, snapshot, plan)
        ):
            raise stale.conflict(
                "its rows were read from the table before that",
                table=plan.storage.uri,
                instant=transaction.instant,
                read_again=True,
            )
        since = plan.basis.changes(*now)
        if not since:
            return plan

        for instant in since.written:
            if snapshot.commits.get(instant).operation == ALTER_SCHEMA:
                raise since.conflict(
                    f"columns were changed by {instant.time}, and the rows have those of before",
                    table=plan.storage.uri,
                    instant=transaction.instant,
                    read_again=True,
                )

        def refuse(why: str, remedy: str = "") -> HudiError:
            return since.conflict(why, table=plan.storage.uri, instant=transaction.instant, remedy=remedy)

        def planned(config: WriteConfig) -> Plan:
            new = plan_for(self.engine, plan.storage, self.data, config, snapshot.config, APPEND, snapshot)
            self.check(new)
            return new

        try:
            try:
                new = planned(self.config)
            except MissingColumnError as e:
                if not self._may_fill(plan, e):
                    raise
                new = planned(replace(self.config, set_null_for_missing_columns=True))
        except (SchemaError, OptionError, UnsupportedError) as e:
            raise refuse(f"what it writes no longer goes with the table: {e.message}", e.remedy) from None
        why = _cannot_follow(plan, new)
        if why:
            raise refuse(why)
        return replace(new, warnings=(*new.warnings, *_about(since, plan, new)))

    def _may_fill(self, plan: Plan, error: MissingColumnError) -> bool:
        """Whether missing columns, added by others, may be null: rows that are only added have no values."""
        missing = error.details.get("columns")
        return (
            plan.operation in ADDS_ROWS
            and not self.config.validate_schema
            and isinstance(missing, list)
            and not any(_has(plan.schema, name) for name in missing)
        )


def recheck(
    plan: Plan,
    transaction: Transaction,
    stats: Sequence[WriteStat] = (),
    counts: Mapping[str, int] | None = None,
    read_from: ReadRows | None = None,
    looked: LookedUp | None = None,
    beside: list[str] | None = None,
    first: Basis | None = None,
) -> Recheck:
    """Checks under the lock against concurrently completed commits; most is done before.

    Args:
        transaction: of the write.
        stats: of its files.
        counts: its rows by partition.
        read_from: as of `Replanner`.
        looked: the keys that it looked up.
        beside: takes the warnings about records that others have added meanwhile.
        first: the basis of the write's first try.
    """
    instant = transaction.instant
    keys = KeyCheck.of(plan, transaction, stats, counts, looked, first)
    transaction.judge = None if keys is None else keys.judge
    read = ReadCheck.of(read_from, plan, transaction)

    def look(metadata: CommitMetadata, rivals: Rivals) -> CommitMetadata:
        if read is not None:
            read.check(rivals.commits, rivals.changes)
        config = rivals.now.config
        if plan.bucket is not None:
            others = [(i.time, c.stats) for i, c in rivals.commits.items()]
            refuse_second_groups(plan.bucket, stats, others, table=plan.storage.uri, instant=instant)
            if plan.bucket.by_partition:
                replaced = (i.time for i in rivals.commits if i.action == REPLACE_COMMIT)
                kind = HashingDirectory if isinstance(plan.bucket, ExtendibleBucketIndex) else HashingMetadata
                groups = {(s.partition, s.file_id) for s in stats}
                before = rings_before(transaction.snapshot, plan.bucket)
                refuse_new_rings(plan.storage, replaced, groups, before, instant=instant, kind=kind)
        if keys is not None:
            keys.check(rivals.commits, rivals.changes, config)
        if beside is not None and read is None:
            beside.extend(added_beside(plan, stats, rivals.commits.values()))
        metadata = also_replaced(plan, instant, counts or {}, metadata, rivals)
        newest_first = [c.extra for c in rivals.commits.values()][::-1]
        recorded = recorded_index(config.properties, newest_first)
        within = recorded in KINDS and recorded not in GLOBAL_KINDS
        if recorded is None or recorded == plan.recorded_index or within:
            return metadata
        if plan.operation in LOOKS_UP and plan.index not in GLOBAL_KINDS:
            raise rivals.changes.conflict(
                f"the table's keys are unique over all partitions with {recorded} now, and this write looked for its "
                f"keys with {plan.index}",
                table=plan.storage.uri,
                instant=instant,
            )
        extra = in_commit(index_to_record(plan.index, recorded, plan.operation, new_table=False))
        return replace(metadata, extra={**metadata.extra, **extra})

    return look


def _cannot_follow(plan: Plan, new: Plan) -> str:
    """Reason why evaluated rows do not fit another plan; "" where they do."""
    if new.operation_name != plan.operation_name:
        return f"the operation would be {new.operation_name}, and was {plan.operation_name}"
    if write_action(new) != write_action(plan):  # the instant is taken
        return f"the write would be a {write_action(new)}, and was begun as a {write_action(plan)}"
    was, now = prepare_task(plan), prepare_task(new)
    if replace(now, schema=was.schema) != was:
        parts = [n for n in ("key_spec", "ordering_field") if getattr(was, n) != getattr(now, n)]
        what = {"key_spec": "keys and partition paths", "ordering_field": "order"}
        return f"the rows' {' and '.join(what[n] for n in parts) or 'preparation'} would be another"
    fields = (*now.key_spec.key_fields, *now.key_spec.partition_fields, *filter(None, (now.ordering_field,)))
    fixed = {f.partition(".")[0] for f in fields}
    for column in was.schema:
        index = now.schema.get_field_index(column.name)
        if index < 0:
            return f"column {column.name} was dropped"
        kind = now.schema.field(index).type
        if kind != column.type and (column.name in fixed or not _widens(column, now.schema.field(index))):
            return f"column {column.name} is {kind} now, and the rows have it as {column.type}"
    return ""


def _widens(column: pa.Field, wanted: pa.Field) -> bool:
    """Whether one column type widens to another without loss."""
    try:
        fits = reconcile(pa.schema([column]), pa.schema([wanted]), set_null_for_missing=True)
    except SchemaError:
        return False
    return bool(fits.field(0).type == wanted.type)


def _has(schema: pa.Schema, path: str) -> bool:
    """Whether a schema has a column or nested field."""
    return path in _members(pa.struct(list(schema)), "")


def _members(kind: pa.DataType, prefix: str) -> set[str]:
    """Paths of a column's nested fields."""
    if pa.types.is_struct(kind):
        children = [(f"{prefix}{f.name}", f.type) for f in kind]
    elif pa.types.is_map(kind):
        children = [(f"{prefix}value", kind.item_type)]
    elif pa.types.is_list(kind):
        children = [(f"{prefix}element", kind.value_type)]
    else:
        return set()
    return {p for p, _ in children}.union(*(_members(k, f"{p}.") for p, k in children))


def _about(since: Changes, plan: Plan, new: Plan) -> tuple[str, ...]:
    """Warnings about a replanned write."""
    changes = schema_changes(plan.input_schema, new.input_schema, new.input_schema)
    filled = [c.column for c in changes if c.kind == "filled"]
    dropped = [c.column for c in new.schema_changes if c.kind == DROPPED and not _has(plan.schema, c.column)]
    text = (
        f"{since} after this write had been planned: it was planned again, without evaluating its rows again"
    )
    if filled and new.operation not in WRITES_NO_ROWS:
        text += f"; they have null in {', '.join(filled)}"
    if dropped:
        text += f"; {', '.join(dropped)} left the schema"
    return (text,)
