"""The order of a bulk insert's rows: in parts on disk as in memory, whatever the values are."""

import os.path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import InvalidOptionError
from hudi_format.keygen.key_generator import KeySpec
from hudi_timeline.writing.bulk_insert_sort import in_order, user_function
from hudi_timeline.writing.engine import BulkOrder, PrepareTask

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("n", pa.int64())])
KEYS = KeySpec.from_class(None, key_fields=["id"], partition_fields=["p"])


def task(columns=(), **more):
    return PrepareTask(SCHEMA, KEYS, None, False, order=BulkOrder(columns=tuple(columns)), **more)


def table(rows):
    return pa.Table.from_pylist(list(rows), SCHEMA)


def made(values):
    return table({"id": f"k{i}", "p": f"p{p}", "v": v, "n": n} for n, (i, p, v) in enumerate(values))


def ordered(rows, how, pieces=1):
    step = -(-rows.num_rows // pieces) or 1
    parts = [rows.slice(at, step) for at in range(0, rows.num_rows, step)] or [rows]
    return pa.concat_tables(in_order(parts, how)).to_pylist()


VALUES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.one_of(st.none(), st.integers(0, 3))),
    min_size=1,
    max_size=60,
)


@given(VALUES, st.sampled_from([(), ("v",)]), st.sampled_from([None, MemoryLimit(1), MemoryLimit(1 << 30)]))
def test_rows_follow_partition_and_columns_and_ties_keep_their_order(values, columns, limit):
    rows = made(values)

    def place(r):
        by = (r["v"] is None, r["v"] or 0) if columns else r["id"]  # nulls come last
        return r["p"], by, r["n"]

    assert ordered(rows, task(columns, memory=limit), pieces=3) == sorted(rows.to_pylist(), key=place)


@pytest.mark.parametrize("same", [True, False], ids=["one value", "many values"])
def test_rows_beyond_the_limit_are_sorted_in_parts_as_in_memory(same):
    rows = made([((i * 7919) % 5000 if not same else 1, 0, None) for i in range(5000)])
    small = MemoryLimit(64 << 10)
    parts = list(in_order([rows], task(memory=small)))
    assert len(parts) > 1
    assert pa.concat_tables(parts).to_pylist() == ordered(rows, task())


def test_a_column_that_the_rows_lack_decides_nothing():
    rows = made([(2, 0, 1), (1, 0, 1)])
    assert [r["id"] for r in ordered(rows, task(["nope"]))] == ["k2", "k1"]


def test_the_users_function_is_found_by_its_name_or_refused_with_the_option():
    assert user_function("os.path:join") is os.path.join
    with pytest.raises(InvalidOptionError, match=r"partitioner\.class"):
        user_function("os.path:nothing_of_that_name")
