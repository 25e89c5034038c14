"""Commands of the table services: clean, archive, savepoint, restore, rollback.

--dry-run says what they would do.
"""

from __future__ import annotations

from typing import Annotated

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
    show_rows,
)

Pending = Annotated[bool, typer.Option("--pending", help="Only what is pending: plan nothing new.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="A hoodie.* option; may be repeated.", metavar="NAME=VALUE"),
]
Instant = Annotated[str, typer.Argument(help="The commit's instant time.", metavar="INSTANT")]
Moment = Annotated[
    str,
    typer.Argument(
        help="The commit's instant time, or a time such as '2024-03-05 10:00': the newest commit up to it.",
        metavar="INSTANT",
    ),
]

savepoints = typer.Typer(no_args_is_help=True, help="Commits that are kept.", rich_markup_mode=None)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `hudi` command."""
    app.command()(clean)
    app.command()(archive)
    app.command()(restore)
    app.command()(rollback)
    app.add_typer(savepoints, name="savepoint")


def clean(
    path: Path,
    instant: Annotated[
        str, typer.Option(help="A pending cleaning to finish, also of another program; no other one.")
    ] = "",
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Delete file versions that the policy does not retain (hoodie.cleaner.*)."""
    result = open_table(path, storage, option).clean(instant=instant, dry_run=dry_run)
    earliest = result.plan.earliest
    show_facts(
        {
            "instant": result.instant,
            "policy": result.plan.policy,
            "readable since": earliest.time if earliest is not None else "",
            "files planned": result.plan.count,
            "files deleted": result.deleted,
            "folders": list(result.plan.partitions),
            "finished first": list(result.finished),
            "warnings": list(result.warnings),
            "failed": sum(map(len, result.failed.values())),
        },
        output,
    )
    if result.failed:
        raise typer.Exit(1)


def archive(
    path: Path,
    dry_run: DryRun = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Move old instants into the archive (hoodie.keep.min.commits, hoodie.keep.max.commits)."""
    result = open_table(path, storage, option).archive(dry_run=dry_run)
    instants = result.plan.instants
    show_facts(
        {
            "instants": len(instants),
            "first": instants[0].time if instants else "",
            "last": instants[-1].time if instants else "",
            "file": result.file,
        },
        output,
    )


def restore(
    path: Path,
    instant: Moment,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Restore the table to a commit; later commits are undone permanently."""
    table = open_table(path, storage)

    def question() -> str:
        plan = table.restore(instant, dry_run=True)
        undone = ", ".join(plan.undone) or "none"
        return f"{len(plan.undone)} commits after {plan.to} are undone for good: {undone}."

    if not dry_run:
        confirm(question, yes)
    result = table.restore(instant, dry_run=dry_run)
    facts = {
        "to": result.to,
        "undone": list(result.undone),
        "instant": result.instant,
        "files deleted": result.deleted,
        "command blocks": result.blocks,
        "warnings": list(result.warnings),
    }
    show_facts(facts, output)


def rollback(
    path: Path,
    instant: Annotated[
        str | None,
        typer.Argument(
            help="The write to undo; without it all pending writes whose writers are dead.",
            metavar="INSTANT",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", "--dry-run", help="Print the plan and change nothing.")
    ] = False,
    yes: Yes = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Roll back the newest write, or an inflight compaction, which returns to its plan."""
    table = open_table(path, storage, option)

    def question() -> str:
        planned = table.rollback(instant, dry_run=True)
        return f"{', '.join(planned.undone) or 'nothing'} is undone for good, with {planned.files} files."

    if not plan and instant is not None:  # what is pending nobody has seen
        confirm(question, yes)
    result = table.rollback(instant, dry_run=plan)
    requests = [r for p in result.plans for r in p.requests]
    facts: dict[str, object] = {
        "undone": list(result.undone),
        "instants": [*result.instants, *result.finished],
        "files": result.files,
        "command blocks": result.blocks,
    }
    if plan:
        facts["delete"] = [f for r in requests for f in r.files]
        facts["take back blocks of"] = [f for r in requests for f in r.log_blocks]
    show_facts(facts, output)


@savepoints.command("create")
def create(
    path: Path,
    instant: Annotated[
        str | None,
        typer.Argument(
            help="The commit, or a time, for the newest commit up to it; the newest of all if not given."
        ),
    ] = None,
    user: Annotated[str, typer.Option("--user")] = "",
    comment: Annotated[str, typer.Option("--comment")] = "",
    storage: StorageOptions = None,
) -> None:
    """Create a savepoint and print its instant; cleaning and archival spare the commit."""
    print(open_table(path, storage).savepoint(instant, user=user, comment=comment))


@savepoints.command("delete")
def delete(path: Path, instant: Instant, yes: Yes = False, storage: StorageOptions = None) -> None:
    """Delete a savepoint."""
    confirm(lambda: f"The next cleaning may delete what the savepoint {instant} keeps.", yes)
    open_table(path, storage).delete_savepoint(instant)


@savepoints.command("list")
def list_all(path: Path, output: Output = Format.table, storage: StorageOptions = None) -> None:
    """List savepoints, oldest first."""
    found = open_table(path, storage).savepoints
    if output is not Format.table:
        import pyarrow as pa

        show_rows(pa.table({"instant": pa.array(found, pa.string())}), output)
        return
    for instant in found:
        print(instant)
