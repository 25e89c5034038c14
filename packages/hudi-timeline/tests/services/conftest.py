"""The table that conversions and repairs are tried on."""

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    table.commit(at(1), {("p", file_id(1)): [{"id": "a", "v": 1}]})
    table.commit(at(2), {("q", file_id(2)): [{"id": "b", "v": 2}]})
    return table
