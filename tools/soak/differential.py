"""Tables written in turns by this project and by Apache Hudi, beside twins that only Apache Hudi writes.

    python tools/soak/differential.py FIRST LAST FOLDER [VERSION]      # in an environment with PySpark 3.5

A seed is a table of `soak.drawn_tables` and its history: both twins take the same steps.  After each the table must
be the same for both readers, value for value, whatever is asked of it (snapshot, read-optimized, time travel,
incremental, changes, filters with and without indexes), and hold what the twin holds; `verify` must find nothing.
Versions other than 0.15.0 write tables of their own version, which this project reads, or with `VERSION/6` those of
version 6, which it writes too.
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))

from hudi_format import HudiError, open_storage
from hudi_format.schema.input_rows import as_reader
from hudi_timeline import HudiTable
from hudi_timeline.verify.findings import Finding
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop.apache_hudi import ApacheHudi
from interop.rows import assert_same_rows
from interop.spark_process import SparkProcessError
from soak.drawn_tables import MODELS, WRITE, Drawn, Row

OPERATION = WRITE + "operation"
QUERY = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
# What another writer may choose: see interop.twins.
OWN = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
AS_APACHE_HUDI = {"hudi.partition.null.texts": "write", "hudi.write.types": "data"}
REBASED = [f"spark.sql.parquet.{k}RebaseModeIn{w}" for k in ("datetime", "int96") for w in ("Read", "Write")]
INDEXED = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
PLAIN = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
KEYS = ["_hoodie_partition_path", "_hoodie_record_key"]


class Stop(Exception):
    """The twins can go on no further together."""


@dataclass
class Difference:
    """Two answers that should be one."""

    what: str
    message: str


@dataclass
class History:
    """One seed: a table, its twin, and what became of them.

    Args:
        writes: whether this project writes too; else it only reads.
        twins: whether there is a twin in any case; else every fourth table has one.
    """

    seed: int
    apache: ApacheHudi
    folder: Path
    version: str = "0.15.0"
    table_version: str = ""
    writes: bool = True
    twins: bool = False
    said: list[str] = field(default_factory=list)
    found: list[Difference] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.layout2 = not self.writes
        self.drawn = Drawn(f"{self.version}/{self.table_version}/{self.seed}", layout2=self.layout2)
        self.rng = random.Random(f"turns/{self.seed}")
        self.table, self.twin = (
            self.folder / f"s{self.seed}" / "turns",
            self.folder / f"s{self.seed}" / "twin",
        )
        self.has_twin = self.writes and (self.seed % 4 == 0 or self.twins)
        self.options = dict(self.drawn.options)
        if self.table_version:
            self.options |= {
                "hoodie.write.table.version": self.table_version,
                "hoodie.write.auto.upgrade": "false",
            }
        if self.version == "1.2.0":
            self.options["hoodie.write.complex.keygen.validation.enable"] = "false"
        # 1.0.2 fills nulls from older log records of tables of version 6, which 0.15.0 and this project do not.
        unfilled = "OverwriteNonDefaultsWithLatestAvroPayload"
        if self.table_version and self.drawn.merged and self.drawn.payload == unfilled:
            self.options[WRITE + "payload.class"] = MODELS + "OverwriteWithLatestAvroPayload"
        self.saved: dict[Path, str] = {}
        self.saved_rows: dict[int, Row] = {}
        self.named: dict[Path, str] = {}

    # --- steps ---

    def run(self) -> None:
        """All steps, with the comparisons after each."""
        self.apache.set_hadoop(
            "parquet.avro.write-old-list-structure", "false" if self.drawn.draw.null_elements else None
        )
        # It refuses nested types that changed; the other reader gives nulls for columns of formatted times.
        vectorised = str(self.drawn.layout in ("time", "custom")).lower()
        self.apache.sql(f"SET spark.sql.parquet.enableVectorizedReader={vectorised}")
        for name in ("hoodie.write.table.version", "hoodie.write.auto.upgrade"):
            if name in self.options:  # procedures take neither as an option
                self.apache.sql(f"SET {name}={self.options[name]}")
        for step in range(self.rng.randint(5, 9)):
            if step > 1 and self.rng.random() < 0.3:
                self._service()
            self._write(step)
            self.counts["steps"] += 1
            self._compare()
            if self.found:
                return

    def _write(self, step: int) -> None:
        operation, rows, more = self.drawn.batch(step)
        if operation == "delete_partition":
            there = HudiTable.open(str(self.table)).read(columns=["_hoodie_partition_path"]).to_arrow()
            paths = sorted(set(there["_hoodie_partition_path"].to_pylist()))
            if not paths or paths == [""] or not self.drawn.parts:
                operation = "upsert"
            else:
                more = {WRITE + "partitions.to.delete": self.rng.choice(paths)}
        batch = self.drawn.table(rows, step)
        given = {**self.options, **more, OPERATION: operation}
        mine = self.writes and self.rng.random() < (0.5 if step else 0.6)
        who = "ours" if mine else "apache"
        self.said.append(f"{step} {who}: {operation} of {len(rows)} {more or ''}")
        self.counts[f"{who} {operation}"] += 1
        if mine:
            got = self._try(lambda: self._ours(batch, given))
        else:
            got = self._try(lambda: self.apache.write(self.table, batch, given))
        want = self._try(lambda: self.apache.write(self.twin, batch, given)) if self.has_twin else ""
        if want or got:
            self.said.append(f"   refused: turns {got[:700]!r}, twin {want[:700]!r}")
            self.counts["refused by both" if want and got else "refused by one"] += 1
            if bool(want) != bool(got) and (mine or self.has_twin):  # else it may refuse its own tables too
                self.found.append(
                    Difference(f"{who} {operation}", f"turns: {got[:1500]!r}\n    twin: {want[:1500]!r}")
                )
            raise Stop("a step was refused")

    def _ours(self, batch: pa.Table, options: dict[str, str]) -> None:
        given = {k: v for k, v in options.items() if "clustering" not in k}  # which is refused here
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            execute(
                LocalEngine(), open_storage(str(self.table)), as_reader(batch), {**given, **AS_APACHE_HUDI}
            )

    def _try(self, call: Callable[[], Any]) -> str:
        """What was said against it, "" if it was done."""
        try:
            call()
        except SparkProcessError as e:
            lines = str(e).splitlines()
            causes = [line for line in lines if line.startswith("Caused by")]
            return " ".join([*lines[:3], *causes[-2:]]) or "refused"
        except HudiError as e:
            return f"{type(e).__name__}: {e}"
        except Exception:  # noqa: BLE001 - whatever else it is, it is a finding
            return traceback.format_exc()[-900:]
        return ""

    def _service(self) -> None:
        """A table service on both; of the first by either implementation."""
        acts = ["clean", "archive", "save", "restore"] + ["compact"] * 2 * self.drawn.merged
        acts += ["cluster"] * (self.options["hoodie.index.type"] != "BUCKET")
        act = self.rng.choice(acts)
        if act == "restore" and not self.saved:
            act = "save"
        mine = self.writes and act != "cluster" and self.rng.random() < 0.5  # clustering is Apache Hudi's
        self.said.append(f"  {'ours' if mine else 'apache'}: {act}")
        self.counts[f"{'ours' if mine else 'apache'} {act}"] += 1
        want = self._try(lambda: self._their_service(act, self.twin)) if self.has_twin else ""
        run = self._our_service if mine else self._their_service
        got = self._try(lambda: run(act, self.table))
        if act == "save":
            self.saved_rows = dict(self.drawn.live)
        elif act == "restore":
            self.drawn.live = dict(self.saved_rows)
            self.saved = {}
        if want or got:
            self.said.append(f"   refused: turns {got[:700]!r}, twin {want[:700]!r}")
            if bool(want) != bool(got) and (mine or self.has_twin):
                self.found.append(Difference(act, f"turns: {got[:1500]!r}\n    twin: {want[:1500]!r}"))
            raise Stop("a service was refused")

    def _last(self, path: Path) -> str:
        rows = HudiTable.open(str(path)).inspect.timeline().to_pylist()
        kinds = ("commit", "deltacommit", "replacecommit")
        return max(
            str(r["instant"]) for r in rows if r["state"].upper() == "COMPLETED" and r["action"] in kinds
        )

    def _our_service(self, act: str, path: Path) -> None:
        table = HudiTable.open(str(path))
        service = {k: v for k, v in self.options.items() if not k.startswith(WRITE) and "table.name" not in k}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            match act:
                case "clean":
                    table.clean(options=service)
                case "archive":
                    table.archive(options=service)
                case "compact":
                    table.compact(options=service)
                case "save":
                    self.saved[path] = table.savepoint()
                case "restore":
                    table.restore(self.saved[path])

    def _their_service(self, act: str, path: Path) -> None:
        apache = self.apache
        if act == "archive":
            apache.archive(path, self.options)
            return
        if path not in self.named:
            name = f"n{self.seed}_{path.name}_{self.version.replace('.', '')}"
            apache.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
            self.named[path] = name
        name = self.named[path]
        services = {
            k: v
            for k, v in self.options.items()
            if k.startswith(("hoodie.metadata", "hoodie.index", "hoodie.bucket"))
        }
        options = ",".join(f"{k}={v}" for k, v in services.items())
        match act:
            case "clean":
                retained = self.options["hoodie.cleaner.commits.retained"]
                apache.sql(f"CALL run_clean(table => '{name}', retain_commits => {retained}, "
                           f"options => '{options}')")  # fmt: skip
            case "compact":
                apache.sql(f"CALL run_compaction(op => 'scheduleandexecute', table => '{name}', "
                           f"options => 'hoodie.compact.inline.max.delta.commits=1,{options}')")  # fmt: skip
            case "cluster":
                apache.sql(f"CALL run_clustering(table => '{name}', op => 'scheduleandexecute', "
                           f"options => '{options}')")  # fmt: skip
            case "save":
                last = self._last(path)
                apache.sql(f"CALL create_savepoint(table => '{name}', commit_time => '{last}')")
                self.saved[path] = last
            case "restore":
                apache.sql(
                    f"CALL rollback_to_savepoint(table => '{name}', instant_time => '{self.saved[path]}')"
                )

    # --- comparisons ---

    def _compare(self) -> None:
        first = self._ask("snapshot", {}, lambda t: t.read(meta_columns=True).to_arrow())
        if first is None:
            return
        mine, theirs = first
        if self.has_twin:
            twin = self._without_quirks(self.apache.read(self.twin), mine)
            self._same(
                "twin", mine.drop_columns(list(OWN)), twin.drop_columns(list(OWN)), ordered_columns=False
            )
        asked = list(self._questions())
        for question in self.rng.sample(asked, min(len(asked), 1)):
            self._ask(*question)
        if self.rng.random() < 0.6:
            self._filtered(theirs)
        self._verified()

    def _questions(self) -> Iterator[tuple[str, dict[str, str], Callable[[HudiTable], pa.Table]]]:
        table = HudiTable.open(str(self.table))
        done = [r for r in table.inspect.timeline().to_pylist() if r["state"].upper() == "COMPLETED"]
        writes = [r for r in done if r["action"] in ("commit", "deltacommit", "replacecommit")]
        if self.drawn.merged:
            yield ("read_optimized", {QUERY: "read_optimized"},
                   lambda t: t.read(query="read_optimized", meta_columns=True).to_arrow())  # fmt: skip
        if self.drawn.cleans:
            writes = writes[-1:]
        if writes:
            at = self.rng.choice(writes)["instant"]
            yield (f"as of {at}", {"as.of.instant": at},
                   lambda t: t.read(as_of=at, meta_columns=True).to_arrow())  # fmt: skip
        if writes and not self.drawn.late and not self.layout2:
            times = sorted(r["instant"] for r in writes)
            begin = self.rng.choice(["000", *times[:-1]] if not self.drawn.cleans else times)
            yield (f"incremental ({begin}, ]", {QUERY: "incremental", BEGIN: begin},
                   lambda t: t.read_incremental(begin, meta_columns=True).to_arrow())  # fmt: skip

    def _ask(
        self, name: str, options: dict[str, str], ours: Callable[[HudiTable], pa.Table]
    ) -> tuple[pa.Table, pa.Table] | None:
        self.counts["questions"] += 1
        got: list[pa.Table] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = self._try(lambda: got.append(ours(HudiTable.open(str(self.table)))))
        theirs = self._try(lambda: got.append(self.apache.read(self.table, **options)))
        if mine and theirs:
            self.counts[f"both refuse {name.split()[0]}"] += 1
            return None
        if theirs:
            self.counts[f"Apache Hudi refuses {name.split()[0]}"] += 1
            asked = self.has_twin and name == "snapshot"
            twin = self._try(lambda: self.apache.read(self.twin, **options)) if asked else theirs
            self.said.append(f"   {name}: Apache Hudi: {theirs[:600]}")
            if not twin:  # what we wrote is what it cannot read
                self.found.append(Difference(name, f"only of ours: {theirs[:1500]}"))
            if name == "snapshot":
                raise Stop("Apache Hudi cannot read it")
            return None
        if mine:
            self.found.append(Difference(name, f"ours: {mine}"))
            return None
        if not got[1].num_columns and not got[0].num_rows:
            return None
        got = [self._without_quirks(t, got[0]) for t in got]
        self._same(name, got[0], got[1])
        return got[0], got[1]

    def _without_quirks(self, answer: pa.Table, mine: pa.Table) -> pa.Table:
        """An answer without columns that Apache Hudi is known to give otherwise than they were written."""
        if self.drawn.layout == "nested":  # a column beside the one that has the field, in some queries
            return answer.select([n for n in answer.column_names if n in mine.column_names])
        # The number in the path is none of Spark's texts of a time, and its null stands over the file's value.
        answer = answer.drop_columns([n for n, kind in self.drawn.parts if pa.types.is_timestamp(kind)])
        if self.table_version:
            # 1.0.2 gives formatted times as the file has them in each query, and empty text as the path's null.
            answer = answer.drop_columns(["at"] if "at" in answer.column_names else [])
            for n, kind in self.drawn.parts:
                if pa.types.is_string(kind) and n in answer.column_names:
                    at, column = answer.column_names.index(n), answer[n]
                    filled = pc.if_else(pc.equal(column, ""), pa.scalar(None, kind), column)
                    answer = answer.set_column(at, answer.schema.field(n), filled)
        return answer

    def _same(self, name: str, got: pa.Table, want: pa.Table, **how: bool) -> None:
        # Where partition columns stand is another matter in each release.
        ordered = {"ordered_columns": not self.table_version}
        try:
            assert_same_rows(got, want, KEYS, **{**ordered, **how})
        except AssertionError as e:
            self.found.append(Difference(name, str(e)))

    def _filtered(self, whole: pa.Table) -> None:
        """A condition answered with indexes and without, by both."""
        names = [f.name for f in whole.schema if not pa.types.is_nested(f.type) and not pa.types.is_binary(f.type)
                 and f.name not in OWN[1:] and not (self.table_version and f.name in dict(self.drawn.parts))
                 and whole[f.name].null_count < whole.num_rows]  # fmt: skip
        if not names:
            return
        name = self.rng.choice(names)
        column = whole[name]
        value = self.rng.choice([v for v in column.to_pylist() if v is not None])
        text = literal(column.type, value)
        if text is None:
            return
        sign = self.rng.choice(["=", "=", "<", ">=", "!=", "is null", "is not null"])
        where = f"`{name}` {sign}" if sign.startswith("is") else f"`{name}` {sign} {text}"
        self.counts["filters"] += 1
        answers: list[pa.Table] = []
        refused = [
            self._try(lambda o=o: answers.append(self.apache.read(self.table, where=where, **o)))
            for o in (PLAIN, INDEXED)
        ]
        if any(refused):
            self.counts["Apache Hudi refuses a filter"] += 1
            self.said.append(f"   where {where}: {refused[0][:400]!r} {refused[1][:400]!r}")
            if refused[0] == "":
                self.found.append(Difference(f"where {where} with indexes", refused[1][:1500]))
            return
        self._same(f"where {where} with indexes", answers[1], answers[0])
        scalar = pa.scalar(value, column.type)
        at = pc.field(name)
        expression = {
            "=": at == scalar,
            "!=": at != scalar,
            "is null": at.is_null(),
            "is not null": at.is_valid(),
        }
        if not pa.types.is_boolean(column.type):
            expression |= {"<": at < scalar, ">=": at >= scalar}
        if sign not in expression or (pa.types.is_floating(column.type) and "NaN" in map(str, column.to_pylist())) \
                or any(isinstance(v, float) and math.isnan(v) for v in column.to_pylist()):  # fmt: skip
            return
        got: list[pa.Table] = []
        said = self._try(lambda: got.append(
            HudiTable.open(str(self.table)).read(filter=expression[sign], meta_columns=True).to_arrow()))  # fmt: skip
        if said:
            self.found.append(Difference(f"ours where {where}", said))
        else:
            # Of formatted times Apache Hudi gives rows of the path's whole time, or fails.
            wanted = whole.filter(expression[sign]) if name == "at" else answers[0]
            self._same(f"ours where {where}", *(self._without_quirks(t, whole) for t in (got[0], wanted)))

    def _verified(self) -> None:
        if self.rng.random() < 0.5:
            return
        reports: list[Any] = []
        said = self._try(lambda: reports.append(HudiTable.open(str(self.table)).verify(deep=True)))
        findings = [str(f) for f in reports[0] if not self._lacks_values(f)] if reports else [said]
        self.counts["verified"] += 1
        if findings:
            self.said.append(f"   verify: {findings[:5]}")
            self.found.append(Difference("verify", "\n".join(findings[:8])))

    def _lacks_values(self, finding: Finding) -> bool:
        """Whether it is of bounds that Apache Hudi makes without NaN's row groups, or texts too long for a bound."""
        if finding.code != "mdt-partition-stats":
            return False
        column = HudiTable.open(str(self.table)).read(columns=[finding.details["column"]]).to_arrow()[0]
        if pa.types.is_floating(column.type):
            return bool(pc.any(pc.is_nan(column)).as_py())
        return pa.types.is_string(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > 4096


def literal(kind: pa.DataType, value: Any) -> str | None:
    """A value as a literal of Spark SQL; None where there is none that is sure to be the same."""
    if pa.types.is_string(kind):
        if any(not c.isprintable() for c in value) or len(value) > 400:
            return None
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if pa.types.is_boolean(kind):
        return str(value).lower()
    if pa.types.is_integer(kind):
        return f"CAST('{value}' AS BIGINT)"
    if pa.types.is_floating(kind):
        return f"CAST('{value!r}' AS {'DOUBLE' if kind.bit_width == 64 else 'FLOAT'})"
    if pa.types.is_decimal(kind):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision},{kind.scale}))"
    if pa.types.is_date(kind):
        return f"DATE'{value.isoformat()}'"
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"TIMESTAMP'{value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return None


