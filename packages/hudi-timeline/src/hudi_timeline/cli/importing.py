"""Command `hudi import`: Parquet data set to table, as hudi-cli's `hdfsparquetimport`."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_format.errors import ConflictingOptionError, NotAHudiTableError, TableExistsError
from hudi_timeline.cli.output import Format, Output, Path, StorageOptions, named_path, pairs, show_facts
from hudi_timeline.cli.services import Options


def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of Parquet or CSV files, one file, or a pattern of names.", metavar="SOURCE"
        ),
    ],
    path: Path,
    key: Annotated[
        list[str],
        typer.Option(
            "--key", "-k", help="Columns of the record key, with commas; may be repeated.", metavar="NAMES"
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The table's name; its folder's if not given.")] = "",
    partition: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            "-p",
            help="Columns of the partition path, with commas; may be repeated.",
            metavar="NAMES",
        ),
    ] = None,
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

    given = pairs(storage)
    # What the table that is there says need not be said again.
    there = upsert and _is_table(named_path(path), given)
    options: dict[str, str] = {RECORD_KEY: ",".join(key), **pairs(option)}
    if name or not there:
        options.setdefault(TABLE_NAME, name or named_path(path).rstrip("/").rpartition("/")[2])
    if partition or not there:
        options.setdefault(PARTITION, ",".join(partition or ()))
    if ordering:
        options.setdefault(PRECOMBINE, ordering)
    try:
        result = import_parquet(
            named_path(source, "source"), path, options, where=where, upsert=upsert, storage_options=given
        )
    except TableExistsError as e:
        if _is_table(path, given):
            e.remedy = "give another PATH; --upsert adds the rows to the table that is there."
        raise
    except ConflictingOptionError as e:
        if there and "options" in e.details:
            e.remedy = "omit what differs, as the table that is there keeps its own; or give another PATH."
        raise
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


def _is_table(path: str, storage_options: dict[str, str]) -> bool:
    from hudi_format.storage.open import open_storage
    from hudi_timeline import table_config

    try:
        table_config.load(open_storage(path, storage_options))
    except NotAHudiTableError:
        return False
    return True
