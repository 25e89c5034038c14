"""An endless sequence of writes to one table, and the rows that the table holds after each.

Step n is the same in every process: operation and rows follow from the seed and from what the steps before
it left.  So the state after a killed writer can be named: that after step n, or it is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
# Of a table whose changed records go to logs, and that is compacted after every third write.
OF_TYPE = {
    COPY_ON_WRITE: {},
    MERGE_ON_READ: {
        "hoodie.datasource.write.table.type": MERGE_ON_READ,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline.max.delta.commits": "3",
    },
}
OPERATION = "hoodie.datasource.write.operation"

Row = tuple[str, str, int, str]
State = dict[str, Row]

_PARTITIONS = 5
_WEIGHTS = {"upsert": 5, "delete": 2, "insert": 2, "bulk_insert": 1, "insert_overwrite": 1}


@dataclass(frozen=True)
class Step:
    """One write.  `after` is the whole table when it is done, by key."""

    number: int
    operation: str
    rows: list[Row]
    after: State

    def table(self) -> pa.Table:
        return to_arrow(self.rows)


def steps(seed: int, size: int) -> Iterator[Step]:
    """All steps from the first on; each writes up to `size` rows."""
    state: State = {}
    number = 0
    while True:
        rng = random.Random(f"{seed}/{number}")
        operation = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0] if state else "upsert"
        fresh = [_row(rng, f"k{number}-{i}", number) for i in range(size // 2)]
        known = rng.sample(sorted(state), min(size // 2, len(state)))
        after = dict(state)
        if operation == "upsert":
            rows = fresh + [_row(rng, key, number, state[key][1]) for key in known]
        elif operation == "delete":
            rows = [state[key] for key in known]
            after = {key: row for key, row in state.items() if key not in set(known)}
        elif operation == "insert_overwrite":
            partition = fresh[0][1]
            rows = [(key, partition, ts, v) for key, _, ts, v in fresh]
            after = {key: row for key, row in state.items() if row[1] != partition}
        else:
            rows = fresh
        if operation != "delete":
            after.update((row[0], row) for row in rows)
        yield Step(number, operation, rows, after)
        state, number = after, number + 1


def _row(rng: random.Random, key: str, number: int, partition: str | None = None) -> Row:
    return (key, partition or f"p{rng.randrange(_PARTITIONS)}", number, f"{rng.getrandbits(64):x}")


def to_arrow(rows: list[Row]) -> pa.Table:
    columns = [[row[i] for row in rows] for i in range(len(SCHEMA))]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def to_rows(table: pa.Table) -> list[Row]:
    """Rows in the order of their keys."""
    columns = [table.column(name).to_pylist() for name in SCHEMA.names]
    return sorted(zip(*columns, strict=True))
