"""The engines of the headline table.  Each runs in a process of its own: `python engines.py NAME FOLDER ROWS [JSON]`.

The JSON has settings that all engines share: `index`, `columns`, and `s3` with the options of a server.

The process warms up on a small workload, then does what lines of JSON on standard input say, and answers each
with seconds and what it found.  All write zstd of one level, and Hudi tables carry bloom filters.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import workload
from workload import KEY, ORDERING, PARTITION, SUMMED, Facts

LEVEL = "3"  # parquet-mr's own default
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.datasource.write.precombine.field": ORDERING,
}
OPERATION = "hoodie.datasource.write.operation"


# What all engines of a run share; see above.
settings: dict[str, Any] = {}


def index_options(otherwise: str | None = None) -> dict[str, str]:
    """The index of Hudi tables: that of the run, or another one, or the writer's default."""
    index = settings.get("index") or otherwise
    return {"hoodie.index.type": index} if index else {}


class Engine:
    """One table under test.  `read` gives (rows, sum of fares)."""

    works: tuple[str, ...] = ("bulk_insert", "insert", "upsert", "delete", "read")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = str(folder / "table")
        self.s3: dict[str, Any] = settings.get("s3") or {}
        if self.s3:
            self.path = f"s3://{self.s3['bucket']}/{folder.name}/table"

    def _s3(self) -> Any:
        import s3fs

        return s3fs.S3FileSystem(
            **self.s3["storage_options"], use_listings_cache=False, skip_instance_cache=True
        )

    def clear(self) -> None:
        if self.s3:
            store = self._s3()
            if store.exists(self.path):
                store.rm(self.path, recursive=True)
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def size_bytes(self) -> int:
        """Of all Parquet files; of a table just made, the size of its data."""
        if self.s3:
            files = self._s3().find(self.path, detail=True)
            return sum(f["size"] for p, f in files.items() if p.endswith(".parquet") and "/.hoodie/" not in p)
        return sum(p.stat().st_size for p in Path(self.path).rglob("*.parquet") if ".hoodie" not in p.parts)

    def bulk_insert(self, facts: Facts) -> None: ...
    def insert(self, facts: Facts) -> None: ...
    def upsert(self, facts: Facts) -> None: ...
    def delete(self, facts: Facts) -> None: ...
    def read(self) -> tuple[int, float]: ...


