"""The record index by turns: Apache Hudi finds our keys with RECORD_INDEX, and we find its, in one table."""

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours

WRITE = "hoodie.datasource.write."
MADE = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.index.type": "RECORD_INDEX",
    **MADE,
}
# Of Apache Hudi 1.0: the table stays of version 6, and gets no index that was not asked for.
SIX = {
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
}
MOVES = "hoodie.record.index.update.partition.path"
TYPE = WRITE + "table.type"


def rows(step, keys, shift=0):
    return pa.table(
        {
            "id": pa.array([f"k{n}" for n in keys]),
            "p": pa.array([f"p{(n + shift) % 3}" for n in keys]),
            "ts": pa.array([step] * len(keys), pa.int64()),
            "v": pa.array([f"s{step}"] * len(keys)),
        }
    )


def content(table):
    names = ["id", "_hoodie_partition_path", "v"]
    return sorted(tuple(r[n] for n in names) for r in table.select(names).to_pylist())


@pytest.mark.req("IX-12")
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("version", "moves"), [("0.15.0", "false"), ("0.15.0", "true"), ("1.0.2", "false"), ("1.0.2", "true")]
)
@pytest.mark.sampled(8, values=False)
def test_each_finds_the_keys_of_the_other_by_the_record_index(tmp_path, pool, version, moves, table_type):
    apache, path = pool.get(version), tmp_path / "t"
    kept = (
        {}
        if version == "0.15.0"
        else {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    )
    model: dict[str, tuple[str, str]] = {}

    def turn(who, operation, step, keys, shift=0):
        data = rows(step, keys, shift)
        options = {**BASE, MOVES: moves, TYPE: table_type, WRITE + "operation": operation}
        if who == "ours":
            result = execute(LocalEngine(2), open_storage(str(path)), data, options)
            assert not [w for w in result.warnings if "record index" in w], result.warnings
            if step:
                assert (result.lookup.index, result.lookup.opened) == ("RECORD_INDEX", 0)
        else:
            apache.write(path, data, {**options, **kept})
        for row in data.to_pylist():
            if operation == "delete":
                model.pop(row["id"], None)
            elif row["id"] in model and moves == "false":
                model[row["id"]] = (model[row["id"]][0], row["v"])
            else:
                model[row["id"]] = (row["p"], row["v"])
        want = sorted((k, *v) for k, v in model.items())
        assert content(ours.read(path)) == want, (who, operation, step)

    turn("ours", "upsert", 0, range(12))
    turn("apache", "upsert", 1, range(6, 18), shift=1)
    turn("ours", "upsert", 2, range(3, 21), shift=2)
    turn("apache", "delete", 3, range(0, 20, 5), shift=1)
    turn("ours", "upsert", 4, range(0, 24, 2))
    turn("ours", "delete", 5, range(1, 24, 4), shift=1)
    turn("apache", "upsert", 6, range(24))
    assert content(apache.read(path)) == sorted((k, *v) for k, v in model.items())
    index = MetadataTable.of(open_snapshot(open_storage(str(path)))).scan("record_index")
    assert sorted(index.column("key").to_pylist()) == sorted(model)
    if version == "0.15.0":
        assert [f for f in HudiTable.open(str(path)).verify(deep=True) if ".crc" not in f.path] == []
