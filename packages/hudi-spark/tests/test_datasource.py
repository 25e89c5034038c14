"""The data source that Spark 4 finds by itself, for scripts that import nothing of ours."""

import os
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

import hudi_spark
from hudi_spark import compat
from hudi_timeline import HudiTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not compat.HAS_DATA_SOURCES, reason="PySpark 3.5 has no Python data sources"),
]


@pytest.fixture
def plain(session):
    """The session as Spark makes it."""
    hudi_spark.disable()
    yield session
    hudi_spark.enable(session)


def options(**more):
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        **more,
    }


@pytest.fixture
def rows(plain):
    return plain.sql(
        "select cast(id as string) id, 1L ts, concat('c', id % 2) city, timestamp'2024-03-05 10:00:00' at, "
        "array(1, null) l, map('k', 1) m, struct(1 a, 'x' b) s from range(10)"
    )


@pytest.mark.req("WR-01")
def test_a_table_is_written_appended_to_and_read(plain, rows, path):
    rows.write.format("hudi").options(**options()).mode("append").save(path)
    rows.where("id < 3").selectExpr("id", "2L ts", "city", "at", "l", "m", "s").write.format("HUDI").options(
        **options()
    ).mode("append").save(path)
    frame = plain.read.format("hudi").load(path)
    assert frame.count() == 10
    assert frame.where("ts = 2").count() == 3
    assert frame.columns[:5] == HudiTable.open(path).read().schema.names[:5]
    assert frame.orderBy("id").drop("ts").collect()[0].s.b == "x"
    assert not os.path.exists(f"{path}/.hoodie_staging")


def test_overwrite_replaces_and_queries_take_options(plain, rows, path):
    rows.write.format("hudi").options(**options()).mode("append").save(path)
    first = HudiTable.open(path).timeline.completed_writes()[-1].time
    rows.where("id = 1").write.format("hudi").options(**options()).mode("append").save(path)
    old = plain.read.format("hudi").option("as.of.instant", first).load(path)
    assert old.where(f"_hoodie_commit_time = '{first}'").count() == 10
    news = plain.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    assert news.option("hoodie.datasource.read.begin.instanttime", first).load(path).count() == 1
    rows.where("id < 2").write.format("hudi").options(**options()).mode("overwrite").save(path)
    assert plain.read.format("hudi").load(path).count() == 2


def test_a_schema_of_the_user_is_the_projection(plain, rows, path):
    rows.write.format("hudi").options(**options()).mode("append").save(path)
    frame = plain.read.format("hudi").schema("ts long, city string").load(path)
    assert frame.columns == ["ts", "city"]
    assert frame.where("city = 'c1'").count() == 5


def test_more_than_the_limit_is_refused_and_leaves_nothing(plain, rows, path):
    with pytest.raises(Exception, match=r"hudi_spark\.enable"):
        rows.write.format("hudi").options(**options(), **{"hudi.datasource.max.bytes": "100"}).mode(
            "append"
        ).save(path)
    assert not os.path.exists(f"{path}/.hoodie")
    assert not os.path.exists(f"{path}/.hoodie_staging")


def test_errors_are_ours_and_name_the_remedy(plain, rows, path):
    with pytest.raises(Exception, match="HUDI-E0101"):
        plain.read.format("hudi").load(path)
    with pytest.raises(Exception, match="HUDI-E0301"):
        rows.write.format("hudi").options(**options(), **{"hoodie.tabel.name": "x"}).mode("append").save(path)


def test_an_empty_table_has_columns_and_no_rows(plain, path):
    HudiTable.create(
        path, pa.schema([("id", pa.string()), ("city", pa.string())]), name="t", record_keys=["id"]
    )
    frame = plain.read.format("hudi").load(path)
    assert frame.columns[-2:] == ["id", "city"]
    assert frame.collect() == []


def test_a_temporary_view_reads_in_sql(plain, rows, path):
    rows.write.format("hudi").options(**options()).mode("append").save(path)
    plain.sql(f"create or replace temporary view trips_by_source using hudi options (path '{path}')")
    assert plain.sql("select count(*) from trips_by_source").collect()[0][0] == 10


def test_looking_for_the_source_imports_nothing_heavy():
    script = """
        import sys, pyspark_hudi
        assert pyspark_hudi.DefaultSource.name() == "hudi"
        assert not [m for m in sys.modules if m.startswith(("hudi_spark", "hudi_timeline", "fsspec"))]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
