"""Prepped rows of tables that Apache Hudi 0.15.0 wrote: those of any earlier time go back if they are unchanged."""

from collections import Counter

import pytest
from golden_tables import golden

from hudi_format.errors import ConcurrentWriterError
from hudi_format.schema.meta_fields import FILE_NAME, META_COLUMNS
from hudi_timeline.table import HudiTable

TABLES = golden(
    "v6",
    "bucket_simple_mor",
    "mor_hfile_logs",
    "mor_log_compacted",
    "mor_partial_update_text_ordering",
    "payload_PartialUpdateAvroPayload",
)
OPTIONS = {"hoodie.datasource.write.operation": "upsert_prepped", "hoodie.compact.inline": "false"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def counted(rows, *left_out):
    return Counter(map(str, rows.drop_columns(list(left_out)).to_pylist()))


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(3)
def test_as_many_rows_are_refused_as_were_changed_since(tmp_path, table):
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    options = {**OPTIONS, **(BUCKETS if "bucket" in table.name else {})}
    now = opened.read(meta_columns=True).to_arrow()
    seen = 0
    for instant in opened.timeline.completed_writes()[:-1]:
        then = opened.read(as_of=instant.time, meta_columns=True).to_arrow()
        changed = (counted(then, FILE_NAME) - counted(now, FILE_NAME)).total()
        seen += changed
        if not changed:
            assert opened.upsert(then, options=options, dry_run=True).updated == then.num_rows
            continue
        with pytest.raises(
            ConcurrentWriterError, match=rf"\] {changed} rows of \d+ file groups with log files"
        ):
            opened.upsert(then, options=options)
    assert seen
    result = opened.upsert(now, options=options)
    assert (result.updated, result.inserted) == (now.num_rows, 0)
    after = HudiTable.open(opened.uri).read(meta_columns=True).to_arrow()
    assert counted(after, *META_COLUMNS) == counted(now, *META_COLUMNS)
