"""Upserts and deletes by the record index: what it says is found without a look into files, or looked for in them."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError
from hudi_format.storage.open import open_storage
from hudi_index import record_index
from hudi_index.lookup import GLOBAL_SIMPLE, RECORD_INDEX
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

OFF = {"hoodie.metadata.enable": "false"}
MADE = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
TYPE = "hoodie.datasource.write.table.type"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
}
INDEXED = {"hoodie.index.type": "RECORD_INDEX"}


def rows(*values):
    names = ("id", "p", "ts", "v")
    kinds = (pa.string(), pa.string(), pa.int64(), pa.string())
    columns = list(zip(*values, strict=True)) if values else [[]] * 4
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def write(storage, data, operation="upsert", **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    return execute(LocalEngine(2), storage, data, options)


def content(storage):
    found = HudiTable._of(storage).read(["id", "_hoodie_partition_path", "v"]).to_arrow().to_pylist()
    return sorted((r["id"], r["_hoodie_partition_path"], r["v"]) for r in found)


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


FIRST = rows(("k1", "p1", 1, "a"), ("k2", "p2", 1, "a"), ("k3", "p3", 1, "a"))


@pytest.mark.req("IX-12")
@pytest.mark.parametrize("table_type", TYPES)
def test_keys_are_found_without_a_look_into_files(storage, table_type):
    first = write(storage, FIRST, **INDEXED, **MADE, **{TYPE: table_type})
    assert not [w for w in first.warnings if "record index" in w]
    second = write(storage, rows(("k1", "p1", 2, "b"), ("n", "p1", 2, "b"), ("k2", "p9", 2, "b")))
    assert (second.lookup.index, second.lookup.files, second.lookup.opened) == (RECORD_INDEX, 3, 0)
    assert (second.updated, second.inserted) == (2, 1)
    # Updated where it is, as Apache Hudi's default has it.
    assert content(storage) == [("k1", "p1", "b"), ("k2", "p2", "b"), ("k3", "p3", "a"), ("n", "p1", "b")]
    third = write(storage, rows(("k2", "p9", 3, ""), ("none", "p1", 3, "")), "delete")
    assert (third.lookup.opened, third.deleted) == (0, 1)
    assert [r[0] for r in content(storage)] == ["k1", "k3", "n"]


@pytest.mark.req("IX-12")
@pytest.mark.parametrize("table_type", TYPES)
def test_a_record_moves_and_leaves_nothing_behind(storage, table_type):
    options = {**INDEXED, **MADE, **MOVES, TYPE: table_type}
    write(storage, FIRST, **options)
    for n, to in enumerate(("p2", "p4", "p1")):
        result = write(storage, rows(("k1", to, n + 2, to)), **options)
        assert result.lookup.opened == 0
        assert content(storage) == [("k1", to, to), ("k2", "p2", "a"), ("k3", "p3", "a")]
    assert HudiTable._of(storage).verify(deep=True) == []


@pytest.fixture
def files_are_cheap(monkeypatch):
    """Look-ups whose estimates say that reading the files' keys costs nothing."""
    for name in ("_WORTH_CHOOSING_S", "_OPENING_S"):
        monkeypatch.setattr(record_index, name, 0.0)
    monkeypatch.setattr(record_index, "_INDEX_BYTES_PER_S", 1.0)


@pytest.mark.req("IX-12")
def test_where_the_files_are_cheaper_to_read_keys_are_found_there_with_the_same_outcome(
    storage, tmp_path, files_are_cheap, monkeypatch
):
    def run(place):
        opened = []
        for step, (data, operation) in enumerate(
            (
                (FIRST, "upsert"),
                (rows(("k1", "p2", 2, "b"), ("n", "p1", 2, "b"), ("k2", "p2", 2, "b")), "upsert"),
                (rows(("k3", "p9", 3, ""), ("none", "p1", 3, "")), "delete"),
                (rows(("k1", "p2", 4, "c"), ("new", "p1", 4, "c")), "insert"),
            )
        ):
            dropped = {"hoodie.datasource.insert.dup.policy": "drop"} if operation == "insert" else {}
            found = write(place, data, operation, **INDEXED, **MADE, **MOVES, **dropped).lookup
            assert found.index == RECORD_INDEX
            opened.append((found.opened, found.files))
            assert step == 0 or found.files
        return opened

    by_files = run(storage)
    assert all(some == of > 0 for some, of in by_files[1:])
    monkeypatch.setattr(record_index, "_WORTH_CHOOSING_S", 1e9)
    other = open_storage(str(tmp_path / "other"))
    assert all(some == 0 for some, _ in run(other))
    assert (
        content(storage)
        == content(other)
        == [("k1", "p2", "b"), ("k2", "p2", "b"), ("n", "p1", "b"), ("new", "p1", "c")]
    )
    assert HudiTable._of(storage).verify(deep=True) == []


