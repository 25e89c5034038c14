"""The record index beside every change of a table: each key has its place, and no other key has one."""

import random

import pyarrow as pa
import pytest
from listed_tables import KEPT, TYPES, rows, table, write

from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.metadata_table import key_changes
from hudi_timeline.metadata_table.key_changes import came_and_went, changes_of
from hudi_timeline.metadata_table.reader import MetadataTable
from hudi_timeline.reading.metadata_listing import differences

INDEXED = {**KEPT, "hoodie.metadata.record.index.enable": "true"}
ALL = {
    **INDEXED,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SERVICES = {
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.write.set.null.for.missing.columns": "true",
}
TYPE = "hoodie.datasource.write.table.type"


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path / "t"))


def keys(storage):
    """Keys in the record index."""
    return sorted(
        MetadataTable.of(open_snapshot(storage)).scan("record_index").column("key").to_pylist(),
        key=lambda key: int(key[1:]),
    )


def sound(storage):
    assert HudiTable._of(storage).verify(deep=True) == []
    assert differences(storage) == []
    want = HudiTable._of(storage).read().to_arrow().column("id").to_pylist()
    assert keys(storage) == sorted(want, key=lambda key: int(key[1:]))


def test_changes_of_file_groups_are_joined():
    a, b = ("p", "a"), ("q", "b")
    found = changes_of(
        [a, b], [pa.array(["1"]), pa.array(["2", "3"])], [pa.array(["2", "9"]), pa.array([], pa.string())]
    )
    assert found.keys.to_pylist() == ["1", "2", "3"]
    assert found.group.tolist() == [0, 1, 1]
    assert found.gone.to_pylist() == ["9"]
    assert found.moved.tolist() == [False, True, False]
    assert found.ambiguous == ""
    assert changes_of([a, b], [pa.array(["1"]), pa.array(["1"])], []).ambiguous == "1"


@pytest.mark.req("MT-08", "MT-10")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.sampled(2)
def test_inserts_deletes_and_replaced_files_are_followed(storage, table_type):
    write(storage, rows(6), **INDEXED, **{TYPE: table_type})
    sound(storage)
    write(storage, rows(8, 4, v=1))
    sound(storage)
    write(storage, rows(3).select(["id", "p"]), "delete")
    assert keys(storage) == [f"k{i}" for i in range(3, 12)]
    sound(storage)
    write(storage, rows(3, v=2))  # they come back to file groups whose logs have deleted them
    sound(storage)
    write(storage, rows(1, 20), "insert_overwrite")
    assert keys(storage) == ["k1", "k3", "k5", "k7", "k9", "k11", "k20"]
    sound(storage)
    table(storage).delete_partitions(["p1"])
    assert keys(storage) == ["k20"]
    write(storage, rows(4, 20), "insert_overwrite_table")
    assert keys(storage) == ["k20", "k21", "k22", "k23"]
    sound(storage)


def test_keys_of_rewritten_files_are_read_only_where_some_went(storage, monkeypatch):
    """A write knows which of its records met none."""
    write(storage, rows(6), **INDEXED)
    read, stored = [], key_changes._stored_keys
    monkeypatch.setattr(key_changes, "_stored_keys", lambda *a: read.append(a[1]) or stored(*a))
    result = write(storage, rows(8, 4, v=1))  # two are updates
    assert (result.updated, result.inserted) == (2, 6)
    assert not read
    assert all(s.new_keys is None for s in result.write_stats)
    sound(storage)
    write(storage, rows(3).select(["id", "p"]), "delete")
    assert read
    sound(storage)


@pytest.mark.req("MT-08")
@pytest.mark.parametrize("table_type", TYPES)
def test_keys_that_move_are_followed(storage, table_type):
    moves = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    plain = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    }
    write(storage, rows(6), **INDEXED, **moves, **plain, **{TYPE: table_type})
    data = rows(6, v=1)
    write(storage, data.set_column(2, "p", pa.array(["p7"] * 6)), **moves)
    sound(storage)
    assert set(HudiTable._of(storage).read().to_arrow().column("p").to_pylist()) == {"p7"}


@pytest.mark.req("MT-08")
def test_new_keys_in_log_files_are_followed(storage):
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", TYPE: "MERGE_ON_READ"}
    write(storage, rows(4), **INDEXED, **buckets)
    write(storage, rows(9, 2, v=1), **buckets)
    sound(storage)
    table(storage).compact()
    sound(storage)
    write(storage, rows(5).select(["id", "p"]), "delete", **buckets)
    write(storage, rows(2, v=3), **buckets)
    sound(storage)


