"""Peak memory of what streams: a base file of 4 GB rewritten, read with its log merged, and compacted with it.

    python benchmarks/macro/memory.py [--gigabytes 4] [--folder FOLDER] [--out FOLDER]

Each work runs in a process of its own.  What counts is its peak above what the process held after its imports, beside
the size of the largest row group, decoded: whole rows in Arrow's format.  `resident` is all that the system counts,
pages of mapped files too; `own` is without those.  Base files are not compressed, so that size on disk and decoded
size are about the same.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from report import Measured, write

MIB = 1 << 20
ROW = 1000  # bytes of a row, about
TEXTS = 4
INSTANTS = ("20260101000000000", "20260102000000000", "20260103000000000")
FILE_ID = "00000000-0000-0000-0000-000000000000-0"
WORKS = {
    "merge": "rewrite with 1 row in 500 changed, row groups of 120 MiB",
    "read": "read with a log of 1 row in 500 merged, row groups of 16 MiB",
    "compact": "compacted with a log of 1 row in 500, row groups of 120 MiB",
}


def _spec(instant: str, group: int) -> Any:
    from hudi_format import ParquetConfig
    from hudi_format.file_slice.writer import FileSpec

    fields = [pa.field("id", pa.string()), pa.field("ts", pa.int64())]
    fields += [pa.field(f"text{n}", pa.string()) for n in range(TEXTS)]
    config = ParquetConfig(codec="none", row_group_bytes=group * MIB, dictionary=False)
    return FileSpec("", FILE_ID, "0-0-0", instant, pa.schema(fields), config, f"{instant}_0_")


def _rows(ids: np.ndarray, ts: int) -> pa.Table:
    """Rows of these numbers; texts are pieces of one random text."""
    keys = pc.utf8_lpad(pa.array(ids).cast(pa.string()), 20, "0")
    size = (ROW - 150) // TEXTS
    offsets = np.arange(0, size * len(ids) + 1, size, dtype=np.int32)
    texts = []
    for n in range(TEXTS):
        place = (n * 4099 + int(ids[0]) * 31) % MIB
        data = pa.py_buffer(_noise()).slice(place, int(offsets[-1]))
        texts.append(pa.Array.from_buffers(pa.string(), len(ids), [None, pa.py_buffer(offsets), data]))
    names = ["_hoodie_record_key", "id", "ts", *(f"text{n}" for n in range(TEXTS))]
    return pa.table([keys, keys, pa.array(np.full(len(ids), ts)), *texts], names=names)


_kept: list[bytes] = []


def _noise() -> bytes:
    if not _kept:
        letters = np.random.default_rng(1).integers(97, 123, 16 * MIB, np.uint8)
        _kept.append(letters.tobytes())
    return _kept[0]


def _changes(rows: int) -> pa.Table:
    return _rows(np.arange(0, rows, 500), 2)


def make(folder: Path, work: str, rows: int) -> None:
    """The base file, and its log where there is one."""
    from hudi_format import BaseFileWriter, Encoder, LogWriter, open_storage, to_avro, with_meta
    from hudi_format.file_slice.writer import RowCounter, stamp

    storage = open_storage(str(folder))
    spec = _spec(INSTANTS[0], 16 if work == "read" else 120)
    counter = RowCounter()
    with BaseFileWriter(storage, spec.path, with_meta(spec.schema), config=spec.config) as file:
        for first in range(0, rows, 5_000):
            file.write(stamp(_rows(np.arange(first, min(rows, first + 5_000)), 1), spec, counter))
        file.close()
    if work != "merge":
        schema = with_meta(spec.schema)
        logged = stamp(_changes(rows), _spec(INSTANTS[1], 16), RowCounter())
        logged = pa.table(
            [c.cast(f.type) for c, f in zip(logged.columns, schema, strict=True)], schema=schema
        )
        avro = to_avro(schema, "r")
        writer = LogWriter(
            storage, "", FILE_ID, INSTANTS[0], instant=INSTANTS[1], write_token="0-0-0", schema=avro
        )
        encoder = Encoder(avro, schema)
        for batch in logged.to_batches(max_chunksize=20_000):
            writer.append_avro(*encoder.encode(batch))
        writer.close()


class Watch:
    """Peaks of this process from its beginning on; `own` is sampled."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self.before = self._now()
        self.own = self.before["RssAnon"]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def _now() -> dict[str, int]:
        lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
        return {p[0][:-1]: int(p[1]) * 1024 for p in lines if p and p[0] in ("VmHWM:", "VmRSS:", "RssAnon:")}

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            self.own = max(self.own, self._now()["RssAnon"])

    def stop(self) -> dict[str, int]:
        self._stop.set()
        self._thread.join()
        return {
            "own": self.own - self.before["RssAnon"],
            "resident": self._now()["VmHWM"] - self.before["VmRSS"],
        }


