"""The process in which Apache Hudi or this project runs: one Spark session, told what to do by lines of JSON.

Started by `interop.spark_process`.  A request is one line on standard input, `{"command": ..., ...}`; its answer
is one line on what was standard output, `{"ok": true, "result": ...}` or `{"ok": false, "error": ...}`.  Rows
go in and out as Parquet files, whose paths stand in the lines.  What Spark and Hudi print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_format import HudiError

OURS = "ours"  # in the place of the bundle's path: this project's format("hudi")
# Each plan runs once, over a few rows: what the second compiler and a parallel collector do costs more than it saves.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Apache Hudi's BLOOM with the metadata table serialises a lock with Kryo, which Java 17 refuses.
OPENED = "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
HUDI = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


def session(jar: str, scratch: str) -> SparkSession:
    """A small session on the loopback interface."""
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("apache-hudi")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", f"{scratch}/local")
        .config("spark.driver.extraJavaOptions", f"{QUICK_JVM} {OPENED} -Dderby.system.home={scratch}/derby")
    )
    if jar == OURS:
        builder = hudi_spark.configure(builder)
    else:
        # Not `spark.jars`: threads of the JVM's common pool, where Apache Hudi reads indexes, do not see those.
        builder = builder.config("spark.driver.extraClassPath", jar)
        for key, value in HUDI.items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Commands:
    """What the process can be told; each method is a command, its arguments those of the request."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ping(self) -> str:
        return str(self.spark.version)

    def read(self, path: str, options: dict[str, str], where: str, out: str) -> int:
        """Write the rows of a table to the folder `out` as Parquet; gives the number of milliseconds."""
        frame = self.spark.read.format("hudi").options(**options).load(path)
        return self._save(frame.where(where) if where else frame, out)

    def sql(self, text: str, out: str) -> int:
        """Run a statement and write its rows to the folder `out`."""
        return self._save(self.spark.sql(text), out)

    def write(self, path: str, rows: str, options: dict[str, str], mode: str) -> int:
        """Write the rows of a Parquet file to a table; gives the number of milliseconds."""
        frame = self.spark.read.parquet(rows)
        began = time.monotonic()
        frame.write.format("hudi").options(**options).mode(mode).save(path)
        return round((time.monotonic() - began) * 1000)

    def schema(self, path: str) -> dict[str, Any]:
        """The schema that a DataFrame of the table has, as Spark writes it in JSON."""
        return dict(self.spark.read.format("hudi").load(path).schema.jsonValue())

    def archive(self, path: str, options: dict[str, str]) -> None:
        """Archive what is due by Apache Hudi's own client."""
        client = self._client(path, options)
        try:
            client.archive()
        finally:
            client.close()

    def look_up(self, path: str, keys: list[str], columns: list[str]) -> dict[str, Any]:
        """What Apache Hudi's own reader of the metadata table says of a table, beside what it finds in storage.

        These are the comparisons of its HoodieMetadataTableValidator, which its bundle for Spark does not have.
        """
        jvm: Any = self.spark._jvm
        engine = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(self.spark._jsc)
        conf = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
            self.spark._jsc.hadoopConfiguration()
        )
        client = (
            jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(conf)
            .setBasePath(path)
            .build()
        )
        config = (
            jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder()
            .enable(True)
            .withMetadataIndexColumnStats(True)
            .withMetadataIndexBloomFilter(True)
            .withEnableRecordIndex(True)
            .build()
        )
        without = jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        hudi = jvm.org.apache.hudi.metadata
        table = hudi.HoodieTableMetadata.create(engine, client.getStorage(), config, path)
        storage = hudi.HoodieTableMetadata.create(engine, client.getStorage(), without, path)
        views = jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        out: dict[str, Any] = {}
        for name, said, options in (("table", table, config), ("storage", storage, without)):
            view = views.createInMemoryFileSystemView(engine, client, options)
            out[name] = {
                "files": {p: _files(jvm, said, path, p) for p in said.getAllPartitionPaths()},
                "slices": {p: _slices(view, p) for p in said.getAllPartitionPaths()},
            }
        pairs = jvm.java.util.ArrayList()
        for partition, files in out["table"]["files"].items():
            for file in files:
                if file.endswith(".parquet"):
                    pairs.add(jvm.org.apache.hudi.common.util.collection.Pair.of(partition, file))
        out["statistics"] = {
            column: {
                pair.getRight(): [
                    _wrapped(s.getMinValue()),
                    _wrapped(s.getMaxValue()),
                    s.getNullCount(),
                    s.getValueCount(),
                ]
                for pair, s in dict(table.getColumnStats(pairs, column)).items()
            }
            for column in columns
        }
        filters = dict(table.getBloomFilters(pairs))
        out["filters"] = {
            pair.getRight(): [key for key in keys if bloom.mightContain(key)]
            for pair, bloom in filters.items()
        }
        found = dict(table.readRecordIndex(jvm.java.util.ArrayList(keys)))
        out["locations"] = {key: [found[key].getPartitionPath(), found[key].getFileId()] for key in found}
        return out

    def schedule_index(self, path: str, partitions: list[str], options: dict[str, str]) -> str:
        """Plan metadata partitions by Apache Hudi's own client; gives the plan's instant, "" for none."""
        types: Any = self.spark._jvm.org.apache.hudi.metadata.MetadataPartitionType
        client = self._client(path, options)
        try:
            planned = client.scheduleIndexing([types.valueOf(p.upper()) for p in partitions])
            return str(planned.get()) if planned.isPresent() else ""
        finally:
            client.close()

    def run_index(self, path: str, instant: str, options: dict[str, str]) -> bool:
        """Execute a plan of metadata partitions by Apache Hudi's own client; gives whether it was completed."""
        client = self._client(path, options)
        try:
            return bool(client.index(instant).isPresent())
        finally:
            client.close()

    def _client(self, path: str, options: dict[str, str]) -> Any:
        """Apache Hudi's client of a table."""
        jvm: Any = self.spark._jvm
        config = (
            jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
            .withPath(path)
            .withProps(options)
            .withEmbeddedTimelineServerEnabled(False)
            .build()
        )
        engine = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(self.spark._jsc)
        return jvm.org.apache.hudi.client.SparkRDDWriteClient(engine, config)

    def set_hadoop(self, name: str, value: str | None) -> None:
        """Set a property of Hadoop's configuration, which readers and writers of files ask; None takes it away."""
        jsc: Any = self.spark._jsc
        if value is None:
            jsc.hadoopConfiguration().unset(name)
        else:
            jsc.hadoopConfiguration().set(name, value)

    def stream(self, path: str, options: dict[str, str], checkpoint: str, out: str) -> int:
        """Add to the folder `out` what a stream of the table gives now, on from the checkpoint."""
        began = time.monotonic()
        query = (
            self.spark.readStream.format("hudi")
            .options(**options)
            .load(path)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .option("path", out)
            .trigger(availableNow=True)
            .start()
        )
        ended = query.awaitTermination(600)
        if not ended:
            query.stop()
            raise PySparkException(f"the stream of {path} did not come to its end in 600 s")
        if query.exception() is not None:
            raise query.exception()
        return round((time.monotonic() - began) * 1000)

    def timeline(self, path: str) -> list[list[str]]:
        """`[time, action, state]` of each instant of the active timeline, as Apache Hudi's own code sees it."""
        # Apache Hudi has no Python interface to its timeline but the one that py4j makes.
        jvm: Any = self.spark._jvm
        conf = self.spark._jsc.hadoopConfiguration()
        storage = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(conf)
        client = (
            jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(storage)
            .setBasePath(path)
            .build()
        )
        instants = client.getActiveTimeline().getInstants()
        out = []
        for i in range(instants.size()):
            instant = instants.get(i)
            # Renamed in 1.0; py4j's `hasattr` is always true, its `dir` is not.
            renamed = "requestedTime" in dir(instant)
            when = instant.requestedTime() if renamed else instant.getTimestamp()
            out.append([when, instant.getAction(), instant.getState().name()])
        return out

    def _save(self, frame: DataFrame, out: str) -> int:
        began = time.monotonic()
        if frame.columns:  # a command such as CREATE TABLE has none, and has run by now
            frame.coalesce(1).write.parquet(out)
        return round((time.monotonic() - began) * 1000)


