"""Small merge-on-read tables that pin how records of one key meet, written and read by Apache Hudi 0.15.0.

    python -m golden.merging OUT [PAYLOAD ...]        (with tools/ on the path)

A table for each payload but AWSDmsAvroPayload, whose deletes in logs Apache Hudi cannot read ("No value present in
Option"), all with the same steps: each key goes through one story, named below, so that rows of the
answer say which rule was at work.  Every commit's state is kept as a time travel answer.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interop.apache_hudi import ApacheHudi

MODELS = "org.apache.hudi.common.model."
PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "FirstValueAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
SKIP = {"hoodie.datasource.merge.type": "skip_merge"}
UPSERT, DELETE = "upsert", "delete"
# By key: per step what is written: (ts, a, b, flag), DELETE with a ts, or None.  Step 0 makes the base file.
Step = tuple[int, str | None, int | None, bool | None] | tuple[str, int] | None
STORIES: dict[str, tuple[Step, ...]] = {
    "tie-of-two-log-records": ((5, "a0", 0, False), (7, "a1", None, False), (7, "a2", 2, False), None),
    "tie-with-the-base-row": ((5, "a0", 0, False), (5, None, 1, False), None, None),
    "tie-of-new-log-records": (None, (7, "a1", None, False), (7, None, 2, False), None),
    "late-against-the-base-row": ((5, "a0", None, False), (3, "a1", 1, False), None, None),
    "late-against-a-log-record": ((1, "a0", 0, False), (7, "a1", None, False), (5, "a2", 2, False), None),
    "late-new-log-record": (None, (7, "a1", 1, False), (5, "a2", None, False), None),
    "newer-log-record": ((5, "a0", 0, False), (7, "a1", None, False), (9, None, 2, False), None),
    "late-delete-of-the-base-row": ((5, "a0", 0, False), (DELETE, 3), None, None),
    "late-delete-of-a-log-record": ((1, "a0", 0, False), (7, "a1", 1, False), (DELETE, 5), None),
    "late-delete-of-a-new-log-record": (None, (7, "a1", 1, False), (DELETE, 5), None),
    "delete-at-a-tie": ((5, "a0", 0, False), (7, "a1", 1, False), (DELETE, 7), None),
    "record-after-a-delete": ((5, "a0", 0, False), (DELETE, 7), (9, "a2", 2, False), None),
    "late-record-after-a-delete": ((5, "a0", 0, False), (DELETE, 7), (6, "a2", 2, False), None),
    "record-after-a-delete-older-than-the-base-row": (
        (5, "a0", 0, False), (DELETE, 7), (3, "a2", None, False), None,
    ),
    "new-record-after-a-delete-in-the-log": (
        None, (7, "a1", 1, False), (DELETE, 9), (8, "a3", None, False),
    ),
    "flagged": ((5, "a0", 0, False), (7, "a1", 1, True), None, None),
    "flagged-late": ((5, "a0", 0, False), (3, "a1", 1, True), None, None),
    "flagged-late-in-the-log": ((1, "a0", 0, False), (7, "a1", 1, False), (5, "a2", 2, True), None),
    "flagged-then-a-record": ((5, "a0", 0, False), (7, "a1", 1, True), (9, "a2", None, False), None),
    "flagged-then-a-late-record": ((5, "a0", 0, False), (7, "a1", 1, True), (6, "a2", 2, False), None),
    "flagged-then-unflagged-at-a-tie": ((5, "a0", 0, False), (7, "a1", 1, True), (7, "a2", 2, None), None),
    "flag-of-null": ((5, "a0", 0, False), (7, None, 1, None), (8, "a2", None, None), None),
    "nulls-fill-from-the-log": ((1, "a0", 0, False), (5, "a1", None, False), (7, None, 2, False), None),
    "nulls-of-a-late-record": ((5, None, 0, False), (3, "a1", None, False), (4, "a2", 2, False), None),
    "three-log-records": ((1, "a0", 0, False), (9, "a1", None, False), (5, None, 2, False), (7, "a3", 3, False)),
    "only-in-the-base-file": ((5, "a0", 0, False), None, None, None),
}  # fmt: skip


def rows_of(step: int) -> tuple[pa.Table, pa.Table]:
    """What one step writes: records, and keys to delete."""
    records, deletes = [], []
    for key, story in STORIES.items():
        told = story[step]
        if told is None:
            continue
        if told[0] == DELETE:
            deletes.append({"id": key, "ts": told[1]})
        else:
            records.append(dict(zip(SCHEMA.names, (key, *told), strict=True)))
    return pa.Table.from_pylist(records, SCHEMA), pa.Table.from_pylist(deletes, SCHEMA)


def make(apache: ApacheHudi, payload: str, out: Path) -> None:
    """One table and its answers."""
    write = "hoodie.datasource.write."
    options = {
        "hoodie.table.name": payload,
        write + "table.type": "MERGE_ON_READ",
        write + "recordkey.field": "id",
        write + "precombine.field": "ts",
        write + "payload.class": MODELS + payload,
        write + "keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        # The one index here that leaves new records in the logs; only a bulk_insert makes a base file.
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.datasource.compaction.async.enable": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.delete.shuffle.parallelism": "1",
    }
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / payload
        operations: list[dict[str, Any]] = []
        for step in range(len(next(iter(STORIES.values())))):
            for way, rows in zip((UPSERT, DELETE), rows_of(step), strict=True):
                if rows.num_rows:
                    operation = "bulk_insert" if step == 0 else way
                    apache.write(table, rows, {**options, write + "operation": operation})
                    operations.append({"operation": operation, "rows": rows.to_pylist()})
        expected = out / f"{payload}.expected"
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir(parents=True)
        _keep(apache.read(table), expected / "snapshot.parquet")
        optimized = {"hoodie.datasource.query.type": "read_optimized"}
        _keep(apache.read(table, **optimized), expected / "read_optimized.parquet")
        _keep(apache.read(table, **SKIP), expected / "unmerged.parquet")
        times = [time for time, action, state in apache.timeline(str(table)) if state == "COMPLETED"]
        for time in times[:-1]:
            _keep(apache.read(table, **{"as.of.instant": time}), expected / f"asof_{time}.parquet")
        meta = {"hudi_version": "0.15.0", "options": options, "operations": operations, "instants": times}
        (expected / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
        with zipfile.ZipFile(out / f"{payload}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(table.rglob("*")):
                if not file.name.endswith(".crc"):
                    archive.write(file, f"{payload}/{file.relative_to(table)}")


def _keep(rows: pa.Table, file: Path) -> None:
    order = [("_hoodie_record_key", "ascending"), ("_hoodie_commit_time", "ascending")]
    pq.write_table(rows.sort_by(order), file, compression="zstd")


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with ApacheHudi("0.15.0") as apache:
        for payload in sys.argv[2:] or PAYLOADS:
            make(apache, payload, out)
            print(payload, flush=True)


if __name__ == "__main__":
    main()