@pytest.mark.parametrize("fresh", [0, 30], ids=["alone", "among-others"])
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.sampled(3)
def test_a_key_of_two_file_groups_ends_the_record_index_with_a_word(storage, operation, fresh):
    write(storage, rows(4))
    write(storage, rows(1), **INDEXED)  # made of what is there: with base files
    elsewhere = rows(1).set_column(2, "p", pa.array(["p9"]))  # unique within partitions only
    # Of many new keys a base file's filter is asked first.
    result = write(
        storage, pa.concat_tables([elsewhere, rows(fresh, 100)], promote_options="default"), operation
    )
    assert any("'k0' is in several file groups" in w for w in result.warnings)
    assert table_config.load(storage).metadata_partitions == ("files",)
    again = write(storage, rows(1, 50), **INDEXED)
    assert any("record_index of the metadata table is not made" in w for w in again.warnings)
    write(storage, elsewhere.select(["id", "p"]), "delete")
    write(storage, rows(1, 60), **INDEXED)
    assert table_config.load(storage).metadata_partitions == ("files", "record_index")
    sound(storage)


@pytest.mark.req("MT-08")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("merged", [False, True], ids=["", "merged"])
@pytest.mark.sampled(3)
def test_a_rollback_and_a_restore_give_the_keys_back(storage, table_type, merged):
    write(storage, rows(6), **INDEXED, **{TYPE: table_type})
    kept = write(storage, rows(3, 10), "insert")
    before = keys(storage)
    often = {"hoodie.metadata.compact.max.delta.commits": "1" if merged else "100"}
    undone = write(storage, rows(6, 4, v=1), **often)
    table(storage).rollback(undone)
    if merged:
        assert table_config.load(storage).metadata_partitions == ("files",)
        write(storage, rows(1, 30), **INDEXED)
    else:
        assert keys(storage) == before
    sound(storage)
    write(storage, rows(6, 4, v=1))
    table(storage).restore(kept)
    assert keys(storage) == before
    sound(storage)


@pytest.mark.sampled(12, values=False)
@pytest.mark.req("MT-04", "MT-05", "MT-08", "MT-10")
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("seed", range(4))
def test_a_random_workload_leaves_all_indexes_equal_to_the_data(storage, seed, table_type):
    draw = random.Random(seed)
    options = {**ALL, **SERVICES}
    write(storage, rows(6), **options, **{TYPE: table_type})
    new = 100
    for _ in range(7):
        step = draw.choice(
            ("upsert", "upsert", "new", "insert", "delete", "flags", "insert_overwrite", "insert_overwrite_table",
             "delete_partition", "compact", "rollback")
        )  # fmt: skip
        new += 10
        match step:
            case "upsert":
                write(storage, rows(draw.randint(1, 8), draw.randint(0, 10), v=draw.randint(0, 5)), **options)
            case "new":
                write(storage, rows(3, new), **options)
            case "insert" | "insert_overwrite":
                write(storage, rows(3, new), step, **options)
            case "insert_overwrite_table":
                write(storage, rows(6), step, **options)
            case "delete":
                gone = rows(draw.randint(1, 4), draw.randint(0, 8)).select(["id", "p"])
                write(storage, gone, "delete", **options)
            case "flags":
                flags = pa.array([draw.random() < 0.5 for _ in range(6)])
                data = rows(6, v=draw.randint(-3, 3)).append_column("_hoodie_is_deleted", flags)
                write(storage, data, **options)
            case "delete_partition":
                table(storage, **options).delete_partitions(["p1"])
            case "compact" if table_type == "MERGE_ON_READ":
                table(storage, **options).compact()
            case "rollback":
                undone = write(storage, rows(5, draw.randint(0, 9), v=draw.randint(0, 5)), **options)
                table(storage, **options).rollback(undone)
        if len(table_config.load(storage).metadata_partitions) < 4:  # what was rolled back was merged
            assert step == "rollback"
            write(storage, rows(1, new), **options)
        sound(storage)
        assert len(table_config.load(storage).metadata_partitions) == 4, step


@pytest.mark.parametrize("seed", range(6))
def test_differences_of_keys_are_those_of_sets(seed):
    chance = random.Random(seed)

    def some():
        texts = [f"k{chance.randrange(30)}" for _ in range(chance.randrange(40))] + ["", "ä"][: seed % 3]
        padded = pa.array(["front", *texts], pa.string())
        return padded.slice(1), set(texts)

    for _ in range(20):
        (before, had), (after, has) = some(), some()
        came, went = came_and_went(before, after)
        assert (sorted(came.to_pylist()), sorted(went.to_pylist())) == (sorted(has - had), sorted(had - has))
