"""Comparing the rows of two engines: order-free and exact in types and values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without what no table format keeps: names of list and map items, nullability, large offsets."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, plain_type(f.type)) for f in kind])
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    # One instant, several spellings of one zone.
    if pa.types.is_timestamp(kind) and kind.tz in ("+00:00", "Z", "Etc/UTC"):
        return pa.timestamp(kind.unit, "UTC")
    return kind


def plain_schema(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Names and plain types, in order."""
    return [(f.name, plain_type(f.type)) for f in schema]


def assert_same_rows(
    got: pa.Table, want: pa.Table, keys: Sequence[str], *, ordered_columns: bool = True
) -> None:
    """Fail unless both tables hold the same columns, of the same types, and the same rows.

    Args:
        keys: columns that tell the rows apart, for the message; rows with one key are compared as a multiset.
        ordered_columns: whether the order of the columns counts.  Apache Hudi 0.15 puts partition columns
            last, 1.0.2 and hudi-rs leave them where they are in the table's schema.
    """
    left, right = plain_schema(got.schema), plain_schema(want.schema)
    if not ordered_columns:
        left.sort(key=lambda c: c[0])
        right.sort(key=lambda c: c[0])
    if left != right:
        raise AssertionError(
            f"columns differ\n  only got: {[c for c in left if c not in right]}\n"
            f"  only wanted: {[c for c in right if c not in left]}\n"
            f"  order got: {[n for n, _ in left]}\n  order wanted: {[n for n, _ in right]}"
        )
    names = [name for name, _ in right]
    ours, theirs = _rows(got, names), _rows(want, names)
    if ours == theirs:
        return
    extra, missing = ours - theirs, theirs - ours
    raise AssertionError(
        f"rows differ: {got.num_rows} got, {want.num_rows} wanted, {extra.total()} only in the first, "
        f"{missing.total()} only in the second\n{_differences(extra, missing, names, list(keys))}"
    )


def without_meta(table: pa.Table) -> pa.Table:
    """The table without Hudi's five columns."""
    return table.select([n for n in table.column_names if not n.startswith("_hoodie_")])


def _rows(table: pa.Table, names: list[str]) -> Counter[tuple[Any, ...]]:
    columns = [_values(table.column(n)) for n in names]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = plain_type(column.type)
    if pa.types.is_timestamp(kind) or pa.types.is_nested(kind) or pa.types.is_floating(kind):
        return [_frozen(v, kind) for v in column.to_pylist()]
    return list(column.to_pylist())


def _frozen(value: Any, kind: pa.DataType) -> Any:
    """A value that can be hashed and is equal to another exactly if both are the same to a user."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        if math.isnan(value):
            return "NaN"
        # 0.0 == -0.0, but they are not the same.
        return (value, math.copysign(1.0, value)) if value == 0 else value
    if pa.types.is_list(kind):
        return tuple(_frozen(v, kind.value_type) for v in value)
    if pa.types.is_map(kind):
        items = value.items() if isinstance(value, dict) else value
        frozen = [(_frozen(k, kind.key_type), _frozen(v, kind.item_type)) for k, v in items]
        return tuple(sorted(frozen, key=repr))
    if pa.types.is_struct(kind):
        return tuple(_frozen(value[f.name], f.type) for f in kind)
    if isinstance(value, Decimal):
        return str(value)
    return value


def _differences(
    extra: Counter[tuple[Any, ...]], missing: Counter[tuple[Any, ...]], names: list[str], keys: list[str]
) -> str:
    """The first rows at fault: by column where a key is on both sides, else whole."""
    places = [names.index(k) for k in keys if k in names]

    def by_key(rows: Counter[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        return {tuple(row[p] for p in places): row for row in rows}

    ours, theirs = by_key(extra), by_key(missing)
    lines = []
    for key in sorted(set(ours) | set(theirs), key=repr)[:5]:
        a, b = ours.get(key), theirs.get(key)
        if a is None or b is None:
            lines.append(f"  {key}: only {'got' if b is None else 'wanted'}: {a or b}")
            continue
        cells = [f"{n}: {x!r} != {y!r}" for n, x, y in zip(names, a, b, strict=True) if x != y]
        lines.append(f"  {key}: " + "; ".join(cells or ["number of copies"]))
    return "\n".join(lines)
