"""Filters as Spark's conditions: the same rows as with Arrow, whatever the session is set to."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_spark.reading import logged_slices
from hudi_spark.reading.filter_columns import filter_columns
from hudi_spark.types import to_arrow_schema
from hudi_timeline import HudiTable
from hudi_timeline.reading.filters import make_predicate

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"
NAN = float("nan")
INSTANTS = [datetime(2024, 1, 1, h) for h in (0, 4, 5)] + [datetime(1969, 12, 31, 23, 59, 59, 999999), None]
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "name": ["it's", "its", "x\\n", "50%\nof_it", None],
        "d": [NAN, 1.0, -0.0, 5.0, None],
        "e": [NAN, NAN, 0.0, 4.0, 1.0],
        "g": [None, 2.0, None, NAN, NAN],
        "f": pa.array([0.1, NAN, -0.0, 7.0, None], pa.float32()),
        "n": pa.array([1 << 62, -1, 0, 5, None], pa.int64()),
        "m": pa.array([Decimal(x) for x in ("1.00", "-0.01", "2.50", "0.00")] + [None], pa.decimal128(6, 2)),
        "t": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "u": pa.array(INSTANTS, pa.timestamp("us")),
        "day": pa.array([date(2024, 1, 1), date(1500, 1, 1), date(1, 1, 1), None, date(9999, 12, 31)]),
        "yes": [True, False, None, True, False],
        "s": [{"b": 1, "w": "x"}, {"b": None, "w": "y"}, None, {"b": 2, "w": None}, {"b": 0, "w": ""}],
    }
)
FILTERS = [
    "name = 'it''s'", "\"name\" = 'its'", "`name` = 'x\\n'", "name <> 'its'", "not name = 'its'",
    "name in ('it''s', 'x\\n')", "name not in ('its')", "name not in ('its', null)", "name in (null)",
    "name like 'it''%'", "name like '50\\%%'", "name like '%o_\\_it'", "name not like 'it%'",
    "name like 'x\\\\n'", "d > 1", "d >= 1", "d < 5", "d <= 5", "d = 1", "d <> 1", "not d > 1", "d = 'nan'",
    "d <> 'nan'", "d in (0.0, 5)", "d not in (1.0)", "d in (-0.0)", "d = 0", "d < e", "d > e", "d = e", "d <> e",
    "e >= d", "not d > e", "not d < 5", "not d >= 1", "not (d <= 1)", "d not between 0 and 2", "not f < 1",
    "not (n > 0 or e < 1)", "not g < d", "not d >= g", "not (g <> d)", "not (g = d)",
    "f = 0.1", "f in (0.1)", "f in ('0.0', '7')", "f > 0", "n = 1.5", "n > 0.5", "n in (5, 4611686018427387904)",
    "n < 4611686018427387904", "n = '5'", "m > 0.995", "m = 1", "m in (1.00, 2.5)", "m between -0.01 and 0",
    "t = '2024-01-01 00:00:00'", "t >= TIMESTAMP '2024-01-01 05:00:00'", "t < '1970-01-01'",
    "t in ('2024-01-01 04:00:00')",
    "u = '2024-01-01 00:00:00'", "u >= '2024-01-01 05:00:00'", "u < '1970-01-01'", "day = '2024-01-01'",
    "day < DATE '1582-10-15'", "day = '9999-12-31'", "yes", "not yes", "yes = false", "yes is null or d is not null",
    "s.w = 'x'", 's."b" >= 1', "s is null", "not (s.w is null and n > 1)", "(name = 'its' or n = 5) and not d > 2",
]  # fmt: skip


SESSIONS = [{}, {ZONE: "America/New_York", "spark.sql.ansi.enabled": "true"}]


@pytest.fixture(params=SESSIONS, ids=["UTC", "New York"])
def settings(request, spark):
    before = {name: spark.conf.get(name, None) for name in request.param}
    for name, value in request.param.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def kept(text):
    return sorted(ROWS.filter(make_predicate(text, ROWS.schema).expression)["id"].to_pylist())


@pytest.mark.sampled(2)
def test_each_filter_keeps_the_rows_that_arrow_keeps(spark, path, settings):
    given = {"hudi.write.types": "data"}  # times without a zone stay such
    table = HudiTable.create(path, ROWS.schema, name="t", record_keys="id", options=given)
    table.bulk_insert(ROWS, options=given)
    frame = spark.read.format("hudi").load(path)
    assert to_arrow_schema(frame.schema).field("u").type == ROWS.schema.field("u").type
    conditions = [filter_columns(f, ROWS.schema).alias(f"c{n}") for n, f in enumerate(FILTERS)]
    found = frame.select("id", *conditions).collect()
    want = {f: kept(f) for f in FILTERS}
    assert {f: sorted(r.id for r in found if r[f"c{n}"]) for n, f in enumerate(FILTERS)} == want
    assert sum(0 < len(ids) < 5 for ids in want.values()) > 50


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.sampled(3)
@pytest.mark.one_version
def test_filters_of_reads_are_read_by_one_parser(spark, path, settings, monkeypatch, table_type):
    """Of files that Spark reads, and of those that workers merge."""
    monkeypatch.setattr(logged_slices, "LEAST_BYTES", 0)
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = HudiTable.create(
        path, ROWS.schema, name="t", table_type=table_type, record_keys="id", options=bucket
    )
    table.bulk_insert(ROWS)
    HudiTable.open(path).upsert(ROWS.slice(1, 2))
    for text in ("name = 'it''s' or \"name\" = 'its'", "d > 1 or d <> 1", "t >= '2024-01-01 04:00:00'"):
        frame = spark.read.format("hudi").option("hudi.read.filter", text).load(path)
        assert sorted(r.id for r in frame.select("id").collect()) == kept(text), text


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.one_version
def test_filters_of_incremental_queries_choose_rows(spark, path, table_type):
    table = HudiTable.create(path, ROWS.schema, name="t", table_type=table_type, record_keys="id")
    table.bulk_insert(ROWS)
    HudiTable.open(path).upsert(ROWS.slice(3))
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.incr.filters": "name <> 'its', n > -1, n < 6",
    }
    frame = spark.read.format("hudi").options(**options).load(path)
    assert sorted((r.id, r.n) for r in frame.select("id", "n").collect()) == [("c", 0), ("d", 5)]
    assert frame.count() == 2
    both = spark.read.format("hudi").options(**options).option("hudi.read.filter", "m < 0").load(path)
    assert both.count() == 0
