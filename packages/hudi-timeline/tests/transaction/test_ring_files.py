"""Files of rings: made once, by one of two writers, and gone with the commit that they belong to."""

import pytest

from hudi_format.errors import WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata
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


@pytest.mark.req("IX-11")
def test_rows_of_a_partition_that_got_another_ring_are_refused(storage):
    storage.create(ring_path("a", T), b"")
    refuse_new_rings(storage, [LATER], ["a", "b"], instant="x")
    refuse_new_rings(storage, [T], ["b"], instant="x")
    with pytest.raises(WriteConflictError, match="'a' other buckets first"):
        refuse_new_rings(storage, [LATER, T], ["a", "b"], instant="x")
