"""Merges in a process of their own: `full`, `wait` and `peak` read a slice, `make` writes one.

`peak` prints the most anonymous memory that the merge took above what the process had before.  It is not the greatest
size that the system notes for a process: that begins with the size of the process which started this one.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from slices import SCHEMA, write_slice

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import SpillError
from hudi_format.file_slice.reader import LogRecords, SliceMerge, read_file_slice
from hudi_format.merge.payloads import PAYLOADS
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.storage.open import open_storage

RULE = PAYLOADS["DefaultHoodieRecordPayload"]


def slice_in(storage):
    base, logs = None, []
    for entry in sorted(storage.list(""), key=lambda e: e.name):
        if entry.name.endswith(".parquet"):
            base = BaseFile("", entry.name, "f-0", "1", "0-1-1", entry.size)
        elif ".log." in entry.name:
            version = int(entry.name.split(".log.")[1].split("_")[0])
            logs.append(LogFile("", entry.name, "f-0", "1", version, "0-2-2", entry.size))
    return FileSlice("", "f-0", "1", base, tuple(logs))


def rows(first, count, width, instant):
    """Rows with keys from `first` on, each with `width` bytes of text that do not compress to nothing."""
    rng = np.random.default_rng(first)
    letters = rng.integers(97, 123, count * width, dtype=np.uint8)
    offsets = pa.py_buffer(np.arange(0, (count + 1) * width, width, dtype=np.int32).tobytes())
    text = pa.StringArray.from_buffers(count, offsets, pa.py_buffer(letters.tobytes()))
    columns = {n: pa.nulls(count, SCHEMA.field(n).type) for n in SCHEMA.names}
    columns |= {
        "_hoodie_commit_time": pa.repeat(instant, count),
        "_hoodie_record_key": pa.array([f"key-{n:09d}" for n in range(first, first + count)]),
        "ts": pa.array(np.arange(count)),
        "text": text,
    }
    return pa.table(columns, schema=SCHEMA)


def anonymous():
    """Bytes of memory without pages of mapped files, which the system may take back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def peak_of(act):
    """(the most bytes that `act` takes above what there was before, what it returns)."""
    pa.set_memory_pool(pa.system_memory_pool())  # gives back what is freed
    pa.set_cpu_count(2)  # whatever the machine has: what threads hold counts too
    before = peak = anonymous()
    over = threading.Event()

    def watch():
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = act()
    finally:
        over.set()
        watcher.join()
    return peak - before, result


def main() -> None:
    what, folder, *more = sys.argv[1:]
    storage = open_storage(folder)
    if what == "make":
        base = rows(0, 100_000, 100, "1")
        logs = [rows(n * 10_000, 10_000, 1000, "100") for n in (*range(5, 20), *range(8))]
        write_slice(storage, base, logs, row_group_rows=20_000, files=3)
        return
    file_slice = slice_in(storage)
    if what == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        merge = SliceMerge(RULE, "ts", limit=MemoryLimit(1 << 20, more[0], compress=False))
        try:
            list(read_file_slice(storage, file_slice, merge, SCHEMA))
        except SpillError as e:
            print(e)
    elif what == "wait":
        merge = SliceMerge(RULE, "ts", limit=MemoryLimit(4 << 20, more[0]))
        records = LogRecords(storage, file_slice.log_files, merge, SCHEMA)
        print("spilled" if records.spilled else "in memory", flush=True)
        time.sleep(600)
    elif what == "peak":
        limit = MemoryLimit(int(more[0])) if int(more[0]) else None
        merge = SliceMerge(RULE, "ts", limit=limit)
        print(*peak_of(lambda: sum(b.num_rows for b in read_file_slice(storage, file_slice, merge, SCHEMA))))


if __name__ == "__main__":
    main()
