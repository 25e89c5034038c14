"""A table of 1,000 instants opened, and one of its three partitions planned: every commit's files are checked.

`HUDI_BENCH_ROWS` above 10,000 gives 1,000 instants, else 20.
"""

import io
import os
import zipfile
from pathlib import Path

import fastavro
import pytest

from hudi_format import LocalStorage, WriteStat
from hudi_format.avro.container import container_parts
from hudi_timeline import HudiTable, table_config
from hudi_timeline.timeline.commit_metadata import CommitMetadata

INSTANTS = 1_000 if int(os.environ.get("HUDI_BENCH_ROWS", 1_000_000)) > 10_000 else 20
KEPT = 10  # versions of files that a cleaner leaves
PARTITIONS = ("a", "b", "c")
GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "v9" / "cow_partitioned.zip"
SCHEMA = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"p","type":"string"}]}'


def commit(instant: str) -> CommitMetadata:
    """A commit that wrote a new version of the one file in each partition."""
    stats = {}
    for n, partition in enumerate(PARTITIONS):
        file_id = f"{n:08d}-0000-4000-8000-000000000000-0"
        stats[partition] = (
            WriteStat(
                file_id,
                f"{partition}/{file_id}_0-1-2_{instant}.parquet",
                partition,
                num_writes=10,
                file_size_in_bytes=4,
            ),
        )
    return CommitMetadata(stats, extra={"schema": SCHEMA}, operation="UPSERT")


def avro(metadata: CommitMetadata, template: bytes) -> bytes:
    """The metadata as Apache Hudi 1.x stores it; `template` is a file that it wrote."""
    head = container_parts(template).header
    parsed = fastavro.parse_schema(fastavro.reader(io.BytesIO(template)).writer_schema)
    stats = {
        p: [
            {"fileId": s.file_id, "path": s.path, "partitionPath": p, "fileSizeInBytes": s.file_size_in_bytes}
            for s in of
        ]
        for p, of in metadata.partition_to_stats.items()
    }
    out, body = io.BytesIO(), io.BytesIO()
    fastavro.schemaless_writer(
        body,
        parsed,
        {"partitionToWriteStats": stats, "extraMetadata": dict(metadata.extra), "operationType": "UPSERT"},
    )
    sync = template[-16:]
    out.write(head.prefix + sync)
    fastavro.schemaless_writer(out, "long", 1)
    fastavro.schemaless_writer(out, "bytes", body.getvalue())
    return out.getvalue() + sync


@pytest.fixture(scope="module", params=[6, 9], ids=["version 6", "version 9"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    storage = LocalStorage(str(tmp_path_factory.mktemp("table")))
    properties = {
        "hoodie.table.name": "t", "hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "p",
    }  # fmt: skip
    if request.param == 9:
        properties |= {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
    table_config.create(storage, properties)
    with zipfile.ZipFile(GOLDEN) as archive:
        name = next(
            n
            for n in archive.namelist()
            if n.endswith(".commit") and "/timeline/" in n and "metadata" not in n
        )
        template = archive.read(name)
    root = Path(storage.uri)
    (root / ".hoodie" / "timeline" / "history").mkdir(parents=True)
    for partition in PARTITIONS:
        (root / partition).mkdir()
        (root / partition / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    for n in range(INSTANTS):
        instant = f"20260101{n:09d}"
        metadata = commit(instant)
        if request.param == 9:
            names = (f"timeline/{instant}.commit.requested", f"timeline/{instant}.inflight")
            done, data = f"timeline/{instant}_{instant[:-1]}9.commit", avro(metadata, template)
        else:
            names, done = (f"{instant}.commit.requested", f"{instant}.inflight"), f"{instant}.commit"
            data = metadata.to_json()
        for name in names:
            (root / ".hoodie" / name).touch()
        (root / ".hoodie" / done).write_bytes(data)
        if n >= INSTANTS - KEPT:
            for stat in metadata.stats:
                (root / stat.path).write_bytes(b"PAR1")
    return storage.uri


@pytest.mark.benchmark(group="open")
def test_open_and_plan_one_partition(benchmark, table):
    plan = benchmark(lambda: HudiTable.open(table).read(filter="p = 'b'").plan)
    assert plan.files.num_rows == 1
    assert plan.files.column("partition").to_pylist() == ["b"]
    benchmark.extra_info["instants"] = INSTANTS
