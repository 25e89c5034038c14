"""What the tables of wrong input share: a small table, its bytes, and proof that a refusal changed none of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("n", pa.int32()),
        ("money", pa.decimal128(6, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("box", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("ts", pa.int64()),
    ]
)
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
# What a rollback leaves beside the table as it was; Apache Hudi leaves the same.
_ROLLED_BACK = re.compile(r"\.hoodie/\d{17}\.rollback(\.requested|\.inflight)?\Z")


def rows(*ids: str, **columns: Any) -> pa.Table:
    """Rows of the table's schema; columns given here replace its own, `None` takes one away."""
    n = len(ids)
    made: dict[str, Any] = {
        "id": pa.array(ids, pa.string()),
        "city": pa.array([f"c{i % 2}" for i in range(n)], pa.string()),
        "fare": pa.array([1.0 * i for i in range(n)]),
        "n": pa.array(range(n), pa.int32()),
        "money": pa.array(["1.50"] * n).cast(pa.decimal128(6, 2)),
        "at": pa.array([0] * n, pa.timestamp("us", "UTC")),
        "tags": pa.array([["t"]] * n, SCHEMA.field("tags").type),
        "box": pa.array([{"x": 1, "y": "q"}] * n, SCHEMA.field("box").type),
        "ts": pa.array([1] * n, pa.int64()),
    }
    made |= {k: v if isinstance(v, (pa.Array, type(None))) else pa.array(v) for k, v in columns.items()}
    return pa.table({k: v for k, v in made.items() if v is not None})


FIRST = rows("a", "b", "c", "d")


def make(path: Path) -> None:
    """A table of two commits."""
    made = HudiTable.create(
        str(path), SCHEMA, name="trips", record_keys=["id"], partition_fields=["city"], ordering_fields=["ts"]
    )
    made.bulk_insert(FIRST)
    made.upsert(rows("a", ts=pa.array([2], pa.int64())))


def content(path: Path) -> dict[str, bytes]:
    """Every file below a path, byte for byte."""
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@dataclass(frozen=True)
class Bad:
    """One wrong thing.

    Attributes:
        name: what is wrong.
        code: of the error.
        act: does it to the open table.
        arrange: brings the table into a state first, given its path.
        begun: whether it shows only while rows are read, so that the write is rolled back.
    """

    name: str
    code: str
    act: Callable[[HudiTable], object]
    arrange: Callable[[Path], None] | None = field(default=None)
    begun: bool = False

    def __str__(self) -> str:
        return self.name


def assert_same(before: dict[str, bytes], after: dict[str, bytes], *, begun: bool) -> None:
    """Fail unless nothing changed; a write that had begun may leave the record of its rollback."""
    new = {f for f in after if f not in before}
    if begun:
        new = {f for f in new if not _ROLLED_BACK.search(f)}
    assert not new, f"new files: {sorted(new)}"
    assert {f: after.get(f) for f in before} == before, "files were changed or are gone"
