"""Rows on disk beyond the memory limit: the same as in memory, in windows and by place; and shares of that limit."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.sizes import size_of
from hudi_format.arrow.spill import (
    DEFAULT_BYTES,
    STREAM_BYTES,
    MemoryLimit,
    SpillFile,
    gather,
    is_large,
    joined,
    keep,
    keep_if_large,
    pick,
    split,
    window_rows,
    windows,
)
from hudi_format.errors import SpillError

SMALL, LARGE = MemoryLimit(1), MemoryLimit(1 << 30)


def pieces(count, rows=7):
    return [
        pa.table({"n": range(at * rows, (at + 1) * rows), "t": [f"text {at}"] * rows}) for at in range(count)
    ]


def test_pieces_become_one_table_of_the_wanted_types():
    schema = pa.schema([("n", pa.int32()), ("t", pa.large_string())])
    kept = keep(iter(pieces(3)), schema, SMALL)
    assert kept.schema == schema
    assert kept.equals(pa.concat_tables(pieces(3)).cast(schema))
    assert keep([], schema, SMALL).equals(schema.empty_table())


@pytest.mark.parametrize("limit", [SMALL, LARGE])
def test_what_is_kept_only_if_it_is_large_is_the_same_either_way(limit):
    schema = pieces(1)[0].schema
    assert keep_if_large(iter(pieces(4)), schema, limit).equals(pa.concat_tables(pieces(4)))
    assert keep_if_large([], schema, limit).equals(schema.empty_table())


def test_rows_are_large_beyond_a_limit_that_there_is():
    rows = pieces(1)[0]
    assert is_large(rows, SMALL)
    assert not is_large(rows, LARGE)
    assert not is_large(rows, None)


def test_windows_cover_every_row_once_and_are_no_larger_than_a_step():
    rows = pa.table({"t": ["x" * 1000] * 500})
    parts = list(windows(rows, SMALL))
    assert len(parts) > 5
    assert [start for start, _ in parts] == list(range(0, 500, window_rows(rows, SMALL)))
    assert pa.concat_tables(part for _, part in parts).equals(rows)
    assert window_rows(rows.slice(0, 0), SMALL) > 0


@given(st.lists(st.integers(0, 20), max_size=40), st.sampled_from([None, SMALL, LARGE]))
def test_rows_at_any_places_are_those_of_take(at, limit):
    rows = pa.concat_tables(pieces(3))
    places = np.array(at, np.int64)
    want = rows.take(pa.array(places))
    assert pick(rows, places).equals(want)
    assert gather(rows, places, limit).equals(want)


def test_a_folder_that_is_not_there_is_an_error_that_names_it(tmp_path):
    limit = MemoryLimit(1, folder=str(tmp_path / "gone"))
    with pytest.raises(SpillError, match="gone"):
        keep(pieces(1), pieces(1)[0].schema, limit)


def test_what_is_held_stays_below_the_limit_however_small_it_is():
    for size in (1, 2, 1000, DEFAULT_BYTES):
        limit = MemoryLimit(size)
        assert 1 <= limit.held <= size
        # Records are held twice and laid out once more.
        assert size < 10 or 3 * limit.held <= size


def test_steps_grow_with_the_limit_between_bounds():
    steps = [MemoryLimit(size).step for size in (1, 1 << 20, 1 << 24, 1 << 28, 1 << 40)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (1 << 16, 32 << 20)


def test_merges_side_by_side_share_the_limit():
    limit = MemoryLimit(100, folder="f", compress=False, given=True)
    assert limit.shared(3) == MemoryLimit(33, folder="f", compress=False, given=True)
    assert limit.shared(1000).bytes == 1


def test_a_stream_takes_little_unless_the_user_chose_the_limit():
    assert MemoryLimit().for_stream().bytes == STREAM_BYTES
    assert MemoryLimit(5).for_stream().bytes == 5
    assert MemoryLimit(DEFAULT_BYTES, given=True).for_stream().bytes == DEFAULT_BYTES


@pytest.mark.parametrize("size", [0, -1])
def test_a_limit_of_nothing_is_refused(size):
    with pytest.raises(ValueError, match="memory limit"):
        MemoryLimit(size)


def test_streams_are_read_as_written_and_what_is_mapped_outlives_the_file():
    schema = pieces(1)[0].schema
    for compress in (True, False):
        with SpillFile(schema, MemoryLimit(1, compress=compress)) as file:
            for number, piece in enumerate(pieces(4)):
                file.write(number % 2, piece)
            file.write(5, schema.empty_table())
            assert file.streams == [0, 1]
            assert pa.concat_tables(file.read(1)).equals(pa.concat_tables(pieces(4)[1::2]))
            mapped = file.mapped(0)
            assert file.mapped(5).equals(schema.empty_table())
        assert mapped.equals(pa.concat_tables(pieces(4)[::2]))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "spill", [keep, lambda rows, schema, limit: SpillFile(schema, limit).write(0, rows[0])]
)
def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch, spill):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    with pytest.raises(SpillError, match="raise the memory limit"):
        spill(pieces(1), pieces(1)[0].schema, SMALL)


def test_rows_are_split_by_number_in_the_order_of_arrival():
    rows = pa.table({"n": range(6)})
    numbers = np.array([2, -1, 0, 2, 0, 7])
    assert [(n, of.column("n").to_pylist()) for n, of in split(rows, numbers)] == [
        (0, [2, 4]),
        (2, [0, 3]),
        (7, [5]),
    ]
    assert list(split(rows.slice(0, 0), numbers[:0])) == []
    assert [n for n, _ in split(rows, numbers.clip(0).astype(np.uint8))] == [0, 2, 7]


def test_small_pieces_are_put_together_up_to_a_size():
    each = size_of(pieces(1)[0])
    found = list(joined(iter(pieces(5)), 2 * each))
    assert [t.num_rows for t in found] == [14, 14, 7]
    assert pa.concat_tables(found).equals(pa.concat_tables(pieces(5)))
