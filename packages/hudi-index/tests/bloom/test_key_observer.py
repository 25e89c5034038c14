"""Footers of base files: against those that Apache Hudi wrote, and carried over from file to file."""

import hashlib
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, RecordKeyError
from hudi_format.parquet.footer import BLOOM_FILTER, BLOOM_FILTER_OLD, BLOOM_TYPE, MAX_KEY, MIN_KEY
from hudi_index.bloom.filter import BloomFilter, parse_filter
from hudi_index.bloom.key_observer import (
    BloomObserver,
    BloomSettings,
    MinMaxObserver,
    footer_filter,
    footer_range,
    observer_of,
    observer_of_rewritten,
    seeded_observer,
)

DATA = Path(__file__).parent.parent / "data"
FPP = 0.000000001


@cache
def golden():
    return pq.read_table(DATA / "golden_footers.parquet").to_pylist()


@pytest.mark.req("IX-04", "IX-17", "IX-18", "IX-20")
def test_every_golden_footer_is_built_again_bit_for_bit_from_its_keys():
    kinds = set()
    for row in golden():
        observer = BloomObserver(BloomSettings(row["type_code"], row["entries"], FPP))
        keys = pa.array(row["keys"], pa.string())
        middle = len(keys) // 3
        observer.add(keys.slice(0, middle))
        observer.add(pa.chunked_array([keys.slice(middle)]))
        entries = observer.finish()
        assert hashlib.sha256(entries[BLOOM_FILTER].encode()).hexdigest() == row["bloom_sha256"], row["table"]
        assert entries[BLOOM_TYPE] == row["type_code"] == "DYNAMIC_V0"
        assert (entries.get(MIN_KEY), entries.get(MAX_KEY)) == (row["min"], row["max"])
        kinds.add((row["entries"], len(keys) > row["entries"]))
    assert kinds == {(60000, False), (1000, False), (1000, True), (10, False)}


@pytest.mark.req("IX-04", "IX-19")
def test_golden_filters_are_read_and_contain_their_keys():
    whole = [row for row in golden() if row["bloom"] is not None]
    assert len(whole) == 4
    for row in whole:
        f = footer_filter({BLOOM_FILTER: row["bloom"], BLOOM_TYPE: row["type_code"]})
        assert f.to_base64() == row["bloom"]
        assert f.total == len(row["keys"])
        assert all(f.might_contain(pa.array(row["keys"], pa.string())).to_pylist())
        assert not any(f.might_contain(pa.array([f"absent-{i}" for i in range(1000)])).to_pylist())


@pytest.mark.req("IX-04")
def test_a_golden_file_is_carried_over_as_if_written_anew():
    row = max(golden(), key=lambda r: len(r["keys"]))  # two rows of bits
    keys = row["keys"]
    for split in (1, 999, 1000, 1001, len(keys) - 1):
        first = BloomObserver(BloomSettings("DYNAMIC_V0", 1000, FPP))
        first.add(pa.array(keys[:split]))
        second = seeded_observer(first.finish(), BloomSettings("DYNAMIC_V0", 1000, FPP), num_rows=split)
        second.add(pa.array(keys[split:]))
        assert hashlib.sha256(second.finish()[BLOOM_FILTER].encode()).hexdigest() == row["bloom_sha256"]


def entries_of(keys, settings):
    observer = BloomObserver(BloomSettings(*settings))
    observer.add(pa.array(keys, pa.string()))
    return dict(observer.finish())


key_lists = st.lists(st.text(min_size=1, max_size=6), max_size=30)
all_settings = st.tuples(
    st.sampled_from(["SIMPLE", "DYNAMIC_V0"]), st.integers(1, 8), st.just(0.1), st.integers(0, 25)
)


