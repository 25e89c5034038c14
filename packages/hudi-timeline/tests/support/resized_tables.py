"""Tables of buckets to resize, and what is found in them."""

import pyarrow as pa

from hudi_index.bucket import BucketIndex
from hudi_timeline import HudiTable

ENGINE, NUMBER = "hoodie.index.bucket.engine", "hoodie.bucket.index.num.buckets"
RESIZING, RESIZES = "hudi.bucket.index.resizing", "hudi.bucket.index.resizes"
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("ts", pa.int64())])
IDS = [f"k{n:02d}" for n in range(40)]
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
FULL = {"hoodie.parquet.max.file.size": "100", "hoodie.bucket.index.max.num.buckets": "9"}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(ids, p="a", ts=1):
    return pa.table([ids, list(range(len(ids))), [p] * len(ids), [ts] * len(ids)], schema=SCHEMA)


def make(path, kind="COPY_ON_WRITE", engine="SIMPLE", number=3, **options):
    table = HudiTable.create(
        str(path), SCHEMA, table_type=kind, name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
        options={"hoodie.index.type": "BUCKET", ENGINE: engine, NUMBER: str(number), **options},
    )  # fmt: skip
    table.upsert(pa.concat_tables([rows(IDS), rows(IDS[:20], "b")]))
    table.upsert(rows(IDS[5:15], ts=2))
    return table


def found(table, **how):
    columns = ["id", "p", "ts", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    return sorted(
        map(
            tuple, (r.values() for r in HudiTable.open(table.uri).read(columns, **how).to_arrow().to_pylist())
        )
    )


def numbers(table):
    """Buckets of each partition, after a look at every file group and key."""
    assert HudiTable.open(table.uri).verify(deep=True) == []
    shown = HudiTable.open(table.uri).inspect.buckets().to_pylist()
    return {
        p: sorted((r["bucket"], r["of"]) for r in shown if r["partition"] == p)
        for p in {r["partition"] for r in shown}
    }


def buckets(number):
    """Ids by bucket."""
    of = BucketIndex(number, ("id",)).of(pa.array(IDS)).tolist()
    return {n: [i for i, found in zip(IDS, of, strict=True) if found == n] for n in range(number)}


def grow(table, engine, into, **options):
    number = 6 if (engine, into) == ("SIMPLE", None) else None
    return table.resize_buckets(number, engine=into, options={**FULL, **options})


# Engines, and what they become.
GROWN = [("SIMPLE", None), ("SIMPLE", "EXTENDIBLE_HASHING"), ("EXTENDIBLE_HASHING", None)]
