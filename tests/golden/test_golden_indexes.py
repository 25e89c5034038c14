"""The metadata tables of the golden tables: each partition's records are what the files say."""

import random
import zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_tables import ROOT, golden

from hudi_format.errors import HudiError
from hudi_format.file_names import parse_base_file
from hudi_format.file_slice.reader import read_file_slice
from hudi_format.parquet.footer import BLOOM_FILTER, read_entries
from hudi_format.storage.open import open_storage
from hudi_index.bloom.filter import parse_filter
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.files import metadata_merge
from hudi_index.record_index import located
from hudi_timeline.file_system_view.file_slices import newest_slices
from hudi_timeline.file_system_view.listing import list_table
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.table import HudiTable


def has(table, partition):
    with zipfile.ZipFile(ROOT / table.version / f"{table.name}.zip") as archive:
        folder = f"{table.name}/.hoodie/metadata/{partition}/"
        return any(n.startswith(folder) for n in archive.namelist())


ALL = [t for v in ("v6", "v8", "v9") for t in golden(v) if has(t, "files")]
INDEXED = [t for t in ALL if any(has(t, p) for p in ("column_stats", "record_index", "bloom_filters"))]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexes")
    known = {}

    def opened(table):
        if table not in known:
            path = table.unpack(folder / table.version)
            known[table] = MetadataTable.of(open_snapshot(open_storage(str(path))))
        return known[table]

    return opened


def one(records):
    found = records.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], records.schema)


@pytest.mark.sampled(36)
@pytest.mark.parametrize("table", ALL, ids=str)
def test_look_ups_give_what_a_read_of_whole_slices_gives(tables, table):
    found = tables(table)
    assert found.is_current()
    for partition in found.partitions:
        scanned = one(found.scan(partition))
        keys = scanned.column("key")
        whole = []
        for part in found.slices(partition):
            batches = read_file_slice(
                found.storage, part, metadata_merge(found.scope), r.schema_of(partition)
            )
            whole += [row for batch in batches for row in batch.to_pylist()]
        by_key = {row["key"]: row for row in whole}
        if partition == k.FILES:  # maps have no order
            by_key = {
                n: {**row, "filesystemMetadata": dict(row["filesystemMetadata"])} for n, row in by_key.items()
            }

        def plain(records, partition=partition):
            rows = records.to_pylist()
            if partition == k.FILES:
                rows = [{**row, "filesystemMetadata": dict(row["filesystemMetadata"])} for row in rows]
            return {row["key"]: row for row in rows}

        assert len(by_key) == len(whole) == scanned.num_rows
        assert plain(scanned) == by_key
        assert plain(found.lookup(partition, keys)) == by_key
        absent = pa.array([f"{key}~" for key in keys.to_pylist()] + ["", "\0", "~"])
        assert found.lookup(partition, absent).num_rows == 0
        for key in keys.to_pylist()[:5]:
            assert plain(found.lookup(partition, [key, key])) == {key: by_key[key]}
            wanted = {n: row for n, row in by_key.items() if n.startswith(key[:12])}
            assert plain(found.by_prefix(partition, [key[:12]])) == wanted


@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", ALL, ids=str)
def test_shards_are_where_keys_hash_to(tables, table):
    found = tables(table)
    for partition in found.partitions:
        slices = found.slices(partition)
        for number, part in enumerate(slices):
            batches = read_file_slice(
                found.storage, part, metadata_merge(found.scope), r.schema_of(partition), columns=["key"]
            )
            keys = pa.array([key for b in batches for key in b.column("key").to_pylist()], pa.string())
            if partition.startswith(k.SECONDARY_INDEX):
                keys = k.sharded_part(keys, by_value=found.by_value)
            assert set(k.shards(keys, len(slices)).tolist()) <= {number}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", ALL, ids=str)
