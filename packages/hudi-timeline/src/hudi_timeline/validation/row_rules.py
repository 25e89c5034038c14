"""Row rules: conditions that every written row must meet.

    hudi.write.rules = fare_known: fare >= 0; city <> ''

A rule is broken by every row for which it is not true: by false and by null alike, so `fare is null or fare >= 0`
lets nulls pass.  On Spark a rule is an expression of Spark SQL; without a JVM it is a filter of this project
(`scan.predicate`), or, if it is more than that and DuckDB is installed, an expression of DuckDB's SQL.  Rows that are
deletes (`_hoodie_is_deleted`) are not looked at.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.errors import (
    HudiError,
    InvalidOptionError,
    MissingColumnError,
    PartitionPathError,
    UnsupportedError,
    ValidationError,
)
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.key_generator import SIMPLE, KeySpec
from hudi_format.keygen.record_keys import absent, nested_column, partition_paths
from hudi_format.merge.payloads import IS_DELETED
from hudi_format.schema.evolution import conform
from hudi_timeline.options.write_options import RULES
from hudi_timeline.reading.filters import make_predicate
from hudi_timeline.validation.precommit import SHOWN, refused
from hudi_timeline.validation.sql_validators import connect, fetched

RECORD_KEY_RULE, ORDERING_RULE, PARTITION_RULE = "record_key", "ordering_value", "partition_path"
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*:(?![:=])\s*(.*)", re.DOTALL)
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|[^;'"`]+|;|.""", re.DOTALL)
_ROW = "_hudi_row"


@dataclass(frozen=True)
class RowRule:
    """A row condition: SQL text, or a pyarrow expression on the local engine."""

    name: str
    condition: str | pc.Expression

    @property
    def reason(self) -> str:
        return f"not true: {' '.join(str(self.condition).split())}"


def rules_of(text: str, more: Mapping[str, str | pc.Expression] | None = None) -> tuple[RowRule, ...]:
    """Rules of an option's text, and rules given by name.

    Raises:
        InvalidOptionError: two rules of one name, one without a condition, or no mapping.
    """
    if more is not None and not isinstance(more, Mapping):
        raise InvalidOptionError(
            f"rules are a mapping of names and conditions, not a {type(more).__name__}",
            remedy="give a dict such as {'paid': 'fare >= 0'}.",
            option=RULES,
        )
    found = [_named(part) for part in _parts(text)]
    found += [RowRule(name, condition) for name, condition in (more or {}).items()]
    names = [r.name for r in found]
    for rule in found:
        if isinstance(rule.condition, str) and not rule.condition.strip():
            raise InvalidOptionError(
                f"rule {rule.name!r} has no condition",
                remedy="write name: condition, such as paid: fare >= 0.",
                option=RULES,
            )
        if names.count(rule.name) > 1:
            raise InvalidOptionError(
                f"two rules have the name {rule.name!r}", remedy="give each a name of its own.", option=RULES
            )
    return tuple(found)


def _parts(text: str) -> list[str]:
    """Text parts between semicolons outside of quotes."""
    parts = [""]
    for piece in _PIECE.findall(text):
        if piece == ";":
            parts.append("")
        else:
            parts[-1] += piece
    return [p.strip() for p in parts if p.strip()]


def _named(text: str) -> RowRule:
    match = _NAMED.fullmatch(text)
    return RowRule(match[1], match[2].strip()) if match else RowRule(" ".join(text.split()), text)


