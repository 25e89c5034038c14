"""An index of one's own: keys are found by it, and what it says counts only as far as the timeline agrees."""

import random
import sys

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from hudi_format.storage.open import open_storage
from hudi_index import CustomIndex
from hudi_index.custom_index.index_class import StoredIndex, StoredKeys, StoreLocator
from hudi_index.custom_index.sqlite_index import SqliteStore
from hudi_index.lookup import CUSTOM, GLOBAL_SIMPLE
from hudi_index.record_index import Located
from hudi_timeline import HudiTable, table_config
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

TYPE = "hoodie.datasource.write.table.type"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
HERE = "index_of_tests"
MOVES = {"hoodie.record.index.update.partition.path": "true"}


def rows(*values):
    names = ("id", "p", "ts", "v")
    kinds = (pa.string(), pa.string(), pa.int64(), pa.string())
    columns = list(zip(*values, strict=True)) if values else [[]] * 4
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def write(storage, data, operation="upsert", **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(2), storage, data, options)


def content(storage):
    found = HudiTable._of(storage).read(["id", "_hoodie_partition_path", "v"]).to_arrow().to_pylist()
    return sorted((r["id"], r["_hoodie_partition_path"], r["v"]) for r in found)


def entries(store):
    """What the store says of every key, as key and partition."""
    found = store.find(pa.array([f"k{n}" for n in range(60)]))
    return sorted(
        (key, found.groups[g][0]) for key, g in zip(found.keys.to_pylist(), found.group.tolist(), strict=True)
    )


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


@pytest.fixture
def sqlite(tmp_path):
    return {"hoodie.index.class": "sqlite", "hudi.index.argument.path": str(tmp_path / "index.sqlite")}


@pytest.fixture
def store(storage, sqlite):
    return SqliteStore(sqlite["hudi.index.argument.path"], storage.uri)


FIRST = rows(("k1", "p1", 1, "a"), ("k2", "p2", 1, "a"), ("k3", "p3", 1, "a"))


@pytest.mark.req("IX-01")
@pytest.mark.parametrize("table_type", TYPES)
def test_keys_are_found_by_the_index_alone(storage, sqlite, store, table_type):
    write(storage, FIRST, **sqlite, **{TYPE: table_type})
    second = write(storage, rows(("k1", "p1", 2, "b"), ("n", "p1", 2, "b"), ("k2", "p9", 2, "b")), **sqlite)
    assert (second.lookup.index, second.lookup.opened) == (CUSTOM, 0)
    (warning,) = second.warnings  # of k2, which stays in p2
    assert warning.startswith("1 row has another p than")
    assert (second.updated, second.inserted) == (2, 1)
    assert content(storage) == [("k1", "p1", "b"), ("k2", "p2", "b"), ("k3", "p3", "a"), ("n", "p1", "b")]
    write(storage, rows(("k2", "p9", 3, "c")), **sqlite, **MOVES)
    assert write(storage, rows(("k1", "", 4, "")), "delete", **sqlite).deleted == 1
    assert content(storage) == [("k2", "p9", "c"), ("k3", "p3", "a"), ("n", "p1", "b")]
    write(storage, rows(("k1", "p7", 5, "d")), **sqlite)  # deleted, so new
    write(storage, rows(("k9", "p1", 6, "d")), **sqlite)
    assert content(storage)[0] == ("k1", "p7", "d")
    assert entries(store)[:3] == [("k1", "p7"), ("k2", "p9"), ("k3", "p3")]


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.sampled(2)
def test_the_index_equals_the_data_through_random_changes_and_services(storage, sqlite, store, table_type):
    chance = random.Random(7)
    expected: dict[str, tuple[str, str]] = {}
    sqlite = {**sqlite, TYPE: table_type}
    for step in range(10):
        keys = [f"k{n}" for n in chance.sample(range(50), 12)]
        if step % 4 == 3:
            write(storage, rows(*((k, "", step, "") for k in keys)), "delete", **sqlite)
            for key in keys:
                expected.pop(key, None)
        else:
            operation = sqlite if step % 5 else {}  # one that does not name it looks into the files
            data = [(k, f"p{chance.randrange(4)}", step, str(step)) for k in keys]
            write(storage, rows(*data), **{TYPE: table_type, **operation}, **MOVES)
            expected.update({k: (p, v) for k, p, _, v in data})
        if step == 6 and table_type == "MERGE_ON_READ":
            HudiTable._of(storage).compact()
        if step == 8:
            write(storage, rows(("k59", "p1", step, "o")), "insert_overwrite")
            expected = {k: e for k, e in expected.items() if e[0] != "p1"} | {"k59": ("p1", "o")}
        assert content(storage) == sorted((k, p, v) for k, (p, v) in expected.items())
        write(storage, rows((f"k{50 + step % 3}", "p0", step, "")), **sqlite)
        expected[f"k{50 + step % 3}"] = ("p0", "")
    write(storage, rows(("other", "p0", 99, "")), **sqlite)
    assert entries(store) == sorted((k, p) for k, (p, _) in expected.items())


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_what_was_undone_is_not_believed(storage, sqlite, table_type, undo):
    write(storage, FIRST, **sqlite, **{TYPE: table_type})
    table = HudiTable._of(storage)
    saved = table.savepoint() if undo == "restore" else ""
    gone = write(storage, rows(("k1", "", 2, ""), ("k2", "", 2, "")), "delete", **sqlite)
    made = write(storage, rows(("k1", "p8", 3, "x"), ("k7", "p8", 3, "x")), **sqlite)
    # The store knows the deletes and the new places of keys; then neither is there.
    write(storage, rows(("k8", "p8", 3, "x")), **sqlite)
    table = HudiTable._of(storage)
    if undo == "restore":
        table.restore(saved)
    else:
        for instant in [table.timeline.instants[-1].time, made.instant, gone.instant]:
            HudiTable._of(storage).rollback(instant)
    result = write(storage, rows(("k1", "p5", 9, "z"), ("k2", "p5", 9, "z"), ("k7", "p5", 9, "z")), **sqlite)
    assert (result.updated, result.inserted) == (2, 1)
    assert content(storage) == [("k1", "p1", "z"), ("k2", "p2", "z"), ("k3", "p3", "a"), ("k7", "p5", "z")]


