"""The table of simulations with `ACTS`, made once for each kind, and the model of its rows.

    made_table("MERGE_ON_READ", "CONSISTENT_HASHING")      # `simulate` takes a copy
    rows_of(HudiTable.open(storage))                       # {key: (p, v, what other columns hold), COLUMNS: columns}

The table has the columns `id`, `p`, `v`, `n` and `s`, two partitions, a savepoint, and one commit after it.  Acts add
columns, and rename, drop, widen and move `n` and `s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import pyarrow as pa

from hudi_timeline.options.file_options import NUM_BUCKETS
from hudi_timeline.table import HudiTable
from hudi_timeline.testing.histories import Violation
from hudi_timeline.testing.interleavings import Rows, on_this_thread
from hudi_timeline.testing.memory_storage import MemoryStorage
from hudi_timeline.testing.simulated_time import SimulatedTime
from hudi_timeline.verify.verify import verify

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("n", pa.int32()), ("s", pa.string())]
)
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
SIMPLE, CONSISTENT_HASHING, EXTENDIBLE_HASHING = "SIMPLE", "CONSISTENT_HASHING", "EXTENDIBLE_HASHING"
TABLES = (
    (COPY_ON_WRITE, ""),
    (MERGE_ON_READ, ""),
    (COPY_ON_WRITE, SIMPLE),
    (MERGE_ON_READ, SIMPLE),
    (MERGE_ON_READ, CONSISTENT_HASHING),
    (COPY_ON_WRITE, EXTENDIBLE_HASHING),
    (MERGE_ON_READ, EXTENDIBLE_HASHING),
)
"""Kinds of the table: its type, and the engine of its bucket index, "" for none."""

FEW: Mapping[str, str] = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.set.null.for.missing.columns": "true",
}
"""Options of all writes: small files stay as they are, services are acts of their own, acts need not know columns."""

Columns = tuple[tuple[str, str], ...]
COLUMNS = ""
"""Key of the rows under which the table's columns stand: name and type of each, in order."""
SAVED: Rows = {
    COLUMNS: tuple((f.name, str(f.type)) for f in SCHEMA),
    "a": ("x", 1, (("n", 11), ("s", "a"))),
    "b": ("x", 0, (("n", 2), ("s", "b"))),
    "c": ("y", 1, (("n", 13), ("s", "c"))),
    "d": ("y", 0, (("n", 4), ("s", "d"))),
}
"""Rows as of the savepoint."""
INITIAL: Rows = {**SAVED, "b": ("x", 2, (("n", 22), ("s", "b")))}
"""Rows as they are before the acts."""
_PARTITION = {"a": "x", "b": "x", "c": "y", "d": "y"}
_KINDS: Mapping[str, pa.DataType] = {"n": pa.int32(), "s": pa.string()}


def partition_of(key: str) -> str:
    """Partition of a key."""
    return _PARTITION.get(key, "x" if key < "r" else "y")


def data_of(values: Mapping[str, int], **more: object) -> pa.Table:
    """Rows to write: `v` by key; each of `more` is a column with one value in all rows."""
    columns: dict[str, list[Any]] = {
        "id": [*values], "p": [partition_of(k) for k in values], "v": [*values.values()],
    }  # fmt: skip
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    for name, value in more.items():
        columns[name] = [value] * len(values)
        schema = schema.append(pa.field(name, _KINDS.get(name, pa.int64())))
    return pa.table(columns, schema)


def put(rows: Rows, values: Mapping[str, int], **more: object) -> Rows:
    """The rows after `data_of` was written: what it does not say is null."""
    new = {k: (partition_of(k), v, tuple(sorted(more.items()))) for k, v in values.items()}
    return {**rows, **new, COLUMNS: with_columns(rows[COLUMNS], more)}


def with_columns(columns: Columns, more: Mapping[str, object]) -> Columns:
    """The columns, and after them those of data that are not there."""
    there = dict(columns)
    new = tuple((n, str(_KINDS.get(n, pa.int64()))) for n in more if n not in there)
    return (*columns, *new)


def only(rows: Rows, stays: Callable[[str, tuple[Any, ...]], bool]) -> Rows:
    """Rows that stay, and all columns."""
    return {k: row for k, row in rows.items() if k == COLUMNS or stays(k, row)}


def savepoint_of(name: str) -> str:
    """Savepoint of the table of this name, which says its kind."""
    return HudiTable.open(_named(name)).savepoints[0]


def last_of(name: str) -> str:
    """The commit that was there last, of the table of this name."""
    return HudiTable.open(_named(name)).timeline.completed_writes()[-1].time


def _named(name: str) -> MemoryStorage:
    # Only that one: another would be made in the midst of a simulation.
    return made_table(*next(kind for kind in TABLES if _name(*kind) == name))


def _name(table_type: str, index: str) -> str:
    return f"simulated_{table_type}_{index}".lower().rstrip("_")


def made_table(table_type: str = COPY_ON_WRITE, index: str = "") -> MemoryStorage:
    """The table, made once of each kind; `simulate` takes a copy."""
    return _made(table_type, index)


@cache
def _made(table_type: str, index: str) -> MemoryStorage:
    with SimulatedTime().thread("made"), on_this_thread():
        return _make(table_type, index)


def _make(table_type: str, index: str) -> MemoryStorage:
    made = MemoryStorage()
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": index, NUM_BUCKETS: "2"}
    HudiTable.create(
        cast(str, made), SCHEMA, record_keys="id", partition_fields="p", name=_name(table_type, index),
        table_type=table_type, options={**FEW, **(buckets if index else {})},
    )  # fmt: skip
    table = HudiTable.open(made)
    table.upsert(
        pa.table([list("abcd"), list("xxyy"), [0] * 4, [1, 2, 3, 4], list("abcd")], SCHEMA), options=FEW
    )
    table.upsert(data_of({"c": 1}, n=13, s="c"), options=FEW)
    table.upsert(data_of({"a": 1}, n=11, s="a"), options=FEW)
    table.savepoint()
    table.upsert(data_of({"b": 2}, n=22, s="b"), options=FEW)
    sound: set[str] = set()
    if findings := verify(made, deep=True, scan_of=table.read, sound=sound):
        raise Violation(f"the table to begin with is not sound: {findings}")
    made.keep_sound(sound)
    return made


def rows_of(table: HudiTable) -> Rows:
    """The table's rows and columns, as the effects of the acts have them.

    Raises:
        Violation: a key that is there twice.
    """
    return modelled(table.read().to_arrow())


def modelled(there: pa.Table) -> Rows:
    """Rows that were read, as the effects of the acts have them.

    Raises:
        Violation: a key that is there twice.
    """
    found = there.to_pylist()
    rows: Rows = {COLUMNS: tuple((f.name, str(f.type)) for f in there.schema)}
    for row in found:
        key, p, v = row.pop("id"), row.pop("p"), row.pop("v")
        rows[key] = (p, v, tuple(sorted((name, x) for name, x in row.items() if x is not None)))
    if len(rows) != len(found) + 1:
        twice = sorted(there["id"].to_pylist())
        raise Violation(f"keys are there more than once: {twice}")
    return rows
