"""Consistent hashing without a JVM: every operation leaves each key in the file group of its ring."""

import pyarrow as pa
import pytest

from hudi_format.errors import ConflictingOptionError, UnsupportedError, WriteConflictError
from hudi_format.storage.open import open_storage
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import load_rings, marker_path, ring_path
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

ENGINE, NUMBER = "hoodie.index.bucket.engine", "hoodie.bucket.index.num.buckets"
RING = {"hoodie.index.type": "BUCKET", ENGINE: "CONSISTENT_HASHING", NUMBER: "4"}
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("ts", pa.int64())])
IDS = [f"k{n:02d}" for n in range(24)]
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}


def rows(ids, p="a", ts=1):
    return pa.table([ids, list(range(len(ids))), [p] * len(ids), [ts] * len(ids)], schema=SCHEMA)


def make(path, partitions=("p",), kind="MERGE_ON_READ", **options):
    return HudiTable.create(
        str(path), SCHEMA, table_type=kind, name="t", record_keys=["id"],
        partition_fields=list(partitions), ordering_fields=["ts"], options={**RING, **options},
    )  # fmt: skip


@pytest.fixture(params=[("p",), ()], ids=["partitioned", "whole"])
def table(tmp_path, request):
    made = make(tmp_path / "t", request.param)
    made.upsert(rows(IDS))
    return made


def found(table):
    every = HudiTable.open(table.uri).read(meta_columns=True).to_arrow()
    return sorted(zip(every.column("id").to_pylist(), every.column("ts").to_pylist(), strict=True))


def rings(table):
    """The rings, after a look at each key and each file group."""
    snapshot = open_snapshot(open_storage(table.uri))
    slices = newest_slices_of(snapshot)
    out = load_rings(snapshot, {s.partition for s in slices})
    assert out.keys() == {s.partition for s in slices}
    index = ConsistentBucketIndex(1, ("id",), out)
    for partition in out:
        index.groups(partition, [s.file_id for s in slices if s.partition == partition], table="t")
    read = HudiTable.open(table.uri).read(meta_columns=True).to_arrow()
    columns = (read.column(f"_hoodie_{n}").to_pylist() for n in ("record_key", "partition_path", "file_name"))
    for key, partition, name in zip(*columns, strict=True):
        number = index.of(pa.array([key]), partition)[0]
        assert name.partition("_")[0] == index.new_file_id(partition, number)
    assert HudiTable.open(table.uri).verify() == []
    return out


@pytest.mark.req("IX-11", "IX-33")
def test_each_operation_goes_by_the_ring(table):
    first = rings(table)
    table.upsert(rows([*IDS[:9], "new"], ts=2))
    table.delete(rows(IDS[20:]))
    table.insert(rows(["i1", "i2"], ts=3))
    table.bulk_insert(rows(["b1", "k10"], ts=4))
    table.compact()
    table.upsert(rows(IDS[:2], ts=5))
    want = (
        dict.fromkeys(IDS[:20], 1)
        | dict.fromkeys([*IDS[:9], "new"], 2)
        | {"i1": 3, "i2": 3, "b1": 4, "k10": 4}
    )
    assert found(table) == sorted((want | dict.fromkeys(IDS[:2], 5)).items())
    assert rings(table) == first


@pytest.mark.req("IX-11")
def test_what_is_replaced_gets_new_file_groups_and_a_restore_takes_them_back(table):
    first = rings(table)
    saved = table.savepoint()
    where = next(iter(first))
    table.insert_overwrite(rows(IDS[:5], ts=2))
    second = rings(table)[where]
    assert (second.seq_no, second.values) == (1, first[where].values)
    assert not {n.file_id for n in second.nodes} & {n.file_id for n in first[where].nodes}
    table.upsert(rows(IDS[3:8], ts=3))
    assert rings(table)[where] == second
    table.insert_overwrite_table(rows(IDS[:3], ts=4))
    assert rings(table)[where].seq_no == 2
    if where:
        table.delete_partitions([where])
        table.upsert(rows(IDS[:3], ts=6))
        assert rings(table)[where].seq_no == 3
    assert len(found(table)) == 3
    table.restore(saved)
    assert rings(table) == first
    assert open_storage(table.uri).info(ring_path(where, second.instant)) is None
    table.upsert(rows(IDS[:1], ts=9))
    assert found(table) == sorted({**dict.fromkeys(IDS, 1), IDS[0]: 9}.items())


