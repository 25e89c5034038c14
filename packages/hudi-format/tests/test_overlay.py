"""Values put into columns, beside Arrow's own replacement by a mask."""

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.merge import _overlay
from hudi_format.merge.overlay import overlay

D = decimal.Decimal
VALUES = {
    "text": (pa.string(), ["", "a", "bcd", "é", "a longer text than the others"]),
    "bytes": (pa.binary(), [b"", b"\0", b"abc", b"\xff\xfe", b"x" * 40]),
    "large text": (pa.large_string(), ["", "a", "bcd", "é", "longer"]),
    "bool": (pa.bool_(), [True, False, True, True, False]),
    "byte": (pa.int8(), [1, 2, 3, -4, 5]),
    "int": (pa.int32(), [1, 2, 3, -4, 5]),
    "long": (pa.int64(), [1, 2, 3, -4, 1 << 60]),
    "double": (pa.float64(), [0.0, 1.5, -2.0, float("inf"), 1e300]),
    "timestamp": (pa.timestamp("us", "UTC"), [0, 1, 2, 3, 4]),
    "decimal": (pa.decimal128(20, 2), [D("1.00"), D("-2.50"), D("3.00"), D("0.00"), D("99.99")]),
    "fixed": (pa.binary(3), [b"abc", b"def", b"ghi", b"jkl", b"mno"]),
}


def column(kind: str, rng: np.random.Generator, n: int, nulls: bool, cut: int) -> pa.Array:
    """n values, as a slice that begins at `cut` of a longer array."""
    type_, values = VALUES[kind]
    picked = rng.integers(0, len(values), n + cut)
    out = pa.array([None if nulls and rng.random() < 0.3 else values[i] for i in picked], type_)
    return out.slice(cut)


@pytest.mark.req("PM-01")
@pytest.mark.parametrize("kind", VALUES)
def test_as_arrow_replaces(kind):
    rng = np.random.default_rng(7)
    for n, hits, nulls, cut in [(1, 1, False, 0), (50, 7, False, 3), (50, 50, True, 5), (200, 60, True, 0),
                                (200, 1, False, 9), (9, 0, True, 1)]:  # fmt: skip
        old, new = column(kind, rng, n, nulls, cut), column(kind, rng, 30, nulls, cut)
        rows = np.sort(rng.choice(n, hits, replace=False)).astype(np.int64)
        source = rng.integers(0, 30, hits)
        mask = np.isin(np.arange(n), rows)
        want = pc.replace_with_mask(old, pa.array(mask), new.take(pa.array(source)))
        found = overlay(old, new, rows, source)
        found.validate(full=True)
        assert found.equals(want)
        assert found.type == old.type


@pytest.mark.req("QR-09")
@pytest.mark.parametrize("kind", ["text", "long"])
def test_a_column_that_stays_the_same_is_not_copied(kind):
    old = column(kind, np.random.default_rng(1), 40, False, 0)
    rows = np.arange(0, 40, 3)
    assert overlay(old, old, rows, rows).buffers()[-1].address == old.buffers()[-1].address
    nulls = pa.array([None] * 39 + old.slice(39).to_pylist(), old.type)
    assert overlay(nulls, old, rows, rows).null_count == 26


@pytest.mark.parametrize(
    ("rows", "source"),
    [
        ([0, 0], [0, 0]),
        ([1, 0], [0, 0]),
        ([0, 4], [0, 0]),
        ([-1], [0]),
        ([0], [2]),
        ([0], [-1]),
        ([0, 1], [0]),
    ],
)
def test_places_that_are_not_there_are_refused(rows, source):
    rows, source = np.array(rows, np.int64), np.array(source, np.int64)
    old, new = np.zeros(16, np.uint8), np.zeros(8, np.uint8)
    with pytest.raises(ValueError, match=r"rows|row "):
        _overlay.put_words(old, new, 4, rows, source)
    text, few = np.zeros(5, np.int32), np.zeros(3, np.int32)
    with pytest.raises(ValueError, match=r"rows|row "):
        _overlay.text_size(old, text, new, few, rows, source)


def test_offsets_that_leave_their_data_are_refused():
    rows = np.zeros(1, np.int64)
    data, good = np.zeros(4, np.uint8), np.array([0, 2, 4], np.int32)
    for bad in ([0, 2, 5], [2, 0, 4], [-1, 2, 4]):
        with pytest.raises(ValueError, match="offsets"):
            _overlay.text_size(data, np.array(bad, np.int32), data, good, rows, rows)
        with pytest.raises(ValueError, match="offsets"):
            _overlay.text_size(data, good, data, np.array(bad, np.int32), rows, rows)
