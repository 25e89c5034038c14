"""Indexes of the metadata table built asynchronously by either: plans, results, and writes of both afterwards."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from hudi_timeline.metadata_table import index_build
from interop import ours
from interop.rows import assert_same_rows, without_meta
from interop.samples import SHAPES, Model, Rows

TYPE = "hoodie.datasource.write.table.type"
INDEXES = ("bloom_filters", "column_stats", "record_index")
LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
INDEXING = {
    "hoodie.table.name": "t",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.async": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": LOCK,
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true",
            "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.record.index.enable": "true",
            "hoodie.metadata.index.bloom.filter.enable": "true"}  # fmt: skip


def made(path, table_type):
    shape = SHAPES["simple"]
    HudiTable.create(
        str(path), shape.schema, name=shape.name, record_keys=list(shape.keys),
        partition_fields=list(shape.partitions), ordering_fields=["ts"], table_type=table_type,
    )  # fmt: skip
    return Rows(shape), Model(shape)


@pytest.mark.req("TM-16")
@pytest.mark.parametrize("executor", ["ours", "apache", "ours alone"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_plan_of_either_is_executed_by_the_other(tmp_path, apache, monkeypatch, table_type, executor):
    path = tmp_path / "t"
    rows, model = made(path, table_type)
    shape = SHAPES["simple"]

    def take(operation, given, **options):
        table = pa.Table.from_pylist(given, schema=shape.schema)
        result = ours.write(path, operation, table, options=options)
        assert result.warnings == ()
        model.apply(operation, given, [])

    take("insert", rows.new(20))
    take("upsert", rows.changed(list(model.rows.values()), 4), **{"hoodie.metadata.enable": "true"})
    real = index_build.read_content

    def beside(snapshot, partition, indexes):
        content = real(snapshot, partition, indexes)
        take("upsert", rows.new(2) + rows.changed(list(model.rows.values()), 3))
        take("delete", rows.some(list(model.rows.values()), 1))
        return content

    monkeypatch.setattr(index_build, "read_content", beside)
    if executor == "ours":
        planned = apache.schedule_index(path, INDEXES, INDEXING)
        result = HudiTable.open(str(path)).build_index(mode="execute", instant=planned)
        assert result.built == INDEXES
    elif executor == "apache":
        # Of several in one plan it builds the first, and stops at its own heartbeat of that.  Its client knows no
        # schema: it writes no records of columns, and fails to read keys of merged slices.
        options = {k: v for k, v in INDEXING.items() if "column.stats" not in k}
        its = ("bloom_filters", "record_index") if table_type == "COPY_ON_WRITE" else ("bloom_filters",)
        for index in its:
            take("upsert", rows.changed(list(model.rows.values()), 2))  # each has a time of its own there
            planned = HudiTable.open(str(path)).build_index(index, mode="schedule").scheduled
            assert apache.run_index(path, planned, options)
        result = HudiTable.open(str(path)).build_index(INDEXES)
        assert result.built == tuple(i for i in INDEXES if i not in its)
    else:
        assert HudiTable.open(str(path)).build_index(INDEXES).built == INDEXES
    table = HudiTable.open(str(path))
    assert table.config.metadata_partitions == ("bloom_filters", "column_stats", "files", "record_index")
    assert table.config.metadata_partitions_inflight == ()
    assert [f for f in table.verify(deep=True) if ".crc" not in f.path] == []
    options = {**shape.write_options(), **SKIPPING, TYPE: table_type, "hoodie.index.type": "RECORD_INDEX",
               "hoodie.datasource.write.operation": "upsert",
               "hoodie.datasource.write.row.writer.enable": "false"}  # fmt: skip
    given = rows.changed(list(model.rows.values()), 6) + rows.new(3)
    apache.write(path, pa.Table.from_pylist(given, schema=shape.schema), options)
    model.apply("upsert", given, [])
    take("upsert", rows.changed(list(model.rows.values()), 5))
    assert [f for f in HudiTable.open(str(path)).verify(deep=True) if ".crc" not in f.path] == []
    through = apache.read(path, **SKIPPING)
    assert_same_rows(without_meta(through), model.table(), ["uuid"], ordered_columns=False)
