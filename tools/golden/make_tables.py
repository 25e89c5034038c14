"""Make golden tables that the scenarios of version 6 lack, with Apache Hudi itself, and its answers.

    python tools/golden/make_tables.py OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from interop.bundles import hudi_bundle, jar
from interop.spark_worker import session

VERSION = "0.15.0"
SCHEMA_ON_READ = "hoodie.schema.on.read.enable"
ONE = {
    f"hoodie.{k}.parallelism": "1"
    for k in (
        "insert.shuffle", "upsert.shuffle", "delete.shuffle", "bulkinsert.shuffle", "finalize.write", "rollback",
        "markers.delete", "file.listing", "cleaner", "bloom.index", "simple.index",
    )
}  # fmt: skip
COMMON = {
    **ONE,
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


class Maker:
    """One table being made, and what was asked of it."""

    def __init__(self, spark: SparkSession, name: str, folder: Path, options: Mapping[str, str]) -> None:
        self.spark = spark
        self.name = name
        self.path = folder / name
        self.options = {**COMMON, "hoodie.table.name": name, **options}
        self.operations: list[dict[str, object]] = []
        self.unanswered: dict[str, str] = {}

    def write(
        self, rows: Sequence[Mapping[str, object]], ddl: str, operation: str = "upsert", **more: str
    ) -> None:
        """Write rows of the columns of `ddl`."""
        frame = self.spark.createDataFrame([dict(r) for r in rows], ddl)
        given = {**self.options, "hoodie.datasource.write.operation": operation}
        given.update({k.replace("__", "."): v for k, v in more.items()})
        frame.coalesce(1).write.format("hudi").options(**given).mode("append").save(str(self.path))
        self.operations.append({"operation": operation, "rows": len(rows)})

    def register(self) -> None:
        """Let SQL know the table."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name}")
        self.spark.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.path}'")

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("<table>", self.name))
        self.operations.append({"operation": text, "rows": None})

    def instants(self) -> list[str]:
        """Times of the completed writes, oldest first."""
        names = [p.name for p in (self.path / ".hoodie").iterdir()]
        ends = (".commit", ".deltacommit", ".replacecommit")
        return sorted(n.partition(".")[0] for n in names if n.endswith(ends))

    def answers(
        self, out: Path, questions: Mapping[str, Mapping[str, str]], read: Mapping[str, str], **meta: Any
    ) -> None:
        """Store the table and what Apache Hudi answers."""
        expected = out / f"{self.name}.expected"
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir(parents=True)
        rows = {}
        for question, options in questions.items():
            folder = expected / "answer"
            try:
                frame = self.spark.read.format("hudi").options(**read, **options).load(str(self.path))
                frame.coalesce(1).write.mode("overwrite").parquet(str(folder))
            except (Py4JError, PySparkException) as e:
                self.unanswered[question] = str(e).splitlines()[0][:300]
                shutil.rmtree(folder, ignore_errors=True)
                continue
            (part,) = folder.glob("*.parquet")
            part.rename(expected / f"{question}.parquet")
            shutil.rmtree(folder)
            rows[question] = self.spark.read.parquet(str(expected / f"{question}.parquet")).count()
        (expected / "meta.json").write_text(
            json.dumps(
                {
                    "scenario": self.name, "hudi_version": VERSION, "table_version": 6, "key_fields": "id",
                    "ordering_field": "ts", **meta,
                    "write_options": self.options, "read_options": dict(read), "operations": self.operations,
                    "rows": rows, "hudi_could_not_answer": self.unanswered, "relocatable": True,
                },
                indent=1,
            )
            + "\n"
        )  # fmt: skip
        with zipfile.ZipFile(out / f"{self.name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(self.path.rglob("*")):
                if not file.name.endswith(".crc"):
                    archive.write(file, f"{self.name}/{file.relative_to(self.path)}")
        print(self.name, rows, self.unanswered, flush=True)

    def as_of(self, *times: str) -> dict[str, dict[str, str]]:
        return {f"asof_{t}": {"as.of.instant": t} for t in times}

    def incremental(self, begin: str, end: str = "") -> dict[str, dict[str, str]]:
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
        }
        if end:
            options["hoodie.datasource.read.end.instanttime"] = end
        return {f"incremental_{begin}_{end or 'open'}": options}


