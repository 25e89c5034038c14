"""Merge laws: rows must not depend on the order and repetition of writes.

| law | says | where it fails |
|---|---|---|
| commutative | two records with different ordering values may come in either order | late data changes results |
| ties | so may two with equal ones | so do concurrent writers with equal ordering values |
| associative | records may be brought together before they meet the stored row | compaction changes results |
| idempotent | a record that comes twice is as one | a write that is tried again changes results |

Records are made up from the schema, or are rows of a table, given out as versions of one key.  A law that fails
comes with the smallest records found that show it.

Source: RFC-22 of Apache Hudi, "CRDT support"; the spec's section on ordering fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array, python_rows, python_value, python_values
from hudi_format.errors import MissingColumnError, SchemaError, UnsupportedError
from hudi_format.keygen.record_keys import nested_column
from hudi_format.merge import record_merger
from hudi_format.merge.log_entries import Entries, Resolver
from hudi_format.merge.log_records import OnePerKey
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.user_merger import Chains, custom_of
from hudi_format.schema.meta_fields import META_COLUMNS

# Records to try the laws of a merge on: made up, made simpler, and shown.

# Few values, so that records tie, repeat and lack values often; among them the ends of what is usual.
_WHOLE = (-1, 0, 1, 2, 3, 7)
# Sums of these depend on their order by a bit; NaN is neither smaller nor greater than anything.
_FRACTIONS = (-1.0, 0.0, 0.1, 0.2, 0.3, float("nan"))
_TEXT = ("", "a", "b", "ab", "é")
_NULLS = 0.25


def made_up(schema: pa.Schema, rng: np.random.Generator, rows: int, ordering: str | None) -> pa.Table:
    """Random rows of a schema, with an ordering field that is never null.

    Raises:
        UnsupportedError: a column of a type that no values are made of.
    """
    root = ordering.partition(".")[0] if ordering else None
    columns = [_column(f.type, rng, rows, nulls=f.name != root) for f in schema]
    return pa.table(columns, schema=schema)


def _column(kind: pa.DataType, rng: np.random.Generator, rows: int, *, nulls: bool = True) -> pa.Array:
    mask = rng.random(rows) < (_NULLS if nulls else 0)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        counts = rng.integers(0, 3, rows)
        values = _column(kind.value_type, rng, int(counts.sum()))
        parts = np.split(np.arange(len(values)), np.cumsum(counts)[:-1]) if rows else []
        flat = values.to_pylist()
        return pa.array([None if m else [flat[i] for i in p] for p, m in zip(parts, mask, strict=True)], kind)
    if pa.types.is_map(kind):
        keys = _column(kind.key_type, rng, rows, nulls=False).to_pylist()
        items = _column(kind.item_type, rng, rows).to_pylist()
        return pa.array([None if m else [(k, v)] for k, v, m in zip(keys, items, mask, strict=True)], kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        kids = [_column(f.type, rng, rows, nulls=nulls) for f in fields]
        return pa.StructArray.from_arrays(kids, fields=fields, mask=pa.array(mask))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = pa.array([_TEXT[i] for i in rng.integers(0, len(_TEXT), rows)], pa.string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = pa.array([_TEXT[i].encode() for i in rng.integers(0, len(_TEXT), rows)], pa.binary())
    elif pa.types.is_fixed_size_binary(kind):
        values = pa.array([bytes([i]) * kind.byte_width for i in rng.integers(0, 4, rows)], kind)
    elif pa.types.is_boolean(kind):
        values = pa.array(rng.random(rows) < 0.5)
    elif pa.types.is_floating(kind) and nulls:
        drawn = [_FRACTIONS[i] for i in rng.integers(0, len(_FRACTIONS), rows)]
        values = pa.array(np.array(drawn, np.float64), pa.float64())
    elif pa.types.is_decimal(kind):
        drawn = [_WHOLE[i] for i in rng.integers(0, len(_WHOLE), rows)]
        values = pa.array([Decimal(n).scaleb(-kind.scale) for n in drawn], kind)
    else:
        numbers = pa.array([_WHOLE[i] for i in rng.integers(0, len(_WHOLE), rows)], pa.int64())
        if pa.types.is_unsigned_integer(kind):
            numbers = pa.compute.abs(numbers)
        if pa.types.is_temporal(kind) and not pa.types.is_int64(kind):
            wide = pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind)
            if pa.types.is_time(kind):
                numbers = pa.compute.abs(numbers)
            numbers = numbers if wide or pa.types.is_date64(kind) else numbers.cast(pa.int32())
        try:
            values = numbers.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise UnsupportedError(
                f"generating values of type {kind} is not supported",
                remedy="check the merge on rows of a table, or omit the column.",
            ) from e
    values = values.cast(kind)
    return pa.compute.if_else(pa.array(mask), pa.scalar(None, kind), values)


def simpler(column: pa.ChunkedArray, others: Sequence[object]) -> list[pa.Array]:
    """Simpler columns of one value, simplest first, to shrink a counterexample."""
    value, kind = python_value(column[0]), column.type
    if value is None:
        return []
    plain: list[object] = [None]
    if isinstance(value, bool):
        plain += [False] if value else []
    elif isinstance(value, (int, float)):
        plain += [v for v in (0, 1, 2) if abs(v) < abs(value)]
    elif isinstance(value, (str, bytes, list)):
        plain += [value[:0], value[:1]] if value else []
    plain += [v for v in others if v is not None and v != value and repr(v) < repr(value)]
    out = []
    for tried in plain:
        if tried is None or tried != value:
            try:
                out.append(pa.array([tried], kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue
    return out


def shown(record: dict[str, object] | None) -> str:
    """Text of a record, without nulls."""
    if record is None:
        return "no row"
    given = [f"{name}={value!r}" for name, value in record.items() if value is not None]
    return "{" + ", ".join(given) + "}"


COMMUTATIVE, TIES, ASSOCIATIVE, IDEMPOTENT = "commutative", "ties", "associative", "idempotent"
LAWS = (COMMUTATIVE, TIES, ASSOCIATIVE, IDEMPOTENT)
_KEY = "\0key"
_SHRINKS = 400


@dataclass(frozen=True, slots=True)
class LawViolation:
    """Result for one law, with a counterexample where it is broken.

    Attributes:
        holds: whether no counterexample was found.
        cases: how many cases were tried.
        records: the records of the counterexample, in the order in which they come; None where it holds.
        one, other: what they come to in two ways that should be the same; None for no row.
        ways: what these two ways are.
    """

    law: str
    holds: bool
    cases: int
    records: tuple[dict[str, object], ...] | None = None
    one: dict[str, object] | None = None
    other: dict[str, object] | None = None
    ways: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        if self.holds:
            return f"{self.law}: holds in {self.cases:,} cases" if self.cases else f"{self.law}: not tested"
        assert self.records is not None
        lines = [f"{self.law}: broken"]
        lines += [f"  {name} = {shown(r)}" for name, r in zip("abc", self.records, strict=False)]
        lines += [f"  {self.ways[0]} gives {shown(self.one)}", f"  {self.ways[1]} gives {shown(self.other)}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class LawReport:
    """Results for all laws."""

    merge: str
    findings: tuple[LawViolation, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the broken laws."""
        return tuple(f.law for f in self.findings if not f.holds)

    def __str__(self) -> str:
        return "\n".join([self.merge, *map(str, self.findings)])


