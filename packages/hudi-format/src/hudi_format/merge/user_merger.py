"""User-defined record mergers: a Python function over Arrow batches, or expressions.

A function is named by `module:name`, so that executors and later readers of the table import the same one.  It
gets two batches that are aligned row for row, the records so far and those that came after them, and gives the
merged records back:

    def add_up(old: pa.RecordBatch, new: pa.RecordBatch, context: MergeContext) -> pa.RecordBatch:
        total = pc.add(old["count"], new["count"])
        return new.set_column(new.schema.get_field_index("count"), "count", total)

`{"function": add_up, "properties": {"unit": "km"}, "insert": check}` gives the function properties, and names one for
records of which nothing is stored: it gets their batch and the context, and may change or drop them.

Expressions say the same of single columns without code: `{"count": "sum", "last_seen": "max"}`; see
`hudi_format.merge.expressions`.

Records of one key meet in the order in which they were written, each with what those before came to, first of
all the stored row.  A delete ends what came before it; a record after it begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import FunctionType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hudi_format._checks import imported, loads
from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.input import checked_table
from hudi_format.errors import InvalidOptionError, MergeFunctionError, SchemaError
from hudi_format.keygen.record_keys import nested_column
from hudi_format.merge import record_merger
from hudi_format.merge.expressions import NAMES, check_expression, combine_column, needs_ordering
from hudi_format.merge.key_index import key_groups
from hudi_format.merge.log_entries import Entries, Resolved
from hudi_format.merge.partial_update import is_has, with_lacking, with_marks
from hudi_format.merge.payloads import MergeRule, Order
from hudi_format.schema.meta_fields import META_COLUMNS

MERGE = "hudi.merge"
# The payload class of a table whose merge is a function: no JVM has it, so that Apache Hudi fails by that name
# where it would have to merge, and reads base files as ever.
PAYLOAD = "io.hudi.python.MergeFunction"


@dataclass(frozen=True, slots=True)
class MergeContext:
    """Context of a merge function beside the records.

    Attributes:
        ordering_field: name of the table's ordering field, "" for none.
        old_ordering, new_ordering: its values, row for row; None without one.
        keys: the record keys, row for row.
        properties: what the user gave the merge.
    """

    ordering_field: str
    old_ordering: pa.Array | None
    new_ordering: pa.Array | None
    keys: pa.Array
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge function that may drop records.

    Attributes:
        rows: the merged records, one for each pair; columns that it lacks are those of the later record.
        deleted: per pair, whether nothing is left of it (boolean, no nulls); None for nowhere.
    """

    rows: pa.RecordBatch | pa.Table
    deleted: pa.Array | None = None


# What a record is, beside the kinds of `hudi_format.merge.record_merger`: the stored one, of another file, that those
# after it meet.  Nothing is inserted by it.
STORED = 255

MergeFunction: TypeAlias = Callable[
    [pa.RecordBatch, pa.RecordBatch, MergeContext], pa.RecordBatch | pa.Table | Merged
]
InsertFunction: TypeAlias = Callable[[pa.RecordBatch, MergeContext], pa.RecordBatch | pa.Table | Merged]