@pytest.mark.req("IX-04", "IX-16", "IX-18")
@given(key_lists, st.lists(key_lists, max_size=3), all_settings)
def test_carried_over_without_deletes_equals_built_anew(first, later, settings):
    keys = list(first)
    entries = entries_of(keys, settings)
    for more in later:
        observer = seeded_observer(entries, BloomSettings(*settings), num_rows=len(keys))
        if observer is None:  # only because of the order of keys
            assert any(c >= "\ue000" for k in keys for c in k)
            observer = BloomObserver(BloomSettings(*settings))
            observer.add(pa.array(keys, pa.string()))
        observer.add(pa.array(more, pa.string()))
        keys += more
        entries = dict(observer.finish())
        assert entries == entries_of(keys, settings)


def test_the_seed_itself_is_not_changed():
    seed = BloomFilter.create("SIMPLE", 10, 0.1)
    before = seed.to_base64()
    BloomObserver(BloomSettings("SIMPLE", 10, 0.1), seed=seed, seed_range=("a", "b")).add(pa.array(["x"]))
    assert seed.to_base64() == before


def test_a_seed_without_further_keys_is_written_as_it_stands(monkeypatch):
    entries = entries_of(KEYS, SETTINGS)
    monkeypatch.setattr(BloomFilter, "to_base64", lambda self: pytest.fail("it was encoded again"))
    observer = seeded_observer(entries, BloomSettings(*SETTINGS), num_rows=len(KEYS))
    assert observer is not None
    assert dict(observer.finish()) == entries


SETTINGS = ("DYNAMIC_V0", 5, 0.1, 10)
KEYS = [f"k{i}" for i in range(7)]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        (("SIMPLE", 5, 0.1, 10), 7),  # another type
        (("DYNAMIC_V0", 6, 0.1, 10), 7),  # another number of entries
        (("DYNAMIC_V0", 5, 0.2, 10), 7),  # another rate
        (("DYNAMIC_V0", 5, 0.1, 5), 7),  # it would not have grown
        (SETTINGS, 8),  # a key that it was not given
        (SETTINGS, 6),  # a key that is gone
        (SETTINGS, 0),
    ],
)
def test_a_filter_that_would_differ_from_one_built_anew_is_not_carried_over(settings, rows):
    assert seeded_observer(entries_of(KEYS, SETTINGS), BloomSettings(*SETTINGS), num_rows=7) is not None
    assert seeded_observer(entries_of(KEYS, SETTINGS), BloomSettings(*settings), num_rows=rows) is None


def test_a_full_filter_is_carried_over_only_where_it_may_not_grow_further():
    full = entries_of([f"k{i}" for i in range(30)], SETTINGS)
    assert seeded_observer(full, BloomSettings(*SETTINGS), num_rows=30) is not None
    assert seeded_observer(full, BloomSettings("DYNAMIC_V0", 5, 0.1, 15), num_rows=30) is None
    assert (
        seeded_observer(full, BloomSettings("DYNAMIC_V0", 5, 0.1, 6), num_rows=30) is not None
    )  # two rows as well


def test_keys_that_are_gone_are_carried_up_to_the_share_allowed():
    entries = entries_of([f"k{i}" for i in range(100)], ("DYNAMIC_V0", 1000, 0.1, 1000))

    def carried(num_rows, most_deleted):
        settings = ("DYNAMIC_V0", 1000, 0.1, 1000)
        observer = seeded_observer(
            entries, BloomSettings(*settings), num_rows=num_rows, most_deleted=most_deleted, stale_allowed=0.1
        )
        return observer is not None

    assert carried(100, 0)
    assert carried(100, 10)
    assert not carried(100, 11)
    assert carried(95, 4)  # five gone before
    assert not carried(95, 5)
    assert not carried(101, 0)


def test_a_simple_filter_does_not_count_and_is_carried_only_without_deletes():
    settings = ("SIMPLE", 10, 0.1, 0)
    entries = entries_of(KEYS, settings)
    assert seeded_observer(entries, BloomSettings(*settings), num_rows=7) is not None
    assert (
        seeded_observer(entries, BloomSettings(*settings), num_rows=7, most_deleted=1, stale_allowed=0.5)
        is None
    )


