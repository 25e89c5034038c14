"""A write in a process of its own: prints the most memory that it took above that of the interpreter and its imports.

Anonymous memory: pages of files that are mapped do not count, which the system may take back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
BATCH, WIDTH = 10_000, 800


def batches(count: int) -> Iterator[pa.RecordBatch]:
    """Keys from the last down, `WIDTH` bytes of text in each row; each key a second time in the second half."""
    for n in range(count):
        first = (count - n) % (count // 2) * BATCH
        letters = np.random.default_rng(n).integers(97, 123, BATCH * WIDTH, dtype=np.uint8)
        offsets = pa.py_buffer(np.arange(0, (BATCH + 1) * WIDTH, WIDTH, dtype=np.int32).tobytes())
        text = pa.StringArray.from_buffers(BATCH, offsets, pa.py_buffer(letters.tobytes()))
        keys = pa.array([f"key-{k:09d}" for k in range(first, first + BATCH)])
        yield pa.record_batch([keys, pa.repeat(n, BATCH).cast(pa.int64()), text], schema=SCHEMA)


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def main() -> None:
    operation, folder, count, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    options = {
        "hoodie.memory.merge.max.size": limit,
        "hoodie.parquet.block.size": str(4 << 20),
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
    }
    pa.set_memory_pool(pa.system_memory_pool())  # gives back what is freed
    # Each thread has a row group of its own: as many as two processors have, whatever the machine.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    pa.set_cpu_count(2)
    table = HudiTable.create(
        folder, SCHEMA, name="t", record_keys=["id"], partition_fields=[], ordering_fields=["ts"]
    )
    rows = pa.RecordBatchReader.from_batches(SCHEMA, batches(count))
    given = {k: v for k, v in options.items() if int(limit) or "memory" not in k}
    before = peak = anonymous()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    getattr(table, operation)(rows, options=given)
    over.set()
    watcher.join()
    print(peak - before, HudiTable.open(folder).read(columns=["id"]).to_arrow().num_rows)


if __name__ == "__main__":
    main()
