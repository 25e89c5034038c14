"""Write operations from options to commit, on any engine.

    options -> checks -> frame -> transaction (instant) -> tag -> profile -> assign -> write -> commit

What can be refused is refused before the transaction begins, so that the table stays as it was.  What fails
after that is rolled back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow.compute as pc

from hudi_format.errors import (
    HudiError,
    MissingFileError,
    SchemaError,
    TableExistsError,
    WriteConflictError,
)
from hudi_format.keygen.partition_path import check_names, check_safe
from hudi_format.model import WriteStat
from hudi_format.schema.changes import SchemaChange
from hudi_format.storage.open import as_durable_as_asked
from hudi_format.storage.protocol import Storage
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata
from hudi_index.lookup import LookupCount
from hudi_timeline import table_config
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.display.progress import Phases, reporter
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import load_rings, with_rings
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot
from hudi_timeline.file_system_view.table_schema import keeping_defaults, written_text
from hudi_timeline.metadata_table.record_index import about_lookup
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.write_options import LOOKS_UP, REPLACING
from hudi_timeline.services import inline_services
from hudi_timeline.services.buckets.clustering_plans import refuse_planned_buckets
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline, completed_at
from hudi_timeline.timeline.instant import zone_of
from hudi_timeline.transaction import conflict_resolution, orphans, overwrite
from hudi_timeline.transaction.commit_callback import Callback, CommitNotice, callback_of, tell
from hudi_timeline.transaction.conflict_report import owners_named, writer_note
from hudi_timeline.transaction.conflict_strategies import FileGroup
from hudi_timeline.transaction.ring_files import NewRings, create_first_rings
from hudi_timeline.transaction.schema_rebase import dropped_on_purpose
from hudi_timeline.transaction.transaction import Transaction, begin_transaction
from hudi_timeline.transaction.write_basis import Basis, FirstBasis
from hudi_timeline.validation.checks import Checks
from hudi_timeline.validation.precommit import Validator
from hudi_timeline.writing.engine import Engine
from hudi_timeline.writing.latest_slices import LatestSlices, rows_of
from hudi_timeline.writing.non_blocking import is_blind, refuse_if_order_matters
from hudi_timeline.writing.planning.index_choice import about_left, in_commit, in_properties
from hudi_timeline.writing.planning.keys import about_path_values, about_unfound, advice
from hudi_timeline.writing.planning.new_table import begin_on
from hudi_timeline.writing.planning.write_plan import (
    APPEND,
    IGNORE,
    Plan,
    combines,
    drops_duplicates,
    fails_on_known_keys,
    lookup_task,
    prepare_task,
    write_action,
    write_context,
)
from hudi_timeline.writing.possible_duplicates import (
    ReadBack,
    about_duplicates,
    first_time,
    refuse_known_keys,
    with_way_back,
)
from hudi_timeline.writing.quarantine_writer import QuarantineWriter
from hudi_timeline.writing.replanning import Replanner, first_plan, recheck
from hudi_timeline.writing.reproducible import refuse_random_rings, seeded, without_durations
from hudi_timeline.writing.result import CommitResult
from hudi_timeline.writing.routing import (
    preview,
    profile_and_dropped,
    replaced_by,
    route,
)
from hudi_timeline.writing.row_conflicts import LookedUp, ReadRows, refuse_unknown
from hudi_timeline.writing.upsert_partitioner import profile_stats
from hudi_timeline.writing.workers.null_elements import about_null_elements
from hudi_timeline.writing.workers.tasks import WriteContext

log = logging.getLogger("hudi")


@dataclass
class _Run:
    """State of one write: plan, checks, quarantine, timings, progress.

    `plan` is another one from the beginning of the transaction on, where the table has changed by then.
    """

    plan: Plan
    again: Replanner
    mode: str
    phases: Phases
    checks: Checks
    aside: QuarantineWriter
    engine: Engine[Any, Any]
    callback: Callback | None
    replacement: overwrite.Replacement | None = None
    dry_run: bool = False
    lost: int = 0
    precedence: Precedence | None = None
    first: FirstBasis = field(default_factory=FirstBasis)
    counts: Mapping[str, int] = field(default_factory=dict)  # rows by partition
    looked: LookedUp | None = None

    def screened(self, data: Any) -> Any:
        """Rows without invalid ones."""
        return self.aside.screened(data, self.checks.rules)

    def switching(self, transaction: Transaction) -> AbstractContextManager[None]:
        """Scope of the commit, with the switch of an overwrite."""
        if self.replacement is None:
            return nullcontext()
        return self.replacement.switching(transaction.instant, lambda: transaction.committed)


def execute(
    engine: Engine[Any, Any],
    storage: Storage,
    data: Any,
    options: Mapping[str, str],
    *,
    mode: str = APPEND,
    opened: bool = False,
    validators: Sequence[Validator] = (),
    rules: Mapping[str, str | pc.Expression] | None = None,
    read_from: ReadRows | None = None,
    dry_run: bool = False,
    lost: int = 0,
    precedence: Precedence | None = None,
    first: FirstBasis | None = None,
) -> CommitResult:
    """Run one write; returns its result.

    Args:
        engine: evaluates `data` and runs the workers.
        data: what the engine takes; None only for `delete_partition` with partitions given.
        options: Apache Hudi's write options.
        mode: append, overwrite, ignore or errorifexists.  opened: as of `plan_write`.
        validators: functions that are asked before the commit, see `hudi_timeline.validation.precommit`.
        rules: conditions of rows by name, see `hudi_timeline.validation.row_rules`; those of the options count too.
        read_from: the rows of the table that `data` was made of: where it has changed when the write begins, or they
            have when it commits, it is a WriteConflictError with `details["read_again"]`.
        dry_run: write nothing; the result says what it would do.  Validators, which see written files, are not asked.
        lost: how many tries of this write have lost to others.
        precedence: that it has since before its rows were read.
        first: one for all tries of this write; it keeps what the first one has found.

    Raises:
        OptionError, SchemaError, UnsupportedError, RecordKeyError ...: before anything is written.
        ValidationError: a rule, function or query says no; the table is as it was.
        ConcurrentWriterError: another writer is at work, or changed the same file groups first.
        WriteFailedError and others: the write failed and was rolled back.
    """
    phases = Phases()
    with phases("plan"):
        config = parse_write_options(options)
        checks = Checks.of(config, validators, rules)
        storage = as_durable_as_asked(storage, config.transaction.durability)

        def understood(plan: Plan) -> None:
            refuse_if_order_matters(plan)
            refuse_random_rings(plan)
            checks.understood(engine, plan.schema, populate_meta_fields=not plan.virtual)

        plan = first_plan(engine, storage, data, config, mode, opened=opened)
        if plan is not None:
            aside = QuarantineWriter.of(plan, engine)
            understood(plan)
            refuse_unknown(plan)
            callback = callback_of(config.callback)
    if plan is None:
        return CommitResult("", "", config.operation, storage.uri)
    again = Replanner(engine, data, config, understood, read_from)
    run = _Run(plan, again, mode.lower(), phases, checks, aside, engine, callback, dry_run=dry_run, lost=lost,
               precedence=precedence, first=first or FirstBasis())  # fmt: skip
    run.first.kept(plan.basis)
    name = plan.storage.uri.rpartition("/")[2]
    with reporter(f"{plan.operation} {name}", engine.progress(config.progress)) as phases.shown:
        engine.on_progress = phases.shown.advance
        frame = None
        try:
            if data is not None:
                with phases("evaluate"):
                    data = run.screened(engine.fitted(data, plan.input_schema, exact=plan.exact))
            if _streams(engine, plan) and not dry_run:
                return _bulk_insert(engine, data, run)
            if data is not None:
                with phases("evaluate"):
                    frame = engine.prepare(data, replace(prepare_task(plan), read_back=ReadBack.of(plan)))
            return _keyed_write(engine, frame, run)
        except TableExistsError:
            if run.mode != IGNORE:
                raise
            return CommitResult("", "", config.operation, storage.uri)  # another writer was first
        except HudiError as e:
            with_way_back(e, plan).at(table=plan.storage.uri)
            raise
        finally:
            engine.release(frame)


def check(
    engine: Engine[Any, Any], storage: Storage, data: Any, options: Mapping[str, str], *, mode: str = APPEND,
    opened: bool = False,
) -> tuple[SchemaChange, ...]:  # fmt: skip
    """Raise the errors of `execute` that need no rows.

    Args:
        data: what the engine takes; only its schema is looked at.

    Returns:
        What the write would change in the table's schema.
    """
    config = parse_write_options(options)
    plan = first_plan(engine, storage, data, config, mode, opened=opened)
    if plan is None:
        return ()
    Checks.of(config).understood(engine, plan.schema, populate_meta_fields=not plan.virtual)
    callback_of(config.callback)
    try:
        engine.fitted(data, plan.input_schema, exact=plan.exact)
    except SchemaError as e:
        raise e.at(table=storage.uri) from None
    return plan.schema_changes


@contextmanager
def _transaction(run: _Run) -> Iterator[tuple[Transaction, TableConfig]]:
    """A transaction on the table, which is created first if new."""
    plan = run.plan
    action = write_action(plan)
    options = plan.config.transaction
    caller, old = RunningCall.here(), plan.replaced
    with overwrite.replacing(plan.storage, old, options, caller) if old else nullcontext() as new:
        run.replacement = new
        storage = plan.storage
        if new is not None:
            storage, options = new.storage, new.options
        begin = partial(
            begin_transaction, storage, action=action, options=options, caller=caller, lost=run.lost,
            operation=plan.operation_name.upper(), precedence=run.precedence,
            commits=None if plan.snapshot is None else plan.snapshot.commits)  # fmt: skip
        name = plan.properties.get(table_config.NAME, "")
        unmake = partial(orphans.remove_unborn, storage, options, table_name=name)
        begun, table, made = begin_on(plan.table, partial(_made, run, storage), begin, unmake)
        run.plan = plan = replace(plan, basis=Basis.of(table, Timeline())) if made else plan
        try:
            with begun as transaction, owners_named(transaction.now):
                _plan_again(run, transaction)
                run.aside.settle(transaction)
                try:
                    yield transaction, transaction.config
                except MissingFileError as e:
                    if not transaction.committed:
                        conflict_resolution.refuse_cleaned(e, transaction.snapshot, transaction.now)
                    raise
        except BaseException:
            # One that is to replace another goes with its room, or takes its place yet.
            if made and new is None:
                unmake()
            raise


def _plan_again(run: _Run, transaction: Transaction) -> None:
    """Plan again for the table of the transaction; errors as `Replanner`."""
    try:
        run.plan = run.aside.plan = run.again(run.plan, transaction)
    except HudiError as e:
        try:
            transaction.abort(e.message, without_trace=True)
        except (HudiError, OSError) as undo:
            e.add_note(f"The instant {transaction.instant} is left to the next write to roll back: {undo}")
        raise


def _made(run: _Run, storage: Storage) -> tuple[TableConfig, bool]:
    """The new table, and whether this write created it.

    Raises:
        TableExistsError: it was, and this one is only to write a table of its own.
    """
    try:
        p = run.plan.properties
        return table_config.create(storage, run.replacement.named(p) if run.replacement else p), True
    except TableExistsError:
        if run.mode != APPEND:
            raise
        return table_config.load(storage), False


def _finish(
    run: _Run,
    transaction: Transaction,
    table: TableConfig,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, Sequence[str]] | None = None,
    lookup: LookupCount | None = None,
    dropped_rows: int | None = None,
    rings: Mapping[str, HashingMetadata] | None = None,
) -> CommitResult:
    plan, phases = run.plan, run.phases
    stats = without_durations(stats) if plan.config.transaction.seed else stats
    gone = None if replaced is None else {p: tuple(ids) for p, ids in replaced.items()}
    schema = written_text(plan.schema, table.name, transaction.snapshot, plan.given_schema)
    schema = keeping_defaults(schema, transaction.snapshot)
    extra = {
        **plan.config.extra_metadata,
        **in_commit(plan.index_to_record, plan.bucket),
        **dropped_on_purpose(plan.schema_changes),
        **run.aside.extra(),
        **writer_note(plan.config.transaction, run.engine.name),
    }
    if run.checks.functions or run.checks.queries:
        with phases("validate"):
            metadata = transaction.metadata_of(stats, replaced=gone, schema_text=schema, extra=extra)
            run.checks.run(run.engine, transaction, table, metadata)
    if run.aside.rows:
        with phases("quarantine"):
            run.aside.store(transaction, table.name)
    beside: list[str] = []
    with phases("commit"), run.switching(transaction):
        metadata = transaction.commit(
            stats, replaced=gone, schema_text=schema, extra=extra, even_if_empty=run.aside.rows > 0,
            participants=(
                *in_properties(plan.index_to_record, table, asked_archive=plan.asked_archive, bucket=plan.bucket,
                               class_name=plan.config.index_class),
                *([NewRings(rings)] if rings else ()),
            ),
            recheck=recheck(plan, transaction, stats, run.counts, run.again.read_from, run.looked, beside,
                            run.first.basis),
        )  # fmt: skip
    # The index has them now, and a result may be kept for long.
    stats = [replace(s, new_keys=None) for s in stats]
    if not transaction.committed:  # empty, and hoodie.allow.empty.commit=false
        return _nothing(run, tuple(transaction.warnings))
    with phases("services"):
        after = inline_services.run(
            plan.storage, plan.config.services, plan.config.transaction, runner=run.engine.compact
        )
    completion = _completion(plan.storage, transaction.instant, table, after.timeline)
    message = CommitNotice(
        transaction.instant,
        completion,
        table.name,
        plan.storage.uri,
        transaction.action,
        tuple(stats),
        metadata.extra,
    )
    more = (*after.warnings, *tell(run.callback, message))
    result = CommitResult(
        instant=transaction.instant,
        action=transaction.action,
        operation=plan.operation_name,
        table=plan.storage.uri,
        write_stats=tuple(stats),
        replaced={p: tuple(ids) for p, ids in metadata.replaced.items() if ids},
        timings=dict(phases.seconds),
        warnings=(
            *run.engine.warnings,
            *plan.warnings,
            *about_null_elements(stats),
            *about_path_values(plan.key_spec, table, (s.partition for s in stats)),
            *about_unfound(plan.key_spec, table, plan.operation, stats, run.counts),
            *transaction.warnings,
            *more,
        ),
        duplicates=(*about_duplicates(plan, stats), *beside),
        ordering_field=plan.ordering_field,
        schema_changes=plan.schema_changes,
        lookup=lookup,
        quarantined=dict(run.aside.counts),
        quarantine=run.aside.uri,
        completion=completion,
        dropped_rows=dropped_rows if metadata.replaced == (gone or {}) else None,
    )
    for warning in result.warnings:
        log.warning("%s: %s", plan.storage.uri, warning)
    for text in result.duplicates:
        level = logging.WARNING if first_time(plan.storage.uri, text) else logging.DEBUG
        log.log(level, "%s: %s", result.table, text)
    log.info("%r", result)
    return result


def _completion(storage: Storage, instant: str, table: TableConfig, timeline: Timeline | None) -> str:
    """Completion time of the write as instant time; "" where the storage does not say."""
    try:
        timeline = timeline or load_snapshot(storage, table).timeline
    except (HudiError, OSError):
        log.warning("%s: the timeline cannot be read after the commit", storage.uri, exc_info=True)
        return ""
    found = timeline.find(instant)
    return "" if found is None else completed_at(found, zone_of(table.timezone))


def _nothing(run: _Run, warnings: tuple[str, ...] = ()) -> CommitResult:
    """Result of a write without rows and without empty commit."""
    plan, phases = run.plan, run.phases
    return CommitResult(
        "", "", plan.operation_name, plan.storage.uri,
        timings=dict(phases.seconds), warnings=warnings, ordering_field=plan.ordering_field,
    )  # fmt: skip


def _streams(engine: Engine[Any, Any], plan: Plan) -> bool:
    """Whether rows go to new files in one pass, before anything is known of them."""
    if plan.operation != "bulk_insert" or plan.config.combine_before_insert:
        return False
    # A bucket that has a file group takes its new records there.
    return plan.bucket is None or (
        engine.streams_buckets
        and not plan.bucket.by_partition
        and (plan.replaced is not None or not _has_groups(plan.snapshot))
    )


def _has_groups(snapshot: TableSnapshot | None) -> bool:
    return snapshot is not None and bool(newest_slices_of(snapshot))


def _bulk_insert(engine: Engine[Any, Any], data: Any, run: _Run) -> CommitResult:
    with _transaction(run) as (transaction, table):
        plan = run.plan
        if plan.bucket is not None and _has_groups(transaction.snapshot):
            raise WriteConflictError(
                "another writer made the table's first file groups since this bulk insert was planned",
                table=plan.storage.uri, instant=transaction.instant,
                remedy="run the write again; its records then go to the file groups of their buckets.",
            )  # fmt: skip
        context = write_context(plan, transaction, table)
        transaction.inflight(None)  # Apache Hudi's row writer leaves it empty too
        with run.phases("write"):
            stats = engine.write_stream(data, prepare_task(plan), context)
        return _finish(run, transaction, table, stats)


def _keyed_write(engine: Engine[Any, Any], frame: Any, run: _Run) -> CommitResult:
    plan, phases = run.plan, run.phases
    with phases("evaluate"):
        run.counts = counts = engine.partition_counts(frame) if frame is not None else {}
        for partition in counts:
            check_safe(partition)
            if plan.storage.is_local and plan.operation != "delete":
                check_names(partition)
    empty = not counts and not run.aside.rows
    if empty and not plan.config.transaction.allow_empty and plan.operation not in REPLACING:
        return _nothing(run)
    if plan.snapshot is not None and fails_on_known_keys(plan):
        with phases("tag"):
            task = lookup_task(plan)
            now = plan.snapshot.reloaded()
            known = LatestSlices.of(now, None if task.is_global else sorted(counts))
            task = known.look_up(plan, now, keys=True)
            refuse_known_keys(engine, frame, plan, known.candidates(task), task)
    before = None
    if plan.snapshot is not None and plan.config.prepped and plan.operation in LOOKS_UP:
        with phases("tag"):  # to refuse it before it begins
            now = plan.snapshot.reloaded()
            known = LatestSlices.of(now, sorted(counts))
            before = known.look_up(plan, now)
            engine.tag(frame, plan.storage, known.base_files, before)
    if run.dry_run:
        return preview(engine, frame, plan, counts, phases.seconds)
    with _transaction(run) as (transaction, table):
        plan = run.plan
        transaction.blind = is_blind(plan, run.again.read_from)
        context = write_context(plan, transaction, table)
        snapshot = transaction.snapshot
        if (
            combines(plan)
            and lookup_task(plan).is_global
            and plan.operation not in (*LOOKS_UP, "delete_partition")
        ):
            # One record per key in the whole input: an empty table holds none of them.
            frame = engine.tag(frame, plan.storage, {}, lookup_task(plan))
        given = frame
        if plan.operation in REPLACING:
            return _replace(engine, frame, counts, run, transaction, table, context, snapshot)
        fails = fails_on_known_keys(plan)
        looks_up = plan.operation in LOOKS_UP or drops_duplicates(plan) or fails or plan.bucket is not None
        with phases("list"):
            everywhere = looks_up and lookup_task(plan).is_global
            latest = LatestSlices.of(snapshot, None if everywhere else sorted(counts))
            task = seeded(latest.look_up(plan, snapshot, keys=fails, after=before), context)
            files = latest.candidates(task)
        if fails:
            with phases("tag"):  # again: another writer may have been there
                tagged = refuse_known_keys(engine, frame, plan, files, task)
                frame = tagged if plan.bucket is None else engine.tag(frame, plan.storage, files, task)
        elif looks_up:
            with phases("tag"):
                frame = engine.tag(frame, plan.storage, files, task)
        context = replace(context, bucket=task.bucket, logged=task.logged if task.needs_stored else None)
        # Of any two writers that overlap, the one that began later fills no small files: additions never collide.
        stats, dropped = _route_and_write(
            run, frame, latest, transaction, context, new_files_only=transaction.beside_others
        )
        if run.again.read_from is None:
            among = partial(engine.deleted_keys, given, task=lookup_task(plan))
            run.looked = LookedUp.of(plan, among, dropped)
        looked_up = engine.looked_up if looks_up else None
        transaction.warnings += (
            *advice(plan.storage, latest.base_files, looked_up),
            *about_lookup(task, looked_up),
            *about_left(plan.config, plan.key_spec, plan.operation, looked_up),
        )
        return _finish(run, transaction, table, stats, lookup=looked_up)


def _route_and_write(
    run: _Run,
    frame: Any,
    latest: LatestSlices,
    transaction: Transaction,
    context: WriteContext,
    *,
    new_files_only: bool = False,
) -> tuple[list[WriteStat], frozenset[FileGroup]]:
    """Write statistics, and file groups whose known keys were dropped."""
    engine, plan, phases = run.engine, run.plan, run.phases
    with phases("profile"):
        profile, dropped = profile_and_dropped(engine, frame, plan, latest, run.counts)
    table_type = transaction.config.table_type
    routing = route(
        profile,
        latest,
        plan,
        transaction.snapshot,
        table_type,
        new_files_only=new_files_only,
        seed=context.seed,
    )
    if isinstance(context.bucket, ConsistentBucketIndex):
        if plan.operation not in REPLACING:
            refuse_planned_buckets(transaction.snapshot, routing.located)
        used = sorted({b.partition for b in routing.buckets})
        create_first_rings(transaction.storage, context.bucket, used, instant=transaction.instant)
    transaction.inflight(profile_stats(profile, routing))
    with phases("write"):
        return list(engine.write(frame, context, routing)), dropped


def _replace(
    engine: Engine[Any, Any],
    frame: Any,
    counts: Mapping[str, int],
    run: _Run,
    transaction: Transaction,
    table: TableConfig,
    context: WriteContext,
    snapshot: TableSnapshot,
) -> CommitResult:
    plan, phases = run.plan, run.phases
    with phases("list"):
        replaced = replaced_by(plan, snapshot, counts)
    transaction.warnings += replaced.warnings
    stats: list[WriteStat] = []
    task = seeded(lookup_task(plan), context)
    rings: dict[str, HashingMetadata] = {}
    if isinstance(task.bucket, ConsistentBucketIndex):
        known = load_rings(
            snapshot, {*replaced.groups, *(counts if plan.operation != "delete_partition" else ())}
        )
        # A file group that is replaced is gone with all that comes into it.
        rings = {p: ring.renewed(transaction.instant) for p, ring in known.items()}
        task = replace(task, bucket=task.bucket.with_rings(rings))
        context = replace(context, bucket=task.bucket, logged=task.logged if task.needs_stored else None)
    elif task.bucket is not None:  # directories stay as they are
        task = replace(task, bucket=with_rings(task.bucket, snapshot, counts))
        context = replace(context, bucket=task.bucket)
    if plan.operation == "delete_partition":
        transaction.inflight({})
    else:
        if plan.bucket is not None:  # what is there is replaced: each bucket gets a new file group
            frame = engine.tag(frame, plan.storage, {}, task)
        stats, _ = _route_and_write(run, frame, LatestSlices(), transaction, context, new_files_only=True)
    dropped = None if stats else rows_of(replaced.slices, snapshot)
    return _finish(run, transaction, table, stats, replaced.groups, dropped_rows=dropped, rings=rings)
