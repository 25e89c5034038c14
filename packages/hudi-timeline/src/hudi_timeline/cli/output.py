"""Output of rows and facts as text, JSON or CSV."""

from __future__ import annotations

import codecs
import csv
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from io import TextIOWrapper
from math import isfinite
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_format.errors import OptionError
from hudi_format.inspect.report import printable, printable_json

if TYPE_CHECKING:  # the command starts without them
    import pyarrow as pa
    from rich.console import Console

    from hudi_format.storage.protocol import Storage
    from hudi_timeline.table import HudiTable


class Format(StrEnum):
    table = "table"
    json = "json"
    ndjson = "ndjson"
    csv = "csv"


def rows_of(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values with {} for empty maps, which Arrow gives as it does empty lists."""
    import pyarrow as pa

    from hudi_format.arrow.arrays import contains, python_rows

    nested = [f for f in rows.schema if contains(f.type, pa.types.is_map)]
    found = python_rows(rows)
    for row in found:
        row.update({f.name: _with_maps(row[f.name], f.type) for f in nested})
    return found


def _with_maps(value: Any, kind: pa.DataType) -> Any:
    """A value of the type, with {} for each map in it that is empty."""
    import pyarrow as pa

    if value is None or not kind.num_fields:
        return value
    if pa.types.is_map(kind):
        return [(k, _with_maps(v, kind.item_type)) for k, v in value] or {}
    if pa.types.is_struct(kind):
        return {**value, **{f.name: _with_maps(value[f.name], f.type) for f in kind}}
    if isinstance(value, list):
        return [_with_maps(v, kind.field(0).type) for v in value]
    return value


def plain(value: object) -> object:
    """A value in the form that JSON serialises; NaN and infinities are strings, as in Spark."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        # Arrow gives maps as lists of pairs.
        if value and all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value):
            return {str(k): plain(v) for k, v in value}
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON text of a value, in ASCII where standard output is not in UTF-8."""
    return printable_json(_json(value, ascii_only=not _encoding().startswith("utf"), indent=indent))


def file_json(value: object) -> str:
    """JSON text of a value for a file in UTF-8, which needs no escapes of letters."""
    return _json(value, ascii_only=False)


def _json(value: object, *, ascii_only: bool, indent: int | None = None) -> str:
    return json.dumps(plain(value), ensure_ascii=ascii_only, allow_nan=False, indent=indent)


def _encoding() -> str:
    return codecs.lookup(sys.stdout.encoding or "utf-8").name


def _lose_nothing() -> None:
    """Let standard output show as an escape what its encoding does not have, as standard error does."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def text(value: object) -> str:
    """Cell text of a value; null is empty."""
    if isinstance(value, float):
        return str(value)
    value = plain(value)
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)


