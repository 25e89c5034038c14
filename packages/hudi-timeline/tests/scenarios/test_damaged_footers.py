"""A base file whose footer is damaged, read with a filter: an error, or rows; never the end of the process."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable

ROWS = 200
STEP = 1 if os.environ.get("HUDI_SOAK") else 9  # of the bytes, how many until the next is changed
VALUES = (0x00, 0x24, 0x15, 0xFF)  # of these the second and third have ended processes


@pytest.mark.req("NEW-37")
def test_each_byte_of_a_footer_changed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": [f"k{n:04}" for n in range(ROWS)], "v": list(range(ROWS))})
    large = {"hoodie.index.bloom.num_entries": "60000"}
    table = HudiTable.create(str(path), rows.schema, name="t", record_keys=["id"])
    table.bulk_insert(rows, options=large)
    (file,) = path.glob("*.parquet")
    size = file.stat().st_size
    # As it is but for small row groups and the bloom filter, which is most of its bytes.
    kept = pq.read_table(file).replace_schema_metadata(None)
    pq.write_table(kept, file, row_group_size=100, compression="none")
    data = file.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data = data[:-footer] + bytes(size - len(data)) + data[-footer:]  # as large as its commit says
    file.write_bytes(data)
    table = HudiTable.open(str(path))
    assert table.read(filter=pc.field("v") == 77).to_arrow().num_rows == 1
    start = size - footer
    refused = []
    for at in range(start, len(data) - 8, STEP):
        file.write_bytes(data[:at] + bytes([VALUES[(at - start) // STEP % 4]]) + data[at + 1 :])
        try:
            found = table.read(columns=["v"]).to_arrow().num_rows
            assert found == ROWS, f"byte {at - start} of the footer"
            # Of a changed bound nothing can be known: it may rule out the row.
            assert table.read(filter=pc.field("v") == 77).to_arrow().num_rows <= 1
        except HudiError as e:
            refused.append(str(e))
    assert len(refused) > 20
    assert all(file.name in message for message in refused)
