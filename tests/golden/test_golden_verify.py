"""`verify` finds nothing on tables that Apache Hudi wrote, of any version."""

import pytest
from golden_tables import assert_same_answer, golden

from hudi_timeline.table import HudiTable

TABLES = [t for v in ("v5", "v6", "v8", "v9") for t in golden(v)]


@pytest.mark.req("NEW-09")
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_nothing_is_found(table, tmp_path):
    assert HudiTable.open(str(table.unpack(tmp_path))).verify(deep=True) == []


UNDONE = {
    "rollback": lambda t: t.rollback(t.timeline.completed_writes()[-1].time),
    "restore": lambda t: t.restore(t.timeline.completed_writes()[-2].time),
    "clean": lambda t: t.clean(options={"hoodie.cleaner.commits.retained": "1"}),
    "archive": lambda t: t.archive(
        options={
            "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1",
        }
    ),
}  # fmt: skip


@pytest.mark.req("NEW-09", "TS-19")
@pytest.mark.parametrize("service", UNDONE)
@pytest.mark.parametrize(
    "table", golden("v6", "cow_clustered", "mor_avro_logs", "mor_pending_compaction", "mor_rollback"), ids=str
)
@pytest.mark.sampled(8)
def test_nothing_is_found_after_our_services(table, service, tmp_path):
    changed = HudiTable.open(str(table.unpack(tmp_path)))
    UNDONE[service](changed)
    assert changed.verify(deep=True) == []


@pytest.mark.req("NEW-08", "NEW-09")
def test_a_table_on_s3_is_looked_at_and_repaired(s3_server, tmp_path):
    (table,) = golden("v6", "cow_complex_keys_hive_style_urlencoded")
    path, bucket = table.unpack(tmp_path), s3_server.new_bucket()
    for file in path.rglob("*"):
        if file.is_file():
            s3_server.client.upload_file(str(file), bucket, f"w/{file.relative_to(path)}")
    stored = HudiTable.open(f"s3a://{bucket}/w", storage_options=s3_server.storage_options)
    partition = str(min(path.rglob(".hoodie_partition_metadata")).parent.relative_to(path))
    markers = ".hoodie/.temp/20990101000000000"
    for name in (
        f"{markers}/a.parquet.marker.CREATE",
        f"{partition}/part-0.parquet",
        ".hoodie/metadata/files/x.hfile",
    ):
        s3_server.client.put_object(Bucket=bucket, Key=f"w/{name}", Body=b"?")
    found = stored.verify(deep=True)
    expected = {("markers-left", markers), ("name-unknown", f"{partition}/part-0.parquet"),
                ("name-unknown", ".hoodie/metadata/files/x.hfile")}  # fmt: skip
    assert {(f.code, f.path) for f in found} == expected
    result = stored.repair()
    assert result.left == ()
    assert stored.storage.list(".hoodie/metadata") == []  # with its foreign file it was taken away as a whole
    assert stored.storage.read(f"{result.folder}/{partition}/part-0.parquet") == b"?"
    assert_same_answer(stored.read(meta_columns=True).to_arrow(), table.question("snapshot").expected())
