"""Columns with names that rows of plans, listings and feeds have too: the table's own are read, written and found."""

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable

QUIET = {"hoodie.table.services.enabled": "false", "hoodie.compact.inline": "false"}
NAMES = (
    "partition", "path", "file_id", "instant", "size", "files", "bytes", "newest_instant", "name", "bucket", "key",
    "position", "row", "index", "source", "op", "ts_ms", "before", "after", "record_key", "count", "change",
    "operation", "deleted", "ordering", "values", "file",
)  # fmt: skip


@pytest.mark.parametrize("drop", [False, True], ids=["stored", "dropped"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(27)
def test_a_partition_column_of_any_name(tmp_path, name, table_type, drop):
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), (name, pa.string())])
    options = {"hoodie.datasource.write.drop.partition.columns": str(drop).lower()}
    table = HudiTable.create(
        tmp_path / "t", schema, name="t", record_keys=["id"], partition_fields=[name], table_type=table_type,
        options=options,
    )  # fmt: skip

    def rows(n):
        return [{"id": "a", "v": n, name: "x"}, {"id": "b", "v": n, name: "y"}]

    for n in (1, 2):
        table.upsert(rows(n), options=QUIET)
    first, last = (i.time for i in table.timeline.completed_writes())
    assert sorted(table.read().to_arrow().to_pylist(), key=lambda r: r["id"]) == rows(2)
    assert table.read(filter=f"`{name}` = 'x'").to_arrow().to_pylist() == rows(2)[:1]
    assert table.count(f"`{name}` = 'y'") == 1
    assert sorted(table.read([name]).to_arrow().column(name).to_pylist()) == ["x", "y"]
    assert sorted(r["v"] for r in table.read(as_of=first).to_arrow().to_pylist()) == [1, 1]
    assert sorted(r["v"] for r in table.read_incremental(first, last).to_arrow().to_pylist()) == [2, 2]
    assert table.read_changes(first, last).count() == 2
    assert table.get(["a"]).to_pylist() == rows(2)[:1]
    assert [c["after"] for c in table.key_history(["b"]).changes.to_pylist()] == [rows(1)[1], rows(2)[1]]
    assert table.read(filter=f"`{name}` = 'x'").explain().files.num_rows
    facts = table.inspect.partitions().to_pylist()
    assert [f["partition"] for f in facts] == ["x", "y"]
    shown = {"partition", "files", "bytes", "newest_instant"}
    assert [f[f"{name}_value" if name in shown else name] for f in facts] == ["x", "y"]
    assert table.delete(f"`{name}` = 'x'", options=QUIET).deleted == 1
    assert table.read().to_arrow().to_pylist() == rows(2)[1:]
    assert table.verify(deep=True) == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(27)
def test_a_key_and_ordering_column_of_any_name(tmp_path, name, table_type):
    schema = pa.schema([(name, pa.string()), (f"{name}_", pa.int64()), ("p", pa.string())])
    table = HudiTable.create(
        tmp_path / "t", schema, name="t", record_keys=[name], partition_fields=["p"], ordering_fields=[f"{name}_"],
        table_type=table_type,
    )  # fmt: skip
    rows = [{name: k, f"{name}_": 5, "p": "x"} for k in "ab"]
    table.upsert(rows, options=QUIET)
    # Of several rows of a key that are given at once the greatest counts.
    table.upsert([{**rows[1], f"{name}_": 7}, {**rows[1], f"{name}_": 6}], options=QUIET)
    want = [rows[0], {**rows[1], f"{name}_": 7}]
    assert sorted(table.read().to_arrow().to_pylist(), key=lambda r: r[name]) == want
    assert table.get({name: ["b"]}).to_pylist() == want[1:]
    if name == "source":
        with pytest.raises(UnsupportedError, match="the name by which clauses know"):
            table.merge(rows[:1]).when_matched_update().execute()
    else:
        merged = table.merge([{**rows[0], f"{name}_": 9}], options=QUIET).when_matched_update().execute()
        assert merged.updated == 1
    assert table.update({f"{name}_": 10}, f"`{name}` = 'a'", options=QUIET).updated == 1
    assert table.duplicates().num_rows == 0
    assert table.read().to_arrow().num_rows == 2
    assert table.delete(f"`{name}` = 'b'", options=QUIET).deleted == 1
    assert table.read().to_arrow().to_pylist() == [{**rows[0], f"{name}_": 10}]
    assert table.verify(deep=True) == []
