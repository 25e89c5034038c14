"""Indexes of the metadata table, built from a session."""

import pytest

import hudi_spark
from hudi_timeline import HudiTable

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.metadata.enable": "true",
}


@pytest.mark.req("TM-16")
def test_indexes_are_built_and_dropped_by_the_session_and_filters_use_them(spark, tmp_path):
    path = str(tmp_path / "t")
    for n in range(2):
        frame = spark.createDataFrame(
            [(n * 10 + i, f"p{i % 2}", n) for i in range(6)], "id int, p string, v int"
        )
        options = {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}
        frame.coalesce(1).write.format("hudi").options(**options).mode("append").save(path)
    planned = hudi_spark.build_index(spark, path, "column_stats", mode="schedule").scheduled
    built = hudi_spark.build_index(spark, path, ["column_stats", "record_index"])
    assert built.executed[0] == planned
    assert sorted(built.built) == ["column_stats", "record_index"]
    table = HudiTable.open(path)
    assert table.verify(deep=True) == []
    reading = spark.read.format("hudi").option("hoodie.metadata.enable", "true")
    assert reading.option("hoodie.enable.data.skipping", "true").load(path).where("v = 1").count() == 6
    assert hudi_spark.drop_index(spark, path, "record_index").dropped == ("record_index",)
    assert HudiTable.open(path).config.metadata_partitions == ("column_stats", "files")
