"""Changes of columns: what readers and writers see afterwards, here and beside other writers."""

import pyarrow as pa
import pytest

from hudi_format.errors import (
    MissingColumnError,
    SchemaError,
    UnsupportedError,
    WriteConflictError,
)
from hudi_format.schema.internal_schema import parse_versions
from hudi_timeline import HudiTable
from hudi_timeline.services import alter
from hudi_timeline.testing import CHANGES, CRASH, Fault, Faults

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KINDS = pytest.mark.parametrize("kind", [COW, MOR])
QUIET = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}


def row(key, n=1, **more):
    return {"id": key, "n": n, "fare": n + 0.5, "r": {"u": n, "v": "v"}, "p": "x", **more}


def made(uri, kind=COW, rows=("a", "b")):
    data = [row(k) for k in rows]
    table = HudiTable.create(
        str(uri), data, record_keys="id", partition_fields="p", ordering_fields="n", table_type=kind,
        options={"hoodie.compact.inline": "false"} if kind == MOR else {},
    )  # fmt: skip
    table.insert(data)
    return table


def rows_of(table, **how):
    return sorted(table.read(meta_columns=False, **how).to_arrow().to_pylist(), key=lambda r: r["id"])


@KINDS
def test_readers_find_columns_by_id_and_files_stay(tmp_path, kind):
    table = made(tmp_path / "t", kind)
    files = table.inspect.files()
    before = table.history()["instant"][0].as_py()
    done = (
        table.alter().add("note", "string", after="id").rename("fare", "price").rename("r.u", "w").execute()
    )
    assert table.inspect.files().equals(files)
    assert done.schema.names == ["id", "note", "n", "price", "r", "p"] == table.schema.names
    assert rows_of(table)[0] == {
        "id": "a",
        "note": None,
        "n": 1,
        "price": 1.5,
        "r": {"w": 1, "v": "v"},
        "p": "x",
    }
    assert rows_of(table, as_of=before)[0] == row("a"), "time travel has the names of then"
    assert table.read(filter="price > 1").count() == 2
    assert table.get(["b"])["price"].to_pylist() == [1.5]
    assert table.read_incremental("000", columns=["price"]).to_arrow()["price"].to_pylist() == [1.5, 1.5]
    assert table.verify(deep=True) == []


@KINDS
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite_table", "delete"])
def test_writes_go_on_with_the_new_columns(tmp_path, kind, operation):
    table = made(tmp_path / "t", kind)
    table.alter().rename("fare", "price").rename("r.u", "w").execute()
    new = {"id": "b", "n": 2, "price": 9.0, "r": {"w": 9, "v": "v"}, "p": "x"}
    old = {"id": "a", "n": 1, "price": 1.5, "r": {"w": 1, "v": "v"}, "p": "x"}
    getattr(table, operation)([new])
    want = {
        "upsert": [old, new], "delete": [old], "insert_overwrite_table": [new],
        "insert": [old, {**new, "n": 1, "price": 1.5, "r": {"w": 1, "v": "v"}}, new],
    }  # fmt: skip
    want["bulk_insert"] = want["insert"]
    got = sorted(table.read(meta_columns=False).to_arrow().to_pylist(), key=lambda r: (r["id"], r["n"]))
    assert got == want[operation]
    assert {f.code for f in table.verify(deep=True)} <= {"duplicate-key"}


@KINDS
def test_a_dropped_columns_values_do_not_come_back_under_its_name(tmp_path, kind):
    table = made(tmp_path / "t", kind)
    table.alter().drop("fare").execute()
    table.alter().add("fare", "string").execute()
    assert {r["fare"] for r in rows_of(table)} == {None}
    table.upsert([{"id": "a", "n": 2, "r": {"u": 1, "v": "v"}, "p": "x", "fare": "text"}])
    assert [r["fare"] for r in rows_of(table)] == ["text", None]


def test_two_columns_trade_names(tmp_path):
    table = made(tmp_path / "t")
    table.alter().add("k", "double").execute()
    table.upsert([{**row("a", 2), "k": 7.0}])
    table.alter().rename("k", "tmp").rename("fare", "k").rename("tmp", "fare").execute()
    got = rows_of(table)
    assert [(r["k"], r["fare"]) for r in got] == [(2.5, 7.0), (1.5, None)]


