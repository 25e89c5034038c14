"""Rows grouped by bucket: the same in memory and on disk, in order of arrival."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.spill import MemoryLimit, split
from hudi_timeline.writing.workers.bucket_shuffle import buckets_of, pieces_of

LIMITS = [None, MemoryLimit(1), MemoryLimit(1 << 30)]


def rows_of(count):
    return pa.table({"n": pa.array(range(count), pa.int64()), "t": [f"text {n}" for n in range(count)]})


@given(st.lists(st.integers(-1, 4), max_size=50), st.sampled_from(LIMITS))
def test_each_bucket_has_its_rows_in_order(numbers, limit):
    rows, numbers = rows_of(len(numbers)), np.array(numbers, np.int64)
    by_bucket = [np.flatnonzero(numbers == b) for b in range(5)]
    with buckets_of(rows, numbers, by_bucket, limit) as buckets:
        found = {b: buckets.of(b) for b in range(5) if len(by_bucket[b])}
    for bucket, part in found.items():
        assert part.equals(rows.take(pa.array(by_bucket[bucket])))


def test_buckets_on_disk_are_read_by_several_threads():
    rows = rows_of(20_000)
    numbers = np.arange(20_000) % 8
    by_bucket = [np.flatnonzero(numbers == b) for b in range(8)]
    with (
        buckets_of(rows, numbers, by_bucket, MemoryLimit(100_000)) as buckets,
        ThreadPoolExecutor(4) as threads,
    ):
        for bucket, part in enumerate(threads.map(buckets.of, range(8))):
            assert part["n"].to_pylist() == by_bucket[bucket].tolist()


@given(st.lists(st.integers(-1, 3), max_size=30))
def test_a_split_gives_each_number_once_without_those_that_go_nowhere(numbers):
    rows = rows_of(len(numbers))
    found = list(split(rows, np.array(numbers, np.int64)))
    assert [b for b, _ in found] == sorted(set(numbers) - {-1})
    for bucket, part in found:
        assert part["n"].to_pylist() == [n for n, b in enumerate(numbers) if b == bucket]


@pytest.mark.parametrize("count", [0, 3, 5000])
@pytest.mark.parametrize("limit", LIMITS[1:])
def test_pieces_are_all_rows_and_at_least_one(count, limit):
    rows = rows_of(count)
    for data in (rows, rows.to_reader()):
        pieces = list(pieces_of(data, limit))
        assert pieces
        assert pa.concat_tables(pieces).equals(rows)
