"""Records to try the laws of a merge on: made up, made simpler, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from hudi_format.errors import UnsupportedError

# Few values, so that records tie, repeat and lack values often; among them the ends of what is usual.
_WHOLE = (-1, 0, 1, 2, 3, 7)
# Sums of these depend on their order by a bit; NaN is neither smaller nor greater than anything.
_FRACTIONS = (-1.0, 0.0, 0.1, 0.2, 0.3, float("nan"))
_TEXT = ("", "a", "b", "ab", "é")
_NULLS = 0.25


def made_up(schema: pa.Schema, rng: np.random.Generator, rows: int, ordering: str | None) -> pa.Table:
    """Random rows of a schema; the ordering field is never null, as writes demand.

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
                f"no values of type {kind} are made up",
                remedy="check the merge on rows of a table, or leave the column out.",
            ) from e
    values = values.cast(kind)
    return pa.compute.if_else(pa.array(mask), pa.scalar(None, kind), values)


def simpler(column: pa.ChunkedArray, others: Sequence[object]) -> list[pa.Array]:
    """Columns of one value that is plainer than this one, plainest first."""
    value, kind = column[0].as_py(), column.type
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
    """A record as people read it: nulls are left out."""
    if record is None:
        return "no row"
    given = [f"{name}={value!r}" for name, value in record.items() if value is not None]
    return "{" + ", ".join(given) + "}"


__all__ = ["made_up", "shown", "simpler"]
