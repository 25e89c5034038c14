"""Command `hudi import`: Parquet data set to table, as hudi-cli's `hdfsparquetimport`."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_timeline.cli.output import Format, Output, Path, StorageOptions, pairs, show_facts
from hudi_timeline.cli.services import Options


def add_to(app: typer.Typer) -> None:
    """Add the command to the `hudi` command."""
    app.command("import")(import_)


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of Parquet or CSV files, one file, or a pattern of names.", metavar="SOURCE"
        ),
    ],
    path: Path,
    key: Annotated[str, typer.Option("--key", "-k", help="Columns of the record key, with commas.")],
    name: Annotated[str, typer.Option("--name", help="The table's name; its folder's if not given.")] = "",
    partition: Annotated[
        str, typer.Option("--partition", "-p", help="Columns of the partition path, with commas.")
    ] = "",
    ordering: Annotated[
        str, typer.Option("--ordering", help="Column that decides between records of one key.")
    ] = "",
    where: Annotated[str | None, typer.Option("--where", "-w", help="Rows to take, as in SQL.")] = None,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Add to the table that is there; known keys are updated.")
    ] = False,
    option: Options = None,
    output: Output = Format.table,
    storage: StorageOptions = None,
) -> None:
    """Write a Parquet or CSV data set, or rows of it, to a table in one commit."""
    from hudi_timeline.options.table_options import PARTITION, PRECOMBINE, RECORD_KEY, TABLE_NAME
    from hudi_timeline.writing.parquet_import import import_parquet

    options: dict[str, str] = {
        TABLE_NAME: name or path.rstrip("/").rpartition("/")[2],
        RECORD_KEY: key,
        PARTITION: partition,
        **pairs(option),
    }
    if ordering:
        options.setdefault(PRECOMBINE, ordering)
    result = import_parquet(source, path, options, where=where, upsert=upsert, storage_options=pairs(storage))
    show_facts(
        {
            "instant": result.instant,
            "operation": result.operation,
            "inserted": result.inserted,
            "updated": result.updated,
            "files": result.files_written + result.files_rewritten,
            "partitions": len(result.partitions),
            "bytes": result.bytes_written,
            "warnings": list(result.warnings),
        },
        output,
    )