def main() -> int:
    first, last, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    asked = sys.argv[4] if len(sys.argv) > 4 else "0.15.0"
    version, _, table_version = asked.partition("/")
    total: Counter[str] = Counter()
    apache = ApacheHudi(version)
    try:
        for seed in range(first, last):
            if not apache.running:
                apache.close()
                apache = ApacheHudi(version)
            for name in REBASED:
                apache.sql(f"SET {name}=CORRECTED")
            shutil.rmtree(folder / f"s{seed}", ignore_errors=True)
            writes = version == "0.15.0" or table_version == "6"
            history = History(seed, apache, folder, version, table_version, writes, twins="twins" in sys.argv)
            why = ""
            try:
                history.run()
            except Stop as e:
                why = f" ({e})"
            except SparkProcessError as e:
                why = f" ({str(e)[:1000]})"
            total += history.counts
            total["tables"] += 1
            total["tables with differences"] += bool(history.found)
            print(
                f"{seed}: {history.counts['steps']} steps, {len(history.found)} differences{why}", flush=True
            )
            if history.found or why:
                print("  " + "\n  ".join(history.said))
            if history.found:
                print(
                    f"  {history.options}\n  "
                    + "\n  ".join(f"{f.name}: {f.type}" for f in history.drawn.schema(0))
                )
                for d in history.found:
                    print(f"  DIFFERENCE {seed} {d.what}: {d.message[:2500]}", flush=True)
            else:
                shutil.rmtree(folder / f"s{seed}", ignore_errors=True)
    finally:
        apache.close()
        print(dict(total), flush=True)
    return min(total["tables with differences"], 100)


if __name__ == "__main__":
    sys.exit(main())
