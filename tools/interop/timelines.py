"""Random timelines without data: which instants Apache Hudi archives, and which we do.

    python tools/interop/timelines.py FIRST LAST FOLDER      # in an environment with PySpark 3.5

A seed is a timeline with options of retention: commits, replacements, delta commits and compactions, cleanings,
rollbacks and savepoints, some of them pending.  Both archive a copy of it, and the same files must be left.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hudi_format import LocalStorage
from hudi_timeline import HudiTable, table_config
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import format_instant, parse_instant
from interop.apache_hudi import ApacheHudi

POLICIES = ("KEEP_LATEST_COMMITS", "KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS")
BEYOND = "hoodie.archive.beyond.savepoint"


class TimelineFiles:
    """The files of a random timeline, and the options with which it is archived."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"timelines/{seed}")
        self.merged = rng.random() < 0.35
        self.files: dict[str, bytes] = {}
        self.saved = 0
        at = datetime(2026, 1, 1, 8)
        writes: list[str] = []
        pending = rng.random() < 0.4
        for _ in range(rng.randint(4, 18)):
            at += timedelta(minutes=rng.choice([1, 7, 40, 90]), milliseconds=rng.randint(0, 999))
            time = format_instant(at)
            action = rng.choices(["write", "replace", "clean", "rollback"], [10, rng.choice([0, 2]), 4, 1])[0]
            done = not (pending and rng.random() < 0.15)
            if action == "write":
                self._write(time, done)
            elif action == "replace":
                self._replace(time, done)
            elif action == "clean":
                self._clean(time, done, writes)
            else:
                self._rollback(time, writes)
            if action in ("write", "replace") and done:
                writes.append(time)
        if writes and rng.random() < 0.35:
            self._savepoints(writes)
        least = rng.randint(1, 5)
        self.options = {
            "hoodie.cleaner.policy": rng.choice(POLICIES),
            "hoodie.cleaner.commits.retained": str(rng.randint(1, 6)),
            "hoodie.cleaner.hours.retained": str(rng.randint(1, 5)),
            "hoodie.keep.min.commits": str(least),
            "hoodie.keep.max.commits": str(least + rng.randint(1, 4)),
            "hoodie.compact.inline.max.delta.commits": str(rng.randint(1, 5)),
            "hoodie.commits.archival.batch": str(rng.choice([1, 3, 10])),
            BEYOND: rng.choice(["false", "true"]),
        }

    def _put(self, time: str, action: str, done: bool, content: bytes, request: bytes = b"") -> None:
        named = "commit" if action == "compaction" else action
        self.files[f"{time}.{action}.requested"] = request
        if done or self.rng.random() < 0.7:
            inflight = f"{time}.inflight" if action == "commit" else f"{time}.{action}.inflight"
            self.files[inflight] = request if action == "clean" else b""
        if done:
            self.files[f"{time}.{named}"] = content

    def _write(self, time: str, done: bool) -> None:
        action = "commit"
        if self.merged:
            action = self.rng.choice(["deltacommit", "deltacommit", "deltacommit", "compaction"])
        plan = avro_files.render(
            "HoodieCompactionPlan", {"operations": [], "version": 2, "extraMetadata": {}}
        )
        self._put(
            time, action, done, _commit(action == "compaction"), plan if action == "compaction" else b""
        )

    def _replace(self, time: str, done: bool) -> None:
        content = json.loads(_commit(False)) | {
            "partitionToReplaceFileIds": {},
            "operationType": "INSERT_OVERWRITE",
        }
        self._put(time, "replacecommit", done, json.dumps(content).encode())

    def _clean(self, time: str, done: bool, writes: list[str]) -> None:
        earliest = self.rng.choice(["", *writes[-4:]])
        plan = {
            "earliestInstantToRetain": {"timestamp": earliest, "action": "commit", "state": "COMPLETED"}
            if earliest
            else None,
            "lastCompletedCommitTimestamp": writes[-1] if writes else "",
            "policy": "KEEP_LATEST_COMMITS",
            "filesToBeDeletedPerPartition": {},
            "version": 2,
            "filePathsToBeDeletedPerPartition": {},
            "partitionsToBeDeleted": [],
            "extraMetadata": {},
        }
        record = {
            "startCleanTime": time,
            "timeTakenInMillis": 1,
            "totalFilesDeleted": 0,
            "earliestCommitToRetain": earliest,
            "lastCompletedCommitTimestamp": writes[-1] if writes else "",
            "partitionMetadata": {},
            "version": 2,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": {},
        }
        content = avro_files.render("HoodieCleanMetadata", record)
        self._put(time, "clean", done, content, avro_files.render("HoodieCleanerPlan", plan))

    def _rollback(self, time: str, writes: list[str]) -> None:
        undone = {"commitTime": writes[-1] if writes else time, "action": "commit"}
        plan = {"instantToRollback": undone, "RollbackRequests": [], "version": 1}
        record = {
            "startRollbackTime": time,
            "timeTakenInMillis": 1,
            "totalFilesDeleted": 0,
            "commitsRollback": [undone["commitTime"]],
            "partitionMetadata": {},
            "version": 1,
            "instantsRollback": [undone],
        }
        content = avro_files.render("HoodieRollbackMetadata", record)
        self._put(time, "rollback", True, content, avro_files.render("HoodieRollbackPlan", plan))

    def _savepoints(self, writes: list[str]) -> None:
        for time in self.rng.sample(writes, min(len(writes), self.rng.randint(1, 3))):
            self.files[f"{time}.savepoint.inflight"] = b""
            if self.rng.random() < 0.85:
                record = {
                    "savepointedBy": "",
                    "savepointedAt": 1,
                    "comments": "",
                    "partitionMetadata": {},
                    "version": 1,
                }
                self.files[f"{time}.savepoint"] = avro_files.render("HoodieSavepointMetadata", record)
                self.saved += 1

    def make(self, path: Path) -> None:
        """A table with this timeline."""
        shutil.rmtree(path, ignore_errors=True)
        properties = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ" if self.merged else "COPY_ON_WRITE",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.timeline.layout.version": "1",
        }
        table_config.create(LocalStorage(str(path)), properties)
        for name, content in self.files.items():
            file = path / ".hoodie" / name
            file.write_bytes(content)
            modified = parse_instant(name[:17]).timestamp()  # by which we tell when it was completed
            os.utime(file, (modified, modified))


