"""Values put into columns, beside Arrow's own replacement by a mask."""

import decimal

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.merge import _overlay
from hudi_format.merge.overlay import overlay, written_out

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


@pytest.mark.parametrize("kind", VALUES)
def test_as_arrow_replaces(kind):
    rng = np.random.default_rng(7)
    for n, hits, nulls, cut in [(1, 1, False, 0), (50, 7, False, 3), (50, 50, True, 5), (200, 60, True, 0),
                                (200, 1, False, 9), (9, 0, True, 1)]:  # fmt: skip
        old, new = column(kind, rng, n, nulls, cut), column(kind, rng, 30, nulls, cut)
        rows = np.sort(rng.choice(n, hits, replace=False)).astype(np.int64)
        source = rng.integers(0, 30, hits)
        values = (
            old.to_pylist()
        )  # what Arrow's `replace_with_mask` gives; before 24 it is wrong for slices of booleans
        for row, place in zip(rows, source, strict=True):
            values[row] = new[int(place)].as_py()
        want = pa.array(values, old.type)
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


def in_runs(kind: str, rng: np.random.Generator, n: int, words: int, nulls: bool, cut: int) -> pa.Array:
    """n values in runs of several lengths, dictionary-encoded."""
    type_, values = VALUES[kind]
    codes: list[int | None] = []
    while len(codes) < n + cut:
        code = None if nulls and rng.random() < 0.3 else int(rng.integers(0, words))
        codes += [code] * int(rng.choice([1, 2, 40, 1000]))
    return pa.DictionaryArray.from_arrays(
        pa.array(codes[: n + cut], pa.int32()), pa.array(values[-words:], type_)
    ).slice(cut)


@pytest.mark.parametrize("kind", ["text", "bytes", "large text", "long"])
def test_a_dictionary_is_written_out_with_the_values_in_their_places(kind):
    rng = np.random.default_rng(3)
    type_ = VALUES[kind][0]
    for n, hits, words, nulls, cut in [(1, 1, 1, False, 0), (5000, 70, 1, False, 3), (5000, 70, 1, True, 0),
                                       (3000, 3000, 3, True, 5), (5000, 300, 5, False, 7), (400, 1, 5, True, 9),
                                       (9, 0, 2, True, 1), (2500, 0, 1, False, 0), (0, 0, 1, False, 4)]:  # fmt: skip
        old, new = in_runs(kind, rng, n, words, nulls, cut), column(kind, rng, 30, nulls, cut)
        rows = np.sort(rng.choice(n, hits, replace=False)).astype(np.int64)
        source = rng.integers(0, 30, hits)
        plain = old.cast(type_)
        found = overlay(old, new, rows, source)
        found.validate(full=True)
        assert found.type == type_
        assert found.equals(overlay(plain, new, rows, source))
        table = pa.table({"a": pa.chunked_array([old, old]), "b": pa.array(range(2 * n))})
        assert written_out(table).equals(pa.table({"a": pa.chunked_array([plain, plain]), "b": table["b"]}))


def test_dictionaries_of_other_forms_are_written_out_too():
    rows, source = np.array([1]), np.array([0])
    new = pa.array(["z"])
    null_word = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["a", None]))
    assert overlay(null_word, new, rows, source).to_pylist() == ["a", "z", "a"]
    assert overlay(null_word, new, rows[:0], source[:0]).to_pylist() == ["a", None, "a"]
    short = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int8()), pa.array(["a"]))
    assert overlay(short, new, rows, source).to_pylist() == ["a", "z", "a"]
    nothing = pa.DictionaryArray.from_arrays(
        pa.array([None, None, None], pa.int32()), pa.array([], pa.string())
    )
    assert overlay(nothing, new, rows, source).to_pylist() == [None, "z", None]


def test_codes_that_are_not_in_the_dictionary_are_refused():
    data, words = np.zeros(4, np.uint8), np.array([0, 2, 4], np.int32)
    none = np.zeros(0, np.int64)
    given = (None, data, words, data, words, none, none)
    assert _overlay.repeated_size(np.array([0, 1, 1], np.int32), *given) == 6
    for bad in ([2], [-1], [0, 1 << 30]):
        with pytest.raises(ValueError, match="codes"):
            _overlay.repeated_size(np.array(bad, np.int32), *given)
        valid = np.array([1] * (len(bad) - 1) + [0], np.uint8)
        assert _overlay.repeated_size(np.array(bad, np.int32), valid, *given[1:]) == 2 * (len(bad) - 1)
    out, places = np.zeros(7, np.uint8), np.zeros(4, np.int32)
    with pytest.raises(ValueError, match="size"):
        _overlay.put_repeated(np.array([0, 1, 1], np.int32), *given, out, places)
    for bad in ([0, 2, 5], [2, 0, 4], [-1, 2, 4]):
        with pytest.raises(ValueError, match="offsets"):
            _overlay.repeated_size(
                np.zeros(1, np.int32), None, data, np.array(bad, np.int32), data, words, none, none
            )


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
    with pytest.raises(ValueError, match=r"rows|row "):
        _overlay.repeated_size(np.zeros(4, np.int32), None, old, text, new, few, rows, source)


def test_offsets_that_leave_their_data_are_refused():
    rows = np.zeros(1, np.int64)
    data, good = np.zeros(4, np.uint8), np.array([0, 2, 4], np.int32)
    for bad in ([0, 2, 5], [2, 0, 4], [-1, 2, 4]):
        with pytest.raises(ValueError, match="offsets"):
            _overlay.text_size(data, np.array(bad, np.int32), data, good, rows, rows)
        with pytest.raises(ValueError, match="offsets"):
            _overlay.text_size(data, good, data, np.array(bad, np.int32), rows, rows)
