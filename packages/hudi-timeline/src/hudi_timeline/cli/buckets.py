"""Commands of bucket indexes: show, resize.

--dry-run says what a resize would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hudi_timeline.cli.output import Format, Output, Path, StorageOptions, open_table, show_facts, show_rows
from hudi_timeline.cli.services import DryRun, Options, Pending

if TYPE_CHECKING:
    from hudi_timeline.services.buckets.resize_plan import BucketMove

buckets = typer.Typer(no_args_is_help=True, help="Buckets of a table's index.", rich_markup_mode=None)


@buckets.command("show")
def show(path: Path, output: Output = Format.table, storage: StorageOptions = None) -> None:
    """Show the file group and size of each bucket."""
    show_rows(open_table(path, storage).inspect.buckets(), output)


@buckets.command("resize")
def resize(
    path: Path,
    number: Annotated[
        int | None,
        typer.Argument(
            help="Buckets of each partition; without it full ones are split and nearly empty ones merged.",
            metavar="NUMBER",
            min=1,
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", help="Only this partition; may be repeated.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="EXTENDIBLE_HASHING: partitions may differ from here on, and Apache Hudi only reads.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Any NUMBER, also a smaller one: rows of several buckets are divided together.",
        ),
    ] = False,
    schedule_only: Annotated[
        bool,
        typer.Option("--schedule-only", help="Only plan, of rings; another call or program executes it."),
    ] = False,
    pending: Pending = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Split and merge buckets (hoodie.bucket.index.*)."""
    if schedule_only and pending:
        raise typer.BadParameter("--schedule-only plans; --pending executes")
    mode = "schedule" if schedule_only else "execute" if pending else "schedule_and_execute"
    table = open_table(path, storage, option)
    result = table.resize_buckets(
        number, partitions=partition, engine=engine, overwrite=overwrite, mode=mode, dry_run=dry_run
    )
    plan = result.plan
    facts = {
        "instant": result.instant,
        "executed": list(result.executed),
        "engine": plan.engine,
        "buckets": [f"{p or '.'}: {old} to {new}" for p, (old, new) in plan.buckets.items()],
        "planned": [_line(m) for m in plan.moves],
        "bytes read": plan.bytes,
        "files": len(result.write_stats),
        "rows": sum(s.num_writes for s in result.write_stats),
        "left out": list(plan.skipped),
        "warnings": [w for w in result.warnings if w not in plan.skipped],
    }
    show_facts(facts, output)


def _line(move: BucketMove) -> str:
    old, new = " ".join(move.file_ids), " ".join(move.targets.values())
    return f"{move.kind} {move.partition or '.'}: {old} into {new}"
