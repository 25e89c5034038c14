"""A store of keys in an SQLite file: atomic changes, whose file it is, and keys of any text."""

import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError, CorruptFileError, StorageError
from hudi_format.model import VisibleInstants
from hudi_index.custom_index.index_class import StoreChange, StoreLocator
from hudi_index.custom_index.sqlite_index import SqliteStore

GROUPS = (("p", "f0"), ("", "f1"), ("p'\x00", "f2"))


@pytest.fixture
def store(tmp_path):
    made = SqliteStore(str(tmp_path / "index.sqlite"), "file:///t")
    made.open()
    return made


def change(after, note, keys, group, *, groups=GROUPS, renew=False, instant="1"):
    texts = pa.array(keys, pa.string())
    return StoreChange(after, note, renew, tuple(groups), texts, np.array(group, dtype=np.int64), instant)


def content(store, keys):
    found = store.find(pa.array(keys, pa.string()))
    return {
        (key, found.groups[g], found.instants[i])
        for key, g, i in zip(found.keys.to_pylist(), found.group, found.instant, strict=True)
    }


STRANGE = ["", "k", "K", "k ", "k\x00", "k\x00x", "ä", "\U0001f600", "' OR 1=1 --", "x" * 5000]


def test_entries_are_those_of_the_last_change_of_each_file_group(store):
    assert store.change(change("", "a", STRANGE, [n % 3 for n in range(10)]))
    assert content(store, STRANGE) == {(k, GROUPS[n % 3], "1") for n, k in enumerate(STRANGE)}
    # One key moves, one goes, one comes, one is in two file groups; what stays keeps its instant.
    assert store.change(
        change("a", "b", ["", "ä", "new", "k", "new"], [0, 0, 0, 1, 1], groups=GROUPS[:2], instant="2")
    )
    kept = {("k", GROUPS[1], "1"), ("", GROUPS[0], "1"), ("ä", GROUPS[0], "1")}
    left = {e for e in {(k, GROUPS[n % 3], "1") for n, k in enumerate(STRANGE)} if e[1] == GROUPS[2]}
    fresh = {("new", GROUPS[0], "2"), ("new", GROUPS[1], "2")}
    assert content(store, [*STRANGE, "new", "absent"]) == kept | left | fresh
    assert store.change(change("b", "c", ["k"], [0], renew=True, instant="3"))
    assert content(store, [*STRANGE, "new"]) == {("k", GROUPS[0], "3")}
    assert content(store, []) == set()


def test_of_changes_after_one_note_one_counts(store):
    made = [change("", f"n{n}", [f"k{n}"], [0]) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(pickle.loads(pickle.dumps(store)).change, made))
    assert done.count(True) == 1
    assert store.note() == f"n{done.index(True)}"
    assert {e[0] for e in content(store, [f"k{n}" for n in range(8)])} == {f"k{done.index(True)}"}


@pytest.mark.parametrize("step", range(1, 30))
def test_a_change_that_dies_leaves_the_state_before(store, monkeypatch, step):
    store.change(change("", "a", ["k1", "k2"], [0, 1]))
    before = content(store, ["k1", "k2", "k3"])
    calls = 0

    class Dying(sqlite3.Connection):
        def _counted(self):
            nonlocal calls
            calls += 1
            if calls == step:
                raise MemoryError

        def execute(self, *arguments):
            self._counted()
            return super().execute(*arguments)

        def executemany(self, *arguments):
            self._counted()
            return super().executemany(*arguments)

        def commit(self):
            self._counted()
            super().commit()

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **more: connect(*a, factory=Dying, **more))
        try:
            done = store.change(change("a", "b", ["k3"], [1], instant="2"))
        except MemoryError:
            done = False
    expected = ({("k3", GROUPS[1], "2")}, "b") if done else (before, "a")
    assert (content(store, ["k1", "k2", "k3"]), store.note()) == expected
    assert done == (calls < step)


def test_a_file_of_another_table_and_no_database_are_told_apart(store, tmp_path):
    with pytest.raises(ConflictingOptionError, match="belongs to"):
        SqliteStore(store.path, "file:///other").open()
    (tmp_path / "text").write_text("no database" * 100)
    with pytest.raises(CorruptFileError):
        SqliteStore(str(tmp_path / "text"), "t").open()
    with pytest.raises(StorageError):
        SqliteStore(str(tmp_path / "none" / "x"), "t").open()
    with sqlite3.connect(store.path) as db:
        db.execute("INSERT INTO places VALUES ('lost', 99, 99)")
    with pytest.raises(CorruptFileError, match="does not know"):
        store.find(pa.array(["lost"]))


def test_entries_of_unknown_commits_are_doubted(store):
    store.change(change("", "a", ["k1", "k2"], [0, 1], instant="5"))
    store.change(change("a", "b", ["k3"], [2], groups=GROUPS[2:] * 3, instant="7"))
    asked = pa.chunked_array([["k1", "absent"], ["k3", "k3"]]).dictionary_encode()
    told = StoreLocator(store, VisibleInstants(frozenset({"5"}))).locate(asked)
    assert (told.keys.to_pylist(), told.doubted.to_pylist()) == (["k1"], ["k3"])
    assert "commit 7" in told.why
    archived = StoreLocator(store, VisibleInstants(frozenset(), "8")).locate(asked)
    assert (sorted(archived.keys.to_pylist()), archived.doubted) == (["k1", "k3"], None)
