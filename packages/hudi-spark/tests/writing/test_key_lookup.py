"""Indexes on Spark leave what the same writes without a JVM leave, file by file."""

import json
import random

import pyarrow as pa
import pytest

import hudi_spark
from hudi_format.errors import CorruptFileError
from hudi_format.model import BaseFile
from hudi_format.storage.open import open_storage
from hudi_index import record_index
from hudi_spark.writing import engine, key_lookup
from hudi_spark.writing.key_lookup import deal
from hudi_timeline import HudiTable

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())]
)
DDL = "id string, p string, ts long, v string, w string"
OPERATION = "hoodie.datasource.write.operation"
EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
}
PARTIAL = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
NON_DEFAULTS = {
    "hoodie.datasource.write.payload.class": (
        "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    )
}
STAY = {
    "hoodie.simple.index.update.partition.path": "false",
    "hoodie.bloom.index.update.partition.path": "false",
}
MADE = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
SMALL = {"hoodie.parquet.small.file.limit": "0"}


def options(index, **more):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.index.type": index,
        **more,
    }


def save(spark, path, values, operation, given):
    frame = spark.createDataFrame(values, DDL)
    frame.write.format("hudi").options(**given).option(OPERATION, operation).mode("append").save(path)
    return hudi_spark.last_commit()


def content(path):
    names = ["_hoodie_record_key", "_hoodie_partition_path", "id", "p", "ts", "v", "w"]
    return sorted(
        tuple(map(str, r.values())) for r in HudiTable.open(path).read(names).to_arrow().to_pylist()
    )


def changed(path):
    """The keys of the rows that have the newest commit's time."""
    found = HudiTable.open(path).read(["_hoodie_commit_time", "_hoodie_record_key"]).to_arrow().to_pylist()
    newest = max(r["_hoodie_commit_time"] for r in found)
    return sorted(r["_hoodie_record_key"] for r in found if r["_hoodie_commit_time"] == newest)


def counts(result):
    return sorted(
        (s.partition, s.num_writes, s.num_deletes, s.num_update_writes, s.num_inserts)
        for s in result.write_stats
    )


def steps(seed):
    rng = random.Random(seed)
    found = []
    for n in range(3):
        rows = [
            (
                f"k{rng.randrange(60)}",
                f"p{rng.randrange(4)}",
                rng.randrange(1000),
                None if i % 3 == 0 else f"{n}-{i}",
                f"{n}-{i}" if i % 3 == 0 else None,
            )
            for i in range(50)
        ]
        # Rows of one key and ordering value are told apart by their order, which Spark does not keep.
        found.append(list({(r[0], r[2]): r for r in rows}.values()))
    return [("insert", found[0]), ("upsert", found[1]), ("upsert", found[2]), ("delete", found[1][:9])]


@pytest.mark.sampled(17, values=False)
@pytest.mark.req("IX-02", "IX-04", "IX-06", "IX-08", "NEW-02")
@pytest.mark.parametrize(
    ("index", "more"),
    [
        ("BLOOM", SMALL),
        ("BLOOM", {"hoodie.bloom.index.prune.by.ranges": "false"}),
        ("GLOBAL_BLOOM", {}),
        ("GLOBAL_BLOOM", {**STAY, **EVENT_TIME}),
        ("GLOBAL_SIMPLE", EVENT_TIME),
        ("GLOBAL_SIMPLE", STAY),
        ("GLOBAL_SIMPLE", PARTIAL),
        ("GLOBAL_BLOOM", {**PARTIAL, **STAY}),
        ("GLOBAL_BLOOM", NON_DEFAULTS),
        ("RECORD_INDEX", {**MADE, **MOVES, **EVENT_TIME}),
        ("RECORD_INDEX", {**MADE, **MOVES, **PARTIAL}),
        ("RECORD_INDEX", {**MADE, **ON_READ}),
        ("RECORD_INDEX", {**MADE, **EVENT_TIME}),
        ("CUSTOM", MOVES),
    ],
    ids=[
        "bloom",
        "bloom-no-ranges",
        "moving",
        "staying-late",
        "moving-late",
        "staying",
        "moving-filled",
        "staying-filled",
        "moving-not-default",
        "indexed-moving-late",
        "indexed-moving-filled",
        "indexed-logs",
        "indexed-staying-late",
        "own-class",
    ],
)
def test_both_engines_find_the_same(spark, tmp_path, index, more):
    find_on_both(spark, tmp_path, index, more, by_index=index in ("RECORD_INDEX", "CUSTOM"))


