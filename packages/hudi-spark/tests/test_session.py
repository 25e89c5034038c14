"""Statements through `hudi_spark.sql`, and the names at the package's root that are elsewhere."""

import pytest

import hudi_spark
from hudi_format.errors import NotAHudiTableError, OptionError, UnsupportedError

TRIPS = "select 'a' id, 1L ts, 'oslo' city, 9.5D fare union all select 'b', 1L, 'rome', 12.0D"
OPTIONS = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id"}


@pytest.fixture
def path(spark, tmp_path):
    spark.sql(TRIPS).write.format("hudi").options(**OPTIONS).mode("append").save(str(tmp_path / "t"))
    hudi_spark.disable()
    yield str(tmp_path / "t")
    hudi_spark.enable(spark)


def test_a_statement_enables_the_session_and_gives_its_rows(spark, path):
    assert not hudi_spark.enabled()
    found = hudi_spark.sql(spark, f"select city, fare from hudi.`{path}` where id = 'b'")
    assert hudi_spark.enabled()
    assert [tuple(r) for r in found.collect()] == [("rome", 12.0)]
    assert hudi_spark.sql(spark, "select :n + 1 as m", args={"n": 4}).collect()[0].m == 5
    hudi_spark.sql(spark, f"create temporary view sql_trips using hudi options (path '{path}')")
    assert hudi_spark.sql(spark, "select count(*) as n from sql_trips").collect()[0].n == 2
    hudi_spark.sql(spark, "drop view sql_trips")


@pytest.mark.parametrize(
    "text",
    [
        "merge into hudi.`{}` t using (select 'a' id) s on t.id = s.id when matched then delete",
        "update hudi.`{}` set fare = 1",
        "delete from hudi.`{}`",
        "insert into hudi.`{}` select * from hudi.`{}`",
        "create table sql_made (id string) using hudi location '{}'",
        "call show_commits(table => '{}')",
        "select * from hudi.`{}` version as of 1",
    ],
)
def test_a_statement_that_is_not_supported_is_a_typed_error_of_one_line(spark, path, text):
    with pytest.raises(UnsupportedError) as e:
        hudi_spark.sql(spark, text.replace("{}", path))
    assert "\n" not in str(e.value)
    assert e.value.remedy


@pytest.mark.usefixtures("path")
def test_what_is_no_statement_no_session_or_no_table_is_refused(spark):
    with pytest.raises(OptionError, match="a statement must be text, not int: 5"):
        hudi_spark.sql(spark, 5)
    with pytest.raises(UnsupportedError, match="a str is no session"):
        hudi_spark.sql("select 1", spark.sparkContext.appName)
    with pytest.raises(NotAHudiTableError):
        hudi_spark.sql(spark, "select * from hudi.`/no/such/table`")


def test_tables_are_opened_by_the_other_package_and_the_error_says_so():
    with pytest.raises(AttributeError, match=r"use hudi_timeline\.HudiTable\.open\(path\)"):
        hudi_spark.HudiTable  # noqa: B018
    assert "HudiTable" not in dir(hudi_spark)
    assert not hasattr(hudi_spark, "HudiTable")
