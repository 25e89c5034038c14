"""Commands `hudi verify` and `hudi repair`: finding and repairing damage."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import get_close_matches
from json import loads
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hudi_format.errors import CorruptFileError, NotAHudiTableError, UnsupportedError
from hudi_timeline.cli.output import (
    Format,
    Here,
    Output,
    Path,
    StorageOptions,
    json_text,
    open_table,
    pairs,
    show_rows,
    show_texts,
    table_storage,
    tell,
)
from hudi_timeline.cli.services import DryRun, Options

if TYPE_CHECKING:
    from hudi_format.storage.protocol import Storage
    from hudi_timeline.verify.check_keys import ScanOf
    from hudi_timeline.verify.findings import Finding

Json = Annotated[bool, typer.Option("--json", help="One JSON object: state, counts and findings.")]
Deep = Annotated[bool, typer.Option("--deep", help="Also read all data.")]

_COLUMNS = ("severity", "code", "path", "instant", "message", "remedy")


FINDINGS = "findings"
# Those of `hudi_timeline.verify.repairs`, by hudi-cli's names.
TABLE_REPAIR_NAMES = {
    "addpartitionmeta": "Create .hoodie_partition_metadata in folders of committed files that lack it.",
    "corrupted-clean-files": "Delete pending cleans whose plan is empty or unreadable.",
    "migrate-partition-meta": "Move partition metadata from text to Parquet files.",
}


class WithFindings(TyperGroup):
    """Commands `hudi repair NAME PATH` (one repair) and `hudi repair PATH` (all findings)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            near = get_close_matches(args[0], self.commands, n=1)
            if near and len(args) > 1 and not args[1].startswith("-"):  # no path: another word follows it
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
            args = [FINDINGS, *args]
        return super().parse_args(ctx, args)


repairs = typer.Typer(
    cls=WithFindings,
    no_args_is_help=True,
    help="Put a table right: `hudi repair PATH` what `hudi verify` finds, or one of these.",
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `hudi` command."""
    app.command()(verify)
    repairs.command(FINDINGS, hidden=True)(repair)
    for name, summary in TABLE_REPAIR_NAMES.items():
        repairs.command(name, help=summary)(_command(name))
    app.add_typer(repairs, name="repair")


def _command(name: str) -> Callable[..., None]:
    def command(
        path: Path, dry_run: DryRun = False, output: Output = Format.table, storage: StorageOptions = None
    ) -> None:
        import pyarrow as pa

        from hudi_timeline.services.table_service import ServiceContext
        from hudi_timeline.verify.repair import repair_by_name

        context = ServiceContext(table_storage(path, storage))
        steps = repair_by_name(context, name, dry_run=dry_run)
        rows = [{"path": s.path, "action": s.note, "done": not dry_run} for s in steps if s.note]
        schema = pa.schema([("path", pa.string()), ("action", pa.string()), ("done", pa.bool_())])
        show_rows(pa.Table.from_pylist(rows, schema), output)

    return command


def verify(
    path: Here = ".",
    deep: Deep = False,
    json: Json = False,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Files to look at at once.")] = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Find everything wrong with the table; exit code 1 if a reader or writer is affected."""
    from hudi_timeline.verify.findings import Severity, to_json
    from hudi_timeline.verify.verify import verify as verify_table

    there, scan_of = _open(path, storage)
    found = verify_table(there, deep=deep, workers=workers, scan_of=scan_of)
    if json or output is Format.json:
        print(json_text(loads(to_json(found, uri=there.uri)), indent=2))
    else:
        _show(found, output)
    if any(f.severity is not Severity.INFO for f in found):
        raise typer.Exit(1)


def repair(
    path: Path,
    execute: Annotated[bool, typer.Option("--execute/--plan", help="Do it, or print the plan.")] = False,
    deep: Deep = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A finding's code or path; may be repeated.")
    ] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Delete, rather than keep, what is taken away.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object: repairs, steps, what is left.")
    ] = False,
    output: Output = Format.table,
    option: Options = None,
    storage: StorageOptions = None,
) -> None:
    """Repair what `hudi verify` finds, where it is safe; without --execute only print the plan."""
    from hudi_timeline.verify.findings import Severity, state_of
    from hudi_timeline.verify.repair import repair as repair_table

    if output in (Format.ndjson, Format.csv):
        raise typer.BadParameter("a plan has parts of several kinds: -o table or json")
    there, scan_of = _open(path, storage)
    result = repair_table(
        there,
        dry_run=not execute,
        deep=deep,
        only=only,
        keep=not discard,
        options=pairs(option),
        scan_of=scan_of,
    )
    if json or output is Format.json:
        plan = {
            "table": there.uri,
            "executed": execute,
            **loads(result.plan.to_json()),
            "folder": result.folder,
        }
        left = None if result.left is None else [f.as_dict() for f in result.left]
        print(json_text({**plan, "left": left}, indent=2))
    else:
        tell(result.plan)
        if result.folder:
            tell(f"kept in {result.folder}" if not discard else f"plan in {result.folder}")
        if result.left is not None:
            print(f"{state_of(result.left)}: {len(result.left)} findings are left")
    if any(f.severity is Severity.ERROR for f in result.left or ()):
        raise typer.Exit(1)


def _open(path: str, storage: list[str] | None) -> tuple[Storage, ScanOf | None]:
    """Storage of the table, and its scans; None for a table that cannot be opened."""
    try:
        table = open_table(path, storage)
    except (CorruptFileError, UnsupportedError):
        return table_storage(path, storage), None
    except NotAHudiTableError:
        there = table_storage(path, storage)
        if not there.list(".hoodie"):
            raise
        return there, None
    return table.storage, table.read


def _show(found: list[Finding], output: Format) -> None:
    from hudi_timeline.verify.findings import state_of

    if output is Format.ndjson:
        for f in found:
            print(json_text(f.as_dict()))
    elif found or output is not Format.table:
        show_texts(_COLUMNS, [{n: str(getattr(f, n)) for n in _COLUMNS} for f in found], output)
    print(f"{state_of(found)}: {len(found)} findings" if found else "sound", file=sys.stderr)
