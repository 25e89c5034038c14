"""Random keys of a BLOOM table are pointed out, once, and keys that grow with time are not."""

import random
import uuid

import pyarrow as pa
import pytest

from hudi_format.keygen.ordered_keys import uuid4_to_uuid7
from hudi_timeline import HudiTable
from hudi_timeline.writing.planning.keys import overlapping

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
BLOOM = {"hoodie.index.type": "BLOOM"}


def filled(path, keys_of):
    table = HudiTable.create(str(path), SCHEMA, name="t", record_keys=["id"])
    for number in range(9):
        keys = keys_of(number)
        table.bulk_insert({"id": keys, "v": [number] * len(keys)}, options=BLOOM)
    return table, keys


def random_uuids(number):
    random.seed(number)
    return [str(uuid.UUID(int=random.getrandbits(128), version=4)) for _ in range(20)]


def grown(number):
    moments = pa.array([number * 1000 + i for i in range(20)], pa.timestamp("s"))
    return uuid4_to_uuid7(pa.array(random_uuids(number)), moments).to_pylist()


@pytest.mark.req("KG-04")
def test_random_keys_of_a_bloom_table_are_pointed_out_once(tmp_path):
    table, keys = filled(tmp_path / "t", random_uuids)
    result = table.upsert({"id": keys, "v": [1] * 20}, options=BLOOM)
    (advice,) = [w for w in result.warnings if "key ranges" in w]
    assert "the keys are random (UUIDs of version 4)" in advice
    assert "hudi_format.keygen.ordered_keys" in advice
    again = table.upsert({"id": keys, "v": [2] * 20}, options=BLOOM)
    assert not [w for w in again.warnings if "key ranges" in w]


@pytest.mark.req("KG-04")
def test_keys_that_grow_are_ruled_out_by_range_and_need_no_advice(tmp_path):
    table, keys = filled(tmp_path / "t", grown)
    result = table.upsert({"id": keys, "v": [1] * 20}, options=BLOOM)
    assert result.lookup.by_range == 8
    assert not [w for w in result.warnings if "key ranges" in w]


def test_overlap_is_counted_by_pairs():
    assert overlapping([("a", "c"), ("c", "d"), ("e", "f")]) == pytest.approx(1 / 3)
    assert overlapping([("a", "c")]) == 0.0
