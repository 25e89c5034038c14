"""Native scans: which files are read, exotic partition paths, older files, and storage that Spark cannot reach."""

import logging
import os
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from golden_tables import golden
from py4j.java_gateway import GatewayClient
from pyspark.sql import functions as F

from hudi_format.errors import PartitionPathError
from hudi_format.storage.open import open_storage
from hudi_spark.reading import logged_slices, parquet_scan, read_tasks, reader
from hudi_spark.reading.partition_columns import java_path
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.writes import execute

pytestmark = pytest.mark.spark


def make(path, rows, *, key="id", partition=("city",), **options):
    table = HudiTable.create(
        path, rows.schema, name="made", record_keys=[key], partition_fields=list(partition),
        options=(given := {k if k.startswith("hudi.") else f"hoodie.{k}": v for k, v in options.items()}),
    )  # fmt: skip
    table.bulk_insert(rows, options=given)
    return table


def load(spark, path):
    return spark.read.format("hudi").load(path)


EXOTIC = [
    "plain", "with space", "a+b", "per%cent", "50%25", "q?x", "h#x", "eq=x", "co:lon", "a&b", "æøå", "日本",
    "{b}", "[c]", "*", "back\\slash", "quo'te", 'dou"ble', "a,b", "tilde~", "semi;", "at@", None,
]  # fmt: skip


@pytest.mark.req("QR-01")
@pytest.mark.parametrize(
    "style", [{}, {"datasource.write.hive_style_partitioning": "true"}], ids=["plain", "hive"]
)
@pytest.mark.parametrize("encode", ["true", "false"])
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_any_text_may_be_a_partition(spark, path, files_read, style, encode):
    # Unencoded, what looks like an escape reads as one, as in Apache Hudi.
    texts = [t for t in EXOTIC if encode == "true" or t not in ("50%25", "per%cent")]
    rows = pa.table({"id": [str(i) for i in range(len(texts))], "city": pa.array(texts, pa.string())})
    make(path, rows, **style, **{"datasource.write.partitionpath.urlencode": encode})
    frame = load(spark, path)
    assert {r.id: r.city for r in frame.collect()} == dict(zip(rows["id"].to_pylist(), texts, strict=True))
    for text in ("with space", "a+b", "æøå", "{b}"):
        assert files_read(frame.where(F.col("city") == text)) == 1
    assert files_read(frame.where("city is null")) == 1


@pytest.mark.parametrize(
    "style", [{}, {"datasource.write.hive_style_partitioning": "true"}], ids=["plain", "hive"]
)
@pytest.mark.sampled(2)
@pytest.mark.one_version
def test_the_one_partition_of_a_read_has_its_value(spark, path, style):
    texts = ["a+b", "50%25", "eq=x", "日本", "quo'te", "back\\slash", None]
    rows = pa.table({"id": [str(i) for i in range(len(texts))], "city": pa.array(texts, pa.string())})
    make(path, rows, **style, **{"datasource.write.partitionpath.urlencode": "true"})
    for id, text in enumerate(texts):
        wanted = "city is null" if text is None else "city = '{}'".format(text.replace("'", "''"))
        frame = spark.read.format("hudi").option("hudi.read.filter", wanted).load(path)
        assert [(r.id, r.city) for r in frame.collect()] == [(str(id), text)]
        assert frame.where(F.col("city") == "elsewhere").count() == 0
        assert frame.schema["city"].nullable


def test_the_base_path_may_be_as_exotic(spark, tmp_path, files_read):
    path = str(tmp_path / "a b{c}" / "50%25" / "ø")
    make(path, pa.table({"id": ["1", "2"], "city": ["x", "y"]}))
    frame = load(spark, path)
    assert sorted(map(tuple, frame.select("id", "city").collect())) == [("1", "x"), ("2", "y")]
    assert files_read(frame.where("city = 'x'")) == 1


