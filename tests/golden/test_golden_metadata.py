"""The metadata tables of the golden tables: read as tables, and as listings that storage confirms."""

import zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import AS_OF, ROOT, SNAPSHOT, GoldenTable, golden

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_timeline.reading.metadata_listing import (
    GONE,
    NOT_LISTED,
    OTHER_SIZE,
    Difference,
    differences,
    list_by_metadata,
)
from hudi_timeline.table import HudiTable

FOLDER = ".hoodie/metadata"
THROUGH = {"hoodie.metadata.enable": "true"}


def has_metadata(table: GoldenTable) -> bool:
    with zipfile.ZipFile(ROOT / table.version / f"{table.name}.zip") as archive:
        return f"{table.name}/{FOLDER}/.hoodie/hoodie.properties" in archive.namelist()


TABLES = [t for v in ("v6", "v8", "v9") for t in golden(v) if has_metadata(t)]
ALL_INDEXES = [t for t in TABLES if t.name == "mdt_all_indexes"]


@pytest.mark.req("TL-13", "LF-16", "MT-02", "MT-03")
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.sampled(8)
def test_its_listing_is_that_of_storage(table, tmp_path):
    storage = HudiTable.open(str(table.unpack(tmp_path))).storage
    assert differences(storage) == []


@pytest.mark.req("TL-13", "LF-16")
@pytest.mark.parametrize("table", ALL_INDEXES, ids=str)
@pytest.mark.sampled(3)
def test_it_is_a_table_of_typed_rows(table, tmp_path):
    path = table.unpack(tmp_path)
    rows = HudiTable.open(str(path / FOLDER)).read(meta_columns=True).to_arrow()
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


QUESTIONS = [(t, q) for t in TABLES for q in t.questions(SNAPSHOT, AS_OF)]


@pytest.mark.req("MT-03", "FS-09", "QR-11")
@pytest.mark.parametrize(("table", "question"), QUESTIONS, ids=[f"{t}-{q.name}" for t, q in QUESTIONS])
@pytest.mark.sampled(8)
def test_a_read_through_it_gives_the_same_rows(opened, table, question):
    read = opened(table)
    scan = read.read(as_of=question.instant, options=THROUGH, meta_columns=True)
    assert scan.to_arrow().equals(read.read(as_of=question.instant, meta_columns=True).to_arrow())


@pytest.mark.req("QR-11")
@pytest.mark.parametrize(
    "table", [t for t in TABLES if t.name in ("cow_partitioned", "mor_avro_logs")], ids=str
)
@pytest.mark.sampled(3)
def test_of_a_partition_that_is_wanted_alone_records_are_looked_up(opened, table):
    read = opened(table)
    field = table.meta["partition_fields"].split(",")[0]
    for value in set(read.read([field]).to_arrow()[field].to_pylist()):
        condition = pc.field(field) == value
        found = read.read(filter=condition, options=THROUGH, meta_columns=True)
        assert found.to_arrow().equals(read.read(filter=condition, meta_columns=True).to_arrow())
        assert found.count()
        # Partition columns of merge-on-read tables are those of the files, which a path does not rule out.
        assert table.merged or len(set(found.plan.files["partition"].to_pylist())) == 1


@pytest.mark.req("FS-14")
@pytest.mark.parametrize("name", ["cow_partitioned", "mor_avro_logs"])
def test_a_file_that_a_commit_wrote_and_it_does_not_list_is_an_error(tmp_path, name):
    """A writer that did not keep it up: what the newest commit wrote is not there."""
    (table,) = golden("v6", name)
    path = table.unpack(tmp_path)
    done = sorted((path / FOLDER / ".hoodie").glob("*.deltacommit"))
    done[-1].unlink()  # the metadata table's own newest commit
    read = HudiTable.open(str(path))
    with pytest.raises(MissingFileError):
        read.read(options=THROUGH).to_arrow()
    assert read.read().count()


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
