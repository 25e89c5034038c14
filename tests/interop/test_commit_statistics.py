"""The same input leaves the same commit metadata, ids and sizes normalised: Apache Hudi 0.15.0 and both engines."""

import json
import re

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

WRITE = "hoodie.datasource.write."
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
COUNTS = ("numWrites", "numDeletes", "numUpdateWrites", "numInserts", "totalWriteErrors")
EVENT_TIME = {WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}


def rows(*values):
    names, types = ["id", "v", "ts", "p"], [pa.string(), pa.int64(), pa.int64(), pa.string()]
    columns = zip(*values, strict=True) if values else ([], [], [], [])
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


FIRST = rows(("a", 1, 1, "x"), ("b", 1, 1, "x"), ("c", 1, 1, "y"), ("d", 1, 1, "z"))
HISTORIES = {
    "all operations": [
        ("insert", FIRST, {}),
        ("upsert", rows(("a", 2, 2, "x"), ("n", 2, 2, "x"), ("m", 2, 2, "x"), ("o", 1, 1, "new")), {}),
        ("delete", rows(("a", 1, 1, "x"), ("nope", 1, 1, "x")), {}),
        ("delete", rows(("nope", 1, 1, "x")), {}),
        ("insert", rows(("b", 7, 7, "x"), ("q", 7, 7, "x")), {}),
        ("insert", rows(("b", 9, 9, "x"), ("r", 7, 7, "x")), {WRITE + "insert.drop.duplicates": "true"}),
        ("insert", rows(("r", 9, 9, "x")), {WRITE + "insert.drop.duplicates": "true"}),
        ("insert_overwrite", rows(("e", 1, 1, "x"), ("f", 1, 1, "fresh")), {}),
        ("delete_partition", rows(), {WRITE + "partitions.to.delete": "y,nope"}),
        ("delete_partition", rows(), {WRITE + "partitions.to.delete": "q*"}),
        ("upsert", rows(), {}),
        ("insert_overwrite_table", rows(("g", 1, 1, "x")), {}),
    ],
    "by event time": [
        ("bulk_insert", FIRST, {}),
        ("upsert", rows(("a", 0, 0, "x"), ("b", 2, 2, "x"), ("c", 0, 0, "y")), {}),
        ("upsert", rows(("a", 3, 3, "x"), ("a", 2, 2, "x"), ("k", 1, 1, "x"), ("k", 2, 2, "x")), {}),
    ],
}


def _metadata(path):
    """Of each completed write: operation, counts by file group, replaced groups; ids by their place."""
    out = []
    times = {}
    names = sorted(
        p.name for p in (path / ".hoodie").iterdir() if re.fullmatch(r"\d+\.(replace)?commit", p.name)
    )
    for number, name in enumerate(names):
        times[name.partition(".")[0]] = number
        found = json.loads((path / ".hoodie" / name).read_bytes())
        stats = {
            partition: sorted(
                [times.get(s["prevCommit"], s["prevCommit"]), *(s[c] for c in COUNTS)] for s in of
            )
            for partition, of in found["partitionToWriteStats"].items()
            if of
        }
        # Apache Hudi also lists partitions in which nothing is replaced, now and then.
        replaced = {p: len(ids) for p, ids in found.get("partitionToReplaceFileIds", {}).items() if ids}
        out.append((name.rpartition(".")[2], found["operationType"], stats, replaced, found["compacted"]))
    return out


def _write(process, path, steps, options):
    for operation, table, more in steps:
        process.write(path, table, {**BASE, **options, **more, WRITE + "operation": operation})


@pytest.fixture
def by_spark(pool, tmp_path, name):
    """What the history leaves on our Spark."""
    _write(pool.ours(), tmp_path / "spark", HISTORIES[name], EVENT_TIME if "event" in name else {})
    return _metadata(tmp_path / "spark")


@pytest.mark.req("NEW-02", "WR-07")
@pytest.mark.parametrize("name", HISTORIES)
def test_commits_count_the_same_with_apache_hudi_and_on_both_engines(tmp_path, by_spark, apache, name):
    options = EVENT_TIME if "event" in name else {}
    steps = HISTORIES[name]
    _write(apache, tmp_path / "theirs", steps, options)
    for operation, table, more in steps:
        given = {**BASE, **options, **more, WRITE + "operation": operation}
        execute(LocalEngine(), open_storage(str(tmp_path / "ours")), table, given)
    want = _metadata(tmp_path / "theirs")
    assert len(want) == len(steps)
    assert _metadata(tmp_path / "ours") == want
    assert by_spark == want