READ_OPTIMIZED = {"read_optimized": {"hoodie.datasource.query.type": "read_optimized"}}
EVOLVE = {
    SCHEMA_ON_READ: "true",
    "hoodie.datasource.write.reconcile.schema": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.partitionpath.field": "part",
}
_FIRST = (
    "id string, ts long, name string, qty int, big long, ratio float, amount double, day date, dayt string, "
    "price decimal(8,2), num int, spare string, point struct<x: int, y: double, label: string>, "
    "tags array<struct<k: string, v: int>>, attrs map<string, struct<a: int, b: string>>, part string"
)


def _first(n: int, part: str, ts: int) -> dict[str, object]:
    return {
        "id": f"id-{n:02}", "ts": ts, "name": f"name {n}" if n % 5 else None, "qty": n * 3 if n % 4 else None,
        "big": (1 << 40) + n, "ratio": n + 0.1, "amount": n * 1.7, "day": datetime.date(2020, 1, 1 + n),
        "dayt": f"2021-02-{1 + n:02}", "price": decimal.Decimal(n * 101) / 100, "num": -n, "spare": f"spare {n}",
        "point": {"x": n, "y": n / 3, "label": f"p{n}"} if n % 6 else None,
        "tags": [{"k": f"k{n}", "v": n}, {"k": "z", "v": None}] if n % 3 else [],
        "attrs": {f"m{n}": {"a": n, "b": f"b{n}"}}, "part": part,
    }  # fmt: skip


def _evolved(maker: Maker, tail: str) -> list[str]:
    """The same steps for both table types: files of each age remain; gives the times of interest."""
    keep: list[str] = []
    maker.write([_first(n, "p1", 100) for n in range(12)], _FIRST, "insert")
    maker.write([_first(n, "p2", 100) for n in range(12, 20)], _FIRST, "insert")
    keep.append(maker.instants()[-1])
    maker.write([_first(n, "p1", 150) | {"name": "updated"} for n in (1, 2)], _FIRST)
    maker.register()
    maker.sql("ALTER TABLE <table> RENAME COLUMN name TO title")
    maker.sql("ALTER TABLE <table> ALTER COLUMN qty TYPE bigint")
    maker.sql("ALTER TABLE <table> ALTER COLUMN ratio TYPE double")
    maker.sql("ALTER TABLE <table> RENAME COLUMN point.label TO caption")
    maker.sql("ALTER TABLE <table> ALTER COLUMN point.x TYPE bigint")
    maker.sql(f"INSERT INTO <table> {_select(21, 'p3', 200, 'v1')}")
    maker.sql(f"INSERT INTO <table> {_select(3, 'p1', 200, 'v1')}")
    keep.append(maker.instants()[-1])
    maker.sql("ALTER TABLE <table> DROP COLUMN spare")
    maker.sql("ALTER TABLE <table> ADD COLUMNS (spare int)")
    maker.sql("ALTER TABLE <table> ADD COLUMNS (point.z string, extra string)")
    maker.sql("ALTER TABLE <table> DROP COLUMN point.y")
    maker.sql("ALTER TABLE <table> ALTER COLUMN big TYPE string")
    maker.sql("ALTER TABLE <table> ALTER COLUMN amount TYPE string")
    maker.sql("ALTER TABLE <table> ALTER COLUMN day TYPE string")
    maker.sql("ALTER TABLE <table> ALTER COLUMN price TYPE decimal(12,4)")
    maker.sql("ALTER TABLE <table> ALTER COLUMN num TYPE decimal(12,2)")
    maker.sql("ALTER TABLE <table> ALTER COLUMN extra AFTER ts")
    maker.sql("ALTER TABLE <table> RENAME COLUMN tags.element.v TO w")
    maker.sql("ALTER TABLE <table> RENAME COLUMN attrs.value.b TO bee")
    maker.sql(f"INSERT INTO <table> {_select(22, 'p3', 300, 'v2')}")
    maker.sql(f"INSERT INTO <table> {_select(4, 'p1', 300, 'v2')}")
    keep.append(maker.instants()[-1])
    return keep


