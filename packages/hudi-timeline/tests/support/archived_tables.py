"""Tables with a replaced row, and writes with aggressive archival."""

import pyarrow as pa

from hudi_timeline import HudiTable

AGGRESSIVE = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "4",
    "hoodie.archive.beyond.savepoint": "true",
}
ROWS = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])


def row(key, partition, ts=0):
    return pa.Table.from_pylist([{"id": key, "p": partition, "ts": ts}], ROWS)


def replaced(path, meanwhile=lambda table: None):
    """A table whose first row was overwritten, and what it held then."""
    table = HudiTable.create(
        str(path), ROWS, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"]
    )
    table.insert(row("old", "a"), options=AGGRESSIVE)
    meanwhile(table)
    return table, table.insert_overwrite(row("new", "a"), options=AGGRESSIVE).instant


def go_on(table):
    """Writes elsewhere, after which the table holds the same; the last one's warnings."""
    for n in range(7):
        result = table.upsert(row("other", "b", n), options=AGGRESSIVE)
        assert sorted(table.read(columns=["id"]).to_arrow()["id"].to_pylist()) == ["new", "other"]
    return result.warnings


def writes_of(table):
    return [i.time for i in HudiTable.open(table.uri).timeline.completed_writes()]
