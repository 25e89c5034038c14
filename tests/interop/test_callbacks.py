"""What Apache Hudi 0.15.0 posts after a commit, and what we post for the same write."""

import json

import pyarrow as pa
import pytest
from http_listener import listening

from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

CALLBACK = "hoodie.write.commit.callback."
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "false",
    CALLBACK + "on": "true",
    CALLBACK + "http.api.key": "k1",
    CALLBACK + "http.custom.headers": "X-Job:trips;X-Run:7",
    "_job": "run 7",
}
ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "ts": [1, 1]})
OF_THE_RUN = {"fileId", "path", "totalWriteBytes", "fileSizeInBytes", "runtimeStats"}  # ids, sizes, times


@pytest.mark.req("MB-01", "IN-09")
def test_the_same_message_is_posted(apache, tmp_path):
    with listening() as server:
        given = {**OPTIONS, CALLBACK + "http.url": server.url}
        apache.write(tmp_path / "theirs", ROWS, given)
        execute(LocalEngine(), open_storage(str(tmp_path / "ours")), ROWS, given)
    (path, theirs, posted), (own_path, ours, own) = server.posted
    assert own_path == path
    for name in ("content-type", "hudi-callback-key", "x-job", "x-run"):
        values = [[v for k, v in headers.items() if k.lower() == name] for headers in (theirs, ours)]
        assert values[0] == values[1], name
    assert own.pop("completionTime") > own["commitTime"]
    assert set(own) == set(posted)
    # Of these Apache Hudi 0.15 posts only that there is something.
    assert own["commitActionType"].pop("val") == "commit"
    extra = own["extraMetadata"].pop("val")
    assert (extra.pop("_job"), set(extra)) == ("run 7", {"schema", "hudi.index.type"})
    for name in ("commitActionType", "extraMetadata"):
        assert own[name] == posted[name]
    assert own["tableName"] == posted["tableName"]
    assert len(own["commitTime"]) == len(posted["commitTime"])
    assert own["basePath"].rpartition("/")[0] == posted["basePath"].rpartition("/")[0]
    stats = [sorted(m["hoodieWriteStat"], key=lambda s: s["partitionPath"]) for m in (own, posted)]
    for mine, their in zip(*stats, strict=True):
        assert {k: v for k, v in mine.items() if k not in OF_THE_RUN} == {
            k: v for k, v in their.items() if k not in OF_THE_RUN
        }, json.dumps(their)