def _select(n: int, part: str, ts: int, version: str) -> str:
    rows = {
        "v1": (
            f"SELECT 'id-{n:02}' id, {ts}L ts, 'title {n}' title, {n}L qty, {n}L big, double({n}.25) ratio, "
            f"double({n}.5) amount, date'2022-03-04' day, '2022-03-05' dayt, decimal({n}.25) price, {n} num, "
            f"'s{n}' spare, named_struct('x', {n}L, 'y', double(0.5), 'caption', 'c{n}') point, "
            f"array(named_struct('k', 'a', 'v', {n})) tags, map('m', named_struct('a', {n}, 'b', 'bb')) attrs, "
            f"'{part}' part"
        ),
        "v2": (
            f"SELECT 'id-{n:02}' id, {ts}L ts, 'extra {n}' extra, 'title {n}' title, {n}L qty, 'big {n}' big, "
            f"double({n}.25) ratio, 'amount {n}' amount, 'day {n}' day, '2022-03-05' dayt, "
            f"cast({n}.1234 as decimal(12,4)) price, cast({n}.5 as decimal(12,2)) num, "
            f"named_struct('x', {n}L, 'caption', 'c{n}', 'z', 'z{n}') point, "
            f"array(named_struct('k', 'a', 'w', {n})) tags, map('m', named_struct('a', {n}, 'bee', 'bb')) attrs, "
            f"{n} spare, '{part}' part"
        ),
    }
    return rows[version]


def schema_history_cow(spark: SparkSession, folder: Path, out: Path) -> None:
    maker = Maker(spark, "schema_history_cow", folder, EVOLVE)
    times = _evolved(maker, "")
    questions = {
        "snapshot": {},
        **maker.as_of(*times[:2]),
        **maker.incremental("000"),
        **maker.incremental(times[0]),
    }
    maker.answers(out, questions, {SCHEMA_ON_READ: "true"}, table_type="COPY_ON_WRITE", partition_fields="part",
                  about="files older than renames, drops, retypes, of nested columns too")  # fmt: skip


def schema_history_mor(spark: SparkSession, folder: Path, out: Path) -> None:
    maker = Maker(spark, "schema_history_mor", folder, {**EVOLVE, **MOR})
    times = _evolved(maker, "")
    questions = {"snapshot": {}, **READ_OPTIMIZED, **maker.as_of(*times[:2]), **maker.incremental("000"),
                 **maker.incremental(times[0])}  # fmt: skip
    maker.answers(out, questions, {SCHEMA_ON_READ: "true"}, table_type="MERGE_ON_READ", partition_fields="part",
                  about="base files and log blocks older than renames, drops, retypes")  # fmt: skip


def schema_history_flat(spark: SparkSession, folder: Path, out: Path) -> None:
    """Read as Spark reads by default, in vectors, which nested changes exclude."""
    maker = Maker(spark, "schema_history_flat", folder, EVOLVE)
    kept = ("id", "ts", "name", "qty", "big", "ratio", "amount", "day", "price", "num", "spare", "part")
    ddl = ", ".join(f"{n} {t}" for n, t in _FLAT.items())
    maker.write(
        [{k: v for k, v in _first(n, "p1", 100).items() if k in kept} for n in range(12)], ddl, "insert"
    )
    maker.register()
    for change in (
        "RENAME COLUMN name TO title", "ALTER COLUMN qty TYPE bigint", "ALTER COLUMN ratio TYPE double",
        "DROP COLUMN spare", "ADD COLUMNS (spare int)", "ALTER COLUMN big TYPE string",
        "ALTER COLUMN amount TYPE string", "ALTER COLUMN day TYPE string", "ALTER COLUMN price TYPE decimal(12,4)",
        "ALTER COLUMN num TYPE double",
    ):  # fmt: skip
        maker.sql(f"ALTER TABLE <table> {change}")
    spark.conf.set(VECTORS, "true")
    maker.answers(out, {"snapshot": {}}, {SCHEMA_ON_READ: "true"}, table_type="COPY_ON_WRITE",
                  partition_fields="part", about="one file that is older than all changes")  # fmt: skip
    spark.conf.set(VECTORS, "false")


VECTORS = "spark.sql.parquet.enableVectorizedReader"
_FLAT = {
    "id": "string", "ts": "long", "name": "string", "qty": "int", "big": "long", "ratio": "float",
    "amount": "double", "day": "date", "price": "decimal(8,2)", "num": "int", "spare": "string", "part": "string",
}  # fmt: skip
PLAIN = (
    "id string, ts long, name string, qty int, ratio float, amount double, flag boolean, day date, "
    "at timestamp, price decimal(12,2), big decimal(20,4), raw binary, point struct<x: int, label: string>, "
    "tags array<string>, attrs map<string, int>, part string"
)
DROP = "hoodie.datasource.write.drop.partition.columns"


