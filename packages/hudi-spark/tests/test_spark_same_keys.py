"""Record keys, partition paths and ordering values of random rows are the same on both engines, for every type.

Each example is one table of many rows, so that Spark runs two jobs for it: one for the types whose texts are its own
expressions, one for those that the workers' kernels write.
"""

import random
import struct
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_format.keys import KeySpec, partition_paths, record_keys
from hudi_format.merge.keys import precombine
from hudi_format.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from hudi_spark import expressions
from hudi_spark.engine import _keyed
from hudi_timeline.engine.protocol import PrepareTask

pytestmark = pytest.mark.spark

ROWS = 1500
TEXTS = [
    "",
    "default",
    "a b",
    "a/b",
    "x=y",
    "100%",
    "%41",
    "é",
    "日本",
    "\U0001f6b2",
    "a:b,c:d",
    "__null__",
    "\t\n",
    "'",
    "\\",
]
DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    1e7,
    9999999.999,
    1e-3,
    9.999e-4,
    1e22,
    5e-324,
    1.7976931348623157e308,
    0.1,
    1 / 3,
]
_DAYS = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days


def whole(bits):
    top = 2 ** (bits - 1)
    return lambda rng: rng.choice(
        [0, 1, -1, top - 1, -top, rng.randrange(-top, top), rng.randrange(-1000, 1000)]
    )


def text(rng):
    if rng.random() < 0.5:
        return rng.choice(TEXTS)
    points = (
        rng.choice([rng.randrange(1, 0x250), rng.randrange(0x4E00, 0x4F00), 0x1F6B2])
        for _ in range(rng.randrange(6))
    )
    return "".join(map(chr, points))


def double(rng):
    bits = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
    return rng.choice([rng.choice(DOUBLES), bits if bits == bits and abs(bits) != float("inf") else 2.5,
                       rng.uniform(-1e6, 1e6)])  # fmt: skip


def decimal(precision, scale):
    top = 10**precision
    return lambda rng: Decimal(rng.choice([0, 1, -1, top - 1, rng.randrange(-top + 1, top)])).scaleb(-scale)


def moment(rng):
    day = 86_400_000_000
    return rng.choice(
        [0, -1, 1, 10**15, rng.randrange(_DAYS[0] * day, _DAYS[1] * day), rng.randrange(-day, day)]
    )


# name: type, how a value is made.
KINDS = {
    "y": (pa.int8(), whole(8)),
    "h": (pa.int16(), whole(16)),
    "i": (pa.int32(), whole(32)),
    "l": (pa.int64(), whole(64)),
    "b": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "s": (pa.string(), text),
    "z": (pa.binary(), lambda rng: rng.randbytes(rng.randrange(5))),
    "d": (pa.date32(), lambda rng: rng.choice([0, -1, *_DAYS, rng.randrange(*_DAYS)])),
    "t": (pa.timestamp("us", "UTC"), moment),
    "m": (pa.decimal128(20, 6), decimal(20, 6)),
    "w": (pa.decimal128(38, 10), decimal(38, 10)),
    "x": (pa.float64(), double),
    "f": (pa.float32(), lambda rng: float(np.float32(max(-3e38, min(3e38, double(rng)))))),
    "n": (pa.timestamp("us"), moment),
}
NATIVE = ["y", "h", "i", "l", "b", "s", "z", "d", "t", "m"]
BY_KERNELS = ["w", "x", "f", "n"]


def made(seed):
    rng = random.Random(seed)
    columns = {"one": pa.array(["1"] * ROWS)}
    for name, (kind, value) in KINDS.items():
        nulls = rng.choice([0.0, 0.1])
        columns[name] = pa.array([None if rng.random() < nulls else value(rng) for _ in range(ROWS)], kind)
    columns["row"] = pa.array(range(ROWS), pa.int64())
    return pa.table(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("same-keys")


def in_order(frame):
    rows = sorted(frame.collect(), key=lambda r: r["row"])
    return {name: [r[name] for r in rows] for name in frame.columns}


def single(table, name):
    """Keys of one field, null where the field is null or empty."""
    shown = record_keys(table, KeySpec((name, "one"), (), "COMPLEX"))
    filled = pc.invert(pc.match_substring_regex(shown, f"^{name}:(__null__|),one:1$"))
    filled = pc.and_(filled, pc.invert(pc.equal(shown, f"{name}:__empty__,one:1")))
    keys = iter(record_keys(table.filter(filled), KeySpec((name,), (), "NON_PARTITION")).to_pylist())
    return [next(keys) if yes else None for yes in filled.to_pylist()]


@pytest.mark.req("KG-03", "NEW-02", "PM-06")
@settings(max_examples=3, suppress_health_check=list(HealthCheck), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_random_rows_have_the_same_keys_paths_and_ordering_values(session, folder, to_arrow, seed):
    table = made(seed)
    file = folder / f"{seed}.parquet"
    pq.write_table(table, file)
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    frame = session.read.parquet(str(file))
    specs = {}
    for name in NATIVE:
        specs[f"key-{name}"] = expressions.record_key(KeySpec((name,), (), "NON_PARTITION"), frame.schema)
        specs[f"both-{name}"] = expressions.record_key(KeySpec((name, "one"), (), "COMPLEX"), frame.schema)
        for hive, encode in ((False, True), (True, True), (True, False)):
            spec = KeySpec(("one",), (name,), "SIMPLE", hive, encode)
            specs[f"path-{name}-{hive}-{encode}"] = expressions.partition_path(spec, frame.schema)
    # Binary partition columns have no native path, and are refused by the write.
    found = in_order(frame.select("row", *(c.alias(k) for k, c in specs.items() if c is not None)))
    for name in NATIVE:
        assert found[f"key-{name}"] == single(table, name), name
        assert (
            found[f"both-{name}"] == record_keys(table, KeySpec((name, "one"), (), "COMPLEX")).to_pylist()
        ), name
        for hive, encode in ((False, True), (True, True), (True, False)):
            if name != "z":
                spec = KeySpec(("one",), (name,), "SIMPLE", hive, encode)
                assert found[f"path-{name}-{hive}-{encode}"] == partition_paths(table, spec).to_pylist(), spec
    spec = KeySpec(("one", *BY_KERNELS), tuple(BY_KERNELS), "COMPLEX", True, True)
    task = PrepareTask(table.schema, spec, None, False)
    keyed = _keyed(frame, task).select("row", RECORD_KEY, PARTITION_PATH)
    found = in_order(keyed)
    assert found[RECORD_KEY] == record_keys(table, spec).to_pylist()
    assert found[PARTITION_PATH] == partition_paths(table, spec).to_pylist()
    # Ordering values cross as Arrow: the row that wins among all of them is the same.
    first = pa.repeat(pa.scalar("k"), ROWS)
    ordered = [n for n in KINDS if not table[n].null_count and n != "b"]
    crossed = to_arrow(frame.select("row", *ordered).orderBy("row"))
    for name in ordered:
        mine = precombine(first, table[name])
        theirs = precombine(first, crossed[name].cast(table.schema.field(name).type))
        assert mine.tolist() == theirs.tolist(), name
