import json

import pyarrow as pa
import pytest

from hudi_format.errors import DuplicateKeyError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_index import lookup
from hudi_timeline import HudiTable
from hudi_timeline.writing import latest_slices

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
LOGS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline.max.delta.commits": "100"}


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], schema=SCHEMA)


def held(t):
    return sorted((r["id"], r["p"], r["v"]) for r in t.read().to_arrow().to_pylist())


def made(path, **options):
    t = HudiTable.create(
        str(path), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options=options,
    )  # fmt: skip
    t.bulk_insert(rows(("1", "a", 1, 1.0), ("2", "a", 1, 2.0)), options={**LOGS, **options})
    return t


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_record_that_was_deleted_in_a_log_and_inserted_anew_is_updated_once(tmp_path, index):
    options = {**LOGS, "hoodie.index.type": index}
    t = made(tmp_path / "t", **{"hoodie.index.type": index})
    t.delete(pa.table({"id": ["1"], "p": ["a"]}), options=options)
    t.insert(rows(("1", "a", 2, 10.0)), options=options)
    for v in (11.0, 12.0):
        t.upsert(rows(("1", "a", 3, v), ("2", "a", 3, v)), options=options)
        assert held(t) == [("1", "a", v), ("2", "a", v)]
    assert t.verify() == []


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_a_record_that_a_log_deleted_comes_back_in_its_place(tmp_path, index):
    options = {**LOGS, "hoodie.index.type": index}
    t = made(tmp_path / "t")
    t.delete(pa.table({"id": ["1"], "p": ["a"]}), options=options)
    result = t.upsert(rows(("1", "a", 2, 10.0)), options=options)
    assert result.files_written == 0
    assert held(t) == [("1", "a", 10.0), ("2", "a", 2.0)]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.sampled(2)
def test_a_record_that_moves_to_and_fro_is_in_one_place(tmp_path, index):
    options = {**LOGS, "hoodie.index.type": index}
    t = made(tmp_path / "t", **{"hoodie.index.type": index})
    for ts, p in enumerate("babcab", 2):
        t.upsert(rows(("1", p, ts, float(ts))), options=options)
        assert held(t) == sorted([("1", p, float(ts)), ("2", "a", 2.0)])
    t.delete(pa.table({"id": ["1"], "p": ["b"]}), options=options)
    assert held(t) == [("2", "a", 2.0)]
    t.upsert(rows(("1", "c", 20, 20.0)), options=options)
    assert held(t) == [("1", "c", 20.0), ("2", "a", 2.0)]


def test_a_key_that_a_log_deleted_is_new_to_an_insert_that_looks_for_known_ones(tmp_path):
    t = made(tmp_path / "t")
    t.delete(pa.table({"id": ["1"], "p": ["a"]}), options=LOGS)
    policy = "hoodie.datasource.insert.dup.policy"
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        t.insert(rows(("1", "a", 2, 5.0), ("2", "a", 2, 5.0)), options={**LOGS, policy: "fail"})
    t.insert(rows(("1", "a", 2, 5.0), ("2", "a", 2, 5.0)), options={**LOGS, policy: "drop"})
    assert held(t) == [("1", "a", 5.0), ("2", "a", 2.0)]


def test_flagged_deletes_in_logs_count_too(tmp_path):
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    t = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip

    def flagged(key, ts, v, gone):
        row = {"id": key, "p": "a", "ts": ts, "v": v, "_hoodie_is_deleted": gone}
        return pa.Table.from_pylist([row], schema=schema)

    t.bulk_insert(flagged("1", 1, 1.0, False), options=LOGS)
    t.upsert(flagged("1", 2, 1.0, True), options=LOGS)
    t.insert(flagged("1", 3, 3.0, False), options=LOGS)
    t.upsert(flagged("1", 4, 4.0, False), options=LOGS)
    assert held(t) == [("1", "a", 4.0)]


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_a_record_that_comes_back_beside_a_pending_compaction_is_found_after_it(tmp_path, index):
    options = {**LOGS, "hoodie.index.type": index}
    t = made(tmp_path / "t", **{"hoodie.index.type": index})
    t.upsert(rows(("2", "a", 2, 20.0)), options=options)
    t.delete(pa.table({"id": ["1"], "p": ["a"]}), options=options)
    t.compact(mode="schedule")
    t.upsert(rows(("1", "a", 3, 3.0), ("2", "a", 3, 3.0)), options=options)
    assert held(t) == [("1", "a", 3.0), ("2", "a", 3.0)]
    t.upsert(rows(("1", "a", 4, 4.0)), options=options)
    t.compact(mode="execute")
    assert held(t) == [("1", "a", 4.0), ("2", "a", 3.0)]
    t.upsert(rows(("1", "a", 5, 5.0), ("2", "a", 5, 5.0)), options=options)
    assert held(t) == [("1", "a", 5.0), ("2", "a", 5.0)]
    t.compact()
    assert held(t) == [("1", "a", 5.0), ("2", "a", 5.0)]
    assert t.verify(deep=True) == []


