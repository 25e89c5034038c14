"""Keys that grow with time, made of UUIDs: against Python's own fields of UUIDs."""

import random
import uuid

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.errors import RecordKeyError, SchemaError
from hudi_format.keygen.ordered_keys import uuid1_to_uuid6, uuid4_to_uuid7, with_time_prefix


def version_1(seed):
    random.seed(seed)
    fields = (random.getrandbits(32), random.getrandbits(16), 0x1000 | random.getrandbits(12))
    return uuid.UUID(
        fields=(*fields, 0x80 | random.getrandbits(6), random.getrandbits(8), random.getrandbits(48))
    )


@pytest.mark.req("KG-04")
def test_version_6_sorts_as_the_moments_of_version_1():
    ids = [version_1(n) for n in range(300)]
    keys = uuid1_to_uuid6(pa.array([str(i) for i in ids] + [None]))
    assert keys[-1].as_py() is None
    made = [uuid.UUID(k) for k in keys.to_pylist()[:-1]]
    assert {u.version for u in made} == {6}
    assert {u.variant for u in made} == {uuid.RFC_4122}
    # RFC 9562: 32 + 16 + 12 bits of the moment, highest first.
    moment = [(u.int >> 96) << 28 | ((u.int >> 80) & 0xFFFF) << 12 | ((u.int >> 64) & 0xFFF) for u in made]
    assert moment == [i.time for i in ids]
    assert [u.int & ((1 << 64) - 1) for u in made] == [i.int & ((1 << 64) - 1) for i in ids]
    by_key = [i for _, i in sorted(zip(keys.to_pylist()[:-1], ids, strict=True))]
    assert [i.time for i in by_key] == sorted(i.time for i in ids)
    # The example of RFC 9562, appendix A.1 and A.5.
    example = pa.chunked_array([["C232AB00-9414-11EC-B3C8-9F6BDECED846"]])
    assert uuid1_to_uuid6(example).to_pylist() == ["1ec9414c-232a-6b00-b3c8-9f6bdeced846"]


@pytest.mark.req("KG-04")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_version_7_begins_with_the_milliseconds(unit):
    random.seed(7)
    ids = [uuid.UUID(int=random.getrandbits(128), version=4) for _ in range(100)]
    factor = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    moments = np.array([random.randrange(4_000_000_000) * factor + (factor > 1) * 7 for _ in ids])
    keys = uuid4_to_uuid7(pa.array(map(str, ids)), pa.array(moments).cast(pa.timestamp(unit, "Europe/Oslo")))
    made = [uuid.UUID(k) for k in keys.to_pylist()]
    assert {u.version for u in made} == {7}
    assert {u.variant for u in made} == {uuid.RFC_4122}
    assert [u.int >> 80 for u in made] == [int(m) * 1000 // factor for m in moments]
    kept = (1 << 76) - 1
    assert [u.int & kept for u in made] == [i.int & kept for i in ids]
    prefixed = with_time_prefix(pa.array(range(100)), pa.array(moments).cast(pa.timestamp(unit))).to_pylist()
    assert [p.split("-") for p in prefixed] == [
        [f"{int(m) * 1000 // factor:012x}", str(n)] for n, m in enumerate(moments)
    ]


@pytest.mark.req("KG-04")
def test_what_is_no_such_uuid_or_moment_is_refused():
    moment = pa.array([0], pa.timestamp("ms"))
    with pytest.raises(RecordKeyError, match=r"1 of 2 texts are not UUIDs of version 1, first 'nothing'"):
        uuid1_to_uuid6(pa.array([str(version_1(1)), "nothing"]))
    with pytest.raises(RecordKeyError, match="version 4"):
        uuid4_to_uuid7(pa.array([str(version_1(1))]), moment)
    with pytest.raises(RecordKeyError, match="1 of 1 creation times are before 1970"):
        with_time_prefix(pa.array(["a"]), pa.array([-1], pa.timestamp("ms")))
    with pytest.raises(SchemaError, match="not int64"):
        with_time_prefix(pa.array(["a"]), pa.array([1]))
    assert uuid4_to_uuid7(pa.array([str(uuid.uuid4()), None]), pa.array([None, 5], pa.timestamp("s"))).to_pylist() == [
        None, None,
    ]  # fmt: skip
