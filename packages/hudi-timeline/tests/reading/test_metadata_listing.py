"""Listings of wanted partitions through the metadata table are parts of the listing of all."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.listing import ThesePartitions
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.reading import metadata_listing
from hudi_timeline.reading.metadata_listing import MetadataFiles
from hudi_timeline.testing import MemoryStorage

ROWS = pa.table({"id": list("abcd"), "p": list("xyzz"), "v": [1, 2, 3, 4]})


@pytest.fixture
def lister():
    storage = MemoryStorage()
    table = HudiTable.create(storage, ROWS.schema, name="t", record_keys="id", partition_fields="p")
    table.upsert(ROWS, options={"hoodie.metadata.enable": "true"})
    return MetadataFiles.of(storage, load_snapshot(storage).timeline)


# `also` are the partitions of active commits: those of archived ones are in the metadata table alone.
@pytest.mark.parametrize("also", [(), ("x",), ("y",), ("x", "y", "z"), ("new", "x", "z")], ids=repr)
@pytest.mark.parametrize("wanted", [(), ("x",), ("x", "z"), ("new", "x", "y", "z")], ids=repr)
def test_wanted_partitions_have_the_files_that_they_have_among_all(lister, wanted, also):
    every = lister.listing(None, also).files
    assert all(every[p] for p in "xyz")
    asked = ThesePartitions(frozenset(wanted))
    found = lister.listing(asked, also)
    assert found.files == {p: files for p, files in every.items() if p in wanted}
    view, looked_at = lister.view(asked, also)
    assert looked_at == sorted(found.files)
    names = view.files.column("name").to_pylist()
    assert sorted(names) == sorted(f.name for files in found.files.values() for f in files)


def test_where_active_commits_have_all_that_is_wanted_the_table_is_read_once(lister, monkeypatch):
    reads = []
    read = metadata_listing.read_partitions_and_files
    monkeypatch.setattr(
        metadata_listing, "read_partitions_and_files", lambda *args: reads.append(args) or read(*args)
    )
    monkeypatch.setattr(metadata_listing, "read_table_files", lambda *args: pytest.fail("read again"))
    lister.listing(ThesePartitions(frozenset("xz")), ["x", "y", "z"])
    assert len(reads) == 1