class RowRules:
    """Rules over Arrow rows of one schema, on the local engine."""

    def __init__(self, rules: Sequence[RowRule], schema: pa.Schema) -> None:
        """Rules of a schema's rows.

        Raises:
            MissingColumnError, SchemaError: a rule names columns that are not there, or does not fit their types.
            InvalidOptionError: a text that cannot be understood.
        """
        self._rules = tuple(rules)
        self._schema = schema
        self._expressions: dict[str, pc.Expression] = {}
        self._sql: dict[str, str] = {}
        for rule in rules:
            try:
                self._expressions[rule.name] = make_predicate(rule.condition, schema).expression
            except HudiError as e:
                e.message = f"rule {rule.name!r}: {e.message}"
                if not isinstance(rule.condition, str):
                    raise
                self._sql[rule.name] = self._as_sql(rule.condition, e)

    def _as_sql(self, condition: str, refusal: HudiError) -> str:
        """The condition as DuckDB SQL; the filter language's error counts where DuckDB refuses it."""
        try:
            self._holding(self._schema.empty_table(), condition)
        except UnsupportedError:
            refusal.remedy += ' With DuckDB, rules may be any of its SQL: pip install "hudi-timeline[sql]".'
            raise refusal from refusal.__cause__
        except ValueError as e:
            refusal.message += f" (and DuckDB says: {e})"
            raise refusal from refusal.__cause__
        return condition

    def _holding(self, rows: pa.Table, condition: str) -> np.ndarray:
        """Numbers of the rows for which DuckDB evaluates the condition to true."""
        connection = connect("such a rule")
        try:
            connection.register("incoming", _numbered(rows))
            connection.execute("SET enable_external_access = false")
            found = fetched(connection, f"SELECT {_ROW} FROM incoming WHERE ({condition}\n)")
            return found.column(0).to_numpy()  # type: ignore[no-any-return]
        finally:
            connection.close()

    def broken(self, rows: pa.Table) -> np.ndarray:
        """Number of the first violated rule per row, -1 for none."""
        out = np.full(rows.num_rows, -1, np.int64)
        numbered = _numbered(rows)
        for number, rule in enumerate(self._rules):
            if rule.name in self._sql:
                holds = self._holding(rows, self._sql[rule.name])
            else:
                holds = numbered.filter(self._expressions[rule.name]).column(_ROW).to_numpy()
            bad = np.ones(rows.num_rows, np.bool_)
            bad[holds] = False
            out[bad & (out < 0)] = number
        out[_deletes(rows)] = -1
        return out


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))


def _deletes(rows: pa.Table) -> np.ndarray:
    if IS_DELETED not in rows.column_names:
        return np.zeros(rows.num_rows, np.bool_)
    flags = pc.fill_null(rows.column(IS_DELETED), False)
    return flags.to_numpy()  # type: ignore[no-any-return]


# --- rows that cannot be keyed ---------------------------------------------------------------------------


class RowChecks(Protocol):
    """Built-in checks of incoming rows; part of `hudi_timeline.writing.engine.PrepareTask`.

    Attributes:
        schema: the columns to write, in their types.
        key_spec: record key and partition path.
        ordering_field: must not be null in any row where `check_ordering`.
        stored_keys: the rows have their meta columns, which say key and partition path.
        storage_level: Spark's name of the level at which the evaluated rows are kept.
    """

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def key_spec(self) -> KeySpec: ...

    @property
    def ordering_field(self) -> str | None: ...

    @property
    def check_ordering(self) -> bool: ...

    @property
    def stored_keys(self) -> bool: ...

    @property
    def storage_level(self) -> str: ...


