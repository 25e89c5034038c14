"""Changes of stored rows computed from them: `update` of columns, `merge` with other rows.

The rows are read, changed in memory, and written back by one upsert to where they stand.  What was committed
between the read and the write makes it begin again, so that nothing is computed from rows that are no longer there.
Written rows replace the stored ones whatever the table's payload is: where a reader's merge could undo that, on
merge-on-read tables, it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_format.arrow.arrays import one_array, repeated
from hudi_format.errors import (
    DuplicateKeyError,
    MissingColumnError,
    OptionError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.keygen.record_keys import nested_column, partition_paths, record_keys
from hudi_format.merge.payloads import DEFAULT_PAYLOAD, Order, payload_rule
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.evolution import conform
from hudi_format.schema.exact import Exact
from hudi_format.schema.fit import fit, in_table_types, without_untyped
from hudi_format.schema.input_rows import as_reader
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY, without_meta
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import GLOBAL_KINDS
from hudi_index.tagging import MOVED
from hudi_timeline.concurrency.precedence import Precedence
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ
from hudi_timeline.options.table_options import MERGE, PAYLOAD
from hudi_timeline.options.write_options import OPERATION
from hudi_timeline.reading.filters import make_predicate, missing_column
from hudi_timeline.reading.other_engines import paths_are_values
from hudi_timeline.reading.scan import Scan
from hudi_timeline.transaction.retries import before_reading, retried
from hudi_timeline.validation.precommit import Validator
from hudi_timeline.writing.engine import PrepareTask
from hudi_timeline.writing.local_engine import LocalFrame, StoredRowsEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.index_choice import remembered_index
from hudi_timeline.writing.result import CommitResult
from hudi_timeline.writing.row_conflicts import ReadRows

TRIES = 5
SOURCE = "source"

Values: TypeAlias = Mapping[str, object]
Condition: TypeAlias = str | pc.Expression | None


class ChangedRowsEngine(StoredRowsEngine):
    """Engine for stored rows, of which those marked in the column `MOVED` are deleted."""

    def schema(self, data: pa.RecordBatchReader | pa.Table) -> pa.Schema:
        return pa.schema([f for f in data.schema if f.name != MOVED])

    def prepare(self, data: pa.RecordBatchReader | pa.Table, task: PrepareTask) -> LocalFrame:
        table = data if isinstance(data, pa.Table) else data.read_all()
        frame = super().prepare(table.drop_columns([MOVED]), replace(task, memory=None))  # they are held
        return replace(frame, rows=frame.rows.append_column(MOVED, table.column(MOVED)))


def update(
    scan_of: Callable[..., Scan], storage: Storage, set: Values, where: Condition, options: Mapping[str, str],
    validators: Sequence[Validator] = (), *, dry_run: bool = False,
) -> CommitResult:  # fmt: skip
    """Set columns of the rows that pass a filter; arguments and errors as of `HudiTable.update`."""
    _check_values(set)
    if not set:
        raise OptionError("no columns to set were given", table=storage.uri, remedy="give {column: value}.")

    def changed(scan: Scan) -> tuple[pa.Table, ReadRows]:
        _refuse_columns(set, scan)
        rows = scan.to_arrow()
        new = _marked(_with_values(rows, rows, set, scan.snapshot.schema), deleted=False)
        return new, ReadRows(scan, lambda: scan_of(None, where))

    return _written(scan_of, where, changed, storage, options, validators, set_columns=set, dry_run=dry_run)


@dataclass(frozen=True)
class _Clause:
    """What becomes of the rows of one kind that pass a condition; of several the first counts.

    Attributes:
        kind: MATCHED, NOT_MATCHED or BY_SOURCE.
        values: of an update or insert; None for all columns of the source.  delete: it is none.
    """

    kind: str
    condition: Condition
    values: Values | None = None
    delete: bool = False


MATCHED, NOT_MATCHED, BY_SOURCE = "matched", "not matched", "not matched by source"


@dataclass(frozen=True)
class MergeBuilder:
    """Merge of rows into a table by record key, clause by clause, in one commit.

        table.merge(changes).when_matched_delete("source.gone").when_matched_update().when_not_matched_insert().execute()

    Conditions are text or pyarrow expressions over the table's columns and the struct `source` with those of the
    source: `"source.fare > 3"`, `pc.field("source", "fare") > pc.field("fare")`.  Values are Python values, or
    expressions of the same kind.  Of several clauses for one row the first whose condition holds counts.  Rows are held
    in memory.
    """

    storage: Storage
    source: pa.Table
    scan_of: Callable[..., Scan]
    options: Mapping[str, str]
    clauses: tuple[_Clause, ...] = ()

    def when_matched_update(self, set: Values | None = None, condition: Condition = None) -> MergeBuilder:
        """Update rows whose key is in the source: the columns of `set`, or all of the source."""
        return self._with(_Clause(MATCHED, condition, set))

    def when_matched_delete(self, condition: Condition = None) -> MergeBuilder:
        """Delete rows whose key is in the source."""
        return self._with(_Clause(MATCHED, condition, delete=True))

    def when_not_matched_insert(self, set: Values | None = None, condition: Condition = None) -> MergeBuilder:
        """Insert rows of the source whose key is not in the table; `set` as of an update."""
        return self._with(_Clause(NOT_MATCHED, condition, set))

    def when_not_matched_by_source_update(self, set: Values, condition: Condition = None) -> MergeBuilder:
        """Update rows of the table whose key is not in the source."""
        return self._with(_Clause(BY_SOURCE, condition, set))

    def when_not_matched_by_source_delete(self, condition: Condition = None) -> MergeBuilder:
        """Delete rows of the table whose key is not in the source."""
        return self._with(_Clause(BY_SOURCE, condition, delete=True))

    def _with(self, clause: _Clause) -> MergeBuilder:
        if clause.values is not None:
            _check_values(clause.values)
        return replace(self, clauses=(*self.clauses, clause))

    def execute(self, *, validators: Sequence[Validator] = (), dry_run: bool = False) -> CommitResult:
        """Do it, or say what it would do.

        Raises:
            DuplicateKeyError: two rows of the source have one key.
            MissingColumnError, SchemaError, InvalidOptionError: columns, values or conditions that do not fit.
            UnsupportedError: a table whose rows cannot be written as they are computed.
            WriteConflictError: others committed each time before it could.
        """
        if not self.clauses:
            raise OptionError(
                "the merge has no clause, so it does nothing",
                table=self.storage.uri,
                remedy="add when_matched_update(), when_not_matched_insert() or another one.",
            )
        of_source = any(c.values is None and not c.delete for c in self.clauses)
        named = {n for c in self.clauses if c.kind != NOT_MATCHED for n in c.values or ()}
        return _written(
            self.scan_of, None, self._changes, self.storage, self.options, validators, dry_run=dry_run,
            set_columns=named.union(self.source.schema.names if of_source else ()), keyed=True,
        )  # fmt: skip

    def _changes(self, scan: Scan) -> tuple[pa.Table, ReadRows]:
        """Rows to write and to delete, and those that say which."""
        for clause in self.clauses:
            if clause.values is not None and clause.kind != NOT_MATCHED:
                _refuse_columns(clause.values, scan)
        stored = scan.snapshot.schema
        source = self._keyed(scan)
        by_source = any(c.kind == BY_SOURCE for c in self.clauses)
        wanted = None if by_source else pc.field(RECORD_KEY).isin(source.column(RECORD_KEY).combine_chunks())
        rows = scan.narrowed(None, wanted).to_arrow()
        theirs, ours = _places(source), _places(rows)
        at = pc.index_in(ours, value_set=theirs)  # per row of the table, its row of the source
        found = pc.is_in(theirs, value_set=ours)
        columns = [n for n in source.schema.names if n not in (RECORD_KEY, PARTITION_PATH)]
        structs = _struct(source, columns)
        joined = rows.append_column(SOURCE, structs.take(at))
        matched = at.is_valid()
        new = source.filter(pc.invert(found))
        lacking = [pa.nulls(new.num_rows, f.type) for f in stored]
        fresh = pa.table(
            [new[RECORD_KEY], new[PARTITION_PATH], *lacking, _struct(new, columns)],
            names=[RECORD_KEY, PARTITION_PATH, *stored.names, SOURCE],
        )
        parts = [
            *self._of_kind(MATCHED, joined.filter(matched), columns, stored),
            *self._of_kind(BY_SOURCE, joined.filter(pc.invert(matched)), columns, stored),
            *self._of_kind(NOT_MATCHED, fresh, columns, stored),
        ]
        empty = _marked(rows.slice(0, 0), deleted=False)
        adds = any(c.kind == NOT_MATCHED for c in self.clauses)
        partitions = pc.unique(source.column(PARTITION_PATH)).to_pylist() if adds else ()
        read = ReadRows(
            scan,
            lambda: self.scan_of(None, None).narrowed(None, wanted),
            every_written=False,
            lacking=frozenset(partitions),
        )
        return pa.concat_tables([empty, *parts], promote_options="default"), read

    def _of_kind(
        self, kind: str, rows: pa.Table, columns: Sequence[str], stored: pa.Schema
    ) -> Iterator[pa.Table]:
        """Changed rows of one kind, each by the first of its clauses."""
        for clause in (c for c in self.clauses if c.kind == kind):
            if not rows.num_rows:
                return
            hit = _holds(clause.condition, rows)
            mine, rows = rows.filter(hit), rows.filter(pc.invert(hit))
            if clause.delete:
                yield _marked(mine.drop_columns([SOURCE]), deleted=True)
                continue
            values = clause.values
            if values is None:
                values = {n: pc.field(SOURCE, n) for n in columns}
            yield _marked(_with_values(mine.drop_columns([SOURCE]), mine, values, stored), deleted=False)

    def _keyed(self, scan: Scan) -> pa.Table:
        """The source in the table's types, with record keys and partition paths."""
        config, stored = scan.snapshot.config, scan.snapshot.schema
        if SOURCE in stored.names:
            raise UnsupportedError(
                f"the table has a column {SOURCE}, the name by which clauses know the source's columns",
                table=self.storage.uri,
                remedy="compute the rows, and upsert them.",
            )
        given, _ = without_untyped(in_table_types(self.source.schema, stored), ())
        rows = self.source.select(given.names)
        try:
            rows = conform(fit(rows, given, exact=Exact(rounds=True)), normalize_schema(given))
        except SchemaError as e:
            raise e.at(table=self.storage.uri) from None
        spec = config.key_spec(self.options)
        for name in dict.fromkeys((*spec.key_fields, *spec.partition_fields)):
            if name.partition(".")[0] not in rows.schema.names:
                raise MissingColumnError(
                    f"the source lacks column {name}, which makes record keys or partition paths",
                    table=self.storage.uri,
                    remedy="add it: rows are matched by record key and partition.",
                    column=name,
                )
        keyed = rows.append_column(RECORD_KEY, record_keys(rows, spec).cast(pa.string()))
        keyed = keyed.append_column(PARTITION_PATH, partition_paths(rows, spec).cast(pa.string()))
        places = _places(keyed)
        if len(pc.unique(places)) < len(places):
            counts = pc.value_counts(places)
            twice = counts.filter(pc.greater(counts.field("counts"), 1))
            key = twice[0]["values"].as_py().partition("\0")[2]
            raise DuplicateKeyError(
                f"{len(twice):,} keys occur more than once in the source, first {key!r}: nothing says which row counts",
                table=self.storage.uri,
                remedy="keep one row of each key.",
                rows=len(twice),
            )
        return keyed


