"""Stages that resolve keys on Spark: a dry run counts what the same dry run without a JVM counts."""

from pathlib import Path

import pytest

import hudi_spark
from hudi_format.errors import OrderingValueError
from hudi_spark.writing import engine
from hudi_timeline import HudiTable, write_hudi

pytestmark = pytest.mark.spark

NAMES, DDL = ("id", "p", "ts"), "id string, p string, ts long"
# So many of the filters' answers are wrong that some keys are looked for in vain.
LOOSE = {"hoodie.index.bloom.fpp": "0.5", "hoodie.index.bloom.num_entries": "60"}
INDEXES = {
    "SIMPLE": {},
    "GLOBAL_SIMPLE": {},
    "BLOOM": LOOSE,
    "GLOBAL_BLOOM": LOOSE,
    "RECORD_INDEX": {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "2"},
}
# Of them 20 are there, each file having some; as many are between them, and one is in a partition of its own.
ASKED = [(f"k{n:03d}{end}", f"p{n % 2}", 2) for n in range(20, 40) for end in ("", "x")] + [("a", "new", 2)]


def options(index):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.index.type": index,
        **INDEXES[index],
    }


def dicts(rows):
    return [dict(zip(NAMES, r, strict=True)) for r in rows]


def made(path, index):
    for of_four in ((0, 1), (2, 3)):  # two files in each of two partitions
        rows = [(f"k{n:03d}", f"p{n % 2}", 1) for n in range(60) if n % 4 in of_four]
        write_hudi(path, dicts(rows), key="id", partition_by="p", ordering="ts", options=options(index))
    return HudiTable.open(path)


def files_of(path):
    return {str(f): f.read_bytes() for f in Path(path).rglob("*") if f.is_file()}


@pytest.mark.req("NEW-07", "NEW-08")
@pytest.mark.parametrize("index", INDEXES)
def test_a_dry_run_on_spark_says_what_one_without_a_jvm_says(spark, tmp_path, index):
    path = str(tmp_path / "t")
    table = made(path, index)
    before = files_of(path)
    frame = spark.createDataFrame(ASKED, DDL)
    said = hudi_spark.dry_run(frame, path, options=options(index))
    assert files_of(path) == before
    mine = table.upsert(dicts(ASKED), options=options(index), dry_run=True)
    assert said.lookup == mine.lookup
    assert said.lookup.keys == mine.lookup.keys
    keys = said.lookup.keys
    assert keys.told + keys.ruled_out + keys.found + keys.in_vain == len(ASKED)
    if index != "BUCKET":
        assert (keys.found or keys.told) == 20
    assert (keys.in_vain > 0) == (index not in ("RECORD_INDEX", "BUCKET"))
    if "BLOOM" in index:
        assert 0 < keys.in_vain < 20  # some are false positives, and some are ruled out
    again = [{(s.partition, s.file_id): s.num_update_writes for s in r.write_stats} for r in (said, mine)]
    assert {g: n for g, n in again[0].items() if n} == {g: n for g, n in again[1].items() if n}
    assert (said.inserted, said.updated, said.files_rewritten) == (21, 20, 4) or index == "BUCKET"
    assert said.rewritten_bytes == mine.rewritten_bytes
    assert said.forecast.bytes == mine.forecast.bytes
    assert said.forecast.seconds > 0


@pytest.mark.req("NEW-07")
def test_keys_of_the_join_of_many_are_counted_too(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    made(path, "SIMPLE")
    monkeypatch.setattr(engine, "SENT_KEYS", 0)
    said = hudi_spark.dry_run(spark.createDataFrame(ASKED, DDL), path, options=options("SIMPLE"))
    keys = said.lookup.keys
    assert (keys.told, keys.ruled_out, keys.found, keys.in_vain) == (0, 1, 20, 20)


def test_a_dry_run_refuses_what_the_write_refuses(spark, tmp_path):
    path = str(tmp_path / "t")
    made(path, "SIMPLE")
    before = files_of(path)
    frame = spark.createDataFrame([("k", "p0", None)], DDL)
    with pytest.raises(OrderingValueError):
        hudi_spark.dry_run(frame, path, options=options("SIMPLE"))
    assert files_of(path) == before


@pytest.mark.req("NEW-07", "IX-08", "IX-12")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_records_that_move_are_deleted_and_inserted_in_a_dry_run_too(spark, tmp_path, index):
    path = str(tmp_path / "t")
    made(path, index)
    moving = {**options(index), "hoodie.record.index.update.partition.path": "true"}
    # Two stay in their partition, three go to the other one, and one is new.
    rows = [
        ("k000", "p0", 2),
        ("k001", "p1", 2),
        *((k, "p0", 2) for k in ("k003", "k005", "k007")),
        ("n", "p1", 2),
    ]
    said = hudi_spark.dry_run(spark.createDataFrame(rows, DDL), path, options=moving)
    assert (said.inserted, said.updated, said.deleted) == (4, 2, 3)
