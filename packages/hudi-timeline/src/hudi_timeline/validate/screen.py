"""Separate bad rows from good ones before a write, without a JVM, in one pass over a stream."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hudi_format.errors import ValidationError
from hudi_format.keys import nested_column
from hudi_format.schema.evolve import conform
from hudi_format.value_text import to_text
from hudi_timeline.engine.protocol import PrepareTask
from hudi_timeline.validate.functions import SHOWN, refused
from hudi_timeline.validate.rules import RowRule, RowRules, key_problems

ID, INSTANT = "_hudi_quarantine_id", "_hudi_quarantine_instant"
OPERATION, RULE, REASON = "_hudi_quarantine_operation", "_hudi_quarantine_rule", "_hudi_quarantine_reason"
OWN = (ID, INSTANT, OPERATION, RULE, REASON)
BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Screening:
    """What rows are looked at for.

    Attributes:
        rules: of the rows to write; none of a delete's.
        task: schema and keys of the write.
        keep_bad: bad rows are kept for the quarantine, those that cannot be keyed among them; else they are refused.
        most: more bad rows than this are refused.
        operation: for the quarantine.
    """

    rules: tuple[RowRule, ...]
    task: PrepareTask
    keep_bad: bool
    most: int | None = None
    operation: str = ""

    @property
    def columns(self) -> list[str]:
        """The columns of bad rows that are kept."""
        return [n for n in self.task.schema.names if n not in OWN]

    def check(self, counts: Mapping[str, int], sample: Mapping[str, list[str]]) -> None:
        """Refuse bad rows that are not to be kept.

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
    """Rows apart from bad ones.

    Attributes:
        data: the good rows.
        counts: bad rows by rule; whole once `data` was evaluated.
    """

    @property
    def data(self) -> Any: ...

    @property
    def counts(self) -> Mapping[str, int]: ...

    def bad_rows(self, instant: str) -> Any:
        """The bad rows with the columns `OWN` before their own, which are nullable.

        Args:
            instant: of the write that they were part of.
        """
        ...

    def tasks(self) -> int:
        """How many tasks writing the bad rows is worth."""
        ...


@dataclass
class LocalScreened:
    """Bad rows go to a temporary file as they are met, so that a stream stays one."""

    source: pa.RecordBatchReader | pa.Table
    screening: Screening
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._sample: dict[str, list[str]] = {}
        self._rules = RowRules(self.screening.rules, self.screening.task.schema)
        self._file = tempfile.TemporaryFile(prefix="hudi-quarantine-")  # noqa: SIM115  lives as long as this
        self._sink: pa.ipc.RecordBatchStreamWriter | None = None
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
        self._sink.close()
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
    """The columns of the quarantine: its own, rule and reason among them, and those of the rows."""
    return pa.schema([*(pa.field(n, pa.string()) for n in OWN[:3]), *kept])


def key_texts(rows: pa.Table, task: PrepareTask) -> list[str]:
    """Record keys for a message."""
    columns = []
    for name in task.key_spec.key_fields:
        column = nested_column(rows.combine_chunks(), name)
        if column is not None:
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            columns.append([str(v) for v in to_text(whole).to_pylist()])
    return [":".join(parts) for parts in zip(*columns, strict=True)]
