"""Merge expressions: the merged value of one column, chosen by a word.

`old` is the value so far, `new` that of the record that came later.  Null means "nothing said", but for `last`,
`first` and `latest`, which take values as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import SchemaError

_ORDERED = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal, pa.types.is_string,
    pa.types.is_large_string, pa.types.is_binary, pa.types.is_boolean,
)  # fmt: skip
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_LISTS = (pa.types.is_list, pa.types.is_large_list)
_FLAGS = (pa.types.is_boolean,)


@dataclass(frozen=True, slots=True)
class Expression:
    """One merge expression.

    Attributes:
        combine: old and new values, and where the later record is not older by its ordering value.
        takes: checks of types, one of which must hold; () for every type.
        ordered: it asks for the ordering value.
    """

    doc: str
    combine: Callable[[pa.Array, pa.Array, pa.Array | None], pa.Array]
    takes: tuple[Callable[[pa.DataType], bool], ...] = ()
    ordered: bool = False


def _pick(mask: pa.Array | None, yes: pa.Array, no: pa.Array) -> pa.Array:
    if mask is None:
        return yes
    if not pa.types.is_nested(yes.type):
        return pc.if_else(mask, yes, no)
    use = mask.to_numpy(zero_copy_only=False)
    at = np.where(use, np.arange(len(yes)), np.arange(len(yes)) + len(yes))
    return pa.concat_arrays([yes, no]).take(pa.array(at))


def _sum(old: pa.Array, new: pa.Array, _: pa.Array | None) -> pa.Array:
    both = pc.and_(old.is_valid(), new.is_valid())
    kind = old.type
    # Arrow gives a sum one digit more, which 128 bits may not have whatever the values are.
    full = pa.types.is_decimal(kind) and kind.precision == 38
    wide = pa.decimal256(38, kind.scale) if full else kind
    try:
        total = pc.add_checked(old.cast(wide), new.cast(wide))
        if pa.types.is_decimal(kind):
            total = total.cast(kind)
    except pa.ArrowInvalid as e:
        raise SchemaError(f"a sum does not fit {kind}: {e}", remedy="give the column a wider type.") from e
    return pc.if_else(both, total, pc.coalesce(old, new))


def _lists(unique: bool) -> Callable[[pa.Array, pa.Array, pa.Array | None], pa.Array]:
    def combine(old: pa.Array, new: pa.Array, _: pa.Array | None) -> pa.Array:
        """The elements of both, row by row."""
        n = len(old)
        parts = [a.flatten() for a in (old, new)]
        lengths = [pc.fill_null(pc.list_value_length(a), 0).to_numpy().astype(np.int64) for a in (old, new)]
        rows = np.concatenate([np.repeat(np.arange(n), c) for c in lengths])
        values = pa.concat_arrays(parts)
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values.take(pa.array(order))
        if unique and len(rows):
            keep = _first_of_each(rows, values)
            rows, values = rows[keep], values.take(pa.array(keep))
        counts = np.bincount(rows, minlength=n)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        nothing = pc.and_(old.is_null(), new.is_null())
        wide = pa.types.is_large_list(old.type)
        made = (pa.LargeListArray if wide else pa.ListArray).from_arrays(
            pa.array(offsets, pa.int64() if wide else pa.int32()), values, type=old.type,
            mask=nothing if nothing.true_count else None,
        )  # fmt: skip
        return made

    return combine


def _first_of_each(rows: np.ndarray, values: pa.Array) -> np.ndarray:
    """Ascending places of each row's distinct values, at their first occurrence."""
    if pa.types.is_nested(values.type):
        seen: set[tuple[int, str]] = set()
        keep = []
        for place, (row, value) in enumerate(zip(rows.tolist(), values.to_pylist(), strict=True)):
            mark = (row, repr(value))
            if mark not in seen:
                seen.add(mark)
                keep.append(place)
        return np.array(keep, dtype=np.int64)
    codes = values.dictionary_encode("encode").indices.to_numpy()
    pair = rows.astype(np.int64) * (int(codes.max()) + 1) + codes
    return np.sort(np.unique(pair, return_index=True)[1])


EXPRESSIONS = {
    "last": Expression("the later record's value", lambda o, n, _: n),
    "first": Expression("the first value", lambda o, n, _: o),
    "latest": Expression(
        "the value with the greater ordering value; of equal ones the later",
        lambda o, n, newer: _pick(newer, n, o), ordered=True,
    ),
    "non_null": Expression("the later record's value unless it is null", lambda o, n, _: _filled(n, o)),
    "sum": Expression("the sum of both", _sum, _NUMBERS),
    "min": Expression("the smaller", lambda o, n, _: _least(o, n, -1), _ORDERED),
    "max": Expression("the greater", lambda o, n, _: _least(o, n, 1), _ORDERED),
    "union": Expression("the distinct elements of both lists", _lists(True), _LISTS),
    "append": Expression("the elements of both lists", _lists(False), _LISTS),
    "any": Expression("true if one is true", lambda o, n, _: _flags(pc.or_kleene, o, n), _FLAGS),
    "all": Expression("true if both are true", lambda o, n, _: _flags(pc.and_kleene, o, n), _FLAGS),
}  # fmt: skip
NAMES = tuple(EXPRESSIONS)


def _filled(first: pa.Array, second: pa.Array) -> pa.Array:
    return _pick(first.is_valid(), first, second)


def _least(old: pa.Array, new: pa.Array, sign: int) -> pa.Array:
    if pa.types.is_boolean(old.type):
        return _flags(pc.or_kleene if sign > 0 else pc.and_kleene, old, new)
    compare = pc.greater if sign > 0 else pc.less
    wins = pc.fill_null(compare(old, new), False)
    # NaN is greater than all numbers, as Spark has it; compared, it is false either way.
    if pa.types.is_floating(old.type):
        nan = pc.fill_null(pc.is_nan(old if sign > 0 else new), False)
        wins = pc.or_(wins, pc.and_(nan, old.is_valid()))
    return _pick(pc.or_(wins, new.is_null()), old, new)


def _flags(how: Callable[[pa.Array, pa.Array], pa.Array], old: pa.Array, new: pa.Array) -> pa.Array:
    return how(pc.coalesce(old, new), pc.coalesce(new, old))


def needs_ordering(name: str) -> bool:
    return EXPRESSIONS[name].ordered


def check_expression(column: str, name: str, kind: pa.DataType, ordering: str | None) -> None:
    """Check that an expression is applicable to a column.

    Raises:
        SchemaError: it takes no values of that type, or asks for an ordering field that there is not.
    """
    expression = EXPRESSIONS[name]
    if expression.takes and not any(check(kind) for check in expression.takes):
        raise SchemaError(
            f"the merge expression {name!r} does not support type {kind} of column {column!r}", column=column,
            remedy="use last, first, latest or non_null, or a merge function.",
        )  # fmt: skip
    if expression.ordered and not ordering:
        raise SchemaError(
            f"{name!r} of column {column!r} needs ordering values, but the table has no ordering field",
            column=column, remedy="use last, or name the field in hoodie.datasource.write.precombine.field.",
        )  # fmt: skip


def combine_column(name: str, old: pa.Array, new: pa.Array, newer: pa.Array | None) -> pa.Array:
    """The merged values of one column, for pairs of records.

    Args:
        newer: per pair, whether the later record's ordering value is not smaller; None without one.
    """
    return EXPRESSIONS[name].combine(old, new, newer)