def _files(jvm: Any, metadata: Any, path: str, partition: str) -> dict[str, int]:
    """Sizes by name of the files that Apache Hudi lists in a partition."""
    folder = jvm.org.apache.hudi.storage.StoragePath(f"{path}/{partition}" if partition else path)
    return {f.getPath().getName(): f.getLength() for f in metadata.getAllFilesInPartition(folder)}


def _slices(view: Any, partition: str) -> list[list[str]]:
    """Newest file slices of a partition by Apache Hudi's view: file id, instant, base file, logs."""
    out = []
    for part in view.getLatestFileSlices(partition).toArray():
        base = part.getBaseFile().get().getFileName() if part.getBaseFile().isPresent() else ""
        logs = sorted(log.getFileName() for log in part.getLogFiles().toArray())
        out.append([part.getFileId(), part.getBaseInstantTime(), base, *logs])
    return sorted(out)


def _wrapped(bound: Any) -> str | None:
    """A bound of statistics, as text."""
    return None if bound is None else str(bound.getValue())


def main() -> None:
    jar, scratch = sys.argv[1:3]
    # The protocol keeps standard output for itself; whatever else prints there goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    spark = session(jar, scratch)
    commands = Commands(spark)
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        command: Callable[..., Any] = getattr(commands, request.pop("command"))
        try:
            answer = {"ok": True, "result": command(**request)}
        except (HudiError, Py4JError, PySparkException) as e:
            # Messages and causes; the frames between them fill pages and say nothing here.
            lines = "".join(traceback.format_exception_only(e)).splitlines()
            text = "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))
            answer = {"ok": False, "error": text}
        answers.write(json.dumps(answer) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