@pytest.mark.req("IX-12")
@pytest.mark.parametrize("more", [{**MADE, **MOVES, **EVENT_TIME}, {**MADE, **MOVES, **PARTIAL}, MADE])
@pytest.mark.slow
def test_both_engines_find_the_same_where_files_are_cheaper_to_read_than_the_record_index(
    spark, tmp_path, more, monkeypatch
):
    for name in ("_WORTH_CHOOSING_S", "_OPENING_S", "_SENDING_S"):
        monkeypatch.setattr(record_index, name, 0.0)
    monkeypatch.setattr(record_index, "_INDEX_BYTES_PER_S", 1.0)
    find_on_both(spark, tmp_path, "RECORD_INDEX", more, by_index=False)


def find_on_both(spark, tmp_path, index, more, *, by_index):
    given = options(index, **more, **{"hoodie.combine.before.insert": "true"})
    mine, theirs = str(tmp_path / "spark"), str(tmp_path / "python")
    own: dict[str, dict[str, str]] = {mine: {}, theirs: {}}
    if index == "CUSTOM":
        del given["hoodie.index.type"]
        for path in own:
            own[path] = {"hoodie.index.class": "sqlite", "hudi.index.argument.path": f"{path}.sqlite"}
    HudiTable.create(
        theirs,
        SCHEMA,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
        table_type=more.get("hoodie.datasource.write.table.type", "COPY_ON_WRITE"),
        options={k: v for k, v in more.items() if k not in ON_READ},
    )
    for operation, values in steps(7):
        on_spark = save(spark, mine, values, operation, {**given, **own[mine]})
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)
        without_jvm = getattr(HudiTable.open(theirs), operation)(table, options={**given, **own[theirs]})
        assert content(mine) == content(theirs), operation
        assert changed(mine) == changed(theirs), operation
        assert counts(on_spark) == counts(without_jvm), operation
        assert on_spark.warnings == without_jvm.warnings
        if operation != "insert":
            assert on_spark.lookup == without_jvm.lookup
            assert (on_spark.lookup.opened == 0) == by_index


@pytest.mark.slow
def test_rows_that_stay_in_another_partition_unasked_are_a_warning(spark, tmp_path):
    path, given = str(tmp_path / "t"), options("RECORD_INDEX", **MADE)
    save(spark, path, [(k, "a", 1, "old", "") for k in ("k1", "k2", "k3")], "insert", given)
    moved = [
        ("k1", "b", 2, "new", ""),
        ("k2", "a", 2, "new", ""),
        ("k3", "c", 2, "", ""),
        ("n", "b", 2, "", ""),
    ]
    (text,) = (w for w in save(spark, path, moved, "upsert", given).warnings if "another p than" in w)
    assert text.startswith("2 rows have another p than the partition that the record of that key is in")
    again = save(
        spark, path, moved, "upsert", {**given, "hoodie.record.index.update.partition.path": "false"}
    )
    assert not [w for w in again.warnings if "another p than" in w]


@pytest.mark.req("IX-20")
def test_files_that_hold_no_key_are_not_opened(spark, tmp_path):
    path = str(tmp_path / "t")
    HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    for n in range(6):
        rows = [{"id": f"{n}{i:02d}", "p": "a", "ts": 1, "v": "", "w": ""} for i in range(20)]
        HudiTable.open(path).insert(pa.Table.from_pylist(rows, SCHEMA), options=SMALL)
    result = save(
        spark,
        path,
        [("305", "a", 2, "new", ""), ("5999", "b", 2, "new", "")],
        "upsert",
        options("BLOOM", **SMALL),
    )
    assert (result.lookup.files, result.lookup.by_range, result.lookup.opened) == (6, 5, 1)
    assert (result.updated, result.inserted) == (1, 1)


@pytest.mark.slow
def test_workers_keep_the_keys_of_files_that_they_have_read(spark, tmp_path):
    path = str(tmp_path / "t")
    given = options("INMEMORY", **SMALL)
    save(spark, path, [(f"k{i}", f"p{i % 2}", 1, "old", "") for i in range(6)], "insert", given)
    for n in range(3):
        result = save(
            spark, path, [("k1", "p1", n + 2, "new", ""), (f"n{n}", "p1", 1, "", "")], "upsert", given
        )
        assert (result.updated, result.inserted, result.lookup.index) == (1, 1, "INMEMORY")
        # Which worker has what is Spark's affair.
        assert result.lookup.opened + result.lookup.held == result.lookup.files == n + 1
    assert len(content(path)) == 9


