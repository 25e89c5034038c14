"""Tables whose columns were changed by `alter`, read and written by Spark: by the columns' ids, not by their names."""

import pytest

import hudi_spark
from hudi_timeline import HudiTable, write_hudi


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.sampled(2)
def test_an_altered_table_is_read_and_written(spark, tmp_path, table_type):
    hudi_spark.enable(spark)
    path = str(tmp_path / "t")
    rows = [{"id": k, "city": "x", "fare": 1.0, "n": 1, "ts": 1} for k in "ab"]
    write_hudi(path, rows, key="id", partition_by="city", ordering="ts", table_type=table_type)
    table = HudiTable.open(path)
    table.alter().add("note", "string").rename("fare", "price").widen("n", "double").execute()

    def found():
        frame = spark.read.format("hudi").load(path).select("id", "price", "n", "note")
        return sorted(map(tuple, frame.collect()))

    assert found() == [("a", 1.0, 1.0, None), ("b", 1.0, 1.0, None)]
    options = {
        "hoodie.table.name": table.name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    schema = "id string, city string, price double, n double, ts bigint, note string"
    more = spark.createDataFrame([("a", "x", 9.5, 7.0, 2, "new"), ("c", "x", 3.0, 3.0, 1, None)], schema)
    more.write.format("hudi").options(**options).mode("append").save(path)
    want = [("a", 9.5, 7.0, "new"), ("b", 1.0, 1.0, None), ("c", 3.0, 3.0, None)]
    assert found() == want
    read = HudiTable.open(path).read(["id", "price", "n", "note"])
    assert sorted(tuple(row.values()) for row in read) == want
