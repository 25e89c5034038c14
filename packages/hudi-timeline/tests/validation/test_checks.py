"""Checks of a write that cannot be understood: refused before anything is written."""

import pyarrow as pa
import pytest
from bad_input import content, rows
from write_operations import incoming

from hudi_format.errors import HudiError

P = "hoodie.precommit.validators"
SINGLE = {P: "SqlQuerySingleResultPreCommitValidator"}
EQUAL = {P: "org.apache.hudi.client.validator.SqlQueryEqualityPreCommitValidator"}


def single(query):
    return {**SINGLE, f"{P}.single.value.sql.queries": query}


def equal(query):
    return {**EQUAL, f"{P}.equality.sql.queries": query}


REFUSED = [
    ("HUDI-E0201", {P: "com.example.Mine"}),
    ("HUDI-E0201", {"write.ignore.failed": "true"}),
    ("HUDI-E0303", SINGLE),
    ("HUDI-E0303", {f"{P}.equality.sql.queries": "select 1 from <TABLE_NAME>"}),
    ("HUDI-E0302", single("select count(*) from <TABLE_NAME>")),
    ("HUDI-E0302", single("select 1#1#2")),
    ("HUDI-E0302", equal("select 1")),
    ("HUDI-E0302", equal("select nothing from <TABLE_NAME>")),
    ("HUDI-E0302", equal("selec id from <TABLE_NAME>")),
    ("HUDI-E0302", equal("select * from read_csv('/etc/passwd') union all select id from <TABLE_NAME>")),
    ("HUDI-E0302", {P: "nowhere_to_be_found:check"}),
    ("HUDI-E0302", {P: "sys:path"}),
    ("HUDI-E0502", {"hudi.write.rules": "fere > 0"}),
    ("HUDI-E0302", {"hudi.write.rules": "fare >"}),
    ("HUDI-E0302", {"hudi.write.rules": "x: fare > 0; x: n > 0"}),
    ("HUDI-E0302", {"hudi.write.rules": "x:"}),
    ("HUDI-E0302", {"hudi.quarantine.max.rows": "many"}),
    ("HUDI-E0301", {"hudi.quarantine.pth": "q"}),
]


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize(("code", "options"), REFUSED, ids=lambda v: str(v)[:70])
@pytest.mark.sampled(4)
def test_what_cannot_be_checked_is_refused_before_anything_is_written(path, table, code, options):
    before = content(path)
    with pytest.raises(HudiError) as e:
        table.upsert(incoming(), options=options)
    assert e.value.code == code
    assert content(path) == before


def test_the_streaming_option_says_nothing_to_a_write(table):
    """As in Apache Hudi 0.15: only streaming sinks look at it."""
    options = {"hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
    with pytest.raises(HudiError, match="null or empty"):
        table.upsert(rows("x", id=pa.array([None], pa.string())), options=options)
    assert table.upsert(rows("x"), options=options).inserted == 1
