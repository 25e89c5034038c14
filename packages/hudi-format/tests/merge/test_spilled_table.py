"""Tables on disk beyond the memory limit: the same rows as in memory, in windows and by place."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import SpillError
from hudi_format.merge.memory_limit import MemoryLimit
from hudi_format.merge.spilled_table import gather, is_large, keep, keep_if_large, pick, window_rows, windows

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
