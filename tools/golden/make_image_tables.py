"""Make golden tables with changes of columns of bytes, with Apache Hudi: the images of changes have them in two ways.

    python tools/golden/make_image_tables.py 0.15.0|1.2.0 OUT

Each mode gives `<scenario>.zip` and `<scenario>.expected/cdc_000.parquet`, as tests/golden/README.md describes them
(1.0.2 fails to read the feed).  Runs in an environment with PySpark 3.5; the bundle comes from tools/interop's cache.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from interop.apache_hudi import ApacheHudi

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("b", pa.binary()), ("n", pa.int32())]
)
BYTES = (b"abc", b'\x00\xff"\\\n\x85', b"", None)
CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "000",
}


def rows(keys: list[int], ts: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"id": f"k{i}", "ts": ts, "part": "p", "b": BYTES[(i + ts) % 4], "n": None if i % 2 else i}
            for i in keys
        ],
        SCHEMA,
    )


def make(apache: ApacheHudi, version: str, mode: str, out: Path, scratch: Path) -> None:
    name = f"cdc_bytes_{mode.lower()}"
    path, expected = scratch / name, out / f"{name}.expected"
    options = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.metadata.enable": "false",
        "hoodie.index.type": "SIMPLE",
        "hoodie.clean.automatic": "false",
        "hoodie.index.bloom.num_entries": "100",
    }
    given = (("insert", list(range(6)), 1), ("upsert", [2, 3, 4], 2), ("delete", [0, 3], 3))
    for operation, keys, ts in given:
        apache.write(path, rows(keys, ts), {**options, "hoodie.datasource.write.operation": operation})
    expected.mkdir(parents=True, exist_ok=True)
    feed = apache.read(path, **CDC)
    pq.write_table(feed, expected / "cdc_000.parquet")
    meta = {
        "scenario": name, "hudi_version": version, "table_version": {"0.1": 6, "1.0": 8}.get(version[:3], 9),
        "table_type": "MERGE_ON_READ", "key_fields": "id", "partition_fields": "part", "ordering_field": "ts",
        "write_options": options, "operations": [{"operation": o, "rows": len(k)} for o, k, _ in given],
        "rows": {"cdc_000": feed.num_rows}, "hudi_could_not_answer": {}, "relocatable": True, "notes": [],
    }  # fmt: skip
    (expected / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file() and not file.name.endswith(".crc"):
                archive.write(file, f"{name}/{file.relative_to(path)}")
    print(name, feed.num_rows, flush=True)


def main() -> None:
    version, out = sys.argv[1], Path(sys.argv[2])
    with ApacheHudi(version) as apache, tempfile.TemporaryDirectory() as scratch:
        for mode in ("OP_KEY_ONLY", "DATA_BEFORE_AFTER"):
            make(apache, version, mode, out, Path(scratch))


if __name__ == "__main__":
    main()