def test_the_logs_that_a_look_up_asks_obey_the_limit_of_the_write(tmp_path, monkeypatch):
    seen = []
    real = lookup.LogRecords

    def noted(storage, files, merge, *rest, **more):
        seen.append(merge.limit)
        return real(storage, files, merge, *rest, **more)

    monkeypatch.setattr(lookup, "LogRecords", noted)
    t = made(tmp_path / "t")
    t.delete(pa.table({"id": ["1"], "p": ["a"]}), options=LOGS)
    t.insert(rows(("1", "a", 2, 10.0)), options=LOGS)
    t.upsert(rows(("1", "a", 3, 11.0)), options={**LOGS, "hoodie.memory.merge.max.size": "1048576"})
    assert held(t) == [("1", "a", 11.0), ("2", "a", 2.0)]
    assert [limit.bytes for limit in seen] == [1048576]


def test_a_write_reads_the_plan_of_a_pending_compaction_once_for_its_own_use(tmp_path, monkeypatch):
    t = made(tmp_path / "t")
    t.upsert(rows(("1", "a", 2, 10.0)), options=LOGS)
    t.compact(mode="schedule")
    asked = []
    real = latest_slices.pending_compactions
    monkeypatch.setattr(latest_slices, "pending_compactions", lambda s: asked.append(1) or real(s))
    t.upsert(rows(("1", "a", 3, 11.0)), options={**LOGS, "hoodie.compact.inline": "false"})
    assert asked == [1]


# --- file groups that have log files alone -----------------------------------------------------------------

EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
}
KINDS = ("SIMPLE", "BLOOM", "INMEMORY", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")


def logs_alone(path, index, **options):
    """A table of one file group that has a log file alone, as Flink's writers begin them, and one with a base file."""
    t = HudiTable.create(
        str(path), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options={"hoodie.index.type": index, **options},
    )  # fmt: skip
    given = {**LOGS, "hoodie.index.type": index, **options}
    t.upsert(rows(("1", "a", 1, 1.0), ("2", "a", 1, 2.0), ("3", "a", 1, 3.0)), options=given)
    t.upsert(rows(("1", "a", 2, 1.0), ("2", "a", 2, 2.0), ("3", "a", 2, 3.0)), options=given)
    storage = open_storage(str(path))
    first, second = HudiTable.open(str(path)).timeline.completed_writes()
    commit = json.loads(storage.read(second.path))
    (stat,) = commit["partitionToWriteStats"]["a"]
    name = f".{stat['fileId']}_{second.time}.log.1_{stat['path'].rpartition('_')[2]}"
    storage.create(f"a/{name}", storage.read(stat["path"]))
    gone = [stat["path"], *(f"a/{e.name}" for e in storage.list("a") if e.name.endswith(".parquet"))]
    gone += [f".hoodie/{e.name}" for e in storage.list(".hoodie") if e.name.startswith(first.time)]
    for one in gone:
        storage.delete(one)
    commit["partitionToWriteStats"]["a"] = [
        {**stat, "path": f"a/{name}", "prevCommit": second.time, "baseFile": "", "logFiles": [name]}
    ]
    storage.publish(second.path, json.dumps(commit).encode())
    t = HudiTable.open(str(path))
    t.insert(rows(("9", "a", 1, 9.0)), options=given)
    assert held(t) == [("1", "a", 1.0), ("2", "a", 2.0), ("3", "a", 3.0), ("9", "a", 9.0)]
    return t, given


@pytest.mark.req("IX-05")
@pytest.mark.parametrize("index", KINDS)
@pytest.mark.sampled(6)
def test_keys_of_log_files_without_a_base_file_are_found(tmp_path, index):
    t, given = logs_alone(tmp_path / "t", index)
    said = t.upsert(rows(("1", "a", 3, 10.0), ("8", "a", 3, 8.0)), options=given, dry_run=True)
    result = t.upsert(rows(("1", "a", 3, 10.0), ("8", "a", 3, 8.0)), options=given)
    assert (said.updated, said.inserted) == (result.updated, result.inserted) == (1, 1)
    assert t.delete(pa.table({"id": ["2"], "p": ["a"]}), options=given).deleted == 1
    assert held(t) == [("1", "a", 10.0), ("3", "a", 3.0), ("8", "a", 8.0), ("9", "a", 9.0)]
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        t.insert(rows(("3", "a", 4, 0.0)), options={**given, "hoodie.datasource.insert.dup.policy": "fail"})
    dropped = t.insert(
        rows(("3", "a", 4, 0.0), ("2", "a", 4, 22.0)),
        options={**given, "hoodie.datasource.insert.dup.policy": "drop"},
    )
    assert dropped.inserted == 1
    t.upsert(rows(("2", "a", 5, 23.0), ("1", "a", 5, 11.0)), options=given)
    after = [("1", "a", 11.0), ("2", "a", 23.0), ("3", "a", 3.0), ("8", "a", 8.0), ("9", "a", 9.0)]
    assert held(t) == after
    t.compact(options=given)
    t.upsert(rows(("3", "a", 6, 3.5)), options=given)
    assert held(t) == [(i, p, 3.5 if i == "3" else v) for i, p, v in after]


@pytest.mark.req("IX-05")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_records_move_out_of_log_files_alone_where_their_values_do_not_count(tmp_path, index):
    t, given = logs_alone(tmp_path / "t", index)
    t.upsert(rows(("1", "b", 3, 10.0)), options=given)
    assert held(t) == [("1", "b", 10.0), ("2", "a", 2.0), ("3", "a", 3.0), ("9", "a", 9.0)]
    t, given = logs_alone(tmp_path / "u", index, **EVENT_TIME)
    before = held(t)
    with pytest.raises(UnsupportedError, match="log files alone"):
        t.upsert(rows(("1", "b", 3, 10.0)), options=given)
    assert held(t) == before
    t.upsert(rows(("1", "a", 3, 10.0)), options=given)
    assert held(t)[0] == ("1", "a", 10.0)


@pytest.mark.req("IX-05")
def test_virtual_keys_of_log_files_without_a_base_file_are_found(tmp_path):
    t, given = logs_alone(tmp_path / "t", "SIMPLE", **{"hoodie.populate.meta.fields": "false"})
    assert t.upsert(rows(("1", "a", 3, 10.0)), options=given).updated == 1
    assert held(t) == [("1", "a", 10.0), ("2", "a", 2.0), ("3", "a", 3.0), ("9", "a", 9.0)]


def key_in_log(path, index):
    """A slice with "1" and "2" in its base file and an insert of "3" in its log, as Flink fills small files."""
    t = HudiTable.create(
        str(path), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options={"hoodie.index.type": index},
    )  # fmt: skip
    given = {**LOGS, "hoodie.index.type": index, "hoodie.parquet.small.file.limit": "0"}
    t.upsert(rows(("1", "a", 1, 1.0), ("2", "a", 1, 2.0)), options=given)
    t.upsert(rows(("3", "a", 1, 0.0)), options=given)
    t.upsert(rows(("3", "a", 2, 3.0)), options=given)
    storage = open_storage(str(path))
    first, second, third = HudiTable.open(str(path)).timeline.completed_writes()
    (base,), (gone,) = (
        json.loads(storage.read(i.path))["partitionToWriteStats"]["a"] for i in (first, second)
    )
    commit = json.loads(storage.read(third.path))
    (stat,) = commit["partitionToWriteStats"]["a"]
    name = f".{base['fileId']}_{first.time}.log.1_{stat['path'].rpartition('_')[2]}"
    storage.create(f"a/{name}", storage.read(stat["path"]))
    left = [f".hoodie/{e.name}" for e in storage.list(".hoodie") if e.name.startswith(second.time)]
    for one in (stat["path"], gone["path"], *left):
        storage.delete(one)
    inserted = {
        "fileId": base["fileId"], "path": f"a/{name}", "prevCommit": first.time, "logFiles": [name],
        "baseFile": base["path"].rpartition("/")[2], "numInserts": 1, "numUpdateWrites": 0,
    }  # fmt: skip
    commit["partitionToWriteStats"]["a"] = [{**stat, **inserted}]
    storage.publish(third.path, json.dumps(commit).encode())
    t = HudiTable.open(str(path))
    assert held(t) == [("1", "a", 1.0), ("2", "a", 2.0), ("3", "a", 3.0)]
    return t, given


@pytest.mark.req("IX-05")
@pytest.mark.parametrize("index", KINDS)
@pytest.mark.sampled(2)
def test_keys_that_were_inserted_into_logs_beside_base_files_are_found(tmp_path, index):
    t, given = key_in_log(tmp_path / "t", index)
    given_up = {**given, "hoodie.datasource.insert.dup.policy": "fail"}
    with pytest.raises(DuplicateKeyError, match="1 rows have a key"):
        t.insert(rows(("3", "a", 4, 0.0)), options=given_up)
    result = t.upsert(rows(("1", "a", 5, 10.0), ("3", "a", 5, 30.0), ("4", "a", 5, 4.0)), options=given)
    assert (result.updated, result.inserted) == (2, 1)
    assert held(t) == [("1", "a", 10.0), ("2", "a", 2.0), ("3", "a", 30.0), ("4", "a", 4.0)]
    assert t.delete(pa.table({"id": ["3", "2"], "p": ["a", "a"]}), options=given).deleted == 2
    assert held(t) == [("1", "a", 10.0), ("4", "a", 4.0)]
    t.compact(options=given)
    assert held(t) == [("1", "a", 10.0), ("4", "a", 4.0)]
    assert t.verify(deep=True) == []


@pytest.mark.req("IX-05")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_records_of_logs_alone_that_would_have_to_meet_the_stored_ones_are_refused(tmp_path, index):
    payload = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    t, given = logs_alone(tmp_path / "t", index, **{"hoodie.datasource.write.payload.class": payload})
    before = held(t)
    with pytest.raises(UnsupportedError, match="needs their stored values") as caught:
        t.upsert(rows(("1", "a", 3, None)), options=given)
    assert caught.value.remedy == "compact the table first."
    assert held(t) == before
    t.compact(options=given)
    t.upsert(rows(("1", "a", 3, None)), options=given)
    assert held(t) == before


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize(
    "payload",
    ["DefaultHoodieRecordPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload"],
)
@pytest.mark.parametrize("moves", ["true", "false"])
@pytest.mark.sampled(3)
def test_records_of_altered_columns_in_logs_meet_those_that_come_from_other_partitions(
    tmp_path, index, payload, moves
):
    """By their ids: the name that a column had first is another one's now."""
    options = {
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        f"hoodie.{index.partition('_')[2].lower()}.index.update.partition.path": moves,
        "hoodie.index.type": index,
    }
    given = {**LOGS, **options}
    schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("w", pa.string())]
    )
    t = HudiTable.create(
        str(tmp_path), schema, table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options=options,
    )  # fmt: skip
    t.insert(
        pa.Table.from_pylist([{"id": i, "p": "a", "ts": 5, "v": 1, "w": f"w{i}"} for i in "123"], schema),
        options=given,
    )
    t.upsert(
        pa.Table.from_pylist([{"id": "2", "p": "a", "ts": 6, "v": 2, "w": "logged"}], schema), options=given
    )
    t.alter().rename("w", "word").rename("v", "w").execute()
    new = pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("ts", pa.int64()),
            ("w", pa.int32()),
            ("word", pa.string()),
        ]
    )
    t = HudiTable.open(str(tmp_path))
    come = [
        {"id": "1", "p": "b", "ts": 7, "w": None, "word": "moved"},
        {"id": "2", "p": "b", "ts": 7, "w": 22, "word": None},
        {"id": "3", "p": "b", "ts": 1, "w": 33, "word": "too late"},
    ]
    t.upsert(pa.Table.from_pylist(come, new), options=given)
    found = {r["id"]: (r["ts"], r["w"], r["word"]) for r in t.read().to_arrow().to_pylist()}
    filled = payload != "DefaultHoodieRecordPayload"
    late = (1, 33, "too late") if payload.startswith("OverwriteNon") else (5, 1, "w3")
    # Of records in logs this payload takes the last one as it is, before it meets that of the base file.
    logged = "w2" if payload.startswith("OverwriteNon") and moves == "false" else "logged"
    assert found == {
        "1": (7, 1 if filled else None, "moved"), "2": (7, 22, logged if filled else None), "3": late
    }  # fmt: skip
    assert t.duplicates(across_partitions=True).num_rows == 0
