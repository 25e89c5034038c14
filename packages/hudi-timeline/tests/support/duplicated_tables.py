"""Tables whose keys stand more than once: in one file, across files and partitions, and below updates in logs."""

from __future__ import annotations

import pyarrow as pa

from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
QUIET = {"hoodie.table.services.enabled": "false", "hoodie.compact.inline": "false"}
TABLES = ("cow", "mor", "cow virtual", "mor virtual")
SCOPES = (False, True)


def row(key, partition, ts, v):
    return {"id": key, "p": partition, "ts": ts, "v": v}


def duplicated(path, kind, **options):
    """Table of the kind, with `a` three times in one file of x, `b` in two files of x, `c` in x and y, `d` once."""
    virtual = {"hoodie.populate.meta.fields": "false"} if "virtual" in kind else {}
    table = HudiTable.create(
        path, SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ" if "mor" in kind else "COPY_ON_WRITE",
        options={**virtual, **options},
    )  # fmt: skip
    twice = [row("a", "x", 3, "a1"), row("a", "x", 5, "a2"), row("a", "x", 4, "a3"), row("b", "x", 2, "b1"),
             row("c", "x", 1, "c1"), row("d", "x", 1, "d1")]  # fmt: skip
    table.bulk_insert(twice, options={**QUIET, "hoodie.bulkinsert.shuffle.parallelism": "1"})
    table.bulk_insert([row("b", "x", 1, "b2"), row("e", "x", 1, "e1")], options=QUIET)
    table.bulk_insert([row("c", "y", 9, "c2"), row("f", "y", 1, "f1")], options=QUIET)
    if "mor" in kind:  # rows of a key that stands twice meet a log, and others do
        table.upsert([row("d", "x", 6, "d2"), row("f", "y", 7, "f2")], options=QUIET)
        table.upsert([row("e", "x", 8, "e2"), row("c", "y", 10, "c3")], options=QUIET)
    return table


def rows_of(table):
    return [{n: r[n] for n in SCHEMA.names} for r in table.read(meta_columns=False).to_arrow().to_pylist()]


def keys_of(table, across):
    return [("" if across else r["p"], r["id"]) for r in rows_of(table)]
