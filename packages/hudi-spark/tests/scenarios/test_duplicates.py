"""Keys that stand twice, in the data or in the table: each operation, policy and index on both engines."""

import pyarrow as pa
import pytest

import hudi_spark
from hudi_format.errors import DuplicateKeyError, HudiError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
DDL = "id string, p string, ts long, v string"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
POLICY = "hoodie.datasource.insert.dup.policy"
POLICIES = {
    "none": {},
    "dropped": {WRITE + "insert.drop.duplicates": "true"},
    "drop": {POLICY: "drop"},
    "fail": {POLICY: "fail"},
    "fail-combined": {POLICY: "fail", "hoodie.combine.before.insert": "true"},
    "combined": {"hoodie.combine.before.insert": "true"},
}
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
OPERATIONS = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")
# Of one key: twice in a partition, in two partitions.
FIRST = [
    ("a", "x", 1, "a1"), ("a", "x", 2, "a2"), ("b", "x", 1, "b1"), ("b", "y", 3, "b2"), ("c", "y", 1, "c"),
]  # fmt: skip
# Known in its own partition, known in another one, new, and new in two partitions.
LATER = [
    ("a", "x", 9, "A"), ("c", "x", 9, "C"), ("d", "z", 1, "d"), ("e", "x", 1, "e1"), ("e", "z", 2, "e2"),
]  # fmt: skip
NEW = [("m", "x", 1, "m1"), ("n", "z", 1, "n")]

# What a duplicate policy means to an insert is the subject; of the others each index is tried once.
CASES = [("insert", policy, index) for policy in POLICIES for index in INDEXES]
CASES += [(operation, policy, index) for operation in OPERATIONS for policy in POLICIES for index in INDEXES]
QUICK = {
    ("insert", "dropped", "GLOBAL_SIMPLE"),
    ("insert", "fail-combined", "GLOBAL_BLOOM"),
    ("insert", "fail", "SIMPLE"),
}


def on_spark(spark, path, rows, options):
    spark.createDataFrame(rows, DDL).write.format("hudi").options(**options).mode("append").save(path)
    return hudi_spark.last_commit()


def without_jvm(path, rows, options):
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA)
    return execute(LocalEngine(2), open_storage(path), table, options)


def outcome(write, *given):
    """Counts by partition of a write, or the class and counts of what it was refused with."""
    try:
        result = write(*given)
    except DuplicateKeyError as e:
        return "DuplicateKeyError", e.details["rows"], sorted(e.details["partitions"])
    except HudiError as e:
        return (type(e).__name__,)
    counts: dict[str, list[int]] = {}
    for s in result.write_stats:  # a bulk_insert makes a file for each task
        now = (s.num_writes, s.num_deletes, s.num_update_writes, s.num_inserts)
        counts[s.partition] = [a + b for a, b in zip(counts.get(s.partition, [0] * 4), now, strict=True)]
    return counts


def content(path):
    try:
        table = HudiTable.open(path)
    except HudiError:
        return None
    names = ["_hoodie_record_key", "_hoodie_partition_path", "id", "p", "ts", "v"]
    return sorted(tuple(r.values()) for r in table.read(names).to_arrow().to_pylist())


@pytest.mark.req("IX-06", "IX-08", "NEW-02")
@pytest.mark.parametrize(
    ("operation", "policy", "index"),
    [
        pytest.param(*case, marks=[pytest.mark.in_ci] if case in QUICK else [], id="-".join(case))
        for case in dict.fromkeys(CASES)
    ],
)
def test_both_engines_do_the_same_with_keys_that_stand_twice(spark, tmp_path, operation, policy, index):
    given = {
        "hoodie.table.name": "t",
        WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "p",
        WRITE + "precombine.field": "ts",
        WRITE + "operation": operation,
        "hoodie.index.type": index,
        **POLICIES[policy],
    }
    mine, theirs = str(tmp_path / "spark"), str(tmp_path / "python")
    if operation == "delete":  # which makes no table
        made = {k: v for k, v in given.items() if k not in POLICIES[policy]} | {WRITE + "operation": "upsert"}
        on_spark(spark, mine, FIRST, made)
        without_jvm(theirs, FIRST, made)
    for rows in (FIRST, LATER, NEW):
        expected = outcome(without_jvm, theirs, rows, given)
        assert outcome(on_spark, spark, mine, rows, given) == expected, rows
        assert content(mine) == content(theirs), rows
