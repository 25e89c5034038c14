"""A writer that dies before or after any of its storage calls leaves one of two states, and no other.

The storage below stops the world at its n-th mutating call: that call happens or not, and every later one
raises, as for a process that is gone.  Then fresh objects read the table, write to it, and read again.
"""

import contextlib
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import StorageError
from hudi_format.storage import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.engine.local import LocalEngine
from hudi_timeline.write.operation import execute

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    # The writer that died runs in this process, which lives on: let its heartbeat expire at once.
    "hoodie.client.heartbeat.interval_in_ms": "1",
    "hoodie.client.heartbeat.tolerable.misses": "1",
}
MUTATING = ("create", "publish", "touch", "delete", "delete_dir", "make_dir", "open_output", "rename")


class Crash(BaseException):
    """The process is gone."""


class CrashingStorage(LocalStorage):
    def __init__(self, root, at, after):
        super().__init__(root)
        self.at, self.after, self.calls, self.dead = at, after, 0, False

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name not in MUTATING:
            return value

        def call(*args, **kwargs):
            if threading.current_thread().name.startswith("hudi-heartbeat"):
                # Beats come at any time: they die with the process, but are no place to cut.
                if self.dead:
                    raise StorageError("the process is gone")
                return value(*args, **kwargs)
            if self.dead:
                raise Crash(name)
            self.calls += 1
            if self.calls != self.at:
                return value(*args, **kwargs)
            self.dead = True
            if self.after:
                value(*args, **kwargs)
            raise Crash(name)

        return call


def data(n, start=0, v=0):
    ids = range(start, start + n)
    return pa.table({"id": [f"k{i}" for i in ids], "v": pa.array([v] * n, pa.int64()), "ts": [v] * n,
                     "p": [f"p{i % 2}" for i in ids]})  # fmt: skip


def content(path):
    table = HudiTable.open(path).read(columns=["id", "v"], meta_columns=False).to_arrow()
    return sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))


OPERATIONS = {
    "upsert": (lambda: data(6, 3, v=1), "append", [(f"k{i}", 1 if i >= 3 else 0) for i in range(9)]),
    "bulk_insert": (lambda: data(3, 10, v=1), "append",
                    [(f"k{i}", 0) for i in range(6)] + [(f"k{i}", 1) for i in range(10, 13)]),
    "delete": (lambda: data(4).select(["id", "p"]), "append", [("k4", 0), ("k5", 0)]),
    "insert_overwrite": (lambda: data(2, 20, v=2), "append", [("k20", 2), ("k21", 2)]),
    "insert": (lambda: data(2, 30, v=2), "overwrite", [("k30", 2), ("k31", 2)]),
}  # fmt: skip


@pytest.mark.req("RC-01", "TM-06", "NEW-12")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_crash_at_any_storage_call_leaves_the_old_or_the_new_state(tmp_path, operation, after):
    make, mode, new = OPERATIONS[operation]
    old, new = sorted((f"k{i}", 0) for i in range(6)), sorted(new)
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
    seen = set()
    for at in range(1, 400):
        path = str(tmp_path / f"t{at}")
        execute(LocalEngine(1), LocalStorage(path), data(6), OPTIONS)
        storage = CrashingStorage(path, at, after)
        with contextlib.suppress(Crash):
            execute(LocalEngine(1), storage, make(), options, mode=mode)
        if not storage.dead:
            break
        if mode == "append":
            state = content(path)
            assert state in (old, new), f"call {at}"
            seen.add(state == new)
        # The next writer mends what is left, whatever it is.
        execute(LocalEngine(1), LocalStorage(path), data(1, 90, v=9), OPTIONS)
        state = [r for r in content(path) if r[0] != "k90"]
        assert state in (old, new), f"call {at}, after the next write"
        if mode != "append":
            seen.add(state == new)
        timeline = HudiTable.open(path).timeline
        assert not timeline.pending_writes()
        assert not (tmp_path / f"t{at}" / ".hoodie_overwritten").exists()
    else:
        pytest.fail("the operation made more storage calls than were tried")
    assert seen == {False, True}, "both states must have been met"
