"""Command `hudi`: inspects and maintains tables from a shell.

Exit codes: 0 done; 1 the table or the request is at fault (one line on standard error, with the error's
code); 2 the command line is at fault; 70 the command itself is; 130 interrupted.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_format.errors import HudiError, OptionError, StorageError
from hudi_format.inspect.report import printable
from hudi_timeline import __version__
from hudi_timeline.cli import conversions, data, record_keys, services, verify
from hudi_timeline.cli.buckets import buckets
from hudi_timeline.cli.capsule import capsule
from hudi_timeline.cli.columns import alter
from hudi_timeline.cli.command_group import CommandGroup, made_on_demand
from hudi_timeline.cli.compactions import compactions
from hudi_timeline.cli.doctor import doctor
from hudi_timeline.cli.importing import import_
from hudi_timeline.cli.indexes import indexes
from hudi_timeline.cli.locks import locks
from hudi_timeline.cli.output import (
    AsOf,
    Columns,
    Format,
    Here,
    Limit,
    Meta,
    Output,
    Path,
    StorageOptions,
    Where,
    column_names,
    open_closed_streams,
    open_table,
    show_facts,
    show_rows,
    show_texts,
    tell,
)

if TYPE_CHECKING:
    import pyarrow as pa

_EXAMPLES = """\b
Examples:
  hudi show trips                            what the table is
  hudi history trips --follow                its commits, and those to come
  hudi head trips -w "city = 'oslo'"         some rows
  hudi sql trips "select count(*) from t"    any query
  hudi export trips trips.parquet            its rows as a file
  hudi diff trips 2024-03-05 2024-03-06      which records changed
  hudi verify trips                          what is wrong with it
  hudi doctor trips                          what is wrong with this machine
"""

app = typer.Typer(
    name="hudi", help="Inspect and maintain Apache Hudi tables, without a JVM.", no_args_is_help=True,
    cls=CommandGroup, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None, epilog=_EXAMPLES,
)  # fmt: skip

FAULT = 70  # as sysexits.h has it for a program's own
TRACEBACK = "HUDI_TRACEBACK"
INTERRUPTED = 130  # as shells have it for what SIGINT ended
_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes of an argument, as Python has them


Wide = Annotated[bool, typer.Option("--wide", help="All columns; those of JSON and CSV.")]

# Of a commit what fits into 80 columns, under shorter names.
_SHORT = {
    "instant": "instant", "operation": "operation", "rows_inserted": "inserted", "rows_updated": "updated",
    "rows_deleted": "deleted", "bytes_written": "bytes",
}  # fmt: skip


def _show_commits(rows: pa.Table, output: Format, wide: bool) -> None:
    if output is Format.table and not wide:
        from hudi_format.arrow.arrays import texts

        pending = rows.column("state").to_pylist()
        names = [o or s.lower() for o, s in zip(rows.column("operation").to_pylist(), pending, strict=True)]
        rows = rows.set_column(rows.schema.get_field_index("operation"), "operation", texts(names))
        show_rows(rows.select(list(_SHORT)).rename_columns(list(_SHORT.values())), output)
    else:
        show_rows(rows if output in (Format.json, Format.ndjson) else rows.drop_columns(["extra"]), output)


def _head(rows: pa.Table, limit: int, *, newest_first: bool = False) -> pa.Table:
    from hudi_format.arrow.arrays import integers

    if newest_first:
        rows = rows.take(integers(range(rows.num_rows - 1, -1, -1)))
    return rows.slice(0, limit) if limit else rows


@app.command()
def show(path: Here = ".", output: Output = Format.table, storage: StorageOptions = None) -> None:
    """Show the table: name, type, version, keys, newest commit, size."""
    table = open_table(path, storage)
    config = table.config
    commits = table.inspect.history().select(["instant", "operation"])
    partitions = table.inspect.partitions()
    pending = [str(i) for i in table.timeline.instants if not i.completed]
    facts: dict[str, object] = {
        "name": config.name,
        "path": table.uri,
        "type": config.table_type,
        "version": config.version,
        "record key": list(config.record_key_fields),
        "partitioned by": list(config.partition_fields),
        "ordering field": config.ordering_field or "",
        "columns": len(table.schema),
        "partitions": partitions.num_rows,
        "files": sum(partitions.column("files").to_pylist()),
        "bytes": sum(partitions.column("bytes").to_pylist()),
        "active commits": commits.num_rows,
        "newest commit": " ".join(str(c[0]) for c in commits.columns) if commits.num_rows else "",
        "pending": pending,
        "metadata table": list(config.metadata_partitions),
    }
    show_facts(facts, output)


@app.command()
def schema(path: Here = ".", output: Output = Format.table, storage: StorageOptions = None) -> None:
    """Show the table's columns and types."""
    import pyarrow as pa

    from hudi_format.arrow.arrays import flags, texts

    config_and_schema = open_table(path, storage)
    config, columns = config_and_schema.config, config_and_schema.schema
    roles = dict.fromkeys(config.partition_fields, "partition")
    roles.update(dict.fromkeys(config.record_key_fields, "key"))
    if config.ordering_field:
        roles.setdefault(config.ordering_field, "ordering")
    rows = pa.table(
        {
            "column": texts(columns.names),
            "type": texts([str(f.type) for f in columns]),
            "nullable": flags([f.nullable for f in columns]),
            "role": texts([roles.get(n) for n in columns.names]),
        }
    )
    show_rows(rows, output)


