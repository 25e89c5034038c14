"""Generated values of each type that a column may have: strategies of Hypothesis by Spark's name of the type."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Context, Decimal

import pyarrow as pa
from hypothesis import strategies as st

# Texts that mean something in keys and paths, the placeholders of null and empty among them.
_TEXTS = [
    "", "default", "__null__", "__empty__", "a b", "a/b", "x=y", "100%", "%41", "a:b,c:d", "\t\n", "'", "\\",
    "\U0001f6b2",
]  # fmt: skip
_DOUBLES = [0.0, -0.0, 1e7, 9999999.999, 1e-3, 9.999e-4, 1e22, 5e-324, 1.7976931348623157e308, 1 / 3]
_finite = st.floats(allow_nan=False, allow_infinity=False)


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top, exact = 10**precision - 1, Context(prec=60)
    whole = st.one_of(st.integers(-top, top), st.integers(-(10**6), 10**6))
    return whole.map(lambda n: exact.scaleb(n, -scale))


_moments = st.one_of(
    st.sampled_from(
        [datetime.min, datetime.max, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)]
    ),
    st.datetimes(),
)
_texts = st.one_of(
    st.sampled_from(_TEXTS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy]] = {
    "tinyint": (pa.int8(), _whole(8)),
    "smallint": (pa.int16(), _whole(16)),
    "int": (pa.int32(), _whole(32)),
    "bigint": (pa.int64(), _whole(64)),
    "boolean": (pa.bool_(), st.booleans()),
    "string": (pa.string(), _texts),
    "binary": (pa.binary(), st.binary(max_size=4)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), _moments.map(lambda m: m.replace(tzinfo=UTC))),
    "decimal(20,6)": (pa.decimal128(20, 6), _decimals(20, 6)),
    "decimal(38,10)": (pa.decimal128(38, 10), _decimals(38, 10)),
    "double": (pa.float64(), st.one_of(st.sampled_from(_DOUBLES), _finite)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "timestamp_ntz": (pa.timestamp("us"), _moments),
}
