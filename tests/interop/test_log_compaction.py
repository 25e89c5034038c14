"""Log compaction beside Apache Hudi 0.15.0: either executes what the other planned, and both read and write on.

Apache Hudi reads with its optimized scan of log blocks, which passes over those that were merged, and without it.
"""

import json

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.timeline import avro_files
from interop.rows import assert_same_rows

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
INLINE = {
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.blocks.threshold": "3",
    "hoodie.optimized.log.blocks.scan.enable": "true",
}
TWO = {"hoodie.log.compaction.blocks.threshold": "2"}


def rows(step, numbers, partitions="ab"):
    return pa.Table.from_pylist(
        [{"k": f"{p}{i}", "p": p, "ts": step, "v": str(step)} for p in partitions for i in numbers],
        schema=SCHEMA,
    )


@pytest.fixture(params=["false", "true"], ids=["listed", "metadata"])
def both(pool, tmp_path, request):
    return Both(pool.get("0.15.0"), tmp_path / "t", {"hoodie.metadata.enable": request.param})


class Both:
    """A table that both write and read."""

    def __init__(self, apache, path, metadata):
        self.apache, self.path, self.metadata = apache, path, metadata
        self.theirs(0, range(7), operation="insert")

    @property
    def table(self):
        return HudiTable.open(str(self.path))

    def theirs(self, step, numbers, operation="upsert", **more):
        given = {**OPTIONS, **self.metadata, **more, "hoodie.datasource.write.operation": operation}
        self.apache.write(self.path, rows(step, numbers), given)

    def ours(self, step, numbers, **more):
        self.table.upsert(rows(step, numbers), options={**OPTIONS, **self.metadata, **more})

    def same(self):
        """All readers give the same rows, and nothing is wrong with the table; the rows without names of files."""
        mine = self.table.read(meta_columns=True).to_arrow()
        for scan in ("false", "true"):
            given = {**self.metadata, "hoodie.optimized.log.blocks.scan.enable": scan}
            assert_same_rows(mine, self.apache.read(self.path, **given), ["k"])
        assert self.table.verify(deep=True) == []
        return mine.drop_columns(["_hoodie_file_name"])

    def operations(self):
        return [c["operation"] for c in self.table.inspect.commits().to_pylist()]


@pytest.mark.sampled(2)
def test_both_read_and_go_on_from_log_compactions_of_either(both):
    both.ours(1, range(3))
    both.table.delete("k = 'a6'", options={**OPTIONS, **both.metadata})
    both.ours(2, range(1, 4))
    before = both.same()
    assert both.table.log_compact(options={**TWO, **both.metadata}).executed
    assert_same_rows(both.same(), before, ["k"])
    both.theirs(3, range(2), **INLINE)
    both.theirs(4, range(1, 5), **INLINE)
    before = both.same()
    assert both.operations().count("LOG_COMPACT") >= 2
    both.ours(5, range(2), **INLINE)
    both.same()
    both.theirs(
        6, range(1), **{"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    )
    both.same()
    assert "COMPACT" in both.operations()


@pytest.mark.slow
def test_apache_hudi_executes_our_plan_and_our_plan_is_as_its_own(both):
    both.ours(1, range(3))
    both.ours(2, range(1, 4))
    both.ours(3, range(2, 5))
    planned = both.table.log_compact(mode="schedule", options={**INLINE, **both.metadata}).scheduled
    assert planned
    before = both.same()
    both.theirs(4, range(7, 8), **INLINE)  # its services run what is pending; the new keys go elsewhere
    commit = json.loads((both.path / f".hoodie/{planned}.deltacommit").read_bytes())
    assert commit["operationType"] == "LOG_COMPACT"
    after = both.same()
    assert after.num_rows == before.num_rows + 2
    both.theirs(5, range(3), **INLINE)
    both.theirs(6, range(3), **INLINE)
    (found, *_) = sorted((both.path / ".hoodie").glob("*.logcompaction.requested"), reverse=True)
    assert found.name.partition(".")[0] != planned
    ours, theirs = (
        avro_files.parse("HoodieCompactionPlan", f.read_bytes())
        for f in (both.path / f".hoodie/{planned}.logcompaction.requested", found)
    )
    for key in ("strategy", "preserveHoodieMetadata", "version", "extraMetadata"):
        assert ours[key] == theirs[key] or not (ours[key] or theirs[key])
    both.same()


@pytest.mark.slow
def test_both_roll_back_log_compactions_of_either(both):
    both.ours(1, range(3))
    both.ours(2, range(1, 4))
    before = both.same()
    for _ in range(2):
        done = both.table.log_compact(options={**TWO, **both.metadata}).executed
        both.table.rollback(done[0])
        assert_same_rows(both.same(), before, ["k"])
    done = both.table.log_compact(options={**TWO, **both.metadata}).executed
    name = f"log_{both.path.parent.name}".replace("-", "_").replace("[", "").replace("]", "")
    both.apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{both.path}'")
    both.apache.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{done[0]}')")
    assert_same_rows(both.same(), before, ["k"])
    both.ours(3, range(2))
    both.same()
