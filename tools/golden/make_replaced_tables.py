"""Make golden tables in which a partition was deleted and then written again, with consistent hashing.

    python tools/golden/make_replaced_tables.py 0.15.0|1.2.0 OUT

Apache Hudi goes on with the file groups of the deleted partition, and reads nothing of them afterwards.  Gives
`replaced_then_written.zip` and `.expected/` as tests/golden/README.md describes them.  Runs in an environment with
PySpark 3.5.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_timeline import HudiTable
from interop.apache_hudi import ApacheHudi

NAME = "replaced_then_written"
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    WRITE + "precombine.field": "ts",
    WRITE + "row.writer.enable": "false",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("part", pa.string())])


def _rows(*rows: tuple[object, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)


def main() -> None:
    version, out = sys.argv[1], Path(sys.argv[2])
    expected = out / f"{NAME}.expected"
    expected.mkdir(parents=True)
    with ApacheHudi(version) as apache, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME

        def write(operation: str, rows: pa.Table, **more: str) -> None:
            apache.write(path, rows, {**OPTIONS, WRITE + "operation": operation, **more})

        write("bulk_insert", _rows(("a", 1, "w1", "p"), ("b", 1, "w1", "q")))
        write("delete_partition", _rows(), **{WRITE + "partitions.to.delete": "p"})
        last = HudiTable.open(str(path)).inspect.timeline().to_pylist()[-1]
        begin = last["instant"] if version.startswith("0.") else last["completion"]
        write("upsert", _rows(("a", 2, "w2", "p"), ("c", 2, "w2", "p"), ("b", 2, "w2", "q")))
        pq.write_table(apache.read(path), expected / "snapshot.parquet")
        for since in ("000", begin):
            asked = {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": since,
            }
            pq.write_table(apache.read(path, **asked), expected / f"incremental_{since}_open.parquet")
        meta = {
            "scenario": NAME,
            "hudi_version": version,
            "table_type": "MERGE_ON_READ",
            "write_options": OPTIONS,
        }
        (expected / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
        with zipfile.ZipFile(out / f"{NAME}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.rglob("*")):
                if not file.name.endswith(".crc"):
                    archive.write(file, f"{NAME}/{file.relative_to(path)}")


if __name__ == "__main__":
    main()
