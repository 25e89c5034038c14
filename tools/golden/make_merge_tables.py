"""Make golden tables of versions 8 and 9 for the merge rules that the other scenarios do not pin, with Apache Hudi.

    python tools/golden/make_merge_tables.py 1.0.2|1.2.0 OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from interop.bundles import hudi_bundle, jar
from interop.spark_worker import session

COMMON = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.index.bloom.num_entries": "100",
    # Small files take inserts into their base file; here every later write is to be a log.
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    **{f"hoodie.{k}.shuffle.parallelism": "1" for k in ("insert", "upsert", "delete", "bulkinsert")},
}
COLUMNS = "id string, ts long, seq int, v string, w string, part string"
FLAG = ", _hoodie_is_deleted boolean"
SCHEMA_ON_READ = "hoodie.schema.on.read.enable"


class Maker:
    """One table being made."""

    def __init__(
        self, spark: SparkSession, hudi: str, name: str, folder: Path, more: Mapping[str, str]
    ) -> None:
        self.spark, self.hudi, self.name = spark, hudi, name
        self.path = folder / name
        self.options = {**COMMON, "hoodie.table.name": name, **more}
        self.ordering = self.options.get("hoodie.datasource.write.precombine.field", "")
        self.key, self.partition = "id", "part"
        self.read_options: dict[str, str] = {}
        self.written: list[dict[str, object]] = []

    def write(self, ddl: str, *rows: tuple[object, ...], operation: str = "upsert") -> None:
        frame = self.spark.createDataFrame(list(rows), ddl).coalesce(1)
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        self.written.append({"operation": operation, "rows": [list(r) for r in rows]})

    def sql(self, text: str) -> None:
        self.spark.sql(text)
        self.written.append({"operation": text.replace(str(self.path), "<path>"), "rows": None})

    def finish(self, out: Path) -> None:
        expected = out / f"{self.name}.expected"
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir(parents=True)
        rows, unanswered = {}, {}
        for question in ("snapshot", "read_optimized"):
            frame = self.spark.read.format("hudi").option("hoodie.datasource.query.type", question)
            folder = expected / "answer"
            try:
                read = frame.options(**self.read_options).load(str(self.path))
                read.coalesce(1).write.mode("overwrite").parquet(str(folder))
            except (Py4JError, PySparkException) as e:
                causes = [line for line in str(e).splitlines() if line.startswith("Caused by:")]
                unanswered[question] = (causes[-1:] or str(e).splitlines()[1:2] or [type(e).__name__])[0]
                shutil.rmtree(folder, ignore_errors=True)
                continue
            (part,) = folder.glob("*.parquet")
            part.rename(expected / f"{question}.parquet")
            shutil.rmtree(folder)
            rows[question] = self.spark.read.parquet(str(expected / f"{question}.parquet")).count()
        meta = {
            "scenario": self.name, "hudi_version": self.hudi,
            "table_version": {"0.1": 6, "1.0": 8}.get(self.hudi[:3], 9),
            "table_type": "MERGE_ON_READ", "key_fields": self.key, "partition_fields": self.partition,
            "ordering_field": self.ordering.partition(",")[0], "write_options": self.options,
            "read_options": self.read_options, "operations": self.written, "rows": rows,
            "hudi_could_not_answer": unanswered, "relocatable": True, "notes": [],
        }  # fmt: skip
        # Bytes, dates and decimals stand as text.
        (expected / "meta.json").write_text(json.dumps(meta, indent=1, default=str) + "\n")
        with zipfile.ZipFile(out / f"{self.name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(self.path.rglob("*")):
                if not file.name.endswith(".crc"):
                    archive.write(file, f"{self.name}/{file.relative_to(self.path)}")
        print(self.name, rows, unanswered, flush=True)


def stories_of_deletes(t: Maker) -> None:
    """Deletes that come late, in time or with the same ordering value, and records after them."""

    def r(key: str, ts: int, v: str, gone: bool | None = False, seq: int = 0) -> tuple[object, ...]:
        return key, ts, seq, v, "w", "p", gone

    ddl = COLUMNS + FLAG
    t.write(ddl, *(r(f"k{n:02d}", 100, "w1") for n in range(14)), operation="insert")
    t.write(
        ddl, r("k00", 50, "w2", True), r("k01", 100, "w2", True), r("k02", 150, "w2", True), r("k03", 150, "w2"),
        r("k04", 50, "w2"), r("k08", 150, "w2"), r("k09", 150, "w2", True), r("k10", 150, "w2", None),
    )  # fmt: skip
    t.write(
        ddl, r("k02", 120, "w3"), r("k01", 90, "w3"), r("k03", 120, "w3", True), r("k05", 100, "w3"),
        r("k20", 10, "w3"), r("k08", 150, "w3", True), r("k09", 150, "w3"),
    )  # fmt: skip
    # 1.0.2 fails to read what such deletes, whose ordering value is the number 0, become under event time.
    if t.hudi != "1.0.2" or "merge.mode" in str(t.options):
        t.write(ddl, r("k06", 100, "w4"), r("k03", 100, "w4"), r("k11", 500, "w4"), operation="delete")
    t.write(ddl, r("k06", 1, "w5"), r("k20", 5, "w5", True), r("k07", 100, "w5", True), r("k11", 1, "w5"))
    t.write(ddl, r("k07", 100, "w6"), r("k21", 10, "w6", True), r("k12", 200, "w6"), r("k12", 150, "w6 late"))


def _repeated(t: Maker) -> None:
    """Deletes of what is deleted already: with the ordering value 0, that of deletes without one, and others."""

    def r(key: str, seq: int | None, v: str, gone: bool = False) -> tuple[object, ...]:
        return key, 1, seq, v, "w", "p", gone

    ddl = COLUMNS + FLAG
    t.write(ddl, *(r(f"k{n:02d}", 5, "w1") for n in range(14)), operation="insert")
    t.write(
        ddl, r("k00", 0, "w2", True), r("k01", 0, "w2", True), r("k02", 0, "w2"), r("k03", 0, "w2", True),
        r("k04", 5, "w2", True), r("k05", 1, "w2", True), r("k06", 9, "w2", True), r("k13", 9, "w2"),
    )  # fmt: skip
    t.write(
        ddl, r("k07", 0, "w3"), r("k08", 0, "w3"), r("k09", 1, "w3"), r("k10", 0, "w3"), r("k11", 0, "w3"),
        r("k06", 0, "w3"), r("k00", 2, "w3"), operation="delete",
    )  # fmt: skip
    t.write(
        ddl, r("k08", 2, "w4"), r("k09", 0, "w4"), r("k10", 2, "w4"), r("k10", 1, "w4"), r("k01", 2, "w4"),
        operation="delete",
    )  # fmt: skip
    t.write(
        ddl, r("k01", 1, "w5"), r("k03", 2, "w5", True), r("k06", 1, "w5"), r("k10", 1, "w5"), r("k11", 2, "w5", True),
        r("k12", 0, "w5", True), r("k20", 1, "w5"), r("k21", 0, "w5", True), r("k13", 0, "w5", True),
    )  # fmt: skip
    t.write(ddl, r("k12", -1, "w6"), r("k20", 0, "w6"), r("k21", -1, "w6"), r("k13", 1, "w6", True))


def _null_ordering(t: Maker) -> None:
    """Records without an ordering value: the number 0 stands for it, so that they win over negative ones."""

    def r(key: str, seq: int | None, v: str) -> tuple[object, ...]:
        return key, 1, seq, v, "w", "p"

    first = {"k00": -5, "k01": 5, "k02": 0, "k03": None, "k04": None, "k05": None, "k06": -5}
    t.write(COLUMNS, *(r(k, s, "w1") for k, s in first.items()), operation="insert")
    t.write(
        COLUMNS, r("k00", None, "w2"), r("k01", None, "w2"), r("k02", None, "w2"), r("k03", -1, "w2"),
        r("k04", 1, "w2"), r("k05", None, "w2"), r("k06", -1, "w2"), r("k20", None, "w2"), r("k21", -1, "w2"),
    )  # fmt: skip
    t.write(COLUMNS, r("k06", None, "w3"), r("k20", -1, "w3"), r("k21", None, "w3"), r("k05", 1, "w3"))
    t.write(COLUMNS, r("k06", -1, "w4"), r("k21", 0, "w4"))


def _several(t: Maker) -> None:
    def r(key: str, ts: int | None, seq: int | None, v: str, gone: bool = False) -> tuple[object, ...]:
        return key, ts, seq, v, "w", "p", gone

    ddl = COLUMNS + FLAG
    t.write(ddl, *(r(f"k{n:02d}", 100, 5, "w1") for n in range(12)), operation="insert")
    t.write(
        ddl, r("k00", 100, 4, "w2"), r("k01", 100, 5, "w2"), r("k02", 100, 6, "w2"), r("k03", 99, 9, "w2"),
        r("k04", 101, 1, "w2"), r("k05", 100, 4, "w2", True), r("k06", 100, 5, "w2", True),
        r("k07", 100, 6, "w2", True), r("k08", 101, 2, "w2", True),
    )  # fmt: skip
    t.write(
        ddl, r("k02", 100, 5, "w3"), r("k04", 101, 1, "w3"), r("k07", 100, 5, "w3"), r("k08", 101, 3, "w3"),
        r("k04", 101, 0, "w3 late"), r("k20", 1, 1, "w3"),
    )  # fmt: skip
    t.write(ddl, r("k09", 0, 0, "w4"), operation="delete")
    t.write(ddl, r("k09", 0, 0, "w5"), r("k20", 1, 0, "w5", True), r("k10", 100, 5, "w5"))


def _marked(t: Maker) -> None:
    def r(key: str, ts: int, v: str, op: str | None) -> tuple[object, ...]:
        return key, ts, 0, v, "w", "p", op

    ddl = COLUMNS + ", op string"
    t.write(ddl, *(r(f"k{n:02d}", 100, "w1", "I") for n in range(8)), operation="insert")
    t.write(
        ddl, r("k00", 150, "w2", "D"), r("k01", 50, "w2", "D"), r("k02", 150, "w2", "d"), r("k03", 150, "w2", None),
        r("k04", 150, "w2", "U"), r("k20", 150, "w2", "D"),
    )  # fmt: skip
    t.write(ddl, r("k00", 120, "w3", "U"), r("k04", 120, "w3", "D"), r("k05", 100, "w3", "D"))


def _unavailable(t: Maker) -> None:
    gone = "__debezium_unavailable_value"

    def r(key: str, lsn: int, v: str | None, w: str | None, op: str = "u") -> tuple[object, ...]:
        return key, lsn, 0, v, w, "p", op, lsn

    ddl = COLUMNS + ", _change_operation_type string, _event_lsn long"
    t.write(ddl, *(r(f"k{n:02d}", 100, f"v{n}", f"w{n}", "c") for n in range(8)), operation="insert")
    t.write(
        ddl, r("k00", 150, gone, "w2"), r("k01", 50, gone, "w2"), r("k02", 150, None, gone), r("k03", 150, "v", "w"),
        r("k04", 150, gone, gone, "d"), r("k05", 50, "v", "w", "d"),
    )  # fmt: skip
    t.write(
        ddl, r("k00", 200, "w3", gone), r("k03", 120, gone, "late"), r("k02", 160, gone, "w3"), r("k20", 1, gone, "n"),
    )  # fmt: skip


def _partial(t: Maker) -> None:
    columns = COLUMNS
    rows = [(f"k{n:02d}", 100, 0, "v1", "w1", "p") for n in range(10)]
    t.write(columns, *rows, operation="insert")
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.spark.sql(f"CREATE TABLE {t.name} USING hudi LOCATION '{t.path}'")
    t.spark.sql("SET hoodie.spark.sql.merge.into.partial.updates=true")
    for key, value in COMMON.items():
        t.spark.sql(f"SET {key}={value}")

    def merge(assigned: str, *source: tuple[str, int, str]) -> None:
        values = ", ".join(f"('{k}', {ts}L, '{x}', 'p')" for k, ts, x in source)
        t.sql(
            f"MERGE INTO {t.name} AS t USING (SELECT * FROM VALUES {values} AS s(id, ts, x, part)) AS s "
            f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.{assigned} = s.x, t.ts = s.ts"
        )

    merge("v", ("k00", 200, "a"), ("k01", 200, "a"), ("k02", 50, "a"), ("k03", 200, "a"), ("k04", 100, "a"))
    merge("w", ("k00", 150, "b"), ("k01", 250, "b"), ("k02", 60, "b"), ("k05", 300, "b"))
    t.sql(f"DELETE FROM {t.name} WHERE id = 'k03'")
    t.write(columns, ("k05", 250, 1, "full", "full", "p"), ("k06", 300, 1, "full", "full", "p"))
    merge("v", ("k05", 400, "c"), ("k06", 200, "c"), ("k07", 90, "c"))


def _log_compacted(t: Maker) -> None:
    t.write(COLUMNS, *((f"k{n:02d}", 100, 0, "w1", "w", "p") for n in range(8)), operation="insert")
    for n in range(2, 8):
        late = (f"k{n + 10}", 10, 0, f"w{n}", "w", "p")
        t.write(
            COLUMNS,
            (f"k{n:02d}", 100 + n, 0, f"w{n}", "w", "p"),
            ("k00", 100 + n, 0, f"w{n}", "w", "p"),
            late,
        )
    t.write(COLUMNS, ("k05", 0, 0, "", "", "p"), operation="delete")


def _renamed(t: Maker) -> None:
    """Schema on read: files and log blocks older than renames, one to a name that was another column's."""
    t.read_options = {"hoodie.schema.on.read.enable": "true"}
    for key, value in {**COMMON, **RENAMING}.items():
        t.spark.conf.set(key, value)
    t.write(COLUMNS, *((f"k{n:02d}", 100, n, f"v{n}", f"w{n}", "p") for n in range(8)), operation="insert")
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.spark.sql(f"CREATE TABLE {t.name} USING hudi LOCATION '{t.path}'")
    t.sql(f"ALTER TABLE {t.name} RENAME COLUMN v TO text")
    t.sql(f"ALTER TABLE {t.name} ALTER COLUMN seq TYPE bigint")
    t.write(
        "id string, ts long, seq long, text string, w string, part string",
        ("k00", 200, 1 << 40, "new", "w", "p"),
    )
    t.sql(f"ALTER TABLE {t.name} RENAME COLUMN w TO v")
    t.sql(f"ALTER TABLE {t.name} ADD COLUMNS (extra int)")
    more = "id string, ts long, seq long, text string, v string, part string, extra int"
    t.write(more, ("k01", 200, 2, "text", "v", "p", 7), ("k20", 200, 2, "text", "v", "p", None))
    for key in {**COMMON, **RENAMING}:
        t.spark.conf.unset(key)


