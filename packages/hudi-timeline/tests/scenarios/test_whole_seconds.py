"""Reads in the order of completion on a store that tells whole seconds: a second counts once it is over."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.reading.stability import settled
from hudi_timeline.testing import MemoryStorage
from hudi_timeline.testing.memory_storage import _MemoryFiles

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.index.bloom.num_entries": "10",
}
CDC = {"hoodie.table.cdc.enabled": "true"}
ONE, NEXT = 1_700_000_000_000, 1_700_000_001_000


class Store:
    """A table on a store whose files are of `second`, and what others do while a reader waits for its end."""

    def __init__(self, monkeypatch):
        self.second, self.meanwhile, self.waited = ONE, [], 0
        put = _MemoryFiles.put
        monkeypatch.setattr(
            _MemoryFiles,
            "put",
            lambda files, path, data, at, *, only: put(files, path, data, self.second, only=only),
        )
        monkeypatch.setitem(settled.__kwdefaults__, "now", lambda: self.second / 1000 + 0.5)
        monkeypatch.setitem(settled.__kwdefaults__, "pause", self._pause)
        self.storage = MemoryStorage()
        HudiTable.create(self.storage, SCHEMA, record_keys="id", name="t", options=CDC)

    def _pause(self, seconds):
        self.waited += 1
        for act in self.meanwhile:
            act()
        self.meanwhile.clear()

    @property
    def table(self):
        return HudiTable.open(self.storage)

    def insert(self, key, second=None):
        self.second = second or self.second
        self.table.insert(pa.table({"id": [key], "v": [1]}, SCHEMA), options=OCC)

    def later(self, *inserts):
        self.meanwhile += [lambda given=given: self.insert(*given) for given in inserts]


@pytest.fixture
def store(monkeypatch):
    return Store(monkeypatch)


def rows(store, checkpoint):
    scan = store.table.read_incremental(checkpoint, columns=["id"], order="completion")
    return scan.to_arrow()["id"].to_pylist(), scan.checkpoint


def changes(store, checkpoint):
    scan = store.table.read_changes(checkpoint, order="completion", images="struct")
    return [c["after"]["id"] for c in scan.to_arrow().to_pylist()], scan.checkpoint


@pytest.mark.req("NEW-21", "TP-04")
@pytest.mark.parametrize("read", [rows, changes])
def test_a_commit_of_the_second_that_was_read_arrives_once(store, read):
    store.insert("a")
    store.later(("b",), ("c", NEXT))
    first, checkpoint = read(store, "000")
    assert sorted(first) == ["a", "b"]
    assert read(store, checkpoint)[0] == ["c"]


@pytest.mark.req("NEW-21")
def test_an_offset_of_a_stream_leaves_out_the_second_that_goes_on(store):
    options = {"hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME"}
    store.insert("a")
    store.later(("b",), ("c", NEXT))
    offset = store.table.latest_offset(options=options)
    store.insert("d")
    assert sorted(rows(store, offset)[0]) == ["c", "d"]


@pytest.mark.req("NEW-21")
def test_a_checkpoint_becomes_one_of_completion_where_no_commit_of_its_second_is_missed(store):
    store.insert("a")
    store.later(("b",), ("c", NEXT))
    a = store.table.timeline.completed_writes()[0].time
    found = store.table.convert_checkpoint(a, order="stable", to="completion")
    assert (found.checkpoint, found.repeated) == ("000", (a,))
    assert sorted(rows(store, found.checkpoint)[0]) == ["a", "b", "c"]


@pytest.mark.req("NEW-21")
def test_nobody_waits_for_a_second_that_is_over(store, monkeypatch):
    store.insert("a")
    monkeypatch.setitem(settled.__kwdefaults__, "now", lambda: ONE / 1000 + 10)
    assert rows(store, "000")[0] == ["a"]
    assert store.waited == 0


def test_nobody_waits_for_a_range_that_ends_before_or_in_the_order_of_instants(store):
    store.insert("a")
    store.insert("b", NEXT)
    scan = store.table.read_incremental("000", "2023-11-14", columns=["id"], order="completion")
    assert scan.to_arrow().num_rows == 0
    assert store.table.read_incremental("000", columns=["id"]).to_arrow().num_rows == 2
    assert store.waited == 0
