"""Commands upgrade, downgrade, repair and commit: conversions and commit statistics.

The repairs have the names that hudi-cli gives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hudi_format.errors import MissingFileError
from hudi_timeline.cli.output import (
    Format,
    Output,
    Path,
    StorageOptions,
    Yes,
    confirm,
    open_table,
    show_facts,
    show_rows,
    show_texts,
    table_storage,
    tell,
)
from hudi_timeline.cli.services import DryRun, Instant
from hudi_timeline.cli.verify import repairs

if TYPE_CHECKING:
    from hudi_timeline.services.upgrade import UpgradeResult

commit = typer.Typer(no_args_is_help=True, help="What one commit did.", rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `hudi` command."""
    app.command()(upgrade)
    app.command()(downgrade)
    app.add_typer(commit, name="commit")


def upgrade(
    path: Path,
    to: Annotated[int, typer.Option("--to", help="The table version.")] = 6,
    dry_run: DryRun = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Upgrade a table from version 5 to 6; upgrade its readers first."""
    _show_version(open_table(path, storage).upgrade(to, dry_run=dry_run), output)


def downgrade(
    path: Path,
    to: Annotated[int, typer.Option("--to", help="The table version.")] = 5,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Downgrade a table from version 6 to 5, for readers of Apache Hudi before 0.14."""
    if not dry_run:
        confirm(lambda: f"{path} is made a table of version {to}.", yes)
    _show_version(open_table(path, storage).downgrade(to, dry_run=dry_run), output)


def _show_version(result: UpgradeResult, output: Format) -> None:
    show_facts(
        {
            "from": result.before,
            "to": result.after,
            "steps": list(result.steps),
            "executed": result.executed,
            "warnings": list(result.warnings),
        },
        output,
    )


@repairs.command("overwrite-hoodie-props")
def overwrite_hoodie_props(
    path: Path,
    new: Annotated[
        str, typer.Option("--new-props-file", help="A file with all entries that the table is to have.")
    ],
    dry_run: DryRun = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take also lost, unknown and contradicting entries.")
    ] = False,
    yes: Yes = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Replace hoodie.properties by a file; the checksum is computed.

    A new `hoodie.table.type` converts the table.
    """
    from hudi_timeline.services import replace_properties

    entries = replace_properties.parse_file(_content(new), new)
    if not dry_run:
        confirm(lambda: f"hoodie.properties of {path} is replaced; --dry-run shows how.", yes)
    change = open_table(path, storage).overwrite_properties(entries, dry_run=dry_run, force=force)
    if output is Format.table:
        tell(change or "nothing changes")
    else:
        rows = [{"key": k, "before": before, "after": after} for k, (before, after) in change.changes.items()]
        show_texts(("key", "before", "after"), rows, output)


def _content(file: str) -> bytes:
    from hudi_format.storage.open import folder_and_name, open_storage

    folder, name = folder_and_name(file)
    try:
        return open_storage(folder).read(name)
    except FileNotFoundError:
        raise MissingFileError("there is no such file", file=file, remedy="correct the path.") from None


@repairs.command("show-empty-commit-metadata")
def show_empty_commit_metadata(
    path: Path, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """List completed writes with an empty file, which make reads fail."""
    from hudi_timeline.verify.repairs import empty_commits

    found = empty_commits(table_storage(path, storage))
    rows = [{"instant": i.time, "action": i.action, "file": i.path} for i in found]
    show_texts(("instant", "action", "file"), rows, output)


@commit.command("showpartitions")
def showpartitions(
    path: Path, instant: Instant, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """Show files, rows and bytes written by a commit, per partition."""
    show_rows(open_table(path, storage).inspect.commit_partitions(instant), output)


@commit.command("showfiles")
def showfiles(
    path: Path, instant: Instant, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """Show the files written by a commit."""
    show_rows(open_table(path, storage).inspect.commit_files(instant), output)


@commit.command("record-size")
def record_size(
    path: Path,
    instant: Annotated[
        str | None, typer.Argument(help="The commit; the newest that wrote rows if not given.")
    ] = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Show the average record size: bytes written by rows written."""
    size = open_table(path, storage).inspect.average_record_size(instant)
    show_facts({"bytes per row": None if size is None else round(size, 1)}, output)