def merge_builder(
    scan_of: Callable[..., Scan], storage: Storage, source: object, options: Mapping[str, str],
    known: Callable[[], pa.Schema | None],
) -> MergeBuilder:  # fmt: skip
    """Merge of rows in any form, without clauses."""
    rows = as_reader(source, known)
    table = rows if isinstance(rows, pa.Table) else rows.read_all()
    return MergeBuilder(storage, table.select(without_meta(table.schema).names), scan_of, options)


def _written(
    scan_of: Callable[..., Scan], where: Condition, changed: Callable[[Scan], tuple[pa.Table, ReadRows]],
    storage: Storage, options: Mapping[str, str], validators: Sequence[Validator], *, set_columns: Collection[str],
    dry_run: bool, keyed: bool = False,
) -> CommitResult:  # fmt: skip

    def one_try(lost: int) -> CommitResult:
        with before_reading(storage, options, lost) as precedence:
            return read_and_write(lost, precedence)

    def read_and_write(lost: int, precedence: Precedence | None) -> CommitResult:
        scan = scan_of(None, where)
        given = _as_computed(scan, {**options, OPERATION: "upsert"}, keyed=keyed)
        scan = scan.select([RECORD_KEY, PARTITION_PATH, *scan.snapshot.schema.names])
        rows, read_from = changed(scan)
        twice = rows.num_rows - len(pc.unique(_places(rows)))
        if twice:
            raise DuplicateKeyError(
                f"{twice:,} of the rows to write have the key of another one: the table holds keys more than once",
                table=storage.uri,
                remedy="find them with verify(deep=True) and remove them with `hudi repair deduplicate`.",
                rows=twice,
            )
        _refuse_lower(scan, rows, set_columns)
        return execute(
            ChangedRowsEngine(),
            storage,
            rows,
            given,
            validators=validators,
            read_from=read_from,
            dry_run=dry_run,
            lost=lost,
            precedence=precedence,
        )

    return retried(options, one_try, readings=TRIES - 1, once=dry_run)


