"""Local writes of a table: one commit each, on the local engine.

Every write takes `validators`: functions that see the change before it is committed and may refuse it, see
`hudi_timeline.validation.precommit`.  Writes of rows take `rules`: conditions by name that each row must meet,
text or pyarrow expressions, see `hudi_timeline.validation.row_rules`.  `options` may name both as well, and a
quarantine for rows that break a rule; without one they fail the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.spill import MemoryLimit, keep_if_large
from hudi_format.errors import NotAHudiTableError, OptionError
from hudi_format.schema.changes import SchemaChange
from hudi_format.schema.input_rows import as_reader, telling_the_index, types_are_guessed
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.file_system_view.snapshot import CommitCache, open_snapshot
from hudi_timeline.options import parse_write_options
from hudi_timeline.options.registry import text_of
from hudi_timeline.options.table_options import SCHEMA_MODE
from hudi_timeline.options.write_options import OPERATION, PARTITIONS_TO_DELETE, PREPPED
from hudi_timeline.reading.scan import Scan
from hudi_timeline.transaction.retries import LOOKUPS, before_reading, may_retry, retried
from hudi_timeline.transaction.write_basis import FirstBasis
from hudi_timeline.validation.precommit import Validator
from hudi_timeline.writing.local_engine import LocalEngine, StoredRowsEngine
from hudi_timeline.writing.operation import check, execute
from hudi_timeline.writing.planning.new_table import choose, require_all
from hudi_timeline.writing.planning.write_plan import APPEND, memory_limit
from hudi_timeline.writing.result import CommitResult
from hudi_timeline.writing.row_conflicts import ReadRows

# How often the rows of a filter are read, where others commit before they are deleted.
TRIES_TO_READ = 5

Rules: TypeAlias = Mapping[str, str | pc.Expression] | None


def write(
    storage: Storage,
    operation: str,
    data: object | None,
    options: Mapping[str, str],
    validators: Sequence[Validator] = (),
    rules: Rules = None,
    commits: CommitCache | None = None,
    *,
    mode: str = APPEND,
    opened: bool = True,
    dry_run: bool = False,
) -> CommitResult:
    """One write operation on rows, `_prepped` forms included.

    Args:
        operation: as Apache Hudi's option has it.
        data: rows in any form; None only for `delete_partition`.
        commits: what was read of the table's commits before.
        mode: Apache Hudi's save mode.
        opened: the table was opened before; where it is gone, none is made.  Else a first write makes it.
        dry_run: nothing is written; the result says what would be.
    """
    options = _of_operation(options, operation)
    rows = None if data is None else as_reader(data, lambda: _known_schema(storage, commits))
    if isinstance(rows, pa.RecordBatchReader) and not dry_run and may_retry(options):
        rows = _held(rows, options)
    guessed = types_are_guessed(data)
    first = FirstBasis()

    def one_try(lost: int) -> CommitResult:
        return execute(
            LocalEngine(guessed=guessed), storage, rows, options, mode=mode, opened=opened, validators=validators,
            rules=rules, dry_run=dry_run, lost=lost, first=first,
        )  # fmt: skip

    # A stream that is not held is read once.
    lookups = 0 if isinstance(rows, pa.RecordBatchReader) else LOOKUPS
    with telling_the_index(data):
        return retried(options, one_try, lookups=lookups, once=dry_run)


def _held(rows: pa.RecordBatchReader, options: Mapping[str, str]) -> pa.Table:
    """Rows of a stream, which is read once, for several tries: on disk beyond the memory limit."""
    limit = memory_limit(parse_write_options(options)) or MemoryLimit()
    with rows:
        return keep_if_large((pa.Table.from_batches([b]) for b in rows), rows.schema, limit)


def with_schema_mode(options: Mapping[str, str], mode: str | None) -> dict[str, str]:
    """Options with a schema mode that was given as an argument."""
    return dict(options) if mode is None else {**options, SCHEMA_MODE: mode}


def _known_schema(storage: Storage, commits: CommitCache | None) -> pa.Schema | None:
    try:
        return open_snapshot(storage, commits=commits).schema
    except NotAHudiTableError:  # not made yet, or without a schema
        return None


def _of_operation(options: Mapping[str, str], operation: str) -> Mapping[str, str]:
    """Options of an operation, or of its `_prepped` form where they name that."""
    asked = text_of(options, OPERATION)
    if asked is not None and asked.strip().lower() == f"{operation}{PREPPED}":
        return options
    return {**options, OPERATION: operation}


def schema_changes(
    storage: Storage,
    data: object,
    operation: str,
    options: Mapping[str, str],
    *,
    commits: CommitCache | None = None,
) -> tuple[SchemaChange, ...]:
    """Schema changes of a write of this data, without writing."""
    rows = as_reader(data, lambda: _known_schema(storage, commits))
    engine = LocalEngine(guessed=types_are_guessed(data))
    return check(engine, storage, rows, {**options, OPERATION: operation}, opened=True)


def delete_partitions(
    storage: Storage,
    partitions: str | Iterable[str],
    options: Mapping[str, str],
    validators: Sequence[Validator] = (),
    missing_ok: bool = False,
    *,
    dry_run: bool = False,
) -> CommitResult:
    """Delete all rows of partitions, given by path or pattern.

    Raises:
        UnknownPartitionError: a name or pattern that no partition answers to; nothing was deleted.
    """
    if partitions is not None and not isinstance(partitions, Iterable):
        raise TypeError(f"partitions must be a list of texts, not {type(partitions).__name__}")
    names = [partitions] if isinstance(partitions, str) else list(partitions or ())
    if not names:
        raise OptionError(
            "no partitions were given", table=storage.uri, remedy="name one, or use a pattern such as '*'."
        )
    for name in names:
        if not isinstance(name, str) or "," in name:
            raise OptionError(
                f"{name!r} cannot be given as a partition: it must be text without a comma, which stands "
                "between partitions",
                table=storage.uri,
                remedy="delete such a partition's rows with delete() and a filter.",
            )
    if not missing_ok:
        existing = list_partitions(storage, table_config.load(storage))
        require_all(choose(names, (), existing), existing, table=storage.uri)
    return write(
        storage, "delete_partition", None, {**options, PARTITIONS_TO_DELETE: ",".join(names)}, validators,
        dry_run=dry_run,
    )  # fmt: skip


def _to_delete(scan: Scan) -> pa.Table:
    """Rows of a scan in the table's types, with null for text of paths that a column of another type has.

    Their keys and partition paths are those that are stored.
    """
    rows = scan.to_arrow()
    if RECORD_KEY not in rows.schema.names:
        return rows
    for n, field in enumerate(scan.snapshot.schema.field(f) for f in rows.schema.names[2:]):
        if rows.schema.field(n + 2).type != field.type:
            rows = rows.set_column(n + 2, field.name, pa.nulls(rows.num_rows, field.type))
    return rows


def delete_where(
    storage: Storage,
    filter: str | pc.Expression,
    options: Mapping[str, str],
    validators: Sequence[Validator],
    scan_of: Callable[..., Scan],
    *,
    dry_run: bool = False,
) -> CommitResult:
    """Delete the rows that pass a filter.

    Args:
        scan_of: `HudiTable.read`; rows are read again where others commit before they are deleted.
    """
    options = _of_operation(options, "delete")
    config = table_config.load(storage)
    columns = list(dict.fromkeys((*config.record_key_fields, *config.partition_fields)))
    roots = list(dict.fromkeys(c.partition(".")[0] for c in columns))
    engine = StoredRowsEngine if config.populate_meta_fields else LocalEngine
    wanted = [RECORD_KEY, PARTITION_PATH, *roots] if config.populate_meta_fields else roots

    def one_try(lost: int) -> CommitResult:
        with before_reading(storage, options, lost) as precedence:
            scan = scan_of(wanted, filter)
            read_from = ReadRows(scan, lambda: scan_of(wanted, filter))
            return execute(
                engine(), storage, _to_delete(scan), options, validators=validators, read_from=read_from,
                dry_run=dry_run, lost=lost, precedence=precedence,
            )  # fmt: skip

    return retried(options, one_try, readings=TRIES_TO_READ - 1, once=dry_run)
