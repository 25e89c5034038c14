"""Validators that are SQL queries."""

import sys

import pytest
from bad_input import content
from write_operations import OPERATIONS, incoming

from hudi_format.errors import HudiError, ValidationError

P = "hoodie.precommit.validators"
SINGLE = {P: "SqlQuerySingleResultPreCommitValidator"}
EQUAL = {P: "org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator"}
OTHER = {P: "SqlQueryInequalityPreCommitValidator"}


def single(query):
    return {**SINGLE, f"{P}.single.value.sql.queries": query}


def equal(query):
    return {**EQUAL, f"{P}.equality.sql.queries": query}


def other(query):
    return {**OTHER, f"{P}.inequality.sql.queries": query}


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.sampled(3)
def test_sql_refuses_each_operation(path, table, operation):
    before = content(path)
    query = "select count(*) from <TABLE_NAME>"
    options = equal("select id, fare from <TABLE_NAME>")
    if operation in (
        "insert",
        "bulk_insert",
        "stream",
    ):  # rows of before are still there: equal, as Apache Hudi says
        options = single(f"{query}#99")
    with pytest.raises(ValidationError, match="query") as e:
        OPERATIONS[operation](table, options=options)
    assert content(path) == before
    assert e.value.details["rule"].startswith("select")


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize(
    ("options", "good"),
    [
        (single("select count(*) from <TABLE_NAME>#3"), True),  # partitions c0 and new only
        (single("select count(*) from <TABLE_NAME>#5"), False),
        (single("select max(fare) from <TABLE_NAME>#8.0"), True),
        (single("select sum(n) from <TABLE_NAME>#3; select min(money) from <TABLE_NAME>#1.50"), True),
        (single("select true from <TABLE_NAME> limit 1#true"), True),
        (single("select id from <TABLE_NAME>#a"), False),  # several rows
        (single("select max(fare), 1 from <TABLE_NAME>#8.0"), False),  # two columns
        (single("select null from <TABLE_NAME> limit 1#null"), False),
        (single("select 1 / (max(n) - 2) from <TABLE_NAME>#1"), False),
        (equal("select count(*) from <TABLE_NAME> where id <> 'x'"), True),
        (equal("select id from <TABLE_NAME>"), True),  # what was there is there still
        (equal("select count(*) from <TABLE_NAME>"), False),
        (equal("select city from <TABLE_NAME>"), False),  # rows that stand twice
        (equal("select _hoodie_record_key, fare from <TABLE_NAME> where id = 'c'"), True),
        (other("select count(*) from <TABLE_NAME>"), True),
        (other("select id from <TABLE_NAME>"), False),
        ({**equal("select 1 from <TABLE_NAME> limit 1"), **single("select max(n) from <TABLE_NAME>#2"),
          P: "SqlQueryEqualityPreCommitValidator,SqlQuerySingleResultPreCommitValidator"}, True),
    ],
    ids=lambda v: str(next((x for k, x in v.items() if k != P), "")) if isinstance(v, dict) else str(v),
)  # fmt: skip
@pytest.mark.sampled(4)
def test_what_queries_say(path, table, options, good):
    before = content(path)
    if good:
        assert table.upsert(incoming(), options=options).updated == 1
    else:
        with pytest.raises(ValidationError):
            table.upsert(incoming(), options=options)
        assert content(path) == before


def test_duckdb_is_asked_for_by_name(monkeypatch, path, table):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for options in (single("select 1 from <TABLE_NAME>#1"), {"hudi.write.rules": "abs(fare) = fare"}):
        with pytest.raises(HudiError, match=r'pip install "hudi-timeline\[sql\]"'):
            table.upsert(incoming(), options=options)
    with pytest.raises(ValidationError):  # a filter of this project's needs none
        table.upsert(incoming(), options={"hudi.write.rules": "fare > 0"})
