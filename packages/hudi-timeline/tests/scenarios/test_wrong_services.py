"""Sixty wrong calls of services, changes of columns and reads: a typed error in one line, and nothing written."""

import pandas as pd
import pyarrow as pa
import pytest
from bad_input import content, make, rows

from hudi_format.errors import HudiError
from hudi_timeline import HudiTable, read_hudi, scan_hudi, write_hudi

NONE = "20240101000000000"  # an instant that is on no timeline


def altered(step, *arguments, **more):
    return lambda t: getattr(t.alter(), step)(*arguments, **more).execute()


CALLS = {
    # columns
    "a column that is there": altered("add", "id", "string"),
    "a type that is none": altered("add", "note", "text"),
    "a type of Arrow that no file has": altered("add", "note", pa.duration("s")),
    "behind no column": altered("add", "note", "string", after="nmae"),
    "a name that Avro does not allow": altered("add", "a b", "string"),
    "a meta column": altered("add", "_hoodie_commit_time", "string"),
    "a column inside of none": altered("add", "bx.z", "int"),
    "rename none": altered("rename", "nmae", "name"),
    "rename to one that is there": altered("rename", "fare", "id"),
    "rename to the name that it has": altered("rename", "fare", "fare"),
    "more digits than a decimal has": altered("add", "note", "decimal(99, 2)"),
    "rename the key": altered("rename", "id", "key"),
    "rename the ordering field": altered("rename", "ts", "at2"),
    "drop none": altered("drop", "nmae"),
    "drop the key": altered("drop", "id"),
    "drop the partition": altered("drop", "city"),
    "drop the ordering field": altered("drop", "ts"),
    "narrow": altered("widen", "fare", "int"),
    "widen to another kind": altered("widen", "n", "date"),
    "widen none": altered("widen", "nmae", "long"),
    "widen a decimal's digits behind the point": altered("widen", "money", "decimal(6,3)"),
    "move none": altered("move", "nmae", first=True),
    "move behind itself": altered("move", "fare", after="fare"),
    "move behind none": altered("move", "fare", after="nmae"),
    "move nowhere": altered("move", "fare"),
    "an option of alter": lambda t: t.alter(options={"hoodie.nonsense": "1"}).add("z", "int").execute(),
    # compaction
    "compact a copy-on-write table": lambda t: t.compact(),
    "compact by a plan that is none": lambda t: logs(t).compact(mode="execute", instant=NONE),
    "compact in a mode that is none": lambda t: logs(t).compact(mode="later"),
    "compact by a misspelt option": lambda t: logs(t).compact(options={"hoodie.compact.inline.max.delta.comits": "1"}),
    "compact by a strategy that is none": lambda t: logs(t).compact(options={"hoodie.compaction.strategy": "x.Y"}),
    "merge logs of a copy-on-write table": lambda t: t.log_compact(),
    "merge logs by a plan that is none": lambda t: logs(t).log_compact(mode="execute", instant=NONE),
    "merge logs in a mode that is none": lambda t: logs(t).log_compact(mode="later"),
    "withdraw no plan": lambda t: logs(t).unschedule_compaction(NONE),
    "withdraw of a copy-on-write table": lambda t: t.unschedule_compaction(NONE),
    "validate no plan": lambda t: logs(t).validate_compaction(NONE),
    "repair no plan": lambda t: logs(t).repair_compaction(NONE),
    "compact a copy-on-write table in the background": lambda t: t.compact_in_background(),
    # indexes and buckets
    "build an index that is none": lambda t: t.build_index("recrd_index"),
    "build by a plan that is none": lambda t: t.build_index(mode="execute", instant=NONE),
    "build in a mode that is none": lambda t: t.build_index("record_index", mode="later"),
    "drop an index that is none": lambda t: t.drop_index("stats"),
    "rebuild no index": lambda t: t.rebuild_index(),
    "resize without a bucket index": lambda t: t.resize_buckets(4),
    "resize logs without a bucket index": lambda t: logs(t).resize_buckets(4),
    "resize by an engine that is none": lambda t: t.resize_buckets(4, engine="FAST"),
    # cleaning, going back
    "clean by a number that is none": lambda t: t.clean(options={"hoodie.cleaner.commits.retained": "few"}),
    "clean by a policy that is none": lambda t: t.clean(options={"hoodie.cleaner.policy": "KEEP_ALL"}),
    "archive fewer than it keeps": lambda t: t.archive(
        options={"hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "20"}
    ),
    "savepoint of none": lambda t: t.savepoint(NONE),
    "delete no savepoint": lambda t: t.delete_savepoint(NONE),
    "restore to none": lambda t: t.restore(NONE),
    "roll back none": lambda t: t.rollback(NONE),
    "upgrade to a version that is not written": lambda t: t.upgrade(9),
    "downgrade below what there is": lambda t: t.downgrade(4),
    "repair a finding that is none": lambda t: t.repair(only=["nonsense"]),
    # keys and changes
    "deduplicate by a rule that is none": lambda t: t.deduplicate(keep="newest"),
    "update no column": lambda t: t.update({"nmae": 1}),
    "update where nothing can be parsed": lambda t: t.update({"n": 1}, where="fare <"),
    "merge without a step": lambda t: t.merge(rows("a")).execute(),
    "delete by a column that is none": lambda t: t.delete("nmae = 1"),
    "changes in a form that is none": lambda t: t.read_changes("000", images="xml"),
    # reads
    "a column that is none": lambda t: t.read(["nmae"]),
    "a column twice": lambda t: t.read(["id", "id"]),
    "letters of a text for a list": lambda t: t.read(filter=[("city", "in", "c0")]).to_arrow(),
    "letters of a text in a longer filter": lambda t: t.read(filter=[[("n", ">", 0), ("city", "not in", "c")]]),
    "a field that is none": lambda t: t.read(filter="box.nope = 1"),
    "a field of what has none": lambda t: t.read(filter="fare.x = 1"),
    "a moment that pandas does not have": lambda t: t.read(as_of=pd.NaT).to_arrow(),
    "the name of an option that is no text": lambda t: t.read(options={1: 2}),
    "a text for options": lambda t: t.upsert(rows("x"), options="hoodie.index.type=BLOOM"),
    "a text for rules": lambda t: t.upsert(rows("x"), rules="fare >= 0"),
    "a list of rules": lambda t: t.upsert(rows("x"), rules=["fare >= 0"]),
    "a number for a validator": lambda t: t.upsert(rows("x"), validators=[3]),
    "a number for validators": lambda t: t.upsert(rows("x"), validators=5),
    "a text of seconds": lambda t: HudiTable.open(t.uri, lock_wait="a"),
    "a part of a retry": lambda t: HudiTable.open(t.uri, write_retries=1.5),
    "seconds without end": lambda t: HudiTable.open(t.uri, lock_wait=float("inf")),
    "a Series for rows": lambda t: t.upsert(pd.Series([1, 2])),
    "a class for rows": lambda t: t.upsert(pd.DataFrame),
    "partitions that are none": lambda t: t.delete_partitions(None),
    "an empty key to erase": lambda t: t.erase([""]),
    "lists for a partition": lambda t: write_hudi(t.uri + "-2", [{"id": "a", "p": [1]}], key="id", partition_by="p"),
    "records for a partition": lambda t: write_hudi(
        t.uri + "-2", [{"id": "a", "p": {"x": 1}}], key="id", partition_by="p"
    ),
    "a file for a table": lambda t: write_hudi(t.uri + "/.hoodie/hoodie.properties", rows("x"), key="id"),
    "a table among the files of another": lambda t: write_hudi(t.uri + "/.hoodie/x", rows("x"), key="id"),
    "an empty table among the files of another": lambda t: HudiTable.create(
        t.uri + "/.hoodie/x", rows("x"), record_keys="id"
    ),
    "expressions that are no JSON": lambda t: t.upsert(rows("x"), options={"hudi.merge": "{'n': 'sum'}"}),
    "below a file": lambda t: write_hudi(t.uri + "/.hoodie/hoodie.properties/t", rows("x"), key="id"),
    "a name that no folder can have": lambda t: write_hudi(t.uri + "x" * 300, rows("x"), key="id"),
    "a lock that is a function": lambda t: HudiTable.open(
        t.uri, options={"hoodie.write.lock.provider": "math:sqrt"}
    ).lock_report(),
    "a query that is none": lambda t: t.read(query="snap"),
    "a time that is none": lambda t: t.read(as_of="last tuesday"),
    "a time before the first commit": lambda t: t.read(as_of="1999-01-01").to_arrow(),
    "what to do with gaps": lambda t: t.read(on_missing="guess"),
    "an order that is none": lambda t: t.read_incremental("000", order="random"),
    "no table": lambda t: read_hudi(t.uri + "/none"),
    "no table to be lazy about": lambda t: scan_hudi(t.uri + "/none"),
    "a mode that is none": lambda t: write_hudi(t.uri, rows("x"), mode="appendd"),
    "another key than the table's": lambda t: write_hudi(t.uri, rows("x"), key="n"),
    "a schema mode that is none": lambda t: t.upsert(rows("x"), schema_mode="loose"),
    "a plan of a dry run with a wrong row": lambda t: t.upsert(rows("x", fare=[True]), dry_run=True),
    "a table where there is one": lambda t: HudiTable.create(t.uri, rows("x"), record_keys="id"),
    "a table of a type that is none": lambda t: HudiTable.create(
        t.uri + "-2", rows("x"), record_keys="id", table_type="MOW"
    ),
}  # fmt: skip


def logs(table):
    """The merge-on-read table beside it."""
    return HudiTable.open(table.uri.replace("table", "logs"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("wrong")
    make(root / "table")
    made = HudiTable.create(str(root / "logs"), [{"id": "a"}], table_type="MERGE_ON_READ", record_keys="id")
    for _ in range(2):
        made.upsert([{"id": "a"}])
    return root


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_a_typed_error_and_changes_nothing(root, name):
    before = content(root)
    with pytest.raises(HudiError) as e:
        CALLS[name](HudiTable.open(str(root / "table")))
    error = e.value
    assert "\n" not in str(error)
    assert error.code.startswith("HUDI-E")
    assert error.remedy, str(error)
    assert content(root) == before


OF_ANOTHER_KIND = {
    "a number for a path": (lambda t: write_hudi(3, rows("x"), key="id"), "path or URL"),
    "a list for a path": (lambda t: read_hudi([t.uri]), "path or URL"),
    "a text for options of the store": (lambda t: read_hudi(t.uri, storage_options="key=1"), "mapping"),
    "a number for a mode": (lambda t: write_hudi(t.uri, rows("x"), mode=1), "append, overwrite"),
    "a number for a key": (lambda t: write_hudi(t.uri + "-2", rows("x"), key=3), "list of texts"),
    "numbers for keys": (lambda t: write_hudi(t.uri + "-2", rows("x"), key=[1]), "must be a text"),
    "a number for an ordering field": (lambda t: write_hudi(t.uri + "-2", rows("x"), key="id", ordering=1), "texts"),
    "a number for a type": (lambda t: write_hudi(t.uri + "-2", rows("x"), key="id", table_type=1), "COPY_ON_WRITE"),
    "a column that is None": (lambda t: t.read([None]).schema, "is None"),
    "a part of a row": (lambda t: t.head(1.5), "must be a whole number"),
    "a text of rows": (lambda t: t.read().limit("3"), "must be a whole number"),
    "less than no rows": (lambda t: t.head(-1), "must not be below 0"),
    "less than no commits": (lambda t: t.history(limit=-1), "must not be below 0"),
    "a number for indexes": (lambda t: t.build_index(5), "list of texts"),
    "a text for a table version": (lambda t: t.upgrade("x"), "must be a number"),
    "a number for findings": (lambda t: t.repair(only=5), "list of findings' codes"),
    "a text for findings": (lambda t: t.repair(only="HUDI-V0101"), "list of findings' codes"),
    "a number for a plan of repairs": (lambda t: t.repair(plan=5), "dry_run=True"),
    "a number for properties": (lambda t: t.overwrite_properties(5), "mapping of texts"),
    "a text for workers": (lambda t: t.verify(workers="x"), "number of threads"),
    "no workers": (lambda t: t.verify(workers=0), "1 or more"),
    "a number for a connection": (lambda t: t.read().to_duckdb(5), "duckdb.connect"),
    "a number for axes": (lambda t: t.plot.timeline(ax=5), "axes of Matplotlib"),
    "batches of no rows": (lambda t: t.read().to_batches(0), "must not be below 1"),
    "batches of a text": (lambda t: t.read().to_batches("x"), "must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ANOTHER_KIND)
def test_an_argument_of_another_kind_is_refused_with_the_kind_that_is_wanted(root, name):
    before = content(root)
    call, wanted = OF_ANOTHER_KIND[name]
    with pytest.raises((TypeError, ValueError), match=wanted):
        call(HudiTable.open(str(root / "table")))
    assert content(root) == before


def test_more_rows_than_there_are_numbers_for_are_all_rows(root):
    assert HudiTable.open(str(root / "table")).head(10**30).num_rows == 4


def test_there_are_sixty_of_them_and_more():
    assert len(CALLS) >= 60