def test_files_are_those_in_the_folders(tables, table):
    found = tables(table)
    entries = {
        (row["key"], name): entry["size"]
        for row in one(found.scan(k.FILES)).to_pylist()
        for name, entry in row[r.FILES] or ()
        if not entry["isDeleted"]
    }
    listed = {place: size for place, size in entries.items() if place[0] != k.ALL_PARTITIONS}
    stored = {
        (k.identifier(partition), f.name): f.size
        for partition, files in list_table(found.snapshot.storage, found.snapshot.config).files.items()
        for f in files
        if not f.name.startswith(".hoodie")
    }
    assert listed == stored
    partitions = {name for key, name in entries if key == k.ALL_PARTITIONS}
    assert partitions >= {p for p, _ in stored}


@pytest.mark.req("MT-08")
@pytest.mark.parametrize("table", [t for t in INDEXED if has(t, k.RECORD_INDEX)], ids=str)
def test_every_key_is_where_the_record_index_says(tables, table):
    found = tables(table)
    if k.RECORD_INDEX not in found.partitions:
        pytest.skip("it was being built")
    said = located(found.scan(k.RECORD_INDEX)).by_key()
    read = HudiTable.open(found.snapshot.storage.uri).read(
        ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    ).to_arrow().to_pylist()  # fmt: skip
    groups = {(s.partition, s.file_id) for s in newest_slices(found.snapshot)}
    assert said.keys() == {row["_hoodie_record_key"] for row in read}
    for row in read:
        place = said[row["_hoodie_record_key"]]
        assert place[0] == row["_hoodie_partition_path"]
        assert place in groups
        assert row["_hoodie_file_name"].startswith(place[1])


@pytest.mark.req("MT-04")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("table", [t for t in INDEXED if has(t, k.BLOOM_FILTERS)], ids=str)
def test_bloom_filters_are_those_of_the_footers(tables, table):
    found = tables(table)
    storage = found.snapshot.storage
    filters = {e.key: e for e in r.bloom_filters(one(found.scan(k.BLOOM_FILTERS))) if not e.is_deleted}
    seen = 0
    for partition, files in list_table(storage, found.snapshot.config).files.items():
        for file in files:
            base = parse_base_file(partition, file.name)
            if base is None or not base.path.endswith(".parquet"):
                continue
            said = filters[k.bloom_filter_key(partition, file.name)]
            assert said.text == bytes(read_entries(storage, base.path).values[BLOOM_FILTER])
            rows = pa.parquet.read_table(f"{storage.uri}/{base.path}", columns=["_hoodie_record_key"])
            might = parse_filter(said.text.decode(), said.type_code).might_contain(rows.column(0))
            assert pc.all(might).as_py()
            seen += 1
    assert seen


@pytest.mark.req("MT-05")
@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", [t for t in INDEXED if has(t, k.COLUMN_STATS)], ids=str)
def test_values_lie_within_the_bounds_of_column_statistics(tables, table):
    """Every base file's columns, read whole; a bound that is given is that of the rows."""
    found = tables(table)
    storage = found.snapshot.storage
    compared = 0
    bases = [
        base
        for partition, files in list_table(storage, found.snapshot.config).files.items()
        for f in files
        if (base := parse_base_file(partition, f.name)) is not None and base.path.endswith(".parquet")
    ]
    rows = {b.path: pa.parquet.read_table(f"{storage.uri}/{b.path}") for b in bases}
    for field in found.snapshot.schema:
        records = one(found.by_prefix(k.COLUMN_STATS, [k.column_stats_prefix(field.name)]))
        stats = records.column(r.STATS)
        sides = (side.to_pylist() for side in r.bounds(stats, field.type))
        rows_of = zip(records.column("key").to_pylist(), stats.to_pylist(), *sides, strict=True)
        by_key = {key: (said, low, high) for key, said, low, high in rows_of}
        for base in bases:
            key = k.column_stats_key(field.name, base.partition, base.name)
            if key not in by_key or field.name not in rows[base.path].column_names:
                continue
            said, low, high = by_key[key]
            column = rows[base.path].column(field.name)
            assert (said["fileName"], said["columnName"]) == (base.name, field.name)
            assert said["valueCount"] in (None, -1, len(column))
            assert said["nullCount"] in (None, -1, column.null_count)
            if low is not None:
                values = column.cast(field.type)
                least, most = pc.min_max(values).as_py().values()
                assert low <= least
                assert most <= high
                compared += 1
    assert compared or not bases


