"""Global indexes of merge-on-read tables under payloads that compare records with stored ones, or fill them.

What is stored is what the log files say, not what the base file does.
"""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int32()), ("v", pa.string()), ("w", pa.string())]
)
LOGS = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}
GLOBAL = ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"]


def rows(*given, schema=SCHEMA):
    return pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in given], schema=schema)


def made(path, index, payload, schema=SCHEMA, ordering="ts", **more):
    options = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        **LOGS,
        **more,
    }
    t = HudiTable.create(
        str(path), schema, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=[ordering], options=options,
    )  # fmt: skip
    return t, options


def held(t):
    return sorted(
        (r["id"], r["_hoodie_partition_path"], r["ts"], r["v"], r["w"])
        for r in t.read(meta_columns=True).to_arrow().to_pylist()
    )


@pytest.mark.req("IX-06", "IX-08", "PM-02", "PM-14")
@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize(
    "payload", ["DefaultHoodieRecordPayload", "EventTimeAvroPayload", "FirstValueAvroPayload"]
)
@pytest.mark.sampled(3)
def test_a_record_moves_only_if_it_is_newer_than_the_one_in_the_log(tmp_path, index, payload):
    t, options = made(tmp_path / "t", index, payload)
    t.insert(rows(("1", "a", 10, "base", "w"), ("2", "a", 10, "base", "w")), options=options)
    t.upsert(rows(("1", "a", 20, "log", "w")), options=options)
    t.upsert(rows(("1", "b", 15, "late", "w"), ("2", "b", 15, "newer", "w")), options=options)
    assert held(t) == [("1", "a", 20, "log", "w"), ("2", "b", 15, "newer", "w")]
    t.upsert(rows(("1", "b", 21, "moved", "w"), ("2", "a", 14, "late", "w")), options=options)
    now = [("1", "b", 21, "moved", "w"), ("2", "b", 15, "newer", "w")]
    assert held(t) == now
    t.compact()
    assert held(t) == now
    assert t.verify(deep=True) == []


@pytest.mark.parametrize("index", GLOBAL)
def test_a_record_that_wins_is_written_again_as_the_log_has_it(tmp_path, index):
    """As Apache Hudi 0.15 (tests/interop/test_index.py), so that incremental answers agree."""
    t, options = made(tmp_path / "t", index, "DefaultHoodieRecordPayload")
    t.insert(rows(("1", "a", 10, "base", "w")), options=options)
    before = t.upsert(rows(("1", "a", 20, "log", None)), options=options)
    t.upsert(rows(("1", "b", 15, "late", "w"), ("3", "b", 15, "new", "w")), options=options)
    since = t.read_incremental(before.instant, meta_columns=True).to_arrow().to_pylist()
    assert sorted((r["id"], r["p"], r["ts"], r["v"], r["w"]) for r in since) == [
        ("1", "a", 20, "log", None),
        ("3", "b", 15, "new", "w"),
    ]


