"""Log files that we write, read by Apache Hudi 0.15.0 and 1.0.2 and by hudi-rs.

Apache Hudi 0.15.0 makes a merge-on-read table; we add log files and the instants that commit them: Avro data,
Parquet data and deletes, an instant that a rollback block takes back, and the torn block of a write that died.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.avro.encoder import Encoder
from hudi_format.file_names import log_file_name, parse_base_file
from hudi_format.log.block import BlockType
from hudi_format.log.encoder import frame
from hudi_format.log.reader import LogFileReader
from hudi_format.log.writer import LogWriter
from hudi_format.schema.avro import to_avro
from hudi_format.storage.open import open_storage
from hudi_timeline.timeline.instant import next_instant
from interop.rows import assert_same_rows, without_meta

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    WRITE + "operation": "insert",
    "hoodie.metadata.enable": "false",
    "hoodie.insert.shuffle.parallelism": "1",
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.float64())]
)


class Logs:
    """A table of Apache Hudi's, to which we write log files."""

    def __init__(self, path):
        self.path = path
        self.storage = open_storage(str(path))
        files = [f for p in ("p0", "p1") for f in self.storage.list(p) if f.name.endswith(".parquet")]
        self.bases = {p: parse_base_file(p, f.name) for p, f in zip(("p0", "p1"), files, strict=True)}
        self.rows = {r["id"]: r for p in self.bases for r in self.stored(p).select(SCHEMA.names).to_pylist()}
        self.instant = max(b.instant for b in self.bases.values())
        self.schema = ""

    def stored(self, partition):
        return pq.read_table(self.path / partition / self.bases[partition].name, partitioning=None)

    def begin(self):
        """The next instant, and a step of the timeline that says that it is at work."""
        self.instant = next_instant(self.instant)
        for state in ("requested", "inflight"):
            self.storage.touch(f".hoodie/{self.instant}.deltacommit.{state}")
        return self.instant

    def records(self, partition, changes):
        """Rows as a log has them, meta columns first; a new key takes the values of the first stored row."""
        stored = {r["id"]: r for r in self.stored(partition).to_pylist()}
        out = []
        for n, (key, values) in enumerate(changes.items(), 1):
            row = {**stored.get(key, next(iter(stored.values()))), "id": key, "p": partition, **values}
            row |= {
                "_hoodie_commit_time": self.instant,
                "_hoodie_commit_seqno": f"{self.instant}_0_{n}",
                "_hoodie_record_key": key,
                "_hoodie_file_name": self.bases[partition].file_id,
            }
            out.append(row)
        full = self.stored(partition).schema.remove_metadata()
        self.schema = to_avro(full, "t")
        return pa.Table.from_pylist(out, schema=full).combine_chunks().to_batches()[0]

    def writer(self, partition, version):
        base = self.bases[partition]
        return LogWriter(
            self.storage, partition, base.file_id, base.instant,
            instant=self.instant, schema=self.schema, write_token=f"0-{version}-7", version=version,
        )  # fmt: skip

    def commit(self, *written):
        stats = {}
        for log in written:
            stats.setdefault(log.file.partition, []).append(
                {
                    "fileId": log.file.file_id, "path": log.file.path, "prevCommit": log.file.instant,
                    "partitionPath": log.file.partition, "fileSizeInBytes": log.size, "totalWriteBytes": log.size,
                    "logVersion": log.file.version, "logOffset": 0, "baseFile": "",
                    "logFiles": [log.file.name], "numWrites": 1, "numDeletes": 0, "numUpdateWrites": 1, "numInserts": 0,
                }
            )  # fmt: skip
        commit = {
            "partitionToWriteStats": stats, "compacted": False, "operationType": "UPSERT",
            "extraMetadata": {"schema": to_avro(SCHEMA, "t")},
        }  # fmt: skip
        self.storage.create(f".hoodie/{self.instant}.deltacommit", json.dumps(commit).encode())


def change(logs, partition, changes):
    """Expected rows after an upsert."""
    for key, values in changes.items():
        like = next(r for r in logs.rows.values() if r["p"] == partition)
        logs.rows[key] = {**logs.rows.get(key, {**like, "id": key}), **values}


