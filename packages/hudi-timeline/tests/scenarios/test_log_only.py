"""File groups that have log files and no base file yet: an index that finds keys in logs lets inserts go there."""

import json

import pyarrow as pa
import pytest
from properties_edits import edit_properties

from hudi_format.errors import ConcurrentWriterError, MissingFileError
from hudi_format.log.block import BlockType
from hudi_format.log.writer import LogWriter
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import with_meta
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("a", pa.string())])
FULL = with_meta(SCHEMA)


def rows(instant, keys, ts, text):
    n = len(keys)
    columns = {
        "_hoodie_commit_time": [instant] * n,
        "_hoodie_commit_seqno": [f"{instant}_0_{i}" for i in range(n)],
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": ["p0"] * n,
        "_hoodie_file_name": ["f-0"] * n,
        "id": keys,
        "p": ["p0"] * n,
        "ts": [ts] * n,
        "a": [text] * n,
    }
    return pa.table(columns, schema=FULL)


def commit(storage, base, instant, data, deletes=(), kind=BlockType.AVRO_DATA):
    """A delta commit of one log file, as Apache Hudi 0.15 says it."""
    schema = to_avro(FULL, "t")
    with LogWriter(storage, "p0", "f-0", base, instant=instant, schema=schema, write_token="0-1-2") as log:
        log.append_rows(data, kind)
        if deletes:
            log.append_deletes(pa.array(deletes), pa.array(["p0"] * len(deletes)))
        (written,) = log.close()
    stat = {
        "fileId": "f-0",
        "path": written.file.path,
        "prevCommit": base,
        "numWrites": data.num_rows,
        "numInserts": data.num_rows,
        "fileSizeInBytes": written.file.size,
        "totalWriteBytes": written.size,
        "logVersion": written.file.version,
        "logOffset": 0,
        "baseFile": "",
        "logFiles": [written.file.name],
    }
    text = {
        "partitionToWriteStats": {"p0": [stat]},
        "compacted": False,
        "extraMetadata": {"schema": to_avro(SCHEMA, "t")},
        "operationType": "UPSERT",
    }
    for state in (".requested", ".inflight"):
        storage.touch(f".hoodie/{instant}.deltacommit{state}")
    storage.publish(f".hoodie/{instant}.deltacommit", json.dumps(text).encode())
    return written.file


def empty_table(path):
    """A table whose partition p0 has a metadata file and nothing else."""
    HudiTable.create(
        str(path),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    # Such tables are not made here yet.
    edit_properties(path, "COPY_ON_WRITE", "MERGE_ON_READ")
    storage = open_storage(str(path))
    storage.touch("p0/.hoodie_partition_metadata", b"commitTime=20240101000000000\npartitionDepth=1\n")
    return storage


@pytest.mark.req("FS-10", "QR-01", "QR-02")
@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA])
def test_a_group_of_log_files_alone_is_read_as_any_other(tmp_path, kind):
    storage = empty_table(tmp_path / "t")
    first, second = "20240101000000000", "20240102000000000"
    commit(storage, first, first, rows(first, ["k1", "k2", "k3"], 1, "old"), kind=kind)
    late = rows(second, ["k1", "k4"], 5, "new")
    commit(storage, first, second, late, deletes=["k3"], kind=kind)
    table = HudiTable.open(str(tmp_path / "t"))
    found = table.read(meta_columns=True).to_arrow().sort_by("id")
    assert found.select(["id", "a", "ts"]).to_pylist() == [
        {"id": "k1", "a": "new", "ts": 5},
        {"id": "k2", "a": "old", "ts": 1},
        {"id": "k4", "a": "new", "ts": 5},
    ]
    assert found["_hoodie_commit_time"].to_pylist() == [second, first, second]
    assert table.read(query="read_optimized").to_arrow().num_rows == 0
    assert table.read(as_of=first).to_arrow().num_rows == 3
    assert sorted(table.read_incremental(first).to_arrow()["id"].to_pylist()) == [
        "k1",
        "k4",
    ]
    (part,) = table.read().plan.logs
    assert part.slice.base_file is None
    assert [f.version for f in part.slice.log_files] == [1, 2]


@pytest.mark.req("FS-10", "NEW-37")
def test_a_partition_of_log_files_alone_is_found_without_its_metadata_file(tmp_path):
    storage = empty_table(tmp_path / "t")
    first = "20240101000000000"
    commit(storage, first, first, rows(first, ["k1", "k2"], 1, "old"))
    (tmp_path / "t" / "p0" / ".hoodie_partition_metadata").unlink()
    table = HudiTable.open(str(tmp_path / "t"))
    assert table.read().count() == 2
    assert table.read(as_of=first).count() == 2


@pytest.mark.req("FS-10", "NEW-37")
@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_group_whose_only_log_file_is_gone_is_missed(tmp_path, whole_folder):
    storage = empty_table(tmp_path / "t")
    first = "20240101000000000"
    file = commit(storage, first, first, rows(first, ["k1", "k2"], 1, "old"))
    (tmp_path / "t" / file.path).unlink()
    if whole_folder:
        (tmp_path / "t" / "p0" / ".hoodie_partition_metadata").unlink()
        (tmp_path / "t" / "p0").rmdir()
    table = HudiTable.open(str(tmp_path / "t"))
    for scan in (
        table.read,
        lambda: table.read(as_of=first, meta_columns=True),
        lambda: table.read_incremental("000", meta_columns=True),
    ):
        with pytest.raises(MissingFileError) as e:
            scan().to_arrow()
        assert e.value.file == file.path
    with pytest.warns(UserWarning, match="gone"):
        assert table.read(on_missing="skip").count() == 0


@pytest.mark.parametrize("kind", [BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
def test_prepped_rows_go_back_to_a_group_of_log_files_alone(tmp_path, kind):
    storage = empty_table(tmp_path / "t")
    first, second = "20240101000000000", "20240102000000000"
    commit(storage, first, first, rows(first, ["k1", "k2", "k3", "k4"], 1, "old"), kind=kind)
    table = HudiTable.open(str(tmp_path / "t"))
    stale = table.read(meta_columns=True).to_arrow().sort_by("id")
    commit(storage, first, second, rows(second, ["k1"], 5, "new"), deletes=["k3"], kind=kind)
    given = {"hoodie.compact.inline": "false"}
    for name, changed in (("upsert", 2), ("delete", 3)):
        options = {**given, "hoodie.datasource.write.operation": f"{name}_prepped"}
        with pytest.raises(ConcurrentWriterError, match=f"{changed} rows of 1 file groups"):
            getattr(table, name)(stale, options=options)
        current = HudiTable.open(table.uri).read(meta_columns=True).to_arrow().sort_by("id").slice(0, 2)
        getattr(table, name)(current, options=options)
        left = HudiTable.open(table.uri).read(meta_columns=True).to_arrow()
        assert sorted(left["id"].to_pylist()) == (["k1", "k2", "k4"] if name == "upsert" else ["k4"])
        assert set(left["_hoodie_file_name"].to_pylist()) == {"f-0"}
