"""Which keys may be in a file: never fewer than are, and as few as filter and range allow."""

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError
from hudi_index.bloom.footer_index import FILTER, MAYBE, RANGE, BloomIndex
from hudi_index.bloom.key_observer import BloomObserver, BloomSettings

KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@dataclass
class Footer:
    values: dict = field(default_factory=dict)

    @classmethod
    def of(cls, entries):
        return cls({k: memoryview(v.encode()) for k, v in entries.items()})


def footer_of(keys, shape=("DYNAMIC_V0", 100, 1e-9, 200)):
    observer = BloomObserver(BloomSettings(*shape[:4]))
    observer.add(pa.array(keys, pa.string()))
    return Footer.of(observer.finish())


def candidates(keys, footer, **options):
    found = BloomIndex(pa.array(keys, pa.string()), **options).candidates(footer)
    return found.verdict, set(range(len(keys)) if found.rows is None else found.rows.tolist())


@given(st.lists(KEYS, max_size=30), st.lists(KEYS, min_size=1, max_size=30), st.booleans())
@example(["\ue000"], ["\U00010000", "\ue000", "a"], True)
@example(["ab\ud7ff", "ab\U00010000"], ["ab\ue000", "ab", "ac"], True)
def test_a_key_that_is_there_is_never_ruled_out(stored, asked, ranges):
    footer = footer_of(stored)
    verdict, rows = candidates(asked, footer, prune_by_ranges=ranges)
    there = {i for i, key in enumerate(asked) if key in set(stored)}
    assert there <= rows
    assert verdict == MAYBE or not there


@pytest.mark.req("IX-20")
def test_keys_outside_of_the_range_are_ruled_out():
    footer = footer_of([f"2024-{i:03d}" for i in range(100, 200)])
    del footer.values["org.apache.hudi.bloomfilter"]
    asked = [f"2024-{i:03d}" for i in range(300)]
    assert candidates(asked, footer) == (MAYBE, set(range(100, 200)))
    assert candidates(asked[:50], footer) == (RANGE, set())
    assert candidates(asked[:50], footer, prune_by_ranges=False) == (MAYBE, set(range(50)))


def test_keys_alike_in_many_characters_are_told_apart_by_the_filter_only():
    stored = ["same-begin-" + "x" * 20 + str(i) for i in range(10)]
    asked = ["same-begin-" + "x" * 20 + str(i) for i in range(0, 90, 10)] + ["different"]
    verdict, rows = candidates(asked, footer_of(stored))
    assert verdict == MAYBE
    assert rows == {0}


def test_a_footer_that_says_nothing_rules_nothing_out():
    assert candidates(["a", "b"], Footer()) == (MAYBE, {0, 1})
    only_one_end = Footer.of({"hoodie_min_record_key": "z"})
    assert candidates(["a"], only_one_end) == (MAYBE, {0})


def test_a_file_without_rows_holds_no_key():
    assert candidates(["a"], footer_of([]))[0] == FILTER


def test_the_filter_of_the_releases_before_apache_is_read():
    footer = footer_of(["a"])
    old = {"com.uber.hoodie.bloomfilter" if "bloomfilter" in k else k: v for k, v in footer.values.items()}
    assert candidates(["a", "b"], Footer(old), prune_by_ranges=False) == (MAYBE, {0})


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"org.apache.hudi.bloomfilter": "AAAA"}, "cut off"),
        ({"org.apache.hudi.bloomfilter": "====" * 10}, "base64"),
        ({"hoodie_bloom_filter_type_code": "X"}, "unknown"),
        ({"hoodie_min_record_key": "b", "hoodie_max_record_key": "a"}, "above its largest"),
    ],
)
def test_a_damaged_footer_is_an_error(entries, says):
    footer = footer_of(["a", "b"])
    footer.values |= Footer.of(entries).values
    with pytest.raises(CorruptFileError, match=says):
        candidates(["a", "b", "c"], footer)
