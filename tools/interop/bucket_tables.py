"""A table with a bucket index that two writers take turns on, and what it must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_format import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot
from interop import ours

WRITE = "hoodie.datasource.write."
INDEX, NUMBER, FIELDS = (
    "hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field",
)  # fmt: skip
BUCKET = {INDEX: "BUCKET", NUMBER: "4"}
SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
# Keys with what splits and names their parts, text beyond ASCII and beyond two bytes.
IDS = [*(f"k{n:02d}" for n in range(30)), "a,b", "a,b:c", "é中𝄞", "x:1", "id:7", ":", "-", "__null__x", "z,"]
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}


def rows(ids: Sequence[str], p: str = "a", ts: int = 1, v: str = "x") -> pa.Table:
    """A row for each id."""
    n = len(ids)
    return pa.table([ids, list(range(n)), [p] * n, [ts] * n, [v] * n], schema=SCHEMA)


class Shared:
    """A table, its two writers, and what it must hold."""

    def __init__(self, path: Path, apache: Any, keys: Sequence[str], index: Mapping[str, str]) -> None:
        self.path, self.apache, self.index = path, apache, index
        self.base = {**BASE, WRITE + "recordkey.field": ",".join(keys)}
        self.keys: Sequence[str] = keys
        self.want: dict[tuple[object, ...], dict[str, object]] = {}

    def create(self) -> None:
        """The empty table, made by `ours`."""
        HudiTable.create(
            str(self.path), SCHEMA, name="t", record_keys=list(self.keys), partition_fields=["p"],
            ordering_fields=["ts"], options=self.index,
        )  # fmt: skip

    def key(self, row: Mapping[str, object]) -> tuple[object, ...]:
        return (*(row[k] for k in self.keys), row["p"])

    def write(self, writer: str, operation: str, given: pa.Table) -> None:
        """A write by `ours` or `apache`."""
        if writer == "apache":
            self.apache.write(self.path, given, {**self.base, **self.index, WRITE + "operation": operation})
        else:
            ours.write(self.path, operation, given, options=self.index)
        partitions = set(given.column("p").to_pylist())
        if operation == "insert_overwrite":
            self.want = {k: r for k, r in self.want.items() if k[-1] not in partitions}
        for row in given.to_pylist():
            if operation == "delete":
                self.want.pop(self.key(row), None)
            else:
                self.want[self.key(row)] = row

    def check(self, *readers: Any) -> None:
        """Compare the rows that each reader sees."""
        want = sorted(map(str, self.want.values()))
        for read in (ours.read(self.path), *(r.read(self.path) for r in readers)):
            assert sorted(map(str, read.select(SCHEMA.names).to_pylist())) == want

    def groups(self) -> dict[tuple[str, str], str]:
        """File id by partition and bucket."""
        slices = newest_slices_of(open_snapshot(open_storage(str(self.path))))
        found = {(s.partition, s.file_id[:8]): s.file_id for s in slices}
        assert len(found) == len(slices)
        return found