TYPED = {
    "int": pa.array([1, -2, None], pa.int32()),
    "long": pa.array([1 << 40, -2, None], pa.int64()),
    "boolean": pa.array([True, False, None]),
    "date": pa.array([date(2024, 2, 29), date(1500, 1, 1), None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
    "timestamp": pa.array(
        [datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1969, 1, 1), None], pa.timestamp("us", "UTC")
    ),
    "local timestamp": pa.array(
        [datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1969, 1, 1), None], pa.timestamp("us")
    ),
    "double": pa.array([1.5, -0.25, None], pa.float64()),
}


@pytest.mark.parametrize("name", list(TYPED))
@pytest.mark.sampled(3)
def test_partition_columns_have_their_type_and_prune(spark, path, to_arrow, files_read, name):
    column = TYPED[name]
    rows = pa.table({"id": ["a", "b", "c"], "p": column})
    # Times without a zone become UTC otherwise.
    make(path, rows, partition=("p",),
         **{"datasource.write.hive_style_partitioning": "true", "hudi.write.types": "data"})  # fmt: skip
    frame = load(spark, path)
    found = to_arrow(frame.select("id", "p").orderBy("id"))
    assert found.column("p").to_pylist() == column.to_pylist()
    assert found.schema.field("p").type == column.type
    value = frame.where("id = 'a'").select("p").collect()[0].p
    assert files_read(frame.where(F.col("p") == F.lit(value).cast(frame.schema["p"].dataType))) == 1
    assert files_read(frame.where("p is null")) == 1


@pytest.mark.parametrize(
    ("kind", "numbers", "texts"),
    [
        (pa.date32(), [2932901, 0, -800000], ["+10000-01-05", "1970-01-01", "-0221-09-04"]),
        (pa.timestamp("us", "UTC"), [253402300800000005, 0, 7], ["253402300800000005", "0", "7"]),
    ],
    ids=["date", "timestamp"],
)
@pytest.mark.one_version
def test_partitions_of_far_years_and_of_1970_are_read(spark, path, kind, numbers, texts):
    """Python has no dates beyond the year 9999, Arrow parses none, and Spark has both."""
    make(
        path,
        pa.table({"id": ["a", "b", "c"], "p": pa.array(numbers, f"int{kind.bit_width}").cast(kind)}),
        partition=("p",),
    )
    shown = F.col("p").cast("string") if pa.types.is_date(kind) else F.unix_micros("p").cast("string")
    frame = load(spark, path).orderBy("id")
    assert [r[0] for r in frame.select(shown).collect()] == texts
    assert (
        HudiTable.open(path)
        .read(meta_columns=True)
        .to_arrow()
        .sort_by("id")
        .column("p")
        .cast(f"int{kind.bit_width}")
        .to_pylist()
        == numbers
    )


@pytest.mark.req("QR-01")
@pytest.mark.parametrize("style", ["true", "false"])
def test_partition_columns_are_nullable_in_every_query(spark, path, style):
    rows = pa.table(
        {"id": ["a", "b"], "p": ["x", "y"], "n": [1, 2], "d": [date(2024, 1, 1), date(2024, 1, 2)]}
    )
    make(path, rows, partition=("p", "n", "d"), **{"datasource.write.hive_style_partitioning": style})
    table = HudiTable.open(path)
    incremental = {"query.type": "incremental", "read.begin.instanttime": "000"}
    for options in (
        {},
        {"query.type": "read_optimized"},
        incremental,
        {"as.of.instant": table.timeline.instants[-1].time},
    ):
        given = {k if k.startswith("as.") else f"hoodie.datasource.{k}": v for k, v in options.items()}
        schema = spark.read.format("hudi").options(**given).load(path).schema
        assert [f.name for f in schema if not f.nullable] == [], options
    assert all(f.nullable for f in table.read(meta_columns=True).schema)


