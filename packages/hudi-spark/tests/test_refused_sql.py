"""Which statements are refused, by their text alone; `scenarios/test_wrong_calls.py` has them on Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_format.errors import UnsupportedError
from hudi_spark.refused_sql import may_concern_hudi, refuse_sql, refuse_versions

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
        ("update hudi.`/t` set a = 1", "read the rows"),
        ("delete from hudi.`/t`", "operation=delete"),
        ("merge into hudi.`/t` t using s on t.id = s.id when matched then delete", "merge("),
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
    ["select * from hudi.`/t` version as of 3", "select * from hudi.`/t` FOR SYSTEM_VERSION AS OF '3'"],
)
def test_versions_are_no_instants(text):
    with pytest.raises(UnsupportedError, match="instants"):
        refuse_versions(text)
    refuse_versions(f"select '{text[:20]}'")
