"""Apache Hudi's SQL validators, on any SQL engine.

Each query is asked of the changed partitions, before and after the write, with `<TABLE_NAME>` in place of the table.
What counts is what Apache Hudi 0.15 computes: two results are "equal" if the distinct rows that both have are as many
as the rows of the one before, so that a result with rows that stand twice never is, and one that only grew always is.
Unlike there, the partitions that a write only replaces or deletes are among the changed ones, and bulk_insert is
checked too.

Source: SqlQueryEqualityPreCommitValidator and its siblings of Apache Hudi 0.15; SparkValidatorUtils.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hudi_format.errors import InvalidOptionError, UnsupportedError, ValidationError
from hudi_format.keygen.java_text import to_text
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.write_options import OTHER_THAN_BEFORE, SAME_BEFORE_AND_AFTER, SINGLE_VALUE
from hudi_timeline.reading.scan import Scan

VARIABLE = "<TABLE_NAME>"
EQUAL, UNEQUAL, SINGLE = "equality", "inequality", "single value"
_OPTIONS = {EQUAL: SAME_BEFORE_AND_AFTER, UNEQUAL: OTHER_THAN_BEFORE, SINGLE: SINGLE_VALUE}


class Queries(Protocol):
    """SQL of an engine over two tables, `before` and `after`.

    A query that the engine cannot run gives a ValueError with its words, in one line.
    """

    before: str
    after: str

    def check(self, sql: str) -> None:
        """Parse a query.

        Raises ValueError where the query cannot be understood.
        """
        ...

    def compare(self, first: str, second: str) -> tuple[int, int, int]:
        """Row counts of both queries, and the number of common distinct rows (SQL's INTERSECT)."""
        ...

    def values(self, sql: str) -> list[tuple[str | None, ...]]:
        """Java's text of the values in the first two rows."""
        ...


@dataclass(frozen=True)
class SqlCheck:
    """One query of a validator; `expected` is for single values."""

    kind: str
    query: str
    expected: str = ""

    @property
    def option(self) -> str:
        return _OPTIONS[self.kind]

    def on(self, table: str) -> str:
        return self.query.replace(VARIABLE, table)


def sql_checks(config: WriteConfig) -> tuple[SqlCheck, ...]:
    """Queries of the validators named in the options.

    Raises:
        InvalidOptionError: a query without the table, or a single value without what is expected.
    """
    out = []
    texts = {
        EQUAL: config.equality_queries,
        UNEQUAL: config.inequality_queries,
        SINGLE: config.single_value_queries,
    }
    for kind, text in texts.items():
        for part in (p.strip() for p in text.split(";")):
            if not part:
                continue
            query, *rest = part.split("#") if kind == SINGLE else [part]
            if kind == SINGLE and len(rest) != 1:
                raise InvalidOptionError(
                    f"{SINGLE_VALUE}: {part!r} does not have the form query#value",
                    remedy="give the expected value after one #.",
                    option=SINGLE_VALUE,
                )
            check = SqlCheck(kind, query.strip(), rest[0] if rest else "")
            if VARIABLE not in check.query:
                raise InvalidOptionError(
                    f"{check.option}: {query!r} does not query {VARIABLE}, so it says nothing about the write",
                    remedy=f"name the table {VARIABLE} in it.",
                    option=check.option,
                )
            out.append(check)
    return tuple(out)


def check_queries(checks: Sequence[SqlCheck], queries: Queries) -> None:
    """Refuse queries that the engine cannot parse, before anything is written.

    Raises:
        InvalidOptionError: with the engine's words.
    """
    for check in checks:
        try:
            queries.check(check.on(queries.after))
        except ValueError as e:
            raise InvalidOptionError(
                f"{check.option}: {check.query!r} cannot be run: {e}",
                remedy="correct the query; nothing was written.",
                option=check.option,
            ) from e


def run_queries(checks: Sequence[SqlCheck], queries: Queries) -> None:
    """Run every query.

    Raises:
        ValidationError: the first answer that is not as it must be; the query is the rule.
    """
    for check in checks:
        try:
            _run(check, queries)
        except ValueError as e:  # the engine's: a division by zero, say
            raise ValidationError(
                f"the {check.kind} query {check.query!r} failed: {e}",
                remedy="correct the rows or the query; nothing was committed.",
                rule=check.query,
            ) from e


def _run(check: SqlCheck, queries: Queries) -> None:
    if check.kind == SINGLE:
        _single(check, queries)
    else:
        before, after, both = queries.compare(check.on(queries.before), check.on(queries.after))
        if (both == before) != (check.kind == EQUAL):
            wanted = "the same rows" if check.kind == EQUAL else "other rows"
            raise _refused(
                check,
                f"must give {wanted} before and after the write, and gives {before:,} before and {after:,} after, "
                f"of which {both:,} distinct ones are in both",
            )


def _single(check: SqlCheck, queries: Queries) -> None:
    rows = queries.values(check.on(queries.after))
    if len(rows) != 1 or len(rows[0]) != 1:
        found = "several rows" if len(rows) > 1 else f"{len(rows[0])} columns" if rows else "no row"
        raise _refused(check, f"must give one value, and gives {found}")
    if rows[0][0] != check.expected:
        raise _refused(
            check, f"must give {check.expected}, and gives {rows[0][0] if rows[0][0] is not None else 'null'}"
        )


def _refused(check: SqlCheck, what: str) -> ValidationError:
    return ValidationError(
        f"the {check.kind} query {check.query!r} {what}",
        remedy="correct the rows or the query; nothing was committed.",
        rule=check.query,
    )


# SQL without a JVM: DuckDB, an optional package.
#
# The two states are streamed into tables of DuckDB's own, which moves what does not fit in memory to disk.

BEFORE, AFTER = "hudi_before", "hudi_after"
_PLAIN = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating,
          pa.types.is_date, pa.types.is_decimal)  # fmt: skip