@pytest.mark.parametrize("name", ["mor_timestamp_keygen", "cow_timestamp_keygen"])
@pytest.mark.sampled(2)
def test_values_of_partition_columns_are_those_of_folders_where_asked(spark, tmp_path, name):
    (made,) = golden("v6", name)
    path = str(made.unpack(tmp_path))
    (column,) = HudiTable.open(path).config.partition_fields
    incremental = {"query.type": "incremental", "read.begin.instanttime": "000"}
    for query in ({}, incremental):
        given = {"read.extract.partition.values.from.path": "true", **query}
        frame = (
            spark.read.format("hudi")
            .options(**{f"hoodie.datasource.{k}": v for k, v in given.items()})
            .load(path)
        )
        rows = frame.select("_hoodie_partition_path", column).collect()
        assert rows
        assert all(path == value for path, value in rows), query


@pytest.mark.one_version
def test_filters_on_one_of_several_levels_prune(spark, path, files_read):
    rows = pa.table(
        {
            "id": [str(i) for i in range(12)],
            "origin": [o for o in ("EWR", "JFK", "LGA") for _ in range(4)],
            "month": pa.array([1, 2, 3, 4] * 3, pa.int32()),
        }
    )
    make(path, rows, partition=("origin", "month"))
    frame = load(spark, path)
    assert frame.columns[-2:] == ["origin", "month"]
    assert files_read(frame) == 12
    assert files_read(frame.where("month >= 3")) == 6
    assert files_read(frame.where("origin = 'JFK' and month = 2")) == 1
    assert files_read(frame.where("origin = 'JFK'").groupBy("month").count()) == 4
    assert frame.where("month = 4").count() == 3


def test_slashes_in_values_make_folders_and_read_back(spark, path, files_read):
    rows = pa.table({"id": ["a", "b", "c"], "day": ["2024/03/05", "2024/03/06", "all"]})
    make(path, rows, partition=("day",))
    frame = load(spark, path)
    assert {r.id: r.day for r in frame.collect()} == {"a": "2024/03/05", "b": "2024/03/06", "c": "all"}
    assert files_read(frame.where("day = '2024/03/06'")) == 1


def test_old_dates_are_read_as_they_are(spark, path):
    rows = pa.table({"id": ["a"], "city": ["x"], "d": [date(1001, 1, 1)], "t": [datetime(1001, 1, 1)]})
    make(path, rows)
    assert load(spark, path).selectExpr("cast(d as string)", "cast(t as string)").collect()[0][:] == (
        "1001-01-01", "1001-01-01 00:00:00",
    )  # fmt: skip


OLD = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("s", pa.struct([("a", pa.int32())])),
        ("l", pa.list_(pa.int32())),
    ]
)
NEW = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("l", pa.list_(pa.int64())),
        ("added", pa.string()),
    ]
)


@pytest.mark.one_version
def test_files_of_an_older_schema_are_widened(spark, path, files_read):
    old = pa.Table.from_pylist(
        [{"id": "1", "city": "x", "n": 1, "f": 0.5, "s": {"a": 1}, "l": [1, None]}], OLD
    )
    new = pa.Table.from_pylist(
        [{"id": "2", "city": "y", "n": 1 << 40, "f": 2.5, "s": {"a": 2, "b": "z"}, "l": [2], "added": "w"}],
        NEW,
    )
    table = make(path, old)
    table.bulk_insert(new, options={"hudi.write.types": "data"})
    frame = load(spark, path)
    assert frame.schema["n"].dataType.simpleString() == "bigint"
    one, two = frame.orderBy("id").collect()
    assert (one.n, one.f, one.s.a, one.s.b, one.l, one.added, one.city) == (
        1,
        0.5,
        1,
        None,
        [1, None],
        None,
        "x",
    )
    assert (two.n, two.f, two.s.a, two.s.b, two.l, two.added, two.city) == (
        1 << 40,
        2.5,
        2,
        "z",
        [2],
        "w",
        "y",
    )
    assert files_read(frame.where("city = 'y'")) == 1
    assert frame.where("n > 5").count() == 1


