"""Which statements are refused, by their text alone; `scenarios/test_wrong_calls.py` has them on Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_format.errors import UnsupportedError
from hudi_spark.refused_sql import (
    may_concern_hudi,
    path_named,
    refuse_name,
    refuse_sql,
    refuse_versions,
    refuse_views_as_of,
)

VIEWS = {"trips": ["_hoodie_record_key", "id"], "others": ["id"]}
SPARK: Any = SimpleNamespace(
    catalog=SimpleNamespace(tableExists=lambda name: name in VIEWS),
    table=lambda name: SimpleNamespace(columns=VIEWS[name.strip("`")]),
)


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("create table h using hudi", "df.write"),
        ("/* a */ CREATE TABLE h (a int)\nUSING `hudi` -- b", "df.write"),
        ("insert into hudi.`/t` values (1)", "df.write"),
        ("-- to the table\nINSERT INTO `hudi`.`/t` values (1)", "df.write"),
        ("from s insert into hudi.`/t` select *", "df.write"),
        ("/* all */ update trips set a = 1", "read the rows"),
        ("update hudi.`/t` set a = 1", "read the rows"),
        ("delete from hudi.`/t`", "operation=delete"),
        ("merge into hudi.`/t` t using s on t.id = s.id when matched then delete", "merge("),
        ("merge with schema evolution into trips using s on true when matched then delete", "merge("),
        ("select * from hudi_metadata('/t')", "inspect.files()"),
        ("select * from HUDI_QUERY_TIMELINE ('/t', true)", "inspect.timeline()"),
        ("update trips set a = 1", "read the rows"),
        ("delete from `trips` where id = 1", "operation=delete"),
        ("merge into trips using s on true when matched then delete", "merge("),
        ("insert overwrite table trips select 1", "df.write"),
        ("with s as (select 1 as a) insert into trips select * from s", "df.write"),
        ("call show_commits(table => 't')", "history()"),
        ("CALL spark_catalog.system.run_clean('t')", "clean()"),
        ("call show_logfile_records('t')", "the methods"),
    ],
)
def test_each_statement_is_refused_with_its_way(text, way):
    assert may_concern_hudi(text)
    with pytest.raises(UnsupportedError) as e:
        refuse_sql(SPARK, text)
    assert way in e.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select 'create table t using hudi'",
        "select 1 -- from hudi.`/t`",
        "update others set a = 1",
        "insert into nowhere select 1",
        "insert into db.trips select 1",
        "call my_procedure(1)",
        "with s as (select 1) select * from s",
        "describe trips",
    ],
)
def test_all_else_is_sparks(text):
    refuse_sql(SPARK, text)
    refuse_versions(text)


@pytest.mark.parametrize(
    "text",
    ["select * from `hudi`.`/t` version as of 3", "select * from hudi.`/t` FOR SYSTEM_VERSION AS OF '3'"],
)
def test_versions_are_no_instants(text):
    with pytest.raises(UnsupportedError, match="instants"):
        refuse_versions(text)
    refuse_versions(f"select '{text[:20]}'")


@pytest.mark.parametrize(
    "text",
    ["select * from trips timestamp as of '2024-01-01'", "select 1 from a join `trips` version as of 2"],
)
def test_a_view_of_a_hudi_table_has_no_time_travel(text):
    assert may_concern_hudi(text)
    with pytest.raises(UnsupportedError, match="no time travel") as e:
        refuse_views_as_of(SPARK, text)
    assert "as.of.instant" in e.value.remedy
    refuse_views_as_of(SPARK, text.replace("trips", "others"))
    refuse_views_as_of(SPARK, f"select {text[14:]!r}")


def test_names_of_tables_by_path():
    assert path_named("hudi.`/a b/t`") == path_named(" `HUDI` . `/a b/t`") == "/a b/t"
    assert path_named("org.apache.hudi.`s3://b/t`") == "s3://b/t"
    for other in ("trips", "hudi.trips", "db.hudi.`x`", "parquet.`/t`", 3, None):
        assert path_named(other) is None


def test_calls_that_name_a_hudi_table_are_refused():
    for name in ("trips", "`trips`", "hudi.`/t`"):
        with pytest.raises(UnsupportedError, match="insertInto") as e:
            refuse_name(SPARK, name, "insertInto()", "insert")
        assert "df.write" in e.value.remedy
    for name in ("others", "nowhere", "parquet.`/t`", "db.trips"):
        refuse_name(SPARK, name, "insertInto()", "insert")
