"""Commands of compaction: status; schedule, run, unschedule, repair, validate, show; log.

--dry-run says what they would do.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_format.errors import InstantNotFoundError
from hudi_timeline.cli.output import Format, Output, Path, StorageOptions, open_table, show_facts, show_rows
from hudi_timeline.cli.services import DryRun, Options, Pending

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_format.storage.protocol import Storage
    from hudi_timeline.timeline.action_metadata import CompactionOperation
    from hudi_timeline.timeline.instant import Instant

compactions = typer.Typer(
    no_args_is_help=True, help="Compaction of merge-on-read tables.", rich_markup_mode=None
)
BOTH_MODES = "schedule_and_execute"
Plan = Annotated[str, typer.Argument(help="The plan's instant time.", metavar="INSTANT")]
PlanToExecute = Annotated[
    str | None,
    typer.Argument(
        help="The plan to execute; without it all pending ones, and one that is made now.",
        metavar="INSTANT",
        show_default=False,
    ),
]


def _whole(metric: float) -> int | None:
    """Metric of a plan, which may be of a stranger, as a number of bytes; None where it is none."""
    return int(metric) if 0 <= metric < 1 << 63 else None


def _groups(operations: Iterable[CompactionOperation]) -> list[str]:
    """File groups as paths."""
    return [f"{o.partition or '.'}/{o.file_id}" for o in operations]


def _rows(operations: dict[str, tuple[CompactionOperation, ...]]) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        [
            ("instant", pa.string()), ("partition", pa.string()), ("file_id", pa.string()),
            ("base_file", pa.string()), ("log_files", pa.int64()), ("log_bytes", pa.int64()),
        ]
    )  # fmt: skip
    rows = [
        {
            "instant": instant,
            "partition": o.partition,
            "file_id": o.file_id,
            "base_file": o.data_file or None,
            "log_files": len(o.log_files),
            "log_bytes": _whole(o.metrics.get("TOTAL_LOG_FILES_SIZE", 0.0)),
        }
        for instant, of in operations.items()
        for o in of
    ]
    return pa.Table.from_pylist(rows, schema)


@compactions.command("schedule")
def schedule(
    path: Path,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only where the trigger (hoodie.compact.inline.*) fires.")
    ] = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Plan a compaction (hoodie.compaction.*); another call or process executes it."""
    table = open_table(path, storage, option)
    result = table.compact(mode="schedule", only_if_due=if_due, dry_run=dry_run)
    facts = {
        "instant": result.scheduled,
        "slices": len(result.plan.operations),
        "skipped": result.skipped,
        "planned": _groups(result.plan.operations),
    }
    show_facts(facts, output)