@dataclass(frozen=True, slots=True)
class CustomMerge:
    """A user-defined merge; picklable, and stored in table properties.

    Attributes:
        function: `module:name`; "" where there are expressions.
        columns: (column, expression) pairs.
        fixed: columns that a merge must not change: those of the key and the partition path.
        insert: `module:name` of what makes records of which nothing is stored; "" for none.
        properties: (name, value) pairs for the functions.
    """

    function: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    fixed: tuple[str, ...] = ()
    insert: str = ""
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.function or "expressions for " + ", ".join(c for c, _ in self.columns)

    @property
    def text(self) -> str:
        """Value of the option `hudi.merge`; the inverse of `parse_merge`."""
        if not self.function:
            return json.dumps(dict(self.columns), ensure_ascii=False)
        if not self.insert and not self.properties:
            return self.function
        named = {"function": self.function, "insert": self.insert, "properties": dict(self.properties)}
        return json.dumps({k: v for k, v in named.items() if v}, ensure_ascii=False)

    @property
    def functions(self) -> tuple[str, ...]:
        """References of the functions that it runs."""
        return tuple(n for n in (self.function, self.insert) if n)

    def columns_for(self, wanted: Sequence[str], table: Sequence[str], ordering: str | None) -> list[str]:
        """Columns needed to merge the wanted ones."""
        if self.function:  # it may look at all of them
            return [n for n in table if n not in META_COLUMNS]
        return [ordering.partition(".")[0]] if ordering and self._ordered(wanted, ordering) else []

    def _ordered(self, names: Sequence[str], ordering: str | None) -> bool:
        by_name = dict(self.columns)
        return any(needs_ordering(by_name.get(n, _rest(ordering))) for n in names if n not in META_COLUMNS)

    def check(self, schema: pa.Schema, ordering: str | None = None) -> None:
        """Check that the merge fits a table's columns.

        Raises:
            SchemaError: an expression for a column that is not there, or of a type that it does not take.
            InvalidOptionError: a function that cannot be imported.
        """
        for name in self.functions:
            load_function(name)
        for column, expression in self.columns:
            if column not in schema.names:
                raise SchemaError(
                    f"{MERGE} names the column {column!r}, which the table does not have", column=column,
                    remedy=f"its columns are {', '.join(n for n in schema.names if n not in META_COLUMNS)}.",
                )  # fmt: skip
            if column in self.fixed:
                raise SchemaError(
                    f"{MERGE} names {column!r}, which is part of the record key or partition path; a record "
                    "has those that it came with", column=column, remedy="remove it from the expressions.",
                )  # fmt: skip
            check_expression(column, expression, schema.field(column).type, ordering)

    def merge(self, old: pa.Table, new: pa.Table, keys: pa.Array, ordering: str | None) -> Merged:
        """Pairwise merged records; meta columns are those of `new`.

        Args:
            old, new: the same columns and number of rows.  Where expressions merge them, records of `new` may lack
                columns (`hudi_format.merge.partial_update`), which then stay as they were.

        Raises:
            MergeFunctionError: the function raised, or gave what fits the rows in no way.
            SchemaError: expressions for columns that do not take them.
        """
        marked = new
        old, new = (t.select([n for n in t.column_names if not is_has(n)]) for t in (old, marked))
        data = [n for n in new.column_names if n not in META_COLUMNS]
        before = after = None
        if ordering and ordering.partition(".")[0] in new.column_names:
            before, after = (one_array(_nested(t, ordering)) for t in (old, new))
        if not self.function:
            return Merged(with_lacking(self._by_column(old, new, data, before, after), old, marked))
        context = MergeContext(ordering or "", before, after, keys, dict(self.properties))
        return self._called(self.function, (old.select(data), new.select(data)), context, new, data)

    def inserted(self, new: pa.Table, keys: pa.Array, ordering: str | None) -> Merged:
        """Records of which nothing is stored, as `insert` makes them.

        Raises:
            MergeFunctionError: as `merge`.
        """
        data = [n for n in new.column_names if n not in META_COLUMNS]
        after = None
        if ordering and ordering.partition(".")[0] in new.column_names:
            after = one_array(_nested(new, ordering))
        context = MergeContext(ordering or "", None, after, keys, dict(self.properties))
        return self._called(self.insert, (new.select(data),), context, new, data)

    def _called(
        self, name: str, rows: Sequence[pa.Table], context: MergeContext, new: pa.Table, data: Sequence[str]
    ) -> Merged:
        function: Callable[..., object] = load_function(name)
        try:
            given = function(*map(_batch, rows), context)
        except Exception as e:
            raise MergeFunctionError(
                f"the merge function {name} raised {type(e).__name__}: {e}",
                remedy="correct the function; nothing of this merge was kept.", function=name,
            ) from e  # fmt: skip
        return self._checked(given, new, data)

    def _by_column(
        self, old: pa.Table, new: pa.Table, data: Sequence[str], before: pa.Array, after: pa.Array
    ) -> pa.Table:
        by_name = dict(self.columns)
        newer = None
        if before is not None:
            newer = record_merger.not_older(before, after)
        rest = _rest("x" if before is not None else None)
        out = []
        for name in new.column_names:
            if name in data and name not in self.fixed:
                column = combine_column(
                    by_name.get(name, rest), one_array(old.column(name)),
                    one_array(new.column(name)), newer,
                )  # fmt: skip
                out.append(column)
            else:
                out.append(new.column(name))
        return pa.table(out, schema=new.schema)

    def _checked(self, given: object, new: pa.Table, data: Sequence[str]) -> Merged:
        deleted = None
        if isinstance(given, Merged):
            given, deleted = given.rows, given.deleted
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        if not isinstance(given, pa.Table):
            raise self._wrong(f"returned a {type(given).__name__}, not a RecordBatch, Table or Merged")
        try:
            rows = checked_table(given)
        except SchemaError as e:
            raise self._wrong(f"returned invalid rows: {e.message}") from None
        if rows.num_rows != new.num_rows:
            raise self._wrong(f"returned {rows.num_rows} rows for {new.num_rows} pairs")
        unknown = [n for n in rows.column_names if n not in data]
        if unknown:
            raise self._wrong(f"returned a column {unknown[0]!r}, which the records do not have")
        if deleted is not None:
            deleted = one_array(deleted)
            if not pa.types.is_boolean(deleted.type) or len(deleted) != new.num_rows or deleted.null_count:
                raise self._wrong(
                    "returned invalid deletion flags: one boolean per pair is needed, without nulls"
                )
        out = []
        for wanted in new.schema:
            if wanted.name not in rows.column_names:
                out.append(new.column(wanted.name))
                continue
            column = rows.column(wanted.name)
            if column.type != wanted.type:
                try:
                    column = column.cast(wanted.type)
                except pa.ArrowException as e:
                    raise self._wrong(
                        f"returned {wanted.name!r} as {column.type}, which cannot be cast to {wanted.type}: {e}"
                    ) from e
            if wanted.name in self.fixed and not column.equals(new.column(wanted.name)):
                raise self._wrong(
                    f"changed {wanted.name!r}, which is part of the record key or partition path"
                )
            out.append(column)
        return Merged(pa.table(out, schema=new.schema), deleted)

    def _wrong(self, text: str) -> MergeFunctionError:
        return MergeFunctionError(
            f"the merge function {self.function} {text}",
            remedy="see MergeFunction in hudi_format.merge.user_merger for the required result.",
            function=self.function,
        )


