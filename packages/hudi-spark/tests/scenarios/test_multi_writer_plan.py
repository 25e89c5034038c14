"""The test plan of RFC-22 at the level of DataFrames: writers of one merge-on-read table beside its services."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hudi_format.errors import ConcurrentWriterError
from hudi_timeline import HudiTable

ROUNDS = 4
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": "20",
    "hoodie.clean.automatic": "false",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "2",
}


@pytest.mark.req("TP-06")
@pytest.mark.one_version
@pytest.mark.sampled(2)
@pytest.mark.parametrize("parts", [["x", "y"], ["x", "x"]], ids=["file groups apart", "file groups shared"])
def test_dataframes_are_written_by_several_beside_cleanings_and_compactions(spark, tmp_path, parts):
    path = str(tmp_path / "t")
    columns = "id string, part string, n long, ts long"
    first = [(f"w{w}-{k}", part, -1, 0) for w, part in enumerate(parts) for k in range(4)]
    spark.createDataFrame(first, columns).write.format("hudi").options(**OPTIONS).mode("overwrite").save(path)

    def write(nth: int) -> None:
        for turn in range(ROUNDS):
            rows = [(f"w{nth}-{k}", parts[nth], 10 * turn + nth, turn + 1) for k in range(4)]
            frame = spark.createDataFrame(rows, columns)
            frame.write.format("hudi").options(**OPTIONS).mode("append").save(path)

    ended = threading.Event()
    done = {"clean": 0, "compact": 0}

    def serve(name: str) -> None:
        table = HudiTable.open(path, options=OPTIONS)
        while not ended.wait(0.2) or not done[name]:
            try:
                getattr(table, name)()
                done[name] += 1
            except ConcurrentWriterError:  # a conflict is one too: the service comes again
                continue

    with ThreadPoolExecutor(4) as threads:
        services = [threads.submit(serve, name) for name in done]
        try:
            for writer in [threads.submit(write, nth) for nth in range(2)]:
                writer.result()
        finally:
            ended.set()
        for service in services:
            service.result()
    rows = {r.id: (r.part, r.n) for r in spark.read.format("hudi").load(path).collect()}
    last = 10 * (ROUNDS - 1)
    assert rows == {f"w{w}-{k}": (part, last + w) for w, part in enumerate(parts) for k in range(4)}
    assert [f for f in HudiTable.open(path).verify(deep=True) if f.severity == "error"] == []
    assert min(done.values()) > 0