def key_problems(rows: pa.Table, task: RowChecks) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Rows with an invalid key, ordering value or partition path.

    Returns:
        For each row the number of its problem, -1 for none; rule and reason of each problem.
    """
    out = np.full(rows.num_rows, -1, np.int64)
    problems: list[tuple[str, str]] = []
    rows = rows.combine_chunks()

    def found(mask: np.ndarray, rule: str, reason: str) -> None:
        if (mask & (out < 0)).any():
            out[mask & (out < 0)] = len(problems)
            problems.append((rule, reason))

    spec = task.key_spec
    if task.stored_keys or not rows.num_rows:
        return out, problems
    if not spec.auto:
        texts = [to_text(_column(rows, name), zone=spec.timestamp_zone) for name in spec.key_fields]
        gone = [absent(t) for t in texts]
        if all(g is not None for g in gone):
            fields = ", ".join(repr(f) for f in spec.key_fields)
            mask = np.logical_and.reduce([g for g in gone if g is not None])
            found(mask, RECORD_KEY_RULE, f"the record key, made of {fields}, is null or empty")
    if task.check_ordering and task.ordering_field is not None:
        column = _column(rows, task.ordering_field)
        if column.null_count:
            mask = column.is_null().to_numpy(zero_copy_only=False)
            found(mask, ORDERING_RULE, f"the ordering field {task.ordering_field!r} is null")
    if all(kind == SIMPLE for kind in spec.field_kinds):
        for mask, reason in _unsafe_partitions(rows, task):
            found(mask, PARTITION_RULE, reason)
    return out, problems


def _unsafe_partitions(rows: pa.Table, task: RowChecks) -> list[tuple[np.ndarray, str]]:
    try:
        partition_paths(rows, task.key_spec)
    except PartitionPathError:
        pass
    else:
        return []
    # Some value is unsafe: each combination of values is tried by itself.
    codes = np.zeros(rows.num_rows, np.int64)
    for name in task.key_spec.partition_fields:
        values = to_text(_column(rows, name), zone=task.key_spec.timestamp_zone).dictionary_encode()
        numbers = pc.fill_null(values.indices.cast(pa.int64()), len(values.dictionary)).to_numpy()
        codes = np.unique(codes * (len(values.dictionary) + 1) + numbers, return_inverse=True)[1]
    out = []
    _, first = np.unique(codes, return_index=True)
    for code, row in enumerate(first):
        try:
            partition_paths(rows.slice(int(row), 1), task.key_spec)
        except PartitionPathError as e:
            out.append((codes == code, e.message))
    return out


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = nested_column(rows, name)
    if column is None:
        raise MissingColumnError(
            f"column {name!r} is not in the data",
            remedy=f"write rows with it; the columns are {', '.join(rows.column_names)}.",
            column=name,
        )
    return one_array(column)


# Separate bad rows from good ones before a write, without a JVM, in one pass over a stream.

ID, INSTANT = "_hudi_quarantine_id", "_hudi_quarantine_instant"
OPERATION, RULE, REASON = "_hudi_quarantine_operation", "_hudi_quarantine_rule", "_hudi_quarantine_reason"
OWN = (ID, INSTANT, OPERATION, RULE, REASON)
BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Screening:
    """Settings of the row checks.

    Attributes:
        rules: of the rows to write; none of a delete's.
        task: schema and keys of the write.
        keep_bad: bad rows are kept for the quarantine, those that cannot be keyed among them; else they are refused.
        most: more bad rows than this are refused.
        operation: for the quarantine.
    """

    rules: tuple[RowRule, ...]
    task: RowChecks
    keep_bad: bool
    most: int | None = None
    operation: str = ""

    @property
    def columns(self) -> list[str]:
        """Columns of rejected rows that are kept."""
        return [n for n in self.task.schema.names if n not in OWN]

    def check(self, counts: Mapping[str, int], sample: Mapping[str, list[str]]) -> None:
        """Raise for invalid rows that are not to be kept.

        Raises:
            ValidationError: the rule that most rows break, how many, and some of their keys.
        """
        total = sum(counts.values())
        if not total or (self.keep_bad and (self.most is None or total <= self.most)):
            return
        rule = max(counts, key=lambda r: counts[r])
        error = refused(rule, counts[rule], sample.get(rule, []), what=f"rule {rule!r} finds")
        if len(counts) > 1:
            others = ", ".join(f"{r!r} {n:,}" for r, n in counts.items() if r != rule)
            error.message += f"; others: {others}"
        if self.keep_bad:
            error.message += f"; the quarantine takes {self.most:,} rows at most, and there are {total:,}"
        raise error


class Screened(Protocol):
    """Valid rows, separated from the invalid ones.

    Attributes:
        data: the good rows.
        counts: bad rows by rule; whole once `data` was evaluated.
    """

    @property
    def data(self) -> Any: ...

    @property
    def counts(self) -> Mapping[str, int]: ...

    def bad_rows(self, instant: str) -> Any:
        """The invalid rows, with the columns `OWN` before their own, which become nullable.

        Args:
            instant: of the write that they were part of.
        """
        ...

    def tasks(self) -> int:
        """Number of tasks for writing the invalid rows."""
        ...


@dataclass
class LocalScreened:
    """Screening that spills invalid rows to a temporary file, so that input may be a stream."""

    source: pa.RecordBatchReader | pa.Table
    screening: Screening
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._sample: dict[str, list[str]] = {}
        self._rules = RowRules(self.screening.rules, self.screening.task.schema)
        self._file = tempfile.TemporaryFile(prefix="hudi-quarantine-")  # noqa: SIM115  lives as long as this
        self._sink: pa.ipc.RecordBatchStreamWriter | None = None
        self._is_whole = False
        schema = pa.schema(
            [self.screening.task.schema.field(n).with_nullable(True) for n in self.screening.columns]
        )
        self._kept = pa.schema([pa.field(RULE, pa.string()), pa.field(REASON, pa.string()), *schema])
        if isinstance(self.source, pa.Table):
            self.data: pa.RecordBatchReader | pa.Table = self._whole(self.source)
        else:
            self.data = pa.RecordBatchReader.from_batches(self.source.schema, self._stream(self.source))

    def _whole(self, rows: pa.Table) -> pa.Table:
        good = [self._good(b) for b in rows.to_batches(max_chunksize=BATCH_ROWS)]
        self.screening.check(self.counts, self._sample)
        return pa.Table.from_batches(good, rows.schema) if self.counts else rows

    def _stream(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            good = self._good(batch)
            if self.counts and not self.screening.keep_bad:
                for rest in rows:  # nothing is written any more, only counted
                    self._good(rest)
                self.screening.check(self.counts, self._sample)
            yield good
        self.screening.check(self.counts, self._sample)

    def _good(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        task = self.screening.task
        rows = conform(pa.Table.from_batches([batch]), task.schema)
        broken = self._rules.broken(rows)
        causes = [(r.name, r.reason) for r in self.screening.rules]
        if self.screening.keep_bad:
            unkeyed, problems = key_problems(rows, task)
            broken = np.where(unkeyed >= 0, unkeyed + len(causes), broken)
            causes += problems
        bad = np.flatnonzero(broken >= 0)
        if not len(bad):
            return batch
        self._keep(rows.take(pa.array(bad)), broken[bad], causes)
        return batch.filter(pa.array(broken < 0))

    def _keep(self, rows: pa.Table, broken: np.ndarray, causes: list[tuple[str, str]]) -> None:
        for number in np.unique(broken).tolist():
            rule = causes[number][0]
            self.counts[rule] += int((broken == number).sum())
            sample = self._sample.setdefault(rule, [])
            if len(sample) < SHOWN:
                some = np.flatnonzero(broken == number)[: SHOWN - len(sample)]
                sample += key_texts(rows.take(pa.array(some)), self.screening.task)
        if not self.screening.keep_bad:
            return
        if self._sink is None:
            self._sink = pa.ipc.new_stream(self._file, self._kept)
        texts = [pa.array([causes[n][i] for n in broken.tolist()], pa.string()) for i in (0, 1)]
        kept = rows.select(self.screening.columns)
        self._sink.write_table(pa.table([*texts, *kept.columns], schema=self._kept))

    def bad_rows(self, instant: str) -> pa.RecordBatchReader:
        if self._sink is None:
            raise ValidationError("there are no bad rows to keep")
        if not self._is_whole:
            # Once: the next close would write the stream's end where the file is read, over its begin.
            self._sink.close()
            self._is_whole = True
        self._file.seek(0)
        return pa.RecordBatchReader.from_batches(quarantine_schema(self._kept), self._numbered(instant))

    def _numbered(self, instant: str) -> Iterator[pa.RecordBatch]:
        number = 0
        schema = quarantine_schema(self._kept)
        for batch in pa.ipc.open_stream(self._file):
            n = batch.num_rows
            ids = pa.array([f"{instant}_{i}" for i in range(number, number + n)], pa.string())
            same = [pa.repeat(v, n) for v in (instant, self.screening.operation)]
            yield pa.RecordBatch.from_arrays([ids, *same, *batch.columns], schema=schema)
            number += n

    def tasks(self) -> int:
        return 1


def quarantine_schema(kept: pa.Schema) -> pa.Schema:
    """Columns of the quarantine: its own (rule, reason, ...) and those of the rows."""
    return pa.schema([*(pa.field(n, pa.string()) for n in OWN[:3]), *kept])


def key_texts(rows: pa.Table, task: RowChecks) -> list[str]:
    """Record keys for a message."""
    columns = []
    for name in task.key_spec.key_fields:
        column = nested_column(rows.combine_chunks(), name)
        if column is not None:
            columns.append([str(v) for v in to_text(column).to_pylist()])
    return [":".join(parts) for parts in zip(*columns, strict=True)]
