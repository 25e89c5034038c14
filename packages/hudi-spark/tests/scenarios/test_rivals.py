"""A DataFrame's write beside another writer that changes what it was planned from: the frame is evaluated once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pytest
from rival_writers import LAZY, NULLS, RIVALS, Between, Losing, adds, make, rows, state

from hudi_format.errors import WriteConflictError
from hudi_format.schema.changes import DROPPED, schema_changes
from hudi_spark.writing.writer import last_commit
from hudi_timeline import HudiTable
from hudi_timeline.concurrency import markers
from hudi_timeline.options import parse_write_options
from hudi_timeline.transaction.transaction import begin_transaction

BEFORE, DURING = "before the instant", "while it writes"
OPERATION = "hoodie.datasource.write.operation"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def counted(file: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes batches on, and notes each time that the rows are made."""

    def pass_on(batches):  # of no module that a worker would have to import
        for batch in batches:
            if batch.num_rows:
                with open(file, "a") as noted:
                    noted.write("x")
            yield batch

    return pass_on


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "t"
    make(str(folder))
    return folder


@pytest.fixture
def path(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    return str(tmp_path / "t")


@pytest.fixture
def save(spark, path, tmp_path):
    """Writes rows as a frame, and gives how often they were made."""

    def write(table, operation, **options):
        kinds = {
            "id": "string",
            "p": "string",
            "ts": "long",
            "v": "int",
            "s": "struct<a:int>",
            "extra": "string",
        }
        ddl = ", ".join(f"{n} {kinds.get(n, 'string')}" for n in table.schema.names)
        frame = spark.createDataFrame([tuple(r.values()) for r in table.to_pylist()], ddl).coalesce(1)
        frame = frame.mapInArrow(counted(str(tmp_path / "evaluations")), frame.schema)
        given = {**OPTIONS, **options, OPERATION: operation}
        frame.write.format("hudi").options(**given).mode("append").save(path)

    write.evaluations = lambda: len((tmp_path / "evaluations").read_text())
    return write


WRITTEN = [
    ("adds a column", BEFORE, "upsert", NULLS),
    ("adds a column", BEFORE, "insert", {}),
    ("adds a column", BEFORE, "bulk_insert", {}),
    ("adds a column", BEFORE, "delete", {}),
    ("adds a column", DURING, "upsert", {}),
    ("adds a column", DURING, "bulk_insert", {}),
    ("adds a member", BEFORE, "insert", {}),
    ("widens", BEFORE, "upsert", {}),
    ("widens to text", BEFORE, "upsert", {}),
    ("widens to text", DURING, "insert", {}),
    ("records a global index", BEFORE, "upsert", {}),
    ("deletes our partition", BEFORE, "upsert", {}),
    ("restores", BEFORE, "upsert", {}),
]


@pytest.mark.req("CC-01", "CC-04", "CC-40", "SE-02")
@pytest.mark.sampled(9, values=False)
@pytest.mark.parametrize(("rival", "moment", "operation", "options"), WRITTEN)
def test_nothing_is_lost_and_the_frame_is_evaluated_once(
    save, path, monkeypatch, rival, moment, operation, options
):
    between = Between(monkeypatch, path, RIVALS[rival], moment)
    ours = rows("nx", ts=9) if operation.endswith("insert") else rows("ax", "nx", ts=9)
    save(ours, operation, **(LAZY if moment == DURING else {}), **options)
    assert between.ran
    assert between.refused is None
    assert save.evaluations() == 1
    there, schema = state(path)
    before, left = between.state
    assert [str(c) for c in schema_changes(schema, left, schema) if c.kind == DROPPED] == []
    touched = {(r["id"], r["p"]) for r in ours.to_pylist()}
    for key, row in before.items():
        if key not in touched:
            assert {c: there[key][c] for c in row} == row
    if operation == "delete":
        assert touched.isdisjoint(there)
    else:
        assert all(there[key]["ts"] == 9 and str(there[key]["v"]) == "7" for key in touched)
    assert "this write" in " ".join(last_commit().warnings)
    assert HudiTable.open(path).verify(deep=True) == []


CONFLICTS = [
    ("adds a column", BEFORE, "upsert", {}),
    ("adds a column to our rows", DURING, "upsert", NULLS),
    ("records a global index", DURING, "upsert", {}),
    ("sets the ordering field", BEFORE, "upsert", {}),
    ("makes the table anew with other keys", BEFORE, "upsert", {}),
]


@pytest.mark.req("CC-01", "CC-04", "CC-40")
@pytest.mark.parametrize(("rival", "moment", "operation", "options"), CONFLICTS)
@pytest.mark.sampled(3)
def test_what_does_not_go_together_is_a_conflict(save, path, monkeypatch, rival, moment, operation, options):
    between = Between(monkeypatch, path, RIVALS[rival], moment)
    with pytest.raises(WriteConflictError) as e:
        save(rows("ax", ts=9), operation, **(LAZY if moment == DURING else {}), **options)
    assert e.value.remedy
    assert save.evaluations() == 1
    assert state(path) == between.state
    assert HudiTable.open(path).verify(deep=True) == []


OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
RETRIED = {**OCC, "hoodie.write.num.retries.on.conflict.failures": "2"}


@pytest.mark.req("CC-27", "CC-40", "TP-06")
@pytest.mark.parametrize("operation", ["upsert", "delete", "insert_overwrite"])
@pytest.mark.sampled(3)
def test_a_frame_that_lost_is_evaluated_and_written_again(save, path, monkeypatch, operation):
    def rival(table):
        HudiTable.open(table).upsert(rows("ax", "zx", ts=5, v=5), options=OCC)

    between = Between(monkeypatch, path, rival, DURING)
    save(rows("ax", "nx", ts=9), operation, **RETRIED)
    assert between.refused is None
    assert (last_commit().retries, save.evaluations()) == (1, 2)
    there = {k: r["v"] for k, r in state(path)[0].items() if k[1] == "x"}
    assert (
        there
        == {
            "upsert": {("a", "x"): 7, ("n", "x"): 7, ("z", "x"): 5},
            "delete": {("z", "x"): 5},
            "insert_overwrite": {("a", "x"): 7, ("n", "x"): 7},
        }[operation]
    )
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-16")
def test_a_frame_meets_the_markers_of_a_writer_that_goes_on(save, path, monkeypatch):
    """The task gives the conflict back: it is not tried four times."""
    early = {**OCC, "hoodie.write.concurrency.early.conflict.detection.enable": "true"}
    table = HudiTable.open(path)
    rival = begin_transaction(
        table.storage, table.config, operation="UPSERT", options=parse_write_options(OCC).transaction
    )
    rival.inflight({})
    files = table.inspect.files().to_pylist()
    group = next(f["file_id"] for f in files if f["partition"] == "x")
    markers.create(table.storage, rival.instant, "x", f"{group}_0-1-1_{rival.instant}.parquet", "MERGE")
    before = state(path)
    with pytest.raises(WriteConflictError, match="nothing of it was written") as e:
        save(rows("ax", "by", ts=9), "upsert", **early)
    assert (e.value.rival, e.value.file_groups) == (rival.instant, (f"x/{group}",))
    assert state(path) == before
    rival.abort()
    save(rows("ax", "by", ts=9), "upsert", **early)
    assert {r["ts"] for k, r in state(path)[0].items() if k[0] in "ab"} == {9}
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-31")
def test_a_frame_and_another_writer_append_to_one_slice(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "buckets")
    free = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    }

    def frame(keys, ts):
        return spark.createDataFrame([(k, "x", ts, ts) for k in keys], "id string, p string, ts long, v long")

    frame("abcdef", 1).write.format("hudi").options(**free).mode("overwrite").save(path)

    def rival(where):
        given = pa.table({"id": list("abz"), "p": ["x"] * 3, "ts": [9] * 3, "v": [9] * 3})
        HudiTable.open(where).upsert(
            given, options={k: v for k, v in free.items() if "index" in k or "mode" in k}
        )

    between = Between(monkeypatch, path, rival, DURING)
    frame("abm", 5).write.format("hudi").options(**free).mode("append").save(path)
    assert (between.refused, last_commit().retries) == (None, 0)
    there = {r["id"]: r["v"] for r in spark.read.format("hudi").load(path).collect()}
    assert there == {"a": 9, "b": 9, "z": 9, "m": 5, "c": 1, "d": 1, "e": 1, "f": 1}
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-24", "TP-06")
def test_two_frames_of_new_rows_do_not_collide(save, path, monkeypatch):
    def rival(table):
        HudiTable.open(table).insert(rows("rx"), options=OCC)

    between = Between(monkeypatch, path, rival, DURING)
    save(rows("nx"), "insert", **OCC)
    assert between.refused is None
    assert {"a", "r", "n"} == {k[0] for k in state(path)[0] if k[1] == "x"}


