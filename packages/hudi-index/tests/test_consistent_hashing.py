"""Rings of consistent hashing: their bytes, the file groups of keys, and what a resize makes of them."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import UnsupportedError
from hudi_index.bucket import locate
from hudi_index.consistent_hashing import (
    GREATEST,
    ConsistentBucketIndex,
    HashingMetadata,
    HashingNode,
    middle_of,
)

KEYS = pa.array([f"k{n}" for n in range(400)])
FIRST = HashingMetadata.initial("2024/01/01", 4)


@pytest.mark.req("IX-11")
def test_the_first_ring_is_apache_hudis():
    assert [(n.value, n.file_id_prefix) for n in FIRST.nodes] == [
        (536870912, "1eb58b75-0259-331f-a0f0-4963fe7228fe"),
        (1073741824, "6aa8b131-52a2-33a2-ab0a-1845c7711cd2"),
        (1610612736, "c482fdfe-44fb-3a0d-a044-c18e37687356"),
        (2147483647, "fcb4ecfc-7736-3784-a0af-373dea232423"),
    ]


@given(st.integers(1, 40), st.text(max_size=8))
def test_what_is_written_is_read(number, partition):
    ring = HashingMetadata.initial(partition, number)
    assert HashingMetadata.parse(ring.render(), partition) == ring
    assert ring.nodes[-1].value == GREATEST


def changed(**values):
    return json.dumps(json.loads(FIRST.render()) | values).encode()


NODE = {"value": 5, "fileIdPrefix": "a", "tag": "NORMAL"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no object"),
        (b'{"nodes": 3}', "no object"),
        (changed(nodes=[]), "no node"),
        (changed(partitionPath="x"), "of partition 'x'"),
        (changed(nodes=[NODE, NODE]), "two nodes"),
        (changed(nodes=[NODE, NODE | {"value": 6}]), "two nodes"),
        (changed(nodes=[NODE | {"value": True}]), "value"),
        (changed(nodes=[NODE | {"value": -1}]), "value"),
        (changed(nodes=[NODE | {"value": 2**31}]), "value"),
        (changed(nodes=[NODE | {"fileIdPrefix": "../x"}]), "prefix"),
        (changed(nodes=[NODE | {"fileIdPrefix": "a_b"}]), "prefix"),
        (changed(nodes=[NODE | {"tag": "REPLACE"}]), "not finished"),
        (changed(nodes=["x"]), "no object"),
        (changed(seqNo=None), "missing"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_ring_is_refused(content, why):
    with pytest.raises(ValueError, match=why):
        HashingMetadata.parse(content, FIRST.partition)


def test_a_newer_apache_hudi_may_say_more():
    assert HashingMetadata.parse(changed(more=[1]), FIRST.partition) == FIRST


@given(st.data())
def test_only_keys_of_resized_nodes_move(data):
    ring = HashingMetadata.initial("p", data.draw(st.integers(1, 12)))
    count = len(ring.nodes)
    split = data.draw(st.sets(st.integers(0, count - 1)))
    start, length = data.draw(st.integers(0, count - 1)), data.draw(st.integers(2, 4))
    run = [(start + n) % count for n in range(length)]
    merged = [run] if length <= count and not split & set(run) else []
    after = ring.resized("20240101000000000", split, merged)
    assert len(after.nodes) == count + len(split) - sum(len(r) - 1 for r in merged)
    assert after.seq_no == 1
    assert after.values == sorted(after.values)
    old, new = (ConsistentBucketIndex(1, ("id",), {"p": r}) for r in (ring, after))
    gone = split.union(*merged)
    for was, now in zip(old.of(KEYS, "p").tolist(), new.of(KEYS, "p").tolist(), strict=True):
        if was in gone:  # to a file group that is new
            assert after.nodes[now].file_id not in {n.file_id for n in ring.nodes}
        else:
            assert after.nodes[now] == ring.nodes[was]
    for number, node in enumerate(ring.nodes):
        assert ring.keeps(node.file_id, after) == (number not in gone)
    assert not ring.keeps("none-0", after)


@pytest.mark.parametrize(
    ("split", "merged"),
    [([0, 0], []), ([0], [[0, 1]]), ([], [[0, 2]]), ([], [[1]]), ([4], []), ([], [[3, 0, 1, 2, 3]])],
)
def test_an_impossible_resize_is_refused(split, merged):
    with pytest.raises(ValueError, match=r"once|neighbours|has 4 nodes"):
        FIRST.resized("x", split, merged)


def test_a_node_without_a_middle_is_not_split():
    assert middle_of(4, 5) is None
    assert middle_of(4, 6) == 5
    assert middle_of(GREATEST, 1) == 0
    ring = HashingMetadata("p", "x", 2, 0, (HashingNode(4, "a"), HashingNode(5, "b")))
    assert ring.resized("y", [1], []).nodes == ring.nodes


def test_a_partition_without_a_ring_has_its_first_one():
    index = ConsistentBucketIndex(4, ("id",), {"q": HashingMetadata.initial("q", 7)})
    codes = np.arange(len(KEYS), dtype=np.int32) % 2
    groups, location = locate(index, KEYS, codes, ["2024/01/01", "q"], {}, table="t")
    assert len(groups) == 4 + 7
    for code, partition in enumerate(("2024/01/01", "q")):
        ids = {n.file_id for n in index.ring(partition).nodes}
        assert {f for c, f in groups if c == code} == ids
        mine = KEYS.filter(pa.array(codes == code))
        want = [index.new_file_id(partition, n) for n in index.of(mine, partition).tolist()]
        assert [groups[n][1] for n in location[codes == code].tolist()] == want


def test_a_file_group_off_the_ring_is_refused():
    index = ConsistentBucketIndex(4, ("id",))
    for file_id in ("00000001-x-0", FIRST.nodes[0].file_id_prefix, FIRST.nodes[0].file_id_prefix + "-1"):
        assert index.number(file_id, FIRST.partition) is None
        with pytest.raises(UnsupportedError, match="not on the ring"):
            index.groups(FIRST.partition, [file_id], table="t")
        with pytest.raises(UnsupportedError, match="not on the ring"):
            index.check_keys(KEYS, file_id, partition=FIRST.partition, table="t", path="f")
    with pytest.raises(UnsupportedError, match="belong to other buckets"):
        index.check_keys(KEYS, FIRST.nodes[0].file_id, partition=FIRST.partition, table="t", path="f")
