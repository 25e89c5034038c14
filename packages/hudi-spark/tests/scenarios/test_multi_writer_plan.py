"""The test plan of RFC-22 at the level of DataFrames: writers of one table beside its services and incremental pulls.

CI takes a few cells of the matrix, with each value of each dimension; the long form takes all.
"""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hudi_format.errors import ConcurrentWriterError
from hudi_timeline import HudiTable

ROUNDS = 3 if os.environ.get("HUDI_SOAK") else 2
COLUMNS = "id string, part string, n long, ts long"
SINGLE, APART, TOGETHER = "single writer", "file groups apart", "file groups shared"
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "2",
}
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": "20",
}


def cells():
    found = itertools.product(
        (MERGE_ON_READ, COPY_ON_WRITE),
        (TOGETHER, APART, SINGLE),
        ("LAZY", "EAGER"),
        ("metadata", "no metadata"),
        ("services beside", "services inline"),
    )
    return [pytest.param(*cell, id=", ".join(cell)) for cell in found]


def options_of(kind, mode, policy, metadata, services):
    inline = str(services == "services inline").lower()
    return {
        **OPTIONS,
        **({} if mode == SINGLE else OCC),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.cleaner.policy.failed.writes": policy,
        "hoodie.metadata.enable": str(metadata == "metadata").lower(),
        "hoodie.clean.automatic": inline,
        **({"hoodie.compact.inline": inline} if kind == MERGE_ON_READ else {}),
        # Of one writer at a time, services beside it wait for each other by its lock alone.
        "hudi.write.wait_ms": "60000",
    }


class Puller:
    """Applies incremental pulls in the order in which writes are completed, whichever began first."""

    def __init__(self, spark, path):
        self.spark, self.path, self.seen, self.begin = spark, path, {}, "000"

    def pull(self):
        table = HudiTable.open(self.path)
        done = table.timeline.completed_writes()
        scan = table.read_incremental(self.begin, order="stable")
        if done and scan.checkpoint > self.begin:
            frame = (
                self.spark.read.format("hudi")
                .option("hoodie.datasource.query.type", "incremental")
                .option("hoodie.datasource.read.begin.instanttime", self.begin)
                .option("hoodie.datasource.read.end.instanttime", scan.checkpoint)
                .load(self.path)
            )
            self.seen |= {r.id: r.n for r in frame.collect()}
            self.begin = scan.checkpoint


@pytest.mark.req("TP-06")
@pytest.mark.one_version
@pytest.mark.sampled(48, values=False)
@pytest.mark.parametrize(("kind", "mode", "policy", "metadata", "services"), cells())
def test_dataframes_are_written_by_several_beside_services(
    spark, tmp_path, kind, mode, policy, metadata, services
):
    path, options = str(tmp_path / "t"), options_of(kind, mode, policy, metadata, services)
    parts = {SINGLE: ["x"], APART: ["x", "y"], TOGETHER: ["x", "x"]}[mode]
    first = [(f"w{w}-{k}", part, -1, 0) for w, part in enumerate(parts) for k in range(4)]
    spark.createDataFrame(first, COLUMNS).write.format("hudi").options(**options).mode("overwrite").save(path)

    def write(nth: int) -> None:
        for turn in range(ROUNDS):
            rows = [(f"w{nth}-{k}", parts[nth], 10 * turn + nth, turn + 1) for k in range(4)]
            frame = spark.createDataFrame(rows, COLUMNS)
            frame.write.format("hudi").options(**options).mode("append").save(path)

    puller, ended = Puller(spark, path), threading.Event()
    own = ["clean", *(["compact"] if kind == MERGE_ON_READ else [])] if services == "services beside" else []
    done = dict.fromkeys((*own, "pull"), 0)

    def serve(name: str) -> None:
        table = HudiTable.open(path, options=options)
        while not ended.wait(0.2) or not done[name]:
            try:
                puller.pull() if name == "pull" else getattr(table, name)()
                done[name] += 1
            except ConcurrentWriterError:  # a conflict is one too: the service comes again
                continue

    with ThreadPoolExecutor(5) as threads:
        serving = [threads.submit(serve, name) for name in done]
        try:
            for writer in [threads.submit(write, nth) for nth in range(len(parts))]:
                writer.result()
        finally:
            ended.set()
        for service in serving:
            service.result()
    rows = {r.id: (r.part, r.n) for r in spark.read.format("hudi").load(path).collect()}
    last = 10 * (ROUNDS - 1)
    assert rows == {f"w{w}-{k}": (part, last + w) for w, part in enumerate(parts) for k in range(4)}
    puller.pull()
    assert puller.seen == {key: n for key, (_, n) in rows.items()}
    assert [f for f in HudiTable.open(path).verify(deep=True) if f.severity == "error"] == []
    assert min(done.values()) > 0