def test_time_travel_and_incremental_reads(spark, path):
    table = make(path, pa.table({"id": ["a", "b"], "city": ["x", "y"], "v": [1, 1]}))
    first = table.timeline.completed_writes()[-1].time
    table.upsert(pa.table({"id": ["b"], "city": ["y"], "v": [2]}))
    assert load(spark, path).where("v = 2").count() == 1
    before = spark.read.format("hudi").option("as.of.instant", first).load(path)
    assert [r.v for r in before.collect()] == [1, 1]
    changes = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", first)
    )
    assert [(r.id, r.v) for r in changes.load(path).collect()] == [("b", 2)]
    assert changes.option("hoodie.datasource.read.end.instanttime", first).load(path).count() == 0


def test_the_filter_and_columns_options_choose_before_spark_plans(spark, path, files_read):
    make(path, pa.table({"id": ["a", "b"], "city": ["x", "y"], "v": [1, 2]}))
    chosen = (
        spark.read.format("hudi").option("hudi.read.columns", "v,id").option("hudi.read.filter", "city = 'y'")
    )
    frame = chosen.load(path)
    assert frame.columns == ["v", "id"]
    assert [tuple(r) for r in frame.collect()] == [(2, "b")]
    assert files_read(frame) == 1


def test_the_user_s_discovery_threshold_is_kept(spark, path):
    make(path, pa.table({"id": ["a"], "city": ["x"]}))
    spark.conf.set(parquet_scan.DISCOVERY_THRESHOLD, "7")
    try:
        load(spark, path)
        assert spark.conf.get(parquet_scan.DISCOVERY_THRESHOLD) == "7"
    finally:
        spark.conf.unset(parquet_scan.DISCOVERY_THRESHOLD)


def test_python_workers_read_what_the_jvm_has_no_file_system_for(spark, path, caplog, monkeypatch):
    monkeypatch.setattr(reader, "_said", set())
    make(path, pa.table({"id": ["a", "b"], "city": ["x", "y"], "v": [1, 2]}))
    uri = f"local://{path}"
    with caplog.at_level(logging.WARNING, logger="hudi"):
        frame = load(spark, uri)
        load(spark, uri)
    assert sorted((r.id, r.city, r.v) for r in frame.collect()) == [("a", "x", 1), ("b", "y", 2)]
    assert frame.columns[:5] == load(spark, path).columns[:5]
    assert len([r for r in caplog.records if "file system" in r.message]) == 1
    some = spark.read.format("hudi").schema("v long").load(uri)
    assert sorted(r.v for r in some.collect()) == [1, 2]


def test_tasks_are_grouped_by_size():
    class Task:
        def __init__(self, size):
            self.size = size

    groups = read_tasks.grouped([Task(60), Task(60), Task(200), Task(10), Task(10)], 128)
    assert [[t.size for t in g] for g in groups] == [[60, 60], [200], [10, 10]]
    assert [len(g) for g in read_tasks.grouped([Task(10)] * 6, 128, least=3)] == [2, 2, 2]
    assert read_tasks.grouped([], 128, least=3) == ()


def test_paths_are_written_as_java_writes_them():
    assert java_path("/a b/ø%{}?#|\u00a0") == "/a%20b/ø%25%7B%7D%3F%23%7C%C2%A0"


def test_storage_of_a_scheme_is_not_local():
    assert not open_storage("local:///tmp").is_local


