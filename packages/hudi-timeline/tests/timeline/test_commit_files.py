"""What commits say of files, read together: the same as each one's whole metadata."""

import io
import json

import fastavro
import pytest

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.snapshot import CommitCache
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.timeline.commit_files import CommitFiles, read_commit_files
from hudi_timeline.timeline.commit_metadata import read_commit
from hudi_timeline.timeline.instant import Instant

T = "20260101000000000"


def files_of(metadata):
    found = CommitFiles.of(metadata)
    return found.files, {p: ids for p, ids in found.replaced.items() if ids}


def test_they_are_those_of_the_whole_metadata(golden_timelines, golden_timelines_2):
    folders = [*golden_timelines.glob("v?/*"), *golden_timelines_2.glob("v?/*")]
    kinds = set()
    for folder in folders:
        storage = LocalStorage(str(folder))
        writes = load_timeline(storage, table_config.load(storage)).completed_writes()
        cache = CommitCache(storage)
        for found, write in zip(read_commit_files(storage, writes), writes, strict=True):
            files, replaced = files_of(read_commit(storage, write))
            assert found.files == files
            assert {p: ids for p, ids in found.replaced.items() if ids} == replaced
            kinds |= {bool(files), *(f.path.rpartition("/")[2][0] == "." for f in files)}
        assert cache.files(writes) == cache.files(writes) == read_commit_files(storage, writes)
    assert len(folders) > 100
    assert kinds == {True, False}


def instant(data, storage, name=f"{T}.commit"):
    storage.publish(f".hoodie/{name}", data)
    return Instant(name.partition(".")[0], "commit", "COMPLETED", name)


STAT = {"fileId": "f", "path": "p/f_0-0-0_1.parquet", "fileSizeInBytes": 7}


def avro(partition, path):
    """A commit as Apache Hudi 1.x writes it, with what is asked for here."""
    text = ["null", "string"]
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [{"name": "fileId", "type": text}, {"name": "path", "type": text}],
    }
    stats = ["null", {"type": "map", "values": {"type": "array", "items": stat}}]
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [{"name": "partitionToWriteStats", "type": stats}],
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"partitionToWriteStats": {partition: [{"fileId": "f", "path": path}]}}])
    return out.getvalue()


def test_an_avro_commit_is_read(storage):
    (found,) = read_commit_files(storage, [instant(avro("p", "p/f_0-0-0_1.parquet"), storage)])
    assert [(f.partition, f.file_id, f.path) for f in found.files] == [("p", "f", "p/f_0-0-0_1.parquet")]


DAMAGE = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a number for a path": json.dumps({"partitionToWriteStats": {"p": [{**STAT, "path": 5}]}}).encode(),
    "a text for a size": json.dumps(
        {"partitionToWriteStats": {"p": [{**STAT, "fileSizeInBytes": "7"}]}}
    ).encode(),
    "Avro that is cut": b"Obj\x01\x02",
    "a partition outside the table": json.dumps({"partitionToWriteStats": {"../p": [STAT]}}).encode(),
    "a path outside the table": json.dumps(
        {"partitionToWriteStats": {"p": [{**STAT, "path": "p/../../f_0-0-0_1.parquet"}]}}
    ).encode(),
    "an Avro path outside the table": avro("p", "../f_0-0-0_1.parquet"),
    "an Avro partition outside the table": avro("..", "f_0-0-0_1.parquet"),
    "another record": None,
}


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_is_an_error_that_names_the_file(storage, golden_timelines_2, data):
    if data is None:
        data = next((golden_timelines_2 / "v9/cow_archived/.hoodie/timeline").glob("*.clean")).read_bytes()
    sound = instant(json.dumps({"partitionToWriteStats": {"p": [STAT]}}).encode(), storage, "1.commit")
    with pytest.raises(CorruptFileError) as e:
        read_commit_files(storage, [sound, instant(data, storage)])
    assert e.value.file == f".hoodie/{T}.commit"
    assert e.value.instant == T
    assert e.value.remedy
    assert read_commit_files(storage, [sound])[0].files[0].size == 7


def test_a_commit_that_is_gone_is_a_missing_file(storage):
    with pytest.raises(MissingFileError):
        read_commit_files(storage, [Instant(T, "commit", "COMPLETED", f"{T}.commit")])


def test_a_commit_with_no_statistics_has_no_files_and_one_without_them_is_damaged(storage):
    none = instant(b'{"partitionToWriteStats": {}, "operationType": "UPSERT"}', storage)
    assert read_commit_files(storage, [none]) == [CommitFiles()]
    null = instant(b'{"partitionToWriteStats": null, "operationType": "UPSERT"}', storage)
    with pytest.raises(CorruptFileError, match="no partitionToWriteStats"):
        read_commit_files(storage, [null])
