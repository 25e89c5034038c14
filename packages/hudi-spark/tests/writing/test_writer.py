"""Writes through Spark do to a table what the same writes without a JVM do."""

import os
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hudi_spark
from hudi_format.errors import HudiError, MissingColumnError, OptionError, OrderingValueError, RecordKeyError
from hudi_format.storage.open import open_storage
from hudi_spark.writing import engine
from hudi_timeline import HudiTable
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.transaction.transaction import begin_transaction
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
OPERATION = "hoodie.datasource.write.operation"


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


def options(**more):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        **{k.replace("__", "."): v for k, v in more.items()},
    }


def frame_of(spark, table):
    return spark.createDataFrame(table.to_pylist(), "id string, city string, ts long, v double")


def save(spark, path, table, operation, given=None, mode="append"):
    frame = frame_of(spark, table) if isinstance(table, pa.Table) else table
    writer = frame.write.format("hudi").options(**(given or options())).option(OPERATION, operation)
    writer.mode(mode).save(path)
    return hudi_spark.last_commit()


def without_jvm(path, table, operation, given=None):
    opened = HudiTable.open(path)
    call = opened.delete if operation == "delete" else getattr(opened, operation)
    return call(table, options=given or options())


def content(path, columns=("_hoodie_record_key", "_hoodie_partition_path", "id", "city", "ts", "v")):
    found = HudiTable.open(path).read(list(columns)).to_arrow()
    return sorted(map(tuple, (r.values() for r in found.to_pylist())), key=str)


FIRST = rows(*[(f"k{i}", ("oslo", "rome", "bern")[i % 3], 1, i / 2) for i in range(60)])
STEPS = [
    ("upsert", rows(*[(f"k{i}", ("oslo", "rome", "bern")[i % 3], 2, -1.0) for i in range(0, 90, 7)])),
    (
        "upsert",
        rows(("k1", "rome", 5, 1.5), ("k1", "rome", 9, 2.5), ("k1", "rome", 7, 3.5), ("new", "lima", 1, 0.0)),
    ),
    ("insert", rows(("k2", "bern", 1, 8.0), ("i1", "oslo", 1, 8.0))),
    ("delete", rows(("k3", "oslo", 1, None), ("none", "oslo", 1, None), ("k4", "oslo", 1, None))),
    ("insert_overwrite", rows(("o1", "lima", 1, 1.0), ("o2", "lima", 1, 2.0))),
    ("bulk_insert", rows(("b1", "kiev", 1, 1.0), ("b1", "kiev", 1, 2.0))),
    ("insert_overwrite_table", rows(("z1", "oslo", 1, 1.0), ("z2", "", 1, 2.0), ("z3", None, 1, None))),
]


@pytest.mark.req("WR-01", "WR-02", "WR-03")
@pytest.mark.one_version
def test_a_sequence_of_operations_gives_the_rows_and_counts_of_the_engine_without_a_jvm(spark, tmp_path):
    here, there = str(tmp_path / "spark"), str(tmp_path / "python")
    HudiTable.create(
        there, SCHEMA, name="t", record_keys=["id"], partition_fields=["city"], ordering_fields=["ts"]
    )
    given = options(
        **{"hudi.partition.null.texts": "write"}
    )  # the empty text of the last step is stored as null
    save(spark, here, FIRST, "bulk_insert", given)
    without_jvm(there, FIRST, "bulk_insert", given)
    assert content(here) == content(there)
    for operation, table in STEPS:
        ours, theirs = (
            save(spark, here, table, operation, given),
            without_jvm(there, table, operation, given),
        )
        counts = [(c.inserted, c.updated, c.deleted, c.partitions, c.operation) for c in (ours, theirs)]
        assert counts[0] == counts[1], operation
        assert content(here) == content(there), operation