def _plain(n: int, ts: int, **more: object) -> dict[str, object]:
    full = n % 5 != 4
    row: dict[str, object] = {
        "id": f"id-{n:02}", "ts": ts, "name": f"name {n}", "qty": n, "ratio": n + 0.5, "amount": n * 1.7,
        "flag": n % 2 == 0, "day": datetime.date(2020, 1, 1 + n),
        "at": datetime.datetime(2020, 1, 1 + n, 12, 30, 15, 123456), "price": decimal.Decimal(n * 101) / 100,
        "big": decimal.Decimal(n * 10001) / 10000, "raw": bytes([n, 0, 255]),
        "point": {"x": n, "label": f"p{n}"}, "tags": [f"a{n}", "b"], "attrs": {"one": n},
    }  # fmt: skip
    kept = {k: v if full or k in ("id", "ts") else None for k, v in row.items()}
    return {**kept, "part": f"p{n % 2}", **more}


def _steps(maker: Maker, **more: str) -> list[str]:
    """Inserts, updates, deletes, an insert into an existing partition; gives the times."""
    maker.write([_plain(n, 100) for n in range(12)], PLAIN, "insert", **more)
    maker.write([_plain(n, 200, name="updated") for n in (1, 2, 3, 4)], PLAIN, **more)
    maker.write([_plain(n, 300) for n in (5, 6)], PLAIN, "delete", **more)
    maker.write([_plain(n, 400, name="late") for n in (7, 12, 13)], PLAIN, **more)
    return maker.instants()


def _table(
    spark: SparkSession,
    folder: Path,
    out: Path,
    name: str,
    about: str,
    options: Mapping[str, str],
    **meta: Any,
) -> None:
    mor = "hoodie.datasource.write.table.type" in options
    given = {"hoodie.datasource.write.partitionpath.field": "part", **options}
    maker = Maker(spark, name, folder, given)
    times = _steps(maker)
    questions = {"snapshot": {}, **(READ_OPTIMIZED if mor else {}), **maker.as_of(times[1])}
    if "hoodie.populate.meta.fields" not in options:
        questions |= {**maker.incremental("000"), **maker.incremental(times[0], times[2])}
    kind = "MERGE_ON_READ" if mor else "COPY_ON_WRITE"
    maker.answers(out, questions, {}, about=about, table_type=kind, partition_fields="part", **meta)


def orc_cow(spark: SparkSession, folder: Path, out: Path) -> None:
    """Inserts only: 0.15.0 cannot look keys up in ORC files, its bundle does not go with Spark 3.5's ORC."""
    options = {
        "hoodie.table.base.file.format": "ORC", "hoodie.parquet.small.file.limit": "0",
        "hoodie.datasource.write.partitionpath.field": "part",
    }  # fmt: skip
    maker = Maker(spark, "orc_cow", folder, options)
    maker.write([_plain(n, 100) for n in range(8)], PLAIN, "insert")
    maker.write([_plain(n, 200) for n in range(8, 14)], PLAIN, "insert")
    times = maker.instants()
    questions = {
        "snapshot": {},
        **maker.as_of(times[0]),
        **maker.incremental("000"),
        **maker.incremental(times[0]),
    }
    maker.answers(
        out, questions, {}, table_type="COPY_ON_WRITE", partition_fields="part", about="ORC base files"
    )


def mor_hfile_logs(*where: Any) -> None:
    _table(
        *where, "mor_hfile_logs", "HFile data blocks", {"hoodie.logfile.data.block.format": "hfile", **MOR}
    )


def mor_log_compacted(spark: SparkSession, folder: Path, out: Path) -> None:
    options = {**MOR, "hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2",
               "hoodie.log.record.reader.use.scanV2": "true", "hoodie.log.compaction.enable": "true"}  # fmt: skip
    _table(spark, folder, out, "mor_log_compacted", "a log compaction among the blocks", options)


def mor_drop_partition_columns(*where: Any) -> None:
    _table(
        *where,
        "mor_drop_partition_columns",
        "merge on read, partition columns in paths only",
        {DROP: "true", **MOR},
    )


ORDERINGS: dict[str, tuple[str, str, Callable[[int], object]]] = {
    "nested": ("o.at", "o struct<at: bigint>", lambda n: {"at": n}),
    "decimal": ("o", "o decimal(10,2)", lambda n: decimal.Decimal(n) / 4),
    "date": ("o", "o date", lambda n: datetime.date(2020, 1, 1 + n)),
    "text": ("o", "o string", lambda n: "abcdefghij"[n]),
}


