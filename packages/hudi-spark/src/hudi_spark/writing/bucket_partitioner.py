"""Exact assignment of rows to tasks, despite Spark's hash partitioning.

`repartition(n, column)` sends a row to `pmod(murmur3(column), n)`; n values hashed into n places leave a third of
them empty.  So each task gets a number that Spark's hash sends exactly there.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_spark.types import quoted
from hudi_spark.writing.stored_keys import FILE_ID
from hudi_spark.writing.write_tasks import BUCKET
from hudi_timeline.writing.workers.tasks import Bucket, InsertShare, Routing

# Work that one task should have at least, so that thousands of small file groups do not mean as many tasks.
TASK_BYTES = 128 << 20
# Incoming rows that one task should have at most; they are sorted by bucket in it.
TASK_ROWS = 100_000
_MASK = 0xFFFFFFFF


def _rotl(x: int, n: int) -> int:
    return ((x << n) | (x >> (32 - n))) & _MASK


def spark_hash_int(value: int, seed: int = 42) -> int:
    """Spark's `hash` of one int column: Murmur3 x86 32 of its four bytes, signed."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotl(k, 15) * 0x1B873593 & _MASK
    h = _rotl(seed ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


def slots(n: int) -> list[int]:
    """For each of n tasks, a number that `repartition(n, number)` sends to it."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < n:
        found.setdefault(spark_hash_int(candidate) % n, candidate)
        candidate += 1
    return [found[i] for i in range(n)]


def spread(buckets: Sequence[Bucket], parallelism: int, asked: int | None = None) -> list[int]:
    """Task of each bucket, with as many balanced tasks as the work needs.

    Args:
        asked: tasks that the user asked for, in the place of twice the `parallelism`.  There are more where each would
            get too much, and never more than buckets, as in Apache Hudi.
    """
    if not buckets:
        return []
    total = sum(b.expected_bytes for b in buckets)
    rows = sum(b.expected_rows for b in buckets)
    tasks = min(len(buckets), max(asked or 2 * parallelism, -(-total // TASK_BYTES), -(-rows // TASK_ROWS)))
    heap = [(0, task) for task in range(tasks)]
    out = [0] * len(buckets)
    for bucket in sorted(buckets, key=lambda b: -b.expected_bytes):
        load, task = heapq.heappop(heap)
        out[bucket.number] = task
        heapq.heappush(heap, (load + bucket.expected_bytes + 1, task))
    return out


# Which bucket and which task each row goes to, said in Spark's own expressions.
#
# A located record goes to its file group's bucket; a new one to the share of its partition that holds the CRC-32 of
# its key (`hudi_timeline.writing.workers.tasks.InsertShare`).

SLOT = "_hudi_slot"
_KEY_HASH = "_hudi_key_hash"
_HASH = f"CAST(crc32(CAST({RECORD_KEY} AS BINARY)) AS DOUBLE)"
_HASHES = 2.0**32
_RANGES = (
    T.StructType()
    .add("_hudi_p", T.StringType())
    .add("_hudi_f", T.StringType())
    .add("_hudi_from", T.DoubleType())
    .add("_hudi_to", T.DoubleType())
    .add(BUCKET, T.IntegerType())
    .add(SLOT, T.IntegerType())
)
_IN_RANGE = (
    f"{PARTITION_PATH} = _hudi_p AND {FILE_ID} = _hudi_f AND {_HASH} >= _hudi_from AND {_HASH} < _hudi_to"
)

# Up to this many places stand in the plan itself; above it they are joined.  A plan is text that is compiled once
# for each write, a join is a job more.
LITERAL_PLACES = 64


def place(
    spark: SparkSession,
    rows: DataFrame,
    routing: Routing,
    slot_of: Sequence[int],
    tasks: int,
    columns: Sequence[str],
    *,
    all_placed: bool,
) -> DataFrame:
    """Bucket and wanted columns of assigned rows, each row in the task of its bucket.

    Args:
        rows: with record key, partition path and `FILE_ID` ("" where it is new).
        slot_of: by bucket, the number that `repartition` sends to the bucket's task.
        columns: to keep.
        all_placed: whether every row has a place, so that none has to be looked for.
    """
    wanted = [quoted(c) for c in columns]
    places = len(routing.located) + sum(len(s) for s in routing.inserts.values())
    if places <= LITERAL_PLACES:
        if any(len(s) > 1 for s in routing.inserts.values()):
            # Once for each row: in the branches Spark would compute it for each of them.
            rows = rows.withColumn(_KEY_HASH, F.expr(_HASH))
        placed = rows.select(F.expr(_bucket_sql(routing)).alias(BUCKET), *wanted)
        if not all_placed:
            placed = placed.where(F.col(BUCKET).isNotNull())
        slots = ",".join(map(str, slot_of))
        placed = placed.repartition(tasks, F.expr(f"element_at(array({slots}), {BUCKET} + 1)"))
    else:
        table = small_frame(spark, _ranges(routing, slot_of), _RANGES)
        placed = rows.join(F.broadcast(table), F.expr(_IN_RANGE)).select(BUCKET, SLOT, *wanted)
        placed = placed.repartition(tasks, SLOT).drop(SLOT)
    return placed.sortWithinPartitions(BUCKET) if tasks < len(routing.buckets) else placed


def small_frame(spark: SparkSession, rows: Iterable[Sequence[object]], schema: T.StructType) -> DataFrame:
    """A small frame made in the JVM, without Python workers as in `createDataFrame`.

    Args:
        rows: values that JSON tells as they are, in the order of `schema`.
    """
    text = json.dumps([dict(zip(schema.names, row, strict=True)) for row in rows])
    parsed = F.from_json(F.lit(text), T.ArrayType(schema), {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.inline(parsed))


def _ranges(routing: Routing, slot_of: Sequence[int]) -> list[tuple[str, str, float, float, int, int]]:
    """Partition, file group, hash range, bucket and slot of each assignment."""
    out = [(p, f, 0.0, _HASHES, b, slot_of[b]) for (p, f), b in routing.located.items()]
    for partition, shares in routing.inserts.items():
        begin = 0.0
        for share in shares:
            out.append((partition, "", begin, share.upto * _HASHES, share.bucket, slot_of[share.bucket]))
            begin = share.upto * _HASHES
    return out


def _bucket_sql(routing: Routing) -> str:
    """SQL expression of a row's bucket, null without an assignment."""
    bucket_of = {f"{f}/{p}": b for (p, f), b in routing.located.items()}
    bucket_of |= {f"/{p}": s[0].bucket for p, s in routing.inserts.items() if len(s) == 1}
    shared = "".join(
        f" WHEN {FILE_ID} = '' AND {PARTITION_PATH} = {text_sql(p)} THEN {_share_sql(s)}"
        for p, s in routing.inserts.items()
        if len(s) > 1
    )
    # No file id has a slash.
    place = f"concat({FILE_ID}, '/', {PARTITION_PATH})"
    found = entry_sql(place, {k: str(b) for k, b in bucket_of.items()}) if bucket_of else "CAST(NULL AS INT)"
    return f"CASE{shared} ELSE {found} END" if shared else found


def _share_sql(shares: Sequence[InsertShare]) -> str:
    if len(shares) == 1:
        return str(shares[0].bucket)
    tests = "".join(f" WHEN {_KEY_HASH} < {s.upto * _HASHES!r}D THEN {s.bucket}" for s in shares[:-1])
    return f"CASE{tests} ELSE {shares[-1].bucket} END"


def entry_sql(text: str, entries: Mapping[str, str]) -> str:
    """SQL expression of the entry of a text, null where there is none.

    It is looked for in an array.  As branches of a CASE the entries would make the code that Spark generates for the
    rows longer than what the JVM compiles well, and a row costs several times as much.

    Args:
        text: an SQL expression.
        entries: SQL expressions without columns; at least one.
    """
    place = f"array_position(array({','.join(map(text_sql, entries))}), {text})"
    # The null of a text without an entry, which has the place 0: Spark 4 takes a place that is null for the last one.
    return f"element_at(array(NULL,{','.join(entries.values())}), CAST(coalesce({place}, 0) AS INT) + 1)"


def text_sql(value: str) -> str:
    """SQL string literal with the value escaped."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"
