"""Partitions whose folders begin with "_" or ".", at any depth, and partitions inside of partitions, in services."""

import shutil

import pyarrow as pa
import pytest

from hudi_format.errors import PartitionPathError
from hudi_format.storage import local
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.listing import walk

FOLDERS = ["_x", ".y", "a/_z", "a/.b/c", "a", None, "__HIVE_DEFAULT_PARTITION__/d"]
OFF = {"hoodie.table.services.enabled": "false"}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])


def rows(ts, partitions=FOLDERS):
    return [{"id": str(n), "p": p, "v": ts, "ts": ts} for n, p in enumerate(partitions)]


@pytest.fixture(params=["false", "true"], ids=["plain", "hive"])
def table(tmp_path, request):
    options = {"hoodie.datasource.write.hive_style_partitioning": request.param}
    return HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        options=options,
    )  # fmt: skip


def values(scan):
    found = scan.to_arrow()
    return dict(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


def found_by_verify(table):
    """What is amiss, but for partitions that Apache Hudi does not find."""
    return [f for f in table.verify(deep=True) if f.code != "partition-nested"]


@pytest.mark.req("NEW-09", "TL-05")
def test_verify_tells_partitions_that_apache_hudi_does_not_find(table):
    table.insert(rows(1, ["b/c", "_x", ".x/1"]), options=OFF)
    assert table.verify() == []
    table.insert(rows(1), options=OFF)
    hive = "p=" if table.config.hive_style else ""
    null = "p=__HIVE_DEFAULT_PARTITION__" if hive else "__HIVE_DEFAULT_PARTITION__"
    found = {(f.code, f.severity, f.path) for f in table.verify()}
    inner = (f"{hive}a/_z", f"{hive}a/.b/c", f"{null}/d")
    assert found == {("partition-nested", "warning", p) for p in inner}


@pytest.mark.req("NEW-09", "TL-05")
def test_verify_finds_nothing_in_a_sound_table_and_what_is_missing_in_another(table):
    table.insert(rows(1), options=OFF)
    table.savepoint()
    assert found_by_verify(table) == []
    gone = table.read().files.column("path").to_pylist()
    for path in gone:
        table.storage.delete(path)
    found = {(f.code, f.path) for f in found_by_verify(table)}
    assert found == {(code, path) for code in ("file-missing", "savepoint-file-missing") for path in gone}


@pytest.mark.req("NEW-09")
def test_verify_tells_folders_with_files_that_are_not_marked(table):
    table.insert(rows(1), options=OFF)
    folders = {p.rpartition("/")[0] for p in table.read().files.column("path").to_pylist()}
    for folder in folders:
        table.storage.delete(f"{folder}/.hoodie_partition_metadata")
    assert {
        f.path.rpartition("/")[0] for f in table.verify() if f.code == "partition-metadata-missing"
    } == folders
    assert len(table.verify()) == len(folders)
    table.repair()
    assert found_by_verify(table) == []


@pytest.mark.req("RC-06", "RC-01")
@pytest.mark.parametrize("undo", ["rollback", "restore", "dead writer"])
@pytest.mark.sampled(3)
def test_what_is_undone_goes_from_every_folder(table, undo):
    first = table.insert(rows(1), options=OFF).instant
    second = table.upsert(rows(2), options=OFF).instant
    if undo == "dead writer":
        table.storage.delete(f".hoodie/{second}.commit")  # markers are gone: planned by listing
        table.rollback()
    elif undo == "rollback":
        table.rollback(second)
    else:
        table.restore(first)
    left = table.read().files.column("path").to_pylist()
    assert len(left) == len(FOLDERS)
    assert all(first in p for p in left)
    assert not [f.name for files in walk(table.storage).values() for f in files if second in f.name]
    assert set(values(table.read()).values()) == {1}
    assert found_by_verify(table) == []


@pytest.mark.req("TS-19", "TL-05")
def test_services_of_an_outer_partition_leave_the_inner_ones_alone(table):
    hive = "p=" if table.config.hive_style else ""
    table.insert(rows(1), options=OFF)
    table.delete_partitions([f"{hive}a"], options=OFF)
    kept = {str(n) for n, p in enumerate(FOLDERS) if p != "a"}
    assert values(table.read()).keys() == kept
    table.insert_overwrite([{"id": "9", "p": "a", "v": 9, "ts": 9}], options=OFF)
    assert values(table.read()).keys() == kept | {"9"}
    table.delete_partitions([f"{hive}a"], options=OFF)
    table.upsert([{"id": "0", "p": "_x", "v": 2, "ts": 2}], options=OFF)
    table.upsert([{"id": "0", "p": "_x", "v": 3, "ts": 3}], options=OFF)
    cleaned = table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert cleaned.deleted >= 2
    assert f"{hive}a" in cleaned.plan.partitions
    assert values(table.read()).keys() == kept
    assert table.storage.info(f"{hive}a/_z") is not None
    assert found_by_verify(table) == []


@pytest.mark.req("TL-01")
def test_a_table_below_a_table_is_neither_read_nor_undone(table, tmp_path):
    first = table.insert(rows(1), options=OFF).instant
    hive = "p=" if table.config.hive_style else ""
    copy = str(tmp_path / "copy")
    shutil.copytree(table.uri, copy)
    for place in (f"{hive}a/other", "more"):
        shutil.copytree(copy, f"{table.uri}/{place}")
    assert values(table.read()) == {str(n): 1 for n in range(len(FOLDERS))}
    assert found_by_verify(table) == []
    table.rollback(first)
    other = HudiTable.open(f"{table.uri}/{hive}a/other")
    assert values(other.read()) == {str(n): 1 for n in range(len(FOLDERS))}


@pytest.mark.req("QR-11")
def test_a_filter_lists_no_partition_that_it_does_not_want(table, monkeypatch):
    partitions = [f"d{n}" for n in range(20)] + ["d7/x"]
    table.insert(rows(1, partitions), options=OFF)
    listed = []
    real = local.LocalStorage.list

    def counting(self, path, **given):
        listed.append(path)
        return real(self, path, **given)

    monkeypatch.setattr(local.LocalStorage, "list", counting)
    scan = table.read(filter="p = 'd7/x'")
    listed.clear()
    assert scan.count() == 1
    hive = "p=" if table.config.hive_style else ""
    assert [p for p in listed if not p.startswith(".hoodie")] == ["", f"{hive}d7/x"]


@pytest.mark.parametrize("operation", ["upsert", "insert", "insert_overwrite"])
def test_a_name_that_no_folder_can_have_is_refused_before_anything_begins(tmp_path, operation):
    table = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    longest = ["x" * 255, "é" * 127 + "x"]
    getattr(table, operation)(rows(1, longest), options=OFF)
    before = sorted(table.storage.list(".hoodie"))
    for name in ("x" * 256, "é" * 128, "a/" + "x" * 256 + "/b"):
        with pytest.raises(PartitionPathError, match="bytes"):
            getattr(table, operation)(rows(2, [name, "b"]), options=OFF)
    assert sorted(table.storage.list(".hoodie")) == before
    table.delete(rows(3, ["x" * 256]), options=OFF)  # there is nothing to find
    assert values(table.read()) == {"0": 1, "1": 1}


@pytest.mark.parametrize("as_stream", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_bulk_insert_of_a_name_that_no_folder_can_have_leaves_nothing(tmp_path, is_new, as_stream):
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    if not is_new:
        table.bulk_insert(rows(1, ["x" * 255, "b"]), options=OFF)

    def everything():
        found = (tmp_path / "t").rglob("*")
        return {p: p.is_file() and p.read_bytes() for p in found if p.is_file() or ".hoodie" not in p.parts}

    before = everything()
    for name in ("x" * 256, "é" * 128, "a/" + "x" * 256 + "/b"):
        data = pa.Table.from_pylist(rows(2, ["new", "b", name]), schema=SCHEMA)
        given = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(1)) if as_stream else data
        with pytest.raises(PartitionPathError, match="bytes"):
            table.bulk_insert(given, options=OFF)
        assert everything() == before
    assert table.verify() == []
    assert table.bulk_insert(rows(3, ["new"]), options=OFF).inserted == 1


@pytest.mark.req("TL-05")
def test_folders_are_those_of_a_listing(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    for folder in ("a/b", "a/.c", "outside/x", "empty"):
        (tmp_path / "t" / folder).mkdir(parents=True)
    (tmp_path / "t" / "a" / "file").touch()
    (tmp_path / "t" / "a" / "back").symlink_to(tmp_path / "t" / "a" / "b")
    (tmp_path / "other" / "inner").mkdir(parents=True)
    (tmp_path / "t" / "a" / "out").symlink_to(tmp_path / "other")
    for folder in ("", "a", "a/b", "empty", "none"):
        entries = storage.list(folder)
        names, is_marked = storage.folders(folder, {"file"})
        assert sorted(names) == sorted(e.name for e in entries if e.is_dir)
        assert is_marked == any(e.name == "file" for e in entries)


URLENCODE = "hoodie.datasource.write.partitionpath.urlencode"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("value", "way", "no_way"),
    [
        ("..", HIVE_STYLE, URLENCODE),
        (".", HIVE_STYLE, URLENCODE),
        (".hoodie", HIVE_STYLE, URLENCODE),
        ("a/../b", URLENCODE, None),
        ("/a", URLENCODE, None),
    ],
)
def test_the_remedy_of_a_value_that_is_no_folder_helps(tmp_path, table_type, value, way, no_way):
    rows = [{"id": 1, "p": value}]

    def made(name, options):
        return HudiTable.create(
            tmp_path / name, pa.schema([("id", pa.int64()), ("p", pa.string())]), record_keys="id",
            partition_fields="p", table_type=table_type, options=options,
        )  # fmt: skip

    for name, options in (("plain", {}), ("other", {} if no_way is None else {no_way: "true"})):
        with pytest.raises(PartitionPathError) as e:
            made(name, options).upsert(rows)
        assert way in e.value.remedy
    table = made("right", {way: "true"})
    table.upsert(rows)
    table.upsert(rows)
    assert table.read().to_arrow().to_pylist() == rows
    assert table.verify(deep=True) == []
