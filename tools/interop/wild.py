"""Histories of tables as few people have them: deep types, odd keys, undone and failed writes, several releases.

    python tools/interop/wild.py "KIND:VERSIONS ..." FIRST LAST FOLDER       # in an environment with PySpark 3.5

`KIND` is `wild` (by DataFrames), `sql` (`interop.wild_sql`), `odd` or `oddsql` (`interop.odd`); `VERSIONS` is one
release of Apache Hudi or several, separated by commas, which take the table from one another (the first makes it).  A
seed makes one table of each; it is compared as `interop.unseen` does it, and our filtered and projected reads with our
own whole ones.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))

from hudi_format import HudiError
from hudi_timeline import HudiTable
from interop.apache_hudi import ApacheHudi
from interop.rows import assert_same_rows
from interop.samples import TRIPS, Row, Rows, Shape
from interop.spark_process import SparkProcessError
from interop.unseen import (
    APACHE_FAILS,
    BOTH_REFUSE,
    DIFFER,
    OPERATION,
    OURS_FAILS,
    SAME,
    WRONG,
    History,
    Outcome,
    questions,
)
from interop.unseen import _ask as ask

KEYGEN = "hoodie.datasource.write.keygenerator.class"
CLUSTERING = "org.apache.hudi.client.clustering."
KEYGENS = "org.apache.hudi.keygen."
MODELS = "org.apache.hudi.common.model."
PRIMITIVES = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", "UTC"), pa.decimal128(9, 2), pa.decimal128(18, 0), pa.decimal128(25, 10), pa.int16(), pa.int8(),
)  # fmt: skip
CITIES = (
    ("oslo", "pune", "sao_paulo"),
    ("oslo", None, ""),
    ("são paulo", "x=y", "oslo"),
    ("2024-01-02", "2024-01-03"),
    ("1", "007", "1.5"),
)


def some_type(rng: random.Random, depth: int = 3) -> pa.DataType:
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return rng.choice(PRIMITIVES)
    if kind < 0.75:
        return pa.struct([(f"f{i}", some_type(rng, depth - 1)) for i in range(rng.randint(1, 3))])
    if kind < 0.88:
        return pa.list_(some_type(rng, depth - 1))
    return pa.map_(pa.string(), some_type(rng, depth - 1))


class Wild(History):
    """A history of any shape."""

    kind = "wild"
    empties = False  # whether there are writes of no row

    def __init__(self, versions: str, seed: int) -> None:
        self.versions = versions.split(",")
        super().__init__(self.versions[0], seed)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(f"{self.kind}/{','.join(self.versions)}/{self.seed}")
        self.merged = rng.random() < 0.75
        self.timed = None
        self.flagged = rng.random() < 0.3
        self.widened = rng.choice([None] * 6 + [2, 3])
        self.grown = rng.choice([None, None, 2, 4])
        self.virtual = rng.random() < 0.08
        self.shape = self._shape()
        if self.virtual:
            self.shape = Shape("virtual", schema=self.shape.schema)
        self.timed = "yes" if self.shape.name in ("custom", "timestamp") else None
        self.rows = Rows(self.shape, self.seed)
        self.live: dict[str, Row] = {}
        self.options = self._options()

    def _shape(self) -> Shape:
        rng = self.rng
        schema = TRIPS
        for i in range(rng.randint(0, 6)):
            schema = schema.append(pa.field(f"x{i}", some_type(rng)))
        options: dict[str, str] = {}
        keys: tuple[str, ...] = ("uuid",)
        layout = rng.choice(["simple", "complex", "none", "custom", "timestamp", "simple"])
        partitions: tuple[str, ...] = ("city",)
        if layout == "none":
            partitions = ()
            options[KEYGEN] = KEYGENS + "NonpartitionedKeyGenerator"
            keys = rng.choice([("uuid",), ("uuid", "kind")])
        elif layout == "complex":
            keys = rng.choice([("uuid",), ("uuid", "kind")])
            partitions = rng.choice([("city", "kind"), ("city",), ("kind", "city", "zone")])
            options[KEYGEN] = KEYGENS + "ComplexKeyGenerator"
        elif layout in ("custom", "timestamp"):
            kind = rng.choice(["EPOCHMILLISECONDS", "UNIX_TIMESTAMP", "SCALAR", "DATE_STRING"])
            what = {
                "EPOCHMILLISECONDS": "born_ms",
                "UNIX_TIMESTAMP": "born_s",
                "SCALAR": "born_d",
                "DATE_STRING": "born_t",
            }
            options |= {
                KEYGEN: KEYGENS
                + ("TimestampBasedKeyGenerator" if layout == "timestamp" else "CustomKeyGenerator"),
                "hoodie.keygen.timebased.timestamp.type": kind,
                "hoodie.keygen.timebased.timestamp.scalar.time.unit": "days",
                "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm",
                "hoodie.keygen.timebased.output.dateformat": rng.choice(
                    ["yyyy/MM/dd", "yyyyMMdd", "yyyy-MM-dd", "yyyy"]
                ),
                "hoodie.keygen.timebased.timezone": "UTC",
            }
            schema = schema.append(pa.field(what[kind], pa.string() if kind == "DATE_STRING" else pa.int64()))
            name = what[kind]
            partitions = (name,) if layout == "timestamp" else ("city:SIMPLE", f"{name}:TIMESTAMP")
        if "zone" in partitions:
            schema = schema.append(
                pa.field("zone", rng.choice([pa.int32(), pa.date32(), pa.string(), pa.bool_()]))
            )
        cities = rng.choice(CITIES)
        special = any(c and not c.isascii() for c in cities)
        return Shape(
            layout, keys=keys, partitions=partitions, schema=schema, cities=cities,
            hive_style=rng.random() < 0.4, url_encode=special or rng.random() < 0.2, options=options,
        )  # fmt: skip

    def _options(self) -> dict[str, str]:
        out, rng = super()._options(), self.rng
        if len(self.versions) > 1 or rng.random() < 0.5:
            out["hoodie.clean.automatic"] = "false"
        if rng.random() < 0.7:
            out["hoodie.archive.automatic"] = "false"
        if rng.random() < 0.35 and self.merged:
            self.payload = rng.choice([
                "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload",
                "PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "AWSDmsAvroPayload",
            ])  # fmt: skip
            out.pop("hoodie.write.record.merge.mode", None)
            out["hoodie.datasource.write.payload.class"] = MODELS + self.payload
        self.ordering = "ts"
        if rng.random() < 0.3:
            kinds = [
                pa.int32(),
                pa.int64(),
                pa.string(),
                pa.decimal128(12, 3),
                pa.date32(),
                pa.timestamp("us", "UTC"),
                pa.float64(),
                pa.float32(),
            ]
            kind = rng.choice(kinds)
            nested = rng.random() < 0.25
            self.ordering = "o.seq" if nested else "seq"
            field = (
                pa.field("o", pa.struct([("a", pa.string()), ("seq", kind)]))
                if nested
                else pa.field("seq", kind)
            )
            self.shape = Shape(**{**self.shape.__dict__, "schema": self.shape.schema.append(field)})
            self.rows = Rows(self.shape, self.seed)
            if self.version == "1.2.0" and rng.random() < 0.5:
                self.ordering = rng.choice([f"ts,{self.ordering}", f"{self.ordering},ts"])
        elif self.layout2 and rng.random() < 0.1:
            self.ordering = ""
        out["hoodie.datasource.write.precombine.field"] = self.ordering
        if not self.ordering:
            del out["hoodie.datasource.write.precombine.field"]
        if self.virtual:
            out["hoodie.populate.meta.fields"] = "false"
            out["hoodie.index.type"] = rng.choice(["SIMPLE", "GLOBAL_SIMPLE", "BUCKET", "BLOOM"])
            out.pop("hoodie.table.cdc.enabled", None)
            self.cdc = False
        if self.merged and rng.random() < 0.15:
            self.payload = getattr(self, "payload", "")
            out |= {
                "hoodie.index.type": "BUCKET",
                "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
                "hoodie.bucket.index.num.buckets": "2",
                "hoodie.bucket.index.min.num.buckets": "1",
                "hoodie.bucket.index.max.num.buckets": "8",
                "hoodie.parquet.max.file.size": "30000",
                "hoodie.bucket.index.split.threshold": "0.5",
                "hoodie.clustering.inline": "true",
                "hoodie.clustering.inline.max.commits": "2",
                "hoodie.clustering.plan.strategy.class": CLUSTERING
                + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
                "hoodie.clustering.execution.strategy.class": CLUSTERING
                + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
                "hoodie.clustering.updates.strategy": CLUSTERING
                + "update.strategy.SparkConsistentBucketDuplicateUpdateStrategy",
            }
        if self.merged and rng.random() < 0.2:
            out |= {
                "hoodie.log.compaction.inline": "true",
                "hoodie.log.compaction.blocks.threshold": "2",
                "hoodie.log.compaction.enable": "true",
                "hoodie.metadata.log.compaction.enable": "true",
            }
            if rng.random() < 0.7:
                out["hoodie.compact.inline"] = "false"
        if self.shape.partitions and rng.random() < 0.08:
            out["hoodie.datasource.write.drop.partition.columns"] = "true"
        if self.layout2 and out["hoodie.metadata.enable"] == "true" and rng.random() < 0.5:
            out["hoodie.metadata.index.column.stats.enable"] = "true"
        self.global_index = (
            out["hoodie.index.type"].startswith("GLOBAL") or out["hoodie.index.type"] == "RECORD_INDEX"
        )
        self.fails = rng.random() < 0.3
        self.undoes = rng.random() < 0.3
        self.operated = "AWSDms" in getattr(self, "payload", "")
        if rng.random() < 0.1:
            out["hoodie.parquet.compression.codec"] = rng.choice(["snappy", "uncompressed", "zstd"])
        if self.versions[1:]:
            out.pop("hoodie.write.record.merge.mode", None)
        return out

    def _finish(self, r: Row) -> Row:
        n = int(r["uuid"][3:])
        rng = random.Random(n)
        r = dict(r)
        names = set(self.shape.schema.names)
        days = n % 3
        if "born_ms" in names:
            r["born_ms"] = days * 86_400_000 + 1_500_000_000_000
        if "born_s" in names:
            r["born_s"] = days * 86_400 + 1_500_000_000
        if "born_d" in names:
            r["born_d"] = days + 18_000
        if "born_t" in names:
            r["born_t"] = f"2020-02-0{days + 1}T10:11"
        if "zone" in names:
            kind = self.shape.schema.field("zone").type
            zones = {
                pa.int32(): [1, 2],
                pa.date32(): [date(2020, 1, 1), date(2020, 1, 2)],
                pa.string(): ["a", "b"],
                pa.bool_(): [True, False],
            }
            r["zone"] = rng.choice(zones[kind])
        for name in ("seq", "o"):
            if name in names:
                kind = self.shape.schema.field(name).type
                kind = kind.field("seq").type if name == "o" else kind
                ts = r["ts"]
                small = ts % 7
                value = (
                    small
                    if pa.types.is_integer(kind)
                    else f"{small:03d}"
                    if pa.types.is_string(kind)
                    else Decimal(small) / 8
                    if pa.types.is_decimal(kind)
                    else date(2020, 1, 1) + timedelta(days=small)
                    if pa.types.is_date(kind)
                    else datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=small)
                    if pa.types.is_timestamp(kind)
                    else small / 4
                )
                r[name] = {"a": "x", "seq": value} if name == "o" else value
        return r

    def judge(self, last: str, path: Path) -> str:
        """The release that says what the table holds, by default the last that wrote."""
        return last

    def reading(self, apache: ApacheHudi) -> ApacheHudi:
        return apache

    def more(self) -> str:
        return f"ordering={self.ordering} virtual={self.virtual} {self.options} {self.shape.schema}"

    def go(self, processes: dict[str, ApacheHudi], path: Path) -> None:
        rng = self.rng
        at = 0
        steps = rng.randint(5, 9)
        self.saved: str | None = None
        for step in range(steps):
            if step * len(self.versions) // steps > at:
                at += 1
                if self.versions[at] < self.versions[at - 1]:
                    name = f"d{self.seed}_{step}_{rng.randint(0, 10**6)}"
                    old = processes[self.versions[at - 1]]
                    try:
                        old.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
                        old.sql(f"CALL downgrade_table(table => '{name}', to_version => 'SIX')")
                        self.said.append("   taken down to SIX")
                    except SparkProcessError as e:
                        self.said.append(f"   refused: downgrade {str(e)[:300]}")
                        at -= 1
            version = self.versions[at]
            apache = processes[version]
            operation, rows, more = self._step(step)
            if not rows and operation != "delete_partition" and not self.empties:
                continue
            more = dict(more)
            if operation == "insert_overwrite" and rng.random() < 0.2:
                operation = "insert_overwrite_table"
            schema = self._schema(step)
            if self.operated:
                schema = schema.append(pa.field("Op", pa.string()))
            given = [{**self._finish(r), **self._added(step, r)} for r in rows]
            if self.operated:
                for g in given:
                    g["Op"] = rng.choice(["I", "U", "U", "D"]) if operation == "upsert" else "I"
            table = pa.Table.from_pylist(given, schema=schema)
            self.said.append(f"{version} {operation} of {len(rows)} {more or ''}")
            try:
                apache.write(path, table, {**self.options, OPERATION: operation, **more})
            except SparkProcessError as e:
                self.said.append(f"   refused: {str(e)[:200]}")
                if step == 0:
                    raise
                continue
            if self.fails and rng.random() < 0.35 and step:
                self._fail(path)
            if self.undoes and step > 1:
                self._undo(apache, path, step)

    def _fail(self, path: Path) -> None:
        """As if the writer had died before it completed its last instant."""
        folder = path / ".hoodie" / "timeline"
        folder = folder if folder.is_dir() else path / ".hoodie"
        done = [
            f
            for f in folder.iterdir()
            if f.name.endswith((".deltacommit", ".commit")) and not f.name.startswith(".")
        ]
        if len(done) < 2:
            return
        last = max(done, key=lambda f: f.name)
        inst = last.name.split(".")[0].split("_")[0]
        newest = max(f.name[:17] for f in folder.iterdir() if f.name[:17].isdigit())
        # only a write of a user is rolled back by the next one
        if (
            inst != newest
            or not list(folder.glob(f"{inst}.*inflight"))
            or list(folder.glob(f"{inst}.compaction*"))
        ):
            return
        for f in (last, last.with_name(f".{last.name}.crc")):
            f.unlink(missing_ok=True)
        self.said.append(f"   failed {last.name}")

    def _undo(self, apache: ApacheHudi, path: Path, step: int) -> None:
        rng = self.rng
        name = f"w{abs(hash((str(path), step))) % 10**9}"
        try:
            last = max(
                r["instant"]
                for r in HudiTable.open(str(path)).inspect.timeline().to_pylist()
                if r["state"].upper() == "COMPLETED" and r["action"] in ("commit", "deltacommit")
            )
            act = rng.choice(["save", "restore", "rollback", "compact", "cluster", "none", "none"])
            if act == "none" or (act == "restore" and not self.saved):
                return
            apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
            how = rng.choice(["schedule", "run", "scheduleandexecute"])
            calls = {
                "save": f"CALL create_savepoint(table => '{name}', commit_time => '{last}')",
                "restore": f"CALL rollback_to_savepoint(table => '{name}', instant_time => '{self.saved}')",
                "rollback": f"CALL rollback_to_instant(table => '{name}', instant_time => '{last}')",
                "compact": f"CALL run_compaction(op => '{how}', table => '{name}', "
                f"options => 'hoodie.compact.inline.max.delta.commits=1')",
                "cluster": f"CALL run_clustering(table => '{name}', "
                f"op => '{'schedule' if how == 'run' else how}')",
            }
            self.said.append(f"   {act}: {calls[act]}")
            apache.sql(calls[act])
            if act == "save":
                self.saved = last
        except (SparkProcessError, ValueError) as e:
            self.said.append(f"   refused: {str(e)[:300]}")


def own(path: Path, rng: random.Random) -> list[Outcome]:
    """Filtered and projected reads against the whole one."""
    out = []
    t = HudiTable.open(str(path))
    for query in ("snapshot", "read_optimized"):
        try:
            whole = t.read(query=query, meta_columns=True).to_arrow()
        except HudiError:
            return out
        names = whole.column_names
        for _ in range(4):
            plain = [
                f.name
                for f in whole.schema
                if not pa.types.is_nested(f.type) and not pa.types.is_null(f.type)
            ]
            f = rng.choice(plain)
            col = whole[f]
            values = [v for v in col.to_pylist() if v is not None]
            if not values:
                continue
            v = pa.scalar(rng.choice(values), col.type)
            e = rng.choice(
                [
                    pc.field(f) == v,
                    pc.field(f) != v,
                    pc.field(f).is_null(),
                    pc.field(f).is_valid(),
                    pc.field(f).isin(pa.array([v.as_py()], col.type)),
                ]
            )
            if not pa.types.is_boolean(col.type) and not pa.types.is_binary(col.type) and rng.random() < 0.6:
                e = rng.choice([pc.field(f) < v, pc.field(f) >= v])
            chosen = rng.sample(names, rng.randint(1, len(names)))
            label = f"own {query} {e} of {chosen}"
            try:
                got = HudiTable.open(str(path)).read(query=query, filter=e, columns=chosen).to_arrow()
                assert_same_rows(got.select(chosen), whole.filter(e).select(chosen), ["_hoodie_record_key"])
            except AssertionError as x:
                out.append(Outcome(label, DIFFER, str(x)))
            except (HudiError, pa.ArrowException):
                out.append(Outcome(label, OURS_FAILS, traceback.format_exc()[-1500:]))
    return out


def run(history: Any, processes: dict[str, ApacheHudi], path: Path, seed: int) -> bool:
    """Make and compare one table; whether all was well."""
    try:
        history.go(processes, path)
    except SparkProcessError as e:
        print(f"{path.name} Apache Hudi cannot write: {str(e)[:600]!r}\n{history}", flush=True)
        return True
    except (pa.ArrowException, LookupError):  # of the harness's own making
        print(f"{path.name} harness: {traceback.format_exc()[-1500:]}", flush=True)
        return True
    reader = history.versions[0]
    for s in history.said:  # the last release that touched it answers
        if s[:1].isdigit():
            reader = s.split()[0]
    history.version = reader = history.judge(reader, path)
    if reader == "1.0.2":
        history.options["hoodie.archive.automatic"] = history.options.get("hoodie.archive.automatic", "false")
    try:
        asked = list(questions(history, HudiTable.open(str(path))))
        asked = asked[:2] + random.Random(seed).sample(asked[2:], min(len(asked) - 2, 7))
        reading = history.reading(processes[reader])
        found = [ask(history, reading, path, *a) for a in asked if not history.left_out(a[0])]
    except (HudiError, pa.ArrowException):
        print(f"{path.name} CRASH {history}\n{traceback.format_exc()[-2500:]}", flush=True)
        return False
    found += own(path, random.Random(seed))
    count = sum("refused" in s for s in history.said)
    at = HudiTable.open(str(path)).table_version
    refused = f"table version {at} refused {count}/{len(history.said)}"
    print(f"{path.name}: {dict(Counter(o.kind for o in found))} {refused}", flush=True)
    wrong = [o for o in found if o.kind in WRONG]
    if wrong or "-v" in sys.argv or Counter(o.kind for o in found)[SAME] < 2:
        print(history, history.more())
    for kind, count in ((BOTH_REFUSE, 1), (OURS_FAILS, 4), (DIFFER, 4), (APACHE_FAILS, 2)):
        for o in [o for o in found if o.kind == kind][:count]:
            print(f"  {o.kind}: {o.name}: {o.message[:1400]}", flush=True)
    return not wrong


class Processes(dict[str, ApacheHudi]):
    """Releases that run, each started when it is first asked for."""

    def __missing__(self, version: str) -> ApacheHudi:
        self[version] = ApacheHudi(version)
        return self[version]

    def revive(self) -> None:
        """Forget those whose JVM has died."""
        for version in [v for v, p in self.items() if not p.running]:
            print(f"{version} died", flush=True)
            self.pop(version)


def main() -> int:
    from interop.odd import Odd, OddSql
    from interop.wild_sql import SqlHistory

    kinds = {"wild": Wild, "sql": SqlHistory, "odd": Odd, "oddsql": OddSql}
    plan, first, last, folder = sys.argv[1].split(), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    processes = Processes()
    bad = 0
    try:
        for seed in range(first, last):
            for what in plan:
                kind, _, versions = what.partition(":")
                history = kinds[kind](versions, seed)
                processes.revive()
                bad += not run(
                    history, processes, folder / f"{kind}_{versions.replace(',', '-')}_{seed}", seed
                )
    finally:
        for p in processes.values():
            p.close()
    return bad


if __name__ == "__main__":
    sys.exit(main())
