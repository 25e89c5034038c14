"""Histories of tables by SQL: schema on read, changed at every level between writes, partial updates, services.

`interop.wild` runs them.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from interop.apache_hudi import ApacheHudi
from interop.samples import Shape
from interop.spark_process import SparkProcessError

# A type: a name, or ("struct", {field: type}), ("array", type), ("map", type).
PRIMITIVES = (
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "decimal(10,2)",
    "date",
    "timestamp",
    "boolean",
    "binary",
)
WIDER = {
    "int": ("bigint", "float", "double", "string", "decimal(20,2)"),
    "bigint": ("float", "double", "string", "decimal(25,2)"),
    "float": ("double", "string", "decimal(20,4)"),
    "double": ("string", "decimal(30,6)"),
    "decimal(10,2)": ("decimal(15,2)", "string"),
    "date": ("string",),
    "string": ("date", "decimal(12,2)"),
}


def ddl(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    match kind[0]:
        case "struct":
            return "struct<" + ",".join(f"{n}:{ddl(k)}" for n, k in kind[1].items()) + ">"
        case "array":
            return f"array<{ddl(kind[1])}>"
        case _:
            return f"map<string,{ddl(kind[1])}>"


class SqlHistory:
    """Statements, made one after the other from what the table is at the time."""

    family = "sql"

    def __init__(self, version: str, seed: int) -> None:
        self.version, self.seed = version, seed
        self.versions = [version]
        self.rng = rng = random.Random(f"{self.family}/{version}/{seed}")
        self.merged = rng.random() < 0.75
        self.layout2 = not version.startswith("0.")
        self.cdc = False
        self.partial = self.layout2 and self.merged and rng.random() < 0.35
        self.evolving = not self.partial or rng.random() < 0.15
        self.nested = rng.random() < 0.7
        self.partitioned = rng.random() < 0.5
        self.options = {
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }
        self.payload = rng.choice(
            ["", "", "DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "EventTimeAvroPayload"]
        )
        self.shape = Shape("sql", partitions=("part",) if self.partitioned else ())
        self.columns: dict[str, Any] = {"id": "string", "ts": "bigint"}
        for i in range(rng.randint(2, 4)):
            self.columns[f"c{i}"] = self._type(0)
        if self.nested:
            self.columns["s"] = ("struct", {f"f{i}": self._type(1) for i in range(rng.randint(2, 3))})
            if rng.random() < 0.5:
                self.columns["arr"] = ("array", ("struct", {"x": self._type(0), "y": "int"}))
            if rng.random() < 0.5:
                self.columns["m"] = ("map", ("struct", {"x": self._type(0), "y": "int"}))
        if self.partitioned:
            self.columns["part"] = "string"
        self.said: list[str] = []
        self.clock, self.count, self.fresh = 100, 0, 0

    def left_out(self, question: str) -> bool:
        return False

    def untold(self, question: str, answer: Any) -> list[str]:
        if not self.layout2 or not question.startswith("incremental"):
            return []
        if self.partial:
            return [n for n in answer.column_names if not n.startswith("_hoodie_")]
        return []

    def _type(self, depth: int) -> Any:
        rng = self.rng
        if depth and rng.random() < 0.35:
            return rng.choice([("struct", {"p": "int", "q": "string"}), ("array", "int"), ("map", "float")])
        return rng.choice(PRIMITIVES)

    def value(self, kind: Any) -> str:
        rng = self.rng
        if rng.random() < 0.12:
            return f"cast(null as {ddl(kind)})"
        if isinstance(kind, tuple):
            match kind[0]:
                case "struct":
                    inner = ", ".join(f"'{n}', {self.value(k)}" for n, k in kind[1].items())
                    return f"cast(named_struct({inner}) as {ddl(kind)})"
                case "array":
                    items = ", ".join(self.solid(kind[1]) for _ in range(rng.randint(0, 2)))
                    return f"cast(array({items}) as {ddl(kind)})"
                case _:
                    items = ", ".join(
                        f"'{k}', {self.solid(kind[1])}" for k in ("a", "b")[: rng.randint(0, 2)]
                    )
                    return f"cast(map({items}) as {ddl(kind)})"
        return self.solid(kind)

    def solid(self, kind: Any) -> str:
        rng = self.rng
        if isinstance(kind, tuple):
            for _ in range(50):
                v = self.value(kind)
                if not v.startswith("cast(null"):
                    return v
        match kind.partition("(")[0]:
            case "int":
                return f"cast({rng.choice([0, 7, -3, 2**31 - 1, 16777217])} as int)"
            case "bigint":
                return f"cast({rng.choice([0, 9, -5, 2**53 + 1, 123456789])} as bigint)"
            case "float":
                return f"cast({rng.choice(['0.1', '1.5', '-2.25', '16777216', '1e10'])} as float)"
            case "double":
                return f"cast({rng.choice(['0.1', '1.5', '-1e-9', '1e20', '100'])} as double)"
            case "string":
                return rng.choice(["'2021-03-04'", "'12.50'", "'7'", "'2020-02-29'"])
            case "decimal":
                return f"cast('{rng.choice(['1.50', '-99999.99', '0', '12345.67'])}' as {kind})"
            case "date":
                return f"date '{rng.choice(['2020-02-29', '1969-12-31', '2100-01-01'])}'"
            case "timestamp":
                return f"timestamp '{rng.choice(['2020-02-29 01:02:03.456789', '1969-12-31 23:59:59.999'])}'"
            case "boolean":
                return rng.choice(["true", "false"])
            case "binary":
                return rng.choice(["cast('abc' as binary)", "X'00FF'", "X''"])
        raise ValueError(kind)

    def row(self, key: str, ts: int) -> str:
        out = []
        for name, kind in self.columns.items():
            if name == "id":
                out.append(f"'{key}'")
            elif name == "ts":
                out.append(f"cast({ts} as bigint)")
            elif name == "part":
                out.append("'" + "ab"[int(key[1:]) % 2] + "'")
            else:
                out.append(self.value(kind))
        return "(" + ", ".join(out) + ")"

    def statements(self, path: Path) -> list[str]:
        """What begins the table."""
        props = [f"type = '{'mor' if self.merged else 'cow'}'", "primaryKey = 'id'", "preCombineField = 'ts'"]
        if self.payload:
            props.append(f"payloadClass = 'org.apache.hudi.common.model.{self.payload}'")
        cols = ", ".join(f"{n} {ddl(k)}" for n, k in self.columns.items())
        by = "PARTITIONED BY (part)" if self.partitioned else ""
        self.name = f"t{self.seed}_{self.version.replace('.', '')}"
        return [
            f"DROP TABLE IF EXISTS {self.name}",
            f"CREATE TABLE {self.name} ({cols}) USING hudi {by} TBLPROPERTIES ({', '.join(props)}) LOCATION '{path}'",
            self.insert(self.rng.randint(4, 9)),
        ]

    def insert(self, n: int) -> str:
        keys = [f"k{self.count + i}" for i in range(n)]
        self.count += n
        self.clock += 1
        return f"INSERT INTO {self.name} VALUES " + ", ".join(self.row(k, self.clock) for k in keys)

    def places(self) -> list[tuple[tuple[str, ...], Any, dict[str, Any]]]:
        """(path, type, the fields around it) of everything that can be altered."""
        out: list[tuple[tuple[str, ...], Any, dict[str, Any]]] = []

        def walk(prefix: tuple[str, ...], fields: dict[str, Any]) -> None:
            for n, k in fields.items():
                if not prefix and n in ("id", "ts", "part"):
                    continue
                out.append(((*prefix, n), k, fields))
                inner, at = k, (*prefix, n)
                while isinstance(inner, tuple) and inner[0] != "struct":
                    at = (*at, "element" if inner[0] == "array" else "value")
                    inner = inner[1]
                if isinstance(inner, tuple):
                    walk(at, inner[1])

        walk((), self.columns)
        return out

    def alter(self) -> str | None:
        rng = self.rng
        places = self.places()
        if not self.nested or rng.random() < 0.4:
            places = [p for p in places if len(p[0]) == 1]
        path, kind, around = rng.choice(places)
        name = ".".join(path)
        act = rng.choice(["rename", "rename", "drop", "retype", "retype", "add", "add", "move"])
        match act:
            case "rename":
                old = {"".join(c for c in n) for n in around}
                new = rng.choice(
                    [
                        f"r{self.fresh}",
                        f"r{self.fresh}",
                        *[g for g in getattr(self, "gone", []) if g not in old],
                    ]
                )
                self.fresh += 1
                _renamed(around, path[-1], new)
                return f"ALTER TABLE {self.name} RENAME COLUMN {name} TO {new}"
            case "drop":
                if len(around) < 2 or (len(path) == 1 and len(self.columns) < 5):
                    return None
                self.gone = [*getattr(self, "gone", []), path[-1]]
                del around[path[-1]]
                return f"ALTER TABLE {self.name} DROP COLUMN {name}"
            case "retype":
                choices = WIDER.get(kind, ()) if isinstance(kind, str) else ()
                if not choices:
                    return None
                around[path[-1]] = new = rng.choice(choices)
                return f"ALTER TABLE {self.name} ALTER COLUMN {name} TYPE {new}"
            case "add":
                gone = [g for g in getattr(self, "gone", []) if g not in around]
                new = rng.choice([f"n{self.fresh}", f"n{self.fresh}", *gone])
                self.fresh += 1
                added = rng.choice([*PRIMITIVES, ("struct", {"p": "int", "q": "string"})])
                where = ".".join((*path[:-1], new))
                last = [n for n in around if n != "part"][-1]
                after = rng.choice([None, path[-1]])
                place = "" if after is None else f" AFTER {after}"
                _added(around, new, added, after or last)
                return f"ALTER TABLE {self.name} ADD COLUMNS ({where} {ddl(added)}{place})"
            case _:
                others = [n for n in around if n not in (path[-1], "id", "ts", "part")]
                if not others:
                    return None
                after = rng.choice(others)
                kept = around.pop(path[-1])
                _added(around, path[-1], kept, after)
                return f"ALTER TABLE {self.name} ALTER COLUMN {name} AFTER {after}"

    def write(self) -> str | None:
        rng = self.rng
        keys = [f"k{i}" for i in rng.sample(range(self.count), min(self.count, rng.randint(1, 4)))]
        act = rng.choice(["insert", "update", "update", "delete", "merge", "merge", "merge", "overwrite"])
        self.clock += 1
        free = [n for n in self.columns if n not in ("id", "ts", "part")]
        listed = ", ".join(f"'{k}'" for k in keys)
        match act:
            case "insert":
                return self.insert(rng.randint(1, 3))
            case "update":
                some = rng.sample(free, rng.randint(1, min(2, len(free))))
                sets = ", ".join(f"{n} = {self.value(self.columns[n])}" for n in some)
                return f"UPDATE {self.name} SET {sets}, ts = {self.clock} WHERE id IN ({listed})"
            case "delete":
                return f"DELETE FROM {self.name} WHERE id IN ({listed})"
            case "overwrite":
                if rng.random() < 0.7:
                    return None
                rows = ", ".join(self.row(k, self.clock) for k in keys)
                if self.partitioned:
                    # dynamic or whole
                    return f"INSERT OVERWRITE TABLE {self.name} VALUES {rows}"
                return f"INSERT OVERWRITE TABLE {self.name} VALUES {rows}"
            case _:
                rows = ", ".join(
                    self.row(k, self.clock + rng.choice([0, 0, -50]))
                    for k in [*keys, *([f"k{self.count}"] if rng.random() < 0.4 and not self.partial else [])]
                )
                self.count += 1
                cols = ", ".join(self.columns)
                using = f"(SELECT * FROM VALUES {rows} AS v({cols})) AS s"
                into = f"MERGE INTO {self.name} AS t USING {using} ON t.id = s.id"
                if self.partial:
                    some = rng.sample(free, rng.randint(1, min(2, len(free))))
                    sets = ", ".join(f"t.{n} = s.{n}" for n in [*some, "ts"])
                    return f"{into} WHEN MATCHED THEN UPDATE SET {sets}"
                gone = "WHEN MATCHED AND s.ts % 5 = 0 THEN DELETE " if rng.random() < 0.3 else ""
                return f"{into} {gone}WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"

    def service(self) -> str:
        rng = self.rng
        name = self.name
        calls = [
            f"CALL run_clustering(table => '{name}', op => '{rng.choice(['schedule', 'scheduleandexecute'])}')"
        ]
        if self.merged:
            more = "options => 'hoodie.compact.inline.max.delta.commits=1'"
            calls += [
                f"CALL run_compaction(op => '{op}', table => '{name}', {more})"
                for op in ("schedule", "run", "scheduleandexecute")
            ]
        return rng.choice(calls)

    def judge(self, last: str, path: Path) -> str:
        """The release that says what the table holds."""
        return last

    def reading(self, apache: ApacheHudi) -> Reading:
        return Reading(apache, self.evolving)

    def more(self) -> str:
        return ""

    def go(self, processes: dict[str, ApacheHudi], path: Path) -> None:
        rng, apache = self.rng, processes[self.version]
        settings = {
            "hoodie.schema.on.read.enable": str(self.evolving).lower(),
            "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
            "hoodie.spark.sql.merge.into.partial.updates": str(self.partial).lower(),
            "hoodie.metadata.enable": rng.choice(["true", "false"]),
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.parquet.small.file.limit": rng.choice(["0", "104857600"]),
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.compact.inline": "false",
            "hoodie.clustering.inline": "false",
            "hoodie.index.type": rng.choice(["SIMPLE", "BLOOM"]),
            "hoodie.logfile.data.block.format": rng.choice(["avro", "avro", "parquet"]),
            "hoodie.metadata.index.column.stats.enable": "false",
            "spark.sql.parquet.enableVectorizedReader": str(not self.nested).lower(),
            **{f"hoodie.{k}.shuffle.parallelism": "2" for k in ("insert", "upsert", "delete", "bulkinsert")},
        }
        if self.partial:
            settings["hoodie.logfile.data.block.format"] = "avro"
        for k, v in settings.items():
            apache.sql(f"SET {k}={v}")
        self.settings = settings
        self.said.append(str({k: v for k, v in settings.items() if "parallel" not in k}))
        for s in self.statements(path):
            self.said.append(s)
            apache.sql(s)
        for _ in range(rng.randint(7, 12)):
            state = copied(self.columns)
            kind = rng.random()
            if self.evolving and kind < 0.45:
                s = self.alter()
            elif kind < 0.9:
                s = self.write()
            else:
                s = self.service()
            if s is None:
                continue
            if self.partial:  # partial updates are refused where the history is heeded
                apache.sql(f"SET hoodie.schema.on.read.enable={str(not s.startswith('MERGE')).lower()}")
            self.said.append(s)
            try:
                apache.sql(s)
            except SparkProcessError as e:
                lines = [x for x in str(e).splitlines() if "Caused" in x]
                self.said.append(f"   refused: {str(e)[:160]!r} {lines[-1:]}")
                self.columns = state
        apache.sql(f"SET hoodie.schema.on.read.enable={str(self.evolving).lower()}")

    def __str__(self) -> str:
        return (
            f"{self.version} seed {self.seed}: {'MOR' if self.merged else 'COW'} partial={self.partial} "
            f"evolving={self.evolving} payload={self.payload}\n    "
            + "\n    ".join(s[:700] for s in self.said)
        )


def copied(kind: Any) -> Any:
    if isinstance(kind, dict):
        return {n: copied(k) for n, k in kind.items()}
    if isinstance(kind, tuple):
        return (kind[0], copied(kind[1]))
    return kind


def _renamed(fields: dict[str, Any], old: str, new: str) -> None:
    items = [(new if n == old else n, k) for n, k in fields.items()]
    fields.clear()
    fields.update(items)


def _added(fields: dict[str, Any], new: str, kind: Any, after: str) -> None:
    items = []
    for n, k in fields.items():
        items.append((n, k))
        if n == after:
            items.append((new, kind))
    fields.clear()
    fields.update(items)


class Reading:
    """Apache Hudi, which reads with the schema history."""

    def __init__(self, apache: ApacheHudi, evolving: bool) -> None:
        self._apache, self._evolving = apache, evolving

    def read(self, path: Path, **options: str) -> Any:
        more = {"hoodie.schema.on.read.enable": "true"} if self._evolving else {}
        return self._apache.read(path, **more, **options)
