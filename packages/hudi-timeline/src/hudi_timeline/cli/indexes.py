"""Commands of indexes: of the metadata table schedule, run, drop; of one's own rebuild.

--dry-run says what they would do.
"""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_timeline.cli.output import Format, Output, Path, StorageOptions, open_table, show_facts
from hudi_timeline.cli.services import DryRun, Options, Pending

indexes = typer.Typer(
    no_args_is_help=True, help="Indexes of the metadata table, and your own.", rich_markup_mode=None
)
Partitions = Annotated[
    list[str],
    typer.Argument(
        help="files, column_stats, bloom_filters, record_index.", metavar="INDEX...", show_default=False
    ),
]


@indexes.command("schedule")
def schedule(
    path: Path,
    partitions: Partitions,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Plan a build of indexes; another call or process executes it."""
    result = open_table(path, storage, option).build_index(partitions, mode="schedule", dry_run=dry_run)
    facts: dict[str, object] = {
        "instant": result.scheduled,
        "planned": list(result.planned),
        "built": list(result.built),
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)


@indexes.command("run")
def run(
    path: Path,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(
            help="files, column_stats, bloom_filters, record_index; none: what is pending.",
            metavar="[INDEX...]",
            show_default=False,
        ),
    ] = None,
    pending: Pending = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Build indexes while writers go on: execute pending plans, then what is left."""
    mode = "execute" if pending or not partitions else "schedule_and_execute"
    result = open_table(path, storage, option).build_index(partitions or (), mode=mode, dry_run=dry_run)
    facts: dict[str, object] = {
        "executed": list(result.executed),
        "planned": list(result.planned),
        "built": list(result.built),
        "refused": [f"{name}: {why}" for name, why in (result.refused or {}).items()],
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)
    if result.refused:
        raise typer.Exit(1)


@indexes.command("drop")
def drop(
    path: Path,
    partitions: Partitions,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Drop indexes, and pending builds of them; "files" drops the metadata table."""
    result = open_table(path, storage, option).drop_index(partitions, dry_run=dry_run)
    facts: dict[str, object] = {
        "dropped": list(result.dropped),
        "withdrawn": list(result.withdrawn),
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)


@indexes.command("rebuild")
def rebuild(
    path: Path,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Make an index of your own anew: --option hoodie.index.class=... and its arguments name it."""
    show_facts({"file_groups": open_table(path, storage, option).rebuild_index()}, output)