def test_a_failed_write_leaves_nothing_in_the_index(storage, sqlite, store):
    write(storage, FIRST, **sqlite)
    write(storage, rows(("k4", "p1", 1, "a")), **sqlite)
    before = store.note(), entries(store)

    class Stop(Exception):
        pass

    def refuse(*_):
        raise Stop

    options = {**OPTIONS, "hoodie.datasource.write.operation": "upsert", **sqlite}
    with pytest.raises(Exception):  # noqa: B017 - whichever way the validator's error comes out
        execute(LocalEngine(2), storage, rows(("k5", "p1", 1, "a")), options, validators=[refuse])
    assert "k5" not in dict(entries(store))
    assert before[1] == [e for e in entries(store) if e[0] != "k4"] or dict(entries(store)).get("k4") == "p1"
    assert write(storage, rows(("k5", "p2", 2, "b")), **sqlite).inserted == 1


def test_an_index_of_another_table_or_of_garbage_is_refused(storage, sqlite, tmp_path):
    write(storage, FIRST, **sqlite)
    write(storage, FIRST, **sqlite)
    other = open_storage(str(tmp_path / "other"))
    write(other, FIRST)
    with pytest.raises(ConflictingOptionError, match="belongs to"):
        write(other, FIRST, **sqlite)
    path = tmp_path / "garbage"
    path.write_bytes(b"no database at all, " * 100)
    broken = {**sqlite, "hudi.index.argument.path": str(path)}
    result = write(storage, rows(("k1", "p9", 2, "b")), **broken)
    assert (result.updated, result.lookup.index) == (1, GLOBAL_SIMPLE)
    assert "cannot be read" in result.warnings[0]
    nowhere = {**sqlite, "hudi.index.argument.path": str(tmp_path / "no" / "folder")}
    with pytest.raises(StorageError):
        write(storage, rows(("k1", "p9", 2, "b")), **nowhere)


def test_a_table_that_was_made_anew_is_not_taken_for_the_earlier_one(storage, sqlite, store):
    seeded = {"hudi.write.seed": "1", "hudi.write.instant": "20240101000000000"}
    write(storage, FIRST, **sqlite, **seeded)
    write(storage, rows(("k4", "p1", 1, "a")), **sqlite)
    for entry in storage.list(""):  # mode "overwrite" would take a later instant
        storage.delete_dir(entry.name)
    write(storage, rows(("k9", "p9", 1, "a")), **sqlite, **seeded)
    result = write(storage, rows(("k1", "p1", 1, "a"), ("k9", "p1", 1, "b")), **sqlite)
    assert (result.updated, result.inserted) == (1, 1)
    assert entries(store) == [("k9", "p9")]


# --- selection and memory --------------------------------------------------------------------------------


class Nowhere(CustomIndex):
    """An index that keeps nothing, and whose answers are wrong: of another table."""

    def __init__(self, arguments):
        if arguments.get("fails"):
            raise KeyError("no such argument")

    count = 1

    def locator(self, table):
        return self

    def shards(self, keys):
        return np.zeros(len(keys), dtype=np.int64)

    def locate(self, keys):
        return Located(pa.array(["k1"]), np.zeros(1, dtype=np.int64), (("p1", "of-another-table"),))