@pytest.mark.one_version
def test_an_ordering_field_keeps_a_newer_stored_row_where_the_payload_says_so(spark, path):
    given = options(
        **{"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    )
    save(spark, path, rows(("a", "x", 5, 1.0)), "upsert", given)
    save(spark, path, rows(("a", "x", 4, 2.0)), "upsert", given)
    assert [r[-1] for r in content(path)] == [1.0]
    save(spark, path, rows(("a", "x", 5, 3.0)), "upsert", given)
    assert [r[-1] for r in content(path)] == [3.0]


@pytest.mark.req("PM-02", "PM-09", "PM-15")
@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
@pytest.mark.sampled(2)
def test_payloads_leave_the_same_rows_on_both_engines(spark, tmp_path, payload):
    given = options() | {
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.payload.ordering.field": "ts",
    }
    steps = [
        rows(*[(f"k{i}", "x", 5, i / 2 if i % 3 else None) for i in range(12)]),
        rows(
            *[(f"k{i}", "x", 3 + i % 5, None if i % 2 else -1.0) for i in range(4, 16)], ("k5", "x", 9, None)
        ),
    ]
    here, there = str(tmp_path / "spark"), str(tmp_path / "python")
    for table in steps:
        save(spark, here, table, "upsert", given)
        execute(LocalEngine(), open_storage(there), table, given | {OPERATION: "upsert"})
    assert content(here) == content(there)
    assert HudiTable.open(here).config.payload_class.endswith(payload)


@pytest.mark.one_version
def test_delete_partition_takes_patterns(spark, path):
    save(spark, path, FIRST, "bulk_insert")
    save(
        spark, path, FIRST.slice(0, 0), "delete_partition",
        options(**{"hoodie.datasource.write.partitions.to.delete": "o*,bern"}),
    )  # fmt: skip
    assert {r[3] for r in content(path)} == {"rome"}


KEYS = [
    ("d", "date'2024-02-29'"), ("t", "timestamp'2024-03-05 10:00:00.123456'"),
    ("n", "timestamp_ntz'2024-03-05 10:00:00'"),
    ("x", "1e-7d"), ("p", "cast(0.0000001 as decimal(20,10))"), ("b", "true"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), KEYS, ids=[k for k, _ in KEYS])
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_a_key_of_any_type_finds_its_row_again(spark, path, column, value):
    frame = spark.sql(f"select {value} as {column}, 'x' as city, id as v from range(1)")
    given = options(**{"hoodie.datasource.write.recordkey.field": column})
    del given["hoodie.datasource.write.precombine.field"]
    frame.write.format("hudi").options(**given).mode("append").save(path)
    frame.withColumn("v", F.lit(7).cast("long")).write.format("hudi").options(**given).mode("append").save(
        path
    )
    assert hudi_spark.last_commit().updated == 1
    assert spark.read.format("hudi").load(path).collect()[0].v == 7


def test_all_types_come_back(spark, path, to_arrow):
    frame = spark.createDataFrame(
        [
            ("1", True, 1, 2, 3, 4, 1.5, 2.5, Decimal("1.25"), date(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
             datetime(2024, 1, 2, 3, 4, 5, 6), b"\x00\x01", [1, None], {"a": 1, "b": None}, (1, ("x", [("y",)]))),
            ("2", *([None] * 15)),
        ],
        "id string, b boolean, y tinyint, h smallint, i int, l long, f float, x double, p decimal(12,2), d date, "
        "t timestamp, n timestamp_ntz, z binary, a array<int>, m map<string,int>, "
        "s struct<u:int,w:struct<q:string,r:array<struct<o:string>>>>",
    )  # fmt: skip
    given = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    for operation in ("bulk_insert", "upsert", "insert", "insert"):
        frame.write.format("hudi").options(**given).option(OPERATION, operation).mode("append").save(path)
    read = spark.read.format("hudi").load(path).select(*frame.columns).orderBy("id")
    wanted = to_arrow(frame.orderBy("id")).to_pylist()
    assert to_arrow(read).to_pylist() == [row for row in wanted for _ in range(3)]
    assert [f.dataType.simpleString() for f in read.schema][2:4] == ["int", "int"]


@pytest.mark.slow
def test_more_file_groups_than_tasks_are_all_written(spark, path, monkeypatch):
    many = spark.range(600).selectExpr("cast(id as string) id", "concat('p', id % 300) city", "1L ts", "1D v")
    made = save(spark, path, many, "insert")
    assert made.files_written == 300
    monkeypatch.setattr(engine, "BROADCAST_ROWS", 0)
    again = save(spark, path, many.where("id % 2 = 0"), "upsert")
    assert (again.updated, again.inserted) == (300, 0)
    assert HudiTable.open(path).read().count() == 600


@pytest.mark.one_version
def test_columns_are_added_and_widened(spark, path):
    narrow = spark.sql("select 'a' id, 'x' city, 1L ts, 1 n")
    given = options()
    narrow.write.format("hudi").options(**given).mode("append").save(path)
    wide = spark.sql("select 'b' id, 'x' city, 1L ts, 5000000000 n, 'new' c")
    wide.write.format("hudi").options(**given).mode("append").save(path)
    found = spark.read.format("hudi").load(path).select("id", "n", "c").orderBy("id").collect()
    assert [tuple(r) for r in found] == [("a", 1, None), ("b", 5000000000, "new")]


def test_the_cache_of_the_input_is_released(spark, path):
    frame = spark.sql("select 'a' id, 'x' city, 1L ts, 1D v")
    save(spark, path, frame, "upsert")
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()
    save(spark, path, frame, "upsert")
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == kept


BAD = [
    (rows((None, "x", 1, 1.0), ("a", "x", 1, 1.0)), {}, RecordKeyError),
    (rows(("", "x", 1, 1.0)), {}, RecordKeyError),
    (rows(("a", "x", None, 1.0)), {}, OrderingValueError),
    (FIRST, {"hoodie.table.name": ""}, OptionError),
    (FIRST, {"hoodie.datasource.write.recordkey.field": "nope"}, MissingColumnError),
    (FIRST, {"hoodie.datasource.write.partitionpath.field": "nope"}, MissingColumnError),
    (FIRST, {"hoodie.datasource.write.precombine.field": "nope"}, MissingColumnError),
]


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize(
    ("table", "more", "error", "operation"),
    [
        (*case, operation)
        for case in BAD
        for operation in ("upsert", "bulk_insert")
        if (operation, case[2]) != ("bulk_insert", OrderingValueError)  # which compares no ordering values
    ],
)
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(spark, path, table, more, error, operation):
    with pytest.raises(error) as e:
        save(spark, path, table, operation, options(**more))
    assert "\n" not in str(e.value)
    assert isinstance(e.value, HudiError)
    assert e.value.remedy
    assert e.value.__cause__ is None
    assert not os.path.exists(f"{path}/.hoodie/hoodie.properties")


@pytest.mark.one_version
def test_a_table_may_be_updated_from_itself(spark, path):
    save(spark, path, FIRST, "bulk_insert")
    own = spark.read.format("hudi").load(path).withColumn("v", F.lit(9.0)).withColumn("ts", F.col("ts") + 1)
    save(spark, path, own, "upsert")
    assert hudi_spark.last_commit().updated == 60
    assert {r[-1] for r in content(path)} == {9.0}


@pytest.mark.one_version
def test_storage_that_spark_cannot_reach_is_written_by_workers_all_the_same(spark, path):
    uri = f"local://{path}"
    save(spark, uri, FIRST, "bulk_insert")
    assert save(spark, uri, FIRST.slice(0, 5), "upsert").updated == 5
    assert spark.read.format("hudi").load(uri).count() == 60


@pytest.mark.one_version
def test_a_key_of_a_narrower_type_is_that_of_the_stored_value(spark, tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    first = spark.sql(
        "select cast(1.5 as decimal(10,2)) id, 'a' v union all select cast(2 as decimal(10,2)), 'b'"
    )
    first.write.format("hudi").options(**options).mode("append").save(path)
    narrow = spark.sql("select cast(1.5 as decimal(5,2)) id, 'c' v")
    narrow.write.format("hudi").options(**options).mode("append").save(path)
    assert sorted((str(r.id), r.v) for r in spark.read.format("hudi").load(path).collect()) == [
        ("1.50", "c"),
        ("2.00", "b"),
    ]


def test_an_overwrite_of_all_says_so_where_partitions_were_meant(spark, path):
    all_of_it, some = rows(("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)), rows(("c", "oslo", 1, 2.0))
    name = "spark.sql.sources.partitionOverwriteMode"

    def warned(operation="upsert", **more):
        save(spark, path, all_of_it, "upsert", mode="overwrite")
        done = save(spark, path, some, operation, options(**more), mode="overwrite")
        assert [r[0] for r in content(path)] == ["c"]
        return [w for w in done.warnings if "partitions were asked for" in w]

    assert warned() == warned("insert_overwrite_table") == []
    assert len(warned("insert_overwrite")) == 1
    spark.conf.set(name, "dynamic")
    try:
        assert len(warned()) == 1
        said = hudi_spark.dry_run(frame_of(spark, some), path, mode="overwrite", options=options())
        assert [w for w in said.warnings if "partitions were asked for" in w]
        assert warned(hoodie__datasource__overwrite__mode="STATIC") == []
    finally:
        spark.conf.unset(name)


def test_after_an_overwrite_rows_of_the_old_table_that_come_late_are_not_read(spark, path):
    lazy = options(hoodie__clean__failed__writes__policy="LAZY", hoodie__metadata__enable="false")
    save(spark, path, rows(("a", "oslo", 1, 1.0), ("b", "rome", 1, 1.0)), "upsert", lazy)
    storage = open_storage(path)
    given = parse_transaction_options(lazy)
    with begin_transaction(storage, HudiTable.open(path).config, operation="UPSERT", options=given) as writer:
        writer.inflight(None)
        late = {}
        for city in ("oslo", "rome"):
            name = next(e.name for e in storage.list(city) if e.name.endswith(".parquet"))
            late[f"{city}/late-0_0-0-0_{writer.instant}.parquet"] = storage.read(f"{city}/{name}")
        save(spark, path, rows(("c", "oslo", 1, 2.0)), "upsert", lazy, mode="overwrite")
        for place, file in late.items():
            storage.touch(place, file)
        writer.abort("its process has died")
    for n in range(2):
        found = spark.read.format("hudi").load(path).select("id", "v").collect()
        assert sorted(map(tuple, found)) == [("c", 2.0 + n)]
        save(spark, path, rows(("c", "oslo", 2, 3.0)), "upsert", lazy)