def test_logs_of_every_version_are_merged_and_compacted(tmp_path):
    table = made(tmp_path / "t", MOR)
    table.upsert([row("a", 2)], options=QUIET)
    table.alter().rename("fare", "price").widen("r.u", "double").execute()
    new = {"id": "b", "n": 2, "price": 9.0, "r": {"u": 2.5, "v": "v"}, "p": "x"}
    table.upsert([new], options=QUIET)
    want = [{"id": "a", "n": 2, "price": 2.5, "r": {"u": 2, "v": "v"}, "p": "x"}, new]
    assert rows_of(table) == want
    assert table.compact().executed
    assert rows_of(table) == want == rows_of(table, query="read_optimized")
    assert table.verify(deep=True) == []


def test_a_history_outlives_the_archival_of_the_change(tmp_path):
    table = made(tmp_path / "t")
    altered = table.alter().rename("fare", "price").execute().instant
    keep = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    for n in range(2, 9):
        table.insert(
            [{"id": f"k{n}", "n": n, "price": 1.0, "r": {"u": n, "v": "v"}, "p": f"p{n}"}], options=keep
        )
    assert altered not in [i.time for i in table.timeline.instants]
    assert {r["price"] for r in rows_of(table)} == {1.5, 1.0}
    kept = [e.name for e in table.storage.list(".hoodie/.schema")]
    assert len(kept) <= 5, "files of archived commits are removed"


@KINDS
def test_an_archived_state_is_read_by_the_ids_of_its_columns(tmp_path, kind):
    """Of a time that only the archive knows files older than a rename have the values of its column, too."""
    table = made(tmp_path / "t", kind)
    keep = {
        **QUIET, "hoodie.clean.automatic": "false", "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
    }  # fmt: skip
    states = {table.history()["instant"][0].as_py(): rows_of(table)}
    for n, (old, new) in enumerate((("fare", "price"), ("price", "toll"), ("toll", "fare")), 2):
        altered = table.alter().rename(old, new).execute().instant
        states[altered] = rows_of(table)
        added = {"id": f"k{n}", "n": n, new: 1.0, "r": {"u": n, "v": "v"}, "p": f"p{n}"}
        upserted = table.upsert([added], options=keep).instant
        states[upserted] = rows_of(table)
    table.archive(options=keep)
    active = {i.time for i in HudiTable.open(table.uri).timeline.completed_writes()}
    assert len(states.keys() - active) > 1
    for instant, was in states.items():
        assert rows_of(table, as_of=instant) == was, instant


def test_a_restore_takes_the_change_back(tmp_path):
    table = made(tmp_path / "t")
    first = table.history()["instant"][0].as_py()
    table.alter().rename("fare", "price").execute()
    table.restore(first)
    assert rows_of(table)[0] == row("a")
    table.upsert([row("a", 3)])
    assert rows_of(table)[0] == row("a", 3)
    assert table.alter().rename("fare", "cost").execute().schema.names[2] == "cost"
    assert rows_of(table)[1]["cost"] == 1.5


@KINDS
@pytest.mark.parametrize("earlier", [False, True])
def test_what_was_undone_is_no_part_of_the_history_of_later_writes(tmp_path, kind, earlier):
    """Also where a savepointed commit alone is left: others after one may have been archived."""
    table = made(tmp_path / "t", kind)
    name = "fare"
    if earlier:
        table.alter().rename("fare", "price").execute()
        name = "price"
    kept = table.savepoint()
    want = rows_of(table)
    for _ in range(2):
        table.alter().rename(name, "toll").add("x", "long").execute()
        table.upsert(
            [{"id": "a", "n": 2, "toll": 1.0, "r": {"u": 2, "v": "v"}, "p": "x", "x": 1}], options=QUIET
        )
        table.restore(kept)
        assert rows_of(table) == want
        table.delete([{"id": "c", "p": "x"}], options=QUIET)
        table.upsert([{**want[1], name: 9.5}], options=QUIET)
        assert rows_of(table) == [want[0], {**want[1], name: 9.5}]
    assert table.verify(deep=True) == []


def test_logs_of_every_version_are_merged_with_one_another(tmp_path):
    table = made(tmp_path / "t", MOR)
    table.upsert([row("a", 2)], options=QUIET)
    table.alter().rename("fare", "price").widen("r.u", "double").add("x", "int").execute()
    table.upsert(
        [{"id": "b", "n": 2, "price": 9.0, "r": {"u": 2.5, "v": "v"}, "p": "x", "x": 1}], options=QUIET
    )
    want = rows_of(table)
    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"}).executed
    assert rows_of(table) == want
    table.alter().rename("price", "toll").drop("x").execute()
    want = [{("toll" if k == "price" else k): v for k, v in r.items() if k != "x"} for r in want]
    assert rows_of(table) == want
    table.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    assert rows_of(table) == want == rows_of(table, query="read_optimized")
    assert table.verify(deep=True) == []