def _rest(ordering: str | None) -> str:
    """Expression of columns without one of their own."""
    return "latest" if ordering else "last"


def _nested(rows: pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    column = nested_column(rows, name)
    if column is None:
        raise SchemaError(f"the records have no ordering column {name!r}", column=name)
    return column


def _batch(rows: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([one_array(c) for c in rows.columns], schema=rows.schema)


def custom_rule(text: str, fixed: Sequence[str] = ()) -> MergeRule:
    """Rule of a user-defined merge, from the text of the option `hudi.merge`.

    The function will be imported and run where the rule is used, so `text` is what the caller trusts: what a table
    says of itself goes through `hudi_timeline.options.allowed_functions` first.

    Raises:
        InvalidOptionError: as `parse_merge`.
    """
    parse_merge(text)
    return MergeRule("CUSTOM", Order.LATER, Order.LATER, custom=text, fixed=tuple(fixed))


@cache
def custom_of(rule: MergeRule) -> CustomMerge | None:
    """The user-defined merge of a rule; None for rules of Apache Hudi."""
    if not rule.custom:
        return None
    merge = parse_merge(rule.custom)
    return replace(merge, fixed=rule.fixed)


def among_stored(rule: MergeRule) -> MergeRule:
    """The rule for records that are all stored: its `insert`, if it has one, is not called."""
    merge = custom_of(rule)
    return rule if merge is None or not merge.insert else replace(rule, custom=replace(merge, insert="").text)


# --- references ------------------------------------------------------------------------------------------


def merge_text(merge: str | Mapping[str, str] | Callable[..., object]) -> str:
    """Value of the option `hudi.merge` for a text, mapping or function.

    Raises:
        InvalidOptionError: a function that others cannot import: a lambda, one inside another, one of a script.
    """
    if isinstance(merge, str):
        return merge
    if isinstance(merge, Mapping):
        named = {k: merge_text(v) if callable(v) else v for k, v in merge.items()}
        return json.dumps(named, ensure_ascii=False)
    name = getattr(merge, "__qualname__", type(merge).__name__)
    module = getattr(merge, "__module__", "")
    what = "a lambda" if name.endswith("<lambda>") else f"{module}:{name}"
    if not isinstance(merge, FunctionType) or "<" in name or module == "__main__":
        raise InvalidOptionError(
            f"{what} cannot be a table's merge function: executors and later readers could not import it",
            remedy="define it with def in a module that is installed everywhere, and give the function or "
            "'module:name'; or give expressions such as {'count': 'sum'}.",
            option=MERGE,
        )
    return f"{module}:{name}"


def parse_merge(text: str) -> CustomMerge:
    """The merge of an option or property: `module:name`, or a JSON object of expressions.

    Raises:
        InvalidOptionError: neither of these, or an expression that there is not.
    """
    text = text.strip()
    if text.startswith("{"):
        try:
            given = loads(text)
        except (ValueError, RecursionError) as e:
            raise InvalidOptionError(
                f"{MERGE} is not a JSON object: {e}",
                remedy='give \'module:name\' of a Python function, or a JSON object such as {"count": "sum"}.',
                option=MERGE,
            ) from None
        if ":" in str(given.get("function")):
            return _with_function(given)
        wrong = [v for v in given.values() if v not in NAMES]
        if wrong or not given:
            raise InvalidOptionError(
                f"{MERGE} has an unknown expression {wrong[0]!r}" if wrong else f"{MERGE} names no column",
                remedy=f"use {', '.join(NAMES)}.", option=MERGE,
            )  # fmt: skip
        return CustomMerge(columns=tuple(sorted(given.items())))
    return CustomMerge(function=_reference(text))


def _reference(text: object) -> str:
    module, colon, name = str(text).strip().partition(":")
    # Each part on its own: ".module" would be relative to whatever imports it.
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise InvalidOptionError(
            f"{MERGE}={text!r} is not a function reference",
            remedy='give \'module:name\' of a Python function, or a JSON object such as {"count": "sum"}.',
            option=MERGE,
        )
    return f"{module}:{name}"


def _with_function(given: Mapping[str, object]) -> CustomMerge:
    """The merge of an object that names a function, and perhaps one for new records, and properties."""
    properties = given.get("properties", {})
    unknown = sorted(given.keys() - {"function", "insert", "properties"})
    if (
        unknown
        or not isinstance(properties, Mapping)
        or not all(isinstance(v, str) for v in properties.values())
    ):
        raise InvalidOptionError(
            f"{MERGE} names a function and {unknown[0]!r}" if unknown else f"properties of {MERGE} are no texts",
            remedy="give function, insert and properties, which has texts.", option=MERGE,
        )  # fmt: skip
    insert = _reference(given["insert"]) if given.get("insert") else ""
    return CustomMerge(
        _reference(given["function"]), insert=insert, properties=tuple(sorted(properties.items()))
    )


@cache
def load_function(reference: str) -> MergeFunction:
    """The function at `module:name`.

    Raises:
        InvalidOptionError: it cannot be imported here.
    """
    return imported(reference, MERGE)


# --- records of one key, one after the other -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chains:
    """All records of each key, to merge into the stored row one by one.

    So a table gives the same rows whether records were merged when they were written or when they are read.
    """

    custom: CustomMerge
    ordering: str | None

    def resolve(self, entries: Entries) -> Resolved:
        groups = key_groups(entries.keys)
        order = np.argsort(groups, kind="stable")
        order = order[np.searchsorted(groups[order], 0) :]  # rows without a key are dropped
        one = entries if np.array_equal(order, np.arange(len(entries))) else entries.take(order)
        sorted_groups = groups[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = sorted_groups[1:] != sorted_groups[:-1]
        starts = np.flatnonzero(first)
        counts = np.diff(np.append(starts, len(order)))
        return Resolved(one, one.keys.take(pa.array(starts)), order[starts + counts - 1], starts, counts)

    def alone(self, resolved: Resolved, unseen: np.ndarray) -> tuple[Entries, np.ndarray]:
        assert resolved.starts is not None
        assert resolved.counts is not None
        chosen = np.flatnonzero(unseen)
        chosen = chosen[np.argsort(resolved.places[chosen])]
        rows, alive = self.fold(None, resolved.entries, resolved.starts[chosen], resolved.counts[chosen])
        left, at = np.flatnonzero(alive), pa.array(chosen)
        kinds = np.zeros(len(chosen), np.uint8)
        lasts = pa.array(resolved.starts[chosen] + resolved.counts[chosen] - 1)
        ordering = None if resolved.entries.ordering is None else resolved.entries.ordering.take(lasts)
        all_of = Entries(rows, resolved.keys.take(at), ordering, kinds)
        return all_of.take(left), resolved.places[chosen][left]

    def fold(
        self, stored: pa.Table | None, entries: Entries, starts: np.ndarray, counts: np.ndarray
    ) -> tuple[pa.Table, np.ndarray]:
        """Rows merged with the records of their keys, and the numbers of surviving ones.

        Args:
            stored: the rows that they begin with; None for nothing.
            starts, counts: for each row its records, one at least.
        """
        n = len(starts)
        schema = entries.rows.schema
        pool = [schema.empty_table() if stored is None else with_marks(stored, schema, None)]
        size = pool[0].num_rows
        at = np.arange(n) if stored is not None else np.zeros(n, np.int64)  # the row of the pool that stands
        alive = np.full(n, stored is not None)
        known = entries.kinds == STORED
        deletes = record_merger.deletes_of(entries.kinds) & ~known
        base = size
        pool.append(entries.rows)
        size += entries.rows.num_rows

        def put(rows: np.ndarray, made: Merged) -> None:
            """Let rows that were made stand for some."""
            nonlocal size
            at[rows] = size + np.arange(len(rows))
            pool.append(made.rows)
            size += len(rows)
            if made.deleted is not None:
                alive[rows] = ~made.deleted.to_numpy(zero_copy_only=False)

        for turn in range(int(counts.max()) if n else 0):
            active = np.flatnonzero(counts > turn)
            records = starts[active] + turn
            gone = deletes[records]
            alive[active[gone]] = False
            active, records = active[~gone], records[~gone]
            meets = alive[active]
            fresh = active[~meets]
            at[fresh] = base + records[~meets]
            alive[fresh] = True
            unknown = ~known[records[~meets]]
            if self.custom.insert and unknown.any():
                fresh = fresh[unknown]
                new = pa.array(records[~meets][unknown])
                keys = one_array(entries.keys.take(new))
                put(fresh, self.custom.inserted(entries.rows.take(new), keys, self.ordering))
            pairs, later = active[meets], records[meets]
            if not len(pairs):
                continue
            old = pa.concat_tables(pool).take(pa.array(at[pairs]))
            picked = pa.array(later)
            keys = one_array(entries.keys.take(picked))
            put(pairs, self.custom.merge(old, entries.rows.take(picked), keys, self.ordering))
        if size == base + entries.rows.num_rows and stored is None and np.array_equal(at, np.arange(size)):
            return entries.rows, alive
        at = np.where(alive, at, 0) if size else at
        table = pa.concat_tables(pool)
        return (table.take(pa.array(at)) if size else entries.rows.slice(0, 0)), alive