def _as_computed(scan: Scan, options: dict[str, str], *, keyed: bool) -> dict[str, str]:
    """Options by which written rows replace the stored ones.

    Raises:
        UnsupportedError: a table where they would not.
    """
    config = scan.snapshot.config
    why, remedy = "", "compute the rows with read() and write them with upsert() or insert_overwrite()."
    if not config.populate_meta_fields:
        why = "its files say no record keys"
    elif keyed and not config.record_key_fields:
        why = "its record keys are made up, so that no other row has one of them"
    elif config.properties.get(MERGE) or options.get(MERGE):
        why = "its own merge function would be asked what becomes of them"
    elif keyed and remembered_index(scan.snapshot, far=True)[0] in GLOBAL_KINDS:
        why = "with a global index a key may move between partitions"
    elif config.table_type != MERGE_ON_READ and config.partition_fields and not paths_are_values(scan):
        why = "its partition paths have values of columns in another form"
        # What read() gives of these columns would be written for their values, or into another partition.
        remedy = (
            'compute the rows of read_incremental("000", on_missing="full_scan"), which have the values of the files '
            "where read() has those of the paths, and write them with upsert()."
        )
    elif config.table_type == MERGE_ON_READ:
        rule = payload_rule(config.payload_class)
        if rule.against_stored != Order.LATER or rule.fills:
            why = f"readers merge its log files by {rule.name}, which may keep what is to be replaced"
    else:
        options[PAYLOAD] = DEFAULT_PAYLOAD
    if why:
        raise UnsupportedError(
            f"rows of this table cannot be written as they are computed: {why}",
            table=scan.table_uri,
            remedy=remedy,
        )
    return options


