"""Defaults other than null of a table whose schema came from a registry: writes keep them, and merge by them."""

import json

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("m", pa.int64())]
)
PAYLOAD = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
LOGS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
    "hoodie.write.set.null.for.missing.columns": "true",
}


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], schema=SCHEMA)


def made(path, kind, payload=PAYLOAD):
    """A table with the default 7 of `n`, as Apache Hudi's streamer makes it of a registry's schema."""
    options = {"hoodie.datasource.write.payload.class": payload}
    t = HudiTable.create(
        str(path), SCHEMA, name="t", table_type=kind, record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options=options,
    )  # fmt: skip
    t.insert(rows(("1", "a", 1, 5, 5), ("2", "a", 1, 5, 5)), options=LOGS)
    (commit,) = path.glob(".hoodie/*commit")
    text = json.loads(commit.read_text())
    schema = json.loads(text["extraMetadata"]["schema"])
    schema["fields"][3] |= {"type": ["long", "null"], "default": 7}
    text["extraMetadata"]["schema"] = json.dumps(schema)
    commit.write_text(json.dumps(text))
    return HudiTable.open(str(path))


def default_of(t):
    newest = t.timeline.completed_writes()[-1]
    with open(f"{t.uri}/.hoodie/{newest.time}.{newest.action}") as file:
        schema = json.loads(json.load(file)["extraMetadata"]["schema"])
    return {f["name"]: f.get("default") for f in schema["fields"]}["n"]


def held(t):
    return sorted((r["id"], r["n"], r["m"]) for r in t.read().to_arrow().to_pylist())


@pytest.mark.req("PM-09", "SE-01")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_value_like_the_default_leaves_the_stored_one_and_the_default_stays(tmp_path, kind):
    t = made(tmp_path / "t", kind)
    t.upsert(rows(("1", "a", 2, 7, 7), ("2", "a", 2, 8, None)), options=LOGS)
    assert default_of(t) == 7
    assert held(t) == [("1", 5, 7), ("2", 8, 5)]
    wider = pa.table({"id": ["3"], "p": ["a"], "ts": [3], "n": [7], "m": [7], "new": ["x"]})
    t.upsert(wider, options=LOGS)
    t.delete(pa.table({"id": ["3"], "p": ["a"]}), options=LOGS)
    t.upsert(rows(("1", "a", 4, 7, 9)), options=LOGS)
    assert default_of(t) == 7
    assert held(t) == [("1", 5, 9), ("2", 8, 5)]
    if kind == "MERGE_ON_READ":
        t.compact()
        assert held(t) == [("1", 5, 9), ("2", 8, 5)]
        for ts in (5, 6):
            t.upsert(rows(("1", "a", ts, 7, ts)), options=LOGS)
        t.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
        assert held(t) == [("1", 5, 6), ("2", 8, 5)]
    assert default_of(t) == 7
    assert t.verify(deep=True) == []


@pytest.mark.req("PM-09", "SE-01")
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_record_that_moves_takes_along_what_the_default_stands_for(tmp_path, index):
    t = made(tmp_path / "t", "MERGE_ON_READ")
    options = {**LOGS, "hoodie.index.type": index}
    t.upsert(rows(("1", "a", 2, 6, 7)), options=LOGS)
    t.upsert(rows(("1", "b", 3, 7, None)), options=options)
    assert held(t) == [("1", 6, 7), ("2", 5, 5)]


def test_other_payloads_do_not_look_at_them_and_keep_them_too(tmp_path):
    t = made(tmp_path / "t", "MERGE_ON_READ", "org.apache.hudi.common.model.DefaultHoodieRecordPayload")
    t.upsert(rows(("1", "a", 2, 7, 7)), options=LOGS)
    assert (held(t), default_of(t)) == ([("1", 7, 7), ("2", 5, 5)], 7)