def test_the_tables_have_each_kind_of_partition(tables):
    every = [t for t in ALL if t.name in ("mdt_all_indexes", "secondary_index")]
    kinds = {p for t in every for p in tables(t).partitions}
    assert kinds >= {"files", "column_stats", "bloom_filters", "record_index", "partition_stats"}


@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_a_damaged_file_is_an_error_and_no_missing_record(version, tmp_path):
    (table,) = golden(version, "mdt_all_indexes")
    path = table.unpack(tmp_path)
    before = MetadataTable.of(open_snapshot(open_storage(str(path))))
    keys = one(before.scan(k.RECORD_INDEX)).column("key")
    slices = [s for s in before.slices(k.RECORD_INDEX) if s.base_file or s.log_files]
    for part in random.Random(version).sample(slices, 3):
        name = part.base_file.path if part.base_file else part.log_files[-1].path
        file = path / ".hoodie/metadata" / name
        data = file.read_bytes()
        file.write_bytes(data[:60] + bytes([data[60] ^ 0xFF]) + data[61:])
        found = MetadataTable.of(open_snapshot(open_storage(str(path))))
        with pytest.raises(HudiError) as e:
            found.lookup(k.RECORD_INDEX, keys)
        assert file.name in str(e.value)
        file.write_bytes(data)


def test_a_missing_shard_is_an_error(tmp_path):
    (table,) = golden("v6", "mdt_all_indexes")
    path = table.unpack(tmp_path)
    for file in (path / ".hoodie/metadata/record_index").glob("*record-index-0004*"):
        file.unlink()
    found = MetadataTable.of(open_snapshot(open_storage(str(path))))
    with pytest.raises(HudiError) as e:
        found.lookup(k.RECORD_INDEX, ["id-00004"])
    assert "record-index-0004" in str(e.value) or "some are missing" in str(e.value)


def test_what_a_write_put_there_that_is_not_completed_does_not_count(tmp_path):
    (table,) = golden("v6", "record_index")
    path = table.unpack(tmp_path)
    before = MetadataTable.of(open_snapshot(open_storage(str(path))))
    every = set(one(before.scan(k.RECORD_INDEX)).column("key").to_pylist())
    writes = HudiTable.open(str(path)).timeline.completed_writes()
    if not before.scope.sees(writes[-1].time):
        pytest.fail("the newest write counts")
    (path / writes[-1].path).unlink()  # its requested and inflight files are there
    after = MetadataTable.of(open_snapshot(open_storage(str(path))))
    assert writes[-1].time in after.scope.rolled_back
    assert not before.is_current()
    left = set(one(after.scan(k.RECORD_INDEX)).column("key").to_pylist())
    rows = HudiTable.open(str(path)).read(["_hoodie_record_key"]).to_arrow().column(0).to_pylist()
    assert left == set(rows)
    assert left <= every


@pytest.mark.req("MT-04", "MT-05", "MT-08", "MT-10")
@pytest.mark.parametrize("table", [t for t in INDEXED if t.version == "v6"], ids=str)
def test_indexes_that_apache_hudi_made_are_kept(tmp_path, table):
    opened = HudiTable.open(str(table.unpack(tmp_path)))
    before = opened.config.metadata_partitions
    rows = opened.read(meta_columns=True).to_arrow()
    rows = rows.select([n for n in rows.schema.names if not n.startswith("_hoodie_")])
    for result in (
        opened.upsert(rows.slice(0, 4)),
        opened.delete(rows.slice(2, 2)),
        opened.upsert(rows.slice(3, 2)),
    ):
        assert result.warnings == ()
    assert opened.verify(deep=True) == []
    assert HudiTable.open(str(tmp_path / table.name)).config.metadata_partitions == before
    assert opened.read().to_arrow().num_rows == rows.num_rows - 1
