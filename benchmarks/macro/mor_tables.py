"""Merge-on-read tables made by Apache Hudi 0.15.0: `python mor_tables.py KIND FOLDER ROWS CODEC`.

    base-heavy   ROWS base rows, 6 % of them once more in Avro logs
    log-heavy    ROWS base rows, 2 x ROWS log records in 10 log files of every slice

Each deltacommit writes the same share of every slice.  A table is made once and kept; its facts stand beside it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import workload
from workload import KEY, ORDERING

HERE = Path(__file__).resolve().parent
KINDS = {"base-heavy": (1, 0.06), "log-heavy": (10, 0.2)}  # deltacommits, share of the rows in each


@dataclass(frozen=True)
class Made:
    """A table, and what its snapshot has.

    Attributes:
        rows, fares, times: number of rows, sum of `fare` and of `ts`.
        log_records: in all log files together.
    """

    path: str
    kind: str
    rows: int
    fares: float
    times: int
    log_records: int
    codec: str

    def base_files(self) -> list[str]:
        """All base files: the table has one slice a group."""
        return sorted(str(p) for p in Path(self.path).rglob("*.parquet") if ".hoodie" not in p.parts)

    def log_files(self) -> list[str]:
        return sorted(str(p) for p in Path(self.path).rglob(".*.log.*") if p.suffix != ".crc")


def table(folder: Path, kind: str, rows: int, codec: str = "gzip") -> Made:
    """The table, made by Apache Hudi in a process of its own unless it is there."""
    facts = folder / f"{kind}-{rows}-{codec}.json"
    if not facts.is_file():
        command = [sys.executable, str(HERE / "mor_tables.py"), kind, str(folder), str(rows), codec]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"Apache Hudi made no table:\n{done.stderr[-3000:]}")
    return Made(path=str(folder / f"{kind}-{rows}-{codec}"), **json.loads(facts.read_text()))


def _make(kind: str, folder: Path, rows: int, codec: str) -> None:
    from engines import OPERATION, OPTIONS, ApacheHudi

    path = folder / f"{kind}-{rows}-{codec}"
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    commits, share = KINDS[kind]
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "SIMPLE",
        "hoodie.parquet.compression.codec": codec,
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
        "hoodie.bulkinsert.shuffle.parallelism": "8",
    }
    rng = np.random.default_rng(5)
    base = workload._rows(rng, np.arange(rows))
    fares, times = base["fare"].to_numpy().copy(), base[ORDERING].to_numpy().copy()
    logged = 0
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        engine = ApacheHudi(Path(scratch))

        def save(part: pa.Table, operation: str) -> None:
            source = str(Path(scratch) / "part.parquet")
            pq.write_table(part, source, compression="zstd", row_group_size=250_000)
            writer: Any = engine.frame(source).write.format("hudi").options(**options)
            writer.option(OPERATION, operation).mode("append").save(str(path))

        save(base, "bulk_insert")
        for n in range(commits):
            picked = np.sort(rng.choice(rows, int(rows * share), replace=False))
            part = base.take(pa.array(picked))
            fares[picked] += 1000.0 * (n + 1)
            times[picked] += 1
            part = part.set_column(1, ORDERING, pa.array(times[picked]))
            part = part.set_column(part.schema.get_field_index("fare"), "fare", pa.array(fares[picked]))
            save(part.take(pa.array(rng.permutation(len(picked)))), "upsert")
            logged += len(picked)
        engine.spark.stop()
    found = Made(str(path), kind, rows, float(fares.sum()), int(times.sum()), logged, codec)
    facts = {k: v for k, v in asdict(found).items() if k != "path"}
    (folder / f"{path.name}.json").write_text(json.dumps(facts))


def check(made: Made, rows: pa.Table, who: str) -> None:
    """A snapshot that is not the table's is no answer."""
    fares, times = pc.sum(rows["fare"]).as_py(), pc.sum(rows[ORDERING]).as_py()
    keys = pc.count_distinct(rows[KEY]).as_py()
    right = (made.rows, made.rows, made.times)
    if (rows.num_rows, keys, times) != right or abs(fares - made.fares) > 1e-9 * abs(made.fares):
        raise SystemExit(f"{who}: {rows.num_rows} rows, {keys} keys, {times}, {fares}; right is {made}")


if __name__ == "__main__":
    _make(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
