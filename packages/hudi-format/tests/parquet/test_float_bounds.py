"""Footers without the bounds of floating-point columns: all else stays as it is."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.parquet.float_bounds import without_float_bounds
from hudi_format.parquet.footer import footer_bytes

ROWS = pa.table(
    {
        "d": [1.0, 2.0, 3.0],
        "f": pa.array([1.0, None, 3.0], pa.float32()),
        "n": [1, 2, 3],
        "s": [{"x": 1.5, "t": "a"}] * 3,
        "l": [[1.5], [], [2.5]],
    }
)


def footer_of(rows):
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema) as writer:
        if rows.num_rows:
            writer.write_table(rows, row_group_size=2)
        writer.add_key_value_metadata({"org.apache.hudi.bloomfilter": "x" * 9999})
    return sink, footer_bytes(pa.BufferReader(sink.getvalue()))


def test_only_the_bounds_of_floats_are_left_out():
    sink, footer = footer_of(ROWS)
    made = without_float_bounds(footer, "p=1/é %3A:.parquet")
    was, now = pq.ParquetFile(sink).metadata, pq.read_metadata(pa.BufferReader(made))
    assert now.schema.to_arrow_schema() == ROWS.schema == was.schema.to_arrow_schema()
    assert set(now.metadata) == {b"ARROW:schema"}
    assert len(made) < 9999
    assert [now.row_group(g).num_rows for g in range(2)] == [2, 1]
    for group in range(2):
        for number in range(now.num_columns):
            old, new = (m.row_group(group).column(number) for m in (was, now))
            assert new.file_path == ("" if number else "p=1/é %3A:.parquet")
            assert new.data_page_offset == old.data_page_offset
            assert new.total_compressed_size == old.total_compressed_size
            if old.physical_type in ("FLOAT", "DOUBLE"):
                assert old.statistics.has_min_max
                assert not new.statistics.has_min_max
                assert not new.statistics.has_null_count
            else:
                assert new.statistics == old.statistics


def test_a_file_without_rows_has_no_such_footer():
    assert without_float_bounds(footer_of(ROWS.schema.empty_table())[1], "f") is None


@pytest.mark.parametrize(
    "damaged", [lambda f: f[: len(f) // 2], lambda f: memoryview(b"\x10"), lambda f: f[:0]]
)
def test_what_is_no_footer_is_an_error(damaged):
    with pytest.raises(CorruptFileError, match="cannot be read as Parquet"):
        without_float_bounds(damaged(footer_of(ROWS)[1]), "f")
