"""The process that is killed: writes step after step, and says so on standard output.

    python writer.py ENGINE TYPE PATH SEED SIZE FIRST [COUNT]

ENGINE is `local` (no JVM), `spark`, or `apache` (Apache Hudi 0.15.0 on Spark), TYPE that of the table.  Prints
`begin N` before step N and `done N` after it.  Without COUNT it goes on until it is killed.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# Started as a script, so that it does not matter from where.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soak.steps import COPY_ON_WRITE, OF_TYPE, OPERATION, OPTIONS, SCHEMA, Step, steps

Writer = Callable[[Step], None]


def local_writer(path: str, table_type: str = COPY_ON_WRITE) -> Writer:
    from hudi_timeline import HudiTable

    def write(step: Step) -> None:
        if not (Path(path) / ".hoodie" / "hoodie.properties").exists():
            HudiTable.create(path, SCHEMA, name="soak", table_type=table_type, record_keys=["id"],
                             partition_fields=["p"], ordering_fields=["ts"])  # fmt: skip
        getattr(HudiTable.open(path), step.operation)(step.table(), options=OF_TYPE[table_type])

    return write


def spark_writer(path: str, table_type: str) -> Writer:
    from pyspark.sql import SparkSession

    import hudi_spark

    spark = hudi_spark.configure(_builder(SparkSession)).getOrCreate()
    return _frame_writer(spark, path, OF_TYPE[table_type])


def apache_writer(path: str, table_type: str) -> Writer:
    """Apache Hudi itself; its options are those that keep a small run quick."""
    from pyspark.sql import SparkSession

    from interop.bundles import hudi_bundle, jar
    from interop.spark_process import QUIET_OPTIONS
    from interop.spark_worker import HUDI

    builder = _builder(SparkSession).config("spark.jars", str(jar(hudi_bundle("0.15.0"))))
    for key, value in HUDI.items():
        builder = builder.config(key, value)
    return _frame_writer(builder.getOrCreate(), path, {**QUIET_OPTIONS, **OF_TYPE[table_type]})


def _builder(session: Any) -> Any:
    from interop.spark_worker import QUICK_JVM

    return (
        session.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
    )


def _frame_writer(spark: Any, path: str, more: Mapping[str, str]) -> Writer:
    import pyarrow.parquet as pq

    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(tempfile.mkdtemp(prefix="soak-input-"))

    def write(step: Step) -> None:
        given = folder / f"{step.number}.parquet"
        pq.write_table(step.table(), given)
        frame = spark.read.parquet(str(given)).repartition(2)
        options = {**OPTIONS, **more, OPERATION: step.operation}
        frame.write.format("hudi").options(**options).mode("append").save(path)
        given.unlink()

    return write


def main() -> None:
    engine, table_type, path, seed, size, first, *count = sys.argv[1:]
    write = {"local": local_writer, "spark": spark_writer, "apache": apache_writer}[engine](path, table_type)
    last = int(first) + int(count[0]) if count else None
    for step in itertools.islice(steps(int(seed), int(size)), int(first), last):
        print(f"begin {step.number}", flush=True)
        write(step)
        print(f"done {step.number}", flush=True)


if __name__ == "__main__":
    main()
