"""Key look-up, precombine and merge decisions against plain-Python references."""

import math
import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.errors import OrderingValueError, RecordKeyError, SchemaError
from hudi_format.merge import _keymerge
from hudi_format.merge.key_index import KeyIndex, precombine
from hudi_format.merge.payloads import payload_rule
from hudi_format.merge.record_merger import decide

# Lengths on all sides of the hash function's cases (4, 16, 32), and keys that differ in one place only.
keys = st.one_of(
    st.text(alphabet="ab", max_size=3),
    st.text(max_size=40),
    st.integers(0, 30).map("driver-0000-0000-{:04d}".format),
    st.sampled_from(["", "\x00", "\x00\x00", "é", "😀", "x" * 15, "x" * 16, "x" * 17, "x" * 33, "y" * 33]),
)
key_lists = st.lists(keys, max_size=60)


def last_row(texts):
    return {t: i for i, t in enumerate(texts) if t is not None}


@given(st.lists(st.one_of(st.none(), keys), max_size=60), st.lists(st.one_of(st.none(), keys), max_size=60))
def test_find_gives_the_last_row_with_the_key(known, asked):
    index = KeyIndex(pa.array(known, pa.string()))
    where = last_row(known)
    probes = asked + known
    want = [-1 if p is None else where.get(p, -1) for p in probes]
    found = index.find(pa.array(probes, pa.string()))
    assert found.dtype == np.int64
    assert found.tolist() == want
    assert index.found(pa.array(probes, pa.string())).tolist() == sorted({w for w in want if w >= 0})
    present = [k for k in known if k is not None]
    assert index.duplicates == (len(set(present)) < len(present))
    assert index.rows == len(known)


@given(key_lists, key_lists, st.integers(0, 10), st.integers(0, 20))
def test_slices_chunks_and_layouts_of_text_do_not_matter(known, asked, start, cut):
    want = KeyIndex(pa.array(known[start:], pa.string())).find(pa.array(asked, pa.string())).tolist()
    whole = pa.array(known, pa.string()).slice(min(start, len(known)))
    pieces = pa.chunked_array([whole.slice(0, cut), whole.slice(cut)])
    for form in (
        pieces,
        pieces.cast(pa.large_string()),
        whole.dictionary_encode(),
        whole.cast(pa.string_view()),
    ):
        probes = pa.chunked_array([pa.array(asked[:cut], pa.string()), pa.array(asked[cut:], pa.string())])
        assert KeyIndex(form).find(probes).tolist() == want
        assert KeyIndex(form).find(pa.array(asked, pa.large_string())).tolist() == want


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string()], ids=str)
def test_many_keys_looked_up_beside_as_many_others(layout):
    """So many that a filter of the hash table is asked first: keys that are there pass it, and none else is found."""
    known = [f"known-{n * 7919 % 20_000:05d}" for n in range(20_000)] + [None, "known-00003", ""]
    asked = [f"other-{n:07d}" for n in range(60_000)] + known[::-1] + [None, "known"]
    index, where = KeyIndex(pa.array(known, layout)), last_row(known)
    few = index.find(pa.array(asked[-40_000:-39_000], layout))  # without a filter yet
    want = [-1 if a is None else where.get(a, -1) for a in asked]
    for probes in (pa.array(asked, layout), pa.chunked_array([asked[:50_000], asked[50_000:]], layout)):
        assert index.find(probes).tolist() == want
        assert index.found(probes).tolist() == sorted({w for w in want if w >= 0})
    assert few.tolist() == want[-40_000:-39_000]
    assert index._words is not None
    assert index._words.any()


def test_empty_indexes_and_probes():
    assert KeyIndex(pa.chunked_array([], pa.string())).find(pa.array(["a"])).tolist() == [-1]
    assert KeyIndex(pa.array(["a"])).find(pa.chunked_array([], pa.string())).tolist() == []


