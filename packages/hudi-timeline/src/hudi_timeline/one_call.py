"""Writing and reading a table in one call, for those who hold no `HudiTable`.

Each function stands for calls of `HudiTable` and has no way of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from hudi_format.errors import ConflictingOptionError, NotAHudiTableError
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_timeline import table_config
from hudi_timeline.options.registry import main_name, text_of
from hudi_timeline.options.table_options import RECORD_KEY, TABLE_NAME
from hudi_timeline.options.user_options import as_options, with_waiting
from hudi_timeline.options.write_options import OPERATION
from hudi_timeline.reading.filters import Condition
from hudi_timeline.reading.queries import META_BY_DEFAULT, Moment
from hudi_timeline.reading.scan import Scan
from hudi_timeline.table import HudiTable

if TYPE_CHECKING:
    import polars

    from hudi_timeline.writing.result import CommitResult


def write_hudi(
    uri: str | PathLike[str], data: object, *, key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None, ordering: str | None = None, mode: str = "append",
    operation: str | None = None, name: str | None = None, table_type: str | None = None,
    schema_mode: str | None = None, dry_run: bool = False, options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, Any] | None = None, write_retries: int | None = None,
    lock_wait: float | None = None,
) -> CommitResult:  # fmt: skip
    """Write rows to the table at `uri`, which is made if there is none.

        write_hudi("trips", frame, key="id", partition_by="city")
        write_hudi("trips", more)                              # what the table has need not be said again

    Args:
        data: anything that a write of `HudiTable` takes.
        key: columns that identify a record within its partition; without any each row gets a key of its own, and what
            is written twice is there twice.
        partition_by: columns of the partition path.
        ordering: column that decides between records of one key.
        mode: "append": update the rows whose key is there and add the others.  "overwrite": replace all rows; time
            travel still reads the earlier ones.  "ignore" and "error": write only where there is no table.
        operation: instead of the upsert of "append", such as "insert" or "bulk_insert".
        name: of a new table; its folder's if not given.
        table_type: of a new table: COPY_ON_WRITE ("cow"), if not given, or MERGE_ON_READ ("mor").
        schema_mode, dry_run: as of the writes of `HudiTable`.
        options: further options of the write and of a new table.
        write_retries, lock_wait: as of `HudiTable.open`.

    Raises:
        ConflictingOptionError: key, partitions or type are not those of the table that is there.
        TableExistsError: there is one, and the mode is "error".
        NotAHudiTableError: something else is there.
        SchemaError, MissingColumnError, OptionError: before anything is written.
    """
    from hudi_timeline.writing.table_creation import name_of, named_options, with_arguments
    from hudi_timeline.writing.writes import with_schema_mode, write

    if not isinstance(mode, str):
        raise TypeError(f"mode must be append, overwrite, ignore or error, not {mode!r}")
    given = with_waiting(as_options(options), write_retries, lock_wait)
    storage = open_storage(uri, storage_options, options=given)
    given = without_hadoop_options(given)
    named = named_options(key, partition_by, ordering, name, table_type)
    if operation is not None:
        named[OPERATION] = operation
    given = with_arguments(named, given, storage)
    has_keys = False
    try:
        has_keys = bool(table_config.load(storage).record_key_fields)
    except NotAHudiTableError:
        if text_of(given, TABLE_NAME) is None:
            given[TABLE_NAME] = name_of(storage)
    asked = text_of(given, OPERATION)
    if mode.lower() == "overwrite":
        if asked not in (None, "insert_overwrite_table"):
            raise ConflictingOptionError(
                f"mode 'overwrite' and the operation {asked} exclude each other",
                table=storage.uri,
                remedy="omit one of the two; the operation insert_overwrite replaces the partitions of the rows.",
                option=OPERATION,
            )
        asked = "insert_overwrite_table"
    if asked is None and not text_of(given, RECORD_KEY) and not has_keys:
        asked = "bulk_insert"
    given = {key: value for key, value in given.items() if main_name(key) != OPERATION}
    given = with_schema_mode(given, schema_mode)
    return write(storage, asked or "upsert", data, given, mode=mode, opened=False, dry_run=dry_run)


def read_hudi(
    uri: str | PathLike[str], columns: str | Sequence[str] | None = None, filter: Condition | None = None,
    *, as_of: Moment | None = None, meta_columns: bool = META_BY_DEFAULT, options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Scan:  # fmt: skip
    """Rows of the table at `uri`.

        read_hudi("trips", filter="city = 'oslo'").to_pandas()

    Args:
        columns, filter, as_of, meta_columns, options: as of `HudiTable.read`.

    Raises:
        NotAHudiTableError: there is no table; and what `HudiTable.read` raises.
    """
    table = HudiTable.open(uri, storage_options=storage_options, options=options)
    return table.read(columns, filter, as_of=as_of, meta_columns=meta_columns)


def scan_hudi(
    uri: str | PathLike[str], *, as_of: Moment | None = None, meta_columns: bool = META_BY_DEFAULT,
    options: Mapping[str, object] | None = None, storage_options: Mapping[str, Any] | None = None,
) -> polars.LazyFrame:  # fmt: skip
    """Polars LazyFrame of the table at `uri`, whose query says what is read.

        scan_hudi("trips").filter(pl.col("city") == "oslo").select("id", "fare").collect()

    Args:
        as_of, meta_columns, options: as of `HudiTable.read`.

    Raises:
        NotAHudiTableError: there is no table; and what `HudiTable.read` raises.  ImportError: Polars is not installed.
    """
    found = read_hudi(
        uri, as_of=as_of, meta_columns=meta_columns, options=options, storage_options=storage_options
    )
    return found.to_polars_lazy()