@app.command()
def timeline(
    path: Here = ".",
    output: Output = Format.table,
    limit: Limit = 0,
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Only what is not completed.")] = False,
    rollbacks: Annotated[
        bool, typer.Option("--rollbacks", help="Only rollbacks and restores, with what they undid.")
    ] = False,
    storage: StorageOptions = None,
) -> None:
    """List the actions on the table, newest first."""
    inspect = open_table(path, storage).inspect
    rows = inspect.rollbacks() if rollbacks else inspect.timeline()
    if incomplete:
        import pyarrow.compute as pc

        from hudi_timeline.timeline.instant import COMPLETED

        rows = rows.filter(pc.not_equal(rows.column("state"), COMPLETED))
    show_rows(_head(rows, limit, newest_first=True), output)


@app.command()
def commits(
    path: Here = ".", output: Output = Format.table, limit: Limit = 0, wide: Wide = False,
    storage: StorageOptions = None,
) -> None:  # fmt: skip
    """List commits with their statistics, newest first."""
    rows = _head(open_table(path, storage).inspect.commits(), limit, newest_first=True)
    _show_commits(rows, output, wide)


@app.command()
def history(
    path: Here = ".", output: Output = Format.table, limit: Limit = 0, wide: Wide = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for further commits and print them, until Ctrl-C.")
    ] = False,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between looks, with --follow.")] = 2.0,
    storage: StorageOptions = None,
) -> None:  # fmt: skip
    """List completed commits, newest first; with --follow those to come too, a line each."""
    if not follow:
        _show_commits(open_table(path, storage).history(limit or None), output, wide)
        return
    import pyarrow as pa

    seen: set[str] = set()
    if output not in (Format.table, Format.ndjson):
        raise typer.BadParameter("--follow prints lines: -o table or ndjson")
    first = True
    while True:
        known = open_table(path, storage).history()
        rows = known.to_pylist()
        new = [r for r in rows[: limit or 10 if first else None][::-1] if r["instant"] not in seen]
        if first or new:
            _show_commits(pa.Table.from_pylist(new, known.schema), output, wide)
            sys.stdout.flush()
        seen.update(r["instant"] for r in rows)
        first = False
        sleep(every)


@app.command()
def count(
    path: Here = ".",
    output: Output = Format.table,
    where: Where = None,
    as_of: AsOf = None,
    storage: StorageOptions = None,
) -> None:
    """Count the rows of the table."""
    rows = open_table(path, storage).read(filter=where, as_of=as_of).count()
    if output is Format.table:
        print(rows)
    else:
        show_facts({"rows": rows}, output)


