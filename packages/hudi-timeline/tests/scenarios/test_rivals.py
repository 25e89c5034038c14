"""A write beside another one that changes what it was planned from: nothing of either is lost, or it is a conflict."""

import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from rival_writers import (
    DROP,
    GLOBAL,
    LAZY,
    NULLS,
    RIVALS,
    SCHEMA,
    Between,
    Input,
    make,
    newest_commit,
    rows,
    state,
)

from hudi_format.errors import (
    ConcurrentWriterError,
    HudiError,
    NotAHudiTableError,
    TableExistsError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.schema.changes import DROPPED, schema_changes
from hudi_timeline import HudiTable, table_config
from hudi_timeline.keys.deduplicate import deduplicate
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.writing import operation

BEFORE, DURING = "before the instant", "while it writes"

OPERATIONS = {
    "upsert": lambda t, given, o: t.upsert(given(rows("ax", "nx", ts=9)), options=o),
    "upsert with nulls": lambda t, given, o: t.upsert(given(rows("ax", "nx", ts=9)), options={**o, **NULLS}),
    "insert": lambda t, given, o: t.insert(given(rows("nx", ts=9)), options=o),
    "bulk_insert": lambda t, given, o: t.bulk_insert(given(rows("nx", ts=9)), options=o),
    "delete": lambda t, given, o: t.delete(given(rows("ax")), options=o),
    "insert_overwrite": lambda t, given, o: t.insert_overwrite(given(rows("nx", ts=9)), options=o),
    "delete_partition": lambda t, given, o: t.delete_partitions(["x"], options=o),
}
ALL = frozenset(OPERATIONS)
SOME = frozenset({"upsert", "bulk_insert"})
STRICT = frozenset({"upsert", "insert_overwrite"})  # rows that lack a column of the table are refused
REWRITES = ALL - {"bulk_insert"}  # files of the partition x
LOOKS_UP = frozenset({"upsert", "upsert with nulls", "delete"})
ROWS = ALL - {"delete", "delete_partition"}

# By rival: the operations that are tried, and those of them that are a conflict at either moment.
CASES = {
    "adds a column": (ALL, STRICT, frozenset()),
    "adds a column to our rows": (ALL, STRICT, REWRITES),
    "adds a member": (ALL, STRICT, frozenset()),
    "widens": (ALL, frozenset(), frozenset()),
    "widens to text": (ALL, frozenset(), frozenset()),
    "widens the ordering field": (ALL, ROWS, ALL),
    "drops a column": (ALL, frozenset(), ALL),
    "records a global index": (ALL, frozenset(), LOOKS_UP),
    "deletes our partition": (ALL, frozenset(), REWRITES),
    "replaces our partition": (ALL, STRICT, REWRITES),
    "restores": (SOME, frozenset(), frozenset()),
    "rolls back": (SOME, frozenset(), frozenset()),
    "downgrades": (SOME, SOME, frozenset()),
    "sets the ordering field": (SOME, SOME, SOME),
    "sets the payload": (SOME, {"bulk_insert"}, SOME),
    "sets partition fields": (SOME, SOME, SOME),
    "sets the table type": (SOME, SOME, SOME),
    "removes the table": (SOME, SOME, SOME),
    "makes the table anew": (SOME, {"upsert"}, SOME),
    "makes the table anew with other keys": (SOME, SOME, SOME),
}
MATRIX = [
    pytest.param(moment, rival, name, name in conflicts, id=f"{rival}-{moment}-{name}")
    for rival, (names, *both) in CASES.items()
    for moment, conflicts in zip((BEFORE, DURING), both, strict=True)
    for name in sorted(names)
]
# Restores, rollbacks and downgrades wait for writes that go on.
REFUSED = {"restores", "rolls back", "downgrades"}
CONFLICTS = (ConcurrentWriterError, UnsupportedError, NotAHudiTableError)


@pytest.fixture
def path(shared_table):
    return shared_table


def keeps(name, key):
    """Whether an operation leaves a row of the table as it is."""
    if name in ("insert", "bulk_insert"):
        return True
    return key[1] != "x" if name in ("insert_overwrite", "delete_partition") else key != ("a", "x")


def test_every_rival_has_its_case():
    assert set(CASES) == set(RIVALS)


@pytest.mark.sampled(32)
@pytest.mark.req("CC-01", "CC-04", "CC-40", "SE-02", "CC-03", "TM-24")
@pytest.mark.parametrize(("moment", "rival", "name", "conflicts"), MATRIX)
def test_nothing_is_lost_or_it_is_a_conflict(path, monkeypatch, moment, rival, name, conflicts):
    inputs = []

    def given(table):
        inputs.append(Input(table))
        return inputs[-1]

    between = Between(monkeypatch, path, RIVALS[rival], moment)
    options = LAZY if moment == DURING else {}
    if conflicts:
        with pytest.raises(CONFLICTS) as e:
            OPERATIONS[name](HudiTable.open(path), given, options)
        assert e.value.remedy or rival == "removes the table"
        assert between.ran
        assert all(i.made <= 1 for i in inputs)
        if isinstance(e.value, WriteConflictError):
            assert e.value.details["rival"] or "hoodie.properties" in str(e.value)
        if between.state is not None:
            assert state(path) == between.state
            assert rival == "sets the table type" or HudiTable.open(path).verify(deep=True) == []
        return
    result = OPERATIONS[name](HudiTable.open(path), given, options)
    assert (between.refused is not None) == (moment == DURING and rival in REFUSED)
    assert [i.made for i in inputs] == [1] * (name != "delete_partition")
    there, schema = state(path)
    before, left = between.state
    assert [str(c) for c in schema_changes(schema, left, schema) if c.kind == DROPPED] == []
    kept = {k: r for k, r in before.items() if keeps(name, k)}
    assert {k: {c: r[c] for c in kept[k]} for k, r in there.items() if k in kept} == kept
    fresh = {k for k in there if k not in kept}
    wanted = {"delete": set(), "delete_partition": set()}.get(name, {("n", "x")})
    assert fresh == wanted | ({("a", "x")} if name.startswith("upsert") else set())
    assert all(there[k]["ts"] == 9 and there[k].get("note") is None for k in fresh)
    if moment == BEFORE:
        assert "planned again" in " ".join(result.warnings)
    if rival != "sets the payload":
        assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-04")
def test_a_conflict_before_the_first_file_leaves_no_trace(path, monkeypatch):
    def files():
        return sorted(str(p) for p in Path(path).rglob("*"))

    between = Between(monkeypatch, path, RIVALS["adds a column"], BEFORE)
    left = []
    once = between.once
    monkeypatch.setattr(between, "once", lambda: (once(), left.append(files())))
    with pytest.raises(WriteConflictError, match=r"note \(string\)") as e:
        HudiTable.open(path).upsert(rows("ax", ts=9))
    assert "hoodie.write.set.null.for.missing.columns" in e.value.remedy
    assert e.value.details["rival"] in str(e.value)
    assert files() == left[-1]


@pytest.mark.req("CC-04")
def test_nothing_is_planned_again_where_nothing_changed(path, monkeypatch):
    planned = []
    plan_for = operation.Replanner.__call__.__globals__["plan_for"]
    monkeypatch.setitem(
        operation.Replanner.__call__.__globals__, "plan_for", lambda *a: planned.append(a) or plan_for(*a)
    )
    assert HudiTable.open(path).upsert(rows("ax", ts=9)).warnings == ()
    assert planned == []


def overlapping(path, monkeypatch, first, second):
    """Two writes side by side: both have begun, the first one before the other, and the first one ends first.

    Returns what each raised, None for one that was committed.
    """
    go_on, begun = threading.Event(), threading.Event()
    inflight = Transaction.inflight
    outcome = {}

    def announced(transaction, profile):
        inflight(transaction, profile)
        if threading.current_thread() is thread:
            begun.set()
            assert go_on.wait(30)
        else:
            go_on.set()
            thread.join(30)

    def run(name, act):
        try:
            act(HudiTable.open(path))
            outcome[name] = None
        except HudiError as e:
            outcome[name] = e

    monkeypatch.setattr(Transaction, "inflight", announced)
    thread = threading.Thread(target=run, args=("first", first))
    thread.start()
    assert begun.wait(30)
    run("second", second)
    thread.join(30)
    return outcome["first"], outcome["second"]


def brings(key, **columns):
    return lambda t: t.bulk_insert(rows(key, **columns), options=LAZY)


@pytest.mark.req("CC-24", "CC-40", "SE-02", "SE-08", "NEW-17")
def test_two_overlapping_writers_with_a_column_each_keep_both(path, monkeypatch):
    ended = overlapping(path, monkeypatch, brings("nx", one="1"), brings("my", two="2"))
    assert ended == (None, None)
    there, schema = state(path)
    assert set(schema.names) == {*SCHEMA.names, "one", "two"}
    assert (there["n", "x"]["one"], there["m", "y"]["two"]) == ("1", "2")
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("SE-01", "SE-02")
def test_two_overlapping_writers_with_a_column_each_keep_a_default_of_the_table(path, monkeypatch):
    table = HudiTable.open(path)
    newest = Path(path, table.timeline.completed_writes()[-1].path)
    commit = json.loads(newest.read_text())
    schema = json.loads(commit["extraMetadata"]["schema"])
    (field,) = (f for f in schema["fields"] if f["name"] == "v")
    field |= {"type": ["int", "null"], "default": 7}
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    newest.write_text(json.dumps(commit))
    ended = overlapping(path, monkeypatch, brings("nx", one="1"), brings("my", two="2"))
    assert ended == (None, None)
    fields = json.loads(newest_commit(path)["extraMetadata"]["schema"])["fields"]
    assert {"one", "two"} < {f["name"] for f in fields}
    assert {f["name"]: f.get("default") for f in fields}["v"] == 7


@pytest.mark.req("CC-24", "SE-02", "SE-08")
@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (pa.array([1], pa.int32()), pa.array([2], pa.int64()), pa.int64()),
        (pa.array([1], pa.int64()), pa.array([2], pa.int32()), pa.int64()),
        (pa.array([1], pa.int32()), pa.array(["b"]), pa.string()),
        (pa.array([{"a": 1}]), pa.array([{"b": 2}]), pa.struct([("a", pa.int64()), ("b", pa.int64())])),
    ],
)
def test_a_column_that_both_bring_takes_both_types(path, monkeypatch, one, two, both):
    assert overlapping(path, monkeypatch, brings("nx", new=one), brings("my", new=two)) == (None, None)
    there, schema = state(path)
    kind = schema.field("new").type
    assert {f.name for f in kind} == {"a", "b"} if pa.types.is_struct(kind) else kind == both
    assert str(there["n", "x"]["new"]).startswith(("1", "{'a': 1"))
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-04", "SE-02")
def test_a_column_that_both_bring_in_types_that_do_not_go_together_is_a_conflict(path, monkeypatch):
    first, second = overlapping(
        path, monkeypatch, brings("nx", new=pa.array([True])), brings("my", new=pa.array([{"a": 1}]))
    )
    assert first is None
    assert isinstance(second, WriteConflictError)
    assert "new" in second.message
    assert state(path)[1].field("new").type == pa.bool_()
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-04", "SE-02")
def test_a_column_behind_a_newer_commit_that_lacks_it_is_a_conflict(path, monkeypatch):
    """The table's schema is that of the newest instant, whichever was completed last."""
    Between(
        monkeypatch, path, lambda p: HudiTable.open(p).upsert(rows("by", note="kept"), options=LAZY), DURING
    )
    with pytest.raises(WriteConflictError, match="lacks mine"):
        HudiTable.open(path).bulk_insert(rows("nx", mine="m"), options=LAZY)
    there, schema = state(path)
    assert schema.names == [*SCHEMA.names, "note"]
    assert ("n", "x") not in there
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("SE-02")
def test_a_column_dropped_on_purpose_is_said_in_the_commit_and_another_one_stays(path, monkeypatch):
    first, second = overlapping(
        path,
        monkeypatch,
        brings("nx", note="kept"),
        lambda t: t.bulk_insert(rows("my", extra=None), options={**LAZY, **DROP}),
    )
    assert (first, second) == (None, None)
    assert set(state(path)[1].names) == {*SCHEMA.names, "note"} - {"extra"}
    assert newest_commit(path)["extraMetadata"]["hudi.schema.dropped"] == '["extra"]'


