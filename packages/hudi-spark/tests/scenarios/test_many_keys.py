"""Writes of so many keys that Spark's own scan and joins find them: the same as for few."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_spark.writing import engine
from hudi_timeline import HudiTable

OPERATION = "hoodie.datasource.write.operation"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "SIMPLE",
}
DDL = "id string, p string, ts long"


@pytest.mark.spark
@pytest.mark.req("IX-02")
@pytest.mark.parametrize("meta_fields", ["true", "false"])
@pytest.mark.parametrize("broadcast", [500_000, -1], ids=["broadcast", "shuffled"])
@pytest.mark.sampled(4, values=False)
def test_keys_found_by_spark_itself(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broadcast: int, meta_fields: str
) -> None:
    monkeypatch.setattr(engine, "SENT_KEYS", -1)
    monkeypatch.setattr(engine, "BROADCAST_ROWS", broadcast)
    path = str(tmp_path / "t")

    def write(operation: str, rows: list[tuple[str, str, int]]) -> None:
        options = {**OPTIONS, OPERATION: operation, "hoodie.populate.meta.fields": meta_fields}
        writer = spark.createDataFrame(rows, DDL).write.format("hudi").options(**options)
        writer.mode("append").save(path)

    def found() -> list[tuple[str, str, int]]:
        rows = HudiTable.open(path).read(["id", "p", "ts"]).to_arrow().to_pylist()
        return sorted((r["id"], r["p"], r["ts"]) for r in rows)

    first = [(f"k{i}", f"p{i % 3}", 1) for i in range(60)]
    write("bulk_insert", first)
    # A key twice, one of another partition (which is another record), and new ones.
    write("upsert", [("k0", "p0", 5), ("k0", "p0", 4), ("k1", "p2", 6), ("k2", "p2", 7), ("new", "p1", 8)])
    want = {(k, p): ts for k, p, ts in first}
    want |= {("k0", "p0"): 5, ("k1", "p2"): 6, ("k2", "p2"): 7, ("new", "p1"): 8}
    assert found() == sorted((k, p, ts) for (k, p), ts in want.items())
    write("delete", [("k3", "p0", 9), ("k4", "p0", 9), ("new", "p1", 9)])  # k4 is in p1: nothing to delete
    del want["k3", "p0"], want["new", "p1"]
    assert found() == sorted((k, p, ts) for (k, p), ts in want.items())