def _partial_ordering(kind: str, spark: SparkSession, folder: Path, out: Path) -> None:
    """Late and early updates and deletes, against base rows and among the records of a log."""
    field, column, value = ORDERINGS[kind]
    name = f"mor_partial_update_{kind}_ordering"
    options = {
        **MOR, "hoodie.datasource.write.payload.class": PARTIAL, "hoodie.parquet.small.file.limit": "0",
        "hoodie.datasource.write.partitionpath.field": "part", "hoodie.datasource.write.precombine.field": field,
    }  # fmt: skip
    maker = Maker(spark, name, folder, options)
    ddl = f"id string, {column}, a string, b int, part string"

    def rows(numbers: Sequence[int], at: int, text: str | None) -> list[dict[str, object]]:
        full = {"o": value(at), "a": text, "part": "p"}
        return [{"id": f"id-{n:02}", "b": n if n % 2 else None, **full} for n in numbers]

    maker.write(rows(range(12), 5, "first"), ddl, "insert")
    maker.write(rows((0, 1, 2, 3), 3, "late") + rows((4, 5), 7, "new"), ddl)
    maker.write(rows((0, 4), 6, None) + rows((6, 7), 4, None), ddl)
    maker.write(rows((1, 5), 4, "") + rows((8,), 9, ""), ddl, "delete")
    maker.write(rows((5, 8, 9), 6, "last") + rows((12,), 1, "added"), ddl)
    times = maker.instants()
    questions = {"snapshot": {}, **READ_OPTIMIZED, **maker.as_of(*times[1:4]), **maker.incremental("000")}
    about = f"partial updates with an ordering field of the kind: {kind}"
    maker.answers(
        out,
        questions,
        {},
        about=about,
        table_type="MERGE_ON_READ",
        partition_fields="part",
        ordering_field=field,
    )


def mor_partial_update_nested_ordering(*where: Any) -> None:
    _partial_ordering("nested", *where)


def mor_partial_update_decimal_ordering(*where: Any) -> None:
    _partial_ordering("decimal", *where)


def mor_partial_update_date_ordering(*where: Any) -> None:
    _partial_ordering("date", *where)


def mor_partial_update_text_ordering(*where: Any) -> None:
    _partial_ordering("text", *where)


def mor_virtual_keys(*where: Any) -> None:
    options = {"hoodie.populate.meta.fields": "false", **MOR}
    _table(*where, "mor_virtual_keys", "merge on read, no meta columns in the files", options)


TIMESTAMPS = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.datasource.write.partitionpath.field": "ts",
}


def mor_timestamp_keygen(*where: Any) -> None:
    _table(*where, "mor_timestamp_keygen", "merge on read, paths of a timestamp", {**TIMESTAMPS, **MOR})


def mor_custom_keygen(*where: Any) -> None:
    options = {
        **TIMESTAMPS,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "part:SIMPLE,ts:TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    _table(*where, "mor_custom_keygen", "merge on read, paths of a text and a timestamp", {**options, **MOR})


SCENARIOS: dict[str, Callable[[SparkSession, Path, Path], None]] = {
    f.__name__: f
    for f in (
        schema_history_cow,
        schema_history_mor,
        schema_history_flat,
        orc_cow,
        mor_hfile_logs,
        mor_log_compacted,
        mor_drop_partition_columns,
        mor_virtual_keys,
        mor_partial_update_nested_ordering,
        mor_partial_update_decimal_ordering,
        mor_partial_update_date_ordering,
        mor_partial_update_text_ordering,
        mor_timestamp_keygen,
        mor_custom_keygen,
    )
}


def main() -> None:
    out = Path(sys.argv[1])
    names = sys.argv[2:] or list(SCENARIOS)
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(str(jar(hudi_bundle(VERSION))), scratch)
        spark.conf.set(SCHEMA_ON_READ, "true")
        spark.conf.set(VECTORS, "false")  # cannot read nested changes
        off = ("hoodie.clean.automatic", "hoodie.metadata.enable", "hoodie.compact.inline")
        for key in (*off, "hoodie.parquet.small.file.limit"):
            spark.conf.set(key, "0" if key.endswith("limit") else "false")
        for name in names:
            try:
                SCENARIOS[name](spark, Path(scratch), out)
            except (Py4JError, PySparkException) as e:
                print(name, "failed:", str(e)[:2000], file=sys.stderr, flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