def _session(**config: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    base = {
        "spark.driver.memory": "3g",  # all engines' sessions live at once
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.parquet.compression.codec.zstd.level": LEVEL,
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in {**base, **config}.items():
        builder = builder.config(key, value)
    return builder


class SparkEngine(Engine):
    """What the Spark engines share: a session, and the aggregate that reads."""

    source = "parquet"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.spark = self.session()
        self.spark.sparkContext.setLogLevel("OFF")

    def session(self) -> Any:
        return _session().getOrCreate()

    def frame(self, path: str) -> Any:
        return self.spark.read.parquet(path)

    def read(self) -> tuple[int, float]:
        from pyspark.sql import functions as F

        rows = (
            self.spark.read.format(self.source).options(**self.s3.get("hadoop_options", {})).load(self.path)
        )
        found = rows.agg(F.count("rider"), *(F.sum(c) for c in SUMMED)).collect()[0]
        return found[0], found[1]


class PlainParquet(SparkEngine):
    """Parquet on Spark; a change joins and rewrites everything."""

    works = ("bulk_insert", "upsert", "delete", "read")

    def bulk_insert(self, facts: Facts) -> None:
        self._write(self.frame(facts.base), self.path)

    insert = bulk_insert

    def _write(self, rows: Any, path: str) -> None:
        rows.write.partitionBy(PARTITION).mode("overwrite").parquet(path)

    def _without(self, keys: Any) -> Any:
        old = self.spark.read.parquet(self.path)
        return old.join(keys.select(KEY, PARTITION), [KEY, PARTITION], "left_anti").select(old.columns)

    def _replace(self, rows: Any) -> None:
        self._write(rows, self.path + "-new")
        shutil.rmtree(self.path)
        os.rename(self.path + "-new", self.path)

    def upsert(self, facts: Facts) -> None:
        new = self.frame(facts.upserts)
        self._replace(self._without(new).unionByName(new))

    def delete(self, facts: Facts) -> None:
        self._replace(self._without(self.frame(facts.deletes)))


class Delta(SparkEngine):
    """Delta Lake on Spark."""

    source = "delta"
    works = ("bulk_insert", "upsert", "delete", "read")

    def session(self) -> Any:
        from interop import bundles

        jars = [str(bundles.jar(a)) for a in bundles.DELTA_JARS]
        return _session(
            **{
                "spark.jars": ",".join(jars),
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            }
        ).getOrCreate()

    def bulk_insert(self, facts: Facts) -> None:
        self.frame(facts.base).write.format("delta").partitionBy(PARTITION).mode("overwrite").save(self.path)

    insert = bulk_insert

    def _merge(self, source: str, rest: str) -> None:
        self.frame(source).createOrReplaceTempView("incoming")
        on = f"t.{KEY} = s.{KEY} AND t.{PARTITION} = s.{PARTITION}"
        self.spark.sql(f"MERGE INTO delta.`{self.path}` t USING incoming s ON {on} {rest}").collect()

    def upsert(self, facts: Facts) -> None:
        self._merge(facts.upserts, "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")

    def delete(self, facts: Facts) -> None:
        self._merge(facts.deletes, "WHEN MATCHED THEN DELETE")


class OursOnSpark(SparkEngine):
    """This project on Spark."""

    source = "hudi"
    options: ClassVar[dict[str, str]] = {
        "hoodie.parquet.compression.codec": "zstd",
        "parquet.compression.codec.zstd.level": LEVEL,
    }

    def session(self) -> Any:
        import hudi_spark

        return hudi_spark.configure(_session()).getOrCreate()

    def index(self) -> dict[str, str]:
        return index_options()

    def _save(self, source: str, operation: str) -> None:
        writer = self.frame(source).write.format("hudi").options(**OPTIONS, **self.options, **self.index())
        writer = writer.options(**self.s3.get("hadoop_options", {}))
        writer.option(OPERATION, operation).mode("append").save(self.path)

    def bulk_insert(self, facts: Facts) -> None:
        self._save(facts.base, "bulk_insert")

    def insert(self, facts: Facts) -> None:
        self._save(facts.base, "insert")

    def upsert(self, facts: Facts) -> None:
        self._save(facts.upserts, "upsert")

    def delete(self, facts: Facts) -> None:
        self._save(facts.deletes, "delete")


class ApacheHudi(OursOnSpark):
    """Apache Hudi 0.15.0 with zstd, and its SIMPLE index unless another is asked for."""

    options: ClassVar[dict[str, str]] = {"hoodie.parquet.compression.codec": "zstd"}

    def index(self) -> dict[str, str]:
        return index_options("SIMPLE")

    def session(self) -> Any:
        from interop import bundles

        return _session(
            **{
                "spark.jars": str(bundles.jar(bundles.hudi_bundle("0.15.0"))),
                "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
                "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            }
        ).getOrCreate()


class ApacheHudiDefaults(ApacheHudi):
    """Apache Hudi 0.15.0 as it comes: gzip."""

    options: ClassVar[dict[str, str]] = {}

    def index(self) -> dict[str, str]:
        return index_options()


class Ours(Engine):
    """This project without a JVM."""

    options = OursOnSpark.options

    def _table(self) -> Any:
        from hudi_timeline import HudiTable

        return HudiTable.open(self.path, storage_options=self.s3.get("storage_options"))

    def _create(self, facts: Facts) -> Any:
        from hudi_timeline import HudiTable

        return HudiTable.create(
            self.path, pq.read_schema(facts.base), name="trips", record_keys=[KEY],
            partition_fields=[PARTITION], ordering_fields=[ORDERING],
            storage_options=self.s3.get("storage_options"),
        )  # fmt: skip

    def _given(self) -> dict[str, str]:
        return {**self.options, **index_options()}

    def bulk_insert(self, facts: Facts) -> None:
        self._create(facts).bulk_insert(pq.read_table(facts.base), options=self._given())

    def insert(self, facts: Facts) -> None:
        self._create(facts).insert(pq.read_table(facts.base), options=self._given())

    def upsert(self, facts: Facts) -> None:
        self._table().upsert(pq.read_table(facts.upserts), options=self._given())

    def delete(self, facts: Facts) -> None:
        self._table().delete(pq.read_table(facts.deletes), options=self._given())

    def read(self) -> tuple[int, float]:
        rows = self._table().read(meta_columns=True).to_arrow()
        return rows.num_rows, pc.sum(rows["fare"]).as_py()


class DeltaRs(Engine):
    """delta-rs, from Python, without a JVM."""

    works = ("bulk_insert", "upsert", "delete", "read")

    def bulk_insert(self, facts: Facts) -> None:
        from deltalake import WriterProperties, write_deltalake

        properties = WriterProperties(compression="ZSTD", compression_level=int(LEVEL))
        write_deltalake(
            self.path, pq.read_table(facts.base), partition_by=[PARTITION], writer_properties=properties,
            storage_options=self._options(),
        )  # fmt: skip

    def _options(self) -> dict[str, str] | None:
        """A server without the means to refuse a second writer: as users of such stores set it."""
        if not self.s3:
            return None
        given = self.s3["storage_options"]
        return {
            "AWS_ACCESS_KEY_ID": given["key"], "AWS_SECRET_ACCESS_KEY": given["secret"],
            "AWS_ENDPOINT_URL": given["client_kwargs"]["endpoint_url"],
            "AWS_REGION": given["client_kwargs"]["region_name"],
            "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        }  # fmt: skip

    insert = bulk_insert

    def _merge(self, source: str) -> Any:
        from deltalake import DeltaTable

        predicate = f"t.{KEY} = s.{KEY} AND t.{PARTITION} = s.{PARTITION}"
        return DeltaTable(self.path, storage_options=self._options()).merge(
            pq.read_table(source), predicate=predicate, source_alias="s", target_alias="t"
        )

    def upsert(self, facts: Facts) -> None:
        self._merge(facts.upserts).when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self, facts: Facts) -> None:
        self._merge(facts.deletes).when_matched_delete().execute()

    def read(self) -> tuple[int, float]:
        from deltalake import DeltaTable

        rows = DeltaTable(self.path, storage_options=self._options()).to_pyarrow_table()
        return rows.num_rows, pc.sum(rows["fare"]).as_py()


class HudiRs(Ours):
    """hudi-rs reads the table that this project wrote without a JVM."""

    works = ("read",)
    shared: str | None = None  # that table

    def read(self) -> tuple[int, float]:
        from hudi import HudiTableBuilder

        batches = HudiTableBuilder.from_base_uri(self.shared or self.path).build().read()
        rows = pa.Table.from_batches(batches)
        return rows.num_rows, pc.sum(rows["fare"]).as_py()


class Floor(Engine):
    """pyarrow alone: files by partition, rewritten with a filter; what no writer of these files can undercut.

    It reads the very files that this project without a JVM has in its newest state, where that runs too.
    """

    works = ("bulk_insert", "upsert", "delete", "read")
    shared: list[str] | None = None  # those files

    def _files(self) -> list[Path]:
        return sorted(Path(self.path).rglob("*.parquet"))

    def _write(self, rows: pa.Table, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, compression="zstd", compression_level=int(LEVEL))

    def bulk_insert(self, facts: Facts) -> None:
        rows = pq.read_table(facts.base)

        def write(city: str) -> None:
            self._write(rows.filter(pc.equal(rows[PARTITION], city)), Path(self.path) / city / "part.parquet")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, workload.CITIES))

    insert = bulk_insert

    def _rewrite(self, given: pa.Table, *, insert: bool) -> None:
        """Each file without the keys of `given`, and with its rows if they are to be inserted."""

        def rewrite(path: Path) -> None:
            part = given.filter(pc.equal(given[PARTITION], path.parent.name))
            old = pq.read_table(path, use_threads=False)
            kept = old.filter(pc.invert(pc.is_in(old[KEY], value_set=part[KEY])))
            self._write(pa.concat_tables([kept, part]) if insert else kept, path)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(rewrite, self._files()))

    def upsert(self, facts: Facts) -> None:
        self._rewrite(pq.read_table(facts.upserts), insert=True)

    def delete(self, facts: Facts) -> None:
        self._rewrite(pq.read_table(facts.deletes), insert=False)

    def read(self) -> tuple[int, float]:
        paths = self.shared or [str(p) for p in self._files()]
        # partitioning=None: folders named after cities are no Hive partitions.
        with ThreadPoolExecutor(2) as pool:
            parts = pool.map(lambda p: pq.read_table(p, use_threads=False, partitioning=None), paths)
            rows = pa.concat_tables(parts)
        return rows.num_rows, pc.sum(rows["fare"]).as_py()


