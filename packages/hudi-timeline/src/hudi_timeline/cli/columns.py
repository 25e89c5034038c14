"""Commands that change the columns of a table: add, rename, drop, widen, move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hudi_timeline.cli.output import (
    Format,
    Output,
    Path,
    StorageOptions,
    Yes,
    confirm,
    open_table,
    show_facts,
)
from hudi_timeline.cli.services import DryRun

if TYPE_CHECKING:
    from hudi_timeline.services.alter import AlterBuilder

_EXAMPLES = """\b
Examples:
  hudi alter add trips note string --after city
  hudi alter rename trips fare price
  hudi alter widen trips n long
  hudi alter move trips price --first
  hudi alter drop trips note --dry-run
"""

alter = typer.Typer(
    no_args_is_help=True,
    help="Change columns; files stay as they are.",
    rich_markup_mode=None,
    epilog=_EXAMPLES,
)

Column = Annotated[str, typer.Argument(help="Of a record inside: by dot path.", metavar="COLUMN")]
Kind = Annotated[
    str, typer.Argument(help="int, long, double, string, date, decimal(10,2) ...", metavar="TYPE")
]
After = Annotated[str | None, typer.Option("--after", help="The column before it.", metavar="COLUMN")]
First = Annotated[bool, typer.Option("--first", help="Before all others.")]


def _do(builder: AlterBuilder, dry_run: bool, output: Format) -> None:
    result = builder.execute(dry_run=dry_run)
    show_facts(
        {
            "instant": result.instant,
            "changes": list(result.changes),
            "columns": result.schema.names,
            "executed": not result.dry_run,
            "warnings": list(result.warnings),
        },
        output,
    )


@alter.command("add")
def add(
    path: Path,
    column: Column,
    kind: Kind,
    after: After = None,
    first: First = False,
    dry_run: DryRun = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Add a column, null in the rows that are there."""
    _do(open_table(path, storage).alter().add(column, kind, after=after, first=first), dry_run, output)


@alter.command("rename")
def rename(
    path: Path,
    column: Column,
    name: Annotated[str, typer.Argument(help="Without its path.", metavar="NAME")],
    dry_run: DryRun = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Give a column another name; its values stay."""
    _do(open_table(path, storage).alter().rename(column, name), dry_run, output)


@alter.command("drop")
def drop(
    path: Path,
    column: Column,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Take a column out of the table."""
    table = open_table(path, storage)
    if not dry_run:
        confirm(lambda: f"The column {column} is gone from {path}, and with it its values.", yes)
    _do(table.alter().drop(column), dry_run, output)


@alter.command("widen")
def widen(
    path: Path,
    column: Column,
    kind: Kind,
    dry_run: DryRun = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Give a column a type that holds all its values."""
    _do(open_table(path, storage).alter().widen(column, kind), dry_run, output)


@alter.command("move")
def move(
    path: Path,
    column: Column,
    after: After = None,
    first: First = False,
    dry_run: DryRun = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Put a column first, or behind another one."""
    _do(open_table(path, storage).alter().move(column, after=after, first=first), dry_run, output)
