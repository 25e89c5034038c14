"""Histories that nobody chose: Apache Hudi makes a table by random operations under random options.

    python tools/interop/unseen.py VERSION FIRST LAST FOLDER      # in an environment with PySpark 3.5

A seed makes one table; every question that a table can be asked is then put to Apache Hudi and to this project, and
the two answers must be equal.  A seed is replayed by its number.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from hudi_format import HudiError, InstantNotFoundError, MissingFileError
from hudi_timeline import HudiTable
from hudi_timeline.options.read_options import ON_MISSING, SKIP
from interop.apache_hudi import ApacheHudi
from interop.rows import assert_same_rows
from interop.samples import SHAPES, TRIPS, Row, Rows, Shape
from interop.spark_process import SparkProcessError

PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "PartialUpdateAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
)
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET", "INMEMORY", "RECORD_INDEX")
CDC_MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
OPERATION = "hoodie.datasource.write.operation"
# A writer of Apache Hudi 0.15.0 that loses lists: see tests/interop/test_taking_turns.py.
LISTS_KEPT = {"hoodie.datasource.write.row.writer.enable": "false"}
DELETED = "_hoodie_is_deleted"
CLEANS, ARCHIVES = "hoodie.clean.automatic", "hoodie.archive.automatic"
QUERY = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
SAME, BOTH_REFUSE, APACHE_FAILS = "same", "both refuse", "Apache Hudi fails"
TOLD = "told"  # Apache Hudi leaves rows out without a word, we say so or give them
OURS_FAILS, DIFFER = WRONG = ("ours fails", "differ")
CDC_FORMAT = "hoodie.datasource.query.incremental.format"


@dataclass
class History:
    """The options of a table, and its writes one after the other.

    Args:
        version: of Apache Hudi that writes it.
    """

    version: str
    seed: int
    merged: bool = False
    cdc: bool = False
    shape: Shape = field(default_factory=lambda: SHAPES["simple"])
    options: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(f"{self.version}/{self.seed}")
        self.merged = rng.random() < 0.65
        self.shape = rng.choice([*SHAPES.values(), SHAPES["all_types"], SHAPES["simple"]])
        self.timed = rng.choice([None] * 5 + ["TIMESTAMP", "CUSTOM"])
        if self.timed:
            self.shape = _timed(self.timed)
        self.flagged = rng.random() < 0.3
        self.widened = rng.choice([None] * 8 + [2, 3])
        self.grown = rng.choice([None, None, 2, 4])
        self.rows = Rows(self.shape, self.seed)
        self.live: dict[str, Row] = {}
        self.options = self._options()

    def _options(self) -> dict[str, str]:
        rng, layout2 = self.rng, self.layout2
        index = rng.choice(INDEXES if self.merged else [i for i in INDEXES if i != "INMEMORY"])
        self.global_index = index.startswith("GLOBAL") or index == "RECORD_INDEX"
        retained = rng.choice([1, 2, 4])
        out = {
            **self.shape.write_options(),
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merged else "COPY_ON_WRITE",
            "hoodie.index.type": index,
            "hoodie.metadata.enable": str(index == "RECORD_INDEX" or rng.random() < 0.4).lower(),
            "hoodie.parquet.small.file.limit": rng.choice(["0", "104857600"]),
            "hoodie.copyonwrite.insert.split.size": rng.choice(["5", "500000"]),
            "hoodie.copyonwrite.insert.auto.split": "false",
            CLEANS: rng.choice(["true", "false"]),
            "hoodie.cleaner.commits.retained": str(retained),
            "hoodie.keep.min.commits": str(retained + 1),
            "hoodie.keep.max.commits": str(retained + 2),
            ARCHIVES: rng.choice(["true", "false"]),
            "hoodie.clustering.inline": str(rng.random() < 0.25).lower(),
            "hoodie.clustering.inline.max.commits": "3",
            "hoodie.index.bloom.num_entries": "100",
            "hoodie.logfile.max.size": rng.choice(["1073741824", "4096"]),
            **LISTS_KEPT,
        }
        if index == "RECORD_INDEX":
            out["hoodie.metadata.record.index.enable"] = "true"
        if index == "BUCKET":
            out["hoodie.bucket.index.num.buckets"] = "3"
            out["hoodie.clustering.inline"] = "false"
        if self.merged:
            out["hoodie.compact.inline"] = rng.choice(["true", "false"])
            out["hoodie.compact.inline.max.delta.commits"] = rng.choice(["2", "3"])
            if out["hoodie.compact.inline"] == "false" and rng.random() < 0.5:
                out["hoodie.compact.schedule.inline"] = "true"
            if rng.random() < 0.3:
                out["hoodie.logfile.data.block.format"] = "parquet"
        if layout2 and rng.random() < 0.7:
            out["hoodie.write.record.merge.mode"] = rng.choice(
                ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"]
            )
            self.payload = out["hoodie.write.record.merge.mode"]
        else:
            self.payload = rng.choice(PAYLOADS)
            out["hoodie.datasource.write.payload.class"] = f"org.apache.hudi.common.model.{self.payload}"
        if rng.random() < 0.2 and index not in ("INMEMORY",):
            self.cdc = True
            out["hoodie.table.cdc.enabled"] = "true"
            out["hoodie.table.cdc.supplemental.logging.mode"] = rng.choice(CDC_MODES)
        if layout2:
            out["hoodie.metadata.index.column.stats.enable"] = "false"
        return out

    @property
    def layout2(self) -> bool:
        return not self.version.startswith("0.")

    def left_out(self, question: str) -> bool:
        """Windows of Apache Hudi 1.x in which files may be gone: it leaves out rows that are there, without a word."""
        ended = not question.endswith("None]")
        return (
            self.layout2 and self.options[CLEANS] == "true" and question.startswith("incremental") and ended
        )

    def untold(self, question: str, answer: pa.Table) -> list[str]:
        """Columns whose values Apache Hudi 1.x gives otherwise than the files have them, on purpose or not.

        Partition columns of incremental reads are those of the paths, not decoded.  They drop rows of older
        commits before merging, so that payloads which fill values find nothing to fill them from.
        """
        kind = question.partition(" ")[0]
        if not self.layout2 or kind != "incremental":
            return []
        if self.payload in PAYLOADS[3:]:
            return [n for n in answer.column_names if not n.startswith("_hoodie_")]
        return [n for n in answer.column_names if n in {p.partition(":")[0] for p in self.shape.partitions}]

    def write(self, apache: ApacheHudi, path: Path) -> None:
        """Make the table."""
        for step in range(self.rng.randint(4, 8)):
            operation, rows, more = self._step(step)
            if not rows and operation != "delete_partition":
                continue
            schema = self._schema(step)
            for r in rows:
                if self.timed:  # of the key, so that none moves
                    r["born_ms"] = int(r["uuid"][3:]) % 3 * 86_400_000 + 1_500_000_000_000
            table = pa.Table.from_pylist([{**r, **self._added(step, r)} for r in rows], schema=schema)
            self.said.append(f"{operation} of {len(rows)} {more or ''}")
            apache.write(path, table, {**self.options, OPERATION: operation, **more})

    def _step(self, step: int) -> tuple[str, list[Row], dict[str, str]]:
        rng, rows = self.rng, self.rows
        if step == 0:
            operation = rng.choice(["insert", "bulk_insert", "upsert"])
        else:
            kinds = ["upsert"] * 6 + ["insert", "delete", "delete"]
            if not self.timed:
                kinds += ["insert_overwrite", "delete_partition"]
            operation = rng.choice(kinds)
        current = list(self.live.values())
        more: dict[str, str] = {}
        match operation:
            case "delete":
                given = rows.some(current, min(len(current), 4))
                if rng.random() < 0.4:
                    given = [{**r, "ts": 5} for r in given]  # a late delete
                for r in given:
                    if r["ts"] != 5:
                        self.live.pop(r["uuid"], None)
            case "upsert":
                given = rows.new(rng.randint(0, 6))
                changed = rows.changed(current, min(len(current), rng.randint(1, 9)))
                for r in changed:
                    r["ts"] += rng.choice([0, 0, 0, -1, -1, -2, -900])
                    if self.global_index and rng.random() < 0.3:
                        r["city"] = rng.choice(self.shape.cities)
                given += changed
                if given and rng.random() < 0.3:
                    given.append({**rng.choice(given), "ts": 1000 + rng.randint(0, 12), "rider": "again"})
                self.live.update({r["uuid"]: r for r in given})
            case "insert_overwrite":
                given = (
                    [r | {k: current[0][k] for k in ("city", "kind")} for r in rows.new(4)] if current else []
                )
                if given:
                    gone = self.shape.path_of(given[0])
                    self.live = {k: r for k, r in self.live.items() if self.shape.path_of(r) != gone}
                self.live.update({r["uuid"]: r for r in given})
            case "delete_partition":
                if not self.shape.partitions or not current:
                    return "upsert", rows.new(3), more
                path = self.shape.path_of(rng.choice(current))
                more = {"hoodie.datasource.write.partitions.to.delete": path}
                self.live = {k: r for k, r in self.live.items() if self.shape.path_of(r) != path}
                given = []
            case _:
                given = rows.new(rng.randint(6, 20))
                self.live.update({r["uuid"]: r for r in given})
        return operation, given, more

    def _schema(self, step: int) -> pa.Schema:
        out = self.shape.schema
        if self.flagged:
            out = out.append(pa.field(DELETED, pa.bool_()))
        if self.widened is not None and step >= self.widened:
            out = out.set(out.get_field_index("qty"), pa.field("qty", pa.int64()))
        if self.grown is not None and step >= self.grown:
            out = out.append(pa.field("born", pa.date32())).append(
                pa.field("more", pa.struct([("n", pa.int32()), ("t", pa.list_(pa.string()))]))
            )
        return out

    def _added(self, step: int, row: Row) -> Row:
        rng, out = self.rng, Row()
        if self.flagged:
            out[DELETED] = rng.random() < 0.15
        if self.grown is not None and step >= self.grown:
            out["born"] = rng.choice([None, date(2001, 2, 3)])
            out["more"] = rng.choice([None, {"n": 4, "t": ["x"]}, {"n": None, "t": []}])
        return out

    def __str__(self) -> str:
        kept = (
            "index.type",
            "metadata.enable",
            "automatic",
            "inline",
            "mode",
            "block.format",
            "split.size",
            "small",
            "retained",
        )
        chosen = {k: v for k, v in self.options.items() if k.endswith(kept)}
        return (
            f"{self.version} seed {self.seed}: {'MOR' if self.merged else 'COW'} {self.shape.name} {self.payload} "
            f"flagged={self.flagged} widened={self.widened} grown={self.grown} cdc={self.cdc} {chosen}\n    "
            + "\n    ".join(self.said)
        )


def _timed(kind: str) -> Shape:
    """A table whose partition paths are formatted times, alone or below a plain column."""
    options = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen."
        + ("TimestampBasedKeyGenerator" if kind == "TIMESTAMP" else "CustomKeyGenerator"),
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd" if kind == "TIMESTAMP" else "yyyyMMdd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    schema = TRIPS.append(pa.field("born_ms", pa.int64()))
    if kind == "TIMESTAMP":
        return Shape("timed", partitions=("born_ms",), schema=schema, options=options)
    return Shape("custom", partitions=("city:SIMPLE", "born_ms:TIMESTAMP"), schema=schema, options=options)


Ask = tuple[str, dict[str, str], Callable[[HudiTable], pa.Table]]


def questions(history: History, table: HudiTable) -> Iterator[Ask]:
    """(name, options of Apache Hudi, our call), for all that can be asked of the table."""
    yield "snapshot", {}, lambda t: t.read(meta_columns=True).to_arrow()
    yield (
        "read_optimized",
        {QUERY: "read_optimized"},
        lambda t: t.read(query="read_optimized", meta_columns=True).to_arrow(),
    )
    done = [r for r in table.inspect.timeline().to_pylist() if r["state"].upper() == "COMPLETED"]
    writes = [r for r in done if r["action"] in ("commit", "deltacommit", "replacecommit")]
    for r in writes:
        t = r["instant"]
        yield f"as of {t}", {"as.of.instant": t}, lambda x, t=t: x.read(as_of=t, meta_columns=True).to_arrow()
    times = [r["completion"] if history.layout2 else r["instant"] for r in writes]
    times = sorted(t for t in times if t)
    if history.version == "1.0.2" and history.options[ARCHIVES] == "true":
        times = []  # where commits are archived, it gives rows of base files that logs have newer versions of
    windows = [("000", None)] if times else []
    windows += [*((a, None) for a in times), *itertools.pairwise(times)]
    for begin, end in windows:
        asked = {QUERY: "incremental", BEGIN: begin, **({END: end} if end else {})}
        # Apache Hudi 1.0.2 takes the begin to be inclusive.
        inclusive = history.version == "1.0.2" and history.layout2 and len(begin) == 17
        mine = str(int(begin) - 1) if inclusive else begin
        yield (
            f"incremental ({begin}, {end}]",
            asked,
            lambda x, b=mine, e=end: x.read_incremental(b, e, meta_columns=True).to_arrow(),
        )
        if history.cdc:
            yield (
                f"cdc ({begin}, {end}]",
                {**asked, CDC_FORMAT: "cdc"},
                lambda x, b=begin, e=end: x.read_changes(b, e).to_arrow(),
            )


@dataclass
class Outcome:
    """What became of a question."""

    name: str
    kind: str
    message: str = ""


def compare(history: History, apache: ApacheHudi, path: Path, *, one_of: int = 1) -> list[Outcome]:
    """Put all questions to both, or one of so many."""
    asked = [a for a in questions(history, HudiTable.open(str(path))) if not history.left_out(a[0])]
    return [_ask(history, apache, path, *a) for a in asked[::one_of]]


def _ask(
    history: History,
    apache: ApacheHudi,
    path: Path,
    name: str,
    options: dict[str, str],
    ours: Callable[[HudiTable], pa.Table],
) -> Outcome:
    mine: pa.Table | None = None
    theirs: pa.Table | None = None
    my_error = their_error = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            mine = ours(HudiTable.open(str(path)))
        # Of archived commits too: those behind a savepoint, whose own commit stays and can be begun from.
        except (MissingFileError, InstantNotFoundError) as e:
            my_error = f"{type(e).__name__}: {e}"
            if name.startswith("incremental"):  # then what is left, which it says how to get
                with contextlib.suppress(MissingFileError, InstantNotFoundError):
                    mine = ours(HudiTable.open(str(path), options={ON_MISSING: SKIP}))
        except HudiError as e:
            my_error = f"{type(e).__name__}: {e}"
    try:
        theirs = apache.read(path, **options)
    except SparkProcessError as e:
        causes = [line for line in str(e).splitlines() if line.startswith("Caused by")]
        their_error = " ".join([str(e)[:300], *causes[-1:]])
    if mine is None or theirs is None:
        kind = BOTH_REFUSE if mine is theirs else APACHE_FAILS if theirs is None else OURS_FAILS
        cleaned = (
            my_error.startswith("MissingFileError")
            and name.startswith("cdc")
            and history.options[CLEANS] == "true"
        )
        if kind == OURS_FAILS and cleaned:
            # The cleaner removed what was replaced; Apache Hudi leaves the deletes of those rows out, unsaid.
            kind = TOLD
        return Outcome(name, kind, f"{my_error} | {their_error}")
    mine, theirs = (t.drop_columns(history.untold(name, t)) for t in (mine, theirs))
    if name.startswith("cdc"):
        nested = _nested(mine) | _nested(theirs)
        mine, theirs = _comparable(mine, nested), _comparable(theirs, nested)
    elif name.startswith("incremental") and history.merged:
        theirs = _winners(theirs, mine, path)
    if not theirs.num_columns and not mine.num_rows:
        return Outcome(name, SAME)
    try:
        assert_same_rows(mine, theirs, ["_hoodie_record_key"])
    except AssertionError as e:
        kept = path.with_name(f"{path.name}.theirs")
        kept.mkdir(exist_ok=True)
        pq.write_table(theirs, kept / f"{name.replace(' ', '_')}.parquet")
        return Outcome(name, DIFFER, str(e))
    return Outcome(name, SAME)


def _winners(theirs: pa.Table, mine: pa.Table, path: Path) -> pa.Table:
    """Their answer without records that lost to a row from before the window, which a snapshot has.

    Apache Hudi drops older rows (0.15: row groups) before it merges, so that late records are given which lost to them.
    """
    keys = ["_hoodie_partition_path", "_hoodie_record_key"]
    given = {tuple(r.values()) for r in mine.select(keys).to_pylist()}
    now = HudiTable.open(str(path)).read(columns=[*keys, "_hoodie_commit_time"]).to_arrow().to_pylist()
    times = {(r[keys[0]], r[keys[1]]): r["_hoodie_commit_time"] for r in now}
    kept = []
    for r in theirs.select([*keys, "_hoodie_commit_time"]).to_pylist():
        key = (r[keys[0]], r[keys[1]])
        kept.append(key in given or key not in times or times[key] >= r["_hoodie_commit_time"])
    return theirs.filter(pa.array(kept, pa.bool_()))


def _nested(feed: pa.Table) -> set[str]:
    """Columns that are objects or lists in some image of a change feed.

    Apache Hudi writes those of some images as objects of the JVM, decimals as `{"zero":false}`.
    """
    images = [
        json.loads(v) for r in feed.to_pylist() for v in (r.get("before"), r.get("after")) if v is not None
    ]
    return {k for image in images if image for k, v in image.items() if isinstance(v, dict | list)}


def _comparable(feed: pa.Table, nested: set[str]) -> pa.Table:
    """A change feed whose images are JSON in one form, without some columns."""
    rows = feed.to_pylist()
    for row in rows:
        for name in ("before", "after"):
            if row.get(name) is not None:
                image = json.loads(row[name])
                if image is None:  # both write a null of an inserted row as this text
                    continue
                flat = {k: v for k, v in image.items() if k not in nested and "decimal" not in k}
                row[name] = json.dumps(flat, sort_keys=True)
    return pa.Table.from_pylist(rows, feed.schema) if feed.num_columns else feed


def main() -> int:
    version, first, last, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    bad = 0
    with ApacheHudi(version) as apache:
        for seed in range(first, last):
            history, path = History(version, seed), folder / f"{version}_{seed}"
            try:
                history.write(apache, path)
            except SparkProcessError as e:
                print(f"{history}\n  Apache Hudi cannot write: {str(e)[:300]}", flush=True)
                if not (path / ".hoodie" / "hoodie.properties").exists():
                    continue
            found = compare(history, apache, path)
            print(f"{seed}: {dict(Counter(o.kind for o in found))}", flush=True)
            wrong = [o for o in found if o.kind in WRONG]
            bad += bool(wrong)
            if wrong:
                print(history)
            for o in wrong + [o for o in found if o.kind == APACHE_FAILS][:1]:
                print(f"  {o.kind}: {o.name}: {o.message[:1500]}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
