"""Small tables with a metadata table, for the tests of its upkeep."""

from pathlib import Path

import pyarrow as pa

from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

KEPT = {"hoodie.metadata.enable": "true"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(n, start=0, v=0):
    ids = range(start, start + n)
    return pa.table(
        {"id": [f"k{i}" for i in ids], "ts": pa.array([v] * n, pa.int64()), "p": [f"p{i % 2}" for i in ids]}
    )


def write(storage, data, operation="upsert", **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(1), storage, data, options)


def made(storage, table_type="COPY_ON_WRITE"):
    write(storage, rows(6), **KEPT, **{"hoodie.datasource.write.table.type": table_type})


def table(storage, **options):
    return HudiTable._of(storage, {**OPTIONS, **options})


def names(storage):
    return {p.name for p in (Path(storage.uri) / FOLDER / ".hoodie").iterdir() if p.is_file()}