@compactions.command("run")
def run(
    path: Path,
    instant: PlanToExecute = None,
    pending: Pending = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Execute pending compactions, then plan one and execute it."""
    table = open_table(path, storage, option)
    mode = "execute" if pending or instant is not None else BOTH_MODES
    result = table.compact(mode=mode, instant=instant, dry_run=dry_run)
    planned, skipped = list(result.plan.operations), result.skipped
    if dry_run and mode != "execute":  # what is pending is executed first
        waiting = table.compact(mode="execute", dry_run=True).plan.operations
        planned, skipped = [*waiting, *planned], "" if waiting else skipped
    stats = [s for of in result.write_stats.values() for s in of]
    facts = {
        "executed": list(result.executed),
        "files": len(stats),
        "rows": sum(s.num_writes for s in stats),
        "bytes": sum(s.file_size_in_bytes for s in stats),
        "planned": _groups(planned),
        "skipped": skipped,
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)


@compactions.command("log")
def log(
    path: Path,
    instant: PlanToExecute = None,
    schedule_only: Annotated[
        bool, typer.Option("--schedule-only", help="Only plan; another call or program executes it.")
    ] = False,
    pending: Pending = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Merge the log blocks of slices that have many into one each.

    How many is hoodie.log.compaction.blocks.threshold.
    """
    if schedule_only and (pending or instant is not None):
        raise typer.BadParameter("--schedule-only plans; --pending and INSTANT say what to execute")
    mode = "schedule" if schedule_only else "execute" if pending or instant is not None else BOTH_MODES
    result = open_table(path, storage, option).log_compact(mode=mode, instant=instant, dry_run=dry_run)
    stats = [s for of in result.write_stats.values() for s in of]
    facts = {
        "scheduled": result.scheduled,
        "executed": list(result.executed),
        "log files": len(stats),
        "records": sum(s.num_writes for s in stats),
        "deletes": sum(s.num_deletes for s in stats),
        "bytes": sum(s.file_size_in_bytes for s in stats),
        "planned": _groups(result.plan.operations),
        "skipped": result.skipped,
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)


@compactions.command("unschedule")
def unschedule(
    path: Path,
    instant: Plan,
    file_id: Annotated[str | None, typer.Option("--file-id", help="Only this file group.")] = None,
    partition: Annotated[str | None, typer.Option("--partition", help="Where the file group is.")] = None,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Withdraw a plan, but for file groups that were written to since it was made."""
    if file_id is not None and partition is None:
        partition = ""
    if partition is not None and file_id is None:
        raise typer.BadParameter("a file group is named by --file-id, and --partition says where it is")
    table = open_table(path, storage, option)
    result = table.unschedule_compaction(instant, partition=partition, file_id=file_id, dry_run=dry_run)
    facts: dict[str, object] = {
        "instant": result.instant,
        "withdrawn": _groups(result.withdrawn),
        "kept": _groups(result.kept),
        "plan": "removed" if result.gone else "narrowed",
    }
    show_facts(facts, output)


@compactions.command("repair")
def repair(
    path: Path,
    instant: Plan,
    accept_missing: Annotated[
        bool,
        typer.Option(
            "--accept-missing", help="Files that only the plan names, and that are gone, are not needed."
        ),
    ] = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Plan file groups of a plan anew that does not name the files that they have."""
    table = open_table(path, storage, option)
    result = table.repair_compaction(instant, accept_missing=accept_missing, dry_run=dry_run)
    facts: dict[str, object] = {
        "instant": result.instant,
        "kept": _groups(result.kept),
        "planned anew": _groups(result.changed),
        "left out": list(result.left_out),
        "plan": "removed" if result.gone else "repaired" if result.rewritten else "unchanged",
    }
    show_facts(facts, output)


@compactions.command("status")
def status(
    path: Path, option: Options = None, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """Show what waits for compaction, and how far read-optimized queries are behind."""
    found = open_table(path, storage, option).compaction_status()
    facts: dict[str, object] = {
        "slices": found.slices,
        "log files": found.log_files,
        "log bytes": found.log_bytes,
        "oldest instant": found.oldest,
        "newest instant": found.newest,
        "lag seconds": round(found.lag_seconds, 3) if isfinite(found.lag_seconds) else None,
        "delta commits": found.due.delta_commits,
        "due": found.due.is_due,
        "pending": list(found.pending),
    }
    show_facts(facts, output)


@compactions.command("validate")
def validate(
    path: Path, instant: Plan, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """Check whether each file group of a plan can be compacted; exit code 1 where one cannot."""
    import pyarrow as pa

    checks = open_table(path, storage).validate_compaction(instant)
    rows = _rows({instant: tuple(c.operation for c in checks)})
    found = rows.append_column("error", pa.array([c.error or None for c in checks], pa.string()))
    show_rows(found, output)
    if not all(c.valid for c in checks):
        raise typer.Exit(1)


@compactions.command("show")
def show(
    path: Path,
    instant: Annotated[
        str | None, typer.Argument(help="One plan; all pending ones if not given.", metavar="INSTANT")
    ] = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """List the file groups of pending plans, or of one plan."""
    from hudi_timeline.timeline.instant import COMPACTION, REQUESTED

    table = open_table(path, storage)
    wanted = {i.time for i in table.timeline.pending(COMPACTION)} if instant is None else {instant}
    plans = {
        file.time: _operations(table.storage, file)
        for file in table.timeline.files
        if (file.action, file.state) == (COMPACTION, REQUESTED) and file.time in wanted
    }
    if instant is not None and not plans:
        raise InstantNotFoundError(
            f"the active timeline has no compaction plan {instant}",
            table=table.uri,
            instant=instant,
            remedy="`hudi compact show PATH` lists the pending ones.",
        )
    show_rows(_rows(plans), output)


def _operations(storage: Storage, file: Instant) -> tuple[CompactionOperation, ...]:
    from hudi_timeline.timeline.action_metadata import CompactionPlan, read_action

    plan = read_action(storage, file)
    return plan.operations if isinstance(plan, CompactionPlan) else ()
