"""Tables whose base files Apache Hudi 0.15 wrote with INT96 timestamps (`hoodie.parquet.outputtimestamptype`)."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_timeline import HudiTable

INSTANT = pa.timestamp("us", "UTC")
WRITE = "hoodie.datasource.write."
COLUMNS = ["id", "p", "at", "n", "deep"]


def in_order(rows):
    return sorted(rows.select(COLUMNS).to_pylist(), key=lambda r: r["id"])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_read_and_write_on(apache, tmp_path, kind):
    path = tmp_path / "t"
    at = [
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(1900, 1, 1, tzinfo=UTC),
        None,
    ]
    rows = pa.table(
        {
            "id": list("abcd"),
            "p": list("xxyy"),
            "at": pa.array(at, INSTANT),
            "n": [1, 2, 3, 4],
            "deep": pa.array([{"at": t} if t else None for t in at], pa.struct([("at", INSTANT)])),
        }
    )
    options = {
        "hoodie.table.name": "t", WRITE + "table.type": kind, WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "p", WRITE + "precombine.field": "n", "hoodie.metadata.enable": "false",
        WRITE + "operation": "bulk_insert", "hoodie.parquet.outputtimestamptype": "INT96",
    }  # fmt: skip
    apache.write(path, rows, options)
    for file in path.glob("*/*.parquet"):
        assert "INT96" in {pq.ParquetFile(file).schema.column(n).physical_type for n in range(10)}
    table = HudiTable.open(path)
    assert in_order(table.read().to_arrow()) == in_order(apache.read(path)) == in_order(rows)
    late = pc.field("at") > pa.scalar(datetime(2024, 6, 1, tzinfo=UTC), INSTANT)
    assert table.read(["id"], late).to_arrow()["id"].to_pylist() == ["b"]
    table.upsert(rows.slice(0, 2).set_column(3, "n", pa.array([11, 12])))
    table.delete("id = 'd'")
    assert in_order(table.read().to_arrow()) == in_order(apache.read(path))
    if kind == "MERGE_ON_READ":
        table.compact()
        assert in_order(table.read().to_arrow()) == in_order(apache.read(path))
    assert [r["n"] for r in in_order(apache.read(path))] == [11, 12, 3]
    assert table.verify(deep=True) == []
