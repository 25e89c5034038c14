"""Apache Hudi's SQL validators, on any engine's SQL.

Each query is asked of the changed partitions, before and after the write, with `<TABLE_NAME>` in place of the table.
What counts is what Apache Hudi 0.15 computes: two results are "equal" if the distinct rows that both have are as many
as the rows of the one before, so that a result with rows that stand twice never is, and one that only grew always is.
Unlike there, the partitions that a write only replaces or deletes are among the changed ones, and bulk_insert is
checked too.

Source: SqlQueryEqualityPreCommitValidator and its siblings of Apache Hudi 0.15; SparkValidatorUtils.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hudi_format.config import WriteConfig
from hudi_format.config.heeded import OTHER_THAN_BEFORE, SAME_BEFORE_AND_AFTER, SINGLE_VALUE
from hudi_format.errors import InvalidOptionError, ValidationError

VARIABLE = "<TABLE_NAME>"
EQUAL, UNEQUAL, SINGLE = "equality", "inequality", "single value"
_OPTIONS = {EQUAL: SAME_BEFORE_AND_AFTER, UNEQUAL: OTHER_THAN_BEFORE, SINGLE: SINGLE_VALUE}


class Queries(Protocol):
    """SQL of an engine over two tables, `before` and `after`, by names of its own.

    A query that the engine cannot run gives a ValueError with its words, in one line.
    """

    before: str
    after: str

    def check(self, sql: str) -> None:
        """Raises ValueError where the query cannot be understood."""
        ...

    def compare(self, first: str, second: str) -> tuple[int, int, int]:
        """The rows of both queries, and the distinct rows that both have (SQL's INTERSECT)."""
        ...

    def values(self, sql: str) -> list[tuple[str | None, ...]]:
        """The first two rows as Java's text of their values."""
        ...


@dataclass(frozen=True)
class SqlCheck:
    """One query of a validator; `expected` of a single value."""

    kind: str
    query: str
    expected: str = ""

    @property
    def option(self) -> str:
        return _OPTIONS[self.kind]

    def on(self, table: str) -> str:
        return self.query.replace(VARIABLE, table)


def sql_checks(config: WriteConfig) -> tuple[SqlCheck, ...]:
    """The queries of the validators that the options name.

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
                    f"{check.option}: {query!r} asks nothing of {VARIABLE}, so it says nothing about the write",
                    remedy=f"name the table {VARIABLE} in it.",
                    option=check.option,
                )
            out.append(check)
    return tuple(out)


def check_queries(checks: Sequence[SqlCheck], queries: Queries) -> None:
    """Refuse queries that the engine does not understand, before anything is written.

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
    """Ask every query.

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
