"""What the tasks of a version check count, without a session."""

import pickle

import pyarrow as pa
import pytest

from hudi_format.schema.meta_fields import COMMIT_SEQNO, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.open import open_storage
from hudi_spark.writing.version_check import GROUP, CountChanged
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.options import parse_write_options
from hudi_timeline.writing.latest_slices import LatestSlices
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.planning.write_plan import plan_write

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
OPTIONS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"]
    )  # fmt: skip
    made.insert(pa.table([["a", "b", "a", "b", "c"], ["x", "x", "y", "y", "y"], [1] * 5], schema=SCHEMA))
    made.upsert(pa.table([["a", "b"], ["x", "y"], [2] * 2], schema=SCHEMA), options=OPTIONS)
    return made


def stated(rows):
    groups = [name.partition("_")[0] for name in rows["_hoodie_file_name"].to_pylist()]
    return rows.select([RECORD_KEY, COMMIT_SEQNO, PARTITION_PATH]).append_column(GROUP, pa.array(groups))


def test_rows_that_are_another_record_are_counted_by_file_group(table):
    storage = open_storage(table.uri)
    snapshot = open_snapshot(storage)
    stale = table.read(as_of=table.timeline.completed_writes()[0].time, meta_columns=True).to_arrow()
    given = {"hoodie.datasource.write.operation": "upsert_prepped", "hoodie.table.name": "t"}
    plan = plan_write(LocalEngine(1), storage, stale, parse_write_options(given), "append")
    task = LatestSlices.of(snapshot, ["x", "y"]).look_up(plan, snapshot)
    work = pickle.loads(pickle.dumps(CountChanged(storage, task.slices)))
    rows = stated(stale).combine_chunks()
    found = [row for batch in work(rows.to_batches(max_chunksize=2)) for row in batch.to_pylist()]
    assert sorted((r[PARTITION_PATH], r["_hudi_changed"]) for r in found) == [("x", 1), ("y", 1)]
    assert {(r[PARTITION_PATH], r[GROUP]) for r in found} == set(task.slices.slices)
    now = stated(HudiTable.open(table.uri).read(meta_columns=True).to_arrow()).combine_chunks()
    assert {r["_hudi_changed"] for batch in work(now.to_batches()) for r in batch.to_pylist()} == {0}
    assert list(work([])) == []
    assert list(work(rows.slice(0, 0).to_batches())) == []