@pytest.mark.req("IX-11")
def test_a_filter_on_the_key_reads_one_bucket(table):
    table.upsert(rows(IDS[:12], ts=2))
    for key in IDS[::5]:
        scan = table.read(filter=f"id = '{key}'")
        assert scan.to_arrow().column("id").to_pylist() == [key]
        read = [f["path"].rpartition("/")[2] for f in scan.explain().files.to_pylist() if f["read"]]
        assert len({name.lstrip(".").partition("_")[0] for name in read}) == 1
    table.insert_overwrite(rows(IDS, ts=3))
    assert table.read(filter="id = 'k03'").to_arrow().column("ts").to_pylist() == [3]
    assert table.read(filter="id = 'absent'").to_arrow().num_rows == 0


@pytest.mark.req("NEW-14")
def test_another_engine_number_or_kind_of_table_is_refused(tmp_path, table):
    for options in ({ENGINE: "SIMPLE"}, {NUMBER: "8"}, {"hoodie.index.type": "SIMPLE"}):
        with pytest.raises(ConflictingOptionError):
            table.upsert(rows(IDS), options={"hoodie.index.type": "BUCKET", **options})
    with pytest.raises(UnsupportedError, match="copy-on-write"):
        make(tmp_path / "u", kind="COPY_ON_WRITE")
    simple = HudiTable.create(
        str(tmp_path / "v"), SCHEMA, table_type="MERGE_ON_READ", name="t", record_keys=["id"],
        partition_fields=["p"], options={"hoodie.index.type": "BUCKET", NUMBER: "4"},
    )  # fmt: skip
    simple.upsert(rows(IDS))
    with pytest.raises(ConflictingOptionError, match="CONSISTENT_HASHING"):
        simple.upsert(rows(IDS), options=RING)


@pytest.mark.req("IX-11")
def test_rows_that_another_writer_took_the_ring_from_are_refused(tmp_path, monkeypatch):
    table = make(tmp_path / "t")
    table.upsert(rows(IDS[:1]))
    other = HudiTable.open(table.uri)

    write = LocalEngine.write

    def late(self, frame, context, routing):
        monkeypatch.setattr(LocalEngine, "write", write)
        other.insert_overwrite(rows(IDS[:1], ts=2), options=LAZY)
        return write(self, frame, context, routing)

    monkeypatch.setattr(LocalEngine, "write", late)
    # Into a bucket that has no file group yet, so that no file group is common to both.
    with pytest.raises(WriteConflictError):
        table.upsert(rows(IDS[1:], ts=3), options=LAZY)
    assert found(table) == [(IDS[0], 2)]


@pytest.mark.req("IX-11")
def test_a_ring_with_replaced_file_groups_is_refused_until_it_is_overwritten(tmp_path):
    table = make(tmp_path / "t")
    table.upsert(rows(IDS))
    replaced = table.delete_partitions(["a"]).instant
    # What Apache Hudi 0.15 leaves.
    storage = open_storage(table.uri)
    storage.delete(marker_path("a", replaced))
    storage.delete(ring_path("a", replaced))
    table = HudiTable.open(table.uri)
    with pytest.raises(UnsupportedError, match=f"was replaced by {replaced} and still is on"):
        table.upsert(rows(IDS))
    assert found(table) == []
    table.upsert(rows(IDS, p="b"))
    table.insert_overwrite(rows(IDS[:3], ts=2))
    table.upsert(rows(IDS[2:5], ts=3))
    assert [ts for i, ts in found(table) if i in IDS[:5]] == [1, 2, 1, 2, 1, 3, 1, 3, 1, 3]
    assert rings(table)["a"].seq_no == 1


@pytest.mark.req("IX-11")
@pytest.mark.parametrize("number", ["4", "7"])
def test_a_table_that_is_written_anew_has_rings_of_its_own(tmp_path, number):
    table = make(tmp_path / "t")
    table.upsert(rows(IDS))
    table.insert_overwrite(rows(IDS, ts=2))
    storage = open_storage(table.uri)
    options = {
        **RING, NUMBER: number, "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.operation": "upsert",
    }  # fmt: skip
    execute(LocalEngine(1), storage, rows(IDS[:9]), options, mode="overwrite")
    assert rings(table) == {"a": HashingMetadata.initial("a", int(number))}
    HudiTable.open(table.uri).upsert(rows(IDS[3:12], ts=2))
    assert len(found(table)) == 12
    simple = {k: v for k, v in options.items() if "bucket" not in k and "index" not in k}
    execute(LocalEngine(1), storage, rows(IDS), simple, mode="overwrite")
    assert storage.info(".hoodie/.bucket_index") is None