def check_laws(
    rule: MergeRule,
    schema: pa.Schema,
    *,
    ordering: str | None = None,
    records: pa.Table | None = None,
    deletes: bool = False,
    cases: int = 2000,
    seed: int = 0,
) -> LawReport:
    """Test the laws of a merge on generated or real records.

    Args:
        rule: the merge: one of `hudi_format.merge.payloads`, or of `custom.custom_rule`.
        schema: data columns of the records.
        ordering: the ordering field.
        records: rows to try, in place of generated ones; columns as `schema`.
        deletes: some of the records are deletes.
        cases: how many groups of records to try, at most.

    Raises:
        SchemaError: no records or columns, no ordering field of that name, or columns that the merge does not fit.
        ValueError: no cases.
        MergeFunctionError: a function of the user's fails on some of them.
    """
    data = pa.schema([f.with_nullable(True) for f in schema if f.name not in META_COLUMNS])
    if cases < 1:
        raise ValueError("at least one case is needed")
    if not len(data):
        raise SchemaError("the schema has no columns to merge")
    if ordering and nested_column(data.empty_table(), ordering) is None:
        raise MissingColumnError(f"the ordering field {ordering!r} is missing", column=ordering)
    if custom := custom_of(rule):
        custom.check(data, ordering)
    rng = np.random.default_rng(seed)
    pool = made_up(data, rng, cases, ordering) if records is None else _some(records, data, rng, cases)
    trial = _Trial(rule, ordering)
    n = pool.num_rows
    picks = [rng.integers(0, n, cases) for _ in range(3)]
    marks = [rng.random(cases) < (0.2 if deletes else 0) for _ in range(3)]
    trio = [
        _Versions(_fixed(pool.take(pa.array(p)), pool.take(pa.array(picks[0])), rule), m)
        for p, m in zip(picks, marks, strict=True)
    ]
    return LawReport(rule.custom or rule.name, tuple(_finding(trial, law, trio) for law in LAWS))


