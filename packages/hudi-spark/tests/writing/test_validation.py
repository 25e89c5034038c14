"""Validators, rules and the quarantine on Spark: as without a JVM, in Spark's own SQL."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hudi_format.errors import HudiError, ValidationError
from hudi_spark.writing.writer import last_commit
from hudi_timeline import HudiTable

WRITE, P = "hoodie.datasource.write.", "hoodie.precommit.validators"
DDL = "id string, city string, fare double, ts long"
FIRST = [("a", "x", 1.0, 1), ("b", "x", 2.0, 1), ("c", "y", 3.0, 1)]
BAD = [("a", "x", -1.0, 2), ("n", "new", 5.0, 2)]
SINGLE = {P: "SqlQuerySingleResultPreCommitValidator"}


def single(query):
    return {**SINGLE, f"{P}.single.value.sql.queries": query}


@pytest.fixture
def save(spark, path, trips):
    def write(rows, operation="upsert", **options):
        frame = spark.createDataFrame(rows, DDL)
        given = {**trips, WRITE + "operation": operation, **options}
        frame.write.format("hudi").options(**given).mode("append").save(path)
        return last_commit()

    write(FIRST, "bulk_insert")
    return write


@pytest.fixture
def content(path):
    return lambda: {
        str(f.relative_to(path)): f.read_bytes()
        for f in Path(path).rglob("*")
        if f.is_file() and not f.name.endswith(".crc")
    }


def count_of(change):
    """What a validator that is given by name sees, its frame a DataFrame."""
    frame = change.frame(change.after(["id"]))
    return f"{change.operation} {frame.count()} {change.rows(['id']).count()} {change.before(['id']).count()}"


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize(
    ("operation", "count", "seen"),
    [
        ("insert", 4, "INSERT 5 2 3"),
        ("upsert", 3, "UPSERT 4 2 3"),
        ("bulk_insert", 4, "BULK_INSERT 5 2 3"),
        ("insert_overwrite", 2, "INSERT_OVERWRITE 3 2 3"),
        ("insert_overwrite_table", 2, "INSERT_OVERWRITE_TABLE 2 2 3"),
        ("delete", 1, "DELETE 2 0 3"),
        ("delete_partition", 0, "DELETE_PARTITION 1 0 3"),
    ],
)
@pytest.mark.sampled(4, values=False)
def test_each_operation_is_checked_and_refused_without_a_trace(
    spark, save, content, monkeypatch, operation, count, seen
):
    """`count` rows are in the changed partitions after it; y is among them only where all is overwritten."""
    module = type(sys)("checks_of_a_job")
    module.count_of = count_of
    monkeypatch.setitem(sys.modules, "checks_of_a_job", module)
    before, views = content(), spark.catalog.listTables()
    rows = BAD[:1] if operation.startswith("delete") else BAD
    with pytest.raises(ValidationError, match=f"refused the write: {seen}"):
        save(rows, operation, **{P: "checks_of_a_job:count_of"})
    with pytest.raises(ValidationError, match=f"must give 77, and gives {count}"):
        save(rows, operation, **single("select count(*) from <TABLE_NAME>#77"))
    assert content() == before
    assert spark.catalog.listTables() == views
    assert save(rows, operation, **single(f"select count(*) from <TABLE_NAME>#{count}")).instant


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert", "insert_overwrite"])
@pytest.mark.sampled(7, values=False)
def test_bad_rows_are_refused_or_kept(spark, save, content, path, operation):
    rows = [*BAD, (None, "x", 1.0, 2), ("out", "../up", 1.0, 2), ("null", "x", None, 2)]
    rules = {"hudi.write.rules": "paid: fare >= 0 and length(city) < 9"}
    before = content()
    with pytest.raises(ValidationError, match="rule 'paid' finds 2 bad rows, with keys a, null"):
        save([r for r in rows if r[0]][:1] + rows[1:2] + rows[4:], operation, **rules)
    assert content() == before
    aside = {"hudi.quarantine.path": path + "_aside"}
    with pytest.raises(ValidationError, match="takes 3 rows at most, and there are 4"):
        save(rows, operation, **rules, **aside, **{"hudi.quarantine.max.rows": "3"})
    assert content() == before
    result = save(rows, operation, **rules, **aside)
    assert result.quarantined == {"paid": 2, "record_key": 1, "partition_path": 1}
    kept = spark.read.format("hudi").load(path + "_aside")
    assert {(r._hudi_quarantine_rule, r.id, r.fare) for r in kept.collect()} == {
        ("paid", "a", -1.0), ("paid", "null", None), ("record_key", None, 1.0), ("partition_path", "out", 1.0),
    }  # fmt: skip
    assert {r[0] for r in kept.select("_hudi_quarantine_instant").collect()} == {result.instant}
    ids = {r.id for r in spark.read.format("hudi").load(path).collect()}
    assert "n" in ids
    assert not ids & {"out", "null", None}
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


@pytest.mark.req("NEW-33")
def test_a_write_that_dies_after_its_quarantine_is_settled_by_the_next(spark, save, path, monkeypatch):
    from hudi_timeline.transaction import transaction

    class Died(BaseException):
        """The end of the process."""

    commit_of_table = transaction.Transaction.commit

    def die(self, *arguments, **named):
        if self.storage.uri == path:
            self._open = False
            self._heartbeat.halt()
            raise Died
        return commit_of_table(self, *arguments, **named)

    options = {"hudi.write.rules": "fare >= 0", "hudi.quarantine.path": path + "_aside"}
    with monkeypatch.context() as patch:
        patch.setattr(transaction.Transaction, "commit", die)
        with pytest.raises(Died):
            save(BAD, **options)
    aside = HudiTable.open(path + "_aside")
    assert aside.read(["id"]).to_arrow().column(0).to_pylist() == ["a"]
    for beat in (Path(path) / ".hoodie" / ".heartbeat").iterdir():
        beat.unlink()
    result = save(BAD, **options)
    kept = aside.read(["_hudi_quarantine_instant", "id"]).to_arrow().to_pylist()
    assert kept == [{"_hudi_quarantine_instant": result.instant, "id": "a"}]


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("HUDI-E0302", single("select nothing from <TABLE_NAME>#1")),
        ("HUDI-E0302", single("selec 1 from <TABLE_NAME>#1")),
        ("HUDI-E0502", {"hudi.write.rules": "fere > 0"}),
        ("HUDI-E0302", {"hudi.write.rules": "fare >"}),
        ("HUDI-E0302", {"hudi.write.rules": "fare + 1"}),
    ],
)
def test_what_cannot_be_checked_is_refused_before_anything_is_written(save, content, code, options):
    before = content()
    with pytest.raises(HudiError) as e:
        save(BAD, **options)
    assert e.value.code == code
    assert content() == before


@pytest.mark.slow
def test_values_have_javas_text(save):
    query = "select {} from <TABLE_NAME> limit 1#{}"
    for expression, text in (
        ("cast(1.50 as decimal(9,2))", "1.50"), ("sum(fare)", "10.0"), ("avg(ts)", "1.0"), ("true", "true"),
        ("date'2024-02-01'", "2024-02-01"), ("timestamp'2024-02-01 10:00:00'", "2024-02-01 10:00:00.0"),
        ("cast(1e10 as double)", "1.0E10"),
    ):  # fmt: skip
        aggregate = expression.startswith(("sum", "avg"))
        rows = [("q", "z", 10.0, 1)]
        given = query.format(expression, text).replace(" limit 1", "" if aggregate else " limit 1")
        assert save(rows, "insert_overwrite", **single(given)).instant
