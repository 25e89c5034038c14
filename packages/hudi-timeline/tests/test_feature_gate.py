"""The feature gate: one line for each feature that a table may have and we do not handle."""

import json
from functools import partial

import pytest

from hudi_format.errors import UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import feature_gate, table_config
from hudi_timeline.feature_gate import GATE, check_read, check_service, check_write
from hudi_timeline.options.transaction_config import TransactionConfig, parse_transaction_options
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.avro_files import empty_replace_request, render
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import parse_instant_file

pytestmark = pytest.mark.req("OP-12")

BASE = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
}
T = "20260101000000000"
CLUSTERING = render(
    "HoodieRequestedReplaceMetadata",
    {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": []}, "version": 1},
)


def commit_of(*file_ids):
    stat = {"path": "p/f.parquet", "partitionPath": "p"}
    return json.dumps({"partitionToWriteStats": {"p": [{**stat, "fileId": i} for i in file_ids]}}).encode()


CHANCE = commit_of("00312345-49e7-4bf5-8b0c-5a5b1a6a1d6e-0")
MIXED = commit_of("00000000-49e7-4bf5-8b0c-5a5b1a6a1d6e-0", "f5d9e2c1-1c5d-4a5e-9a37-0a9d3a0b8f1c-0")

# name of the case, feature, properties, files below the table, access that is refused
CASES = [
    ("version 0", "unknown table version", {"hoodie.table.version": "0"}, {}, "read write"),
    ("version 4", "unknown table version", {"hoodie.table.version": "4"}, {}, "read write"),
    ("version 5", "table version 5", {"hoodie.table.version": "5"}, {}, "write"),
    ("version 7", "unknown table version", {"hoodie.table.version": "7"}, {}, "read write"),
    (
        "version 8",
        "table version 8",
        {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"},
        {},
        "write",
    ),
    (
        "version 9",
        "table version 9",
        {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"},
        {},
        "write",
    ),
    ("version 10", "unknown table version", {"hoodie.table.version": "10"}, {}, "read write"),
    ("layout 0", "timeline layout", {"hoodie.timeline.layout.version": "0"}, {}, "read write"),
    ("layout 2", "timeline layout", {"hoodie.timeline.layout.version": "2"}, {}, "read write"),
    ("layout 1 of version 8", "timeline layout", {"hoodie.table.version": "8"}, {}, "read write"),
    ("another format", "table format", {"hoodie.table.format": "iceberg"}, {}, "read write"),
    ("another type", "table type", {"hoodie.table.type": "SHREDDED"}, {}, "read write"),
    ("ORC", "base file format", {"hoodie.table.base.file.format": "ORC"}, {}, "write"),
    ("Lance", "base file format", {"hoodie.table.base.file.format": "LANCE"}, {}, "read write"),
    ("a user's class", "key generator", {"hoodie.table.keygenerator.class": "com.acme.Keys"}, {}, "write"),
    ("full bootstrap", "bootstrap", {"hoodie.bootstrap.base.path": "/src"}, {}, "write"),
    (
        "metadata bootstrap",
        "metadata-only bootstrap",
        {"hoodie.bootstrap.base.path": "/src"},
        {".hoodie/00000000000001.commit": b"{}"},
        "write",
    ),
    (
        "archived metadata bootstrap",
        "metadata-only bootstrap",
        {"hoodie.bootstrap.base.path": "/src"},
        {".hoodie/.aux/.bootstrap/.partitions/x.hfile": b"x"},
        "write",
    ),
    ("schema on read", "schema on read", {}, {f".hoodie/.schema/{T}.schemacommit": b"{}"}, "service"),
    ("pending restore", "pending restore", {}, {f".hoodie/{T}.restore.requested": b"x"}, "write"),
    ("restore inflight", "pending restore", {}, {f".hoodie/{T}.restore.inflight": b""}, "write"),
    (
        "pending clustering",
        "pending clustering",
        {},
        {f".hoodie/{T}.replacecommit.requested": CLUSTERING},
        "write",
    ),
    (
        "running clustering",
        "pending clustering",
        {},
        {f".hoodie/{T}.replacecommit.requested": CLUSTERING, f".hoodie/{T}.replacecommit.inflight": b""},
        "write",
    ),
    (
        "partition statistics",
        "metadata table indexes",
        {"hoodie.table.metadata.partitions": "files,partition_stats"},
        {},
        "write",
    ),
    (
        "index being built",
        "metadata table indexes",
        {
            "hoodie.table.metadata.partitions": "files",
            "hoodie.table.metadata.partitions.inflight": "column_stats",
        },
        {},
        "write",
    ),
    # and what is not refused:
    ("plain", "", {}, {f".hoodie/{T}.commit": MIXED}, ""),
    ("a chance number", "", {}, {f".hoodie/{T}.commit": CHANCE}, ""),
    ("files only", "", {"hoodie.table.metadata.partitions": "files"}, {}, ""),
    ("pending overwrite", "", {}, {f".hoodie/{T}.replacecommit.requested": empty_replace_request()}, ""),
    ("empty schema folder", "", {}, {f".hoodie/.schema/{T}.schemacommit.requested": b""}, ""),
    (
        "completed clustering",
        "",
        {},
        {
            f".hoodie/{T}.replacecommit.requested": CLUSTERING,
            f".hoodie/{T}.replacecommit": CommitMetadata(operation="CLUSTER", is_replace=True).to_json(),
        },
        "",
    ),
    ("merge on read", "", {"hoodie.table.type": "MERGE_ON_READ"}, {}, ""),
    ("pending compaction", "", {}, {f".hoodie/{T}.compaction.requested": b"x"}, ""),
    ("completed restore", "", {}, {f".hoodie/{T}.restore": b"x"}, ""),
]


def table(tmp_path, properties, files):
    storage = LocalStorage(str(tmp_path))
    for path, data in files.items():
        storage.publish(path, data)
    found = filter(None, (parse_instant_file(e.name) for e in storage.list(".hoodie")))
    return storage, table_config.TableConfig({**BASE, **properties}), Timeline.of_files(found)


def refusal(check, *arguments):
    try:
        check(*arguments)
    except UnsupportedError as e:
        return e
    return None


@pytest.mark.parametrize(
    ("feature", "properties", "files", "refused"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_feature_is_refused_where_it_could_be_damaged(tmp_path, feature, properties, files, refused):
    storage, config, timeline = table(tmp_path, properties, files)
    by_name = partial(check_service, also=["schema on read"])
    for access, check in (("read", check_read), ("write", check_write), ("service", by_name)):
        if access == "service" and refused != "service":
            continue
        error = refusal(check, storage, config, timeline, *([TransactionConfig()] * (access == "service")))
        assert (error is not None) == (access in refused), access
        if error is not None:
            assert error.details["feature"] == feature
            assert error.remedy
            assert error.table == storage.uri
            assert access in error.message or access == "service"


def test_every_entry_of_the_gate_has_a_case_and_every_case_an_entry():
    assert {c[1] for c in CASES if c[1]} == {entry.feature for entry in GATE}


def test_what_is_not_read_is_listed_with_a_reason():
    unread = {e.feature for e in GATE if feature_gate.READ in e.applies}
    assert unread == {e.feature for e in GATE if e.reason}
    assert unread == {
        "timeline layout", "unknown table version", "table format", "table type", "base file format",
    }  # fmt: skip


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_remedy_names_the_version_that_works(tmp_path, version):
    properties = {"hoodie.table.version": version, "hoodie.timeline.layout.version": "2"}
    storage, config, timeline = table(tmp_path, properties, {})
    error = refusal(check_write, storage, config, timeline)
    assert f"version {version}" in error.message
    assert "version 6" in error.remedy
    assert "Apache Hudi 1." in error.remedy


@pytest.mark.parametrize("given", [None, TransactionConfig(), TransactionConfig(metadata_enable=True)])
def test_other_indexes_are_given_up_only_if_the_user_says_so(tmp_path, given):
    storage, config, timeline = table(
        tmp_path, {"hoodie.table.metadata.partitions": "files,partition_stats"}, {}
    )
    error = refusal(check_write, storage, config, timeline, given)
    assert "partition_stats" in error.message
    assert "hoodie.metadata.enable=false" in error.remedy
    check_write(storage, config, timeline, parse_transaction_options({"hoodie.metadata.enable": "False"}))


# Read right through this version; everything else that Apache Hudi 0.15 wrote is refused by its feature.
READABLE = {
    "cow_partitioned", "cow_nonpartitioned", "cow_complex_keys_hive_style_urlencoded", "all_types_cow",
    "cow_no_metadata_table", "cow_insert_overwrite", "cow_rollback", "multi_file_groups",
    "single_commit_large_row_groups", "empty_table", "empty_first_write",
}  # fmt: skip


def test_the_golden_tables_are_let_through_or_refused_by_feature(golden_timelines):
    refused = {}
    for folder in sorted(golden_timelines.glob("v6/*")):
        storage = LocalStorage(str(folder))
        config = table_config.load(storage)
        files = filter(None, (parse_instant_file(e.name) for e in storage.list(".hoodie")))
        timeline = Timeline.of_files(files)
        for access, check in (("read", check_read), ("write", check_write)):
            error = refusal(check, storage, config, timeline)
            refused[access, folder.name] = error.details["feature"] if error else ""
    for name in READABLE:
        assert refused["read", name] == ""
        assert refused["write", name] == ""
    assert refused["write", "bucket_simple_cow"] == ""
    assert refused["read", "bucket_simple_cow"] == ""
    assert refused["write", "cdc_cow_data_before"] == ""
    assert refused["write", "record_index"] == refused["write", "mdt_all_indexes"] == ""
    assert refused["write", "virtual_keys"] == ""
    assert refused["write", "custom_keygen"] == refused["write", "cow_timestamp_keygen"] == ""
    assert refused["write", "bootstrap_full_record"] == "bootstrap"
    assert refused["write", "bootstrap_metadata_only"] == "metadata-only bootstrap"
    assert refused["read", "mor_avro_logs"] == ""
    assert refused["write", "mor_avro_logs"] == refused["write", "mor_pending_compaction"] == ""
    assert refused["read", "drop_partition_columns"] == refused["write", "drop_partition_columns"] == ""
    buckets = {name for (access, name), feature in refused.items() if feature == "bucket index"}
    assert buckets == set()


def test_without_a_timeline_the_configuration_alone_is_checked(tmp_path):
    storage, config, _ = table(tmp_path, {}, {f".hoodie/{T}.restore.requested": b"x"})
    check_write(storage, config)
    assert feature_gate.READ in feature_gate.BOTH