@app.command()
def partitions(
    path: Here = ".", output: Output = Format.table, limit: Limit = 0, storage: StorageOptions = None
) -> None:
    """List partitions with files and bytes."""
    show_rows(_head(open_table(path, storage).inspect.partitions(), limit), output)


@app.command()
def files(
    path: Here = ".",
    output: Output = Format.table,
    limit: Limit = 0,
    every: Annotated[
        bool, typer.Option("--all", help="Also files of older versions and open commits.")
    ] = False,
    storage: StorageOptions = None,
) -> None:
    """List the base files of the newest snapshot."""
    inspect = open_table(path, storage).inspect
    show_rows(_head(inspect.file_slices() if every else inspect.files(), limit), output)


@app.command()
def head(
    path: Here = ".",
    output: Output = Format.table,
    limit: Limit = 10,
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    meta: Meta = False,
    storage: StorageOptions = None,
) -> None:
    """Show some rows of the table."""
    names = column_names(columns)
    scan = open_table(path, storage).read(names, where, as_of=as_of, meta_columns=meta)
    show_rows(_first_rows(scan.to_batches(), limit), output)


def _first_rows(reader: pa.RecordBatchReader, limit: int) -> pa.Table:
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    rows = 0
    with reader:
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            if limit and rows >= limit:
                break
    table = pa.Table.from_batches(batches, reader.schema)
    return table.slice(0, limit) if limit else table