def test_columns_that_are_not_text_are_refused():
    with pytest.raises(TypeError, match="int64"):
        KeyIndex(pa.array([1]))
    with pytest.raises(TypeError, match="binary"):
        KeyIndex(pa.array(["a"])).find(pa.array([b"a"]))


def test_one_index_serves_many_threads():
    texts = [f"key-{i}" for i in range(20_000)]
    index = KeyIndex(pa.array(texts[::2]))
    probes = pa.array(texts)
    want = np.where(np.arange(20_000) % 2 == 0, np.arange(20_000) // 2, -1)
    results = [None] * 4

    def run(i):
        results[i] = index.find(probes)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((r == want).all() for r in results)


def utf8(text):
    return text.encode()


def signed_bytes(data):
    return [b - 256 if b > 127 else b for b in data]


def java_double(value):
    """A sort key in the order of Double.compare."""
    if math.isnan(value):
        return (1, 0.0, 0)
    return (0, value, 0 if math.copysign(1, value) < 0 else 1)


surrogate_texts = st.text(alphabet="a\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4)
floats = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf]))
float32s = st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan]))
dates = st.dates()
moments = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
decimals = st.decimals(-(10**8), 10**8, places=3)
big_decimals = st.decimals(-(10**25), 10**25, places=5)

ORDERINGS = [
    pytest.param(pa.int8(), st.integers(-128, 127), None, id="int8"),
    pytest.param(pa.int32(), st.integers(-(2**31), 2**31 - 1), None, id="int32"),
    pytest.param(pa.int64(), st.integers(-(2**63), 2**63 - 1), None, id="int64"),
    pytest.param(pa.uint32(), st.integers(0, 2**32 - 1), None, id="uint32"),
    pytest.param(pa.uint64(), st.integers(0, 2**64 - 1), None, id="uint64"),
    pytest.param(pa.float32(), float32s, java_double, id="float32"),
    pytest.param(pa.float64(), floats, java_double, id="float64"),
    pytest.param(pa.bool_(), st.booleans(), None, id="bool"),
    pytest.param(pa.date32(), dates, None, id="date32"),
    pytest.param(pa.date64(), dates, None, id="date64"),
    pytest.param(pa.timestamp("us"), moments, None, id="timestamp"),
    pytest.param(pa.timestamp("ns"), moments, None, id="timestamp-ns"),
    pytest.param(pa.decimal128(12, 3), decimals, None, id="decimal"),
    pytest.param(pa.decimal128(38, 5), big_decimals, None, id="decimal-38"),
    pytest.param(pa.decimal256(50, 5), big_decimals, None, id="decimal-50"),
    pytest.param(pa.string(), st.one_of(surrogate_texts, st.text(max_size=12)), utf8, id="string"),
    pytest.param(pa.large_string(), surrogate_texts, utf8, id="large-string"),
    pytest.param(pa.binary(), st.binary(max_size=4), signed_bytes, id="bytes"),
    pytest.param(pa.dictionary(pa.int32(), pa.string()), surrogate_texts, utf8, id="dictionary"),
]


def survivors(texts, values):
    """What OverwriteWithLatestAvroPayload.preCombine leaves: the greatest, the later one among equals."""
    best = {}
    for row, text in enumerate(texts):
        if text not in best or values[row] >= values[best[text]]:
            best[text] = row
    return sorted(best.values())


@pytest.mark.req("PM-01", "PM-06", "TL-17")
@pytest.mark.parametrize(("kind", "values", "order"), ORDERINGS)
@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.sampled(8)
def test_the_greatest_ordering_value_survives_and_the_later_among_equals(kind, values, order, data):
    # Few keys and few values, so that both repeat.
    pool = data.draw(st.lists(values, min_size=1, max_size=5))
    rows = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(pool)), max_size=25))
    texts, chosen = [r[0] for r in rows], [r[1] for r in rows]
    column = pa.array(chosen, kind.value_type if pa.types.is_dictionary(kind) else kind).cast(kind)
    comparable = [order(v) for v in chosen] if order else chosen
    want = survivors(texts, comparable)
    assert precombine(pa.array(texts, pa.string()), column).tolist() == want
    middle = len(rows) // 2
    chunks = pa.chunked_array([column.slice(0, middle), column.slice(middle)], kind)
    assert precombine(pa.array(texts, pa.string()), chunks).tolist() == want


