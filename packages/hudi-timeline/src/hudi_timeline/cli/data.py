"""Commands about rows: sql, export, diff.

A file of `export` appears whole under its name, or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_format.errors import InvalidOptionError, LibraryError, OptionError, UnsupportedError
from hudi_timeline.cli.output import (
    AsOf,
    Columns,
    Format,
    Limit,
    Meta,
    Output,
    StorageOptions,
    Where,
    check_new,
    column_names,
    open_table,
    show_facts,
    show_rows,
)
from hudi_timeline.cli.output import Path as TablePath

if TYPE_CHECKING:
    import pyarrow as pa

VIEW = "t"
_ENDINGS = ".parquet, .csv, .ndjson, .jsonl or .arrow"


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `hudi` command."""
    app.command()(sql)
    app.command()(export)
    app.command()(diff)


def sql(
    path: TablePath,
    query: Annotated[str, typer.Argument(help="A query of DuckDB; the table is `t`.", metavar="QUERY")],
    as_of: AsOf = None,
    meta: Meta = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Ask the table, named t, in SQL (DuckDB; pip install "hudi-timeline[sql]").

    hudi sql trips "select city, count(*) from t group by city"
    """
    try:
        import duckdb
    except ImportError:
        raise LibraryError(
            "the command sql needs DuckDB, which is not installed",
            remedy='pip install "hudi-timeline[sql]"; `hudi head PATH --where ...` filters without it.',
        ) from None

    scan = open_table(path, storage).read(as_of=as_of, meta_columns=meta)
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            scan.to_duckdb(connection).create_view(VIEW)
            answer: Any = connection.sql(query)
            rows = None if answer is None else answer.to_arrow_table()
        except duckdb.Error as e:
            raise InvalidOptionError(
                f"DuckDB refuses the query: {' '.join(str(e).split())[:500]}",
                remedy=f"correct it; the table is named {VIEW}, its columns are listed by `hudi schema {path}`.",
            ) from None
    if rows is None:
        raise InvalidOptionError(
            "there is no statement", remedy="give a query: select ...; no statement changes the table."
        )
    show_rows(rows.rename_columns(_told_apart(rows.column_names)), output)


def _told_apart(names: list[str]) -> list[str]:
    """Column names of a query with a number where one stands before: rows have each name once."""
    found: dict[str, None] = {}
    for name in names:
        free = (name if n == 0 else f"{name}_{n}" for n in count())
        found[next(n for n in free if n not in found and (n == name or n not in names))] = None
    return list(found)


def export(
    path: TablePath,
    file: Annotated[FilePath, typer.Argument(help=f"The file to make: {_ENDINGS}.", metavar="FILE")],
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    meta: Meta = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Write rows of the table to one Parquet, CSV, NDJSON or Arrow file.

    hudi export trips oslo.csv --where "city = 'oslo'"
    """
    write = _WRITERS.get(file.suffix.lower())
    if write is None:
        raise typer.BadParameter(f"{file.name!r} does not end in {_ENDINGS}")
    check_new(file, force=force)
    names = column_names(columns)
    scan = open_table(path, storage).read(names, where, as_of=as_of, meta_columns=meta)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with scan.to_batches() as reader:
            rows = write(part, reader)
        os.replace(part, file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
    show_facts({"file": str(file), "rows": rows, "bytes": file.stat().st_size}, output)


def _counted(reader: pa.RecordBatchReader, take: Callable[[pa.RecordBatch], object]) -> int:
    rows = 0
    for batch in reader:
        take(batch)
        rows += batch.num_rows
    return rows


def _parquet(part: FilePath, reader: pa.RecordBatchReader) -> int:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(part, reader.schema, compression="zstd") as writer:
        return _counted(reader, writer.write_batch)


def _csv(part: FilePath, reader: pa.RecordBatchReader) -> int:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    nested = [f.name for f in reader.schema if pa.types.is_nested(f.type)]
    if nested:
        raise UnsupportedError(
            f"a CSV file has no place for lists, maps and structs: {', '.join(nested)}",
            remedy="leave these out with --columns, or export to .ndjson or .parquet.",
        )
    with pacsv.CSVWriter(part, reader.schema) as writer:
        return _counted(reader, writer.write_batch)


def _arrow(part: FilePath, reader: pa.RecordBatchReader) -> int:
    import pyarrow as pa

    with pa.ipc.new_file(part, reader.schema) as writer:
        return _counted(reader, writer.write_batch)


def _ndjson(part: FilePath, reader: pa.RecordBatchReader) -> int:
    from hudi_timeline.cli.output import file_json, rows_of

    with part.open("w", encoding="utf-8") as out:

        def lines(batch: pa.RecordBatch) -> Iterator[str]:
            for row in rows_of(batch):
                yield file_json(row) + "\n"

        return _counted(reader, lambda batch: out.writelines(lines(batch)))


_WRITERS: dict[str, Callable[[FilePath, Any], int]] = {
    ".parquet": _parquet, ".csv": _csv, ".ndjson": _ndjson, ".jsonl": _ndjson, ".arrow": _arrow,
}  # fmt: skip


def diff(
    path: TablePath,
    before: Annotated[str, typer.Argument(help="An instant or a time.", metavar="BEFORE")],
    after: Annotated[
        str | None, typer.Argument(help="A later one; now if not given.", metavar="AFTER", show_default=False)
    ] = None,
    limit: Limit = 20,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """List the records that were inserted, updated or deleted between two times.

    Updated are those that a commit wrote again, with whatever values.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from hudi_timeline.timeline.instant import parse_query_instant, zone_of

    table = open_table(path, storage)
    if not table.config.populate_meta_fields:
        raise UnsupportedError(
            "the table's files have no record keys to go by", remedy="use `hudi sql PATH` with --as-of."
        )
    if after is not None:
        zone = zone_of(table.config.timezone)
        if parse_query_instant(before, zone) > parse_query_instant(after, zone):
            raise OptionError(
                f"BEFORE, {before}, is later than AFTER, {after}",
                remedy=f"hudi diff PATH '{after}' '{before}'",
            )
    keys = ["_hoodie_record_key", "_hoodie_partition_path"]
    old, new = (
        table.read([*keys, "_hoodie_commit_time"], as_of=at)
        .to_arrow()
        .rename_columns(["key", "partition", name])
        for at, name in ((before, "before"), (after, "after"))
    )
    both = old.join(new, ["key", "partition"], join_type="full outer")
    same = pc.equal(both.column("before"), both.column("after"))
    both = both.filter(pc.invert(pc.fill_null(same, False)))
    change = pc.case_when(
        pc.make_struct(pc.is_null(both.column("before")), pc.is_null(both.column("after"))), "inserted", "deleted",
        "updated",
    )  # fmt: skip
    rows = both.add_column(
        0, "change", pa.chunked_array([change]) if isinstance(change, pa.Array) else change
    )
    rows = rows.sort_by([("change", "ascending"), ("partition", "ascending"), ("key", "ascending")])
    shown = rows.slice(0, limit) if limit else rows
    show_rows(shown, output)
    if shown.num_rows < rows.num_rows:
        typer.echo(f"{rows.num_rows - shown.num_rows:,} more; --limit 0 for all", err=True)