@app.command("check-merge")
def check_merge(
    path: Path,
    merge: Annotated[
        str | None,
        typer.Option("--merge", help="module:name of a function, or a JSON object of expressions."),
    ] = None,
    payload: Annotated[str | None, typer.Option("--payload", help="A payload class.")] = None,
    made_up: Annotated[
        bool, typer.Option("--made-up", help="On random records, not the table's rows.")
    ] = False,
    deletes: Annotated[bool, typer.Option("--deletes", help="With deletes among the records.")] = False,
    cases: Annotated[int, typer.Option("--cases", min=1, help="How many groups of records to try.")] = 2000,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Check that rows do not depend on the order of writes (merge laws); exit code 1 if they do."""
    if merge and payload:
        raise typer.BadParameter("--merge and --payload exclude each other")
    report = open_table(path, storage).check_merge(
        merge, payload=payload, real=not made_up, deletes=deletes, cases=cases
    )
    if output is Format.table:
        tell(report)
    else:
        import pyarrow as pa

        rows = [{"law": f.law, "holds": f.holds, "cases": f.cases, "example": "" if f.holds else str(f)}
                for f in report.findings]  # fmt: skip
        show_rows(pa.Table.from_pylist(rows), output)
    if report.broken:
        raise typer.Exit(1)


data.add_to(app)
app.command()(doctor)
services.add_to(app)
app.add_typer(compactions, name="compact")
app.add_typer(buckets, name="buckets")
app.add_typer(indexes, name="index")
app.add_typer(locks, name="lock")
app.add_typer(alter, name="alter")
conversions.add_to(app)
verify.add_to(app)
app.command()(capsule)
app.command("import")(import_)
record_keys.add_to(app)
config_app = typer.Typer(no_args_is_help=True, help="About options.", rich_markup_mode=None)
app.add_typer(config_app, name="config")


@config_app.command()
def explain(
    options: Annotated[list[str], typer.Argument(help="Option names, or NAME=VALUE.", metavar="OPTION...")],
    output: Output = Format.table,
) -> None:
    """Explain options: default, and whether they are implemented, ignored or unsupported."""
    from hudi_timeline.options import describe

    facts = []
    for option in options:
        name, equals, value = option.partition("=")
        facts.append(asdict(describe(name, value if equals else None)))
    _show_options(facts, output)


@config_app.command("list")
def list_options(
    every: Annotated[
        bool, typer.Option("--all", help="Also those that are accepted without effect, or refused.")
    ] = False,
    output: Output = Format.table,
) -> None:
    """List the options with a meaning here."""
    from hudi_timeline.options.option_facts import MEANING, matching

    _show_options([asdict(fact) for fact in matching(()) if every or fact.taken_as == MEANING], output)


@config_app.command()
def search(
    words: Annotated[
        list[str],
        typer.Argument(help="What name or description have; several: all of them.", metavar="WORD..."),
    ],
    output: Output = Format.table,
) -> None:
    """Search options by name and description; those with a meaning here, then all others."""
    from hudi_timeline.options.option_facts import matching

    _show_options([asdict(fact) for fact in matching(words)], output)


def _show_options(facts: list[dict[str, Any]], output: Format) -> None:
    show_texts(("key", "value", "default", "taken_as", "note"), facts, output)


def _version(value: bool) -> None:
    if value:
        print(f"hudi-timeline {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    allow_function: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-function",
            help="A Python function that the table may have run: module:function, or package.*; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Inspect and maintain Apache Hudi tables, without a JVM."""
    if allow_function:
        from hudi_timeline.options.allowed_functions import allow_functions

        context.with_resource(allow_functions(*allow_function))


def _interruptible(invoke: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Command runner with one line and the usual exit code at Ctrl-C, for any typer version."""

    def run(context: Any) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as e:
            tell(" ".join(("interrupted.", *getattr(e, "__notes__", ()))), error=True)
            sys.exit(INTERRUPTED)

    return run


@cache
def _command() -> Callable[[], Any]:
    command = made_on_demand(app)
    command.invoke = _interruptible(command.invoke)
    return command  # type: ignore[no-any-return]


def main() -> None:
    """Entry point.

    Errors of this project are one line on standard error and exit code 1.
    """
    open_closed_streams()
    _tell_warnings()
    try:
        _command()()
    except HudiError as e:
        tell(" ".join(str(e).split()), error=True)
        sys.exit(1)
    except BrokenPipeError:  # `hudi files | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as e:
        tell(line_of(e), error=True)
        sys.exit(1)
    except Exception as e:
        if isinstance(e, UnicodeEncodeError) and e.encoding != "utf-8":
            lost = ascii(e.object[e.start : e.end][:20])
            remedy = "set PYTHONUTF8=1, or print as json, which is ASCII then."
            tell(
                OptionError(f"standard output is in {e.encoding}, which has no {lost}", remedy=remedy),
                error=True,
            )
            sys.exit(1)
        if isinstance(e, UnicodeEncodeError) and _UNDECODED.search("".join(sys.argv)):
            remedy = "set PYTHONUTF8=1, or a locale in UTF-8 such as LC_ALL=C.UTF-8, and write it in UTF-8."
            tell(
                OptionError("an argument is no text in the encoding of this shell", remedy=remedy), error=True
            )
            sys.exit(1)
        if os.environ.get(TRACEBACK):
            raise
        reason = " ".join(f"{type(e).__name__}: {e}".split())[:500]
        tell(
            f"hudi failed, which is a fault of its own: {reason} Remedy: run it again with {TRACEBACK}=1 and report "
            "what it prints.",
            error=True,
        )
        sys.exit(FAULT)


class _Lines(logging.Formatter):
    """Log messages as lines that a terminal shows as they are."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(printable, super().format(record).split("\n")))


def _tell_warnings() -> None:
    """Let warnings be one line each, without the place in the source that tells a user nothing."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        tell(f"warning: {' '.join(str(message).split())}", error=True)

    warnings.showwarning = show
    if logging.lastResort:
        logging.lastResort.setFormatter(_Lines())


def line_of(error: OSError) -> str:
    """Line for an operating system error outside of tables, such as a capsule's target file."""
    reason = _named(error.strerror or str(error) or type(error).__name__)
    remedy = "correct the path, or grant this user access to it."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free space where it is to be written, then run it again."
    file = _named(str(error.filename or ""))
    return " ".join(str(StorageError(f"the system refused: {reason}", file=file, remedy=remedy)).split())


def _named(text: str) -> str:
    """A text with files' own names, not those under which they are written until they are complete."""
    return re.sub(r"(^|/|')\.([^/]+)\.\d+\.part\b", r"\1\2", text)
