"""The table that tests of scans, of their tasks and of explanations read."""

import pyarrow as pa
import pytest
from made_tables import MadeTable, at, file_id

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("note", pa.string())])


def row(id, v=0, p="a", **more):
    return {"id": id, "p": p, "v": v, "note": f"n{v}", **more}


@pytest.fixture
def made(tmp_path):
    """Two partitions, three groups; group 0 was rewritten."""
    table = MadeTable(tmp_path / "t", SCHEMA, row_group_rows=2)
    table.commit(
        at(1),
        {
            ("a", file_id(0)): [row("1", 1), row("2", 2)],
            ("a", file_id(1)): [row("3", 3)],
            ("b", file_id(2)): [row("4", 4, "b"), row("5", 5, "b"), row("6", 6, "b")],
        },
    )
    table.commit(at(2), {("a", file_id(0)): [row("1", 1, _hoodie_commit_time=at(1)), row("2", 20)]})
    return table
