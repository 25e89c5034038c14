"""Deletes of a frame among the keys of others: as on the local engine, and beside another writer."""

import pyarrow as pa
import pytest
from rival_writers import OCC, Losing, adds, beside, make, rows, values

from hudi_format.errors import WriteConflictError
from hudi_index.lookup import GLOBAL_SIMPLE, LookupTask
from hudi_spark.writing.deleted_keys import deletes_among
from hudi_spark.writing.writer import last_commit
from hudi_timeline import HudiTable
from hudi_timeline.transaction.retries import LOOKUPS

pytestmark = [pytest.mark.spark, pytest.mark.req("CC-01")]

OPERATION = "hoodie.datasource.write.operation"
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
OF_OTHERS = {"x": pa.array(["a", "c"]), "y": pa.array(["a", "b"])}


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (LookupTask(delete_all=True), {"a", "b", "c"}),
        (LookupTask(), {"a"}),
        (LookupTask(index=GLOBAL_SIMPLE), {"a", "z"}),
        (LookupTask(index=GLOBAL_SIMPLE, delete_all=True), {"a", "b", "c", "z"}),
    ],
)
def test_keys_of_deletes_that_others_have(spark, task, wanted):
    given = [("a", "x", True), ("b", "y", None), ("c", "x", False), ("z", "x", True), ("d", "x", True)]
    names = "_hoodie_record_key string, _hoodie_partition_path string, _hoodie_is_deleted boolean"
    frame = spark.createDataFrame(given, names)
    others = {**OF_OTHERS, "q": pa.array(["z"])}
    assert {r[0] for r in deletes_among(frame, others, task).collect()} == wanted


@pytest.fixture
def save(spark, tmp_path):
    def write(table, operation, **options):
        ddl = "id string, p string, ts long, v int, s struct<a:int>, extra string"
        frame = spark.createDataFrame([tuple(r.values()) for r in table.to_pylist()], ddl).coalesce(1)
        given = {**OPTIONS, **OCC, **options, OPERATION: operation}
        frame.write.format("hudi").options(**given).mode("append").save(str(tmp_path / "t"))

    return write


def test_a_frame_of_keys_is_deleted_with_rows_that_came_meanwhile(save, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    make(path)
    between = beside(path, monkeypatch, "nx")
    save(rows("ax", "nx"), "delete")
    assert ("n", "x") in between.state[0]
    assert last_commit().retries == 0  # keys are looked up again at once, as on the local engine
    assert values(path) == [("by", 1), ("cq", 1)]
    beside(path, monkeypatch, "mx", "by")
    save(rows("mx", "by"), "delete", **RETRY)
    assert values(path) == [("cq", 1)]


@pytest.mark.slow
def test_a_frame_whose_keys_are_found_again_and_again_ends_as_a_conflict(save, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    make(path)
    # They come while this write waits for them, so they do not wait for the precedence that it has after some tries.
    hasty = {**OCC, "hudi.write.precedence.wait_ms": "0"}
    others = Losing(monkeypatch, path, [adds("nx", options=hasty)] * (LOOKUPS + 1), [])
    with pytest.raises(WriteConflictError) as e:
        save(rows("ax", "nx"), "delete")
    assert (e.value.keys, e.value.retry_safe) == (("n",), True)
    assert others.came == LOOKUPS + 1
    assert [v for v in values(path) if v[0] == "ax"] == [("ax", 1)]


@pytest.mark.slow
def test_a_frame_that_drops_known_keys_finds_those_that_came_meanwhile(save, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    make(path)
    beside(path, monkeypatch, "nx")
    save(rows("ax", "nx", "mx", ts=9, v=9), "insert", **DROP)
    assert values(path) == [("ax", 1), ("by", 1), ("cq", 1), ("mx", 9), ("nx", 5)]
    monkeypatch.undo()
    between = beside(path, monkeypatch, "nx", act="delete")
    save(rows("nx", "kx", ts=9, v=9), "insert", **DROP, **RETRY)
    assert ("n", "x") not in between.state[0]
    assert {("nx", 9), ("kx", 9)} <= set(values(path))
    assert HudiTable.open(path).verify(deep=True) == []
