"""Which ring of a partition counts, whatever lies beside it."""

import pytest

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.storage.open import open_storage
from hudi_index.consistent_hashing import HashingMetadata
from hudi_timeline.file_system_view.hashing_rings import (
    any_ring,
    has_rings,
    load_rings,
    marker_path,
    ring_path,
)
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.testing import TableBuilder

FIRST = HashingMetadata.initial("p/a", 2)
BEFORE, DONE, PENDING, GONE = (f"2024010{n}000000000" for n in (1, 3, 5, 4))


@pytest.fixture
def storage(tmp_path):
    made = open_storage(str(tmp_path / "t"))
    TableBuilder(made, table_type="MERGE_ON_READ")
    for name in ("20240102000000000.deltacommit", f"{DONE}.replacecommit"):
        made.create(f".hoodie/{name}", b'{"partitionToWriteStats": {}}')
    made.create(f".hoodie/{PENDING}.replacecommit.requested", b"")
    return made


def ring(storage, instant, content=None):
    made = FIRST.renewed(instant)
    storage.create(ring_path("p/a", instant), made.render() if content is None else content)
    return made


def loaded(storage):
    return load_rings(load_snapshot(storage), ["p/a", "q"])


def test_a_table_without_rings(storage):
    snapshot = load_snapshot(storage)
    assert not has_rings(snapshot)
    assert loaded(storage) == {}


@pytest.mark.req("IX-11")
@pytest.mark.parametrize("instant", [PENDING, GONE, BEFORE])
def test_a_ring_of_an_instant_that_is_not_completed_does_not_count(storage, instant):
    storage.create(ring_path("p/a", FIRST.instant), FIRST.render())
    ring(storage, instant)
    assert loaded(storage) == {"p/a": FIRST}
    snapshot = load_snapshot(storage)
    assert has_rings(snapshot)
    assert any_ring(snapshot) == FIRST


@pytest.mark.req("IX-11")
def test_a_ring_of_a_completed_instant_or_with_a_marker_counts(storage):
    storage.create(ring_path("p/a", FIRST.instant), FIRST.render())
    done = ring(storage, DONE)
    assert loaded(storage) == {"p/a": done}
    marked = ring(storage, GONE)
    storage.create(marker_path("p/a", GONE), b"")
    assert loaded(storage) == {"p/a": marked}


@pytest.mark.req("IX-11")
def test_a_ring_whose_instant_was_archived_counts_by_its_marker_or_its_files(storage):
    storage.create(ring_path("p/a", FIRST.instant), FIRST.render())
    old = ring(storage, BEFORE)
    storage.create(f"p/a/{old.nodes[1].file_id}_0-0-0_{BEFORE}.parquet", b"")
    assert loaded(storage) == {"p/a": old}
    later = "20240101120000000"
    newer = ring(storage, later)
    storage.create(f"p/a/{later}.commit", b"")  # where Apache Hudi 0.15 puts it
    assert loaded(storage) == {"p/a": newer}


@pytest.mark.parametrize("content", [b"", b"{}", FIRST.render().replace(b"p/a", b"p/b")])
def test_a_ring_that_cannot_be_read_is_an_error(storage, content):
    storage.create(ring_path("p/a", FIRST.instant), FIRST.render())
    ring(storage, DONE, content)
    with pytest.raises(CorruptFileError, match="no hashing metadata"):
        loaded(storage)


def test_rings_without_one_that_counts_are_an_error(storage):
    ring(storage, PENDING)
    with pytest.raises(MissingFileError, match="none before it"):
        loaded(storage)
