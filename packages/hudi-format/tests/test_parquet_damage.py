"""A base file whose footer is damaged is an error or has all its rows; it never has fewer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.parquet.footer import check_values
from hudi_format.parquet.reader import iter_batches, iter_row_groups, read_table
from hudi_format.storage import LocalStorage

ROWS = 300


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, bytes, int]:
    path = tmp_path / "f.parquet"
    rows = pa.table({"k": [f"key-{i}" for i in range(ROWS)], "v": list(range(ROWS))})
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False)
    data = path.read_bytes()
    return path, data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.req("NEW-37")
@pytest.mark.parametrize("mask", [0x01, 0x02, 0x80])
def test_a_changed_footer_loses_no_rows_in_silence(damaged: tuple[Path, bytes, int], mask: int) -> None:
    path, data, footer = damaged
    storage = LocalStorage(str(path.parent))
    ways = (
        lambda: read_table(storage, path.name, use_threads=False).num_rows,
        lambda: sum(t.num_rows for t in iter_row_groups(storage, path.name)),
        lambda: sum(b.num_rows for b in iter_batches(storage, path.name, batch_rows=64)),
    )
    errors = 0
    for at in range(footer, len(data) - 8):
        path.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
        for count in ways:
            try:
                found = count()
            except HudiError:
                errors += 1
            else:
                assert found == ROWS, f"byte {at - footer} of the footer"
    assert errors > 0


def test_row_groups_that_do_not_add_up_are_named(damaged: tuple[Path, bytes, int]) -> None:
    path, data, footer = damaged
    storage = LocalStorage(str(path.parent))
    # 300 and 100 as Thrift's zig-zag varints; the first is the file's own count.
    at = data.index(b"\xd8\x04", footer)
    path.write_bytes(data[:at] + b"\xda\x04" + data[at + 2 :])
    with pytest.raises(CorruptFileError, match="says 301 rows where 300 are"):
        read_table(storage, path.name)


@pytest.mark.req("NEW-37")
def test_columns_without_values_are_no_columns_of_nulls() -> None:
    """What a damaged footer may say (fuzz/regressions/parquet): Arrow reads such a file without the column."""
    empty = pa.struct([])
    for kind in (
        empty,
        pa.list_(empty),
        pa.map_(pa.string(), empty),
        pa.struct([("x", empty), ("y", pa.int8())]),
    ):
        with pytest.raises(ValueError, match=r"column b is .* which has no values"):
            check_values(pa.schema([("a", pa.int32()), ("b", kind)]))
    whole = pa.struct([("x", pa.map_(pa.string(), pa.list_(pa.int32())))])
    check_values(pa.schema([("a", pa.int32()), ("b", whole)]))
