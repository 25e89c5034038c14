"""Histories of one table with two writers: Apache Hudi and this project take turns at random, under any retention.

    python tools/interop/two_writers.py FIRST LAST FOLDER [SEED ...]      # in an environment with PySpark 3.5

A seed is one sequence of writes, which is done to two or three tables: by both in turn, by this project alone without
a JVM, and for some seeds by Apache Hudi alone.  After each write the same ones of them must be active and as many
cleanings and rollbacks; at the end the tables must have the same rows, each row written by the same step, and the same
schema, nullability included, as a DataFrame of Apache Hudi, a DataFrame of ours and `HudiTable` say it.  Questions
about the shared table are put to both.  What Apache Hudi cannot write it is given again alone, with all before it:
where it cannot then either, the history ends there; where it can, that is a difference.

Lists with null elements come only with `parquet.avro.write-old-list-structure=false` for Apache Hudi: without that it
cannot merge the files that it wrote itself.  With a metadata table its archival waits for that table's compactions,
which our writes take away: active instants are not compared then.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from hudi_format import HudiError
from hudi_timeline import HudiTable
from interop.apache_hudi import ApacheHudi, OursOnSpark
from interop.odd import OddRows
from interop.rows import assert_same_rows
from interop.samples import Row, Shape
from interop.spark_process import SparkProcess, SparkProcessError
from interop.unseen import (
    APACHE_FAILS,
    ARCHIVES,
    CLEANS,
    DIFFER,
    LISTS_KEPT,
    OPERATION,
    OURS_FAILS,
    PAYLOADS,
    SAME,
    TOLD,
    WRONG,
    Outcome,
    questions,
)
from interop.unseen import _ask as ask
from interop.wild import MODELS, Wild, some_type

VERSION = "0.15.0"
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
OLD_LISTS = "parquet.avro.write-old-list-structure"
MIN, MAX = "hoodie.keep.min.commits", "hoodie.keep.max.commits"
METADATA, BEYOND = "hoodie.metadata.enable", "hoodie.archive.beyond.savepoint"
FORMAT = "hoodie.keygen.timebased.output.dateformat"
REPLACING = ("insert_overwrite", "delete_partition")
TEXT = pa.string()
DEEP = (
    pa.list_(pa.map_(TEXT, pa.int32())),
    pa.list_(pa.map_(TEXT, pa.list_(TEXT))),
    pa.map_(TEXT, pa.list_(pa.map_(TEXT, pa.int64()))),
    pa.list_(pa.list_(pa.struct([("m", pa.map_(TEXT, TEXT)), ("l", pa.list_(pa.date32()))]))),
    pa.struct([("s", pa.struct([("a", pa.int32()), ("b", pa.list_(TEXT))])), ("d", pa.decimal128(20, 4))]),
    pa.map_(TEXT, pa.struct([("t", pa.timestamp("us", "UTC")), ("n", pa.list_(pa.float64()))])),
    pa.decimal128(38, 18), pa.timestamp("us", "UTC"), pa.binary(), pa.date32(),
)  # fmt: skip
# Apache Hudi makes a hundred tasks for each of these, over tables of a few files.
# Empty text in partition columns too.
AS_HUDI = {"hudi.partition.null.texts": "write"}
FEW_TASKS = {
    f"hoodie.{name}.parallelism": "2"
    for name in (
        "simple.index", "global.simple.index", "bloom.index", "cleaner", "rollback", "file.listing", "finalize.write",
        "markers.delete", "archive.delete",
    )
}  # fmt: skip
# A step's time is another in each table; the rest of the meta columns says where a row lies.
_PLACES = ("_hoodie_commit_seqno", "_hoodie_file_name")


class EmptyRows(OddRows):
    """Rows in which much is null or empty, for whole batches too."""

    def batch(self, rows: list[Row]) -> list[Row]:
        rng = self._rng
        for column in self.shape.schema:
            how = rng.random()
            if column.name.startswith("x") and how < 0.25:
                for r in rows:
                    r[column.name] = None if how < 0.12 else self._empty(column.type)
        return rows

    def _extreme(self, kind: pa.DataType, value: Any) -> Any:
        if pa.types.is_nested(kind) and self._rng.random() < 0.5:
            return self._empty(kind)
        return super()._extreme(kind, value)

    def _empty(self, kind: pa.DataType) -> Any:
        """Nothing, or what holds only such values."""
        inner = self._rng.random() < 0.4
        if pa.types.is_list(kind):
            return [self._empty(kind.value_type)] if inner and pa.types.is_nested(kind.value_type) else []
        if pa.types.is_map(kind):
            return [("", self._empty(kind.item_type))] if inner else []
        if pa.types.is_struct(kind):
            return {f.name: self._empty(f.type) if inner else None for f in kind}
        return "" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else None


@dataclass
class Side:
    """One of the tables.

    Attributes:
        times: the instant of each step, None where it wrote none.
    """

    path: Path
    times: list[str | None] = field(default_factory=list)

    def completed(self, *actions: str) -> list[str]:
        names = [f.name.partition(".") for f in (self.path / ".hoodie").iterdir() if f.is_file()]
        return sorted(at for at, _, action in names if action in actions)

    def writes(self) -> list[str]:
        return self.completed("commit", "replacecommit")

    def wrote(self) -> None:
        """Take down what a step has written."""
        newest = max(self.writes(), default="")
        self.times.append(newest if newest not in self.times else None)

    def active(self) -> list[int]:
        there = set(self.writes())
        return [n for n, at in enumerate(self.times) if at in there]

    def step_of(self, at: str) -> int:
        return self.times.index(at) if at in self.times else -1


class TwoWriters(Wild):
    """A history, and who does which of its steps."""

    kind = "two"

    def __init__(self, seed: int) -> None:
        super().__init__(VERSION, seed)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(f"{self.kind}/{self.seed}")
        self.merged = self.virtual = False
        self.flagged = rng.random() < 0.2
        self.widened = None  # by Apache Hudi, but not by us without a JVM, where the types of a table stay
        self.grown = rng.choice([None, None, 2, 4])
        self.nulls_in_lists = rng.random() < 0.5
        self.shape = self._shape()
        while self._unread():
            self.shape = self._shape()
        schema = self.shape.schema
        for kind in rng.sample(DEEP, rng.randint(1, 4)):
            schema = schema.append(pa.field(f"x{len(schema)}", kind))
        schema = schema.append(pa.field("x_nulls", some_type(rng)))
        numbers, seen = itertools.count(), set[str]()
        schema = pa.schema([pa.field(f.name, _named(f.type, numbers, seen)) for f in schema])
        self.shape = Shape(**{**self.shape.__dict__, "schema": schema})
        self.timed = "yes" if self.shape.name in ("custom", "timestamp") else None
        self.rows = self.made = EmptyRows(self.shape, self.seed, rng.choice([0.0, 0.2, 0.6]), False)
        self.made._null_elements = self.nulls_in_lists
        self.live: dict[str, Row] = {}
        self.options = self._options()
        self.spark = rng.random() < 0.2
        self.twin = rng.random() < 0.25
        self.done: list[tuple[str, pa.Table, dict[str, str]]] = []
        self.saves = rng.random() < 0.2
        self.fails = rng.random() < 0.2

    def _unread(self) -> bool:
        """Whether nobody reads the partition columns back: numbers from formatted times, two columns from slashes."""
        numbers = {"born_ms", "born_s", "born_d"} & set(self.shape.schema.names)
        return bool(numbers) or (self.shape.name == "custom" and "/" in self.shape.options[FORMAT])

    def _options(self) -> dict[str, str]:
        rng = self.rng
        index = rng.choice(INDEXES)
        self.global_index = index.startswith("GLOBAL")
        self.payload = rng.choice([*PAYLOADS, PAYLOADS[0], PAYLOADS[1]])
        self.ordering = "ts"
        least = rng.randint(1, 4)
        policy = rng.choice(
            ["KEEP_LATEST_COMMITS"] * 7 + ["KEEP_LATEST_FILE_VERSIONS"] * 2 + ["KEEP_LATEST_BY_HOURS"]
        )
        return {
            **self.shape.write_options(),
            "hoodie.datasource.write.payload.class": MODELS + self.payload,
            "hoodie.index.type": index,
            METADATA: str(rng.random() < 0.2).lower(),
            "hoodie.parquet.small.file.limit": rng.choice(["0", "104857600"]),
            CLEANS: str(rng.random() < 0.9).lower(),
            "hoodie.clean.max.commits": rng.choice(["1", "1", "1", "2", "3"]),
            "hoodie.cleaner.policy": policy,
            "hoodie.cleaner.commits.retained": str(rng.randint(1, 4)),
            "hoodie.cleaner.fileversions.retained": str(rng.randint(1, 3)),
            "hoodie.cleaner.incremental.mode": rng.choice(["true", "true", "false"]),
            ARCHIVES: str(rng.random() < 0.95).lower(),
            MIN: str(least),
            MAX: str(least + rng.randint(1, 3)),
            "hoodie.commits.archival.batch": rng.choice(["1", "3", "10"]),
            BEYOND: rng.choice(["false", "false", "true"]),
            "hoodie.index.bloom.num_entries": "100",
            **LISTS_KEPT,
        }  # fmt: skip

    @property
    def layout2(self) -> bool:
        return False

    def play(self, apache: ApacheHudi, spark: Callable[[], SparkProcess], folder: Path) -> list[Outcome]:
        """Do all steps; what differed on the way."""
        rng = self.rng
        # Apache Hudi archives commits from behind savepoints of which it then no longer sees the files: there it reads.
        beyond = self.saves and self.options[BEYOND] == "true"
        twins = ["apache"] if self.twin and not beyond else []
        self.sides = {name: Side(folder / name) for name in ("ours", "turns", *twins)}
        # Where it says nothing, Apache Hudi finds out for each file; "true" would make our lists null to it.
        apache.set_hadoop(OLD_LISTS, "false" if self.nulls_in_lists else None)
        found: list[Outcome] = []
        writers = [*([] if beyond else ["apache"]), "ours", "ours", *(["spark"] if self.spark else [])]
        for step in range(rng.randint(6, 10)):
            operation, rows, more = self._step(step)
            if not rows and operation != "delete_partition":
                continue
            if operation in REPLACING and self._saved():
                continue  # Apache Hudi brings back what was replaced, once it archives the replacement
            if operation == "delete_partition" and not self._there(more):
                continue
            if operation == "insert_overwrite" and rng.random() < 0.2:
                operation = "insert_overwrite_table"
            elif operation == "insert" and rng.random() < 0.3:
                operation = "bulk_insert"
            given = self.made.batch([{**self._finish(r), **self._added(step, r)} for r in rows])
            table = pa.Table.from_pylist(given, schema=self._schema(step))
            writer = rng.choice(writers)
            self.said.append(f"{step}: {operation} of {len(rows)} {more or ''} by {writer}")
            self.done.append((operation, table, more))
            for name, side in self.sides.items():
                who = writer if name == "turns" else name
                try:
                    self._write(who, apache, spark, side.path, operation, table, more)
                except SparkProcessError as e:
                    kind = OURS_FAILS if who == "spark" else self._why(apache, folder)
                    return [*found, Outcome(f"write of step {step} by {who}", kind, _causes(e))]
                side.wrote()
            found += self._same_instants(step)
            if found:
                return found
            if self.fails and step and rng.random() < 0.3:
                self._die()
            if self.saves and step and rng.random() < 0.4:
                self._save(apache, step)
        return found

    def _saved(self) -> bool:
        """Whether a savepoint keeps files, or one may while the timeline behind it is archived."""
        beyond = self.saves and self.options[BEYOND] == "true"
        return beyond or any(side.completed("savepoint") for side in self.sides.values() if side.times)

    def _why(self, apache: ApacheHudi, folder: Path) -> str:
        """Whether Apache Hudi cannot do these steps, or cannot do them after us."""
        path = folder / "alone"
        try:
            for operation, table, more in self.done:
                self._write("apache", apache, Ours(), path, operation, table, more)
        except SparkProcessError:
            return APACHE_FAILS
        return DIFFER

    def _there(self, more: dict[str, str]) -> bool:
        """Name a partition that is there: Apache Hudi passes over others, which is an error of ours."""
        if not self.sides["ours"].times:
            return False
        paths = HudiTable.open(str(self.sides["ours"].path)).inspect.partitions()["partition"].to_pylist()
        if more[PARTITIONS] not in paths and paths:
            more[PARTITIONS] = self.rng.choice(sorted(paths))
        return bool(paths)

    def _write(
        self, who: str, apache: ApacheHudi, spark: Callable[[], SparkProcess], path: Path, operation: str,
        rows: pa.Table, more: dict[str, str],
    ) -> None:  # fmt: skip
        if who == "ours":
            self._ours(path, operation, rows, more)
        elif who == "spark":
            spark().write(path, rows, {**self.options, **AS_HUDI, OPERATION: operation, **more})
        else:
            apache.write(path, rows, {**FEW_TASKS, **self.options, OPERATION: operation, **more})

    def _ours(self, path: Path, operation: str, rows: pa.Table, more: dict[str, str]) -> None:
        if not (path / ".hoodie").exists():
            HudiTable.create(
                str(path), rows.schema, name=self.shape.name, record_keys=list(self.shape.keys),
                partition_fields=[p.partition(":")[0] for p in self.shape.partitions],
                ordering_fields=["ts"], options=self.options,
            )  # fmt: skip
        table = HudiTable.open(str(path))
        if operation == "delete_partition":
            table.delete_partitions(more[PARTITIONS].split(","), options=self.options)
        else:
            getattr(table, operation)(rows, options={**self.options, **AS_HUDI, "hudi.write.types": "data"})

    def _die(self) -> None:
        """As if the writer of each table had died before it completed its last instant."""
        before = {name: set(side.writes()) for name, side in self.sides.items()}
        for side in self.sides.values():
            newest = max(f.name[:17] for f in (side.path / ".hoodie").iterdir() if f.name[:17].isdigit())
            if side.times[-1] != newest:  # services came after it
                return
        for name, side in self.sides.items():
            self._fail(side.path)
            if before[name] != set(side.writes()):
                side.times[-1] = None

    def _save(self, apache: ApacheHudi, step: int) -> None:
        """Savepoint the newest commit, or give up the oldest savepoint."""
        for name, side in self.sides.items():
            saved = side.completed("savepoint")
            table = HudiTable.open(str(side.path))
            if saved and (step + self.seed) % 2:
                table.delete_savepoint(saved[0])
                what = "deleted"
            elif side.times[-1] is None or side.times[-1] in saved:
                return
            elif name == "apache" and self.options[METADATA] == "false":
                made = f"s{self.seed}_{step}_{random.randint(0, 10**9)}"
                apache.sql(f"CREATE TABLE {made} USING hudi LOCATION '{side.path}'")
                apache.sql(f"CALL create_savepoint(table => '{made}', commit_time => '{side.times[-1]}')")
                what = "made"
            else:
                table.savepoint()
                what = "made"
        self.said.append(f"   savepoint {what}")

    def _same_instants(self, step: int) -> list[Outcome]:
        """Which writes are active, and how many cleanings and rollbacks."""
        out = []
        states = {
            n: (s.active(), len(s.completed("clean")), len(s.completed("rollback")))
            for n, s in self.sides.items()
        }
        for name, state in states.items():
            if self.options[METADATA] == "false" and state != states["ours"]:
                text = f"{name} has {state}, ours {states['ours']}"
                out.append(Outcome(f"active instants after step {step}", DIFFER, text))
        return out

    def archived(self) -> int:
        """How many of the writes of the shared table have left its timeline."""
        side = self.sides["turns"]
        return sum(at is not None for at in side.times) - len(side.active()) if side.path.is_dir() else 0

    def compare(self, apache: ApacheHudi, spark: Callable[[], SparkProcess]) -> list[Outcome]:
        """Rows, schemas and questions at the end."""
        shared = self.sides["turns"]
        out = []
        asked = list(questions(self, HudiTable.open(str(shared.path))))
        asked = asked[:1] + random.Random(self.seed).sample(asked[2:], min(len(asked) - 2, 3))
        out += [self._told(ask(self, apache, shared.path, *a)) for a in asked]
        want = _by_step(shared)
        for name, side in self.sides.items():
            if name != "turns" and len(side.times) == len(shared.times):
                out.append(_checked(f"rows of {name} and of the shared table", _same, _by_step(side), want))
        schemas = {"Apache Hudi of the shared table": plain(apache.schema(shared.path))}
        if "apache" in self.sides:
            schemas["Apache Hudi of its own table"] = plain(apache.schema(self.sides["apache"].path))
        for name, side in self.sides.items():
            if len(side.times) == len(shared.times):  # no step that Apache Hudi could not do
                schemas[f"HudiTable of {name}"] = with_nulls(_schema(side.path))
        if self.spark:
            schemas["ours on Spark of the shared table"] = plain(spark().schema(shared.path))
        first = next(iter(schemas.values()))
        for name, found in schemas.items():
            out.append(_checked(f"schema by {name}", _equal, found, first))
        return out

    def _told(self, found: Outcome) -> Outcome:
        """Of a state that the cleaner has been past Apache Hudi gives what is left, and we refuse it."""
        cleaned = self.sides["turns"].completed("clean") and found.name.startswith("as of")
        if (
            cleaned
            and found.kind == OURS_FAILS
            and found.message.startswith(("MissingFileError", "StaleSnapshotError"))
        ):
            return Outcome(found.name, TOLD, found.message)
        return found

    def __str__(self) -> str:
        kept = ("index.type", "metadata.enable", "automatic", "mode", "small.file.limit", "retained", "policy",
                "commits", "savepoint", "style_partitioning", "urlencode", "keygenerator.class", "field")  # fmt: skip
        chosen = {k.removeprefix("hoodie."): v for k, v in self.options.items() if k.endswith(kept)}
        return (
            f"two_writers seed {self.seed}: {self.shape.name} {self.payload} flagged={self.flagged} "
            f"widened={self.widened} grown={self.grown} null elements={self.nulls_in_lists} {chosen}\n    "
            + "\n    ".join([*self.said, str(self.shape.schema).replace("\n", "; ")])
        )


def _named(kind: pa.DataType, numbers: Iterator[int], seen: set[str]) -> pa.DataType:
    """The type as Apache Hudi can merge it, which takes no two records of one name out of a file's schema: members are
    numbered, and of lists and of maps only one each has structs, whose name would be `element` or `value`."""

    def held(inner: pa.DataType, holder: str) -> pa.DataType:
        while pa.types.is_struct(inner) and holder in seen:
            inner = inner.field(0).type
        if pa.types.is_struct(inner):
            seen.add(holder)
        return _named(inner, numbers, seen)

    if pa.types.is_list(kind):
        return pa.list_(held(kind.value_type, "list"))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, held(kind.item_type, "map"))
    if pa.types.is_struct(kind):
        return pa.struct([(f"m{next(numbers)}", _named(f.type, numbers, seen)) for f in kind])
    return kind


def _causes(e: SparkProcessError) -> str:
    causes = [line for line in str(e).splitlines() if line.startswith("Caused by")]
    return " ".join([str(e)[:400], *causes[-1:]])


def _schema(path: Path) -> pa.Schema:
    return HudiTable.open(str(path)).read(meta_columns=True).schema


def _by_step(side: Side) -> pa.Table:
    """The rows of a table, with the step that wrote each in the place of its commit's time."""
    rows = HudiTable.open(str(side.path)).read(meta_columns=True).to_arrow().drop_columns(list(_PLACES))
    steps = pa.array([side.step_of(t) for t in rows["_hoodie_commit_time"].to_pylist()], pa.int64())
    return rows.set_column(0, "_hoodie_commit_time", steps)


