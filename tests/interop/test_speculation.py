"""Speculative copies and stragglers on Spark: rows once, no file that the commit does not name, as Apache Hudi sees it.

A cluster of two workers under two addresses of this machine (a copy never runs on its original's host) runs with
speculation forced.  The first attempt of a task stops before it closes its file until the commit is complete, in a
Python worker that Spark's kill does not reach, and goes on then.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

WRITER = "0.15.0"
HOLD = """
import os, sys, time

def hold():
    # Executors' workers only: the first attempt of the first task of each write stage waits for the commit.
    from pyspark import TaskContext
    from hudi_format.parquet.writer import BaseFileWriter
    close = BaseFileWriter.close

    def late(self):
        task = TaskContext.get()
        if task is not None and task.partitionId() == 0 and task.attemptNumber() == 0 and self._open:
            hoodie = os.path.join(os.environ["HELD_TABLE"], ".hoodie")
            instant = self._path.rpartition("_")[2].partition(".")[0]
            open(os.path.join(os.environ["HELD_FLAGS"], instant + ".held"), "w").close()
            until = time.monotonic() + 60
            while not os.path.exists(os.path.join(hoodie, instant + ".commit")) and time.monotonic() < until:
                time.sleep(0.05)
            late_by = os.path.exists(os.path.join(hoodie, instant + ".commit"))
            time.sleep(0.5)
            size = close(self)
            if late_by:
                open(os.path.join(os.environ["HELD_FLAGS"], instant + ".closed"), "w").close()
            return size
        return close(self)

    BaseFileWriter.close = late

if os.environ.get("HELD_TABLE"):
    hold()
"""
SCRIPT = """
import glob, json, os, sys, time
from pyspark.sql import SparkSession, functions as F
import hudi_spark

path, flags = sys.argv[1:3]
master = sys.argv[3]
builder = (SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    .config("spark.executor.memory", "600m").config("spark.executor.cores", "2").config("spark.driver.memory", "800m")
    .config("spark.executorEnv.HELD_TABLE", path).config("spark.executorEnv.HELD_FLAGS", flags)
    .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    .config("spark.sql.shuffle.partitions", "4").config("spark.sql.session.timeZone", "UTC")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.python.task.killTimeout", "90s").config("spark.python.worker.reuse", "false")
    .config("spark.speculation", "true").config("spark.speculation.interval", "50ms")
    .config("spark.speculation.quantile", "0.25").config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.minTaskRuntime", "100ms"))
spark = hudi_spark.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
           "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts",
           "hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"}

def save(ids, ts, operation):
    rows = ids.select(F.col("id").cast("string").alias("id"), (F.col("id") % 3).cast("string").alias("p"),
                      F.lit(ts).alias("ts")).repartition(4)
    rows.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", operation).mode(
        "append").save(path)

save(spark.range(2000), 1, "bulk_insert")
save(spark.range(1000, 3000), 2, "upsert")
until = time.monotonic() + 30
while len(glob.glob(flags + "/*.closed")) < len(glob.glob(flags + "/*.held")) and time.monotonic() < until:
    time.sleep(0.1)
time.sleep(1)  # what a straggler does after its file is closed
known = {stat["path"] for f in glob.glob(path + "/.hoodie/*.commit")
         for of in json.load(open(f))["partitionToWriteStats"].values() for stat in of}
there = {os.path.relpath(os.path.join(d, f), path) for d, _, files in os.walk(path) for f in files
         if f.endswith(".parquet")}
held = [len(glob.glob(flags + "/*." + end)) for end in ("held", "closed")]
print(json.dumps([held, sorted(there - known), sorted(known - there)]))
os._exit(0)  # stragglers may hold Spark's own end up
"""


@pytest.fixture
def master(tmp_path) -> Iterator[str]:
    """A standalone cluster: a master, and two workers with an address each."""
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy."
    commands = [
        [deploy + "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        *(
            [deploy + "worker.Worker", "--host", host, "--webui-port", "0", "-c", "2", "-m", "700m",
             "-d", str(tmp_path / host), url]
            for host in ("127.0.0.2", "127.0.0.3")
        ),
    ]  # fmt: skip
    running = []
    try:
        for n, command in enumerate(commands):
            env = {
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_LOCAL_IP": command[2],
            }
            with (tmp_path / f"daemon-{n}.log").open("wb") as log:
                running.append(
                    subprocess.Popen(
                        [str(home / "bin/spark-class"), *command], stdout=log, stderr=log, env=env
                    )
                )
            until = time.monotonic() + 60
            while n == 0 and time.monotonic() < until:  # workers look for it at once
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
        yield url
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.req("WR-25", "FS-14")
def test_stragglers_that_finish_after_the_commit_leave_nothing(tmp_path, master, pool):
    for name, text in (("sitecustomize.py", HOLD), ("script.py", SCRIPT)):
        (tmp_path / name).write_text(text)
    table, flags = tmp_path / "t", tmp_path / "flags"
    flags.mkdir()
    inherited = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(table), str(flags), master],
        capture_output=True, text=True, timeout=240, cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
             "PYTHONPATH": os.pathsep.join([str(tmp_path), *inherited])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    held, stray, missing = json.loads(done.stdout.splitlines()[-1])
    assert held == [2, 2], f"one straggler of each write was held and went on: {held}"
    assert not stray
    assert not missing
    rows = pool.get(WRITER).read(table).select(["id", "p", "ts"]).to_pylist()
    want = [{"id": str(i), "p": str(i % 3), "ts": 1 if i < 1000 else 2} for i in range(3000)]
    assert sorted(rows, key=lambda r: int(r["id"])) == want
    assert not list(Path(table, ".hoodie", ".temp").glob("*"))
