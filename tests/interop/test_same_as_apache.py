"""The same writes through Apache Hudi 0.15.0 and through us leave the same rows, keys and partition paths.

Two tables start empty; every step goes to both with the same options.  What is compared: all data columns,
`_hoodie_record_key` and `_hoodie_partition_path`.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours
from interop.rows import assert_same_rows

WRITE = "hoodie.datasource.write."
PAYLOAD = WRITE + "payload.class"
EVENT_TIME = {
    PAYLOAD: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.payload.ordering.field": "ts",
    "hoodie.payload.event.time.field": "ts",
}
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
}


@dataclass(frozen=True)
class Case:
    """Steps `(operation, rows)` with options that hold for all of them."""

    name: str
    steps: list[tuple[str, pa.Table]]
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def rows(*values, **extra):
    """Rows of (id, p, ts, v)."""
    columns = list(zip(*values, strict=True))
    types = [pa.string(), pa.string(), pa.int64(), pa.string()]
    names = ["id", "p", "ts", "v"]
    made = {n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)}
    return pa.table(made | extra)


def deletes(flags):
    return {"_hoodie_is_deleted": pa.array(flags, pa.bool_())}


FIRST = rows(*[(f"k{i}", f"p{i % 2}", 10, f"old{i}") for i in range(8)])
TWICE = rows(
    ("k1", "p1", 12, "newer"), ("k1", "p1", 11, "older"), ("k2", "p0", 11, "a"), ("k2", "p0", 11, "b"),
    ("new", "p0", 1, "x"), ("new", "p0", 2, "y"),
)  # fmt: skip
LATE = rows(
    ("k1", "p1", 9, "late"), ("k3", "p1", 10, "tie"), ("k5", "p1", 11, "newer"), ("k0", "p0", 9, "late"),
    ("k9", "p1", 1, "new"),
)  # fmt: skip
MOVED = rows(("k1", "p0", 20, "in another partition"))
GONE = rows(("k1", "p1", 10, ""), ("k2", "p0", 1, ""), ("unknown", "p0", 1, ""), ("k3", "elsewhere", 1, ""))
FLAGGED_FIRST = rows(*[(f"k{i}", f"p{i % 2}", 10, f"old{i}") for i in range(8)], **deletes([False] * 8))
FLAGGED = rows(
    ("k1", "p1", 11, "gone"), ("k2", "p0", 9, "late and gone"), ("k3", "p1", 11, "stays"),
    ("k4", "p0", 11, "null flag"), ("new", "p0", 1, "never there"),
    **deletes([True, True, False, None, True]),
)  # fmt: skip

# Apache Hudi has two ways through bulk_insert.  The row writer, its default, keeps rows that are flagged as
# deleted, and of two records with one ordering value it takes the first; the other way, like all operations
# and like us, drops the former and takes the last.
RECORD_PATH = {WRITE + "row.writer.enable": "false"}

UNIQUE = rows(("k1", "p1", 12, "n1"), ("z", "p0", 1, "n2"), ("k2", "p0", 9, "n3"))

CASES = [
    Case("upsert with a key twice", [("upsert", FIRST), ("upsert", TWICE)]),
    Case("upsert into an empty table with a key twice", [("upsert", TWICE)]),
    Case("late records overwrite", [("insert", FIRST), ("upsert", LATE)]),
    Case("late records lose by event time", [("insert", FIRST), ("upsert", LATE)], EVENT_TIME),
    Case("a key twice by event time", [("insert", FIRST), ("upsert", TWICE)], EVENT_TIME),
    Case("a key in another partition is another record", [("insert", FIRST), ("upsert", MOVED)]),
    Case("delete", [("insert", FIRST), ("delete", GONE)]),
    Case("delete by event time", [("insert", FIRST), ("delete", GONE)], EVENT_TIME),
    Case("delete and insert again", [("insert", FIRST), ("delete", GONE), ("upsert", TWICE)]),
    Case("flagged deletes", [("insert", FLAGGED_FIRST), ("upsert", FLAGGED)]),
    Case("flagged deletes by event time", [("insert", FLAGGED_FIRST), ("upsert", FLAGGED)], EVENT_TIME),
    Case("flagged rows in an insert", [("insert", FLAGGED)]),
    Case("flagged rows in a bulk_insert", [("bulk_insert", FLAGGED)], RECORD_PATH),
    Case("insert of keys that are there", [("insert", FIRST), ("insert", UNIQUE)]),
    Case("insert of a key twice", [("insert", TWICE)]),
    Case("insert of a key twice, combined", [("insert", TWICE)], {"hoodie.combine.before.insert": "true"}),
    Case(
        "insert of keys that are there, duplicates not allowed",
        [("insert", FIRST), ("insert", UNIQUE)],
        {"hoodie.merge.allow.duplicate.on.inserts": "false"},
    ),
    Case("bulk_insert of keys that are there", [("bulk_insert", FIRST), ("bulk_insert", TWICE)]),
    Case(
        "bulk_insert, combined",
        [("bulk_insert", TWICE)],
        {"hoodie.combine.before.insert": "true", **RECORD_PATH},
    ),
    Case("insert_overwrite with a key twice", [("insert", FIRST), ("insert_overwrite", TWICE)]),
    Case("insert_overwrite_table", [("insert", FIRST), ("insert_overwrite_table", UNIQUE)]),
    Case("an ordering field of text", [("insert", FIRST), ("upsert", TWICE)], {WRITE + "precombine.field": "v"}),
    Case("upsert not combined", [("insert", FIRST), ("upsert", UNIQUE)], {"hoodie.combine.before.upsert": "false"}),
]  # fmt: skip


def typed(name, key, partition, **options):
    """A case whose keys and partition values have other types than text."""
    n = len(key)
    table = pa.table({"id": key, "p": partition, "ts": pa.array(range(n), pa.int64()), "v": ["x"] * n})
    newer = table.set_column(3, "v", pa.array(["y"] * n)).slice(1)
    return Case(
        name, [("insert", table), ("upsert", newer)], {k.replace("__", "."): v for k, v in options.items()}
    )


DATES = pa.array([date(2024, 2, 29), date(1969, 12, 31), None], pa.date32())
TIMES = pa.array([datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 1, 1, tzinfo=UTC),
                  datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))  # fmt: skip
TEXT = pa.array(["a", "b", "c"])
COMPLEX = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
CASES += [
    typed("keys of int", pa.array([1, -2, 3], pa.int32()), TEXT),
    typed("keys of bigint", pa.array([1, -(2**63), 2**63 - 1], pa.int64()), TEXT),
    typed("keys of double", pa.array([1.0, -0.5, 1e22]), TEXT),
    typed("keys of float", pa.array([1.0, 0.1, 1e10], pa.float32()), TEXT),
    typed("keys of boolean", pa.array([True, False]), pa.array(["a", "b"])),
    typed("keys of date", pa.array([date(2024, 2, 29), date(1969, 12, 31)]), pa.array(["a", "b"])),
    typed("keys of timestamp", TIMES, TEXT),
    typed("keys of decimal", pa.array([Decimal("1.50"), Decimal("-2.00"), Decimal("0.01")]), TEXT),
    typed("keys of text that needs care", pa.array(["a:b", "c,d", "é\U0001f6b2"]), TEXT),
    typed("partitions of int", TEXT, pa.array([1, -2, None], pa.int32())),
    typed("partitions of bigint", TEXT, pa.array([1, 2**40, 3], pa.int64())),
    typed("partitions of date", TEXT, DATES),
    typed("partitions of boolean", TEXT, pa.array([True, False, None])),
    typed("partitions of text, null and empty", TEXT, pa.array(["x", None, ""])),
    typed("partitions of text, Hive style", TEXT, pa.array(["x", None, ""]),
          hoodie__datasource__write__hive_style_partitioning="true"),
    typed("partitions of text, URL encoded", TEXT, pa.array(["x y", "a/b", "100%"]),
          hoodie__datasource__write__partitionpath__urlencode="true"),
]  # fmt: skip


def _key_parts():
    table = pa.table(
        {
            "id": pa.array([1, 1, 2], pa.int64()),
            "k2": pa.array(["a", None, ""]),
            "p": pa.array(["x", "x", "y"]),
            "p2": pa.array([1, 2, None], pa.int32()),
            "ts": pa.array([1, 1, 1], pa.int64()),
            "v": ["1", "2", "3"],
        }
    )
    options = COMPLEX | {WRITE + "recordkey.field": "id,k2", WRITE + "partitionpath.field": "p,p2"}
    newer = table.set_column(5, "v", pa.array(["4", "5", "6"]))
    one = COMPLEX | {WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "p,p2"}
    return [
        Case("complex keys with null and empty parts", [("insert", table), ("upsert", newer)], options),
        Case("the complex generator with one key", [("insert", table), ("upsert", newer)], one),
        Case("no generator, two keys", [("insert", table), ("upsert", newer)],
             {k: v for k, v in options.items() if "keygenerator" not in k}),
    ]  # fmt: skip


def _evolution():
    wider = rows(("k1", "p1", 12, "n1"), ("z", "p0", 1, "n2"), extra=pa.array([1, None], pa.int32()))
    longer = rows(("k2", "p0", 12, "n1"), extra=pa.array([2**40], pa.int64()))
    nested = pa.struct([("a", pa.int32())])
    more = pa.struct([("a", pa.int64()), ("b", pa.string())])
    s1 = rows(("k1", "p1", 1, "a"), ("k2", "p1", 1, "b"), s=pa.array([{"a": 1}, None], nested))
    s2 = rows(("k1", "p1", 2, "c"), s=pa.array([{"a": 2**40, "b": "x"}], more))
    return [
        Case("a new column", [("insert", FIRST), ("upsert", wider)]),
        Case("an int column becomes bigint", [("insert", FIRST), ("upsert", wider), ("upsert", longer)]),
        Case("a new column by insert", [("insert", FIRST), ("insert", wider)]),
        Case("a nested field is added and widened", [("insert", s1), ("upsert", s2)]),
    ]


CASES += _key_parts() + _evolution()


def _ours(path, steps, options):
    for operation, table in steps:
        own = {"hudi.partition.null.texts": "write", "hudi.write.types": "data"}
        given = {**options, WRITE + "operation": operation, **own}
        execute(LocalEngine(), open_storage(str(path)), table, given)


def _apache(apache, path, steps, options):
    for operation, table in steps:
        apache.write(path, table, {**options, WRITE + "operation": operation})


def _compared(table):
    names = [n for n in table.column_names if not n.startswith("_hoodie_")]
    flag = ["_hoodie_is_deleted"] if "_hoodie_is_deleted" in table.column_names else []
    return table.select(["_hoodie_record_key", "_hoodie_partition_path", *names, *flag])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_writes_leave_the_same_rows(tmp_path, apache, case):
    options = {**BASE, **case.options}
    _apache(apache, tmp_path / "theirs", case.steps, {**options, "hoodie.metadata.enable": "false"})
    _ours(tmp_path / "ours", case.steps, options)
    want = _compared(apache.read(tmp_path / "theirs"))
    assert_same_rows(_compared(ours.read(tmp_path / "theirs")), want, ["id"])
    assert_same_rows(_compared(apache.read(tmp_path / "ours")), want, ["id"])
    assert_same_rows(_compared(ours.read(tmp_path / "ours")), want, ["id"])