def _same(got: pa.Table, want: pa.Table) -> None:
    assert_same_rows(got, want, ["_hoodie_record_key"])


def _equal(got: list[Any], want: list[Any]) -> None:
    if got != want:
        theirs = {json.dumps(w) for w in want}
        ours = {json.dumps(g) for g in got}
        raise AssertionError(f"only there: {sorted(ours - theirs)}; only in the first: {sorted(theirs - ours)}; "
                             f"order {[g[0] for g in got] == [w[0] for w in want]}")  # fmt: skip


def _checked(name: str, check: Callable[[Any, Any], None], got: Any, want: Any) -> Outcome:
    try:
        check(got, want)
    except AssertionError as e:
        return Outcome(name, DIFFER, str(e))
    return Outcome(name, SAME)


def plain(schema: dict[str, Any]) -> list[Any]:
    """A schema of Spark, from its JSON, as names, types and nullability."""

    def kind(of: Any) -> Any:
        if isinstance(of, str):
            return of
        match of["type"]:
            case "struct":
                return plain(of)
            case "array":
                return ["array", kind(of["elementType"]), of["containsNull"]]
            case _:
                return ["map", kind(of["keyType"]), kind(of["valueType"]), of["valueContainsNull"]]

    return [[f["name"], kind(f["type"]), f["nullable"]] for f in schema["fields"]]


