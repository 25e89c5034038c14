"""Files of rings: made once, by one of two writers, and gone with the commit that they belong to."""

import pytest

from hudi_format.errors import CorruptFileError, WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_index.bucket import new_bucket_file_id
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata
from hudi_index.extendible_hashing import HashingDirectory
from hudi_timeline.file_system_view.hashing_rings import RINGS, marker_path, ring_path
from hudi_timeline.transaction.ring_files import create_first_rings, delete_rings, refuse_new_rings

INDEX = ConsistentBucketIndex(2, ("id",))
T, LATER = "20240101000000000", "20240102000000000"


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


@pytest.mark.req("IX-11")
def test_two_writers_make_the_same_first_ring(storage):
    for _ in range(2):
        create_first_rings(storage, INDEX, ["a", "b/c", ""], instant=T)
    assert storage.read(ring_path("a", "0" * 14)) == HashingMetadata.initial("a", 2).render()
    with pytest.raises(WriteConflictError, match="2 buckets first, and this write's rows are for 3"):
        create_first_rings(storage, ConsistentBucketIndex(3, ("id",)), ["d", "a"], instant=T)
    assert storage.read(ring_path("a", "0" * 14)) == HashingMetadata.initial("a", 2).render()


def test_a_ring_that_is_known_is_not_made(storage):
    known = INDEX.with_rings({"a": HashingMetadata.initial("a", 2).renewed(T)})
    create_first_rings(storage, known, ["a"], instant=T)
    assert storage.list(RINGS) == []


@pytest.mark.req("IX-11")
def test_the_rings_of_an_instant_go_and_others_stay(storage):
    for partition in ("", "a", "b/c"):
        for instant in (T, LATER):
            for path in (ring_path, marker_path):
                storage.create(path(partition, instant), b"")
    delete_rings(storage, T)
    delete_rings(storage, T)
    left = [storage.info(path(p, i)) is not None for p in ("", "a", "b/c") for i in (T, LATER)
            for path in (ring_path, marker_path)]  # fmt: skip
    assert left == [False, False, True, True] * 3


def test_nothing_to_delete_is_nothing(storage):
    delete_rings(storage, T)


@pytest.mark.req("IX-11", "NEW-22")
@pytest.mark.parametrize("kind", [HashingMetadata, HashingDirectory])
def test_rows_of_buckets_that_became_others_are_refused(storage, kind):
    old = kind.initial("a", 3)
    ids = [new_bucket_file_id(n) if kind is HashingDirectory else old.nodes[n].file_id for n in range(3)]
    after = old.split(T, {1: 1}) if kind is HashingDirectory else old.resized(T, [1], [])
    storage.create(ring_path("a", T, kind), after.render())

    def refused(rivals, groups, before=lambda p: old):
        refuse_new_rings(storage, rivals, groups, before, instant="x", kind=kind)

    refused([LATER], [("a", ids[1])])
    refused([T], [("b", ids[1]), ("a", ids[0]), ("a", ids[2])])
    with pytest.raises(WriteConflictError, match="'a' other buckets first") as e:
        refused([LATER, T], [("b", ids[1]), ("a", ids[0]), ("a", ids[1])])
    assert e.value.details["file_groups"] == [f"a/{ids[1]}"]
    with pytest.raises(WriteConflictError):  # nothing tells how they were routed
        refused([T], [("a", ids[0])], lambda p: None)
    storage.publish(ring_path("a", T, kind), b"{}")
    with pytest.raises(CorruptFileError):
        refused([T], [("a", ids[0])])