@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize("payload", ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"])
def test_a_record_that_moves_takes_along_what_the_log_has(tmp_path, index, payload):
    t, options = made(tmp_path / "t", index, payload)
    t.insert(rows(("1", "a", 10, "base", "base"), ("2", "a", 10, "base", "base")), options=options)
    t.upsert(rows(("1", "a", 11, None, "log")), options=options)
    t.upsert(rows(("1", "b", 12, "moved", None), ("2", "b", 12, None, "moved")), options=options)
    assert held(t) == [("1", "b", 12, "moved", "log"), ("2", "b", 12, "base", "moved")]
    assert t.verify(deep=True) == []


@pytest.mark.parametrize("index", GLOBAL)
def test_a_late_record_fills_only_what_nothing_stored_has(tmp_path, index):
    """Among the records of the log alone it would fill a value that the base file has."""
    t, options = made(tmp_path / "t", index, "PartialUpdateAvroPayload")
    t.insert(rows(("1", "a", 10, "base", None), ("2", "a", 10, "base", None)), options=options)
    t.upsert(rows(("1", "a", 20, None, None), ("2", "a", 20, None, None)), options=options)
    t.upsert(rows(("1", "a", 15, "late", "late"), ("2", "b", 15, "late", "late")), options=options)
    assert [r[2:] for r in held(t)] == [(20, "base", "late")] * 2
    assert t.verify(deep=True) == []


@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize("memory", ["", "1"])
@pytest.mark.sampled(3)
def test_a_deleted_record_is_no_stored_one(tmp_path, index, memory):
    more = {"hoodie.memory.merge.max.size": memory} if memory else {}
    t, options = made(tmp_path / "t", index, "DefaultHoodieRecordPayload", **more)
    t.insert(rows(*((str(n), "a", 10, "base", "w") for n in range(50))), options=options)
    t.delete(pa.table({"id": ["1", "2"], "p": ["a", "a"]}), options=options)
    t.upsert(
        rows(("1", "a", 5, "back", "w"), ("2", "b", 5, "back", "w"), ("3", "b", 5, "late", "w")),
        options=options,
    )
    assert [r for r in held(t) if r[0] in ("1", "2", "3")] == [
        ("1", "a", 5, "back", "w"),
        ("2", "b", 5, "back", "w"),
        ("3", "a", 10, "base", "w"),
    ]
    t.upsert(rows(("1", "b", 6, "again", "w")), options=options)
    t.compact()
    assert [r for r in held(t) if r[0] in ("1", "2", "3")] == [
        ("1", "b", 6, "again", "w"),
        ("2", "b", 5, "back", "w"),
        ("3", "a", 10, "base", "w"),
    ]
    assert t.verify(deep=True) == []


def test_stored_records_are_older_than_the_tables_columns(tmp_path):
    """The ordering field is wider now, and inside of a struct; a column is new."""
    old = pa.struct([("at", pa.int32())])
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("o", old)])
    t, options = made(
        tmp_path / "t",
        "GLOBAL_SIMPLE",
        "DefaultHoodieRecordPayload",
        schema,
        "o.at",
        **{"hudi.write.types": "data"},
    )
    t.insert(rows(("1", "a", {"at": 10}), ("2", "a", {"at": 10}), schema=schema), options=options)
    t.upsert(rows(("1", "a", {"at": 20}), schema=schema), options=options)
    wide = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("o", pa.struct([("at", pa.int64())])), ("n", pa.string())]
    )
    t.upsert(rows(("1", "b", {"at": 15}, "n"), ("2", "b", {"at": 15}, "n"), schema=wide), options=options)
    found = t.read(meta_columns=True).to_arrow().to_pylist()
    assert sorted((r["id"], r["_hoodie_partition_path"], r["o"]["at"], r["n"]) for r in found) == [
        ("1", "a", 20, None),
        ("2", "b", 15, "n"),
    ]


@pytest.mark.parametrize("index", GLOBAL)
def test_beside_a_pending_compaction(tmp_path, index):
    t, options = made(tmp_path / "t", index, "DefaultHoodieRecordPayload")
    t.insert(rows(("1", "a", 10, "base", "w"), ("2", "a", 10, "base", "w")), options=options)
    t.upsert(rows(("1", "a", 20, "log", "w")), options=options)
    t.compact(mode="schedule")
    t.upsert(rows(("1", "b", 15, "late", "w"), ("2", "b", 15, "moved", "w")), options=options)
    now = [("1", "a", 20, "log", "w"), ("2", "b", 15, "moved", "w")]
    assert held(t) == now
    t.upsert(rows(("1", "a", 30, "after", "w")), options=options)
    t.upsert(rows(("1", "b", 25, "late", "w")), options=options)
    t.compact(mode="execute")
    assert held(t) == [("1", "a", 30, "after", "w"), now[1]]
    assert t.verify(deep=True) == []
