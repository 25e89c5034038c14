"""Pages of Parquet files: which rows they have, and tables of some of them."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.pages import PagedFile, gap_of, places_in, rows_at

TABLE = pa.table(
    {
        "k": [f"{n:04}" for n in range(1000)],
        "tags": [[f"{n}"] * (n % 4) for n in range(1000)],
        "pair": [{"a": n, "b": "x" * (n % 50)} for n in range(1000)],
    }
)


def layout(table=TABLE, **options):
    out = io.BytesIO()
    options = {"store_schema": False, "write_batch_size": 8, "data_page_size": 400, **options}
    pq.write_table(table, out, write_page_index=options.pop("index", True), **options)
    source = pa.BufferReader(out.getvalue())
    return PagedFile(footer_bytes(source), source.size()), lambda at, n: source.read_at(n, at)


def runs(*pairs):
    return tuple(np.array(side, np.int64) for side in zip(*pairs, strict=True))


def test_rows_of_runs_and_their_places():
    some = runs((10, 20), (40, 41), (50, 60))
    rows = np.array([10, 19, 40, 50, 59])
    assert places_in(some, rows).tolist() == [0, 9, 10, 11, 20]
    assert rows_at(some, places_in(some, rows)).tolist() == rows.tolist()


@pytest.mark.parametrize("index", [True, False])
def test_pages_of_several_leaves_are_taken_to_where_all_of_them_end(index):
    file, read = layout(index=index)
    file.load(read, 0, file.names, "k", 0)
    for name in file.names:
        cover = file.covering(0, name, np.array([3, 500], np.int64))
        first, end = (c.tolist() for c in cover)
        assert any(a <= 500 < b for a, b in zip(first, end, strict=True))
        table, checked = file.decode(read, 0, [name], cover, 0)
        assert (table.num_rows < 1000) == index
        whole = pa.concat_tables(
            [TABLE.select([name]).slice(a, b - a) for a, b in zip(first, end, strict=True)]
        )
        assert checked(table).to_pylist() == whole.to_pylist()


def test_bounds_leave_out_pages_and_row_groups():
    file, read = layout(row_group_size=500)
    for group in (0, 1):
        file.load(read, group, ["k"], "k", 0)
    first, end = file.pages_with(0, "k", [b"0007", b"0008"])
    assert len(first) == 1
    assert first[0] <= 7 < 9 <= end[0] < 500
    assert not len(file.pages_with(1, "k", [b"0007"])[0])
    assert not len(file.pages_with(0, "k", [b"0007x"])[0]) or first[0] < 8
    assert [file.rows(n) for n in range(file.num_row_groups)] == [500, 500]


def test_pages_of_nulls_are_left_out():
    table = pa.table({"k": pa.array([None] * 300 + ["a"] * 300 + [None] * 300)})
    file, read = layout(table, data_page_size=1, use_dictionary=False)
    file.load(read, 0, ["k"], "k", 0)
    first, end = file.pages_with(0, "k", [b"a"])
    assert len(first) == 1
    assert first[0] <= 300 < 600 <= end[0] <= 700


def test_columns_that_are_no_texts_by_themselves():
    file, _ = layout()
    assert [file.is_flat_bytes(n) for n in (*file.names, "none")] == [True, False, False, False]


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="Arrow's schema"):
        layout(store_schema=True)
    with pytest.raises(ValueError, match="cut off"):
        PagedFile(memoryview(b"\x15"), 100)


def test_parts_near_to_each_other_are_one_read():
    assert gap_of(is_local=True) < gap_of(is_local=False)
    file, read = layout()
    asked = []

    def counted(at, length):
        asked.append((at, length))
        return read(at, length)

    file.load(counted, 0, file.names, "k", 1 << 20)
    assert len(asked) == 1
    with pytest.raises(ValueError, match="cut off"):
        file.decode(lambda at, n: b"", 0, ["k"], runs((0, 1000)), 0)
