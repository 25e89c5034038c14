"""Bloom filters of Apache Hudi's default size (30 hashes per key): 2,000,000 keys added, and asked for.

`HUDI_BENCH_ROWS` changes the number of keys.  The second kind of key has many lengths.
"""

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_index import BloomFilter, bucket_ids, java_hash, min_max, parse_filter

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 2_000_000))
ENTRIES = 60_000


@pytest.fixture(scope="module", params=["21 bytes", "62 to 68 bytes"])
def keys(request) -> pa.Array:
    numbers = pa.array(np.arange(ROWS)).cast(pa.string())
    if request.param == "21 bytes":
        return pc.binary_join_element_wise("driver-0000-", pc.utf8_lpad(numbers, 9, "0"), "")
    start = "time_hour:2013-01-01 05:00:00,carrier:UA,flight:"
    return pc.binary_join_element_wise(start, numbers, ",origin:EWR", "")


def filled(keys: pa.Array) -> BloomFilter:
    f = BloomFilter.create()
    f.add(keys)
    return f


@pytest.mark.benchmark(group="bloom")
def test_add(benchmark, keys):
    f = benchmark(filled, keys)
    assert f.total == ROWS
    assert f.might_contain(keys.slice(ROWS // 2, 1000)).true_count == min(1000, ROWS - ROWS // 2)
    benchmark.extra_info["keys"] = ROWS


@pytest.mark.benchmark(group="bloom")
def test_ask_for_absent_keys(benchmark, keys):
    f = filled(keys.slice(0, min(ENTRIES, ROWS // 2)))
    answers = benchmark(f.might_contain, keys)
    assert answers.true_count == f.total  # at one in 1e9 no false positive is expected
    benchmark.extra_info["keys"] = ROWS


@pytest.mark.benchmark(group="bloom")
def test_ask_for_present_keys(benchmark, keys):
    some = keys.slice(0, min(ENTRIES, ROWS))
    answers = benchmark(filled(some).might_contain, some)
    assert answers.true_count == len(some)
    benchmark.extra_info["keys"] = len(some)


@pytest.mark.benchmark(group="bloom-footer")
def test_serialise_and_parse(benchmark, keys):
    f = filled(keys.slice(0, min(ENTRIES, ROWS)))
    again = benchmark(lambda: parse_filter(f.to_base64(), "DYNAMIC_V0"))
    assert again.to_base64() == f.to_base64()


@pytest.mark.benchmark(group="java")
def test_least_and_greatest_key(benchmark, keys):
    assert benchmark(min_max, keys) == (pc.min(keys).as_py(), pc.max(keys).as_py())


@pytest.mark.benchmark(group="java")
def test_string_hash(benchmark, keys):
    hashes = benchmark(java_hash, keys)
    h = 0
    for c in keys[ROWS - 1].as_py():
        h = (31 * h + ord(c)) & 0xFFFFFFFF
    assert hashes[ROWS - 1].as_py() & 0xFFFFFFFF == h


@pytest.mark.benchmark(group="java")
def test_buckets(benchmark, keys):
    ids = benchmark(bucket_ids, keys, ["carrier", "flight"], 256)
    assert pc.min(ids).as_py() >= 0
    assert pc.max(ids).as_py() < 256
    assert ids[ROWS - 1] == bucket_ids(keys.slice(ROWS - 1), ["flight", "carrier"], 256)[0]