def test_a_log_compaction_that_was_planned_before_a_write_brought_a_column_is_withdrawn(tmp_path):
    """Each write with inline log compaction would end in its error, and columns could not be changed any more."""
    table = made(tmp_path / "t", MOR)
    table.insert([{**row("z"), "p": "y"}], options=QUIET)
    table.alter().rename("fare", "price").execute()
    for n in (2, 3):
        table.upsert([{"id": "a", "n": n, "price": 1.0, "r": {"u": 2, "v": "v"}, "p": "x"}], options=QUIET)
    two = {"hoodie.log.compaction.blocks.threshold": "2"}
    plan = table.log_compact(mode="schedule", options=two).scheduled
    late = {"id": "z", "n": 2, "price": 1.0, "r": {"u": 2, "v": "v"}, "p": "y", "new": 1}
    table.upsert([late], options=QUIET)
    done = table.log_compact(options=two)
    assert plan not in done.executed
    assert any("withdrawn" in w for w in done.warnings)
    assert not table.timeline.pending("logcompaction")


def test_nothing_is_changed_by_a_dry_run_or_by_no_change(tmp_path):
    table = made(tmp_path / "t")
    before = table.timeline
    assert table.alter().drop("fare").execute(dry_run=True).schema.names == ["id", "n", "r", "p"]
    assert table.alter().execute().instant == ""
    assert table.timeline == before
    assert "rename" in repr(table.alter().rename("fare", "price"))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda b: b.drop("id"), SchemaError),
        (lambda b: b.rename("p", "q"), SchemaError),
        (lambda b: b.widen("n", "long").rename("n", "m"), SchemaError),
        (lambda b: b.add("x", "string").drop("nope"), MissingColumnError),
        (lambda b: b.add("x", pa.timestamp("us")), UnsupportedError),
    ],
)
def test_a_wrong_change_changes_nothing(tmp_path, change, error):
    table = made(tmp_path / "t")
    before = table.timeline
    with pytest.raises(error) as raised:
        change(table.alter()).execute()
    assert raised.value.table
    assert raised.value.remedy
    assert table.timeline == before


def test_a_pending_compaction_is_run_first(tmp_path):
    table = made(tmp_path / "t", MOR)
    table.upsert([row("a", 2)], options=QUIET)
    table.compact(mode="schedule")
    with pytest.raises(UnsupportedError, match="compaction is pending"):
        table.alter().drop("fare").execute()
    table.compact(mode="execute")
    table.alter().drop("fare").execute()


OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "InProcessLockProvider",
}


class Meanwhile:
    """Does something once, while the rows of a write are being validated."""

    def __init__(self, act):
        self.act = act

    def __call__(self, change):
        act, self.act = self.act, None
        if act is not None:
            act()


def test_a_write_beside_a_change_of_columns_is_a_conflict(tmp_path):
    """By names alone the old column would come back beside the renamed one."""
    table = HudiTable.open(made(tmp_path / "t").uri, options=OCC)
    alter = Meanwhile(lambda: table.alter().rename("fare", "price").execute())
    with pytest.raises(WriteConflictError, match="columns were changed"):
        table.upsert([row("c")], validators=[alter])
    assert table.schema.names == ["id", "n", "price", "r", "p"]
    assert [r["id"] for r in rows_of(table)] == ["a", "b"]


def test_of_two_overlapping_writes_that_add_one_column_the_older_is_a_conflict(tmp_path):
    """By ids they would be two columns, and the older one's values null."""
    table = HudiTable.open(made(tmp_path / "t").uri, options=OCC)
    table.alter().rename("fare", "price").execute()
    new = {"n": 1, "price": 1.0, "r": None, "note": "new"}
    newer = Meanwhile(lambda: table.upsert([{"id": "d", "p": "z", **new}]))
    with pytest.raises(WriteConflictError, match="note would be other columns by id"):
        table.upsert([{"id": "c", "p": "y", **new}], validators=[newer])
    table.upsert([{"id": "c", "p": "y", **new}])
    assert {r["id"]: r["note"] for r in rows_of(table)} == {"a": None, "b": None, "c": "new", "d": "new"}


