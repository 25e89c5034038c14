"""Every payload class: the same random writes through Apache Hudi 0.15.0 and through us, on both types of tables.

Keys stand several times in one input, with ordering values below, equal to and above what is stored; values and
marks of deletion are null now and then.  One task reads the input, so that its order is the order of the rows.
"""

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_format.merge.payloads import payload_class
from hudi_format.storage.open import open_storage
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from interop import ours
from interop.rows import assert_same_rows
from interop.spark_process import SparkProcessError

WRITE = "hoodie.datasource.write."
PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "FirstValueAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
    "AWSDmsAvroPayload",
)
BASE = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
}
TYPES = {
    "copy_on_write": {},
    "merge_on_read": {
        WRITE + "table.type": "MERGE_ON_READ",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline.max.delta.commits": "100",
    },
}
MOVES = pa.struct([("x", pa.int32()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("a", pa.string()),
        ("b", pa.float64()),
        ("c", pa.list_(pa.int32())),
        ("s", MOVES),
        ("d", pa.date32()),
    ]
)


def maybe(rng, value):
    return None if rng.random() < 0.4 else value


def random_rows(rng, keys, versions, ordering, extra):
    rows = []
    for key in keys:
        for _ in range(rng.randint(*versions)):
            row = {
                "id": f"k{key}",
                "p": f"p{key % 2}",
                "ts": ordering(rng.randint(1, 6)),
                "a": maybe(rng, rng.choice(["", "x", "é😀", "D"])),
                "b": maybe(rng, rng.uniform(-5, 5)),
                "c": maybe(rng, [rng.randint(0, 9) for _ in range(rng.randint(0, 3))]),
                "s": maybe(rng, {"x": maybe(rng, rng.randint(0, 9)), "y": maybe(rng, "y")}),
                "d": maybe(rng, date(2024, 1, rng.randint(1, 28))),
            }
            rows.append(row | {name: make(rng) for name, make in extra.items()})
    rng.shuffle(rows)
    return rows


def steps_of(seed, schema, *, keys=60, ordering=lambda v: v, extra=None, first=("insert", (1, 1))):
    rng, extra = random.Random(seed), extra or {}
    steps = [
        (first[0], random_rows(rng, range(keys), first[1], ordering, extra)),
        ("upsert", random_rows(rng, range(keys // 2, keys + keys // 4), (1, 3), ordering, extra)),
        ("upsert", random_rows(rng, range(keys + keys // 2), (0, 3), ordering, extra)),
    ]
    return [(op, pa.Table.from_pylist(rows, schema=schema)) for op, rows in steps]


def both(tmp_path, apache, steps, options):
    for operation, table in steps:
        given = {**BASE, **options, WRITE + "operation": operation}
        apache.write(tmp_path / "theirs", table, given)
        execute(LocalEngine(), open_storage(str(tmp_path / "ours")), table, given)
    want = compared(apache.read(tmp_path / "theirs"))
    assert want.num_rows
    assert_same_rows(compared(ours.read(tmp_path / "ours")), want, ["id"])
    assert_same_rows(compared(apache.read(tmp_path / "ours")), want, ["id"])
    return want


def compared(table):
    names = [n for n in table.column_names if not n.startswith("_hoodie_")]
    kept = [n for n in ("_hoodie_is_deleted",) if n in table.column_names]
    return table.select(["_hoodie_record_key", "_hoodie_partition_path", *names, *kept])


def payload(name):
    return {WRITE + "payload.class": f"org.apache.hudi.common.model.{name}"}


@pytest.mark.req("PM-01", "PM-02", "PM-03", "PM-05", "PM-06", "PM-07", "PM-08", "PM-09")
@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("kind", TYPES)
def test_a_payload_leaves_the_rows_that_apache_hudi_leaves(tmp_path, apache, name, kind):
    extra = {"Op": lambda rng: rng.choice([None, "I", "U", "D", "d"])} if name == "AWSDmsAvroPayload" else {}
    schema = pa.schema([*SCHEMA, ("Op", pa.string())]) if extra else SCHEMA
    both(tmp_path, apache, steps_of(name, schema, extra=extra), payload(name) | TYPES[kind])


TOAST = "__debezium_unavailable_value"


@pytest.mark.req("PM-08", "PM-10")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.slow
def test_the_payload_of_postgres_leaves_the_rows_that_apache_hudi_leaves(tmp_path, apache, kind):
    extra = {
        "_event_lsn": lambda rng: rng.randint(1, 6),
        "_change_operation_type": lambda rng: rng.choice(["c", "u", "u", "d", None]),
        "toast": lambda rng: rng.choice([None, "v", "w", TOAST, TOAST]),
        "raw": lambda rng: rng.choice([None, b"v", TOAST.encode()]),
    }
    kinds = [("_event_lsn", pa.int64()), ("_change_operation_type", pa.string())]
    schema = pa.schema([*SCHEMA, *kinds, ("toast", pa.string()), ("raw", pa.binary())])
    options = {WRITE + "precombine.field": "_event_lsn", **TYPES[kind]}
    name = payload("debezium.PostgresDebeziumAvroPayload")
    both(tmp_path, apache, steps_of("postgres", schema, extra=extra), name | options)


@pytest.mark.req("PM-08", "PM-10")
@pytest.mark.parametrize("kind", TYPES)
def test_the_payload_of_mysql_leaves_the_rows_that_apache_hudi_leaves(tmp_path, apache, kind):
    """One file of the log, and positions of one width: where its texts and its numbers have one order."""
    extra = {
        "_event_seq": lambda rng: f"2.{rng.randint(10, 16)}",
        "_change_operation_type": lambda rng: rng.choice(["c", "u", "u", "d", None]),
    }
    schema = pa.schema([*SCHEMA, *((n, pa.string()) for n in extra)])
    options = {WRITE + "precombine.field": "_event_seq", **TYPES[kind]}
    name = payload("debezium.MySqlDebeziumAvroPayload")
    both(tmp_path, apache, steps_of("mysql", schema, extra=extra), name | options)


@pytest.mark.parametrize(
    "name",
    ["PostgresDebeziumAvroPayload", "MySqlDebeziumAvroPayload", "org.apache.hudi.payload.AWSDmsAvroPayload"],
)
def test_apache_hudi_merges_logs_of_a_table_whose_payload_had_another_name(tmp_path, apache, name):
    """Without its package the class was stored by a name that Apache Hudi could not load."""
    ordering, mark = ("ts", "Op") if "AWS" in name else ("_event_lsn", "_change_operation_type")
    ordering = "_event_seq" if "MySql" in name else ordering
    options = {**BASE, WRITE + "precombine.field": ordering, WRITE + "payload.class": name, **MERGE_ON_READ}

    def rows(version, *kinds):
        places = [f"2.1{version}"] * 3 if "MySql" in name else [version] * 3
        return pa.table(
            {"id": ["a", "b", "c"], "p": ["x"] * 3, ordering: places, mark: kinds, "v": [version] * 3}
        )

    read, written = tmp_path / "read", tmp_path / "written"
    for version, second in enumerate(("I", "D" if mark == "Op" else "d")):
        for path in (read, written):
            execute(LocalEngine(), open_storage(str(path)), rows(version, "I", second, "I"), options)
    full = {**options, WRITE + "payload.class": payload_class(name), WRITE + "operation": "upsert"}
    apache.write(written, rows(2, "U", "U", "U"), full)
    for path, want in ((read, {"a": 1, "c": 1}), (written, {"a": 2, "b": 2, "c": 2})):
        for found in (apache.read(path), ours.read(path)):
            assert {r["id"]: r["v"] for r in found.to_pylist()} == want


# AWSDms of Apache Hudi fails for a flagged row whose key is new.
@pytest.mark.req("PM-02", "PM-03")
@pytest.mark.parametrize("name", [n for n in PAYLOADS if n != "AWSDmsAvroPayload"])
def test_rows_flagged_as_deleted_leave_the_rows_that_apache_hudi_leaves(tmp_path, apache, name):
    extra = {"_hoodie_is_deleted": lambda rng: rng.choice([None, False, False, True])}
    schema = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    both(tmp_path, apache, steps_of(name, schema, extra=extra, first=("upsert", (1, 3))), payload(name))


@pytest.mark.req("PM-05")
@pytest.mark.parametrize("name", ["DefaultHoodieRecordPayload", "FirstValueAvroPayload"])
@pytest.mark.slow
def test_a_delete_field_with_its_marker_deletes_and_the_flag_does_not(tmp_path, apache, name):
    extra = {
        "mark": lambda rng: rng.choice([None, 1, 7]),
        "_hoodie_is_deleted": lambda rng: rng.choice([None, False, True]),
    }
    schema = pa.schema([*SCHEMA, ("mark", pa.int32()), ("_hoodie_is_deleted", pa.bool_())])
    marks = {"hoodie.payload.delete.field": "mark", "hoodie.payload.delete.marker": "7"}
    both(tmp_path, apache, steps_of(name, schema, extra=extra), payload(name) | marks)


DAY = date(1969, 12, 28)
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_996, UTC)
TEXTS = ["", "a", "b", "\ue000", "\uffff", "\U0001f6b2"]
ORDERINGS = {
    "int": (pa.int32(), lambda v: v - 3),
    "long": (pa.int64(), lambda v: (v - 3) * 2**60),
    "float": (pa.float32(), lambda v: [float("-inf"), -1.5, -0.0, 0.0, 0.1, float("nan")][v - 1]),
    "double": (pa.float64(), lambda v: [float("-inf"), -1.5, -0.0, 0.0, 0.1, float("nan")][v - 1]),
    "decimal": (pa.decimal128(10, 2), lambda v: Decimal(v - 3) / 4),
    "wide decimal": (pa.decimal128(38, 4), lambda v: Decimal(v - 3) * 10**30),
    "string": (pa.string(), lambda v: TEXTS[v - 1]),
    "date": (pa.date32(), lambda v: DAY + timedelta(days=v)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda v: MOMENT + timedelta(microseconds=v)),
    "boolean": (pa.bool_(), lambda v: v > 3),
    "bytes": (pa.binary(), lambda v: [b"", b"a", b"ab", b"\x7f", b"\x80", b"\xff"][v - 1]),
}


@pytest.mark.req("PM-06", "PM-08")
@pytest.mark.parametrize("name", ["DefaultHoodieRecordPayload", "PartialUpdateAvroPayload"])
@pytest.mark.parametrize("kind", ORDERINGS)
@pytest.mark.slow
def test_ordering_fields_of_every_type(tmp_path, apache, kind, name):
    arrow, ordering = ORDERINGS[kind]
    schema = SCHEMA.set(2, pa.field("ts", arrow))
    both(tmp_path, apache, steps_of(kind, schema, keys=24, ordering=ordering), payload(name))


@pytest.mark.req("PM-01")
@pytest.mark.parametrize("name", ["DefaultHoodieRecordPayload", "PartialUpdateAvroPayload"])
@pytest.mark.slow
def test_input_that_is_not_combined(tmp_path, apache, name):
    steps = steps_of("not combined", SCHEMA)
    steps[1:] = [(op, one_per_key(t)) for op, t in steps[1:]]
    both(tmp_path, apache, steps, payload(name) | {"hoodie.combine.before.upsert": "false"})


@pytest.mark.req("PM-01")
@pytest.mark.parametrize("name", ["FirstValueAvroPayload", "PartialUpdateAvroPayload"])
@pytest.mark.slow
def test_inserts_that_are_combined(tmp_path, apache, name):
    steps = steps_of("combined", SCHEMA, first=("insert", (1, 3)))
    both(tmp_path, apache, steps, payload(name) | {"hoodie.combine.before.insert": "true"})


@pytest.mark.req("PM-04", "MB-07")
@pytest.mark.parametrize("name", ["DefaultHoodieRecordPayload", "EventTimeAvroPayload"])
@pytest.mark.parametrize("field", ["", "seen"])
def test_commits_say_the_range_of_event_times_that_apache_hudi_says(tmp_path, apache, name, field):
    table = pa.table(
        {
            "id": ["a", "b", "c", "d"],
            "p": ["p0"] * 4,
            "ts": [1_700_000_000_123, 1_700_000_000_456, 3, 1_700_000_000_000_000],
            "seen": ["1700000000999", "1600000000", "160000000x", None],
        }
    )
    options = {"hoodie.payload.event.time.field": field} if field else {}
    both(tmp_path, apache, [("insert", table), ("upsert", table)], payload(name) | options)
    ranges = [
        [
            (s["minEventTime"], s["maxEventTime"])
            for f in sorted((tmp_path / side / ".hoodie").glob("*.commit"))
            for stats in json.loads(f.read_text())["partitionToWriteStats"].values()
            for s in stats
        ]
        for side in ("theirs", "ours")
    ]
    assert ranges[0] == ranges[1]


# --- merge on read: written by Apache Hudi, read by both -------------------------------------------------

MERGE_ON_READ = {
    WRITE + "table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def logged(tmp_path, apache, steps, options):
    """Write the steps with Apache Hudi, and compare what both read after each."""
    path = tmp_path / "t"
    for operation, table in steps:
        given = {**BASE, **MERGE_ON_READ, **options, WRITE + "operation": operation}
        apache.write(path, table, given)
        assert_same_rows(ours.read(path), apache.read(path), ["id"])
    assert any(path.glob("*/.*.log.*"))


@pytest.mark.req("PM-08", "PM-09", "PM-12", "PM-14", "PM-15")
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
@pytest.mark.parametrize("name", PAYLOADS)
def test_logs_are_merged_as_apache_hudi_merges_them(tmp_path, apache, name, blocks):
    extra = {"Op": lambda rng: rng.choice([None, "I", "U", "D", "d"])} if name == "AWSDmsAvroPayload" else {}
    schema = pa.schema([*SCHEMA, ("Op", pa.string())]) if extra else SCHEMA
    steps = steps_of(name + blocks, schema, extra=extra)
    more = steps_of(name + blocks + "again", schema, extra=extra)[1:]
    gone = steps[0][1].slice(0, 12).select(["id", "p", "ts"])
    options = payload(name) | {"hoodie.logfile.data.block.format": blocks}
    logged(tmp_path, apache, [*steps, ("delete", gone), *more], options)


@pytest.mark.req("PM-08", "PM-15")
@pytest.mark.parametrize("name", [n for n in PAYLOADS if n != "AWSDmsAvroPayload"])
@pytest.mark.slow
def test_marked_deletes_in_logs_are_merged_as_apache_hudi_merges_them(tmp_path, apache, name):
    extra = {"_hoodie_is_deleted": lambda rng: rng.choice([None, False, False, True])}
    schema = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    steps = steps_of(name, schema, extra=extra, first=("upsert", (1, 3)))
    logged(tmp_path, apache, steps + steps_of(name + "again", schema, extra=extra)[1:], payload(name))


@pytest.mark.req("PM-06", "PM-15")
# Apache Hudi writes no log with a delete whose ordering value is of bytes, or a decimal of more than 30 digits.
# Decimals below zero: test_decimals_below_zero_are_numbers_among_log_records_too.
@pytest.mark.parametrize("kind", [k for k in ORDERINGS if k not in ("bytes", "wide decimal")])
@pytest.mark.slow
def test_ordering_fields_of_every_type_in_logs(tmp_path, apache, kind):
    arrow, ordering = ORDERINGS[kind]
    if kind == "decimal":
        ordering = lambda v: Decimal(v) / 4  # noqa: E731
    schema = pa.schema([*SCHEMA.set(2, pa.field("ts", arrow)), ("_hoodie_is_deleted", pa.bool_())])
    extra = {"_hoodie_is_deleted": lambda rng: rng.random() < 0.2}
    steps = steps_of(kind, schema, keys=24, ordering=ordering, extra=extra)
    steps += steps_of(kind + "again", schema, keys=24, ordering=ordering, extra=extra)[1:]
    logged(tmp_path, apache, steps, payload("DefaultHoodieRecordPayload"))


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("type_", [pa.decimal128(10, 2), pa.decimal128(38, 4)], ids=["narrow", "wide"])
def test_decimals_below_zero_are_numbers_among_log_records_too(tmp_path, pool, apache, type_, version):
    """0.15 compares their bytes there, and then the winner with the base row as a number: 5 is lost to 1 by -1."""
    versions = {"first": (1, 5, -1), "second": (-9, -1, 5), "below": (-9, -1, -5), "above": (1, 300, 2)}
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", type_)])
    options = {**BASE, **MERGE_ON_READ, **payload("DefaultHoodieRecordPayload")}
    for n, operation in enumerate(("insert", "upsert", "upsert")):
        rows = [{"id": k, "p": "p", "ts": Decimal(of[n])} for k, of in versions.items()]
        table = pa.Table.from_pylist(rows, schema=schema)
        apache.write(tmp_path / "t", table, {**options, WRITE + "operation": operation})
    numbers = {"first": 5, "second": 5, "below": -1, "above": 300}
    theirs = numbers | {"first": 1, "second": -1} if version == "0.15.0" else numbers
    read = pool.get(version).read(tmp_path / "t")
    assert {r["id"]: r["ts"] for r in read.to_pylist()} == theirs
    assert {r["id"]: r["ts"] for r in ours.read(tmp_path / "t").to_pylist()} == numbers


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", ["OverwriteWithLatestAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"]
)
def test_of_several_log_records_the_last_wins_in_later_releases_only(tmp_path, pool, apache, name, version):
    """We read tables of version 6 as 0.15 does, which writes them."""
    options = {**BASE, **MERGE_ON_READ, **payload(name)}
    for ts, operation in ((1, "insert"), (5, "upsert"), (3, "upsert")):
        table = pa.table({"id": ["late"], "p": ["p"], "ts": pa.array([ts], pa.int64())})
        apache.write(tmp_path / "t", table, {**options, WRITE + "operation": operation})
    theirs = pool.get(version).read(tmp_path / "t")
    assert theirs["ts"].to_pylist() == [5 if version == "0.15.0" else 3]
    assert ours.read(tmp_path / "t")["ts"].to_pylist() == [5]


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
def test_a_null_in_a_log_is_filled_from_older_log_records_in_later_releases_only(
    tmp_path, pool, apache, version
):
    """We read tables of version 6 as 0.15 does, which writes them, until a compaction and after it."""
    options = {**BASE, **MERGE_ON_READ, **payload("OverwriteNonDefaultsWithLatestAvroPayload")}
    for ts, base, log in ((1, "base", None), (2, None, "log"), (3, None, None)):
        table = pa.table(
            {"id": ["k"], "p": ["p"], "ts": pa.array([ts], pa.int64()), "base": pa.array([base], pa.string()),
             "log": pa.array([log], pa.string())}
        )  # fmt: skip
        operation = "insert" if ts == 1 else "upsert"
        apache.write(tmp_path / "t", table, {**options, WRITE + "operation": operation})
    columns = ["ts", "base", "log"]
    theirs = pool.get(version).read(tmp_path / "t").select(columns).to_pylist()
    assert theirs == [{"ts": 3, "base": "base", "log": None if version == "0.15.0" else "log"}]
    as_written = [{"ts": 3, "base": "base", "log": None}]
    assert ours.read(tmp_path / "t").select(columns).to_pylist() == as_written
    ours.table(tmp_path / "t").compact()
    for read in (apache.read, ours.read):
        assert read(tmp_path / "t").select(columns).to_pylist() == as_written


MARKED = {
    "AWSDmsAvroPayload": ("ts", "Op", ("U", "D")),
    "debezium.PostgresDebeziumAvroPayload": ("_event_lsn", "_change_operation_type", ("u", "d")),
    "debezium.MySqlDebeziumAvroPayload": ("_event_seq", "_change_operation_type", ("u", "d")),
}


@pytest.mark.parametrize("version", ["0.15.0", pytest.param("1.0.2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MARKED)
def test_a_late_mark_of_deletion_in_a_log_deletes_the_base_row_in_0_15_only(
    tmp_path, pool, apache, name, version
):
    """The writer makes a delete of it, and 1.0.2 compares deletes of the log; we read tables of version 6 as 0.15."""
    ordering, mark, (update, delete) = MARKED[name]
    as_value = (lambda n: f"2.{n}") if ordering == "_event_seq" else int
    options = {**BASE, **MERGE_ON_READ, **payload(name), WRITE + "precombine.field": ordering}
    writes = [
        ("insert", {"late": (15, update), "new": (15, update), "kept": (15, update)}),
        ("upsert", {"late": (13, delete), "new": (17, delete)}),
    ]
    for operation, of in writes:
        rows = [{"id": k, "p": "p", ordering: as_value(n), mark: m} for k, (n, m) in of.items()]
        apache.write(tmp_path / "t", pa.Table.from_pylist(rows), {**options, WRITE + "operation": operation})
    theirs = pool.get(version).read(tmp_path / "t")
    assert sorted(theirs["id"].to_pylist()) == (["kept"] if version == "0.15.0" else ["kept", "late"])
    assert ours.read(tmp_path / "t")["id"].to_pylist() == ["kept"]


def dms(tmp_path, apache, operation, index, **marks):
    options = {
        **BASE, **MERGE_ON_READ, **payload("AWSDmsAvroPayload"), WRITE + "operation": operation,
        "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1",
    }  # fmt: skip
    rows = [{"id": k, "p": "p", "ts": 1, "Op": mark} for k, mark in marks.items()]
    apache.write(tmp_path / "t", pa.Table.from_pylist(rows), options)


def test_apache_hudi_reads_no_log_with_a_delete_of_dms_whose_key_has_no_base_row(tmp_path, apache):
    """Of its own writes: with BUCKET a new key goes to the log; we read on."""
    dms(tmp_path, apache, "upsert", "BUCKET", base="I")
    dms(tmp_path, apache, "upsert", "BUCKET", logged="I")
    dms(tmp_path, apache, "delete", "BUCKET", logged="I")
    with pytest.raises(SparkProcessError, match="No value present"):
        apache.read(tmp_path / "t")
    assert ours.read(tmp_path / "t")["id"].to_pylist() == ["base"]


@pytest.mark.slow
def test_nor_one_whose_base_row_a_compaction_has_taken_away(tmp_path, apache):
    """One that was planned before the second delete of the key was written."""
    dms(tmp_path, apache, "insert", "BLOOM", kept="I", gone="I")
    dms(tmp_path, apache, "upsert", "BLOOM", gone="D")
    apache.sql(f"CREATE TABLE dms USING hudi LOCATION '{tmp_path / 't'}'")
    given = "hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false"
    call = "CALL run_compaction(op => '{}', table => 'dms', options => '" + given + "')"
    apache.sql(call.format("schedule"))
    dms(tmp_path, apache, "upsert", "BLOOM", gone="D")
    assert apache.read(tmp_path / "t")["id"].to_pylist() == ["kept"]
    apache.sql(call.format("execute"))
    with pytest.raises(SparkProcessError, match="No value present"):
        apache.read(tmp_path / "t")
    assert ours.read(tmp_path / "t")["id"].to_pylist() == ["kept"]


@pytest.mark.req("PM-06", "PM-15")
@pytest.mark.slow
def test_a_nested_ordering_field_counts_against_base_rows_only(tmp_path, apache):
    nested = pa.struct([("at", pa.int64())])
    schema = SCHEMA.append(pa.field("o", nested)).append(pa.field("_hoodie_is_deleted", pa.bool_()))
    extra = {
        "o": lambda rng: {"at": rng.randint(1, 6)},
        "_hoodie_is_deleted": lambda rng: rng.random() < 0.2,
    }
    options = payload("DefaultHoodieRecordPayload") | {WRITE + "precombine.field": "o.at"}
    steps = steps_of("nested", schema, extra=extra) + steps_of("nested again", schema, extra=extra)[1:]
    logged(tmp_path, apache, steps, options)


def one_per_key(table):
    return pa.Table.from_pylist(list({r["id"]: r for r in table.to_pylist()}.values()), schema=table.schema)