@pytest.mark.req("NEW-16", "CC-17")
def test_a_frame_does_not_add_a_key_that_came_between_two_of_its_tries(save, path, monkeypatch):
    filling = {**OCC, "hoodie.parquet.small.file.limit": "104857600"}
    during = [adds("ax", options=filling, operation="upsert")]
    Losing(monkeypatch, path, during, [adds("nx", options={**OCC, "hoodie.parquet.small.file.limit": "0"})])
    with pytest.raises(WriteConflictError, match="wrote 1 of the same record keys first") as e:
        save(rows("nx", "mx", ts=9), "insert", **filling, **{"hudi.write.conflict.detection": "keys"})
    assert not e.value.retry_safe
    assert save.evaluations() == 2
    there = HudiTable.open(path).read(["id", "v"], filter="p = 'x'").to_arrow().to_pylist()
    assert sorted((r["id"], r["v"]) for r in there) == [("a", 5), ("n", 5)]


@pytest.mark.req("NEW-16", "CC-17")
def test_frames_are_compared_by_key_where_that_is_asked_for(save, path, monkeypatch):
    """A key that two add is one row; other keys of one file group are no conflict."""

    def rival(table):
        HudiTable.open(table).upsert(rows("nx", "ax", ts=5, v=5), options=OCC)

    between = Between(monkeypatch, path, rival, DURING)
    keys = {**OCC, "hudi.write.conflict.detection": "keys", "hoodie.parquet.small.file.limit": "0"}
    with pytest.raises(WriteConflictError) as e:
        save(rows("nx", "mx", ts=9), "upsert", **keys)
    assert e.value.keys == ("n",)
    assert state(path) == between.state
    save(rows("nx", "mx", ts=9), "upsert", **keys)
    there = {k: r["v"] for k, r in state(path)[0].items() if k[1] == "x"}
    assert there == {("a", "x"): 5, ("n", "x"): 7, ("m", "x"): 7}
