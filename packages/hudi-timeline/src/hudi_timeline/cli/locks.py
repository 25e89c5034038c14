"""Commands of the table's lock: who holds it, and the end of one that is left over."""

from __future__ import annotations

from datetime import UTC, datetime
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
from hudi_timeline.cli.services import Options

if TYPE_CHECKING:
    from hudi_timeline.services.lock_doctor import LockReport

locks = typer.Typer(no_args_is_help=True, help="The table's lock.", rich_markup_mode=None)


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):  # a lock of somebody else's may say anything
        return str(milliseconds)


def _facts(report: LockReport) -> dict[str, object]:
    holding = report.holding
    return {
        "lock": report.lock,
        "held": holding is not None,
        "holder": "" if holding is None else holding.holder,
        "host": report.host,
        "alive": "" if holding is None else {True: "yes", False: "no", None: "unknown"}[report.alive],
        "why": report.why,
        "since": "" if holding is None else _time(holding.since_ms),
        "age in seconds": "" if report.age_ms is None else report.age_ms // 1000,
        "renewed": "" if holding is None else _time(holding.renewed_ms),
        "runs out": "" if holding is None else _time(holding.expires_ms),
        "waiting": 0 if holding is None else holding.waiting,
        "writes": list(report.instants),
        "other locks": [f"{lock} ({instant})" for lock, instant in report.others.items()],
    }


@locks.command("show")
def show(
    path: Path, option: Options = None, output: Output = Format.table, storage: StorageOptions = None
) -> None:
    """Show who holds the lock, since when, and commits made under another one."""
    show_facts(_facts(open_table(path, storage, option).lock_report()), output)


@locks.command("break")
def break_(
    path: Path,
    force: Annotated[
        bool, typer.Option("--force", help="Also where the holder is alive, or may be.")
    ] = False,
    yes: Yes = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """End a lock that is left over; its holder, if it lives, fails before it publishes."""
    table = open_table(path, storage, option)
    if force:
        confirm(lambda: "The lock's holder may be alive, and its write would fail.", yes)
    show_facts(_facts(table.break_lock(force=force)), output)