def _upgraded(t: Maker) -> None:
    """A table of version 6, with logs, that a write of this release takes up."""
    source = Path(__file__).parents[2] / "tests" / "golden" / "v6"
    meta = json.loads((source / "mor_avro_logs.expected" / "meta.json").read_text())
    with zipfile.ZipFile(source / "mor_avro_logs.zip") as archive:
        archive.extractall(t.path.parent)
    (t.path.parent / "mor_avro_logs").rename(t.path)
    t.options = {**meta["write_options"], "hoodie.metadata.enable": "false"}
    t.key, t.partition, t.ordering = meta["key_fields"], meta["partition_fields"], meta["ordering_field"]
    rows = t.spark.read.format("hudi").load(str(t.path)).orderBy(t.key).limit(6)
    data = rows.drop(*[c for c in rows.columns if c.startswith("_hoodie_")]).collect()
    ddl = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema if f.name[:7] != "_hoodie")
    names = [f.name for f in rows.schema if f.name[:7] != "_hoodie"]
    at = names.index(t.ordering)
    for step in (10, 20, -100_000):
        changed = [(*r[:at], r[at] + step, *r[at + 1 :]) for r in map(tuple, data[: 3 + step // 10 % 3])]
        t.write(ddl, *changed)


RENAMING = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
EVENT = {"hoodie.datasource.write.precombine.field": "ts"}
COMMIT = {
    **EVENT,
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
}
SCENARIOS: dict[str, tuple[Callable[[Maker], None], Mapping[str, str], str]] = {
    "merge_event_time_deletes": (stories_of_deletes, EVENT, "1.0.2 1.2.0"),
    "merge_commit_time_deletes": (stories_of_deletes, COMMIT, "1.0.2 1.2.0"),
    # 1.0.2 does not write it: "Ordering value is null for record".
    "merge_null_ordering": (_null_ordering, {"hoodie.datasource.write.precombine.field": "seq"}, "1.2.0"),
    "schema_history_mor": (_renamed, {**EVENT, **RENAMING}, "1.0.2 1.2.0"),
    # 1.0.2 differs in one row: it compares a record after such a delete with 0, so that a negative one stays deleted.
    "merge_repeated_deletes": (_repeated, {"hoodie.datasource.write.precombine.field": "seq"}, "1.2.0"),
    "merge_delete_marker": (
        _marked,
        {
            **EVENT,
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.payload.delete.field": "op",
            "hoodie.payload.delete.marker": "D",
        },
        "1.0.2 1.2.0",
    ),
    "merge_partial_event_time": (_partial, EVENT, "1.0.2 1.2.0"),
    # 1.0.2 does not read it: "Partial merging logic is not implemented by OverwriteWithLatestSparkRecordMerger".
    "merge_partial_commit_time": (_partial, COMMIT, "1.2.0"),
    "merge_log_compacted": (
        _log_compacted,
        {
            **EVENT,
            "hoodie.log.compaction.enable": "true",
            "hoodie.log.compaction.inline": "true",
            "hoodie.log.compaction.blocks.threshold": "3",
        },
        "1.0.2 1.2.0",
    ),
    "upgraded_from_6": (_upgraded, {}, "1.0.2 1.2.0"),
    "merge_several_ordering_fields": (
        _several,
        {"hoodie.datasource.write.precombine.field": "ts,seq", "hoodie.table.ordering.fields": "ts,seq"},
        "1.2.0",
    ),
    "merge_unavailable_values": (
        _unavailable,
        {
            "hoodie.datasource.write.precombine.field": "_event_lsn",
            "hoodie.datasource.write.payload.class": (
                "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
            ),
        },
        "1.2.0",
    ),
}


def make(
    kind: type[Maker], scenarios: Mapping[str, tuple[Callable[..., None], Mapping[str, str], str]]
) -> None:
    """Make the scenarios that the command line names, or all: each a builder, its options and its versions."""
    hudi, out, *names = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    spark = session(str(jar(hudi_bundle(hudi))), str(folder))
    for name in names or scenarios:
        build, options, versions = scenarios[name]
        if hudi not in versions.split():
            continue
        maker = kind(spark, hudi, name, folder / "tables", options)
        try:
            build(maker)
            maker.finish(Path(out))
        except (Py4JError, PySparkException) as e:  # the next scenario still counts
            print(name, "failed:", type(e).__name__, str(e).splitlines()[:2], flush=True)
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    make(Maker, SCENARIOS)
