"""Directories of extendible hashing: what they say of a key, what a split moves, and what is none of them."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import UnsupportedError
from hudi_index.bucket import BucketIndex, new_bucket_file_id
from hudi_index.extendible_hashing import DEEPEST, DirectoryBucket, ExtendibleBucketIndex, HashingDirectory

KEYS = pa.array([f"k{n}" for n in range(400)])
FIELDS = ("id",)


@st.composite
def directories(draw):
    """A directory after some splits and merges."""
    found = HashingDirectory.initial("p", draw(st.integers(1, 6)))
    for _ in range(draw(st.integers(0, 5))):
        numbers = [b.number for b in found.buckets]
        pairs = sorted({p[0] for n in numbers if (p := found.pair(n)) is not None})
        if pairs and draw(st.booleans()):
            found = found.merged("1", [draw(st.sampled_from(pairs))])
        else:
            found = found.split("1", {draw(st.sampled_from(numbers)): draw(st.integers(1, 3))})
    return found


def index(directory):
    return ExtendibleBucketIndex(directory.num_buckets, FIELDS, {"p": directory})


@pytest.mark.req("IX-30")
@given(directories())
def test_each_key_has_the_one_bucket_of_its_hash(directory):
    found = index(directory).of(KEYS, "p")
    for bucket in directory.buckets:
        modulus = directory.num_buckets << bucket.depth
        simple = BucketIndex(modulus, FIELDS).of(KEYS)
        assert ((simple == bucket.number) == (found == bucket.number)).all()
    assert set(found.tolist()) <= {b.number for b in directory.buckets}


@given(directories())
def test_what_is_written_is_read(directory):
    assert HashingDirectory.parse(directory.render(), "p") == directory


@given(directories(), st.data())
def test_a_split_moves_the_keys_of_its_bucket_alone(directory, data):
    number = data.draw(st.sampled_from([b.number for b in directory.buckets]))
    after = directory.split("2", {number: 1})
    was, now = index(directory).of(KEYS, "p"), index(after).of(KEYS, "p")
    assert (was[was != now] == number).all()
    assert len(after.buckets) == len(directory.buckets) + 1
    assert (after.instant, after.seq_no) == ("2", directory.seq_no + 1)
    for bucket in directory.buckets:
        assert directory.keeps(new_bucket_file_id(bucket.number), after) == (bucket.number != number)
    assert not directory.keeps(new_bucket_file_id(directory.places), after)
    pair = after.pair(number)
    assert pair is not None
    assert after.merged("3", [pair[0]]).buckets == directory.buckets


@given(st.lists(st.integers(0, 2), min_size=len(KEYS), max_size=len(KEYS)))
def test_partitions_have_directories_of_their_own(codes):
    directory = HashingDirectory.initial("b", 3).split("1", {0: 2, 2: 1})
    found = ExtendibleBucketIndex(3, FIELDS, {"b": directory})
    numbers = found.numbers(KEYS, np.array(codes, np.int32), ["a", "b", "c"])
    alone = {p: found.of(KEYS, p) for p in "abc"}
    assert numbers.tolist() == [int(alone["abc"[c]][n]) for n, c in enumerate(codes)]
    assert alone["a"].tolist() == BucketIndex(3, FIELDS).of(KEYS).tolist()


def test_a_file_group_is_of_a_bucket_that_is_there():
    found = ExtendibleBucketIndex(2, FIELDS, {"p": HashingDirectory.initial("p", 2).split("1", {1: 2})})
    assert [found.number(new_bucket_file_id(n), "p") for n in range(9)] == [
        0, 1, None, 3, None, 5, None, 7, None,
    ]  # fmt: skip
    assert [found.number(new_bucket_file_id(n), "q") for n in range(3)] == [0, 1, None]
    assert found.most == 8
    with pytest.raises(UnsupportedError, match="none of the 5 buckets"):
        found.groups("p", [new_bucket_file_id(2)], table="t")


def changed(**values):
    return json.dumps(json.loads(HashingDirectory.initial("p", 2).render()) | values).encode()


def buckets(*pairs):
    return changed(buckets=[{"number": n, "depth": d} for n, d in pairs])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no object"),
        (changed(partitionPath="q"), "of partition 'q'"),
        (changed(seqNo=None), "missing"),
        (changed(numBuckets=0), "numBuckets is 0"),
        (changed(numBuckets=10**8), "numBuckets is 1"),
        (changed(buckets=[3]), "no bucket"),
        (changed(buckets=[{"number": True, "depth": 0}]), "no bucket"),
        (buckets((0, 0), (1, DEEPEST + 1)), "no bucket"),
        (buckets(), "no bucket"),
        (buckets((0, 0)), "no bucket"),
        (buckets((0, 0), (1, 1)), "no bucket"),
        (buckets((0, 0), (1, 1), (3, 1), (3, 1)), "of one number"),
        (buckets((0, 0), (1, 0), (3, 1)), "in another"),
        (buckets((0, 0), (2, 0)), "none of depth"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_directory_is_refused(content, why):
    with pytest.raises(ValueError, match=why):
        HashingDirectory.parse(content, "p")


def test_a_split_beyond_what_a_file_id_has_digits_for_is_refused():
    whole = HashingDirectory.initial("p", 1)
    with pytest.raises(ValueError, match="at most"):
        whole.children(DirectoryBucket(0, 0), DEEPEST + 1)
    with pytest.raises(ValueError, match="cannot be split"):
        whole.split("1", {1: 1})
    with pytest.raises(ValueError, match="no twin"):
        whole.merged("1", [0])
