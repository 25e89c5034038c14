"""Dry runs of services: refused where the run would be, and nothing is changed."""

import pyarrow as pa
import pytest

from hudi_format.errors import UnsupportedError
from hudi_timeline import HudiTable, table_config

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
CONSISTENT = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def written(folder, table_type="COPY_ON_WRITE", options=None):
    table = HudiTable.create(
        folder, SCHEMA, record_keys="id", partition_fields="p", table_type=table_type, options=options
    )
    return [table.upsert(pa.table([["a"], ["x"], [v]], schema=SCHEMA)).instant for v in range(3)]


def test_an_index_that_a_table_cannot_have_is_refused_before_anything_is_made(tmp_path):
    written(
        str(tmp_path / "t"),
        options={"hoodie.populate.meta.fields": "false", "hoodie.metadata.enable": "false"},
    )
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="virtual keys"):
            HudiTable.open(str(tmp_path / "t")).build_index("record_index", dry_run=dry_run)
    assert not (tmp_path / "t" / ".hoodie" / "metadata").exists()


def refused(folder, act, properties, feature):
    table_config.update(HudiTable.open(folder)._storage, properties)
    table = HudiTable.open(folder)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError) as e:
            act(table, dry_run)
        assert e.value.details["feature"] == feature
    assert table.read().to_arrow().column("v").to_pylist() == [2]


@pytest.mark.req("OP-12")
@pytest.mark.parametrize("service", ["clean", "restore", "drop_index", "overwrite_properties"])
def test_a_table_of_a_version_that_is_not_written_is_refused(tmp_path, service):
    folder = str(tmp_path / "t")
    first = written(folder, options={"hoodie.metadata.enable": "true"})[0]

    def act(table, dry_run):
        new = {**table.config.properties, "hoodie.table.name": "u"}
        given = {"restore": (first,), "drop_index": ("files",), "overwrite_properties": (new,)}
        return getattr(table, service)(*given.get(service, ()), dry_run=dry_run)

    refused(folder, act, {"hoodie.table.version": "5"}, "table version 5")


@pytest.mark.parametrize("service", ["compact", "log_compact", "deduplicate"])
def test_new_base_files_of_a_table_that_has_others_are_refused(tmp_path, service):
    folder = str(tmp_path / "t")
    written(folder, "MERGE_ON_READ")

    def act(table, dry_run):
        return getattr(table, service)(dry_run=dry_run)

    refused(folder, act, {"hoodie.bootstrap.base.path": str(tmp_path / "b")}, "bootstrap")


@pytest.mark.parametrize("service", ["compact", "log_compact"])
def test_a_plan_is_executed_by_a_dry_run_no_more_than_by_a_run(tmp_path, service):
    folder = str(tmp_path / "t")
    written(folder, "MERGE_ON_READ")
    options = {"hoodie.log.compaction.blocks.threshold": "1"}
    assert getattr(HudiTable.open(folder), service)(mode="schedule", options=options).scheduled

    def act(table, dry_run):
        return getattr(table, service)(mode="execute", dry_run=dry_run)

    refused(folder, act, {"hoodie.bootstrap.base.path": str(tmp_path / "b")}, "bootstrap")


@pytest.mark.parametrize("mode", ["schedule", "schedule_and_execute"])
def test_a_resize_is_refused(tmp_path, mode):
    folder = str(tmp_path / "t")
    written(folder, "MERGE_ON_READ", CONSISTENT)

    def act(table, dry_run):
        return table.resize_buckets(mode=mode, dry_run=dry_run)

    refused(folder, act, {"hoodie.bootstrap.base.path": str(tmp_path / "b")}, "bootstrap")
