"""Blocks found in log files: those of Apache Hudi, and bytes that are none."""

import dataclasses
import pickle

import pytest
from golden_logs import golden_logs
from hypothesis import given
from hypothesis import strategies as st
from log_bytes import SCHEMA, avro, avro_content, block, rollback

from hudi_format.log import _scan
from hudi_format.log.block import MAGIC, BlockType
from hudi_format.log.block_index import Headers, IndexColumn, block_of, blocks_of, index

A, B = avro("001", "x" * 300), avro("002", "y" * 700, "z")


@given(
    st.integers(0, 40),
    st.lists(st.sampled_from([b"#", b"#HUDI", b"H", b"UDI#", b"a", b"#HUDI#", b"DI"]), max_size=12),
)
def test_the_search_for_a_magic_finds_what_bytes_find_does(start, pieces):
    data = b"".join(pieces)
    want = data.find(MAGIC, start)
    assert _scan.find_magic(data, start) == (want if want >= 0 else len(data))


def test_the_index_of_many_blocks_is_complete():
    small = [rollback(f"{i:05d}", "1") for i in range(20_000)]
    rows = index(b"".join(small))
    assert len(rows) == 20_000
    assert (rows[:, IndexColumn.DAMAGE] == 0).all()
    assert rows[-1, IndexColumn.END] == sum(map(len, small))


@pytest.mark.req("LF-04", "LF-05")
def test_values_of_a_whole_file_are_those_that_are_made_one_by_one():
    odd = block(3, {0: "7", 2: SCHEMA}, avro_content([b"\2a"]), footer={0: "x"})
    broken = block(1, {0: "8"}).replace(b"8", b"\xff")
    for data in (
        A + A + B + rollback("9", "1") + odd + broken + A + b"#HUDI#" + B[:200],
        *golden_logs("v9").values(),
    ):
        rows = index(data)
        headers = Headers()
        one_by_one = [block_of(r, "f", lambda at, n, d=data: d[at : at + n], headers) for r in rows.tolist()]
        found = blocks_of(data, rows, "f")
        assert found == one_by_one
        assert [repr(b) for b in found] == [repr(b) for b in one_by_one]
        assert [type(b.type) for b in found] == [BlockType] * len(found)
    found = blocks_of(A + A, index(A + A), "f")
    assert found[0].header is found[1].header
    assert pickle.loads(pickle.dumps(found)) == found
    assert dataclasses.replace(found[0], offset=found[1].offset) != found[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found[0].offset = 1


def test_rows_of_other_bytes_are_refused():
    rows = index(A)
    for column, value in (
        (IndexColumn.HEADER, -1),
        (IndexColumn.CONTENT, 1 << 40),
        (IndexColumn.CONTENT, 0),
        (IndexColumn.TYPE, 99),
    ):
        bad = rows.copy()
        bad[0, column] = value
        with pytest.raises(ValueError, match="not of these bytes"):
            blocks_of(A, bad, "f")
    with pytest.raises(ValueError, match="not of these bytes"):
        blocks_of(A[:30], rows, "f")
    with pytest.raises(ValueError, match="columns"):
        blocks_of(A, rows[:, :5].copy(), "f")


def test_doors_refuse_what_would_leave_the_buffers():
    import numpy as np

    rows = np.empty((1, 16), np.int64)
    with pytest.raises(ValueError):
        _scan.scan(A, -1, rows)
    with pytest.raises(ValueError):
        _scan.scan(A, 0, np.empty((1, 3), np.int64))
    with pytest.raises(ValueError):
        _scan.parse(A, A, 0, 5, len(A), rows[0])
    with pytest.raises(ValueError):
        _scan.records(A, len(A) + 1, rows[0])
    assert _scan.scan(b"", 0, rows) == (0, 0)
