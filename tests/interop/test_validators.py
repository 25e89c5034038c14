"""The same SQL validators, with the same options, say the same of the same write: Apache Hudi 0.15.0 and this project.

Without a JVM the queries run in DuckDB, on Spark in Spark SQL.  A refused write leaves the rows that were there.
"""

import shutil

import pyarrow as pa
import pytest

from hudi_format.errors import ValidationError
from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours
from interop.rows import assert_same_rows
from interop.spark_process import SparkProcessError

WRITE, P = "hoodie.datasource.write.", "hoodie.precommit.validators"
PACKAGE = "org.apache.hudi.client.validator."
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}


def rows(*values):
    columns = list(zip(*values, strict=True))
    types = [pa.string(), pa.string(), pa.int64(), pa.float64()]
    return pa.table(
        {n: pa.array(c, t) for n, c, t in zip(("id", "p", "ts", "v"), columns, types, strict=True)}
    )


FIRST = rows(*[(f"k{i}", f"p{i % 2}", 10, i / 2) for i in range(6)])
CHANGE = rows(("k0", "p0", 20, 99.5), ("new", "p0", 20, -1.0))
GONE = rows(("k0", "p0", 20, 0.0))
EQUAL, OTHER, SINGLE = "equality", "inequality", "single.value"
CLASSES = {
    EQUAL: "SqlQueryEqualityPreCommitValidator",
    OTHER: "SqlQueryInequalityPreCommitValidator",
    SINGLE: "SqlQuerySingleResultPreCommitValidator",
}
T = "<TABLE_NAME>"
# Validator, queries, operation, whether the write is committed.
CASES = [
    (SINGLE, f"select count(*) from {T} where v < 0#0", "upsert", False),
    (SINGLE, f"select count(*) from {T} where v < 0#1", "upsert", True),
    (SINGLE, f"select count(*) from {T}#4", "upsert", True),  # of the partition p0, and not of p1
    (SINGLE, f"select max(v) from {T}#99.5", "upsert", True),
    (SINGLE, f"select count(*) from {T} where v is null#0;select count(distinct id) from {T}#5", "upsert", False),
    (SINGLE, f"select null from {T} limit 1#null", "upsert", False),
    (EQUAL, f"select count(*) from {T}", "upsert", False),
    (EQUAL, f"select id from {T}", "upsert", True),  # it only grew
    (EQUAL, f"select p from {T}", "upsert", False),  # rows that stand twice
    (EQUAL, f"select id, v from {T} where id <> 'k0'", "upsert", True),
    (EQUAL, f"select sum(v) from {T} where _hoodie_record_key = 'k2'", "upsert", True),
    (OTHER, f"select count(*) from {T}", "upsert", True),
    (OTHER, f"select id from {T}", "upsert", False),
    (EQUAL, f"select count(*) from {T}", "delete", False),
    (SINGLE, f"select count(*) from {T}#2", "delete", True),
    (SINGLE, f"select count(*) from {T}#2", "insert_overwrite", True),
    (EQUAL, f"select id from {T}", "insert_overwrite", False),
    (SINGLE, f"select count(*) from {T}#5", "insert", True),
]  # fmt: skip


def local(path, data, given):
    execute(LocalEngine(), open_storage(str(path)), data, given)


def writers(pool):
    """By name, what writes rows with options."""
    return {"apache": pool.get("0.15.0").write, "local": local, "spark": pool.ours().write}


@pytest.fixture(scope="module")
def written(tmp_path_factory, pool):
    """A folder with the first rows, written by each."""
    folder = tmp_path_factory.mktemp("written")
    for name, write in writers(pool).items():
        write(folder / name, FIRST, {**BASE, WRITE + "operation": "insert"})
    return folder


@pytest.mark.req("MB-06", "NEW-33")
@pytest.mark.parametrize(("kind", "queries", "operation", "committed"), CASES)
def test_validators_say_what_those_of_apache_hudi_say(
    tmp_path, pool, written, kind, queries, operation, committed
):
    options = {
        **BASE,
        WRITE + "operation": operation,
        P: PACKAGE + CLASSES[kind],
        f"{P}.{kind}.sql.queries": queries,
    }
    change = GONE if operation == "delete" else CHANGE
    if operation == "insert":
        change = rows(("n1", "p0", 20, 1.0), ("n2", "p0", 20, 1.0))

    left = {}
    for name, write in writers(pool).items():
        path = tmp_path / name
        shutil.copytree(written / name, path)
        error = ValidationError if name == "local" else SparkProcessError
        if committed:
            write(path, change, options)
        else:
            with pytest.raises(error) as e:
                write(path, change, options)
            says = str(e.value)
            assert ("pre-commit validation failed" if name == "apache" else "HUDI-E0508") in says
        left[name] = ours.read(path).select(["id", "p", "ts", "v"])
    assert_same_rows(left["local"], left["apache"], ["id"])
    assert_same_rows(left["spark"], left["apache"], ["id"])


@pytest.mark.req("NEW-33")
def test_apache_hudi_reads_the_quarantine_and_the_table_beside_it(tmp_path, apache):
    options = {
        **BASE,
        "hudi.write.rules": "paid: v >= 0",
        "hudi.quarantine.path": str(tmp_path / "aside"),
    }
    storage = open_storage(str(tmp_path / "t"))
    execute(LocalEngine(), storage, FIRST, {**BASE, WRITE + "operation": "insert"})
    result = execute(LocalEngine(), storage, CHANGE, options)
    assert result.quarantined == {"paid": 1}
    assert_same_rows(ours.read(tmp_path / "t"), apache.read(tmp_path / "t"), ["id"])
    kept = apache.read(tmp_path / "aside")
    assert_same_rows(ours.read(tmp_path / "aside"), kept, ["_hudi_quarantine_id"])
    assert kept.column("_hudi_quarantine_instant").to_pylist() == [result.instant]
    assert kept.column("id").to_pylist() == ["new"]