def connect(what: str) -> Any:
    """A private in-memory database.

    Args:
        what: needs it.

    Raises:
        UnsupportedError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise UnsupportedError(
            f"{what} needs DuckDB on the local engine, which is not installed",
            remedy='pip install "hudi-timeline[sql]".',
        ) from None
    # Nothing of this machine but what is given to it; and no progress bar of its own.
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})


class DuckQueries:
    """SQL over the states before and after a write; see `Queries`."""

    before, after = BEFORE, AFTER

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self, sql: str) -> None:
        self._run(f"SELECT * FROM ({sql}\n) LIMIT 0")

    def compare(self, first: str, second: str) -> tuple[int, int, int]:
        def rows(sql: str) -> int:
            return int(self._run(f"SELECT count(*) FROM ({sql}\n)").column(0)[0].as_py())

        return rows(first), rows(second), rows(f"({first}\n) INTERSECT ({second}\n)")

    def values(self, sql: str) -> list[tuple[str | None, ...]]:
        columns = [_texts(c.combine_chunks()) for c in self._run(f"SELECT * FROM ({sql}\n) LIMIT 2").columns]
        return list(zip(*columns, strict=True)) if columns else []

    def _run(self, sql: str) -> pa.Table:
        return fetched(self._connection, sql)


def fetched(connection: Any, sql: str) -> pa.Table:
    """Rows of a query.

    Raises:
        ValueError: DuckDB's refusal, in one line.
    """
    import duckdb

    try:
        return pa.RecordBatchReader.from_stream(connection.sql(sql)).read_all()
    except duckdb.Error as e:
        raise ValueError(str(e).strip().splitlines()[0]) from e


def _texts(column: pa.Array) -> list[str | None]:
    """Java's toString of values, for comparison with expected values."""
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        # Sums of whole numbers; Spark has them as long.
        return [None if v is None else str(int(v)) for v in column.to_pylist()]
    if any(known(column.type) for known in _PLAIN):
        return to_text(column).to_pylist()  # type: ignore[no-any-return]
    return [None if v is None else str(v) for v in column.to_pylist()]


@contextmanager
def duck_queries(before: Scan | pa.Table, after: Scan | pa.Table) -> Iterator[DuckQueries]:
    """SQL over two states, released at the end.

    Raises:
        UnsupportedError: DuckDB is not installed.
    """
    connection = connect("a SQL validator")
    try:
        with tempfile.TemporaryDirectory(prefix="hudi-sql-") as folder:
            connection.execute("SET temp_directory = ?", [folder])
            for name, rows in ((BEFORE, before), (AFTER, after)):
                source = rows if isinstance(rows, pa.Table) else rows.to_batches()
                connection.register("incoming", source)
                connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM incoming")
                connection.unregister("incoming")
            # From here on SQL of the user's runs: it sees these tables, and no file of this machine.
            connection.execute("SET enable_external_access = false")
            yield DuckQueries(connection)
    finally:
        connection.close()