@pytest.mark.req("IX-05")
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM"])
def test_keys_of_log_files_without_a_base_file_are_found(spark, tmp_path, index, monkeypatch):
    monkeypatch.setattr(engine, "SENT_KEYS", 0)  # where base files alone would be asked by Spark's join
    path, given = str(tmp_path / "t"), {**options(index, **SMALL), **ON_READ}
    for ts in (1, 2):
        save(spark, path, [(k, "a", ts, "old", "") for k in ("k1", "k2")], "upsert", given)
    # The log file of the second write stays alone, as Flink's writers begin file groups.
    storage = open_storage(path)
    first, second = HudiTable.open(path).timeline.completed_writes()
    commit = json.loads(storage.read(second.path))
    (stat,) = commit["partitionToWriteStats"]["a"]
    name = f".{stat['fileId']}_{second.time}.log.1_{stat['path'].rpartition('_')[2]}"
    storage.create(f"a/{name}", storage.read(stat["path"]))
    for entry in storage.list("a"):
        if entry.name.endswith(".parquet") or entry.name == stat["path"].rpartition("/")[2]:
            storage.delete(f"a/{entry.name}")
    for entry in storage.list(".hoodie"):
        if entry.name.startswith(first.time):
            storage.delete(f".hoodie/{entry.name}")
    stat |= {"path": f"a/{name}", "prevCommit": second.time, "baseFile": "", "logFiles": [name]}
    storage.publish(second.path, json.dumps(commit).encode())
    result = save(spark, path, [("k1", "a", 3, "new", ""), ("n", "a", 3, "new", "")], "upsert", given)
    assert (result.updated, result.inserted, result.lookup.opened) == (1, 1, 1)
    assert [(r[2], r[5]) for r in content(path)] == [("k1", "new"), ("k2", "old"), ("n", "new")]


@pytest.mark.req("WR-20")
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_as_many_tasks_write_as_were_asked_for(spark, tmp_path, index):
    path = str(tmp_path / "t")

    def tasks(operation, count):
        given = options(index, **{f"hoodie.{operation}.shuffle.parallelism": str(count)})
        rows = [(f"k{i}", f"p{i}", count, "", "") for i in range(6)]
        result = save(spark, path, rows, operation, given)
        # The first number of a file's write token is the task's.
        return len({s.path.rpartition("/")[2].split("_")[1].split("-")[0] for s in result.write_stats})

    assert tasks("insert", 1) == 1
    assert tasks("upsert", 3) == 3
    assert tasks("upsert", 100) == 6  # file groups
    assert tasks("delete", 2) == 2


@pytest.mark.req("IX-04")
@pytest.mark.slow
def test_many_partitions_and_keys_are_joined(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(key_lookup, "_LITERAL_PARTITIONS", 1)
    monkeypatch.setattr(engine, "BROADCAST_ROWS", 1)
    path = str(tmp_path / "t")
    for index in ("BLOOM", "GLOBAL_BLOOM"):
        first = [(f"{index}{i}", f"p{i % 5}", 1, "old", "") for i in range(50)]
        save(spark, path, first, "insert", options(index))
        changes = [(f"{index}{i}", f"p{i % 5}", 2, "new", "") for i in range(0, 100, 2)]
        result = save(spark, path, changes, "upsert", options(index))
        assert (result.updated, result.inserted) == (25, 25)


def test_a_damaged_footer_is_our_error(spark, tmp_path):
    path = str(tmp_path / "t")
    save(spark, path, [("k1", "p", 1, "old", "")], "insert", options("BLOOM"))
    (file,) = (tmp_path / "t" / "p").glob("*.parquet")
    data = file.read_bytes()
    at = data.index(b"DYNAMIC_V0")
    file.write_bytes(data[:at] + b"DYNAMIC_V7" + data[at + 10 :])
    with pytest.raises(CorruptFileError, match="DYNAMIC_V7"):
        save(spark, path, [("k1", "p", 2, "new", "")], "upsert", options("BLOOM"))


def test_files_are_dealt_out_evenly_and_those_of_a_partition_together():
    files = {
        f"p{p}": [BaseFile(f"p{p}", f"{p}-{n}", f"{p}-{n}", "1", size=1000) for n in range(10)]
        for p in range(4)
    }
    groups = deal(files, 4)
    assert [len(g) for g in groups] == [10] * 4
    assert [{f.partition for f in g} for g in groups] == [{"p0"}, {"p1"}, {"p2"}, {"p3"}]
    assert len(deal({"p": files["p1"][:1]}, 8)) == 1
    assert deal({}, 8) == [()]
