"""Rows of one key in several partitions on Spark: they go where the last goes, and meet the stored record in order."""

import random

import merge_functions
import pytest
from moving_records import MERGES, Source, after, shown

from hudi_format.merge.user_merger import merge_text
from hudi_index.lookup import GLOBAL_SIMPLE, LookupTask
from hudi_spark.types import to_spark_schema
from hudi_spark.writing.key_places import ROW_ID
from hudi_spark.writing.rows_of_keys import HAS_DATA, repeated_keys, together
from hudi_timeline import HudiTable, allow_functions

pytestmark = pytest.mark.spark

CASES = [
    ("postgres", "GLOBAL_SIMPLE", "MERGE_ON_READ"),
    ("mysql", "GLOBAL_BLOOM", "MERGE_ON_READ"),
    ("hooked", "RECORD_INDEX", "COPY_ON_WRITE"),
    ("expressions", "GLOBAL_BLOOM", "COPY_ON_WRITE"),
    ("function", "GLOBAL_SIMPLE", "MERGE_ON_READ"),
]


@pytest.fixture(autouse=True)
def shipped(spark):
    spark.sparkContext.addPyFile(merge_functions.__file__)


def test_all_rows_of_a_key_go_where_its_last_one_goes_that_is_no_delete(spark):
    rows = spark.createDataFrame(
        [("a", "x", 0, False), ("b", "x", 1, False), ("a", "y", 2, False), ("a", "z", 3, True),
         ("c", "x", 4, True), ("c", "y", 5, True), ("d", "x", 6, True)],
        f"_hoodie_record_key string, _hoodie_partition_path string, {ROW_ID} long, _hoodie_is_deleted boolean",
    )  # fmt: skip
    task = LookupTask(GLOBAL_SIMPLE, rule=MERGES["function"].rule)
    assert task.keeps_together
    found = together(rows, repeated_keys(rows, task), task)
    assert {(r[ROW_ID], r["_hoodie_partition_path"], r[HAS_DATA]) for r in found.collect()} == {
        (0, "y", True), (1, "x", True), (2, "y", True), (3, "y", True), (4, "x", False), (5, "y", False),
        (6, "x", False),
    }  # fmt: skip


@pytest.mark.sampled(6, values=False)
@pytest.mark.req("NEW-04", "IX-06", "IX-08", "PM-08", "PM-10", "PM-15")
@pytest.mark.parametrize(("merge", "index", "kind"), CASES)
def test_records_meet_wherever_they_are(spark, tmp_path, merge, index, kind):
    rule, rng = MERGES[merge], random.Random(f"{merge} {index} {kind}")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": rule.ordering,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": index,
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.metadata.record.index.enable": str(index == "RECORD_INDEX").lower(),
        "hoodie.compact.inline": "false",
        "hoodie.parquet.small.file.limit": "0",
        **{k: merge_text(v) for k, v in rule.options.items()},
    }
    state, path = {}, str(tmp_path)
    source = Source(rng, rule, [f"k{n}" for n in range(12)], strict=kind == "MERGE_ON_READ")
    with allow_functions("merge_functions.*"):
        for step in range(3):
            rows = source.rows()
            frame = spark.createDataFrame(
                [tuple(r[n] for n in rule.schema.names) for r in rows], to_spark_schema(rule.schema)
            )
            frame.write.format("hudi").options(**options).mode("append").save(path)
            state = after(state, rows, rule, moves=True)
            found = HudiTable.open(path).read(meta_columns=True).to_arrow().to_pylist()
            names = [n for n in rule.schema.names if n not in ("p", "_hoodie_is_deleted")]
            held = {r["id"]: (r["_hoodie_partition_path"], {n: r[n] for n in names}) for r in found}
            assert held == shown(state), f"after write {step}"
            assert len(held) == len(found)
        assert HudiTable.open(path).verify(deep=True) == []