@pytest.mark.req("IX-01")
def test_a_class_is_named_by_module_or_by_the_entry_point_of_a_package(storage, tmp_path, monkeypatch):
    write(storage, FIRST)
    named = {"hoodie.index.class": f"{HERE}:Nowhere"}
    result = write(storage, rows(("k1", "p1", 2, "b")), **named)
    assert result.updated == 1  # by the files, as the table has no such file group
    assert "which the table has not" in result.warnings[-1]
    info = tmp_path / "site" / "nowhere-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nowhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hudi_index.indexes]\nnowhere = {HERE}:Nowhere\n")
    monkeypatch.syspath_prepend(str(info.parent))
    assert write(storage, rows(("k1", "p1", 3, "c")), **{"hoodie.index.class": "nowhere"}).updated == 1
    assert table_config.load(storage).properties["hudi.index.class"] == "nowhere"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"hoodie.index.class": "no_such_module:Index"}, InvalidOptionError, "No module"),
        ({"hoodie.index.class": "nobody"}, InvalidOptionError, "sqlite"),
        ({"hoodie.index.class": "os:path"}, InvalidOptionError, "not a hudi_index.CustomIndex"),
        ({"hoodie.index.class": "com.acme.Index"}, UnsupportedError, "sqlite"),
        ({"hoodie.index.type": "HBASE"}, UnsupportedError, "hoodie.index.class=sqlite"),
        (
            {"hoodie.index.class": "org.apache.hudi.index.hbase.SparkHoodieHBaseIndex"},
            UnsupportedError,
            "as HBase is",
        ),
        (
            {"hoodie.index.class": "sqlite", "hoodie.index.type": "BLOOM"},
            ConflictingOptionError,
            "one of them",
        ),
        ({"hoodie.index.class": "sqlite"}, InvalidOptionError, "argument.path"),
        (
            {"hoodie.index.class": "sqlite", "hudi.index.argument.file": "x"},
            InvalidOptionError,
            "takes no file",
        ),
        (
            {"hoodie.index.class": f"{HERE}:Nowhere", "hudi.index.argument.fails": "x"},
            OptionError,
            "no such argument",
        ),
    ],
)
def test_what_cannot_be_an_index_is_refused_before_anything_is_written(storage, options, error, text):
    write(storage, FIRST)
    before = [i.time for i in HudiTable._of(storage).timeline.instants]
    with pytest.raises(error) as caught:
        write(storage, FIRST, **options)
    assert text in str(caught.value)
    assert [i.time for i in HudiTable._of(storage).timeline.instants] == before


@pytest.mark.req("NEW-14")
def test_the_table_remembers_its_index_and_never_names_code(storage, sqlite, monkeypatch):
    write(storage, FIRST, **sqlite)
    properties = table_config.load(storage).properties
    assert (properties["hudi.index.type"], properties["hudi.index.class"]) == ("CUSTOM", "sqlite")
    table_config.update(storage, {"hudi.index.class": "evil:Index", "hoodie.index.class": "evil:Index"})
    monkeypatch.setattr(
        "hudi_timeline.custom_index.indexed_table.load_index", lambda name: pytest.fail(f"loaded {name}")
    )
    result = write(storage, rows(("k1", "p9", 2, "b")))
    assert (result.updated, result.lookup.index) == (1, GLOBAL_SIMPLE)
    assert "hoodie.index.class=evil:Index" in result.warnings[0]
    assert table_config.load(storage).properties["hudi.index.type"] == "CUSTOM"
    with pytest.raises(ConflictingOptionError, match="unique over all partitions"):
        write(storage, rows(("k1", "p9", 2, "b")), **{"hoodie.index.type": "SIMPLE"})


class Counted(StoredIndex):
    """A store in this process, which loses the race for its first change."""

    def __init__(self, arguments):
        self._told = ["", StoredKeys(pa.array([], pa.string()), np.empty(0, int), (), np.empty(0, int), ())]

    races = 1

    def store(self, table):
        return self

    def note(self):
        return self._told[0]

    def change(self, change):
        if self.races:
            self.races -= 1
            return False
        keys = len(change.keys)
        instant = np.zeros(keys, dtype=np.int64)
        self._told[:] = [
            change.note,
            StoredKeys(change.keys, change.group, change.groups, instant, (change.instant,)),
        ]
        return True

    def find(self, keys):
        return self._told[1]


def test_a_lost_race_for_the_store_is_tried_again_from_the_table(storage):
    write(storage, FIRST)
    result = write(storage, rows(("k1", "p1", 2, "b")), **{"hoodie.index.class": f"{HERE}:Counted"})
    assert (result.updated, result.lookup.opened, result.lookup.doubted) == (1, 0, 0)


def test_a_write_beside_a_rebuild_finds_all_keys(storage, sqlite, monkeypatch):
    write(storage, FIRST, **sqlite)
    write(storage, FIRST, **sqlite)
    locate, change = StoreLocator.locate, SqliteStore.change

    def while_it_is_rebuilt(locator, keys):
        monkeypatch.setattr(StoreLocator, "locate", locate)
        told = []

        def late(store, made):  # the files were read, which may take long
            told.append(locate(locator, keys))
            return change(store, made)

        monkeypatch.setattr(SqliteStore, "change", late)
        HudiTable._of(storage).rebuild_index(options=sqlite)
        monkeypatch.setattr(SqliteStore, "change", change)
        return told[0]

    monkeypatch.setattr(StoreLocator, "locate", while_it_is_rebuilt)
    result = write(storage, rows(("k1", "p9", 2, "b"), ("k2", "p9", 2, "b")), **sqlite)
    assert (result.updated, result.inserted) == (2, 0)
    assert content(storage) == [("k1", "p1", "b"), ("k2", "p2", "b"), ("k3", "p3", "a")]
