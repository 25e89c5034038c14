"""Random operations and services on a table, beside a plain model of its rows in memory.

    work = Workload(path, seed, CASES["buckets"], steps=100)
    work.run(100)

After each step each kind of query must answer what the model holds: the newest state, every state that is still there,
the rows of a range of commits, what changed in it, and base files alone (of which each row must be one that the table
once held; without logs they hold the newest state).  A subclass may do the operations and queries with another engine.
"""

import json
import random
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_format.errors import (
    ConcurrentWriterError,
    InstantNotFoundError,
    MissingFileError,
    OptionError,
    UnsupportedError,
)
from hudi_timeline import HudiTable, table_config
from hudi_timeline.reading.metadata_listing import differences

FIELDS = [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())]
TYPES = {"int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
WIDER = {"int": ("long", "double"), "long": ("double",)}
NAMES = ("v", "x0", "x1", "x2", "x3")
KEYS, PARTITIONS = 60, ("a", "b", "c/d")
SERVICES = {
    "hudi.durability": "none",  # nothing here outlives the process
    "hoodie.cleaner.commits.retained": "4",
    "hoodie.keep.min.commits": "6",
    "hoodie.keep.max.commits": "8",
}
LISTED = {"hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "4"}
MERGED = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "3"}
CHANGES = {
    "hoodie.table.cdc.enabled": "true",
    "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
}
TWO = {"hoodie.log.compaction.blocks.threshold": "2"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
RINGS = {
    **BUCKETS,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.max.num.buckets": "12",
}
COPIES = {"hoodie.table.type": "COPY_ON_WRITE"}
# Kept of the table, not given by each write.
MADE_WITH = {*CHANGES, *BUCKETS, "hoodie.index.bucket.engine", *COPIES}
INDEXES = ("column_stats", "bloom_filters", "record_index")
BY_INDEXES = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
CASES = {
    "simple": {},
    "logs": {"hoodie.parquet.small.file.limit": "0", **LISTED, **MERGED},
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.logfile.data.block.format": "parquet", **CHANGES},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.parquet.small.file.limit": "0", **LISTED},
    "buckets": {**BUCKETS, **CHANGES},
    "rings": {**RINGS, **MERGED},
}
BY_KEY = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true", **LISTED}
SPLITS = {**RINGS, "hoodie.index.bucket.engine": "EXTENDIBLE_HASHING"}
COUNTED = {**LISTED, "hoodie.metadata.index.column.stats.enable": "true"}
# The other indexes, and buckets that move beside the indexes of the metadata table.
MORE_CASES = {
    "records": BY_KEY,
    "records in logs": {
        **BY_KEY, **MERGED, **COUNTED, "hoodie.parquet.small.file.limit": "0",
    },
    "splits": {**SPLITS, **LISTED},
    "splits in logs": {**SPLITS, **MERGED, **CHANGES},
    "global bloom": {
        "hoodie.index.type": "GLOBAL_BLOOM", **LISTED, "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.bloom.index.use.metadata": "true",
    },
    "in memory": {"hoodie.index.type": "INMEMORY", **MERGED},
    "rings with indexes": {**RINGS, **COUNTED},
    "buckets with indexes": {**BUCKETS, **COUNTED, "hoodie.metadata.record.index.enable": "true"},
}  # fmt: skip
# Tables without logs; there are no rings in them.
COPIED_CASES = {
    "simple, copied": COPIES,
    "bloom, copied": {**COPIES, **CASES["bloom"]},
    "global, copied": {**COPIES, **CASES["global"]},
    "buckets, copied": {**COPIES, **CASES["buckets"]},
    "records, copied": {**COPIES, **BY_KEY, **CHANGES},
    "splits, copied": {**COPIES, **SPLITS, **LISTED},
    "global bloom, copied": {**COPIES, **MORE_CASES["global bloom"]},
    "in memory, copied": {**COPIES, "hoodie.index.type": "INMEMORY", **CHANGES},
    "buckets with indexes, copied": {**COPIES, **MORE_CASES["buckets with indexes"]},
}
KINDS = (
    "upsert", "upsert", "upsert", "upsert", "insert", "bulk_insert", "delete", "delete", "delete_where",
    "insert_overwrite", "delete_partitions", "savepoint", "restore", "rollback", "add_column", "log_compact", "alter",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """What a commit leaves.

    Attributes:
        rows: by key, each with the commit that wrote it last; values of columns by what the columns are, not by name.
        columns: name and type of each column but those of `FIELDS`.
        buckets: how many a table with the engine SIMPLE has.
    """

    rows: dict
    columns: dict
    buckets: int = 2

    def shown(self, rows):
        """Rows with the columns that there are, by name."""
        names = {n: n for n, _ in FIELDS} | {c: name for c, (name, _) in self.columns.items()}
        return [{names[c]: v for c, v in r.items() if c in names} for r in rows]

    def all_shown(self):
        return self.shown(r for r, _ in self.rows.values())


@dataclass
class Model:
    """The newest state, and that after each commit."""

    rows: dict = field(default_factory=dict)
    columns: dict = field(default_factory=lambda: {0: ("v", "double")})
    buckets: int = 2
    states: dict = field(default_factory=dict)  # by instant
    ever: list = field(default_factory=list)
    savepoints: list = field(default_factory=list)

    @property
    def now(self):
        return State(dict(self.rows), dict(self.columns), self.buckets)

    def put(self, batch, instant):
        for row in batch:
            self.rows[row["id"]] = (row, instant)
            self.ever.append(row)

    def committed(self, instant):
        self.states[instant] = self.now

    def back_to(self, instant):
        self.states = {i: s for i, s in self.states.items() if i <= instant}
        state = self.states[instant]
        self.rows, self.columns, self.buckets = dict(state.rows), dict(state.columns), state.buckets
        self.savepoints = [s for s in self.savepoints if s <= instant]


def as_set(found):
    return sorted(tuple(sorted((k, v) for k, v in r.items() if v is not None)) for r in found)


class Workload:
    """A table and its model, taken from one random step to the next."""

    def __init__(self, path, seed, options, steps, *, every=5):
        """Table at a path.

        Args:
            steps: how many are going to be taken.
            every: so many steps lie between two answers of the queries of older states and of changes.
        """
        self.steps, self.every = steps, every
        self.draw = random.Random(seed)
        self.made_with = {k: v for k, v in options.items() if k in MADE_WITH}
        self.given = options
        self.is_copied = COPIES.items() <= options.items()
        self.options = {
            **SERVICES,
            **{k: v for k, v in options.items() if k not in MADE_WITH - CHANGES.keys()},
        }
        self.table = HudiTable.create(
            str(path), pa.schema([*FIELDS, ("v", pa.float64())]), name="t",
            table_type="COPY_ON_WRITE" if self.is_copied else "MERGE_ON_READ",
            record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
            options={k: v for k, v in self.made_with.items() if k not in COPIES},
        )  # fmt: skip
        self.model = Model()
        self.home = {}
        self.clock = 0
        self.column = 0  # the last one made
        # Of a table whose columns were changed no buckets are resized.
        self.unaltered = steps // 2 if BUCKETS.items() <= options.items() else 0
        self.done = []
        self.kinds = [*KINDS, *(["index"] if LISTED.items() <= options.items() else ["log_compact"])]
        self.kinds = [k for k in self.kinds if k != "log_compact" or not self.is_copied]
        self.kinds += ["resize"] * (BUCKETS.items() <= options.items())
        self.travelled = self.listed = self.held_up = 0
        self.merged = self.told = self.altered = self.built = self.resized = 0

    def fresh(self, ids):
        out = []
        for key in ids:
            self.clock += 1
            row = {"id": key, "p": self.home.setdefault(key, self.draw.choice(PARTITIONS)), "ts": self.clock}
            for column, (_, kind) in self.model.columns.items():
                row[column] = self.draw.random() if kind == "double" else self.clock
            out.append(row)
        return out

    def arrow(self, batch):
        fields = [*FIELDS, *((name, TYPES[kind]) for name, kind in self.model.columns.values())]
        return pa.Table.from_pylist(self.model.now.shown(batch), schema=pa.schema(fields))

    def free_name(self):
        taken = {name for name, _ in self.model.columns.values()}
        return self.draw.choice([n for n in NAMES if n not in taken])

    def known(self, n):
        there = sorted(self.model.rows)
        return self.draw.sample(there, min(n, len(there)))

    def run(self, *, every_kind=True):
        """All steps; with `every_kind` such as were drawn in vain again, until each kind of them was done."""
        try:
            for _ in range(self.steps):
                self.step()
            if every_kind:
                self.take_left_out()
                self.check_kinds()
            assert self.travelled > self.steps // (2 * self.every)
            assert [f for f in self.table.verify(deep=True) if f.severity == "error"] == []
        except BaseException as e:
            e.add_note(f"steps: {' '.join(self.done)}")
            raise

    def check_kinds(self):
        is_listed, is_bucketed = (kind.items() <= self.given.items() for kind in (LISTED, BUCKETS))
        assert self.merged or self.is_copied
        assert self.altered
        assert self.told > self.steps * 5 // self.every or CHANGES.keys() - self.given.keys()
        assert self.listed > (self.steps - self.held_up) * 3 // 4 or not is_listed
        # Where options ask for them, writes make indexes.
        assert self.built or not is_listed or "hoodie.metadata.record.index.enable" in self.given
        assert self.resized or not is_bucketed

    def step(self):
        kind = self.draw.choice(self.kinds) if self.model.rows else "upsert"
        if kind == "alter" and len(self.done) < self.unaltered:
            kind = "upsert"
        self.take(kind)

    def take(self, kind):
        self.done.append(kind)
        getattr(self, kind)()
        self.check()

    def take_left_out(self):
        """Steps of the kinds that were drawn in vain, behind writes that they can act on."""
        for kind, count in (("log_compact", "merged"), ("alter", "altered")):
            for _ in range(20):
                if getattr(self, count) or kind not in self.kinds:
                    break
                for step in ("upsert", "upsert", kind):
                    self.take(step)

    # --- what a subclass may do with another engine

    def _write(self, kind, batch):
        return getattr(self.table, kind)(self.arrow(batch), options=self.options).instant

    def _delete(self, keys):
        return self.table.delete(keys, options=self.options).instant

    def _delete_partition(self, partition):
        return self.table.delete_partitions([partition], options=self.options, missing_ok=True).instant

    def _log_compact(self, mode, options):
        return self.table.log_compact(mode=mode, options=options)

    def _resize(self, number, options):
        return self.table.resize_buckets(number, options=options)

    def _build_index(self, chosen, mode):
        return self.table.build_index(chosen, mode=mode, options=self.options)

    def _read(self, **query):
        """Rows of a snapshot query, read-optimized or time travel, without meta columns."""
        return self.table.read(meta_columns=False, **query).to_arrow()

    def _read_incremental(self, begin, *, whole=False):
        """Rows of the commits after one; with `whole` of the table's state where those are archived."""
        more = {"on_missing": "full_scan"} if whole else {}
        return self.table.read_incremental(begin, meta_columns=False, **more).to_arrow()

    def _read_changes(self, begin):
        return self.table.read_changes(begin).to_arrow()

    # --- operations

    def upsert(self):
        # Not a set: its order changes from process to process.
        ids = dict.fromkeys(str(self.draw.randrange(KEYS)) for _ in range(self.draw.randint(1, 15)))
        batch = self.fresh(ids)
        instant = self._write("upsert", batch)
        self.model.put(batch, instant)
        self.model.committed(instant)

    def insert(self, kind="insert"):
        free = [str(k) for k in range(KEYS) if str(k) not in self.model.rows]
        if not free:
            return
        batch = self.fresh(self.draw.sample(free, self.draw.randint(1, min(5, len(free)))))
        instant = self._write(kind, batch)
        self.model.put(batch, instant)
        self.model.committed(instant)

    def bulk_insert(self):
        self.insert("bulk_insert")

    def delete(self):
        ids = [*self.known(self.draw.randint(1, 6)), str(KEYS + 1)]
        keys = [{"id": i, "p": self.home.get(i, "a")} for i in ids]
        instant = self._delete(pa.Table.from_pylist(keys))
        for i in ids:
            self.model.rows.pop(i, None)
        self.model.committed(instant)

    def delete_where(self):
        limit = self.draw.randint(max(0, self.clock - 40), self.clock)
        gone = [i for i, (r, _) in self.model.rows.items() if r["ts"] >= limit]
        instant = self.table.delete(f"ts >= {limit}", options=self.options).instant
        for i in gone:
            del self.model.rows[i]
        if instant:
            self.model.committed(instant)

    def insert_overwrite(self):
        partition = self.draw.choice(PARTITIONS)
        ids = [i for i in map(str, range(KEYS)) if self.home.setdefault(i, partition) == partition]
        batch = self.fresh(self.draw.sample(ids, min(len(ids), 4)))
        instant = self._write("insert_overwrite", batch)
        self.model.rows = {i: v for i, v in self.model.rows.items() if v[0]["p"] != partition}
        self.model.put(batch, instant)
        self.model.committed(instant)

    def delete_partitions(self):
        partition = self.draw.choice(PARTITIONS)
        try:
            instant = self._delete_partition(partition)
        except UnsupportedError:  # beside a pending compaction
            return
        self.model.rows = {i: v for i, v in self.model.rows.items() if v[0]["p"] != partition}
        self.model.committed(instant)

    def savepoint(self):
        newest = max(self.model.states)
        if newest not in self.model.savepoints:
            self.table.savepoint(newest)
            self.model.savepoints.append(newest)
        if len(self.model.savepoints) > 2:
            self.table.delete_savepoint(self.model.savepoints.pop(0))

    def restore(self):
        if not self.model.savepoints:
            return
        back = self.model.savepoints[-1]
        self.table.restore(back)
        self.model.back_to(back)
        # What was restored had not been cleaned; the savepoint itself stays.

    def rollback(self):
        newest = max(self.model.states)
        earlier = [i for i in self.model.states if i < newest]
        if newest in self.model.savepoints or not earlier:
            return
        try:
            self.table.rollback(newest)
        except (UnsupportedError, OptionError):  # something stands on it
            return
        self.model.back_to(max(earlier))

    def add_column(self):
        """By a write; perhaps of a name that another column had."""
        if len(self.model.columns) < len(NAMES) - 1:
            self.column += 1
            self.model.columns[self.column] = (self.free_name(), "long")
            self.upsert()

    def alter(self):
        """One to three changes of columns in one commit."""
        change, columns = self.table.alter(), dict(self.model.columns)
        # Logged images of changes have the names of their time.
        kinds = ["add", "widen", "move"] + ["rename", "drop"] * (
            CHANGES.keys() - self.options.keys() != set()
        )
        for _ in range(self.draw.randint(1, 3)):
            kind, column = self.draw.choice(kinds), self.draw.choice(list(columns))
            name, stored = columns[column]
            free = [n for n in NAMES if n not in {c for c, _ in columns.values()}]
            if kind == "add" and len(columns) < len(NAMES) - 1:
                self.column += 1
                columns[self.column] = (self.draw.choice(free), self.draw.choice(list(TYPES)))
                change.add(*columns[self.column], after=self.draw.choice([None, "p", name]))
            elif kind == "widen" and stored in WIDER:
                columns[column] = (name, self.draw.choice(WIDER[stored]))
                change.widen(*columns[column])
            elif kind == "move":
                change.move(name, after=self.draw.choice(["id", "p", "ts"]))
            elif kind == "rename" and free:
                columns[column] = (self.draw.choice(free), stored)
                change.rename(name, columns[column][0])
            elif kind == "drop" and len(columns) > 1:
                change.drop(name)
                del columns[column]
        try:
            instant = change.execute().instant
        except UnsupportedError:
            if not self.is_planned:
                raise
            return
        self.model.columns = columns
        if instant:
            self.model.committed(instant)
            self.altered += 1

    @property
    def is_planned(self):
        """Whether a compaction of either kind is pending."""
        timeline = self.table.timeline
        return bool(timeline.pending("compaction") or timeline.pending("logcompaction"))

    def index(self):
        """An index built, planned, or dropped."""
        chosen = self.draw.sample(INDEXES, self.draw.randint(1, 2))
        mode = self.draw.choice(
            ("schedule", "execute", "schedule_and_execute", "schedule_and_execute", "drop")
        )
        if mode == "drop":
            there = table_config.load(self.table.storage).metadata_partitions
            chosen = [p for p in chosen if p in there]
            if chosen:
                assert {*chosen} <= {*self.table.drop_index(chosen, options=self.options).dropped}
        else:
            self.build(chosen if mode != "execute" else (), mode)

    def build(self, chosen, mode, tries=3):
        """Build indexes; where a restore dropped the metadata table, plans from before it go first."""
        try:
            result = self._build_index(chosen, mode)
        except ConcurrentWriterError as e:
            if not tries:
                raise
            if e.instant in {i.time for i in self.table.timeline.pending("indexing")}:
                chosen, mode = (), "execute"  # which makes the metadata table too
            else:
                self.compact_logs("execute")
            self.build(chosen, mode, tries - 1)
        else:
            self.built += len(result.built)

    def resize(self):
        options = {**self.options, "hoodie.parquet.max.file.size": self.draw.choice(("1", "1000000"))}
        number = None
        if "hoodie.index.bucket.engine" not in self.made_with:
            if self.model.buckets > 8:
                return
            number = 2 * self.model.buckets
        try:
            done = self._resize(number, options)
        except UnsupportedError:
            if not self.is_planned and not self.altered:
                raise
            return
        if done.instant:
            self.model.buckets = number or self.model.buckets
            self.model.committed(done.instant)
            self.resized += 1

    def log_compact(self):
        # What is only scheduled is overtaken by writes, compactions, restores ..., or executed later.
        mode = self.draw.choice(("schedule", "execute", "schedule_and_execute", "schedule_and_execute"))
        self.compact_logs(mode)

    def compact_logs(self, mode):
        self.merged += len(self._log_compact(mode, {**self.options, **TWO}).executed)

    # --- the answers

    def check(self):
        config = table_config.load(self.table.storage)
        if LISTED.items() <= self.options.items() and self.model.rows:
            # What is pending keeps a new one from being made, not one that is there from being kept.
            self.listed += bool(config.metadata_partitions)
            self.held_up += not config.metadata_partitions and bool(self.table.timeline.pending("indexing"))
        if config.metadata_partitions and not len(self.done) % 3:
            assert differences(self.table.storage) == []
        now, found = self.model.now, self._read()
        assert {*found.column_names} == {*(n for n, _ in FIELDS), *(n for n, _ in now.columns.values())}
        assert as_set(found.to_pylist()) == as_set(now.all_shown())
        if len(self.done) % self.every:
            return
        if config.metadata_partitions:
            self.check_filters(now)
        once = self._read(query="read_optimized").to_pylist()
        assert {*as_set(once)} <= {*as_set(now.shown(self.model.ever))}
        assert not self.is_copied or as_set(once) == as_set(now.all_shown())
        # The states that the cleaner has left.
        states = sorted(self.model.states)[-4:]
        for instant in self.draw.sample(states, min(2, len(states))):
            try:
                found = self._read(as_of=instant).to_pylist()
            except (InstantNotFoundError, MissingFileError):
                continue  # cleaned: a rollback takes commits away, and gives no files back
            assert as_set(found) == as_set(self.model.states[instant].all_shown()), instant
            self.travelled += 1
        begin = self.draw.choice(states)
        try:
            changes = self._read_incremental(begin)
        except InstantNotFoundError as e:  # restored to a savepoint whose successors are archived
            if e.details["oldest"] <= begin:
                raise
            changes = self._read_incremental(begin, whole=True)
        found = changes.to_pylist()
        assert as_set(found) == as_set(now.shown(r for r, i in self.model.rows.values() if i > begin)), begin
        if CHANGES.items() <= self.options.items():
            self.check_changes(begin)

    def check_filters(self, now):
        limit, key = self.draw.randint(0, self.clock), str(self.draw.randrange(KEYS))
        rows = now.all_shown()
        for text, want in (
            (f"ts >= {limit}", [r for r in rows if r["ts"] >= limit]),
            (f"id = '{key}'", [r for r in rows if r["id"] == key]),
        ):
            found = self._read(filter=text, options=BY_INDEXES)
            assert as_set(found.to_pylist()) == as_set(want), text

    def check_changes(self, begin):
        """What became of each key since `begin`: the first image of its changes, and the last."""
        try:
            changes = self._read_changes(begin).to_pylist()
        except (InstantNotFoundError, MissingFileError):  # cleaned or archived, as above
            return
        first, last = {}, {}
        # A commit that replaces file groups tells what they lose after what others gain.
        for change in sorted(changes, key=lambda c: (c["ts_ms"], c["op"] != "d")):
            before, after = (self.image(json.loads(change[n] or "null")) for n in ("before", "after"))
            assert {"i": (False, True), "u": (True, True), "d": (True, False)}[change["op"]] == (
                before is not None,
                after is not None,
            )
            key = (before or after)["id"]
            assert first.setdefault(key, before) is before or last[key] == before, key
            last[key] = after
        old, new = (
            {r["id"]: r for r in state.all_shown()} for state in (self.model.states[begin], self.model.now)
        )
        for key in {*first, *old, *new}:
            if key in first:
                assert (first[key], last[key]) == (self.image(old.get(key)), self.image(new.get(key))), key
            else:
                assert old.get(key) == new.get(key), key
        self.told += len(changes)

    @staticmethod
    def image(row):
        return row and {k: v for k, v in row.items() if v is not None and not k.startswith("_hoodie_")}
