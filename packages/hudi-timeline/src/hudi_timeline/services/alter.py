"""Changes of a table's columns without a change of its files: schema on read.

One commit changes columns, and no row is written.  Readers find the columns of older files by their ids.  Apache Hudi
does so with `hoodie.schema.on.read.enable=true`; without it, as other engines, it goes by names and sees null where a
file has a column under another one.

Source: AlterTableCommand of Apache Hudi 0.15.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from hudi_format.errors import HudiError, InvalidOptionError, SchemaError, UnsupportedError
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.avro import to_avro
from hudi_format.schema.changes import SchemaChange, schema_changes
from hudi_format.schema.meta_fields import META_SCHEMA, with_meta
from hudi_format.schema.schema_versions import SchemaEdit, latest_text, numbered, version_of, without_ids
from hudi_format.schema.unions import union_columns
from hudi_format.storage.protocol import Storage
from hudi_timeline import feature_gate
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import keeping_defaults, written_text
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.commit_files import LATEST_SCHEMA
from hudi_timeline.timeline.instant import COMMIT, COMPACTION, DELTA_COMMIT, LOG_COMPACTION
from hudi_timeline.transaction.schema_history import (
    ALTER_SCHEMA,
    first_version,
    load_history,
    number_of,
    refuse_unwritable_schema,
)
from hudi_timeline.transaction.transaction import begin_transaction

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(), "int": pa.int32(), "integer": pa.int32(), "long": pa.int64(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip


@dataclass(frozen=True)
class AlterResult(HtmlView):
    """Change of a table's columns.

    Attributes:
        instant: of the commit; "" where nothing was changed, or of a dry run.
        changes: column by column.
        schema: the table's columns afterwards.
        dry_run: nothing was written.
        warnings: what the user should know, one sentence each.
    """

    instant: str
    changes: tuple[str, ...]
    schema: pa.Schema
    dry_run: bool = False
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        name = "dry run" if self.dry_run else self.instant or "nothing changed"
        return f"AlterResult({name}: {'; '.join(self.changes)})"


def column_type(kind: pa.DataType | str) -> pa.DataType:
    """Type of a column, as tables have it.

    Args:
        kind: of Arrow, or its name in SQL: int, long, double, string, date, timestamp, decimal(10, 2) ...

    Raises:
        InvalidOptionError: another name.
        SchemaError: a type that tables do not have.
    """
    if isinstance(kind, str):
        decimal = _DECIMAL.fullmatch(kind.strip().lower())
        if decimal is not None and not 1 <= int(decimal[1]) <= 38:
            raise InvalidOptionError(
                f"there is no type {kind!r}: a decimal has 1 to 38 digits",
                remedy="use decimal(38, 2), or double or string for more digits.",
            )
        found = (
            pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES.get(kind.strip().lower())
        )
        if found is None:
            raise InvalidOptionError(
                f"there is no type {kind!r}", remedy=f"use one of {', '.join(_TYPES)}, decimal(10, 2)."
            )
        kind = found
    if not isinstance(kind, pa.DataType):
        raise TypeError(
            f"a column's type must be a pyarrow type or its name, not {type(kind).__name__}: {kind!r}"
        )
    stored: pa.DataType = normalize_schema(pa.schema([pa.field("column", kind)])).field(0).type
    return stored


def _require_text(**given: object) -> None:
    for what, name in given.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} must be a text, not {type(name).__name__}: {name!r}")


class AlterBuilder:
    """Changes of columns in one commit: `add`, `rename`, `drop`, `widen`, `move`; `execute`.

        trips.alter().add("note", "string", after="city").rename("fare", "price").execute()

    Columns inside of records are named by dot path: `driver.name`, `stops.element.place`, `marks.value.colour`.
    """

    def __init__(self, context: Callable[[bool], ServiceContext]) -> None:
        self._context = context
        self._steps: list[tuple[str, Callable[[SchemaEdit], None]]] = []

    def _step(self, text: str, act: Callable[[SchemaEdit], None]) -> Self:
        self._steps.append((text, act))
        return self

    def add(
        self, column: str, kind: pa.DataType | str, *, after: str | None = None, first: bool = False
    ) -> Self:
        """A new column, null in all rows that are there; last, if no place is given."""
        _require_text(column=column)
        wanted = column_type(kind)
        return self._step(
            f"{column} ({wanted}) added", lambda edit: edit.add(column, wanted, after=after, first=first)
        )

    def rename(self, column: str, name: str) -> Self:
        """Another name for a column; `name` without its path."""
        _require_text(column=column, name=name)
        return self._step(f"{column} renamed to {name}", lambda edit: edit.rename(column, name))

    def drop(self, column: str) -> Self:
        """A column less; a later one of its name does not bring its values back."""
        _require_text(column=column)
        return self._step(f"{column} dropped", lambda edit: edit.drop(column))

    def widen(self, column: str, kind: pa.DataType | str) -> Self:
        """A type that holds all values of the column."""
        _require_text(column=column)
        wanted = column_type(kind)
        return self._step(f"{column} widened to {wanted}", lambda edit: edit.widen(column, wanted))

    def move(self, column: str, *, after: str | None = None, first: bool = False) -> Self:
        """Another place among the columns."""
        _require_text(column=column)
        where = "first" if first else f"after {after}"
        return self._step(f"{column} moved {where}", lambda edit: edit.move(column, after=after, first=first))

    def execute(self, *, dry_run: bool = False) -> AlterResult:
        """Make all changes in one commit, or none.

        Raises:
            MissingColumnError, SchemaError: a change that does not go with the columns; nothing was changed.
            UnsupportedError: a table that cannot be changed yet, or in this state.
            WriteConflictError, ConcurrentWriterError: another writer is at work.
        """
        context = self._context(dry_run)
        return alter(context, self._steps, dry_run=dry_run)

    def __repr__(self) -> str:
        return (
            f"AlterBuilder({'; '.join(t for t, _ in self._steps) or 'no changes yet'}; execute() makes them)"
        )


@dataclass(frozen=True)
class _Altered:
    """Columns before and after.

    Attributes:
        edited: with ids, and `meta` columns with theirs.
        most: the greatest id that any column has or had before.
    """

    before: pa.Schema
    edited: pa.Schema
    meta: pa.Schema
    most: int

    @property
    def after(self) -> pa.Schema:
        return without_ids(self.edited)

    @property
    def report(self) -> tuple[SchemaChange, ...]:
        return schema_changes(self.after, self.before, self.after)


def alter(
    context: ServiceContext, steps: list[tuple[str, Callable[[SchemaEdit], None]]], *, dry_run: bool = False
) -> AlterResult:
    """Change columns in one commit; as `AlterBuilder.execute`."""
    texts = tuple(text for text, _ in steps)
    storage = context.storage
    first = context.look()
    feature_gate.check_write(storage, first.config, first.timeline, context.options, ALTER_SCHEMA)
    planned = _altered(first, steps)
    if dry_run or not steps:
        return AlterResult("", texts, planned.after, dry_run)
    action = DELTA_COMMIT if context.table.table_type == "MERGE_ON_READ" else COMMIT
    with begin_transaction(
        storage, context.table, operation=ALTER_SCHEMA, action=action, options=context.options,
        caller=RunningCall.here(),
    ) as transaction:  # fmt: skip
        snapshot = transaction.snapshot
        altered = _altered(snapshot, steps)
        columns = pa.schema([*altered.meta, *altered.edited])
        wanted = version_of(columns, number_of(transaction.instant), altered.most)
        transaction.inflight({})
        transaction.commit(
            (),
            schema_text=to_avro(with_meta(altered.after), snapshot.config.name),
            extra={LATEST_SCHEMA: latest_text(wanted)},
            even_if_empty=True,
        )
    by_id = (
        f"Apache Hudi reads the columns by id with hoodie.schema.on.read.enable=true, of {storage.uri} from now on; "
        "engines that go by names have null where older files have a column under another one",
    )
    return AlterResult(transaction.instant, texts, altered.after, warnings=(*transaction.warnings, *by_id))


def _altered(snapshot: TableSnapshot, steps: list[tuple[str, Callable[[SchemaEdit], None]]]) -> _Altered:
    """Columns after the steps.

    Raises:
        MissingColumnError, SchemaError, UnsupportedError: they do not go with the table.
    """
    storage, config, timeline = snapshot.storage, snapshot.config, snapshot.timeline
    before = snapshot.stored_schema
    if before is None:
        raise SchemaError(
            "the table has no columns yet", table=storage.uri, remedy="write rows into it first."
        )
    refuse_unwritable_schema(snapshot)
    waiting = [*timeline.pending(COMPACTION), *timeline.pending(LOG_COMPACTION)]
    if waiting:
        raise UnsupportedError(
            f"columns cannot be changed while a compaction is pending ({waiting[0].time})",
            table=storage.uri,
            instant=waiting[0].time,
            remedy="run it first: `hudi compact run`, or HudiTable.compact().",
        )
    plain = to_avro(before, config.name)
    if written_text(before, config.name, snapshot) != plain:
        raise UnsupportedError(
            "columns of a table that has unions of several types cannot be changed",
            table=storage.uri,
            remedy="write the rows into a new table with one type for each column.",
            columns=union_columns(written_text(before, config.name, snapshot)),
        )
    if keeping_defaults(plain, snapshot) != plain:
        raise UnsupportedError(
            "columns of a table whose schema has defaults other than null cannot be changed: a column's default goes "
            "by its name",
            table=storage.uri,
            remedy="change them with Apache Hudi.",
        )
    history = load_history(snapshot)
    version = history.versions[-1] if history else first_version(snapshot)
    if config.drop_partition_columns:
        raise UnsupportedError(
            "columns of a table that drops its partition columns from files cannot be changed",
            table=storage.uri,
            remedy="write the rows into a new table.",
        )
    fixed = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    edit = SchemaEdit(numbered(before, version), frozenset(fixed))
    try:
        for _, act in steps:
            act(edit)
        version_of(edit.schema, 0, 0)
    except HudiError as e:
        raise e.at(table=storage.uri) from None
    meta = numbered(META_SCHEMA, version)
    return _Altered(before, edit.schema, meta, max(history.most, version.most))


def alter_of(storage: Storage, options: Mapping[str, str]) -> AlterBuilder:
    """Builder of changes of a table's columns."""
    return AlterBuilder(lambda dry_run: ServiceContext.of(storage, options, dry_run=dry_run))