ENGINES: dict[str, type[Engine]] = {
    "plain": PlainParquet,
    "delta": Delta,
    "apache": ApacheHudi,
    "apache-defaults": ApacheHudiDefaults,
    "ours-spark": OursOnSpark,
    "ours": Ours,
    "delta-rs": DeltaRs,
    "hudi-rs": HudiRs,
    "floor": Floor,
}


def warm_up(engine: Engine, folder: Path) -> None:
    facts = workload.make(folder / "warm", 20_000, 7, settings.get("columns", workload.COLUMNS))
    engine.clear()
    Ours.bulk_insert(engine, facts) if isinstance(engine, HudiRs) else engine.bulk_insert(facts)
    for name in engine.works[1:]:
        if name == "insert":
            engine.clear()
            engine.insert(facts)
        elif name == "read":
            engine.read()
        else:
            getattr(engine, name)(facts)
    engine.clear()


def main() -> None:
    name, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to standard error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings.update(json.loads(sys.argv[4]) if len(sys.argv) > 4 else {})
    facts = workload.make(folder.parent / "data", rows, columns=settings.get("columns", workload.COLUMNS))
    engine = ENGINES[name](folder)
    warm_up(engine, folder)
    print(json.dumps({"ready": name}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        work = request["work"]
        action: Callable[[], Any]
        if work in ("bulk_insert", "insert"):
            engine.clear()
        if isinstance(engine, HudiRs):
            engine.shared = request["table"]
        elif isinstance(engine, Floor):
            engine.shared = request["files"]
        action = engine.read if work == "read" else lambda work=work: getattr(engine, work)(facts)
        os.sync()  # nobody pays for what another engine wrote
        began = time.perf_counter()
        found = action()
        seconds = time.perf_counter() - began
        if isinstance(engine, Floor):
            engine.shared = None
        if work != "read":
            found = engine.read()
        answer = {"seconds": seconds, "found": found, "bytes": engine.size_bytes()}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
