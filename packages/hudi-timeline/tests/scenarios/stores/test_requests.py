"""How many requests a write to S3 makes: what is known is not asked for again."""

import collections

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

PARTITIONS = 4
ROWS = pa.table(
    {"id": [f"k{n}" for n in range(40)], "p": [f"p{n % PARTITIONS}" for n in range(40)], "ts": list(range(40))}
)  # fmt: skip


@pytest.fixture
def requests(monkeypatch):
    """Each request to the store: its kind, the object or folder, and the range of bytes."""
    from aiobotocore.client import AioBaseClient

    seen = []
    plain = AioBaseClient._make_api_call

    async def call(self, kind, given):
        seen.append((kind, given.get("Key") or given.get("Prefix") or "", given.get("Range", "")))
        return await plain(self, kind, given)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", call)
    return seen


def test_an_upsert_asks_the_store_for_nothing_twice(s3_server, requests):
    uri = f"s3://{s3_server.new_bucket()}/t"
    table = HudiTable.create(
        uri, ROWS.schema, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        storage_options=s3_server.storage_options,
    )  # fmt: skip
    table.insert(ROWS)
    table = HudiTable.open(uri, storage_options=s3_server.storage_options)
    requests.clear()
    assert table.upsert(ROWS).updated == 40
    kinds = collections.Counter(kind for kind, _, _ in requests)
    looks = collections.Counter(r for r in requests if r[0] in ("HeadObject", "ListObjectsV2"))
    # A marker is looked at before its file is closed and after; the write itself, before and after each file.
    wanted = {("HeadObject", ".marker.MERGE"): 2, ("HeadObject", ".inflight"): 2 * PARTITIONS}
    for (kind, name, _), times in looks.items():
        most = next((n for (k, end), n in wanted.items() if k == kind and name.endswith(end)), 1)
        if name.endswith("t/.hoodie/"):
            # The plan, whether its files were cleaned until they were listed, under the lock at the beginning and at
            # the end, and the services afterwards.
            most = 5
        if name.endswith("/.temp/" + name.split("/")[-2] + "/"):
            most = 2  # before the commit, and to remove them
        assert times <= most, (kind, name, times)
    # Footer and data of a small file come with one request, once to look keys up and once to write.
    ranges = collections.Counter(name for kind, name, span in requests if span)
    assert set(ranges.values()) == {2}
    # The heartbeat; markers are deleted with one request, whatever their number.
    assert (kinds["DeleteObject"], kinds["DeleteObjects"]) == (1, 1)
