"""Repairs that Apache Hudi's command line has."""

import pyarrow.parquet as pq
import pytest
from converted_tables import opened, tree
from made_tables import at, file_id, ids

from hudi_format.errors import CorruptFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.services import hudi_cli_repairs
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import load_timeline


def context(made):
    return ServiceContext(LocalStorage(str(made.path)))


@pytest.mark.req("NEW-08")
def test_partition_metadata_is_made_where_committed_files_have_none(made):
    (made.path / "q/.hoodie_partition_metadata").unlink()
    made.base_file(at(9), "r/s", file_id(9), [{"id": "x", "v": 1}])  # of no completed instant
    (made.path / "r/s/.hoodie_partition_metadata").unlink()
    made.instant_file(f"{at(9)}.commit.requested")
    before = tree(made)
    planned = hudi_cli_repairs.add_partition_metadata(context(made), dry_run=True)
    assert [r.path for r in planned] == ["q/.hoodie_partition_metadata"]
    assert tree(made) == before
    hudi_cli_repairs.add_partition_metadata(context(made))
    assert b"commitTime=" + at(2).encode() in (made.path / "q/.hoodie_partition_metadata").read_bytes()
    assert hudi_cli_repairs.add_partition_metadata(context(made)) == ()


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"nonsense"])
def test_cleanings_without_a_plan_are_taken_away(made, content):
    made.instant_file(f"{at(3)}.clean.requested", content)
    made.instant_file(f"{at(3)}.clean.inflight", content)
    assert len(hudi_cli_repairs.remove_corrupt_cleans(context(made), dry_run=True)) == 2
    assert all(r.done for r in hudi_cli_repairs.remove_corrupt_cleans(context(made)))
    assert load_timeline(LocalStorage(str(made.path)), opened(made).config).pending("clean") == ()


def test_empty_commits_are_shown_though_the_table_cannot_be_read(made):
    made.instant_file(f"{at(3)}.commit")
    with pytest.raises(CorruptFileError):
        opened(made).read()
    assert [i.time for i in hudi_cli_repairs.empty_commits(LocalStorage(str(made.path)))] == [at(3)]


def test_partition_metadata_becomes_parquet(made):
    assert len(hudi_cli_repairs.migrate_partition_metadata(context(made), dry_run=True)) == 2
    hudi_cli_repairs.migrate_partition_metadata(context(made))
    footer = pq.read_metadata(made.path / "q/.hoodie_partition_metadata.parquet").metadata
    assert (footer[b"commitTime"], footer[b"partitionDepth"]) == (at(2).encode(), b"1")
    assert opened(made).config.partition_metafile_base_format
    assert list_partitions(LocalStorage(str(made.path)), opened(made).config) == ["p", "q"]
    assert ids(opened(made).read().to_arrow()) == ["a", "b"]
