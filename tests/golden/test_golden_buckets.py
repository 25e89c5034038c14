"""Bucket tables of Apache Hudi: written on in their file groups once the number of buckets is given, as it was.

They have four buckets, which only their file ids hint at.
"""

import pytest
from golden_tables import golden

from hudi_format.errors import ConflictingOptionError, OptionError
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot

INDEX, NUMBER = "hoodie.index.type", "hoodie.bucket.index.num.buckets"
ANEW = {"hoodie.metadata.enable": "false"}  # the metadata table is taken away, not kept


@pytest.mark.req("IX-11", "NEW-14")
@pytest.mark.parametrize("table", golden("v6", "bucket_consistent_mor"), ids=str)
def test_a_table_on_rings_that_were_split_is_written_on_without_a_word(table, tmp_path):
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    before = opened.read(meta_columns=True).to_arrow()
    groups = {(s.partition, s.file_id) for s in newest_slices_of(open_snapshot(opened.storage))}
    rows = before.select([n for n in before.column_names if not n.startswith("_hoodie_")])
    opened.upsert(rows, options=ANEW)
    opened = HudiTable.open(opened.uri)
    assert {(s.partition, s.file_id) for s in newest_slices_of(open_snapshot(opened.storage))} == groups
    keys = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    after = opened.read(meta_columns=True).to_arrow().sort_by(keys)
    assert after.select(rows.column_names).equals(before.sort_by(keys).select(rows.column_names))
    assert len(set(after.column("_hoodie_commit_time").to_pylist())) == 1  # each row found its file group


@pytest.mark.req("IX-22", "NEW-14")
@pytest.mark.parametrize("table", golden("v6", "bucket_simple_cow", "bucket_simple_mor"), ids=str)
def test_a_bucket_table_is_written_on_in_its_file_groups(table, tmp_path):
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    before = opened.read(meta_columns=True).to_arrow()
    groups = {(s.partition, s.file_id) for s in newest_slices_of(open_snapshot(opened.storage))}
    rows = before.select([n for n in before.column_names if not n.startswith("_hoodie_")])
    with pytest.raises(OptionError, match="says nowhere how many buckets"):
        opened.upsert(rows, options=ANEW)
    for number in ("2", "3", "8", "256"):
        with pytest.raises(ConflictingOptionError):
            opened.upsert(rows, options={**ANEW, INDEX: "BUCKET", NUMBER: number})
    opened.upsert(rows, options={**ANEW, INDEX: "BUCKET", NUMBER: "4"})
    opened = HudiTable.open(opened.uri)
    assert {(s.partition, s.file_id) for s in newest_slices_of(open_snapshot(opened.storage))} == groups
    keys = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    after = opened.read(meta_columns=True).to_arrow().sort_by(keys)
    assert after.select(rows.column_names).equals(before.sort_by(keys).select(rows.column_names))
    assert len(set(after.column("_hoodie_commit_time").to_pylist())) == 1  # each row found its file group
