"""Partitions inside of partitions, and states that were cleaned, on an object store: what is asked for."""

import collections

import pyarrow as pa
import pytest

from hudi_format.errors import StaleSnapshotError
from hudi_timeline import HudiTable
from hudi_timeline.reading import stability

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
HARD = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.parquet.small.file.limit": "0",
}
PARTITIONS = ["2024", "2024/01", "_x", "d1", "d2", "d3"]


def rows(ts, partitions=PARTITIONS):
    return [{"id": p, "p": p, "v": ts, "ts": ts} for p in partitions]


@pytest.fixture
def table(s3_server):
    made = HudiTable.create(
        f"s3://{s3_server.new_bucket()}/t", SCHEMA, name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], storage_options=s3_server.storage_options,
    )  # fmt: skip
    made.upsert(rows(1), options=HARD)
    for ts in range(2, 6):
        made.upsert(rows(ts, ["d3"]), options=HARD)
    return made


@pytest.fixture
def requests(monkeypatch):
    """Each request to the store: its kind, and the object or folder."""
    from aiobotocore.client import AioBaseClient

    seen = []
    plain = AioBaseClient._make_api_call

    async def call(self, kind, given):
        seen.append((kind, (given.get("Key") or given.get("Prefix") or "").partition("t/")[2]))
        return await plain(self, kind, given)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", call)
    return seen


@pytest.mark.req("TL-05", "FS-09")
def test_each_folder_is_asked_for_once(table, requests):
    scan = table.read()
    requests.clear()
    assert sorted(f.rpartition("/")[0] for f in scan.files.column("path").to_pylist()) == sorted(PARTITIONS)
    listed = collections.Counter(name for kind, name in requests if kind == "ListObjectsV2")
    # Whether the timeline is still the same is the one request that a race with a cleaning costs.
    # And whether the archive has anything new to say of replaced file groups another one, where files are that old.
    assert listed == {"": 1, ".hoodie/": 1, ".hoodie/archived/": 1, **{f"{p}/": 1 for p in PARTITIONS}}
    scan = table.read(filter="p in ('2024/01', 'd1')")
    requests.clear()
    assert sorted(scan.to_arrow().column("p").to_pylist()) == ["2024/01", "d1"]
    listed = collections.Counter(name for kind, name in requests if kind == "ListObjectsV2")
    assert {n for n in listed if n in {f"{p}/" for p in PARTITIONS}} == {"2024/", "2024/01/", "d1/"}


@pytest.mark.req("CC-01", "QR-13")
def test_a_state_that_was_cleaned_is_refused(table, monkeypatch):
    monkeypatch.setattr(stability, "instants", lambda *_: [])  # as in another process
    scan = table.read()
    for ts in range(10, 16):
        table.upsert(rows(ts), options=HARD)
    with pytest.raises(StaleSnapshotError, match="were cleaned since"):
        scan.to_arrow()
    assert set(table.read().to_arrow().column("v").to_pylist()) == {15}