def run(folder: Path, work: str, rows: int) -> dict[str, Any]:
    """One work, watched; in a process of its own."""
    import hudi_timeline.reading.task  # noqa: F401 - what a reader imports counts as the interpreter
    from hudi_format import (
        BaseFile,
        FileSlice,
        SliceMerge,
        VisibleInstants,
        open_storage,
        payload_rule,
        with_meta,
    )
    from hudi_format.file_names import parse_log_file
    from hudi_format.file_slice.compacted_file import SliceCompaction, compact_slice
    from hudi_format.file_slice.writer import Incoming, merge_file
    from hudi_format.log.scanner import BlockScope
    from hudi_timeline.reading.plan import SliceLogs
    from hudi_timeline.reading.task import ReadTask

    storage = open_storage(str(folder))
    spec = _spec(INSTANTS[2], 120)
    name = _spec(INSTANTS[0], 120).name
    size = (folder / name).stat().st_size
    base = BaseFile("", name, FILE_ID, INSTANTS[0], "0-0-0", size)
    changes = _changes(rows) if work == "merge" else None
    _kept.clear()
    watch = Watch()
    began = time.perf_counter()
    if changes is not None:
        stat = merge_file(storage, spec, base, Incoming(changes))
        found = stat.num_writes, stat.num_update_writes
    else:
        schema = with_meta(spec.schema)
        logs = [
            parse_log_file("", p.name, p.stat().st_size)
            for p in folder.glob(".*.log.*")
            if p.suffix != ".crc"
        ]
        file_slice = FileSlice("", FILE_ID, INSTANTS[0], base, tuple(f for f in logs if f is not None))
        merge = SliceMerge(payload_rule(None), scope=BlockScope(VisibleInstants(frozenset(INSTANTS))))
        compaction = SliceCompaction(file_slice, merge, schema, spec)
        if work == "compact":
            stat = compact_slice(storage, compaction)
            found = (stat.num_writes, stat.num_update_writes) if stat is not None else (0, 0)
        else:
            task = ReadTask(
                storage, base.path, "", size, INSTANTS[0], FILE_ID, schema, schema,
                logs=SliceLogs(file_slice, {}), merge=merge, merge_schema=merge.merge_schema(schema, schema),
            )  # fmt: skip
            count = changed = 0
            for batch in task.to_batches():
                count += batch.num_rows
                changed += pc.sum(pc.equal(batch.column("ts"), 2)).as_py() or 0
            found = count, changed
    seconds = time.perf_counter() - began
    peaks = watch.stop()
    if found != (rows, len(range(0, rows, 500))):
        raise SystemExit(f"{work}: {found}; right is {rows} and {len(range(0, rows, 500))}")
    with pq.ParquetFile(folder / name) as file:
        most = max(file.metadata.row_group(n).num_rows for n in range(file.num_row_groups))
        group = file.read_row_group(0).nbytes * most // file.metadata.row_group(0).num_rows
    return {**peaks, "group": group, "seconds": seconds, "file": size}


def goal_of(work: str, group: int) -> int:
    """Bytes above the interpreter at most."""
    return max(3 * group, 300 * MIB) if work == "read" else 3 * group


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        print(json.dumps(run(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--gigabytes", type=float, default=4.0, help="of a base file; the disk holds two of them"
    )
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the files are made, and removed again"
    )
    parser.add_argument("--scale", choices=("full", "smoke"), default="full", help="smoke: 50 MB")
    parser.add_argument("--out", type=Path, default=None, help="folder for memory.md and .json")
    given = parser.parse_args()
    rows = int((0.05 if given.scale == "smoke" else given.gigabytes) * 1e9) // ROW
    measured = Measured("memory")
    lines = ["| work | file | row group, decoded | peak, own | peak, resident | at most | | seconds |"]
    lines.append("|---|---:|---:|---:|---:|---:|---|---:|")
    for work in given.works.split(","):
        folder = Path(tempfile.mkdtemp(prefix="hudi-bench-", dir=given.folder))
        try:
            make(folder, work, rows)
            command = [sys.executable, __file__, "--run", str(folder), work, str(rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr[-3000:])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        found = json.loads(done.stdout)
        measured.more[work] = found
        most = goal_of(work, found["group"])
        verdict = "held" if found["resident"] <= most else "missed"
        sizes = [f"{found[k] / MIB:.0f} MiB" for k in ("file", "group", "own", "resident")]
        lines.append(f"| {WORKS[work]} | " + " | ".join(sizes) + f" | {most / MIB:.0f} MiB | {verdict} | "
                     f"{found['seconds']:.1f} |")  # fmt: skip
    write(measured, ["\n".join(lines)], given.out)


if __name__ == "__main__":
    main()
