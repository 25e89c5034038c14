"""Commands about record keys: duplicates, their resolution, history."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from hudi_timeline.cli.output import (
    Format,
    Limit,
    Output,
    Path,
    StorageOptions,
    open_table,
    show_facts,
    show_rows,
    tell,
)
from hudi_timeline.cli.services import DryRun, Options
from hudi_timeline.cli.verify import repairs
from hudi_timeline.options.service_options import DedupeType

Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", help="A partition's path below the table; may be repeated.", metavar="PATH"),
]
Keys = Annotated[list[str], typer.Argument(help="Record keys, as text.", metavar="KEY...")]
Across = Annotated[
    bool, typer.Option("--across-partitions", help="A key is to be there once in the whole table.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `hudi` command."""
    app.command()(duplicates)
    app.command()(deduplicate)
    app.command("key-history")(key_history)
    app.command()(forget)


def duplicates(
    path: Path,
    partition: Partitions = None,
    across_partitions: Across = False,
    limit: Limit = 0,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """List rows whose key stands more than once, with files and writes; exit code 1 if any."""
    rows = open_table(path, storage, option).duplicates(
        partitions=partition, across_partitions=across_partitions
    )
    show_rows(rows.slice(0, limit) if limit else rows, output)
    if rows.num_rows:
        raise typer.Exit(1)


def deduplicate(
    path: Path,
    partition: Partitions = None,
    keep: Annotated[
        DedupeType, typer.Option("--keep", help="Which row of a key stays; merge: as the table merges them.")
    ] = DedupeType.MERGE,
    across_partitions: Across = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="List the rows, and what would become of each; change nothing.")
    ] = False,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Leave one row of each key that stands more than once, in one commit."""
    result = open_table(path, storage, option).deduplicate(
        partitions=partition, keep=keep, across_partitions=across_partitions, dry_run=dry_run or plan
    )
    if plan:
        show_rows(result.plan, output)
        return
    facts: dict[str, object] = {
        "keys": result.keys,
        "rows": result.rows,
        "files": result.files,
        "instant": result.instant,
    }
    show_facts(facts, output)


def key_history(
    path: Path,
    keys: Keys,
    partition: Partitions = None,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Show each commit that touched a key, with the row before and after it."""
    found = open_table(path, storage, option).key_history(keys, partitions=partition)
    show_rows(found.changes, output)
    told = "no commit" if found.complete_from is None else found.complete_from
    tell(f"complete from {told} on", error=True)


def forget(
    path: Path,
    keys: Keys,
    execute: Annotated[
        bool,
        typer.Option("--execute", help="Run the plan, and look again: delete, compact, clean, savepoints."),
    ] = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """List every file that holds the keys, and what erases them; exit code 1 if any does."""
    from hudi_timeline.keys.erasure import erase

    table = open_table(path, storage, option)
    look = partial(table.erasure_report, keys)
    report = erase(table, look, lambda s: tell(f"{s}: {s.why}", error=True)) if execute else look()
    show_rows(report.traces, output)
    for step in report.plan:
        tell(f"next: {step}: {step.why}", error=True)
    for file, what in report.by_hand.items():
        tell(f"{file}: {what}", error=True)
    if not report.erased:
        raise typer.Exit(1)
    tell(f"none of {report.files} files holds the keys", error=True)


@repairs.command("deduplicate")
def repair_deduplicate(
    path: Path,
    partition: Partitions = None,
    kind: Annotated[
        DedupeType, typer.Option("--dedupe-type", help="Which of the rows with one key stays.")
    ] = DedupeType.INSERT,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Deduplicate as hudi-cli does: `hudi deduplicate` that keeps the oldest row by default."""
    deduplicate(path, partition, kind, dry_run=dry_run, option=option, output=output, storage=storage)