_NAMES = {"int32": "integer", "int64": "long", "bool": "boolean", "date32[day]": "date", "int8": "integer",
          "timestamp[us, tz=UTC]": "timestamp", "timestamp[us]": "timestamp_ntz", "int16": "integer",
          "large_string": "string"}  # fmt: skip


def with_nulls(schema: pa.Schema) -> list[Any]:
    """A schema of Arrow in the same form."""

    def kind(of: pa.DataType) -> Any:
        if pa.types.is_struct(of):
            return [[f.name, kind(f.type), f.nullable] for f in of]
        if pa.types.is_list(of):
            return ["array", kind(of.value_type), of.value_field.nullable]
        if pa.types.is_map(of):
            return ["map", kind(of.key_type), kind(of.item_type), of.item_field.nullable]
        if pa.types.is_decimal(of):
            return f"decimal({of.precision},{of.scale})"
        return _NAMES.get(str(of), str(of))

    return [[f.name, kind(f.type), f.nullable] for f in schema]


def run(
    seed: int, apache: ApacheHudi, spark: Callable[[], SparkProcess], folder: Path
) -> tuple[str, list[Outcome]]:
    """One history: what became of it, and what differs; its tables stay where something does."""
    history, began = TwoWriters(seed), time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        found = history.play(apache, spark, folder)
        if not {o.kind for o in found} & set(WRONG) and len(history.sides["turns"].times) > 1:
            found += history.compare(apache, spark)
    except SparkProcessError as e:
        found = [
            Outcome("answer", OURS_FAILS if str(e).startswith("hudi_spark") else APACHE_FAILS, _causes(e))
        ]
    except (HudiError, pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, OSError):
        found = [Outcome("write or read", OURS_FAILS, traceback.format_exc()[-1400:])]
    wrong = [o for o in found if o.kind in WRONG]
    lines = [f"{seed}: {dict(Counter(o.kind for o in found))} {len(history.said)} steps, "
             f"{history.archived()} archived, {time.monotonic() - began:.0f} s"]  # fmt: skip
    if wrong:
        lines.append(str(history))
    else:
        shutil.rmtree(folder, ignore_errors=True)
    lines += [f"  {o.kind}: {o.name}: {o.message[:1500]}" for o in found if o.kind in (*WRONG, APACHE_FAILS)]
    return "\n".join(lines), found


class Ours:
    """This project on Spark, started when it is first asked for."""

    def __init__(self) -> None:
        self._running: SparkProcess | None = None

    def __call__(self) -> SparkProcess:
        if self._running is None or not self._running.running:
            self._running = OursOnSpark()
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.close()


def main() -> int:
    first, last, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    spark, bad, total = Ours(), 0, Counter[str]()
    apache = ApacheHudi(VERSION)
    try:
        for seed in [*range(first, last), *map(int, sys.argv[4:])]:
            if not apache.running:
                apache = ApacheHudi(VERSION)
            text, found = run(seed, apache, spark, folder / f"two_{seed}")
            print(text, flush=True)
            kinds = {o.kind for o in found}
            bad += bool(kinds & set(WRONG))
            ended = next((k for k in (*WRONG, APACHE_FAILS) if k in kinds), SAME)
            total[ended] += 1
        print(f"histories: {dict(total)}", flush=True)
    finally:
        apache.close()
        spark.close()
    return bad


if __name__ == "__main__":
    sys.exit(main())