@pytest.fixture(scope="module")
def table(tmp_path_factory, pool):
    path = tmp_path_factory.mktemp("logs") / "t"
    rows = [{"id": f"k{i:02d}", "p": f"p{i % 2}", "ts": 5, "a": f"a{i}", "b": i / 3} for i in range(24)]
    pool.get("0.15.0").write(path, pa.Table.from_pylist(rows, schema=SCHEMA), OPTIONS)
    logs = Logs(path)

    logs.begin()
    changes = {
        "k00": {"ts": 6, "a": "avro ü"},
        "k02": {"ts": 6, "b": None},
        "new0": {"ts": 6, "a": "only in a log"},
    }
    batch = logs.records("p0", changes)
    like = logs.stored("p0").select(SCHEMA.names).to_pylist()[0]
    logs.rows["new0"] = {**like, "id": "new0"}
    change(logs, "p0", changes)
    with logs.writer("p0", 1) as log:
        log.append_avro(*Encoder(logs.schema, batch.schema).encode(batch))
        log.append_deletes(pa.array(["k04", "k06"]), pa.array(["p0", "p0"]))
        first = log.close()
    for key in ("k04", "k06"):
        del logs.rows[key]
    changes = {"k01": {"ts": 7, "a": "parquet"}, "k03": {"ts": 6, "a": None}}
    batch = logs.records("p1", changes)
    change(logs, "p1", changes)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), sink, compression="gzip", store_schema=False)
    with logs.writer("p1", 1) as log:
        log.append_parquet(sink.getvalue())
        log.append_deletes(pa.array(["k05"]), pa.array(["p1"]), pa.array([9], pa.int64()))
        second = log.close()
    del logs.rows["k05"]
    logs.commit(*first, *second)

    # Complete by the timeline, and taken back by a rollback block.
    taken_back = logs.begin()
    batch = logs.records("p0", {"k00": {"ts": 100, "a": "taken back"}, "k08": {"ts": 100, "a": "taken back"}})
    with logs.writer("p0", 2) as log:
        log.append_avro(*Encoder(logs.schema, batch.schema).encode(batch))
        log.append_deletes(pa.array(["k10"]), pa.array(["p0"]))
        logs.commit(*log.close())
    logs.begin()
    with logs.writer("p0", 3) as log:
        log.append_rollback(taken_back)
        logs.commit(*log.close())

    # A writer that died: half a block, and an instant that never completes.
    logs.begin()
    content = b"\0\0\0\3\0\0\0\2" + bytes(200)
    before, _ = frame(BlockType.AVRO_DATA, {0: logs.instant, 2: logs.schema}, len(content))
    base = logs.bases["p0"]
    torn = f"p0/{log_file_name(base.file_id, base.instant, 4, '0-9-9')}"
    logs.storage.touch(torn, before + content[:100])

    # And one after it that is there.
    logs.begin()
    changes = {"k12": {"ts": 8, "a": "last"}}
    batch = logs.records("p0", changes)
    change(logs, "p0", changes)
    with logs.writer("p0", 5) as log:
        log.append_avro(*Encoder(logs.schema, batch.schema).encode(batch))
        logs.commit(*log.close())
    return logs


@pytest.mark.req("LF-10", "LF-11", "LF-14", "LF-15", "LF-17", "LF-18")
def test_our_log_files_are_read_by_others(table, reader):
    want = pa.Table.from_pylist(list(table.rows.values()), schema=SCHEMA)
    found = without_meta(reader.read(table.path))
    assert_same_rows(found.select(SCHEMA.names), want, ["id"], ordered_columns=False)


@pytest.mark.req("LF-15")
def test_our_log_files_are_those_that_we_mean(table):
    kinds = []
    for partition in ("p0", "p1"):
        for info in sorted(table.storage.list(partition), key=lambda f: f.name):
            if ".log." in info.name:
                with LogFileReader.open(table.storage, f"{partition}/{info.name}") as log:
                    kinds += [b.type.name for b in log.blocks]
    assert kinds == [
        "AVRO_DATA", "DELETE", "AVRO_DATA", "DELETE", "COMMAND", "CORRUPT", "AVRO_DATA", "PARQUET_DATA", "DELETE"
    ]  # fmt: skip