def _some(records: pa.Table, data: pa.Schema, rng: np.random.Generator, most: int) -> pa.Table:
    if not records.num_rows:
        raise SchemaError(
            "the table has no records to merge", remedy="write some first, two of one key at least."
        )
    rows = records.select(data.names)
    if rows.num_rows > most:
        rows = rows.take(pa.array(np.sort(rng.choice(rows.num_rows, most, replace=False))))
    return pa.table(rows.columns, schema=data).combine_chunks()


def _fixed(rows: pa.Table, like: pa.Table, rule: MergeRule) -> pa.Table:
    """Rows as versions of one record: columns the merge must not change equal `like`'s."""
    for name in rule.fixed:
        if name in rows.column_names:
            rows = rows.set_column(rows.column_names.index(name), rows.field(name), like.column(name))
    return rows


@dataclass(frozen=True, slots=True)
class _Versions:
    """One record or none per case; `gone` marks deletes in input and absence in the result."""

    rows: pa.Table
    gone: np.ndarray

    def take(self, at: np.ndarray) -> _Versions:
        return _Versions(self.rows.take(pa.array(at)), self.gone[at])


class _Trial:
    """Merges versions of records as a table does."""

    def __init__(self, rule: MergeRule, ordering: str | None) -> None:
        self.rule = rule
        self.ordering = ordering
        custom = custom_of(rule)
        self.chains = None if custom is None else Chains(custom, ordering)

    def values(self, rows: pa.Table) -> pa.ChunkedArray | None:
        return rows.column(self.ordering) if self.ordering else None

    def kinds(self, what: _Versions) -> np.ndarray:
        deleted = record_merger.DELETE if self.rule.tombstones_compare else record_merger.DATA_DELETED
        kinds = np.where(what.gone, np.uint8(deleted), np.uint8(record_merger.DATA))
        marked = record_merger.deleted_kinds(what.rows, self.rule)
        return kinds if marked is None else np.maximum(kinds, marked)

    def logged(self, parts: Sequence[_Versions]) -> tuple[Entries, np.ndarray]:
        """The versions of each case merged into one or more log records."""
        n = parts[0].rows.num_rows
        rows = pa.concat_tables([p.rows for p in parts])
        keys = pa.array(np.tile(np.arange(n), len(parts))).cast(pa.string())
        kinds = np.concatenate([self.kinds(p) for p in parts])
        resolver: Resolver = self.chains or OnePerKey(self.rule)
        resolved = resolver.resolve(Entries(rows, keys, self.values(rows), kinds))
        return resolved.entries, np.argsort(resolved.keys.cast(pa.int64()).to_numpy(), kind="stable")

    def onto(self, stored: _Versions | None, parts: Sequence[_Versions]) -> _Versions:
        """The stored records after versions merged in a log meet them."""
        first = parts[0]
        n = first.rows.num_rows
        if self.chains is not None:
            return self._chained(stored, parts)
        entries, order = self.logged(parts)
        entries = entries.take(order)
        dead = record_merger.deletes_of(entries.kinds)
        if stored is None:
            return _Versions(entries.rows, dead)
        found = np.where(stored.gone, np.int64(-1), np.arange(n))
        met = record_merger.decide(
            found, self.rule, stored_ordering=self.values(stored.rows), ordering=entries.ordering,
            kinds=entries.kinds,
        )  # fmt: skip
        take = np.where(stored.gone, np.arange(n), met.take)
        columns = [
            record_merger.merged_column(
                stored.rows.column(c), entries.rows.column(c), take, fill=self.rule.fill_stored,
                stored_wins=met.stored_wins if self.rule.fill_stored else None,
                gap=self.rule.gap(c),
            )
            for c in stored.rows.column_names
        ]  # fmt: skip
        if self.rule.fill_stored and stored.gone.any():  # nothing is stored that could fill
            where = pa.array(np.where(stored.gone, np.arange(n) + n, np.arange(n)))
            merged = pa.table(columns, schema=stored.rows.schema)
            columns = pa.concat_tables([merged, entries.rows]).take(where).columns
        gone = np.where(stored.gone, dead, met.gone if met.gone is not None else False)
        return _Versions(pa.table(columns, schema=stored.rows.schema), gone)

    def _chained(self, stored: _Versions | None, parts: Sequence[_Versions]) -> _Versions:
        assert self.chains is not None
        n = parts[0].rows.num_rows
        rows = pa.concat_tables([p.rows for p in parts])
        kinds = np.concatenate([self.kinds(p) for p in parts])
        order = np.argsort(np.tile(np.arange(n), len(parts)), kind="stable")
        keys = pa.array(np.tile(np.arange(n), len(parts))).cast(pa.string())
        entries = Entries(rows, keys, None, kinds).take(order)
        starts, counts = np.arange(n) * len(parts), np.full(n, len(parts))
        if stored is None:
            out, alive = self.chains.fold(None, entries, starts, counts)
            return _Versions(out, ~alive)
        bare, there = np.flatnonzero(stored.gone), np.flatnonzero(~stored.gone)
        pieces = []
        for at, base in ((bare, None), (there, stored.rows.take(pa.array(there)))):
            pieces.append(self.chains.fold(base, entries, starts[at], counts[at]))
        back = np.argsort(np.concatenate([bare, there]), kind="stable")
        out = pa.concat_tables([p[0] for p in pieces]).take(pa.array(back))
        return _Versions(out, ~np.concatenate([p[1] for p in pieces])[back])

    def one_by_one(self, parts: Sequence[_Versions]) -> _Versions:
        """The stored records after the versions were written one by one."""
        stored = None
        for part in parts:
            stored = self.onto(stored, [part])
        assert stored is not None
        return stored


