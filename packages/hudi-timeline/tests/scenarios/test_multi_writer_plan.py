"""The test plan of RFC-22: table types, concurrency modes, cleaning of failed writes, with and without metadata tables.

In each cell writers, a table service and an incremental reader work on one table at the same time, long enough for
archival to begin and with a column that comes in the middle.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_format.errors import ConcurrentWriterError, WriteConflictError
from hudi_timeline import HudiTable

SINGLE, APART, TOGETHER = "single writer", "file groups apart", "file groups shared"
ROUNDS = 8
KEYS = 6
LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])


def cells() -> list[Any]:
    found = itertools.product(
        ("COPY_ON_WRITE", "MERGE_ON_READ"),
        (SINGLE, APART, TOGETHER),
        ("EAGER", "LAZY"),
        ("no metadata", "metadata"),
        ("inline cleaning", "asynchronous cleaning"),
    )
    # Apache Hudi runs optimistic concurrency control with lazy cleaning only: with EAGER it makes it LAZY.
    return [pytest.param(*cell, id=", ".join(cell)) for cell in found]


def options(kind: str, mode: str, policy: str, metadata: str, cleaning: str) -> dict[str, str]:
    given = {
        "hoodie.cleaner.policy.failed.writes": policy,
        "hoodie.metadata.enable": str(metadata == "metadata").lower(),
        "hoodie.clean.automatic": str(cleaning == "inline cleaning").lower(),
        "hoodie.write.set.null.for.missing.columns": "true",
        "hoodie.cleaner.commits.retained": "4",
        "hoodie.keep.min.commits": "6",
        "hoodie.keep.max.commits": "8",
    }
    if kind == "MERGE_ON_READ":
        given |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    if mode != SINGLE:
        given |= {
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": LOCK,
            "hoodie.write.num.retries.on.conflict.failures": "20",
        }
    return given


class Writer:
    """Writes keys of its own, and the key that all write where file groups are shared."""

    def __init__(self, path: Path, nth: int, mode: str, given: dict[str, str]) -> None:
        self.path, self.nth, self.mode, self.given = path, nth, mode, given
        self.rows: dict[str, tuple[str, int] | None] = {}
        self.shared: list[tuple[str, int]] = []

    def run(self) -> None:
        for turn in range(ROUNDS):
            self._turn(turn)

    def _turn(self, turn: int) -> None:
        table = HudiTable.open(self.path, options=self.given)
        part = "all" if self.mode == TOGETHER else f"p{self.nth}"
        keys = [f"w{self.nth}-{turn % 2}-{k}" for k in range(KEYS)]
        if turn % 4 == 3:
            gone = keys[: KEYS // 2]
            table.delete(pa.table({"id": gone, "part": [part] * len(gone)}))
            self.rows |= dict.fromkeys(gone)
            return
        number = 100 * self.nth + turn
        rows = pa.table(
            {"id": keys, "part": [part] * KEYS, "n": [number] * KEYS, "ts": [turn] * KEYS}, schema=SCHEMA
        )
        if turn >= ROUNDS // 2 and self.nth == 0:
            rows = rows.append_column("added", pa.array([f"a{turn}"] * KEYS))
        if self.mode == TOGETHER:
            shared = pa.table({"id": ["shared"], "part": [part], "n": [number], "ts": [7]}, schema=SCHEMA)
            rows = pa.concat_tables([rows, shared], promote_options="default")
        result = table.upsert(rows)
        self.rows |= dict.fromkeys(keys, (part, number))
        if self.mode == TOGETHER:
            self.shared.append((result.instant, number))


def again_and_again(work: Callable[[], object], ended: threading.Event) -> None:
    """Do one thing until the writers have ended; a service that finds a writer at work comes again."""
    while not ended.wait(0.05):
        with contextlib.suppress(ConcurrentWriterError, WriteConflictError):
            work()


class Puller:
    """An incremental reader that applies what it pulls, in whatever order commits are completed."""

    def __init__(self, path: Path) -> None:
        self.path, self.begin = path, "000"
        self.seen: dict[str, int] = {}

    def pull(self) -> None:
        table = HudiTable.open(self.path)
        scan = table.read_incremental(self.begin, order="stable")
        for row in scan.to_arrow().to_pylist():
            self.seen[row["id"]] = row["n"]
        self.begin = scan.checkpoint


@pytest.mark.req("TP-01", "TP-02", "TP-03", "TP-04", "TP-05", "MT-12")
@pytest.mark.sampled(48)
@pytest.mark.parametrize(("kind", "mode", "policy", "metadata", "cleaning"), cells())
def test_a_cell_of_the_plan(tmp_path, kind, mode, policy, metadata, cleaning):
    given = options(kind, mode, policy, metadata, cleaning)
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, record_keys="id", partition_fields="part", ordering_fields="ts", table_type=kind,
        options=given,
    )  # fmt: skip
    path = tmp_path / "t"
    if mode == TOGETHER:
        # Two first writers of one new key leave two rows, as in Apache Hudi: new file groups have no rival.
        table.upsert(pa.table({"id": ["shared"], "part": ["all"], "n": [-1], "ts": [0]}, schema=SCHEMA))
    writers = [Writer(path, n, mode, given) for n in range(1 if mode == SINGLE else 2)]
    puller = Puller(path)
    beside: list[Callable[[], object]] = [puller.pull]
    if cleaning != "inline cleaning":
        beside.append(HudiTable.open(path, options=given).clean)
    ended = threading.Event()
    with ThreadPoolExecutor(len(writers) + len(beside)) as threads:
        services = [threads.submit(again_and_again, work, ended) for work in beside]
        try:
            for writing in [threads.submit(w.run) for w in writers]:
                writing.result()
        finally:
            ended.set()
        for service in services:
            service.result()
    expected = {k: v for w in writers for k, v in w.rows.items() if v is not None}
    if mode == TOGETHER:
        # Of writes of one file group each began after the one before it was completed: their instants are their order.
        expected["shared"] = ("all", max(s for w in writers for s in w.shared)[1])
    rows = table.read(meta_columns=False).to_arrow().to_pylist()
    assert {r["id"]: (r["part"], r["n"]) for r in rows} == expected
    assert len(rows) == len(expected)
    assert "added" in table.schema.names, "the column of one writer is there whatever the other one wrote"
    assert {r["added"] for r in rows if r["id"].startswith("w0-1")} == {
        f"a{ROUNDS - 3}",
        f"a{ROUNDS - 1}",
    } - ({f"a{ROUNDS - 1}"})
    puller.pull()
    assert {k: puller.seen.get(k) for k in expected} == {k: v[1] for k, v in expected.items()}
    assert [f for f in table.verify(deep=True) if f.severity == "error"] == []
    assert table.timeline.first_active > "", "archival began"


@pytest.mark.req("TP-07")
def test_control_is_turned_on_and_off_again_by_options(tmp_path):
    """A table goes to several writers and back; what a killed one left is undone by the single writer after it."""
    single = options("COPY_ON_WRITE", SINGLE, "EAGER", "no metadata", "inline cleaning")
    several = options("COPY_ON_WRITE", TOGETHER, "LAZY", "no metadata", "inline cleaning")
    path = tmp_path / "t"
    table = HudiTable.create(
        path, SCHEMA, record_keys="id", partition_fields="part", ordering_fields="ts", options=single
    )

    def rows(n: int) -> pa.Table:
        return pa.table({"id": [f"k{n}"], "part": ["p"], "n": [n], "ts": [n]}, schema=SCHEMA)

    for n, given in enumerate((single, several, several, single, several, single)):
        HudiTable.open(path, options=given).upsert(rows(n))
        assert sorted(table.read().to_arrow().column("n").to_pylist()) == list(range(n + 1))