@pytest.mark.req("IN-05", "IN-07")
def test_changes_in_the_order_of_completion(spark, tmp_path):
    path = str(tmp_path / "t")
    make(path, pa.table({"id": ["1"], "city": ["x"]}))
    table = HudiTable.open(path)
    first, second = (
        table.timeline.completed_writes()[-1],
        table.upsert(pa.table({"id": ["2"], "city": ["x"]})).instant,
    )
    os.utime(f"{path}/.hoodie/{first.file_name}", (4_000_000_000, 4_000_000_000))  # 2096
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "20950101000000000",
        "hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME",
    }
    changed = spark.read.format("hudi").options(**options).load(path)
    assert [r.id for r in changed.collect()] == ["1"], f"{second} was completed before"


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.one_version
def test_a_load_calls_the_jvm_as_often_for_many_columns(spark, tmp_path, monkeypatch, table_type):
    monkeypatch.setattr(logged_slices, "LEAST_BYTES", 0)
    sent, send = [], GatewayClient.send_command

    def counted(self, command, *args, **kwargs):
        sent.append(command)
        return send(self, command, *args, **kwargs)

    def calls(path, columns):
        rows = pa.table({"id": [f"k{n}" for n in range(200)], **{f"c{n}": [n] * 200 for n in range(columns)}})
        table = HudiTable.create(
            path, rows.schema, name="t", table_type=table_type, record_keys="id",
            options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
        )  # fmt: skip
        table.bulk_insert(rows)
        HudiTable.open(path).upsert(rows.slice(0, 3))
        sent.clear()
        with monkeypatch.context() as during:
            during.setattr(GatewayClient, "send_command", counted)
            frame = spark.read.format("hudi").load(str(path))
        found = sum(text.startswith("c\n") for text in sent)  # what it frees, Java is told at any time
        assert frame.count() == 200
        assert frame.columns[5:] == rows.column_names
        return found

    few = calls(tmp_path / "few", 3)
    assert 0 < few < 150
    assert calls(tmp_path / "many", 60) <= few + 2


@pytest.mark.one_version
def test_values_that_paths_have_in_another_form_are_those_of_the_files(spark, path, files_read):
    millis = [1709168523000, 1704067140000]  # 2024-02-29, 2023-12-31
    given = {
        "datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "datasource.write.partitionpath.field": "c:SIMPLE,d:TIMESTAMP",
        "keygen.timebased.timestamp.type": "EPOCHMILLISECONDS", "keygen.timebased.timezone": "UTC",
        "datasource.write.hive_style_partitioning": "true", "table.name": "t",
        "datasource.write.recordkey.field": "id", "datasource.write.operation": "insert",
    }  # fmt: skip
    for ids, pattern in ((["a", "b"], "yyyy-MM-dd"), (["e", "f"], "yyyyMMdd"), (["g", "h"], "yyyy/MM/dd")):
        rows = pa.table({"id": ids, "c": ["x", "y"], "d": pa.array(millis, pa.int64())})
        options = {
            f"hoodie.{k}": v for k, v in {**given, "keygen.timebased.output.dateformat": pattern}.items()
        }
        execute(LocalEngine(1), open_storage(path), rows, options)
    frame = load(spark, path)
    want = dict(zip("abefgh", [*millis, 20240229, 20231231, *millis], strict=True))
    assert {r.id: r.d for r in frame.collect()} == want
    assert {r.id: r.c for r in frame.collect()} == dict(zip("abefgh", "xyxyxy", strict=True))
    assert sorted(r.id for r in frame.where(f"d = {millis[0]}").collect()) == ["a", "g"]
    assert [r.id for r in frame.where("d = 20231231").select("id").collect()] == ["f"]
    assert files_read(frame.where("c = 'x'")) == 3
    plain = HudiTable.open(path).read(["id", "d"]).to_arrow()
    assert dict(zip(*(plain[n].to_pylist() for n in ("id", "d")), strict=True)) == want


def test_a_bulk_insert_of_a_name_that_no_folder_can_have_leaves_nothing(spark, path, tmp_path):
    make(path, pa.table({"id": ["1"], "city": ["x"]}))
    before = sorted(p for p in tmp_path.rglob("*") if p.is_file() and ".aux" not in p.parts)
    frame = spark.createDataFrame([("2", "y"), ("3", "z" * 256)], "id string, city string").coalesce(1)
    with pytest.raises(PartitionPathError, match="bytes"):
        frame.write.format("hudi").options(**{
            "hoodie.table.name": "made", "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
        }).mode("append").save(path)  # fmt: skip
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file() and ".aux" not in p.parts) == before