@pytest.mark.parametrize(
    "change",
    [
        {BLOOM_FILTER: "junk"},
        {BLOOM_FILTER: ""},
        {BLOOM_TYPE: "OTHER"},
        {MIN_KEY: None},
        {MAX_KEY: None},
        {BLOOM_FILTER: None},
        # A range taken by bytes, which Java's order may see otherwise.
        {MAX_KEY: "😀"},
        {MIN_KEY: "\ue000"},
    ],
)
def test_a_footer_that_cannot_be_relied_on_is_built_anew(change):
    entries = entries_of(KEYS, SETTINGS)
    entries = {k: v for k, v in {**entries, **change}.items() if v is not None}
    assert seeded_observer(entries, BloomSettings(*SETTINGS), num_rows=7) is None


def test_a_file_without_rows_is_carried_over_too():
    entries = entries_of([], SETTINGS)
    assert set(entries) == {BLOOM_FILTER, BLOOM_TYPE}
    observer = seeded_observer(entries, BloomSettings(*SETTINGS), num_rows=0)
    observer.add(pa.array(["a"]))
    assert dict(observer.finish()) == entries_of(["a"], SETTINGS)


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize("number", [0, 1, 2, 19, 20, 21, 60])
def test_a_filter_that_goes_by_the_keys_is_the_one_made_for_their_number(kind, number):
    keys = pa.array([f"k{i}" for i in range(number)], pa.string())
    fixed = BloomObserver(BloomSettings(kind, max(1, min(number, 20)), 0.001, 40))
    fixed.add(keys)
    for cut in {0, 1, number // 2, number}:
        observer = BloomObserver(BloomSettings(kind, 20, 0.001, 40, to_keys=True))
        observer.add(keys.slice(0, cut).dictionary_encode())
        observer.add(pa.chunked_array([keys.slice(cut)]))
        assert dict(observer.finish()) == dict(fixed.finish())


@given(key_lists, key_lists)
def test_a_file_whose_filter_goes_by_the_keys_is_rewritten_as_if_anew(first, later):
    def entries(keys):
        observer = BloomObserver(BloomSettings("DYNAMIC_V0", 8, 0.1, 16, to_keys=True))
        observer.add(pa.array(keys, pa.string()))
        return dict(observer.finish())

    old = entries(first)
    carried = seeded_observer(old, BloomSettings("DYNAMIC_V0", 8, 0.1, 16, to_keys=True), num_rows=len(first))
    if carried is None:
        assert len(first) < 8 or any(c >= "\ue000" for k in first for c in k)
        return
    carried.add(pa.array(later, pa.string()))
    assert dict(carried.finish()) == entries(first + later)


BY_KEYS = BloomSettings("DYNAMIC_V0", 8, 0.1, 16, to_keys=True)


def entries_by_keys(keys, settings=BY_KEYS):
    observer = observer_of(settings)
    observer.add(pa.array(keys, pa.string()))
    return dict(observer.finish())


@pytest.mark.req("IX-04")
@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
@given(first=key_lists, later=st.lists(key_lists, max_size=2), deleted=st.integers(0, 3))
def test_a_rewritten_file_has_the_filter_of_its_keys(kind, first, later, deleted):
    settings = BloomSettings(kind, 8, 0.1, 16, to_keys=True)
    old = entries_by_keys(first, settings)
    observer = observer_of_rewritten(old, settings, num_rows=len(first), most_deleted=deleted)
    left = first[min(deleted, len(first)) :]
    for part in (left[:3], left[3:], *later):
        observer.add(pa.array(part, pa.string()))
    every = [*left, *(k for part in later for k in part)]
    assert dict(observer.finish()) == entries_by_keys(every, settings)


def test_a_filter_is_not_built_again_of_the_same_keys(monkeypatch):
    old = entries_by_keys(KEYS)
    monkeypatch.setattr(BloomFilter, "add", lambda *_: pytest.fail("a key was hashed again"))
    monkeypatch.setattr(BloomFilter, "to_base64", lambda self: pytest.fail("it was encoded again"))
    observer = observer_of_rewritten(old, BY_KEYS, num_rows=len(KEYS))
    observer.add(pa.array(KEYS[:2]))
    observer.add(pa.array(KEYS[2:]))
    assert dict(observer.finish()) == old


@pytest.mark.parametrize(
    "change",
    [
        {BLOOM_FILTER: "junk"},
        {BLOOM_FILTER: None},
        {BLOOM_TYPE: "OTHER"},
        {MIN_KEY: None},
        {MAX_KEY: "😀"},
        {BLOOM_FILTER: entries_by_keys(KEYS[1:])[BLOOM_FILTER]},  # of fewer keys
        {BLOOM_FILTER: entries_by_keys([*KEYS, "more"])[BLOOM_FILTER]},
        {BLOOM_FILTER: BloomFilter.create("DYNAMIC_V0", len(KEYS), 0.1, 16).to_base64()},  # of none
    ],
)
def test_a_footer_that_is_not_of_the_keys_is_not_taken_over(change):
    old = {k: v for k, v in {**entries_by_keys(KEYS), **change}.items() if v is not None}
    observer = observer_of_rewritten(old, BY_KEYS, num_rows=len(KEYS))
    observer.add(pa.array(KEYS))
    assert dict(observer.finish()) == entries_by_keys(KEYS)


@pytest.mark.parametrize("bad", [None, ""])
def test_keys_that_are_none_are_refused_while_they_wait(bad):
    with pytest.raises(RecordKeyError, match="1 keys are null or empty"):
        BloomObserver(BloomSettings(to_keys=True)).add(pa.array(["a", bad]))


def test_eight_keys_take_no_more_than_some_dozen_bytes():
    assert BloomSettings.of("DYNAMIC_V0", None, FPP, 100000).to_keys
    assert not BloomSettings.of("DYNAMIC_V0", 60000, FPP, 100000).to_keys
    observer = observer_of(BloomSettings.of("DYNAMIC_V0", None, FPP, 100000))
    observer.add(pa.array([f"k{i}" for i in range(8)]))
    assert len(observer.finish()[BLOOM_FILTER]) < 150


def test_simple_filters_have_no_type_code():
    assert set(entries_of(["a"], ("SIMPLE", 10, 0.1, 0))) == {BLOOM_FILTER, MIN_KEY, MAX_KEY}


@given(st.lists(st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=8), max_size=4))
def test_the_range_is_javas_order_over_all_batches(batches):
    observer = MinMaxObserver()
    for batch in batches:
        observer.add(pa.array(batch, pa.string()))
    texts = sorted((t for b in batches for t in b if t is not None), key=lambda t: t.encode("utf-16-be"))
    assert dict(observer.finish()) == ({MIN_KEY: texts[0], MAX_KEY: texts[-1]} if texts else {})


def test_the_filter_and_range_of_a_footer_are_read():
    entries = entries_of(KEYS, SETTINGS)
    assert footer_range(entries) == ("k0", "k6")
    assert footer_range({MIN_KEY: "a"}) is None
    assert footer_filter({}) is None
    old = {BLOOM_FILTER_OLD: entries_of(KEYS, ("SIMPLE", 10, 0.1, 0))[BLOOM_FILTER]}
    assert footer_filter(old).might_contain(pa.array(["k0"])).to_pylist() == [True]
    with pytest.raises(CorruptFileError):
        footer_filter({BLOOM_FILTER: "junk"})
    assert parse_filter(entries[BLOOM_FILTER], entries[BLOOM_TYPE]).total == 7
