"""Faults of bucket indexes: what `verify` says of sound tables, and of planted faults."""

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.hashing_rings import ring_path

NUMBER = "hoodie.bucket.index.num.buckets"
RING = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
FIRST = "0" * 14


def rows(ids):
    return pa.table({"id": ids, "p": ["a" for _ in ids], "ts": [1 for _ in ids]})


def make(path, **options):
    table = HudiTable.create(
        str(path), rows(["x"]).schema, table_type="MERGE_ON_READ", name="t", record_keys=["id"],
        partition_fields=["p"], options={"hoodie.index.type": "BUCKET", NUMBER: "4", **options},
    )  # fmt: skip
    table.upsert(rows([f"k{n}" for n in range(24)]))
    table.upsert(rows(["k1", "new"]))
    return HudiTable.open(table.uri)


def codes(table, *, deep=False):
    return [f.code for f in HudiTable.open(table.uri).verify(deep=deep)]


@pytest.mark.req("IX-11")
@pytest.mark.parametrize("more", [{}, RING], ids=["simple", "rings"])
def test_a_sound_table_has_no_finding(tmp_path, more):
    assert codes(make(tmp_path / "t", **more), deep=True) == []


@pytest.mark.parametrize("number", ["3", "8"])
def test_another_number_of_buckets_is_found(tmp_path, number):
    table = make(tmp_path / "t")
    table_config.update(open_storage(table.uri), {NUMBER: number})
    found = codes(table, deep=True)
    # Of fewer buckets a file group is none; keys stand in other ones.
    assert set(found) == ({"bucket-group", "bucket-keys"} if number == "3" else {"bucket-keys"})
    assert codes(table) == (["bucket-group"] if number == "3" else [])


@pytest.mark.req("IX-11")
def test_a_ring_that_lost_a_node_or_its_bytes_is_found(tmp_path):
    table = make(tmp_path / "t", **RING)
    storage = open_storage(table.uri)
    path = ring_path("a", FIRST)
    whole = storage.read(path)
    one = whole.replace(b'"fileIdPrefix" : "', b'"fileIdPrefix" : "x', 1)
    storage.publish(path, one)
    assert codes(table) == ["bucket-group"]
    storage.publish(path, whole[:40])
    found = HudiTable.open(table.uri).verify()
    assert [(f.code, f.path) for f in found] == [("ring-unreadable", path)]
    storage.publish(path, whole)
    assert codes(table, deep=True) == []
