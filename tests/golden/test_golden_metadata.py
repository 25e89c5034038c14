"""The metadata tables of the golden tables: read as tables, and as listings that storage confirms."""

import zipfile

import pyarrow as pa
import pytest
from golden_tables import ROOT, GoldenTable, golden

from hudi_format.errors import CorruptFileError
from hudi_timeline.metadata_listing import (
    GONE,
    NOT_LISTED,
    OTHER_SIZE,
    Difference,
    differences,
    list_by_metadata,
)
from hudi_timeline.table import HudiTable

FOLDER = ".hoodie/metadata"


def has_metadata(table: GoldenTable) -> bool:
    with zipfile.ZipFile(ROOT / table.version / f"{table.name}.zip") as archive:
        return f"{table.name}/{FOLDER}/.hoodie/hoodie.properties" in archive.namelist()


TABLES = [t for v in ("v6", "v8", "v9") for t in golden(v) if has_metadata(t)]
ALL_INDEXES = [t for t in TABLES if t.name == "mdt_all_indexes"]


@pytest.mark.req("TL-13", "LF-16", "MT-01", "MT-02", "MT-03")
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_its_listing_is_that_of_storage(table, tmp_path):
    storage = HudiTable.open(str(table.unpack(tmp_path))).storage
    assert differences(storage) == []


@pytest.mark.req("TL-13", "LF-16")
@pytest.mark.parametrize("table", ALL_INDEXES, ids=str)
def test_it_is_a_table_of_typed_rows(table, tmp_path):
    path = table.unpack(tmp_path)
    rows = HudiTable.open(str(path / FOLDER)).read().to_arrow()
    assert rows.schema.field("filesystemMetadata").type.key_type == pa.string()
    kinds = set(rows.column("type").to_pylist())
    assert kinds >= {1, 2, 3, 4, 5}
    keys = [r["key"] for r in rows.to_pylist() if r["type"] == 5]
    snapshot = table.question("snapshot").expected()
    assert sorted(keys) == sorted(snapshot.column("_hoodie_record_key").to_pylist())
    # Bounds of an ordering column are unions of every type that a column may have: one member has the value.
    field = table.meta["ordering_field"]
    bounds = [
        r["ColumnStatsMetadata"] for r in rows.to_pylist()
        if r["type"] == 3 and r["ColumnStatsMetadata"]["columnName"] == field
    ]  # fmt: skip
    known = [[m for m in b["maxValue"].values() if m is not None] for b in bounds if b["maxValue"]]
    assert {len(k) for k in known} == {1}
    values = pa.compute.max(snapshot.column(field)).as_py()
    assert max(k[0]["value"] for k in known) >= values


def test_one_that_lies_is_found_out(tmp_path):
    (table,) = golden("v6", "mor_avro_logs")
    path = table.unpack(tmp_path)
    storage = HudiTable.open(str(path)).storage
    listed = list_by_metadata(storage).files
    partition = min(listed)
    first, second = sorted(listed[partition])[:2]
    (path / partition / first).unlink()
    (path / partition / second).write_bytes(b"longer or shorter")
    (path / partition / "stranger_1-0-1_20300101000000000.parquet").write_bytes(b"x")
    assert differences(storage) == sorted(
        [
            Difference(partition, first, GONE, listed[partition][first], None),
            Difference(partition, second, OTHER_SIZE, listed[partition][second], 17),
            Difference(partition, "stranger_1-0-1_20300101000000000.parquet", NOT_LISTED, None, 1),
        ],
        key=lambda d: d.name,
    )


def test_a_write_that_is_not_completed_does_not_count(tmp_path):
    (table,) = golden("v6", "mor_avro_logs")
    path = table.unpack(tmp_path)
    last = HudiTable.open(str(path)).timeline.completed_writes()[-1]
    (path / last.path).unlink()
    found = differences(HudiTable.open(str(path)).storage)
    assert found
    assert {d.kind for d in found} == {NOT_LISTED}
    names = [d.name for d in found]
    assert all(last.time in n or ".log." in n for n in names)


def test_a_damaged_one_is_an_error(tmp_path):
    (table,) = golden("v6", "mdt_all_indexes")
    path = table.unpack(tmp_path)
    file = sorted((path / FOLDER / "files").glob("*.hfile"))[-1]
    data = bytearray(file.read_bytes())
    data[60] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(CorruptFileError) as e:
        list_by_metadata(HudiTable.open(str(path)).storage)
    assert file.name in str(e.value)
