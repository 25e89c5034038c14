"""Change data capture: Apache Hudi 0.15.0 tells the same changes of our tables as we do, and we of its; both write on.

What Apache Hudi 0.15 itself leaves out is tested without it: it logs nothing of inserts into small files and of files
whose rows all go, and then fails or says nothing.
"""

import json
import shutil
from collections import Counter

import pyarrow as pa
import pytest

from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.reader import LogFileReader
from hudi_format.model import CDC_MODES
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.timeline.commit_metadata import read_commit
from interop.spark_process import SparkProcessError

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("d", pa.decimal128(12, 3)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("n", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
KEYS = {
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.name": "t",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.compression.codec": "gzip",
    # Concatenated, which is the default, Apache Hudi logs nothing.
    "hoodie.merge.allow.duplicate.on.inserts": "false",
}
CDC_QUERY = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def options(mode, table_type="COPY_ON_WRITE", **more):
    return {
        **KEYS,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.datasource.write.table.type": table_type,
        **more,
    }


def rows(step, numbers, *, deleted=(), partitions="ab"):
    made = []
    for p in partitions:
        for i in numbers:
            n = None if (i + step) % 3 == 0 else {"x": i, "y": [str(step), 'a "quoted" é']}
            made.append(
                {
                    "k": f"{p}{i}", "p": p, "ts": step, "v": None if i == 1 else f"{step}-{i}", "d": i + step,
                    "at": 1_700_000_000_000_000 + i, "day": 19_000 + step, "n": n,
                    "_hoodie_is_deleted": i in deleted,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(made, schema=SCHEMA)


class Ours:
    def write(self, path, data, given):
        operation = given["hoodie.datasource.write.operation"]
        if not path.exists():
            HudiTable.create(
                path, SCHEMA, name="t", table_type=given["hoodie.datasource.write.table.type"], record_keys=["k"],
                partition_fields=["p"], ordering_fields=["ts"], options=without(given),
            )  # fmt: skip
        getattr(HudiTable.open(path), operation)(data, options=without(given))


def without(given):
    given_apart = ("operation", "recordkey.field", "partitionpath.field", "precombine.field", "table.type")
    return {k: v for k, v in given.items() if not k.endswith(given_apart) and k != "hoodie.table.name"}


STEPS = [
    ("insert", rows(0, range(6))),
    ("upsert", rows(1, [1, 2, 8])),
    ("upsert", rows(2, [0, 3, 9], deleted=[3])),
    ("insert", rows(3, [20])),
    ("delete", rows(4, [2, 77], partitions="a")),
    ("upsert", rows(0, [4])),
]


def run(writers, path, mode, table_type="COPY_ON_WRITE", **more):
    """All steps, by each of the writers in turn."""
    for n, (operation, data) in enumerate(STEPS):
        given = options(mode, table_type, **more) | {"hoodie.datasource.write.operation": operation}
        writers[n % len(writers)].write(path, data, given)
    return [i.time for i in HudiTable.open(path).timeline.completed_writes()]


def image(text):
    if text in (None, "null"):
        return None
    found = json.loads(text)
    return {k: v for k, v in found.items() if not k.startswith("_hoodie_") or k == "_hoodie_is_deleted"}


def plain(row):
    """A row of an image without nulls, which may be left out, and without what Apache Hudi gives as bytes of the JVM.

    What is in the files of these columns is compared by itself.
    """
    return row and {k: v for k, v in row.items() if v is not None and k not in ("d", "n")}


def told(changes):
    return sorted(
        json.dumps([c["op"], c["ts_ms"], plain(image(c["before"])), plain(image(c["after"]))], sort_keys=True)
        for c in changes.to_pylist()
    )


def assert_told_alike(apache, path, begin="000", end=None):
    given = CDC_QUERY | {"hoodie.datasource.read.begin.instanttime": begin}
    if end:
        given["hoodie.datasource.read.end.instanttime"] = end
    ours = told(HudiTable.open(path).read_changes(begin, end).to_arrow())
    assert told(apache.read(path, **given)) == ours
    return len(ours)


@pytest.mark.req("IN-13")
@pytest.mark.parametrize("mode", CDC_MODES)
@pytest.mark.parametrize("table_type", TYPES)
def test_apache_hudi_tells_the_changes_that_we_logged(apache, tmp_path, mode, table_type):
    path = tmp_path / "t"
    # Concatenated inserts too: we log them.
    instants = run([Ours()], path, mode, table_type, **{"hoodie.merge.allow.duplicate.on.inserts": "true"})
    assert assert_told_alike(apache, path) > 20
    if table_type == "COPY_ON_WRITE":
        assert_told_alike(apache, path, instants[0], instants[3])
        assert_told_alike(apache, path, instants[-3])


@pytest.mark.parametrize(
    ("mode", "table_type"), [(m, TYPES[0]) for m in CDC_MODES] + [(CDC_MODES[2], TYPES[1])]
)
def test_a_table_that_both_write_to_tells_all_its_changes(apache, tmp_path, mode, table_type):
    path = tmp_path / "t"
    run([apache, Ours()], path, mode, table_type)
    assert assert_told_alike(apache, path) > 20
    assert HudiTable.open(path).verify() == []


def logged(path):
    """Schema and records of the CDC files of each commit, without the commit's time."""
    storage, out = LocalStorage(str(path)), []
    for instant in HudiTable.open(path).timeline.completed_writes():
        found = []
        for stat in read_commit(storage, instant).stats:
            for file in stat.cdc_files:
                with LogFileReader.open(storage, file) as reader:
                    for block in reader.blocks:
                        for batch in BlockDecoder().batches(block, reader.content(block)):
                            found += [(block.schema, r | {"ts_ms": ""}) for r in batch.to_pylist()]
        out.append(sorted(found, key=repr))
    return out


@pytest.mark.parametrize("mode", CDC_MODES)
def test_the_files_hold_what_those_of_apache_hudi_hold(apache, tmp_path, mode):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run([apache], theirs, mode)
    run([Ours()], ours, mode)
    assert [[r for _, r in step] for step in logged(ours)] == [
        [r for _, r in step] for step in logged(theirs)
    ]
    texts = [{s for step in logged(p) for s, _ in step} for p in (ours, theirs)]
    # Doc strings and the like are those of the rows' schema, which Spark makes.
    assert [{n["name"] for s in of for n in json.loads(s)["fields"]} for of in texts] == [
        {n["name"] for s in texts[1] for n in json.loads(s)["fields"]}
    ] * 2


def test_apache_hudi_rolls_back_our_dead_write_and_goes_on(apache, tmp_path):
    from hudi_timeline.testing import CRASH, Fault, Faults

    path = tmp_path / "t"
    run([Ours()], path, "DATA_BEFORE_AFTER")
    faults = Faults(Fault(CRASH, operation="create", path="*.commit"))
    with faults.process():
        dying = HudiTable._of(faults.wrap(LocalStorage(str(path))))
        dying.upsert(rows(9, [0, 1]), options=without(options("DATA_BEFORE_AFTER")))
    assert faults.dead
    shutil.rmtree(path / ".hoodie" / ".heartbeat", ignore_errors=True)  # as if long ago
    given = options("DATA_BEFORE_AFTER") | {"hoodie.datasource.write.operation": "upsert"}
    apache.write(path, rows(10, [1, 5]), given)
    Ours().write(path, rows(11, [5]), given)
    assert_told_alike(apache, path)
    kept = HudiTable.open(path).read(["k", "v"]).to_arrow().to_pylist()
    assert {r["k"]: r["v"] for r in kept}["a5"] == "11-5"
    assert "9-0" not in {r["v"] for r in kept}


@pytest.mark.parametrize("mode", CDC_MODES)
def test_what_replaces_file_groups_is_told_as_often(apache, tmp_path, mode):
    """Apache Hudi repeats one row of a replaced file for each of its rows: only their number can be compared."""
    path = tmp_path / "t"
    given = without(options(mode))
    run([Ours()], path, mode)
    table = HudiTable.open(path)
    table.insert_overwrite(rows(5, [1, 50], partitions="a"), options=given)
    table.upsert(rows(6, [50, 51]), options=given)
    table.delete_partitions(["b"], options=given)
    table.insert_overwrite_table(rows(7, [60]), options=given)
    begin = {"hoodie.datasource.read.begin.instanttime": "000"}
    theirs, ours = apache.read(path, **CDC_QUERY, **begin), table.read_changes("000").to_arrow()
    kinds = [Counter((c["op"], c["ts_ms"]) for c in found.to_pylist()) for found in (theirs, ours)]
    assert kinds[0] == kinds[1]
    inserted = [[t for t in told(found) if t.startswith('["i"')] for found in (theirs, ours)]
    assert inserted[0] == inserted[1]


@pytest.mark.slow
def test_apache_hudi_tells_nothing_of_a_log_with_a_delete_of_dms(apache, tmp_path):
    """Of its own writes either; we tell it."""
    given = options(
        "DATA_BEFORE_AFTER", "MERGE_ON_READ",
        **{"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload"},
    )  # fmt: skip
    for operation, of in (("insert", {"a": "I", "b": "I"}), ("upsert", {"a": "D"})):
        data = pa.table({"k": list(of), "p": ["p"] * len(of), "ts": [1] * len(of), "Op": list(of.values())})
        apache.write(tmp_path / "t", data, given | {"hoodie.datasource.write.operation": operation})
    begin = {"hoodie.datasource.read.begin.instanttime": "000"}
    with pytest.raises(SparkProcessError, match="No value present"):
        apache.read(tmp_path / "t", **CDC_QUERY, **begin)
    told = HudiTable.open(tmp_path / "t").read_changes("000").to_arrow().to_pylist()
    assert [(c["op"], image(c["before"] or c["after"])["k"]) for c in told] == [
        ("i", "a"), ("i", "b"), ("d", "a"),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["OverwriteWithLatestAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"]
)
def test_of_a_log_record_that_loses_to_an_earlier_one_apache_hudi_tells_a_change(apache, tmp_path, name):
    """Of its own writes, and against its own snapshot, in which nothing changes; we tell none."""
    given = options(
        "DATA_BEFORE", "MERGE_ON_READ",
        **{"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{name}"},
    )  # fmt: skip
    path = tmp_path / "t"
    for operation, ts in (("insert", 1), ("upsert", 5), ("upsert", 3)):
        data = pa.table({"k": ["a"], "p": ["p"], "ts": [ts]})
        apache.write(path, data, given | {"hoodie.datasource.write.operation": operation})
    assert apache.read(path)["ts"].to_pylist() == [5]
    theirs = apache.read(path, **CDC_QUERY, **{"hoodie.datasource.read.begin.instanttime": "000"})
    mine = HudiTable.open(path).read_changes("000").to_arrow()
    assert sorted(theirs["op"].to_pylist()) == ["i", "u", "u"]
    assert sorted(mine["op"].to_pylist()) == ["i", "u"]
