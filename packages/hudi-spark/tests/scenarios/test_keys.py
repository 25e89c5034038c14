"""Both engines make the same keys and paths, of any values, with every key generator."""

import itertools
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.keygen.timestamp_based import CONSISTENT, INPUT, OUTPUT, TYPE
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

pytestmark = pytest.mark.spark

_numbers = itertools.count()

WRITE = "hoodie.datasource.write."
BASE = {"hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "p"}
DATES = {
    WRITE + "keygenerator.class": "TimestampBasedKeyGenerator",
    TYPE: "DATE_STRING",
    INPUT: "yyyy-MM-dd",
    OUTPUT: "yyyy/MM/dd",
}
CASES = {
    "dates": (DATES, ["2024-02-29", "1969-12-31", None]),
    "dropped columns": ({WRITE + "drop.partition.columns": "true"}, ["x", "y", None]),
    "virtual keys": ({"hoodie.populate.meta.fields": "false"}, ["x", "y", None]),
    "consistent": ({CONSISTENT: "true", WRITE + "partitionpath.urlencode": "true"},
                   [datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 1, 1, tzinfo=UTC), None]),
    "dates of day": ({}, [date(2024, 2, 29), date(1969, 12, 31), None]),
}  # fmt: skip


def save(spark, tmp_path, table, path, options, operation):
    source = str(tmp_path / f"{next(_numbers)}.parquet")
    pq.write_table(table, source)
    given = {**BASE, **options, WRITE + "operation": operation}
    spark.read.parquet(source).write.format("hudi").options(**given).mode("append").save(str(path))


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("first", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(10, values=False)
def test_a_table_is_written_and_read_alike_on_both_engines(spark, tmp_path, case, first):
    options, values = CASES[case]
    table = pa.table({"id": ["a", "b", "c"], "p": values, "v": ["x"] * 3})
    newer = table.slice(1).set_column(2, "v", pa.array(["y", "y"]))
    for name in ("spark", "python"):
        path = tmp_path / name
        path.mkdir()
        for rows, operation in ((table, first), (newer, "upsert"), (table.slice(0, 1), "delete")):
            if name == "spark":
                save(spark, tmp_path, rows, path, options, operation)
            else:
                given = {**BASE, **options, WRITE + "operation": operation}
                execute(LocalEngine(), open_storage(str(path)), rows, given)
    ours = [
        HudiTable.open(str(tmp_path / n)).read(meta_columns=True).to_arrow().sort_by("id")
        for n in ("spark", "python")
    ]
    plain = [
        n
        for n in ours[0].column_names
        if n not in ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
    ]
    assert ours[0].select(plain) == ours[1].select(plain)
    assert ours[0].column("v").to_pylist() == ["y", "y"]
    frame = spark.read.format("hudi").load(str(tmp_path / "python")).select(*plain).orderBy("id")
    assert [tuple(r) for r in frame.collect()] == [tuple(r.values()) for r in shown(ours[1].select(plain))]


def shown(table):
    """Rows as Spark gives them to Python: timestamps without a zone."""
    rows = table.to_pylist()
    return [
        {k: v.astimezone().replace(tzinfo=None) if isinstance(v, datetime) else v for k, v in row.items()}
        for row in rows
    ]


@pytest.mark.req("KG-03")
@pytest.mark.slow
def test_made_up_keys_on_spark_are_told_apart_and_used_again(spark, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "p": ["x", "x", "y"], "v": ["x"] * 3})
    options = {k: v for k, v in BASE.items() if "recordkey" not in k}
    path = tmp_path / "t"
    source = str(tmp_path / "rows.parquet")
    pq.write_table(table, source)
    frame = spark.read.parquet(source).repartition(3)
    for operation in ("bulk_insert", "insert", "upsert"):
        frame.write.format("hudi").options(**options, **{WRITE + "operation": operation}).mode("append").save(
            str(path)
        )
    stored = spark.read.format("hudi").load(str(path))
    keys = [r[0] for r in stored.select("_hoodie_record_key").collect()]
    assert len(set(keys)) == len(keys) == 9
    assert all(len(k.split("_")) == 3 and len(k.split("_")[0]) == 17 for k in keys)
    pq.write_table(HudiTable.open(str(path)).read(filter="id = 'a'", meta_columns=True).to_arrow(), source)
    read_back = spark.read.parquet(source)
    upsert = {**options, WRITE + "operation": "upsert"}
    changed = read_back.drop("v").selectExpr("*", "'new' v")
    changed.write.format("hudi").options(**upsert).mode("append").save(str(path))
    after = HudiTable.open(str(path)).read(meta_columns=True).to_arrow()
    assert sorted(after.column("_hoodie_record_key").to_pylist()) == sorted(keys)
    assert after.column("v").to_pylist().count("new") == 3
    read_back.write.format("hudi").options(**options, **{WRITE + "operation": "delete"}).mode("append").save(
        str(path)
    )
    assert HudiTable.open(str(path)).read(meta_columns=True).to_arrow().num_rows == 6