def _commit(compacted: bool) -> bytes:
    content = {
        "partitionToWriteStats": {},
        "compacted": compacted,
        "extraMetadata": {},
        "operationType": "UPSERT",
    }
    return json.dumps(content).encode()


def left(path: Path) -> set[str]:
    """The files of instants."""
    return {f.name for f in (path / ".hoodie").iterdir() if f.is_file() and f.name[:17].isdigit()}


def compare(seed: int, apache: ApacheHudi, folder: Path) -> tuple[str, int]:
    """What differs ("" for nothing), and how many files Apache Hudi has archived."""
    made = TimelineFiles(seed)
    ours, theirs = folder / "ours", folder / "theirs"
    made.make(ours)
    made.make(theirs)
    before = left(theirs)
    apache.archive(theirs, made.options)
    HudiTable.open(str(ours)).archive(options=made.options)
    mine, other = left(ours), left(theirs)
    count = len(before - other)
    # Apache Hudi counts savepointed commits as some that stay, and takes newer ones than the cleaner retains.
    if mine == other:
        return "", count
    if made.options[BEYOND] == "true" and made.saved and mine > other:
        print(f"{seed}: beyond savepoints we keep {sorted(mine - other)}", flush=True)
        return "", count
    kind = "MERGE_ON_READ" if made.merged else "COPY_ON_WRITE"
    return f"{seed}: {kind} {made.options}\n  {sorted(before)}\n  only ours keeps {sorted(mine - other)}, " \
           f"only Apache Hudi {sorted(other - mine)}", count  # fmt: skip


def main() -> int:
    bad = archived = 0
    folder = Path(sys.argv[3])
    with ApacheHudi("0.15.0") as apache:
        for seed in range(int(sys.argv[1]), int(sys.argv[2])):
            text, count = compare(seed, apache, folder)
            archived += bool(count)
            bad += bool(text)
            if text:
                print(text, flush=True)
    print(f"{sys.argv[1]} to {sys.argv[2]}: {archived} timelines were archived, {bad} differ")
    return bad


if __name__ == "__main__":
    sys.exit(main())
