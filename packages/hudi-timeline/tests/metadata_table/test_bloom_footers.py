"""Look-ups of BLOOM through the metadata table: the same keys found, and no footer read."""

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_index import lookup
from hudi_index.lookup import LookupCount
from hudi_timeline import HudiTable
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

STATS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
BLOOMS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true"}
BY_METADATA = {"hoodie.bloom.index.use.metadata": "true"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.parquet.small.file.limit": "0",
}


def rows(keys, v=0):
    return pa.table({"id": list(keys), "p": ["p"] * len(keys), "ts": pa.array([v] * len(keys), pa.int64())})


def write(storage, data, operation="upsert", *, dry_run=False, **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(2), storage, data, options, dry_run=dry_run)


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


@pytest.fixture
def footers(monkeypatch):
    """Paths whose footers are read by look-ups."""
    read = []
    real = lookup.read_entries

    def counted(storage, path, **more):
        read.append(path)
        return real(storage, path, **more)

    monkeypatch.setattr(lookup, "read_entries", counted)
    return read


def made(storage, **options):
    for n in range(4):
        write(storage, rows([f"{n}{i}" for i in range(0, 10, 2)]), "insert", **options)


ASKED = ["00", "01", "34", "39", "99"]


@pytest.mark.req("IX-04", "IX-20")
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("filter_type", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize(
    ("built", "left"),
    [({}, 4), (STATS, 2), (BLOOMS, 0), ({**STATS, **BLOOMS}, 0)],
    ids=["none", "stats", "blooms", "both"],
)
@pytest.mark.sampled(6)
def test_the_same_files_are_ruled_out_without_their_footers(
    storage, footers, index, filter_type, built, left
):
    made(storage, **built, **{"hoodie.bloom.index.filter.type": filter_type})
    options = {"hoodie.index.type": index}
    plain = write(storage, rows(ASKED, 1), dry_run=True, **options)
    assert len(footers) == 4
    footers.clear()
    found = write(storage, rows(ASKED, 1), dry_run=True, **options, **BY_METADATA)
    assert len(footers) == left
    assert (found.updated, found.inserted) == (plain.updated, plain.inserted) == (2, 3)
    by_filter = 2 if built == BLOOMS else 0
    assert found.lookup == LookupCount(index, 4, by_range=2 - by_filter, by_filter=by_filter, opened=2)
    assert write(storage, rows(ASKED, 1), **options, **BY_METADATA).updated == 2


@pytest.mark.req("IX-04")
def test_after_a_compaction_and_rewritten_files_the_filters_are_those_of_the_latest_files(storage, footers):
    options = {"hoodie.index.type": "BLOOM", **STATS, **BLOOMS, **BY_METADATA}
    made(storage, **options, **{"hoodie.metadata.compact.max.delta.commits": "2"})
    write(storage, rows(["00"], 1), **options)
    result = write(storage, rows(["00", "22", "no"], 2), **options)
    assert (result.updated, result.inserted, footers) == (2, 1, [])


@pytest.mark.req("IX-04")
def test_a_metadata_table_that_cannot_be_read_leaves_it_to_the_footers(storage, footers):
    made(storage, **{**STATS, **BLOOMS})
    for file in (Path(storage.uri) / FOLDER / "column_stats").iterdir():
        file.unlink()
    found = write(storage, rows(ASKED, 1), dry_run=True, **{"hoodie.index.type": "BLOOM"}, **BY_METADATA)
    assert any("footers are read" in w for w in found.warnings)
    assert (found.updated, len(footers)) == (2, 4)
    assert HudiTable._of(storage).read().to_arrow().num_rows == 20


@pytest.mark.req("IX-04")
@pytest.mark.parametrize(("nulls", "updated"), [(1, 2), (0, 0)])
def test_key_ranges_of_some_row_groups_alone_are_not_gone_by(storage, monkeypatch, nulls, updated):
    """Apache Hudi takes a row group with a key that is too long for a bound for one of nulls; no key is null."""
    made(storage, **STATS)
    real = MetadataTable.lookup

    def of_some(table, partition, keys):
        found = real(table, partition, keys)
        end = {"member6": {"value": "zz"}}
        change = {"minValue": end, "maxValue": end, "nullCount": nulls, "totalUncompressedSize": 9000}
        records = [r | {"ColumnStatsMetadata": r["ColumnStatsMetadata"] | change} for r in found.to_pylist()]
        return pa.Table.from_pylist(records, found.schema)

    monkeypatch.setattr(MetadataTable, "lookup", of_some)
    done = write(storage, rows(ASKED, 1), dry_run=True, **BY_METADATA, **{"hoodie.index.type": "BLOOM"})
    assert done.updated == updated  # ranges that are sure rule out