@pytest.mark.req("PM-07")
@given(key_lists)
def test_without_ordering_the_later_row_survives(texts):
    assert precombine(pa.array(texts, pa.string())).tolist() == sorted(last_row(texts).values())


def replaced(found, old, new):
    """The incoming row that each stored one becomes, where ordering values decide."""
    rule = payload_rule("EventTimeAvroPayload")
    return decide(found, rule, stored_ordering=old, ordering=new).take.tolist()


@pytest.mark.req("PM-08", "PM-02")
@pytest.mark.parametrize(("kind", "values", "order"), ORDERINGS)
@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.sampled(8)
def test_a_stored_row_stays_only_if_its_ordering_value_is_greater(kind, values, order, data):
    pool = data.draw(st.lists(values, min_size=1, max_size=5))
    some = st.sampled_from(pool)
    old = data.draw(st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), some)), max_size=20))
    new = data.draw(st.lists(st.tuples(st.sampled_from("abce"), some), max_size=6, unique_by=lambda r: r[0]))
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    key = order or (lambda v: v)
    where = last_row([r[0] for r in new])
    want = []
    for text, value in old:
        row = where.get(text, -1)
        stays = row >= 0 and value is not None and key(value) > key(new[row][1])
        want.append(-1 if stays else row)
    index = KeyIndex(pa.array([r[0] for r in new], pa.string()))
    old_keys = pa.array([r[0] for r in old], pa.string())
    old_values = pa.array([r[1] for r in old], plain).cast(kind)
    new_values = pa.array([r[1] for r in new], plain).cast(kind)
    found = index.find(old_keys)
    before = found.copy()
    assert replaced(found, old_values, new_values) == want
    assert (found == before).all()


@pytest.mark.req("PM-07")
def test_without_ordering_values_the_incoming_row_always_wins():
    index = KeyIndex(pa.array(["a", "b"]))
    for old, new in ((None, None), (pa.array([9, 9, 9]), None), (None, pa.array([1, 1]))):
        assert replaced(index.find(pa.array(["b", "x", "a"])), old, new) == [1, -1, 0]


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        (pa.array([5, 5], pa.int32()), pa.array([4, 6], pa.int64()), [-1, 1]),
        (pa.array([5.5, 5.5]), pa.array([5, 6]), [-1, 1]),
        (pa.array([1.5, 1.5], pa.float32()), pa.array([1.25, 1.75]), [-1, 1]),
        (pa.array([Decimal("1.5"), Decimal("1.5")]), pa.array([Decimal("1.25"), Decimal("1.75")]), [-1, 1]),
        (pa.array([2, 2], pa.timestamp("s")), pa.array([1999, 2001], pa.timestamp("ms", "UTC")), [-1, 1]),
        (pa.array(["b", "b"]), pa.array(["a", "c"], pa.large_string()), [-1, 1]),
        (pa.array([None, None]), pa.array(["a", "c"]), [0, 1]),
        (pa.array([None, None]), pa.array([1, 2]), [0, 1]),
        (pa.array([None, 7]), pa.array([1, 1]), [0, -1]),
    ],
)
def test_types_of_one_family_compare(old, new, want):
    assert replaced(np.arange(2), old, new) == want


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.array([1]), pa.array(["1"])),
        (pa.array([date(2024, 1, 1)]), pa.array([datetime(2024, 1, 1, tzinfo=UTC)])),
        (pa.array([True]), pa.array([1])),
    ],
)
def test_types_of_two_families_do_not_compare(old, new):
    with pytest.raises(SchemaError, match="not comparable"):
        replaced(np.arange(1), old, new)