def _differ(one: _Versions, other: _Versions) -> np.ndarray:
    """Mask of cases with different outcomes."""
    out: np.ndarray = one.gone != other.gone
    both = ~one.gone & ~other.gone
    for name in one.rows.column_names:
        out |= both & ~_same(one_array(one.rows.column(name)), one_array(other.rows.column(name)))
    return out


def _same(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Mask of equal values; null equals null, NaN equals NaN."""
    if pa.types.is_nested(a.type):
        pairs = zip(python_values(a), python_values(b), strict=True)
        return np.fromiter((repr(x) == repr(y) for x, y in pairs), bool, len(a))
    equal = np.asarray(pa.compute.fill_null(pa.compute.equal(a, b), False))
    both_null = np.asarray(pa.compute.and_(a.is_null(nan_is_null=True), b.is_null(nan_is_null=True)))
    out: np.ndarray = equal | both_null
    return out


_Test = Callable[[_Trial, Sequence[_Versions]], tuple[_Versions, _Versions]]
_TESTS: dict[str, tuple[int, _Test, tuple[str, str]]] = {
    COMMUTATIVE: (
        2, lambda t, v: (t.one_by_one(v), t.one_by_one(v[::-1])), ("a, then b", "b, then a"),
    ),
    TIES: (2, lambda t, v: (t.one_by_one(v), t.one_by_one(v[::-1])), ("a, then b", "b, then a")),
    ASSOCIATIVE: (
        3, lambda t, v: (t.one_by_one(v), t.onto(v[0], _together(t, v[1:]))),
        ("a, then b, then c", "a, then b and c together"),
    ),
    IDEMPOTENT: (
        2, lambda t, v: (t.one_by_one(v), t.one_by_one([*v, v[-1]])), ("a, then b", "a, then b, then b again"),
    ),
}  # fmt: skip


def _together(trial: _Trial, parts: Sequence[_Versions]) -> list[_Versions]:
    """Versions that a write or log merges first.

    For a merge of the user's that is the merge itself; a delete among them stays a delete, so it is left out.
    """
    if trial.chains is None:
        return list(parts)
    return [trial.onto(parts[0], parts[1:])]


def _finding(trial: _Trial, law: str, trio: Sequence[_Versions]) -> LawViolation:
    width, test, ways = _TESTS[law]
    at = np.arange(trio[0].rows.num_rows)
    if law in (COMMUTATIVE, TIES):
        if trial.ordering is None and law == TIES:
            return LawViolation(law, True, 0)
        if trial.ordering is not None:
            at = np.flatnonzero(_equal_ordering(trial, trio) == (law == TIES))
    if (
        law == ASSOCIATIVE
    ):  # what is stored first is a row; a delete of the user's merge ends what is together
        away = trio[0].gone if trial.chains is None else trio[0].gone | trio[1].gone | trio[2].gone
        at = np.flatnonzero(~away)
    versions = [v.take(at) for v in trio[:width]]
    if not len(at):
        return LawViolation(law, True, 0)
    one, other = test(trial, versions)
    broken = np.flatnonzero(_differ(one, other))
    if not len(broken):
        return LawViolation(law, True, len(at))
    case = [v.take(broken[:1]) for v in versions]
    case = _shrunk(trial, law, test, case)
    one, other = test(trial, case)
    records = tuple(_record(v) or {"deleted": True} for v in case)
    return LawViolation(law, False, len(at), records, _record(one), _record(other), ways)


def _equal_ordering(trial: _Trial, versions: Sequence[_Versions]) -> np.ndarray:
    a, b = (one_array(trial.values(v.rows)) for v in versions[:2])
    return _same(a, b)


def _record(what: _Versions) -> dict[str, object] | None:
    return None if what.gone[0] else python_rows(what.rows)[0]


def _shrunk(trial: _Trial, law: str, test: _Test, case: list[_Versions]) -> list[_Versions]:
    """The case with simpler values that still breaks the law."""
    ties = None
    if law in (COMMUTATIVE, TIES) and trial.ordering is not None:
        ties = law == TIES

    def breaks(tried: list[_Versions]) -> bool:
        if ties is not None and bool(_equal_ordering(trial, tried)[0]) != ties:
            return False
        one, other = test(trial, tried)
        return bool(_differ(one, other)[0])

    left = _SHRINKS
    progress = True
    while progress and left > 0:
        progress = False
        for place, version in enumerate(case):
            for name in version.rows.column_names:
                if name in trial.rule.fixed:
                    continue
                others = [python_value(v.rows.column(name)[0]) for v in case]
                values = simpler(version.rows.column(name), others)
                for value in values if name != trial.ordering else [v for v in values if not v.null_count]:
                    left -= 1
                    rows = version.rows.set_column(
                        version.rows.column_names.index(name), version.rows.field(name), value
                    )
                    tried = [*case[:place], _Versions(rows, version.gone), *case[place + 1 :]]
                    if left > 0 and breaks(tried):
                        case, version, progress = tried, tried[place], True
                        break
    return case
