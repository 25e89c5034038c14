"""Random writes, services and resizes of bucket indexes, beside a plain model of the rows in memory.

After each step the table holds what the model does, each key stands in the one bucket of its hash, and look-ups by key
agree, also as of the states before.
"""

import os
import random

import pyarrow as pa
import pytest

from hudi_format.errors import InstantNotFoundError
from hudi_timeline import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
PARTITIONS = ("a", "b", "c/d")
STEPS = 400 if os.environ.get("HUDI_SOAK") else 30
KEEP = {
    "hoodie.cleaner.commits.retained": "5",
    "hoodie.keep.min.commits": "7",
    "hoodie.keep.max.commits": "9",
    "hoodie.index.bloom.num_entries": "100",
}
ENGINES = ("SIMPLE", "EXTENDIBLE_HASHING", "CONSISTENT_HASHING")
STEP_KINDS = (
    "upsert", "upsert", "upsert", "delete", "insert_overwrite", "delete_partition", "compact", "resize", "resize",
    "restore", "rollback",
)  # fmt: skip


class Workload:
    """A table, and its rows by partition and key, after each instant."""

    def __init__(self, path, engine, kind, listed):
        self.draw = random.Random(f"{engine} {kind}")
        self.engine, self.kind = engine, kind
        self.options = {**KEEP, **({"hoodie.metadata.enable": "true"} if listed else {})}
        self.rows, self.states, self.saved, self.clock, self.number = {}, {}, None, 0, 2
        self.resized = self.travelled = 0
        made = {
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.index.bucket.engine": engine,
        }
        self.table = HudiTable.create(
            path, SCHEMA, name="t", table_type=kind, record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
            options=made,
        )  # fmt: skip

    def batch(self, count=25, partition=None):
        self.clock += 1
        keys = {
            (partition or self.draw.choice(PARTITIONS), f"k{self.draw.randrange(80)}") for _ in range(count)
        }
        return [{"id": i, "p": p, "ts": self.clock} for p, i in sorted(keys)]

    def upsert(self):
        batch = self.batch()
        self.rows |= {(r["p"], r["id"]): r["ts"] for r in batch}
        return self.table.upsert(pa.Table.from_pylist(batch, SCHEMA), options=self.options)

    def delete(self):
        gone = self.draw.sample(sorted(self.rows), min(6, len(self.rows)))
        self.rows = {k: v for k, v in self.rows.items() if k not in gone}
        return self.table.delete(
            pa.Table.from_pylist([{"id": i, "p": p} for p, i in gone]), options=self.options
        )

    def insert_overwrite(self):
        partition = self.draw.choice(PARTITIONS)
        batch = self.batch(15, partition)
        self.rows = {k: v for k, v in self.rows.items() if k[0] != partition}
        self.rows |= {(r["p"], r["id"]): r["ts"] for r in batch}
        return self.table.insert_overwrite(pa.Table.from_pylist(batch, SCHEMA), options=self.options)

    def delete_partition(self):
        there = sorted({p for p, _ in self.rows})
        if len(there) < 2:
            return None
        self.rows = {k: v for k, v in self.rows.items() if k[0] != there[0]}
        return self.table.delete_partitions([there[0]], options=self.options)

    def compact(self):
        if self.kind == "MERGE_ON_READ":
            self.table.compact(options=self.options)

    def resize(self):
        size = self.draw.choice(("1", "100", "10000", "1000000"))
        most = {"hoodie.bucket.index.max.num.buckets": "12", "hoodie.parquet.max.file.size": size}
        number, engine, partitions = None, None, None
        if self.engine == "SIMPLE":
            if self.draw.random() < 0.2:
                self.engine = engine = "EXTENDIBLE_HASHING"
            elif self.number > 20:
                return None
            else:
                self.number = number = self.number * self.draw.choice((2, 3))
        if self.engine != "SIMPLE" and self.draw.random() < 0.3:
            partitions = self.draw.sample(PARTITIONS, 2)
        given = {**self.options, **most}
        dry = self.table.resize_buckets(
            number, partitions=partitions, engine=engine, options=given, dry_run=True
        )
        done = self.table.resize_buckets(plan=dry.plan, options=given)
        assert bool(done.instant) == bool(dry.plan)
        self.resized += bool(done.instant)
        return done if done.instant else None

    def restore(self):
        if self.saved is None:
            state = (self.table.savepoint(), dict(self.rows), self.engine, self.number)
            self.saved = state
            return
        instant, self.rows, self.engine, self.number = self.saved
        self.table.restore(instant)
        self.table.delete_savepoint(instant)
        self.states = {i: s for i, s in self.states.items() if i <= instant}
        self.saved = None

    def rollback(self):
        """Of a resize that was just done."""
        before = (self.engine, self.number)
        done = self.resize()
        if done is not None:
            self.table.rollback(done.instant)
            self.engine, self.number = before

    def step(self):
        kind = self.draw.choice(STEP_KINDS) if self.rows else "upsert"
        result = getattr(self, kind)()
        if getattr(result, "instant", ""):
            self.states[result.instant] = dict(self.rows)
        self.check(kind)

    def read(self, **how):
        found = self.table.read(["p", "id", "ts"], options=self.options, meta_columns=False, **how).to_arrow()
        columns = (found[n].to_pylist() for n in ("p", "id", "ts"))
        pairs = [((p, i), ts) for p, i, ts in zip(*columns, strict=True)]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    def check(self, kind):
        assert self.read() == self.rows, kind
        assert self.table.verify() == [], kind
        for at in (None, *self.draw.sample(sorted(self.states)[-4:], min(2, len(self.states)))):
            want = self.rows if at is None else self.states[at]
            key = f"k{self.draw.randrange(80)}"
            try:
                found = self.read(filter=f"id = '{key}'", as_of=at)
            except InstantNotFoundError:
                assert at is not None
                continue
            self.travelled += at is not None
            assert found == {k: v for k, v in want.items() if k[1] == key}, (kind, at)


@pytest.mark.req("NEW-22", "IX-03")
@pytest.mark.sampled(18, values=False)
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    ("engine", "kind"),
    [(e, k) for e in ENGINES for k in ("COPY_ON_WRITE", "MERGE_ON_READ") if (e[0], k[0]) != ("C", "C")],
)
def test_every_key_stands_once_in_its_bucket_whatever_comes_between(tmp_path, engine, kind, listed):
    work = Workload(str(tmp_path / "t"), engine, kind, listed)
    for _ in range(STEPS):
        work.step()
    assert work.resized > 1
    assert work.travelled > 1
    assert work.table.verify(deep=True) == []
