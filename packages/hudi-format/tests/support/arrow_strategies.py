"""Hypothesis strategies: types that a table stores, and rows of them."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

_FLAT = [
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", "UTC"), pa.timestamp("us"),
]  # fmt: skip
_NAMES = st.from_regex(r"\A[a-z_][a-z0-9_]{0,5}\Z")

flat_types = st.one_of(
    st.sampled_from(_FLAT),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s))),
)


def _structs(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.tuples(_NAMES, children, st.booleans())
    return st.lists(fields, min_size=1, max_size=3, unique_by=lambda f: f[0]).map(
        lambda fs: pa.struct([pa.field(n, k, nullable) for n, k, nullable in fs])
    )


stored_types = st.recursive(
    flat_types,
    lambda children: st.one_of(
        st.tuples(children, st.booleans()).map(lambda c: pa.list_(pa.field("element", c[0], c[1]))),
        st.tuples(children, st.booleans()).map(lambda c: pa.map_(pa.string(), pa.field("value", c[0], c[1]))),
        _structs(children),
    ),
    max_leaves=5,
)

stored_schemas = st.lists(
    st.tuples(_NAMES, stored_types, st.booleans()), min_size=1, max_size=5, unique_by=lambda f: f[0]
).map(lambda fs: pa.schema([pa.field(n, k, nullable) for n, k, nullable in fs]))


def values(kind: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    """Python values of a stored type."""
    found = _values(kind)
    return st.one_of(st.none(), found) if nullable else found


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pt.is_list(kind):
        return st.lists(values(kind.value_type, kind.value_field.nullable), max_size=3)
    if pt.is_map(kind):
        item = values(kind.item_type, kind.item_field.nullable)
        return st.dictionaries(st.text(max_size=3), item, max_size=3).map(lambda d: list(d.items()))
    if pt.is_struct(kind):
        return st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in kind})
    if pt.is_decimal(kind):
        most = 10**kind.precision - 1
        context = decimal.Context(prec=76)
        return st.integers(-most, most).map(lambda n: decimal.Decimal(n).scaleb(-kind.scale, context))
    if pt.is_timestamp(kind):
        zone = dt.UTC if kind.tz else None
        moments = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 1, 1))
        return moments.map(lambda m: m.replace(tzinfo=zone))
    plain: dict[pa.DataType, st.SearchStrategy[Any]] = {
        pa.bool_(): st.booleans(),
        pa.int32(): st.integers(-(2**31), 2**31 - 1),
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float32(): st.floats(width=32, allow_nan=False),
        pa.float64(): st.floats(allow_nan=False),
        pa.string(): st.text(max_size=6),
        pa.binary(): st.binary(max_size=6),
        pa.date32(): st.dates(),
    }
    return plain[kind]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows of a random stored schema."""
    schema = draw(stored_schemas)
    rows = st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in schema})
    return pa.Table.from_pylist(draw(st.lists(rows, max_size=6)), schema=schema)