def _refuse_lower(scan: Scan, rows: pa.Table, set_columns: Collection[str]) -> None:
    """Refuse rows that readers would pass over for an older record of a log, whose ordering value is greater.

    Against the record of a base file any payload of a table that gets here takes the later one.

    Raises:
        UnsupportedError: how many rows, and the ordering field.
    """
    name = scan.snapshot.config.ordering_field
    root = (name or "").partition(".")[0]
    if name is None or root not in set_columns or not scan.plan.logs:
        return
    rows = rows.filter(pc.invert(rows.column(MOVED)))
    stored = scan.narrowed(
        [RECORD_KEY, PARTITION_PATH, root], pc.field(RECORD_KEY).isin(one_array(rows[RECORD_KEY]))
    )
    there = stored.to_arrow()
    at = pc.index_in(_places(rows), value_set=_places(there))
    new, old = nested_column(rows, name), nested_column(there, name)
    if new is None or old is None:
        return
    lower = pc.sum(pc.less(new, old.take(at).cast(new.type))).as_py()
    if lower:
        raise UnsupportedError(
            f"{lower:,} of the rows get a lower value of the ordering field {name} than they have, and of the records "
            "of log files readers keep the one whose value is the greatest",
            table=scan.table_uri,
            remedy=f"compact the table first: a record of a base file gives way to any later one; or leave {name} as "
            "it is, or raise it.",
            column=name,
        )


