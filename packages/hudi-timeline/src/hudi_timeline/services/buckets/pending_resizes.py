"""Resizes of rings in two calls: a clustering is scheduled by one, executed by another.

Either may be of Apache Hudi.

An execution that fails takes the plan back with it, unless others have written to its new buckets; one whose process
dies leaves it, and the next call executes it from the start.  Writers of this project go on meanwhile, but to the
buckets that it splits or merges.
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_format.errors import ConcurrentWriterError, UnsupportedError
from hudi_format.model import WriteStat
from hudi_index.bucket import FEATURE
from hudi_timeline import feature_gate
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.bucket_groups import table_index
from hudi_timeline.file_system_view.hashing_rings import load_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.service_config import ResizeConfig
from hudi_timeline.services.buckets.clustering_plans import as_request, pending_clusterings, read_resize
from hudi_timeline.services.buckets.resize_plan import ResizePlan
from hudi_timeline.services.buckets.resize_tasks import make_resize_tasks
from hudi_timeline.services.compaction.plan_execution import BY_NAME
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.action_metadata import render_action
from hudi_timeline.timeline.instant import REPLACE_COMMIT, REQUESTED, Instant
from hudi_timeline.timeline.instant_generator import request_instant
from hudi_timeline.transaction.rollback_guard import refuse_alive, refuse_written_to
from hudi_timeline.transaction.transaction import Transaction

CLUSTER = "CLUSTER"

Complete = Callable[[Transaction, ResizePlan], tuple[WriteStat, ...]]
"""Writes the files of a plan, and publishes its commit."""


def check_resize(context: ServiceContext, snapshot: TableSnapshot) -> None:
    """Refuse a table that a resize would damage; errors as of the feature gate."""
    feature_gate.check_write(
        snapshot.storage,
        snapshot.config,
        snapshot.timeline,
        context.options,
        CLUSTER,
        read=snapshot.commits.get,
    )
    context.check(snapshot, also=("schema on read",))


def schedule_resize(
    context: ServiceContext,
    config: ResizeConfig,
    planned: Callable[[TableSnapshot], ResizePlan],
    *,
    dry_run: bool = False,
) -> tuple[str, ResizePlan]:
    """Put a clustering on the timeline; returns its instant, "" for none, and its plan.

    Raises:
        UnsupportedError: the buckets are none of rings; or a write is pending, which goes by the rings of before.
    """
    if dry_run:
        snapshot = context.look()
        check_resize(context, snapshot)
        return "", _refuse_others(planned(snapshot), context.storage.uri)
    storage = context.storage
    with context.locked(keep_metadata=True) as snapshot:
        check_resize(context, snapshot)
        plan = _refuse_others(planned(snapshot), storage.uri)
        if not plan:
            return "", plan
        pending = snapshot.timeline.pending_writes()
        if pending:
            raise UnsupportedError(
                f"the write {pending[0].time} is not completed, and does not know of the new buckets",
                table=storage.uri, instant=pending[0].time, feature=FEATURE,
                remedy="schedule the resize afterwards, or roll the write back if its writer is dead.",
            )  # fmt: skip
        make_resize_tasks(snapshot, "0", plan.moves, plan.index("0"), config.files)
        before = load_rings(snapshot, plan.rings)
        content = render_action(as_request(plan, before, storage.uri))
        context.check_lock()
        instant = request_instant(storage, snapshot.timeline, context.table, REPLACE_COMMIT, content)
    return instant, plan


def _refuse_others(plan: ResizePlan, table: str) -> ResizePlan:
    if plan.engine != "CONSISTENT_HASHING":
        raise UnsupportedError(
            f"a resize of the engine {plan.engine} is not planned apart from its execution", table=table,
            remedy="leave the mode out: it is done in one call.", feature=FEATURE,
        )  # fmt: skip
    if len({m.partition for m in plan.moves}) < len(plan.rings):
        # Nodes without a file group, whose new ones no group of a clustering could name.
        raise UnsupportedError(
            "a partition's empty buckets alone are to be merged, which a clustering has no place for", table=table,
            remedy="leave the mode out: it is done in one call.", feature=FEATURE,
        )  # fmt: skip
    return plan


def look_into(context: ServiceContext) -> ResizePlan:
    """The pending resizes as one plan; errors as `read_resize`."""
    snapshot = context.look()
    index = table_index(snapshot)
    pending = pending_clusterings(snapshot.storage, snapshot.timeline)
    if pending:
        context.check(snapshot, also=BY_NAME)
    plans = [read_resize(snapshot, i) for i in pending]
    return ResizePlan(
        index,
        index,
        tuple(m for p in plans for m in p.moves),
        {partition: ring for p in plans for partition, ring in p.rings.items()},
        {partition: count for p in plans for partition, count in p.buckets.items()},
    )


def execute_pending(
    context: ServiceContext, config: ResizeConfig, complete: Complete
) -> dict[str, tuple[WriteStat, ...]]:
    """Execute all pending resizes, oldest first; returns the new files by instant.

    Raises:
        UnsupportedError: a clustering of another kind; the feature gate.
        ConcurrentWriterError: another process executes one, or took it back.
        CorruptFileError: a plan that contradicts the table.
    """
    snapshot = context.look()
    found = pending_clusterings(snapshot.storage, snapshot.timeline)
    return {i.time: _execute(context, i, config, complete) for i in found}


def _execute(
    context: ServiceContext, planned: Instant, config: ResizeConfig, complete: Complete
) -> tuple[WriteStat, ...]:
    storage, options = context.storage, context.options
    caller = RunningCall.here()
    with context.locked(also=BY_NAME) as snapshot:  # Apache Hudi plans them of such tables too
        pending = next(
            (i for i in pending_clusterings(storage, snapshot.timeline) if i.time == planned.time), None
        )
        if pending is None:
            raise ConcurrentWriterError(
                f"the clustering {planned.time} was executed, or taken back, by another process", table=storage.uri,
                instant=planned.time, remedy="look at the timeline.",
            )  # fmt: skip
        refuse_alive(storage, pending, options)
        plan = read_resize(snapshot, pending)
        make_resize_tasks(snapshot, pending.time, plan.moves, plan.index(pending.time), config.files)
        beat = context.heartbeat_at(pending.time, caller)
        transaction = Transaction(
            snapshot, pending.time, REPLACE_COMMIT, CLUSTER, options, context.lock, beat,
            Precedence(storage, options, caller=caller),
        )  # fmt: skip
    with transaction:
        transaction.when_undone(lambda: refuse_written_to(transaction.now(), pending))
        if pending.state == REQUESTED:
            transaction.inflight({})
        return complete(transaction, plan)