def open_closed_streams() -> None:
    """Put the null device where a standard stream is closed, as by `>&-` in a shell.

    Otherwise errors would be printed among the rows, and a table's file take the number of the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


def tell(said: object, *, error: bool = False) -> None:
    """Print text for people: whatever a table put into it, a terminal shows as it is."""
    if not error:
        _lose_nothing()
    print("\n".join(map(printable, str(said).split("\n"))), file=sys.stderr if error else sys.stdout)


def show_rows(rows: pa.Table, format: Format, *, title: str = "") -> None:
    """Print the rows of a table."""
    if format is Format.ndjson:
        for row in rows_of(rows):
            print(json_text(row))
    elif format is Format.json:
        print(json_text(rows_of(rows), indent=2))
    elif format is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.column_names)
        writer.writerows([text(v) for v in r.values()] for r in rows_of(rows))
    else:
        import pyarrow as pa
        from rich.table import Table

        console = _console()
        drawn = Table(title=printable(title) or None, title_justify="left", title_style="bold")
        for field in rows.schema:
            number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            drawn.add_column(printable(field.name), justify="right" if number else "left", overflow="fold")
        for row in rows_of(rows):
            drawn.add_row(*(_cell(v) for v in row.values()))
        console.print(drawn)


def show_texts(columns: Sequence[str], rows: list[dict[str, Any]], format: Format) -> None:
    """Print rows of which these columns, all of them texts, are shown."""
    import pyarrow as pa

    show_rows(pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in columns])), format)


def show_facts(facts: dict[str, object], format: Format) -> None:
    """Print names and values: one object in JSON, two columns otherwise.

    Names are in snake_case where they are not for people.
    """
    if format is not Format.table:
        facts = {name.replace(" ", "_"): value for name, value in facts.items()}
    if format is Format.ndjson:
        print(json_text(facts))
    elif format is Format.json:
        print(json_text(facts, indent=2))
    elif format is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["name", "value"])
        writer.writerows([name, text(value)] for name, value in facts.items())
    else:
        from rich.table import Table

        drawn = Table(show_header=False, box=None, pad_edge=False)
        drawn.add_column(style="bold", no_wrap=True)
        drawn.add_column(overflow="fold")
        for name, value in facts.items():
            drawn.add_row(printable(name), _cell(value))
        _console().print(drawn)


def _cell(value: object) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return printable(", ".join(value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(text(value))


def _console() -> Console:
    from rich.console import Console

    _lose_nothing()
    # Into a pipe there is no width to fit into: lines stay whole.
    return Console(
        markup=False, highlight=False, width=None if sys.stdout.isatty() else 10_000, soft_wrap=False
    )


def confirm(question: Callable[[], str], yes: bool) -> None:
    """Ask at a terminal before what cannot be undone; a script has made up its mind.

    Raises:
        typer.Abort: the answer is no.
    """
    if not yes and sys.stdin.isatty():
        typer.confirm(f"{question()} Go on?", abort=True, err=True)


# Arguments that the commands share, and what they mean.

Path = Annotated[str, typer.Argument(help="The table's path or URL.", metavar="PATH", show_default=False)]
Here = Annotated[
    str,
    typer.Argument(
        help="The table's path or URL; HUDI_TABLE, or the current folder, if not given.",
        metavar="PATH",
        envvar="HUDI_TABLE",
        show_default=False,
        show_envvar=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="An instant or a time.")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="A filter, as in SQL.")]
Meta = Annotated[bool, typer.Option("--meta", help="Also the _hoodie_* columns.")]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=0, max=sys.maxsize, help="Rows to print at most; 0 for all.")
]
Output = Annotated[
    Format, typer.Option("--output", "-o", help="How to print; JSON has NaN and infinities as strings.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", "-c", help="Column names, with commas; may be repeated.", metavar="NAMES"),
]
STORAGE_HELP = "A storage option, e.g. endpoint_url=http://localhost:9000; may be repeated."
StorageOptions = Annotated[
    list[str] | None, typer.Option("--storage-option", help=STORAGE_HELP, metavar="NAME=VALUE")
]


def open_table(path: str, storage: list[str] | None, options: list[str] | None = None) -> HudiTable:
    """The table of a command; `storage` and `options` are NAME=VALUE."""
    from hudi_timeline.table import HudiTable

    return HudiTable.open(named_path(path), storage_options=pairs(storage), options=pairs(options))


def table_storage(path: str, storage: list[str] | None) -> Storage:
    """Storage of a table that may be too damaged to open."""
    from hudi_format.storage.open import open_storage

    return open_storage(named_path(path), pairs(storage))


def named_path(path: str, of: str = "table") -> str:
    """The path as it was given; an empty one, as of an unset variable, is no folder.

    Raises:
        OptionError: it is empty.
    """
    if not path.strip():
        raise OptionError(
            f"the {of}'s path is empty",
            remedy="give a path or URL; the variable that was to hold it may not be set. The current folder is '.'.",
        )
    return path


def check_new(file: FilePath, *, force: bool) -> None:
    """Refuse to replace a file, unless it is forced.

    Raises:
        OptionError: there is one.
    """
    if file.exists() and not force:
        raise OptionError(
            f"there is a file {file} already", remedy="give another name, or --force to replace it."
        )


def column_names(given: list[str] | None) -> list[str] | None:
    """Names given with commas, in one option or several; None where the option was not given.

    Raises:
        OptionError: a name is empty.
    """
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    if not all(names):
        raise OptionError(
            f"a column's name is empty in {','.join(given)!r}",
            remedy="give names with commas between them; without the option all columns are meant.",
        )
    return names


def pairs(given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE")
        found[name] = value
    return found
