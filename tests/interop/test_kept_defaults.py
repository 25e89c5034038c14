"""A column's default other than null: Apache Hudi 0.15 merges by the one that our writes have kept."""

import json

import pyarrow as pa
import pytest

from interop import ours
from interop.rows import assert_same_rows

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "table.type": "MERGE_ON_READ",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    WRITE + "payload.class": "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("m", pa.int64())]
)


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], schema=SCHEMA)


@pytest.mark.req("PM-09", "SE-01")
def test_apache_hudi_reads_and_compacts_by_the_default(tmp_path, apache):
    path = tmp_path / "t"
    apache.write(
        path, rows(("1", "a", 1, 5, 5), ("2", "a", 1, 5, 5)), {**OPTIONS, WRITE + "operation": "insert"}
    )
    (commit,) = path.glob(".hoodie/*.deltacommit")
    text = json.loads(commit.read_text())
    schema = json.loads(text["extraMetadata"]["schema"])
    field = next(f for f in schema["fields"] if f["name"] == "n")
    field |= {"type": ["long", "null"], "default": 7}
    text["extraMetadata"]["schema"] = json.dumps(schema)
    commit.write_text(json.dumps(text))
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    for change in (rows(("1", "a", 2, 7, 7), ("2", "a", 2, 8, None)), rows(("3", "a", 3, 7, 7))):
        ours.table(path).upsert(change, options=OPTIONS)
    columns = ["_hoodie_record_key", "id", "ts", "n", "m"]
    found = ours.read(path).select(columns)
    assert sorted((r["id"], r["n"], r["m"]) for r in found.to_pylist()) == [
        ("1", 5, 7),
        ("2", 8, 5),
        ("3", 7, 7),
    ]
    assert_same_rows(apache.read(path).select(columns), found, ["id"])
    apache.sql(f"CREATE TABLE kept_defaults USING hudi LOCATION '{path}'")
    due = "hoodie.compact.inline.max.delta.commits=1"
    apache.sql(f"CALL run_compaction(op => 'schedule', table => 'kept_defaults', options => '{due}')")
    apache.sql("CALL run_compaction(op => 'run', table => 'kept_defaults')")
    assert "commit" in {i.action for i in ours.table(path).timeline.completed_writes()}
    assert_same_rows(ours.read(path).select(columns), found, ["id"])
    ours.table(path).upsert(rows(("1", "a", 4, 7, 9)), options=OPTIONS)
    now = ours.read(path).select(columns)
    assert sorted((r["id"], r["n"], r["m"]) for r in now.to_pylist())[0] == ("1", 5, 9)
    assert_same_rows(apache.read(path).select(columns), now, ["id"])
