"""Tables that Apache Hudi writes without a break, followed here meanwhile: every change exactly once."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop.samples import SHAPES, Model, Rows

OPERATION = "hoodie.datasource.write.operation"
BLOCK = {"hoodie.read.timeline.holes.resolution.policy": "BLOCK"}
STREAM_CDC = {"hoodie.datasource.query.incremental.format": "cdc"}
STEPS = ("insert", "upsert", "upsert", "delete", "upsert", "upsert", "upsert")

COW = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE", "hoodie.table.cdc.enabled": "true"}
MOR = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
}


class Writer:
    """Apache Hudi at work: one operation after the other, and the model of what they make."""

    def __init__(self, apache, path, options):
        self.apache, self.path = apache, path
        shape = SHAPES["simple"]
        self.rows, self.model = Rows(shape), Model(shape)
        self.options = {**shape.write_options(), **options}

    def step(self, operation):
        current = list(self.model.rows.values())
        given = {
            "insert": lambda: self.rows.new(20),
            "upsert": lambda: self.rows.changed(current, 8) + self.rows.new(4),
            "delete": lambda: self.rows.some(current, 5),
        }[operation]()
        table = pa.Table.from_pylist(given, schema=self.model.shape.schema)
        self.apache.write(self.path, table, {**self.options, OPERATION: operation})
        self.model.apply(operation, given, [])

    def run(self):
        for operation in STEPS[1:]:
            self.step(operation)


def plain(row):
    return tuple(sorted((k, v) for k, v in row.items() if not k.startswith("_hoodie_")))


@pytest.mark.req("IN-01", "IN-08", "IN-13", "IN-14", "IN-15", "IN-16", "IN-11")
@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
@pytest.mark.parametrize("options", [MOR, COW], ids=["mor", "cow"])
@pytest.mark.slow
def test_every_change_comes_once_while_apache_hudi_writes(pool, tmp_path, options, version):
    path = tmp_path / "t"
    writer = Writer(pool.get(version), path, options)
    writer.step(STEPS[0])
    table = HudiTable.open(str(path))
    feed, state, begin = [], {}, "000"
    stream = tmp_path / "stream", tmp_path / "streamed"
    ours = pool.ours()
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(writer.run)
        while True:
            ended = writing.done()
            end = table.latest_offset(options=BLOCK)
            feed += table.read_changes(begin, end, images="struct", options=BLOCK).to_arrow().to_pylist()
            for row in (
                table.read_incremental(begin, end, options=BLOCK, meta_columns=True).to_arrow().to_pylist()
            ):
                state[row["uuid"]] = plain(row)
            streamed = ours.stream(path, *stream, **STREAM_CDC)
            begin = end
            if ended:
                break
        writing.result()
    want = {r["uuid"]: plain(r) for r in writer.model.rows.values()}

    rows = {}
    for change in feed:
        row = change["after"] or change["before"]
        if change["op"] == "d":
            assert rows.pop(row["uuid"]) == plain(change["before"])
            continue
        assert (change["op"] == "u") == (row["uuid"] in rows)
        if change["op"] == "u":
            assert rows[row["uuid"]] == plain(change["before"])
        rows[row["uuid"]] = plain(change["after"])
    assert rows == want
    # Deletes do not show in incremental reads; all else is there, in its newest state.
    assert {k: v for k, v in state.items() if k in want} == want

    assert key_counts(streamed.to_pylist()) == key_counts(table.read_changes("000").to_arrow().to_pylist())


def key_counts(changes):
    """How often each change is there."""
    images = ((c["op"], c["ts_ms"], image(c["after"]) or image(c["before"])) for c in changes)
    return Counter((op, at, row["uuid"]) for op, at, row in images)


def image(text):
    return None if text is None else json.loads(text)