@pytest.mark.req("IX-12")
def test_of_slices_with_logs_the_index_is_asked_whatever_it_costs(storage, files_are_cheap):
    options = {**INDEXED, **MADE, TYPE: "MERGE_ON_READ"}
    write(storage, FIRST, **options)
    write(storage, rows(("k1", "p1", 2, "")), "delete", **options)
    again = write(storage, rows(("k1", "p2", 3, "c"), ("k2", "p2", 3, "c")), **options)
    assert again.lookup.opened == 0
    assert content(storage) == [("k1", "p2", "c"), ("k2", "p2", "c"), ("k3", "p3", "a")]


@pytest.mark.req("IX-03", "IX-12")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(6, values=False)
def test_random_changes_leave_each_key_once_and_the_index_equal_to_the_table(storage, table_type, seed):
    rng = random.Random(seed)
    moving = seed % 2 == 0
    options = {
        **INDEXED, **MADE, TYPE: table_type, "hoodie.record.index.update.partition.path": str(moving).lower(),
        "hoodie.metadata.compact.max.delta.commits": "3", "hoodie.parquet.small.file.limit": "2000",
    }  # fmt: skip
    model: dict[str, tuple[str, str]] = {}
    for step in range(7):
        operation = rng.choice(["upsert", "upsert", "delete"]) if step else "upsert"
        keys = rng.sample(range(40), 12)
        data = rows(*((f"k{k}", f"p{rng.randrange(4)}", step, f"v{step}") for k in keys))
        result = write(storage, data, operation, **options)
        assert step == 0 or (result.lookup.index, result.lookup.opened) == (RECORD_INDEX, 0)
        for row in data.to_pylist():
            if operation == "delete":
                model.pop(row["id"], None)
            else:
                there = model.get(row["id"])
                model[row["id"]] = (row["p"] if there is None or moving else there[0], row["v"])
        assert content(storage) == sorted((k, *v) for k, v in model.items())
    snapshot = open_snapshot(storage)
    found = MetadataTable.of(snapshot).scan("record_index").column("key").to_pylist()
    assert sorted(found) == sorted(model)


@pytest.mark.req("IX-12")
def test_without_the_index_keys_are_looked_for_in_all_files_with_a_word(storage):
    write(storage, FIRST, **INDEXED)
    result = write(storage, rows(("k1", "p2", 2, "b")), **INDEXED)
    assert (result.lookup.index, result.lookup.opened) == (GLOBAL_SIMPLE, 3)
    assert [w for w in result.warnings if "hoodie.metadata.record.index.enable=true make it" in w]
    assert content(storage) == [("k1", "p1", "b"), ("k2", "p2", "a"), ("k3", "p3", "a")]
    # It is made before the keys are looked for.
    assert write(storage, rows(("k2", "p1", 2, "b")), **MADE).lookup.index == RECORD_INDEX
    assert write(storage, rows(("k3", "p1", 2, "b"))).lookup.opened == 0
    assert content(storage) == [("k1", "p1", "b"), ("k2", "p2", "b"), ("k3", "p3", "b")]


@pytest.mark.req("IX-12")
def test_an_index_that_lacks_a_commit_is_not_asked(storage):
    """As a writer leaves it that knows no metadata table."""
    write(storage, FIRST, **INDEXED, **MADE)
    properties = table_config.load(storage).properties
    kept = Path(storage.uri, FOLDER)
    kept.rename(kept.with_name("kept"))
    write(storage, rows(("k4", "p4", 1, "a")), **OFF)
    kept.with_name("kept").rename(kept)
    table_config.update(
        storage, {"hoodie.table.metadata.partitions": properties["hoodie.table.metadata.partitions"]}
    )
    result = write(storage, rows(("k4", "p1", 2, "b")), **INDEXED)
    assert (result.lookup.index, result.updated) == (GLOBAL_SIMPLE, 1)
    assert content(storage)[3] == ("k4", "p4", "b")


