"""A writer that dies at any storage call of a checked write: bad rows are kept once, a refused write leaves nothing.

The table and its quarantine share one count of storage calls; at the n-th of them the process is gone.
"""

import contextlib
import threading

import pyarrow as pa
import pytest

from hudi_format.errors import StorageError
from hudi_format.storage import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.engine.local import LocalEngine
from hudi_timeline.validate import quarantine
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
# Enough to go past the last call of both commits.
MOST_CALLS = 80


class Crash(BaseException):
    """The process is gone."""


class Process:
    """Dies at its n-th mutating call, before or after it."""

    def __init__(self, at, after):
        self.at, self.after, self.calls, self.dead = at, after, 0, False

    def call(self, function, name):
        def run(*args, **kwargs):
            if threading.current_thread().name.startswith("hudi-heartbeat"):
                if self.dead:
                    raise StorageError("the process is gone")
                return function(*args, **kwargs)
            if self.dead:
                raise Crash(name)
            self.calls += 1
            if self.calls != self.at:
                return function(*args, **kwargs)
            self.dead = True
            if self.after:
                function(*args, **kwargs)
            raise Crash(name)

        return run


class ProcessStorage(LocalStorage):
    def __init__(self, root, process):
        super().__init__(root)
        self.process = process

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        return super().__getattribute__("process").call(value, name) if name in MUTATING else value


def data(*rows):
    ids, values = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.string()), "v": pa.array(values, pa.int64()),
                     "ts": pa.array([1] * len(ids), pa.int64()), "p": [f"p{v % 2}" for v in values]})  # fmt: skip


FIRST = data(("a", 1), ("b", 2))
CHANGE = data(("a", 3), ("bad", -1), ("c", 5), (None, 7))


def ids(path, column="id"):
    found = HudiTable.open(path).read(columns=[column]).to_arrow().column(0).to_pylist()
    return sorted(found, key=str)


def write(storage, rows, **options):
    return execute(LocalEngine(1), storage, rows, {**OPTIONS, **options})


@pytest.mark.req("NEW-33")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_bad_rows_are_kept_once_wherever_the_writer_dies(tmp_path, monkeypatch, after):
    reached = False
    for at in range(1, MOST_CALLS):
        path, aside = str(tmp_path / f"t{at}"), str(tmp_path / f"q{at}")
        rules = {"hudi.write.rules": "v >= 0", "hudi.quarantine.path": aside}
        write(LocalStorage(path), FIRST)
        process = Process(at, after)
        with monkeypatch.context() as patch:
            patch.setattr(quarantine, "open_beside", lambda storage, uri, p=process: ProcessStorage(uri, p))
            with contextlib.suppress(Crash):
                write(ProcessStorage(path, process), CHANGE, **rules)
        done = "c" in ids(path)
        if done:  # the caller was not told; another write comes
            write(LocalStorage(path), data(("d", 9)), **rules)
        else:  # and tries again
            write(LocalStorage(path), CHANGE, **rules)
        assert ids(path) == ["a", "b", "c"] + ["d"] * done
        assert ids(aside) == [None, "bad"], f"call {at}"
        if not process.dead:
            reached = True
            break
    assert reached, "there are more calls than were tried"


@pytest.mark.req("NEW-33", "MB-06")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_refused_write_that_dies_while_it_is_taken_back_leaves_nothing(tmp_path, after):
    reached = False
    for at in range(1, MOST_CALLS):
        path = str(tmp_path / f"t{at}")
        write(LocalStorage(path), FIRST)
        process = Process(at, after)
        with contextlib.suppress(Crash, Exception):
            execute(
                LocalEngine(1), ProcessStorage(path, process), data(("a", 3), ("c", 5)), OPTIONS,
                validators=[lambda change: False],
            )  # fmt: skip
        assert ids(path) == ["a", "b"]
        write(LocalStorage(path), data(("d", 8)))
        assert ids(path) == ["a", "b", "d"]
        files = list((tmp_path / f"t{at}").rglob("*.parquet"))
        assert len(files) == 3, "no data file of the refused write is left"
        assert not list((tmp_path / f"t{at}" / ".hoodie" / ".temp").glob("*"))
        if not process.dead:
            reached = True
            break
    assert reached, "there are more calls than were tried"
