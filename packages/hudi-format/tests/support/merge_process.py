"""Merges in a process of their own: `full`, `wait` and `peak` read a slice, `make` writes one."""

from __future__ import annotations

import resource
import signal
import sys
import time

import numpy as np
import pyarrow as pa
from slices import SCHEMA, write_slice

from hudi_format.errors import SpillError
from hudi_format.merge.limits import MemoryLimit
from hudi_format.merge.rules import PAYLOADS
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.slice_reader import LogRecords, SliceMerge, read_file_slice
from hudi_format.storage import open_storage

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


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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
        before = peak()
        limit = MemoryLimit(int(more[0])) if int(more[0]) else None
        batches = read_file_slice(storage, file_slice, SliceMerge(RULE, "ts", limit=limit), SCHEMA)
        count = sum(b.num_rows for b in batches)
        print(peak() - before, count)


if __name__ == "__main__":
    main()