@pytest.mark.parametrize("column", [pa.array([[1]]), pa.array([{"a": [1]}]), pa.array([1], pa.time64("us"))])
def test_types_without_an_order_are_refused(column):
    with pytest.raises(SchemaError, match="not comparable"):
        precombine(pa.array(["a"]), column)


def test_null_ordering_values_are_refused_with_count_and_first_keys():
    with pytest.raises(OrderingValueError, match=r"2 of 3 rows.*'b', 'c'") as e:
        precombine(pa.array(["a", "b", "c"]), pa.array([1, None, None]))
    assert e.value.details["first_keys"] == ["b", "c"]


def test_null_keys_are_refused_by_precombine():
    with pytest.raises(RecordKeyError, match="1 of 2 rows"):
        precombine(pa.array(["a", None]))


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="1 for 2"):
        precombine(pa.array(["a", "b"]), pa.array([1]))
    with pytest.raises(ValueError, match="one ordering value per row"):
        replaced(np.arange(1), pa.array([1, 2]), pa.array([1]))
    with pytest.raises(ValueError, match="no incoming row"):
        replaced(np.array([5]), pa.array([1]), pa.array([1]))


def test_the_kernel_refuses_buffers_that_do_not_fit():
    content = np.frombuffer(b"abc", np.uint8)
    slots = np.zeros(4, np.uint64)

    def text(*offsets, valid=None):
        return content, np.array(offsets, np.int64), valid

    for bad in (
        text(0, 4),
        text(-1, 3),
        text(2, 1),
        text(0, 9, 3),
        text(0, 3, valid=np.zeros(2, np.uint8)),
        text(),
    ):
        with pytest.raises(ValueError):
            _keymerge.build(bad, slots, 0)
        with pytest.raises(ValueError):
            _keymerge.find(text(0, 3), slots, 0, bad, None, np.zeros(1, np.int64), None)
        short = (bad[0], bad[1].astype(np.int32), bad[2])
        with pytest.raises(ValueError):
            _keymerge.find(text(0, 3), slots, 0, short, None, np.zeros(1, np.int64), None)
    for size in (0, 1, 3, 2):  # two rows need four slots
        with pytest.raises(ValueError):
            _keymerge.build(text(0, 1, 2), np.zeros(size, np.uint64), 0)
    with pytest.raises(ValueError):
        _keymerge.find(text(0, 3), slots, 0, text(0, 3), None, np.zeros(2, np.int64), None)
    with pytest.raises(ValueError, match="one mark per row"):
        _keymerge.find(text(0, 3), slots, 0, text(0, 3), None, None, np.zeros(2, np.uint8))
    for size in (0, 3):
        with pytest.raises(ValueError, match="power of two"):
            _keymerge.find(
                text(0, 3), slots, 0, text(0, 3), np.zeros(size, np.uint64), np.zeros(1, np.int64), None
            )
        with pytest.raises(ValueError, match="power of two"):
            _keymerge.words(slots, np.zeros(size, np.uint64))
    with pytest.raises(ValueError):
        _keymerge.losers(text(0, 3), slots, 0, np.zeros(2, np.int64), None, np.zeros(1, np.uint8))
    with pytest.raises(ValueError):
        _keymerge.losers(text(0, 3), slots, 0, None, None, np.zeros(2, np.uint8))
    take, one, two = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(2, np.int64)
    for old, new in (
        ((one, None), (None, text(0, 3))),
        ((two, None), (one, None)),
        ((one, None), (two, None)),
    ):
        with pytest.raises(ValueError):
            _keymerge.keep_newer(take, *old, None, *new, 1)
    with pytest.raises(ValueError):
        _keymerge.keep_newer(take, one, None, np.zeros(2, np.uint8), one, None, 1)
