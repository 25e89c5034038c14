"""Keys of one upsert: 120,000 incoming keys against 2,000,000 stored ones, and precombine of both together.

`HUDI_BENCH_ROWS` changes the number of stored keys; one incoming key comes for about 17 of them.
"""

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format import payload_rule
from hudi_format.merge.key_index import KeyIndex, precombine
from hudi_format.merge.record_merger import decide

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 2_000_000))
INCOMING = ROWS * 6 // 100


@pytest.fixture(scope="module")
def stored() -> pa.Array:
    numbers = pc.utf8_lpad(pa.array(np.arange(ROWS)).cast(pa.string()), 9, "0")
    return pc.binary_join_element_wise("driver-0000-", numbers, "")


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Rows of the stored keys that come again."""
    return np.random.default_rng(1).choice(ROWS, INCOMING, replace=False)


@pytest.fixture(scope="module")
def incoming(stored, rows) -> pa.Array:
    return stored.take(pa.array(rows))


@pytest.mark.benchmark(group="key-index")
def test_build(benchmark, incoming):
    index = benchmark(KeyIndex, incoming)
    assert index.rows == INCOMING
    assert not index.duplicates


@pytest.mark.benchmark(group="key-index")
def test_find(benchmark, stored, incoming, rows):
    index = KeyIndex(incoming)
    found = benchmark(index.find, stored)
    want = np.full(ROWS, -1)
    want[rows] = np.arange(INCOMING)
    assert (found == want).all()
    benchmark.extra_info["keys"] = ROWS


@pytest.mark.benchmark(group="key-index")
def test_found_and_decided_by_event_time(benchmark, stored, incoming, rows):
    index, rule = KeyIndex(incoming), payload_rule("EventTimeAvroPayload")
    old, new = pa.array(np.full(ROWS, 5)), pa.array(np.arange(INCOMING) % 10)
    take = benchmark(lambda: decide(index.find(stored), rule, stored_ordering=old, ordering=new).take)
    assert (take >= 0).sum() == (np.arange(INCOMING) % 10 >= 5).sum()
    benchmark.extra_info["keys"] = ROWS


@pytest.mark.benchmark(group="precombine")
@pytest.mark.parametrize("kind", ["position", "number", "text"])
def test_precombine(benchmark, stored, incoming, rows, kind):
    keys = pa.concat_arrays([stored, incoming])
    values = pa.array(np.concatenate([np.full(ROWS, 5), np.arange(INCOMING) % 10]))
    ordering = {"position": None, "number": values, "text": values.cast(pa.string())}[kind]
    survivors = benchmark(precombine, keys, ordering)
    assert len(survivors) == ROWS
    newer = INCOMING if ordering is None else int((np.arange(INCOMING) % 10 >= 5).sum())
    assert (survivors >= ROWS).sum() == newer
    benchmark.extra_info["keys"] = ROWS + INCOMING