@pytest.mark.req("IX-12")
def test_a_damaged_index_is_not_believed(storage):
    write(storage, FIRST, **INDEXED, **MADE)
    write(storage, rows(("k4", "p3", 1, "a")), **{"hoodie.metadata.compact.max.delta.commits": "1"})
    for file in Path(storage.uri, FOLDER, "record_index").glob("*.hfile"):
        data = bytearray(file.read_bytes())
        data[-5:] = b"xxxxx"
        file.write_bytes(data)
    preview = write_dry(storage, rows(("k1", "p2", 2, "b"), ("n", "p1", 1, "")))
    assert (preview.updated, preview.inserted) == (1, 1)
    assert preview.lookup.doubted == 2
    assert preview.lookup.opened == 3
    assert any("looked for in the files" in w for w in preview.warnings)


@pytest.mark.req("IX-12")
@pytest.mark.parametrize("compacts", ["1", "100"], ids=["compacts", "does not compact"])
@pytest.mark.parametrize("table_type", TYPES)
def test_an_index_that_lost_whole_blocks_is_not_believed(storage, table_type, compacts):
    write(storage, FIRST, **{TYPE: table_type}, **INDEXED, **MADE)
    write(storage, rows(("k4", "p3", 1, "a")), **{"hoodie.metadata.compact.max.delta.commits": "100"})
    logs = [f for f in Path(storage.uri, FOLDER, "record_index").glob(".*.log.*") if f.stat().st_size]
    assert logs
    for file in logs:
        file.write_bytes(b"")  # as the power goes before its blocks are on the disk
    again = write(
        storage, rows(("k1", "p2", 2, "b"), ("k4", "p3", 2, "b")), **MOVES,
        **{"hoodie.metadata.compact.max.delta.commits": compacts},
    )  # fmt: skip
    assert any("looked for in the files" in w for w in again.warnings)
    assert content(storage) == [("k1", "p2", "b"), ("k2", "p2", "a"), ("k3", "p3", "a"), ("k4", "p3", "b")]


def write_dry(storage, data):
    options = {**OPTIONS, **INDEXED, "hoodie.datasource.write.operation": "upsert"}
    return execute(LocalEngine(1), storage, data, options, dry_run=True)


@pytest.mark.req("NEW-14", "IX-15")
def test_the_record_index_is_remembered_and_kept_to(storage):
    write(storage, FIRST, **INDEXED, **MADE)
    assert table_config.load(storage).properties[table_config.INDEX] == RECORD_INDEX
    with pytest.raises(ConflictingOptionError, match="unique over all partitions"):
        write(storage, rows(("k1", "p2", 2, "b")), **{"hoodie.index.type": "SIMPLE"})
    again = write(storage, rows(("k1", "p2", 2, "b")), **{"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"})
    assert again.lookup.index == RECORD_INDEX
    by_class = {"hoodie.index.class": "org.apache.hudi.index.SparkMetadataTableRecordIndex"}
    assert write(storage, rows(("k1", "p2", 3, "c")), **by_class).lookup.index == RECORD_INDEX


@pytest.mark.req("IX-12")
def test_known_keys_of_an_insert_are_dropped_by_the_index(storage):
    write(storage, FIRST, **INDEXED, **MADE)
    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    result = write(storage, rows(("k1", "p2", 2, "b"), ("n", "p1", 1, "a")), "insert", **drop)
    assert (result.lookup.index, result.lookup.opened, result.inserted) == (RECORD_INDEX, 0, 1)
    assert content(storage)[0] == ("k1", "p1", "a")


def test_base_files_are_read_whatever_the_index_says_of_their_logs(storage):
    made = {**INDEXED, **MADE, TYPE: "MERGE_ON_READ"}
    write(storage, FIRST, **made)
    write(storage, rows(("k1", "p1", 2, "")), "delete", **made)
    table = HudiTable._of(storage)
    by_key = {"filter": "_hoodie_record_key = 'k1'", "options": {"hoodie.metadata.enable": "true"}}
    assert table.read(**by_key).count() == 0
    assert table.read(**by_key, query="read_optimized").count() == 1
    aside = {**by_key["options"], "hoodie.datasource.merge.type": "skip_merge"}
    assert table.read(filter=by_key["filter"], options=aside).count() == 1