def test_a_write_that_adds_nothing_goes_beside_a_newer_one_that_adds_columns(tmp_path):
    table = HudiTable.open(made(tmp_path / "t").uri, options=OCC)
    table.alter().rename("fare", "price").execute()
    old = {"n": 1, "price": 1.0, "r": None}
    newer = Meanwhile(lambda: table.upsert([{"id": "d", "p": "z", **old, "note": "new"}]))
    table.upsert([{"id": "c", "p": "y", **old}], validators=[newer])
    table.upsert([{"id": "e", "p": "z", **old, "note": "e", "more": 5}])
    got = {r["id"]: (r["note"], r["more"]) for r in rows_of(table)}
    assert got == {"a": (None, None), "b": (None, None), "c": (None, None), "d": ("new", None), "e": ("e", 5)}
    files = [table.storage.read(f".hoodie/.schema/{e.name}") for e in table.storage.list(".hoodie/.schema")]
    columns = [
        c for data in files for v in parse_versions(data) for c in v.columns if c.name in ("note", "more")
    ]
    assert len({(c.name, c.id) for c in columns}) == len({c.id for c in columns}) == 2


RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
}
FEWER = {"hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.max.num.buckets": "8"}


def ringed(uri):
    rows = [row("a"), row("b"), row("c")]
    table = HudiTable.create(
        str(uri),
        rows,
        record_keys="id",
        partition_fields="p",
        ordering_fields="n",
        table_type=MOR,
        options=RING,
    )
    table = HudiTable.open(table.uri, options={**OCC, **RING})
    table.upsert(rows)
    return table


def test_a_clustering_beside_a_change_of_columns_is_a_conflict(tmp_path, monkeypatch):
    """Its files have the old columns, and would be read as if they had the new ones."""
    table = ringed(tmp_path / "t")
    number, resize = alter.number_of, Meanwhile(lambda: table.resize_buckets(options=FEWER))

    def resized_first(instant):
        resize(instant)
        return number(instant)

    monkeypatch.setattr(alter, "number_of", resized_first)
    with pytest.raises(WriteConflictError, match="files were written with other columns"):
        table.alter().rename("fare", "price").execute()
    assert [r["fare"] for r in rows_of(table)] == [1.5, 1.5, 1.5]
    table.alter().rename("fare", "price").execute()
    assert [r["price"] for r in rows_of(table)] == [1.5, 1.5, 1.5]


@KINDS
def test_a_change_that_dies_anywhere_is_there_or_not(tmp_path, kind):
    for n in range(1, 100):
        table = made(tmp_path / f"t{n}", kind, rows=("a",))
        faults = Faults(Fault(CRASH, operation=CHANGES, nth=n))
        with faults.process():
            HudiTable.open(faults.wrap(table.storage)).alter().rename("fare", "price").execute()
        there = "price" in table.schema.names
        assert rows_of(table) == ([{**{k: v for k, v in row("a").items() if k != "fare"}, "price": 1.5}] if there
                                  else [row("a")])  # fmt: skip
        value = {"price" if there else "fare": 8.0}
        table.upsert([{**{k: v for k, v in row("b").items() if k != "fare"}, **value}])
        assert [next(iter(value.values())) in r.values() for r in rows_of(table)] == [False, True]
        assert table.verify() == []
        if not faults.dead:
            break
    assert n > 3


GLOBAL = {
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.datasource.write.payload.class": "PartialUpdateAvroPayload",
}


def test_records_that_move_take_their_values_along_by_id(tmp_path):
    table = HudiTable.create(
        str(tmp_path / "t"),
        [row("a")],
        record_keys="id",
        partition_fields="p",
        ordering_fields="n",
        options=GLOBAL,
    )
    table.insert([row("a")])
    table.alter().rename("fare", "price").add("fare", "string").execute()
    table.upsert([{"id": "a", "n": 2, "price": None, "r": None, "p": "y", "fare": "f"}])
    assert rows_of(table) == [
        {"id": "a", "n": 2, "price": 1.5, "r": {"u": 1, "v": "v"}, "fare": "f", "p": "y"}
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.add(5, "int"), "column must be a text, not int: 5"),
        (lambda a: a.add("note", 5), "a column's type must be a pyarrow type or its name, not int: 5"),
        (lambda a: a.rename("fare", None), "name must be a text, not NoneType"),
        (lambda a: a.drop(5), "column must be a text, not int: 5"),
        (lambda a: a.widen(None, "long"), "column must be a text, not NoneType"),
        (lambda a: a.move(["n"], first=True), "column must be a text, not list"),
    ],
)
def test_columns_and_types_of_another_class_are_told_at_the_call(tmp_path, change, message):
    table = made(tmp_path / "t")
    with pytest.raises(TypeError, match=message):
        change(table.alter())
