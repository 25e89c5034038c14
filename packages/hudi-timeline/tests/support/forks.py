"""Children of fork() write and read while their parent does: `python forks.py CASE FOLDER`.

Each case prints what its children found; a child that hangs is ended after a while, and said.
"""

import json
import os
import pickle
import signal
import sys
import threading
import time
import traceback

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, HudiError, UnsupportedError
from hudi_timeline import HudiTable
from hudi_timeline.concurrency.locks.file_system import FileSystemLock
from hudi_timeline.concurrency.locks.local import LocalLock
from hudi_timeline.concurrency.locks.storage_lock import StorageLock
from hudi_timeline.reading import stability
from hudi_timeline.timeline import instant_generator

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
OPTIONS = {"hoodie.write.lock.wait_time_ms": "20000"}
LONGEST_S = 60


def child(act) -> int:
    """Run a function in a forked child; its number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(LONGEST_S)
        act()
        code = 0
    except BaseException:  # noqa: BLE001 - shown, and the exit code says it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def made(uri: str, **given) -> HudiTable:
    table = HudiTable.create(uri, SCHEMA, name="t", record_keys=["id"], ordering_fields=["ts"], **given)
    table.upsert([row("0")])
    return table


def row(key: str) -> dict:
    return {"id": key, "v": 1, "ts": 1}


def writes(table: HudiTable, key: str) -> None:
    """A read and a write, again where another process writes just then."""
    table.read().to_arrow()
    until = time.monotonic() + LONGEST_S
    while True:
        try:
            table.upsert([row(key)], options=OPTIONS)
            return
        except ConcurrentWriterError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def while_locked(folder: str) -> None:
    """A thread of the parent holds the lock of the table, and those of the process, when it forks."""
    table = made(f"{folder}/t")
    held, go = threading.Event(), threading.Event()

    def holds() -> None:
        lock = LocalLock(table.storage)
        assert lock.try_acquire()
        with instant_generator._lock.threads, stability._lock.threads:
            held.set()
            go.wait()
        lock.release()

    thread = threading.Thread(target=holds)
    thread.start()
    held.wait()
    pid = child(lambda: writes(table, "child"))
    time.sleep(0.3)
    go.set()
    thread.join()
    assert ended(pid) == 0
    writes(table, "parent")
    assert keys(table) == ["0", "child", "parent"]


def while_reading(folder: str) -> None:
    """A thread of the parent plans a scan, and looks keys up, of objects that the child goes on with."""
    table = made(f"{folder}/t")
    table.upsert([row("1")], options=OPTIONS)
    scan = table.read()
    assert table.get(["0"]).num_rows == 1
    assert table._kept is not None
    index = table._kept[1]
    held, go = threading.Event(), threading.Event()

    def holds() -> None:
        with scan._lock.threads, index._lock.threads:
            held.set()
            go.wait()

    thread = threading.Thread(target=holds)
    thread.start()
    held.wait()

    def reads() -> None:
        assert sorted(scan.to_arrow().column("id").to_pylist()) == ["0", "1"]
        assert table.get(["1"]).num_rows == 1
        assert pickle.loads(pickle.dumps(scan)).to_arrow().num_rows == 2

    pid = child(reads)
    code = ended(pid)
    go.set()
    thread.join()
    assert code == 0
    assert scan.to_arrow().num_rows == 2


def in_mid_stream(folder: str) -> None:
    """A stream that was read in part has no thread in the child, which is told so, and reads on in the parent."""
    table = made(f"{folder}/t")
    table.upsert([row(str(n)) for n in range(20)], options=OPTIONS)
    streams = [table.read().to_batches(3) for _ in range(2)]
    got = [stream.read_next_batch().num_rows for stream in streams]

    def is_told() -> None:
        with pytest.raises(UnsupportedError, match="is a fork of"):
            streams[0].read_all()
        streams[1].close()
        assert table.read().to_batches(3).read_all().num_rows == 20

    assert ended(child(is_told)) == 0
    assert [n + stream.read_all().num_rows for n, stream in zip(got, streams, strict=True)] == [20, 20]


def in_mid_write(folder: str) -> None:
    """The parent forks at some moments of another thread's writes."""
    table = made(f"{folder}/t")
    for n in range(6):
        stop = threading.Event()

        def writing(n: int = n, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                writes(table, f"w{n}")

        thread = threading.Thread(target=writing)
        thread.start()
        time.sleep(0.01 + 0.013 * n)
        pid = child(lambda n=n: writes(table, f"c{n}"))
        code = ended(pid)
        stop.set()
        thread.join()
        assert code == 0, n
    assert {f"c{n}" for n in range(6)} <= set(keys(table))
    assert not [f for f in table.verify() if f.severity == "error"]


def that_unwinds(folder: str) -> None:
    """A child that is made in the middle of a write, and ends by an exception through it, ends nothing of it."""
    table = made(f"{folder}/t")
    parent = os.getpid()

    def validator(change) -> None:
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # unwinds the write in the child
        assert ended(pid) == 7

    try:
        table.upsert([row("1")], validators=[validator], options=OPTIONS)
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(7)
    assert os.getpid() == parent
    assert keys(table) == ["0", "1"]
    assert not [f for f in table.verify() if f.severity == "error"]


def locks_of_others(folder: str) -> None:
    """Handles on locks, which a child inherits, are not the child's."""
    table = made(f"{folder}/t")
    lock = FileSystemLock(table.storage)
    assert lock.try_acquire()

    def gives_back() -> None:
        lock.release()
        assert not FileSystemLock(table.storage).try_acquire()

    assert ended(child(gives_back)) == 0
    lock.verify()
    lock.release()
    local = LocalLock(table.storage)
    assert local.try_acquire()

    def refused() -> None:
        other = os.open(folder, os.O_RDONLY)  # may get the number of the descriptor that was closed
        local.release()
        os.fstat(other)
        again = LocalLock(table.storage)
        assert not again.try_acquire()

    assert ended(child(refused)) == 0
    local.verify()
    local.release()


def on_s3(uri: str) -> None:
    """fsspec's loop and connections are of the parent; so is the lease."""
    table = made(uri, storage_options=json.loads(os.environ["HUDI_STORE"]))
    lock = StorageLock(table.storage)
    assert lock.try_acquire()
    assert ended(child(lock.release)) == 0
    lock.verify()
    lock.release()
    assert ended(child(lambda: writes(table, "child"))) == 0
    writes(table, "parent")
    assert keys(table) == ["0", "child", "parent"]


def keys(table: HudiTable) -> list[str]:
    return sorted(table.read(columns=["id"]).to_arrow().column("id").to_pylist())


CASES = {
    f.__name__: f
    for f in (while_locked, while_reading, in_mid_stream, in_mid_write, that_unwinds, locks_of_others, on_s3)
}

if __name__ == "__main__":
    try:
        CASES[sys.argv[1]](sys.argv[2])
    except HudiError as e:
        sys.exit(str(e))
    print("done", sys.argv[1])
