"""Make the golden tables whose history became another: archived, or taken down to version 6, with Apache Hudi.

    python tools/golden/make_archived_tables.py 1.0.2|1.2.0 OUT [scenario ...]

`archived_overlapping`: non-blocking writers complete in another order than they began, one only after three others
that began later; then all but the last commits are archived, and no clean ever runs.  What a range of commits wrote is
asked before that: afterwards Apache Hudi reads the whole table as it is then, and has forgotten what was written since.
`downgraded_from_9`: a merge-on-read table of version 9 with logs, taken down to version 6 and written on.
Layout of the files as tests/golden/README.md says; runs in an environment with PySpark 3.5.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import COLUMNS, EVENT, Maker, make

_COMPLETED = re.compile(r"(\d+)_(\d+)\.(?:commit|deltacommit|replacecommit)")
_QUERY = "hoodie.datasource.query.type"
_BEGIN, _END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
_LONGEST_S = 120.0
_MOST_WRITES = 12

OVERLAPPING = {
    **EVENT,
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.archive.automatic": "false",
}
ARCHIVING = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.commits.archival.batch": "1",
    "hoodie.timeline.compaction.batch.size": "2",
}


class OverlappingMaker(Maker):
    """A table whose writers can be held back while others write."""

    def begin(self, ddl: str, *rows: tuple[object, ...]) -> Callable[[], None]:
        """Start a write whose rows come only when the function that this gives is called, which waits for its end."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        number = len(list(self.path.parent.glob("gate*")))
        gate, seen = (self.path.parent / f"gate{number}.{n}" for n in ("open", "seen"))
        gate_path, seen_path = str(gate), str(seen)

        def held(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                Path(seen_path).touch()
                until = time.monotonic() + _LONGEST_S
                while not Path(gate_path).exists() and time.monotonic() < until:
                    time.sleep(0.05)
                yield batch

        frame = self.spark.createDataFrame(list(rows), ddl).coalesce(1)
        frame = frame.mapInPandas(held, frame.schema)
        options = {**self.options, "hoodie.datasource.write.operation": "upsert"}
        writer = threading.Thread(
            target=frame.write.format("hudi").options(**options).mode("append").save, args=[str(self.path)]
        )
        writer.start()
        while not seen.exists() and writer.is_alive():
            time.sleep(0.05)
        self.written.append({"operation": "upsert", "rows": [list(r) for r in rows]})

        def release() -> None:
            gate.touch()
            writer.join()

        return release

    def completed(self) -> list[tuple[str, str]]:
        """(request, completion) of the active writes, in the order in which they were completed."""
        names = (_COMPLETED.fullmatch(p.name) for p in (self.path / ".hoodie/timeline").iterdir())
        return sorted(((m[1], m[2]) for m in names if m), key=lambda x: x[1])

    def ask(self, out: Path, name: str, **options: str) -> None:
        """Keep an answer of Apache Hudi."""
        folder = out / f"{self.name}.answers" / name
        self.spark.read.format("hudi").options(**options).load(str(self.path)).coalesce(1).write.parquet(
            str(folder)
        )

    def finish(self, out: Path) -> None:
        """Also the answers that were asked for on the way."""
        super().finish(out)
        expected, answers = out / f"{self.name}.expected", out / f"{self.name}.answers"
        for folder in sorted(answers.iterdir()):
            (part,) = folder.glob("*.parquet")
            part.rename(expected / f"{folder.name}.parquet")
            for left in folder.iterdir():
                left.unlink()
            folder.rmdir()
        answers.rmdir()
        meta = json.loads((expected / "meta.json").read_text())
        if "downgraded" in self.name:
            meta["table_version"] = 6
        else:
            meta["notes"] = ["incremental answers are from before the commits were archived"]
        (expected / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def overlapping(t: OverlappingMaker) -> None:
    """Pairs of writers of which the second is completed first, and one that is completed after three later ones."""

    def r(keys: str, ts: int, v: str) -> list[tuple[object, ...]]:
        return [(f"k{k}", ts, 0, v, "w", "p") for k in keys]

    out = Path(sys.argv[2])
    t.write(COLUMNS, *r("01234567", 100, "first"), operation="insert")
    for n in range(2):
        slow = t.begin(COLUMNS, *r(f"0{n + 1}", 112 + 10 * n, f"slow{n}"), *r(f"{'ab'[n]}", 1, f"slow{n}"))
        t.write(COLUMNS, *r(f"0{n + 2}", 111 + 10 * n, f"quick{n}"), *r(f"{'cd'[n]}", 1, f"quick{n}"))
        slow()
    slow = t.begin(COLUMNS, *r("05l", 200, "long"))
    for n in range(3):
        t.write(COLUMNS, *r(f"{n}6", 150 + n, f"short{n}"))
    slow()
    done = t.completed()
    for begin, end in [
        *itertools.pairwise(c for _, c in done),
        ("000", done[3][1]),
        (done[4][1], done[7][1]),
    ]:
        # Apache Hudi 1.0.2 takes the begin to be inclusive: the name says what was asked.
        t.ask(out, f"incremental_{begin}_{end}", **{_QUERY: "incremental", _BEGIN: begin, _END: end})
    t.options.update(ARCHIVING)
    for n in range(_MOST_WRITES):
        t.write(COLUMNS, *r("7", 300 + n, f"last{n}"))
        if not {request for request, _ in done} & {request for request, _ in t.completed()}:
            break
    else:
        raise RuntimeError("commits are still not archived")
    for request, _ in done:
        t.ask(out, f"asof_{request}", **{"as.of.instant": request})


def downgraded(t: OverlappingMaker) -> None:
    """Version 9 names logs after the commits that write them, version 6 after the base files that they belong to."""
    out = Path(sys.argv[2])

    def r(keys: str, ts: int, v: str) -> list[tuple[object, ...]]:
        return [(f"k{k}", ts, 0, v, "w", "p") for k in keys]

    t.write(COLUMNS, *r("01234567", 100, "w1"), operation="insert")
    t.write(COLUMNS, *r("01", 110, "w2"), *r("2", 90, "late"))
    t.write(COLUMNS, *r("3", 110, "gone"), operation="delete")
    t.write(COLUMNS, *r("04", 120, "w4"), *r("8", 1, "w4"))
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.spark.sql(f"CREATE TABLE {t.name} USING hudi LOCATION '{t.path}'")
    t.sql(f"CALL downgrade_table(table => '{t.name}', to_version => 'SIX')")
    t.options |= {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    t.write(COLUMNS, *r("15", 130, "w5"), *r("6", 90, "late"))
    times = sorted(p.name[:17] for p in (t.path / ".hoodie").glob("*.deltacommit"))
    for time_ in times:
        t.ask(out, f"asof_{time_}", **{"as.of.instant": time_})
    for begin, end in [*itertools.pairwise(times[1:-1]), ("000", times[3])]:
        t.ask(out, f"incremental_{begin}_{end}", **{_QUERY: "incremental", _BEGIN: begin, _END: end})


SCENARIOS = {
    "archived_overlapping": (overlapping, OVERLAPPING, "1.0.2 1.2.0"),
    "downgraded_from_9": (downgraded, EVENT, "1.2.0"),
}

if __name__ == "__main__":
    make(OverlappingMaker, SCENARIOS)