@pytest.mark.req("CC-40")
def test_a_global_index_that_a_rival_recorded_stays_recorded(path, monkeypatch):
    first, second = overlapping(
        path, monkeypatch, lambda t: t.upsert(rows("by"), options={**LAZY, **GLOBAL}), brings("nx")
    )
    assert (first, second) == (None, None)
    result = HudiTable.open(path).upsert(rows("by", ts=9))
    assert result.lookup.index == "GLOBAL_SIMPLE"


FIRST = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def first_write(path, table, mode="append", **options):
    from hudi_format.storage.local import LocalStorage
    from hudi_timeline.writing.local_engine import LocalEngine

    given = {**FIRST, "hoodie.datasource.write.operation": "upsert", **options}
    return operation.execute(LocalEngine(), LocalStorage(path), table, given, mode=mode)


def before_create(monkeypatch, act):
    """Another writer that is first to make the table."""
    create, once = table_config.create, []

    def creating(*args, **kwargs):
        if not once:
            once.append(1)
            act()
        return create(*args, **kwargs)

    monkeypatch.setattr(table_config, "create", creating)


@pytest.mark.req("CC-01", "CC-40")
def test_the_second_of_two_first_writes_adds_to_the_table(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    before_create(monkeypatch, lambda: first_write(path, rows("by")))
    result = first_write(path, rows("ax", note="n"))
    assert "planned again" in " ".join(result.warnings)
    there, schema = state(path)
    assert set(there) == {("a", "x"), ("b", "y")}
    assert schema.names == [*SCHEMA.names, "note"]
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-01", "CC-40")
@pytest.mark.parametrize(
    ("rival", "mine"),
    [
        ({"table": rows("by", note="n")}, {}),
        ({"hoodie.datasource.write.recordkey.field": "extra"}, {}),
        ({"hoodie.datasource.write.hive_style_partitioning": "true"}, {}),
        ({}, {"mode": "overwrite"}),
        ({}, {"mode": "errorifexists"}),
    ],
)
def test_a_second_first_write_that_does_not_go_with_the_first_is_refused(tmp_path, monkeypatch, rival, mine):
    path = str(tmp_path / "t")
    other = {"table": rows("by"), **rival}
    before_create(monkeypatch, lambda: first_write(path, **other))
    with pytest.raises((WriteConflictError, TableExistsError)):
        first_write(path, rows("ax"), **mine)
    assert set(state(path)[0]) == {("b", "y")}
    assert HudiTable.open(path).verify(deep=True) == []


def test_a_second_first_write_of_the_mode_ignore_does_nothing(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    before_create(monkeypatch, lambda: first_write(path, rows("by")))
    assert first_write(path, rows("ax"), mode="ignore").instant == ""
    assert set(state(path)[0]) == {("b", "y")}


@pytest.mark.req("CC-01")
def test_a_metadata_table_that_another_writer_built_meanwhile_is_taken_away(path, monkeypatch):
    def builds(at):
        storage = HudiTable.open(at).storage
        storage.touch(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.name=m\n")
        table_config.update(storage, {table_config.METADATA_PARTITIONS: "files"})

    Between(monkeypatch, path, builds, DURING)
    result = HudiTable.open(path).upsert(rows("ax", ts=9), options=LAZY)
    assert "metadata table" in " ".join(result.warnings)
    table = HudiTable.open(path)
    assert table.config.metadata_partitions == ()
    assert table.storage.list(".hoodie/metadata") == []
    assert state(path)[0]["a", "x"]["ts"] == 9


@pytest.mark.req("CC-40")
def test_rows_of_a_filter_are_those_that_match_when_they_are_deleted(path, monkeypatch):
    """The rival changes one row so that it no longer matches, and another one so that it does."""

    def act(at):
        HudiTable.open(at).upsert(pa.concat_tables([rows("ax", v=1), rows("by", v=50)]), options=LAZY)

    HudiTable.open(path).upsert(rows("ax", v=50))
    Between(monkeypatch, path, act, BEFORE)
    HudiTable.open(path).delete("v = 50")
    assert {k: r["v"] for k, r in state(path)[0].items()} == {("a", "x"): 1, ("c", "q"): 1}
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-40")
def test_rows_of_a_filter_that_others_always_change_first_are_a_conflict(path, monkeypatch):
    begin = operation.begin_transaction

    def beginning(*args, **kwargs):
        monkeypatch.setattr(operation, "begin_transaction", begin)
        HudiTable.open(path).upsert(rows("by", v=50))
        monkeypatch.setattr(operation, "begin_transaction", beginning)
        return begin(*args, **kwargs)

    monkeypatch.setattr(operation, "begin_transaction", beginning)
    before = len(HudiTable.open(path).timeline.completed_writes())
    with pytest.raises(WriteConflictError, match="were read from the table before"):
        HudiTable.open(path).delete("v = 1")
    assert len(HudiTable.open(path).timeline.completed_writes()) == before + 5
    assert len(state(path)[0]) == 3


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("moment", [BEFORE, DURING])
@pytest.mark.parametrize(
    ("rival", "conflicts"), [("adds a column", False), ("adds a column to our rows", True)]
)
@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.sampled(3)
def test_prepped_rows_beside_a_rival_are_written_or_a_conflict(
    path, tmp_path, monkeypatch, moment, rival, conflicts, logs
):
    if logs:
        path = str(tmp_path / "logs")
        make(path, "MERGE_ON_READ").upsert(
            rows("ax", v=1, ts=1), options={"hoodie.parquet.small.file.limit": "0"}
        )
    table = HudiTable.open(path)
    given = table.read(filter="id = 'a'", meta_columns=True).to_arrow()
    assert ("_" in given["_hoodie_file_name"][0].as_py()) == (not logs)
    given = given.set_column(given.schema.get_field_index("v"), "v", pa.array([70], pa.int32()))
    options = {
        "hoodie.datasource.write.operation": "upsert_prepped",
        **NULLS,
        **(LAZY if moment == DURING else {}),
    }
    between = Between(monkeypatch, path, RIVALS[rival], moment)
    if conflicts:
        with pytest.raises(ConcurrentWriterError):
            table.upsert(given, options=options)
        assert state(path) == between.state
    else:
        table.upsert(given, options=options)
        there, _ = state(path)
        assert (there["a", "x"]["v"], there["b", "y"]["note"]) == (70, "kept")
    assert HudiTable.open(path).verify(deep=True) == []


@pytest.mark.req("CC-40")
@pytest.mark.parametrize(
    ("rival", "conflicts"), [("adds a column", False), ("adds a column to our rows", True)]
)
def test_a_deduplication_beside_a_rival_is_done_or_a_conflict(path, monkeypatch, rival, conflicts):
    HudiTable.open(path).insert(rows("ax", ts=3))  # the key stands twice in one file
    between = Between(monkeypatch, path, RIVALS[rival], DURING)
    if conflicts:
        with pytest.raises(WriteConflictError):
            deduplicate(ServiceContext(HudiTable.open(path).storage, parse_transaction_options(LAZY)), "x")
    else:
        assert (
            deduplicate(
                ServiceContext(HudiTable.open(path).storage, parse_transaction_options(LAZY)), "x"
            ).rows
            == 1
        )
    assert set(between.state[1].names) == {*SCHEMA.names, "note"} == set(state(path)[1].names)
    assert "kept" in [r.get("note") for r in state(path)[0].values()]


@pytest.mark.req("CC-40")
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_bad_rows_are_in_the_quarantine_once_where_the_write_is_planned_again(
    path, monkeypatch, tmp_path, operation
):
    options = {"hudi.quarantine.path": str(tmp_path / "bad"), **NULLS}
    Between(monkeypatch, path, RIVALS["adds a column"], BEFORE)
    given = Input(pa.concat_tables([rows("nx", v=7), rows("mx", v=-1)]))
    result = getattr(HudiTable.open(path), operation)(given, options=options, rules={"positive": "v > 0"})
    assert given.made == 1
    assert dict(result.quarantined) == {"positive": 1}
    assert HudiTable.open(str(tmp_path / "bad")).read(columns=["id"]).to_arrow()["id"].to_pylist() == ["m"]
    there, schema = state(path)
    assert ("n", "x") in there
    assert ("m", "x") not in there
    assert "note" in schema.names
