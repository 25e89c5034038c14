"""The list of repairs, and those that Apache Hudi's command line has."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from converted_tables import opened, tree
from made_tables import MadeTable, at, file_id, ids

from hudi_format.errors import CorruptFileError
from hudi_format.storage.local import LocalStorage
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.timeline.active_timeline import load_timeline
from hudi_timeline.verify.findings import KINDS
from hudi_timeline.verify.repair import repair_by_name
from hudi_timeline.verify.repairs import FINDING_REPAIRS, empty_commits


@pytest.fixture
def made(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    table.commit(at(1), {("p", file_id(1)): [{"id": "a", "v": 1}]})
    table.commit(at(2), {("q", file_id(2)): [{"id": "b", "v": 2}]})
    return table


def test_the_kinds_of_findings_with_a_repair_are_those_in_the_list():
    repairable = {
        code for code, kind in KINDS.items() if kind.repairable and not code.startswith("properties-")
    }
    assert FINDING_REPAIRS.keys() == repairable


def context(made):
    return ServiceContext(LocalStorage(str(made.path)))


@pytest.mark.req("NEW-08")
def test_partition_metadata_is_made_where_committed_files_have_none(made):
    (made.path / "q/.hoodie_partition_metadata").unlink()
    made.base_file(at(9), "r/s", file_id(9), [{"id": "x", "v": 1}])  # of no completed instant
    (made.path / "r/s/.hoodie_partition_metadata").unlink()
    made.instant_file(f"{at(9)}.commit.requested")
    before = tree(made)
    planned = repair_by_name(context(made), "addpartitionmeta", dry_run=True)
    assert [s.path for s in planned] == ["q/.hoodie_partition_metadata"]
    assert tree(made) == before
    repair_by_name(context(made), "addpartitionmeta")
    assert b"commitTime=" + at(2).encode() in (made.path / "q/.hoodie_partition_metadata").read_bytes()
    assert repair_by_name(context(made), "addpartitionmeta") == ()


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"nonsense"])
def test_cleanings_without_a_plan_are_taken_away(made, content):
    made.instant_file(f"{at(3)}.clean.requested", content)
    made.instant_file(f"{at(3)}.clean.inflight", content)
    assert len(repair_by_name(context(made), "corrupted-clean-files", dry_run=True)) == 2
    made_steps = repair_by_name(context(made), "corrupted-clean-files")
    assert [s.path.rpartition(".")[2] for s in made_steps] == ["inflight", "requested"]
    assert load_timeline(LocalStorage(str(made.path)), opened(made).config).pending("clean") == ()


def test_empty_commits_are_shown_though_the_table_cannot_be_read(made):
    made.instant_file(f"{at(3)}.commit")
    with pytest.raises(CorruptFileError):
        opened(made).read()
    assert [i.time for i in empty_commits(LocalStorage(str(made.path)))] == [at(3)]


def test_partition_metadata_becomes_parquet(made):
    assert (
        sum(s.note != "" for s in repair_by_name(context(made), "migrate-partition-meta", dry_run=True)) == 2
    )
    repair_by_name(context(made), "migrate-partition-meta")
    footer = pq.read_metadata(made.path / "q/.hoodie_partition_metadata.parquet").metadata
    assert (footer[b"commitTime"], footer[b"partitionDepth"]) == (at(2).encode(), b"1")
    assert opened(made).config.partition_metafile_base_format
    assert list_partitions(LocalStorage(str(made.path)), opened(made).config) == ["p", "q"]
    assert ids(opened(made).read().to_arrow()) == ["a", "b"]
