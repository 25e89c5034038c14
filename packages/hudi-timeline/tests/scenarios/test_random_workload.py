"""Random operations and services on a table, beside a plain model of its rows in memory.

After each step each kind of query must answer what the model holds: the newest state, every state that is still there,
the rows of a range of commits, what changed in it, and base files alone (of which each row must be one that the table
once held).
"""

import json
import os
import random
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from hudi_format.errors import InstantNotFoundError, MissingFileError, OptionError, UnsupportedError
from hudi_timeline import HudiTable, table_config
from hudi_timeline.reading.metadata_listing import differences

FIELDS = [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())]
KEYS, PARTITIONS = 60, ("a", "b", "c/d")
# In CI 1,000 in all; where the metadata table is kept a step takes twice as long.
STEPS, LISTED_STEPS = (1000, 1000) if os.environ.get("HUDI_SOAK") else (400, 100)
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
KINDS = (
    "upsert", "upsert", "upsert", "upsert", "insert", "bulk_insert", "delete", "delete", "delete_where",
    "insert_overwrite", "delete_partitions", "savepoint", "restore", "rollback", "add_column", "log_compact",
    "log_compact",
)  # fmt: skip


@dataclass
class Model:
    """Rows by key, with the commit that wrote them last, after each commit."""

    rows: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)  # instant -> rows
    ever: set = field(default_factory=set)
    savepoints: list = field(default_factory=list)
    extra: tuple = ()

    def put(self, batch, instant):
        for row in batch:
            self.rows[row["id"]] = (row, instant)
            self.ever.add(tuple(sorted((k, v) for k, v in row.items() if v is not None)))

    def committed(self, instant):
        self.states[instant] = dict(self.rows)

    def back_to(self, instant):
        self.states = {i: s for i, s in self.states.items() if i <= instant}
        self.rows = dict(self.states.get(instant, {}))
        self.savepoints = [s for s in self.savepoints if s <= instant]


def as_set(found):
    return sorted(tuple(sorted((k, v) for k, v in r.items() if v is not None)) for r in found)


class Workload:
    """A table and its model, taken from one random step to the next."""

    def __init__(self, path, seed, options):
        self.draw = random.Random(seed)
        self.options = {**SERVICES, **options}
        self.table = HudiTable.create(
            str(path), pa.schema(FIELDS), name="t", table_type="MERGE_ON_READ", record_keys=["id"],
            partition_fields=["p"], ordering_fields=["ts"],
            options={k: v for k, v in options.items() if k in CHANGES},
        )  # fmt: skip
        self.model = Model()
        self.home = {}
        self.clock = 0
        self.done = []
        self.travelled = self.listed = self.merged = self.told = 0

    def fresh(self, ids):
        out = []
        for key in ids:
            self.clock += 1
            row = {"id": key, "p": self.home.setdefault(key, self.draw.choice(PARTITIONS)), "ts": self.clock,
                   "v": self.draw.random()}  # fmt: skip
            out.append(row | dict.fromkeys(self.model.extra, self.clock))
        return out

    def arrow(self, batch):
        names = [*FIELDS, *((c, pa.int64()) for c in self.model.extra)]
        return pa.Table.from_pylist(batch, schema=pa.schema(names))

    def known(self, n):
        there = sorted(self.model.rows)
        return self.draw.sample(there, min(n, len(there)))

    def step(self):
        kind = self.draw.choice(KINDS) if self.model.rows else "upsert"
        self.done.append(kind)
        getattr(self, kind)()
        self.check()

    def _write(self, kind, batch):
        result = getattr(self.table, kind)(self.arrow(batch), options=self.options)
        return result.instant

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
        instant = self.table.delete(pa.Table.from_pylist(keys), options=self.options).instant
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
            instant = self.table.delete_partitions([partition], options=self.options, missing_ok=True).instant
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
        if len(self.model.extra) < 3:
            self.model.extra = (*self.model.extra, f"x{len(self.model.extra)}")
            self.upsert()

    def log_compact(self):
        # What is only scheduled is overtaken by writes, compactions, restores ..., or executed later.
        mode = self.draw.choice(("schedule", "execute", "schedule_and_execute", "schedule_and_execute"))
        result = self.table.log_compact(mode=mode, options={**self.options, **TWO})
        self.merged += len(result.executed)

    # --- the answers

    def want(self, rows):
        return as_set(r for r, _ in rows.values())

    def check(self):
        config = table_config.load(self.table.storage)
        if LISTED.items() <= self.options.items() and self.model.rows:
            # A pending compaction keeps a new one from being made, not one that is there from being kept.
            self.listed += bool(config.metadata_partitions)
        if config.metadata_partitions and not len(self.done) % 3:
            assert differences(self.table.storage) == []
        assert as_set(self.table.read(meta_columns=False).to_arrow().to_pylist()) == self.want(
            self.model.rows
        )
        if len(self.done) % 5:
            return
        once = self.table.read(query="read_optimized", meta_columns=False).to_arrow().to_pylist()
        assert set(as_set(once)) <= self.model.ever
        # The states that the cleaner has left.
        states = sorted(self.model.states)[-4:]
        for instant in self.draw.sample(states, min(2, len(states))):
            try:
                found = self.table.read(as_of=instant, meta_columns=False).to_arrow().to_pylist()
            except InstantNotFoundError:  # cleaned: a rollback takes commits away, and gives no files back
                continue
            assert as_set(found) == self.want(self.model.states[instant]), instant
            self.travelled += 1
        begin = self.draw.choice(states)
        try:
            changes = self.table.read_incremental(begin, meta_columns=False)
        except InstantNotFoundError as e:  # restored to a savepoint whose successors are archived
            if e.details["oldest"] <= begin:
                raise
            changes = self.table.read_incremental(begin, meta_columns=False, on_missing="full_scan")
        found = changes.to_arrow().to_pylist()
        changed = {i: v for i, v in self.model.rows.items() if v[1] > begin}
        assert as_set(found) == self.want(changed), begin
        if CHANGES.items() <= self.options.items():
            self.check_changes(begin)

    def check_changes(self, begin):
        """What became of each key since `begin`: the first image of its changes, and the last."""
        try:
            changes = self.table.read_changes(begin).to_arrow().to_pylist()
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
            {k: r for k, (r, _) in rows.items()} for rows in (self.model.states[begin], self.model.rows)
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


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, {}),
        (2, {"hoodie.parquet.small.file.limit": "0", **LISTED, **MERGED}),
        (3, {"hoodie.index.type": "BLOOM", "hoodie.logfile.data.block.format": "parquet", **CHANGES}),
        (4, {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.parquet.small.file.limit": "0", **LISTED}),
    ],
    ids=["simple", "logs", "bloom", "global"],
)
def test_a_random_workload_agrees_with_the_model(tmp_path, seed, options):
    work = Workload(tmp_path / "t", int(os.environ.get("HUDI_SEED", seed)), options)
    steps = LISTED_STEPS if LISTED.items() <= options.items() else STEPS
    for _ in range(steps):
        try:
            work.step()
        except BaseException as e:
            e.add_note(f"steps: {' '.join(work.done)}")
            raise
    assert work.travelled > steps // 10
    assert work.merged
    assert work.told > steps or CHANGES.keys() - options.keys()
    assert work.listed > steps * 3 // 4 or LISTED.keys() - options.keys()
    assert [f for f in work.table.verify() if f.severity == "error"] == []