def _refuse_columns(values: Values, scan: Scan) -> None:
    config, schema = scan.snapshot.config, scan.snapshot.schema
    fixed = {f.partition(".")[0] for f in (*config.record_key_fields, *config.partition_fields)}
    for name in values:
        if name in fixed:
            raise SchemaError(
                f"column {name} makes record keys or partition paths, and cannot be set",
                table=scan.table_uri,
                remedy="delete the rows and insert them anew.",
                column=name,
            )
        if name not in schema.names:
            raise missing_column(name, schema).at(table=scan.table_uri)


def _with_values(rows: pa.Table, seen: pa.Table, values: Values, stored: pa.Schema) -> pa.Table:
    """The rows with columns set to values, in the table's types.

    Args:
        seen: what expressions see, row for row.
    """
    columns = {n: _column_of(n, value, seen, stored) for n, value in values.items()}
    given = pa.table(columns) if columns else seen.select([])
    kept, _ = without_untyped(in_table_types(given.schema, stored), ())
    given = conform(fit(given.select(kept.names), kept, exact=Exact(rounds=True)), normalize_schema(kept))
    for field in given.schema:
        index = rows.schema.get_field_index(field.name)
        column = given.column(field.name)
        rows = rows.append_column(field, column) if index < 0 else rows.set_column(index, field, column)
    return rows


def _check_values(values: Values) -> None:
    if not isinstance(values, Mapping):
        raise TypeError(f"set must be a mapping of columns to values, not {type(values).__name__}")
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"set must name columns by text, not {type(name).__name__}: {name!r}")


def _column_of(name: str, value: object, rows: pa.Table, stored: pa.Schema) -> pa.Array | pa.ChunkedArray:
    """A value or an expression for a column, once for each row."""
    if isinstance(value, pc.Expression):
        return _evaluated(value, rows)
    if not isinstance(value, pa.Scalar):
        # As a row's value is taken: without a loss, or with an error that names it.
        one = as_reader({name: [value]}, lambda: stored)
        value = (one if isinstance(one, pa.Table) else one.read_all()).column(name)[0]
    return repeated(value, rows.num_rows)


def _evaluated(value: pc.Expression, rows: pa.Table) -> pa.ChunkedArray:
    try:
        return ds.dataset(rows).to_table(columns={"value": value}).column("value")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise SchemaError(
            f"the value {value} cannot be computed: {str(e).splitlines()[0]}",
            remedy="name columns of the table, or pc.field('source', column), with functions of their types.",
        ) from None


def _holds(condition: Condition, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Whether a condition holds, by row; null does not."""
    if condition is None:
        return pa.repeat(pa.scalar(True), rows.num_rows)
    predicate = make_predicate(condition, rows.schema)
    return pc.fill_null(_evaluated(predicate.expression, rows), False)


def _marked(rows: pa.Table, *, deleted: bool) -> pa.Table:
    return rows.append_column(MOVED, pa.array(np.full(rows.num_rows, deleted)))


def _places(rows: pa.Table) -> pa.Array:
    """Partition path and record key of each row, as one text."""
    parts = (rows[n].cast(pa.string()) for n in (PARTITION_PATH, RECORD_KEY))
    found = pc.binary_join_element_wise(*parts, "\0")
    return one_array(found)


def _struct(rows: pa.Table, columns: Sequence[str]) -> pa.StructArray:
    if not rows.num_rows:
        return pa.array([], pa.struct([rows.schema.field(n) for n in columns]))
    arrays = [rows.column(n).combine_chunks() for n in columns]
    return pa.StructArray.from_arrays(arrays, fields=[rows.schema.field(n) for n in columns])
