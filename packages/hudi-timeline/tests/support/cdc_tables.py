"""Tables whose changes are logged, random writes to them, and what their change feeds must lead to."""

import random
from collections import Counter

import pyarrow as pa

from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
ENABLED, MODE = "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode"
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(*given):
    made = [{"k": k, "p": p, "ts": ts, "v": v, **more} for k, p, ts, v, more in given]
    return pa.Table.from_pylist([{"_hoodie_is_deleted": False, **r} for r in made], schema=SCHEMA)


def make(path, mode="DATA_BEFORE_AFTER", *, table_type="COPY_ON_WRITE", **options):
    given = {ENABLED: "true", MODE: mode, **options} if mode else options
    return HudiTable.create(
        path, SCHEMA, name="t", table_type=table_type, record_keys=["k"], partition_fields=["p"],
        ordering_fields=["ts"], options=given,
    )  # fmt: skip


def counted(values):
    return Counter(repr(v) for v in values)


def state(table):
    found = table.read(columns=SCHEMA.names).to_arrow()
    return counted(found.to_pylist())


def changes(table, begin, end=None):
    return table.read_changes(begin, end, images="struct").to_arrow().to_pylist()


def applied(before, found):
    """The state after changes, each of which must fit the state before it."""
    after = before.copy()
    for change in found:
        kind, old, new = change["op"], change["before"], change["after"]
        assert (old is None, new is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[
            kind
        ]
        if old is not None:
            assert after[repr(old)] > 0, change
            after[repr(old)] -= 1
        if new is not None:
            after[repr(new)] += 1
    return +after


class Writes:
    """Random writes to a table of few keys."""

    def __init__(self, table, seed, options):
        self.table, self.random, self.options = table, random.Random(seed), options
        self.fresh = 0

    def row(self, *, key, deletes=0.0):
        r = self.random
        more = {"n": None if r.random() < 0.3 else {"x": r.randrange(9), "y": [str(r.randrange(9)), ""]}}
        if r.random() < deletes:
            more["_hoodie_is_deleted"] = True
        v = None if r.random() < 0.3 else str(r.randrange(1000))
        # The partition follows from the key: an index within partitions takes a key in two of them for two records.
        return key, "ab"[len(key) % 2 ^ int(key[1:]) % 2], r.randrange(10), v, more

    def some(self, **how):
        """Rows of known and new keys; of each key one, because the shortest mode logs no more than keys."""
        keys = self.random.sample(range(8), self.random.randrange(1, 6))
        return rows(*(self.row(key=f"k{n}", **how) for n in keys))

    def new(self):
        self.fresh += 3
        return rows(*(self.row(key=f"k{100 + self.fresh + n}") for n in range(3)))

    def step(self):
        t, o = self.table, self.options
        act = self.random.choice(
            [
                lambda: t.upsert(self.some(), options=o),
                lambda: t.upsert(self.some(deletes=0.5), options=o),
                lambda: t.upsert(self.some(deletes=1), options=o),
                lambda: t.insert(self.new(), options=o),
                lambda: t.insert(
                    self.new(), options={**o, "hoodie.merge.allow.duplicate.on.inserts": "false"}
                ),
                lambda: t.delete(self.some(), options=QUIET),
                lambda: t.delete("ts > 6", options=QUIET),
                lambda: t.insert_overwrite(self.new(), options=o),
                lambda: t.insert_overwrite_table(self.some(), options=o),
                lambda: t.delete_partitions(["a"], options=QUIET),
                lambda: t.bulk_insert(self.new(), options=o),
            ]
        )
        return act()


def cdc_files(table):
    folders = ("a", "b")
    return sorted(f"{p}/{e.name}" for p in folders for e in table._storage.list(p) if e.name.endswith(".cdc"))
