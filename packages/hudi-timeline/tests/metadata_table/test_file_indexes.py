"""Statistics and bloom filters of files in the metadata table: made, kept, dropped, used."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from listed_tables import KEPT, TYPES, made, rows, table, write

from hudi_format.errors import ConflictingOptionError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_index.metadata_table import records as r
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table.file_indexes import indexed_columns
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.reading.metadata_listing import differences

STATS = {"hoodie.metadata.index.column.stats.enable": "true"}
BLOOMS = {"hoodie.metadata.index.bloom.filter.enable": "true"}


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


def partitions(storage):
    return table_config.load(storage).metadata_partitions


def sound(storage):
    assert HudiTable._of(storage).verify(deep=True) == []
    assert differences(storage) == []


@pytest.mark.req("MT-04", "MT-05", "MT-06", "MT-10")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.sampled(2)
def test_every_operation_keeps_what_footers_say(storage, table_type):
    made(storage, table_type)
    write(storage, rows(4, v=1), **STATS, **BLOOMS)  # of files that are there
    assert partitions(storage) == ("bloom_filters", "column_stats", "files")
    for step in (
        lambda: write(storage, rows(6, v=2)),
        lambda: write(storage, rows(3, 20), "insert"),
        lambda: write(storage, rows(2).select(["id", "p"]), "delete"),
        lambda: write(storage, rows(2, 30), "insert_overwrite"),
        lambda: table(storage).delete_partitions(["p1"]),
        lambda: table(storage, **{"hoodie.cleaner.commits.retained": "1"}).clean(),
    ):
        result = step()
        assert tuple(getattr(result, "warnings", ())) == ()
        sound(storage)
    assert partitions(storage) == ("bloom_filters", "column_stats", "files")


@pytest.mark.req("MT-05")
def test_a_read_leaves_files_out_by_what_a_write_said(storage):
    write(storage, rows(6), **KEPT, **STATS)
    write(storage, rows(6, 100, v=9), "bulk_insert")
    skipping = {**KEPT, "hoodie.enable.data.skipping": "true"}
    scan = HudiTable._of(storage).read(filter=pc.field("ts") > 5, options=skipping)
    assert "column_stats" in str(scan.explain())
    found = scan.to_arrow()
    assert sorted(found.column("id").to_pylist()) == [f"k{i}" for i in range(100, 106)]


def test_one_index_is_given_up_alone(storage):
    write(storage, rows(6), **KEPT, **STATS, **BLOOMS)
    result = write(storage, rows(6, v=1), **{"hoodie.metadata.index.column.stats.enable": "false"})
    assert any("column_stats of the metadata table was removed" in w for w in result.warnings)
    assert partitions(storage) == ("bloom_filters", "files")
    assert storage.info(f"{FOLDER}/column_stats") is None
    sound(storage)
    write(storage, rows(6, v=2), **STATS)
    assert partitions(storage) == ("bloom_filters", "column_stats", "files")
    sound(storage)


def test_a_file_without_filter_ends_bloom_filters_with_a_word(storage):
    write(storage, rows(6), **KEPT, **BLOOMS)
    result = write(storage, rows(6, 50), **{"hoodie.parquet.bloom.filter.enabled": "false"})
    assert any("has no bloom filter" in w for w in result.warnings)
    assert partitions(storage) == ("files",)
    sound(storage)
    again = write(storage, rows(6, 60), **BLOOMS)
    assert any("bloom_filters of the metadata table is not made" in w for w in again.warnings)
    assert partitions(storage) == ("files",)


def test_a_value_without_bounds_ends_column_statistics_with_a_word(storage):
    """Apache Hudi leaves a file out whose bounds are null."""

    def fractions(ids, value):
        values = pa.array([Decimal(value)] * 2, pa.decimal128(20, 20))
        return rows(2, ids).append_column("d", values)

    write(storage, fractions(0, "0.5"), **KEPT, **STATS)
    assert partitions(storage) == ("column_stats", "files")
    result = write(storage, fractions(50, "0.99999999999999999999"))
    assert any("column_stats" in w and "the column d of" in w for w in result.warnings)
    assert partitions(storage) == ("files",)
    sound(storage)
    again = write(storage, fractions(60, "0.5"), **STATS)
    assert any("column_stats of the metadata table is not made" in w for w in again.warnings)
    assert partitions(storage) == ("files",)


def test_an_index_needs_the_metadata_table(storage):
    with pytest.raises(ConflictingOptionError, match=r"metadata.enable=false"):
        write(storage, rows(2), **STATS, **{"hoodie.metadata.enable": "false"})
    with pytest.raises(UnsupportedError, match="bloom filters of other columns"):
        write(storage, rows(2), **BLOOMS, **{"hoodie.metadata.index.bloom.filter.column.list": "ts"})


def test_the_number_of_file_groups_is_as_it_was_asked_for_and_stays(storage):
    write(storage, rows(6), **STATS, **{"hoodie.metadata.index.column.stats.file.group.count": "3"})
    write(storage, rows(6, v=1), **STATS)
    own = MetadataTable.of(open_snapshot(storage))
    assert [s.file_id for s in own.slices("column_stats")] == [f"col-stats-000{n}-0" for n in range(3)]
    sound(storage)


@pytest.mark.req("MT-06", "MT-07")
def test_columns_are_all_top_level_ones_or_those_that_are_asked_for():
    inner = pa.struct([("b", pa.int64()), ("c", pa.list_(pa.int64()))])
    schema = pa.schema([("id", pa.string()), ("a", inner), ("n", pa.int32())])
    every = indexed_columns(schema, None)
    assert [c for c in every if not c.startswith("_hoodie")] == ["id", "n"]
    some = indexed_columns(schema, ("a.b", "a.c", "a.x", "n", "gone"))
    assert [c for c in some if not c.startswith("_hoodie")] == ["a.b", "n"]
    assert some["a.b"] == pa.int64()


LIST = "hoodie.metadata.index.column.stats.column.list"


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("listed", "is_told"), [("ts", True), ("ts,p", True), ("id,p,ts", False), (None, False)]
)
def test_an_index_of_some_columns_says_once_what_apache_hudi_s_readers_need(storage, listed, is_told, is_new):
    if not is_new:
        write(storage, rows(2))
    options = STATS | ({} if listed is None else {LIST: listed})
    told = [w for w in write(storage, rows(2), **options).warnings if LIST in w]
    assert len(told) == (is_told or (is_new and listed is not None))
    for text in told:
        assert listed.replace(",", ", ") in text
    assert write(storage, rows(2), **options).warnings == ()


@pytest.mark.req("MT-07")
def test_nested_columns_are_indexed_where_they_are_asked_for(storage):
    data = rows(4).append_column("a", pa.array([{"b": n} for n in range(4)]))
    write(storage, data, **STATS, **{"hoodie.metadata.index.column.stats.column.list": "a.b,ts"})
    own = MetadataTable.of(open_snapshot(storage))
    found = {}
    for batch in own.scan("column_stats").to_batches():
        stats = batch.column(r.STATS)
        sides = (side.to_pylist() for side in r.bounds(stats, pa.int64()))
        for column, *ends in zip(stats.field("columnName").to_pylist(), *sides, strict=True):
            found.setdefault(column, []).append(tuple(ends))
    assert sorted(found["a.b"]) == [(0, 2), (1, 3)]
    assert "id" not in found
