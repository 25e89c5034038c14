"""Conditions that a filter's text is made of, in the language of an engine.

The text is read once, where tables are read; engines differ in what they make of it: expressions of
Arrow here, columns in Spark.  All of them mean what Arrow's mean: a comparison with a null is null, one with NaN is
that of IEEE 754, and times without a zone beside instants are those of UTC.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import flags

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """A column, or a field of a nested one, with its type."""

    path: tuple[str, ...]
    type: pa.DataType

    @property
    def expression(self) -> pc.Expression:
        return pc.field(*self.path)

    def __str__(self) -> str:
        return ".".join(self.path)


class Conditions(Protocol[E]):
    """Maker of conditions; null is neither true nor false."""

    def compare(self, op: str, left: FilterColumn, right: FilterColumn | pa.Scalar) -> E:
        """Comparison by one of ==, !=, <, <=, >, >=."""

    def among(self, column: FilterColumn, values: Sequence[pa.Scalar]) -> E:
        """Whether a column has one of some values of one type, at least one; not null for a null."""

    def like(self, column: FilterColumn, pattern: str) -> E:
        """Whether a text fits a pattern of LIKE; a backslash stands before %, _ and itself only."""

    def is_null(self, column: FilterColumn) -> E: ...

    def is_valid(self, column: FilterColumn) -> E: ...

    def flag(self, column: FilterColumn) -> E:
        """A boolean column's own value."""

    def never(self) -> E: ...

    def negated(self, condition: E) -> E: ...

    def joined(self, conditions: Sequence[E], *, conjunction: bool) -> E:
        """All or any of some conditions, at least one."""


COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Comparisons of two expressions of an engine, by their signs."""


class ArrowConditions:
    """Conditions as expressions of Arrow."""

    def compare(self, op: str, left: FilterColumn, right: FilterColumn | pa.Scalar) -> pc.Expression:
        other = right.expression if isinstance(right, FilterColumn) else pc.scalar(right)
        return COMPARE[op](left.expression, other)

    def among(self, column: FilterColumn, values: Sequence[pa.Scalar]) -> pc.Expression:
        return column.expression.isin(pa.concat_arrays([pa.repeat(v, 1) for v in values]))

    def like(self, column: FilterColumn, pattern: str) -> pc.Expression:
        return pc.match_like(column.expression, pattern)

    def is_null(self, column: FilterColumn) -> pc.Expression:
        return column.expression.is_null()

    def is_valid(self, column: FilterColumn) -> pc.Expression:
        return column.expression.is_valid()

    def flag(self, column: FilterColumn) -> pc.Expression:
        return column.expression

    def never(self) -> pc.Expression:
        return pc.scalar(flags([False])[0])

    def negated(self, condition: pc.Expression) -> pc.Expression:
        return ~condition

    def joined(self, conditions: Sequence[pc.Expression], *, conjunction: bool) -> pc.Expression:
        """Conditions as a balanced tree, since Arrow recurses over expressions."""
        return paired(operator.and_ if conjunction else operator.or_, conditions)


def paired(join: Callable[[E, E], E], parts: Sequence[E]) -> E:
    """Parts joined as a balanced tree."""
    while len(parts) > 1:
        pairs = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]
