"""Prepped operations on file groups with log files: rows go back if they are still the records that were read."""

import sys
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import ConcurrentWriterError, MissingColumnError
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_timeline import HudiTable
from hudi_timeline.writing import local_engine

OPERATION = "hoodie.datasource.write.operation"
NAME, SEQNO = "_hoodie_file_name", "_hoodie_commit_seqno"
FORMAT = "hoodie.logfile.data.block.format"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
# Inserts go to no file group that is there, and logs stay.
SMALL = {"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false"}
PAYLOAD = "hoodie.datasource.write.payload.class"
EVENT_TIME = {PAYLOAD: "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
PARTIAL = {PAYLOAD: "org.apache.hudi.common.model.PartialUpdateAvroPayload"}


def rows(*given):
    """Rows of (id, partition, ts, v)."""
    return pa.table([list(c) for c in zip(*given, strict=True)], schema=SCHEMA)


FIRST = rows(("a", "x", 1, 1), ("b", "x", 1, 2), ("c", "x", 1, 3), ("d", "y", 1, 4))


def make(path, **options):
    table = HudiTable.create(
        str(path), SCHEMA, name="t", table_type="MERGE_ON_READ", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"], options=options,
    )  # fmt: skip
    table.insert(FIRST, options=options)
    return table


@pytest.fixture
def table(tmp_path):
    return make(tmp_path / "t")


def prepped(table, name, given, **options):
    return getattr(table, name)(given, options={OPERATION: f"{name}_prepped", **SMALL, **options})


def read(table, *ids):
    every = HudiTable.open(table.uri).read(meta_columns=True).to_arrow()
    return every.filter(pc.is_in(every["id"], pa.array(ids, pa.string()))) if ids else every


def plus(given, n=10, ts=0):
    for name, more in (("v", n), ("ts", ts)):
        given = given.set_column(given.schema.get_field_index(name), name, pc.add(given[name], more))
    return given


def replaced(given, name, values):
    return given.set_column(given.schema.get_field_index(name), name, pa.array(values, pa.string()))


def values(table):
    got = read(table)
    return dict(zip(got["id"].to_pylist(), got["v"].to_pylist(), strict=True))


def timeline(table):
    return sorted(p.name for p in (Path(table.uri) / ".hoodie").iterdir())


def refused(table, given, n, names=("upsert", "delete"), match="were changed or deleted", **options):
    """Asserts that a write is refused for n rows, and before anything begins."""
    before = timeline(table)
    for name in names:
        with pytest.raises(ConcurrentWriterError, match=rf"{n} rows .*{match}") as e:
            prepped(table, name, given, **options)
        assert "without _prepped" in e.value.remedy
    assert timeline(table) == before


@pytest.mark.req("CC-40")
@pytest.mark.parametrize(("block", "compacts"), [("avro", False), ("parquet", True)])
def test_records_that_were_changed_or_deleted_since_are_refused_and_others_written(tmp_path, block, compacts):
    table = make(tmp_path / "t", **{FORMAT: block})
    given = {FORMAT: block}
    stale = read(table)
    table.upsert(rows(("c", "x", 2, 30), ("b", "x", 2, 20)), options={**SMALL, **given})
    table.delete(rows(("b", "x", 3, 0)))
    if compacts:
        table.compact(mode="schedule")
    refused(table, stale, 2, **given)  # c was changed, b deleted
    logged = read(table, "c")
    assert logged[NAME][0].as_py() not in stale[NAME].to_pylist()
    both = pa.concat_tables([logged, stale.filter(pc.is_in(stale["id"], pa.array(["a", "d"])))])
    result = prepped(table, "upsert", plus(both), **given)
    assert (result.operation, result.updated, result.inserted, result.lookup) == (
        "upsert_prepped",
        3,
        0,
        None,
    )
    assert values(table) == {"a": 11, "c": 40, "d": 14}
    assert all("/." in w.path or w.path.startswith(".") for w in result.write_stats)  # log files
    refused(table, both, 3, **given)
    assert prepped(table, "delete", read(table, "a", "c"), **given).deleted == 2
    assert values(table) == {"d": 14}
    refused(table, logged, 1, **given)
    table.upsert(rows(("a", "x", 1, 5)), options={**SMALL, **given})  # another record of the key
    refused(table, both.slice(1, 1), 1, **given)
    assert table.compact() is not None
    refused(table, logged, 1, match="was rewritten as", **given)
    prepped(table, "upsert", plus(read(table, "a", "d")), **given)
    assert values(table) == {"a": 15, "d": 24}
    assert HudiTable.open(table.uri).verify(deep=True) == []


def test_a_dry_run_refuses_them_too(table):
    stale = read(table)
    table.upsert(rows(("a", "x", 2, 10)))
    with pytest.raises(ConcurrentWriterError, match="1 rows of 1 file groups"):
        table.upsert(stale, options={OPERATION: "upsert_prepped"}, dry_run=True)
    told = table.upsert(read(table), options={OPERATION: "upsert_prepped"}, dry_run=True)
    assert told.updated == 4


def test_keys_that_stand_in_a_log_alone(tmp_path):
    table = make(tmp_path / "t", **BUCKET)
    table.upsert(rows(("e", "x", 1, 5), ("f", "x", 1, 6)), options=BUCKET)
    first = read(table, "e", "f")
    assert all("_" not in n for n in first[NAME].to_pylist())
    fresh = replaced(
        replaced(replaced(first.slice(0, 1), NAME, [None]), "id", ["g"]), "_hoodie_record_key", ["g"]
    )
    prepped(table, "upsert", pa.concat_tables([plus(first), fresh]), **BUCKET)
    assert values(table) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 15, "f": 16, "g": 5}
    refused(table, first, 2, **BUCKET)
    prepped(table, "delete", read(table, "f", "g"), **BUCKET)
    assert values(table) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 15}


def test_ordering_values_decide_as_in_any_upsert(tmp_path):
    table = make(tmp_path / "t", **EVENT_TIME)
    stale = read(table)
    table.upsert(rows(("a", "x", 5, 10), ("b", "x", 0, 99)), options={**SMALL, **EVENT_TIME})
    refused(table, stale, 1, **EVENT_TIME)  # the older record of b changes nothing
    prepped(table, "upsert", plus(read(table, "a", "b"), 1, ts=-1), **EVENT_TIME)
    assert (values(table)["a"], values(table)["b"]) == (10, 2)  # the stored ones are newer
    prepped(table, "upsert", plus(read(table, "a", "b"), 1, ts=0), **EVENT_TIME)
    assert (values(table)["a"], values(table)["b"]) == (11, 3)
    prepped(table, "delete", read(table, "a"), **EVENT_TIME)
    assert "a" not in values(table)


def test_a_record_that_an_older_one_filled_is_another_one(tmp_path):
    table = make(tmp_path / "t", **PARTIAL)
    nothing = pa.table([["e"], ["y"], [5], [None]], schema=SCHEMA)
    table.upsert(nothing, options={**SMALL, **PARTIAL})
    before = read(table, "e")
    table.upsert(rows(("e", "y", 1, 7)), options={**SMALL, **PARTIAL})
    assert values(table)["e"] == 7
    refused(table, before, 1, **PARTIAL)


def test_rows_of_equal_keys(table):
    table.insert(rows(("a", "x", 1, 7)), options={"hoodie.merge.allow.duplicate.on.inserts": "true"})
    table.upsert(rows(("c", "x", 2, 30)), options=SMALL)
    twice = pa.concat_tables([plus(read(table, "c"), 1), plus(read(table, "c"), 2)])
    prepped(table, "upsert", twice)
    assert values(table)["c"] == 32  # of equal ordering values the later row
    assert prepped(table, "upsert", read(table)).updated == read(table).num_rows


def test_rows_of_file_groups_and_partitions_that_are_not_there(table):
    table.upsert(rows(("a", "x", 2, 10)), options=SMALL)
    for name in ("other", "other_0-0-0_20250101000000000.parquet", ""):
        refused(table, replaced(read(table, "a"), NAME, [name]), 1, match="is none of them")
    gone = replaced(read(table, "a"), "_hoodie_partition_path", ["z"])
    refused(table, gone, 1, match="is none of them")
    # A row of another file group of the table.
    there = read(table, "b")[NAME]
    elsewhere = replaced(replaced(read(table, "d"), NAME, there.to_pylist()), "_hoodie_partition_path", ["x"])
    refused(table, elsewhere, 1)
    table.insert_overwrite(rows(("b", "x", 1, 1)))
    refused(table, replaced(read(table, "b"), NAME, there.to_pylist()), 1, match="is none of them")


def test_versions_are_needed_beside_logs_alone(table):
    given = read(table).drop_columns([SEQNO])
    assert prepped(table, "upsert", plus(given.filter(pc.equal(given["id"], "d")))).updated == 1
    before = timeline(table)
    for name in ("upsert", "delete"):
        with pytest.raises(MissingColumnError, match=rf"1 rows .* have no {SEQNO}"):
            prepped(table, name, given.filter(pc.equal(given["id"], "d")))
    assert timeline(table) == before
    nothing = read(table)
    refused(table, replaced(nothing, SEQNO, [None] * nothing.num_rows), 1)  # one of them beside a log


def test_records_of_a_user_defined_merge_are_refused(tmp_path, monkeypatch):
    module = types.ModuleType("merges_of_prepped_rows")
    module.later = lambda old, new, context: new
    monkeypatch.setitem(sys.modules, "merges_of_prepped_rows", module)
    merge = {"hudi.merge": "merges_of_prepped_rows:later"}
    table = make(tmp_path / "t", **merge)
    table.upsert(rows(("a", "x", 2, 10)), options=merge)
    given = HudiTable.open(table.uri).read(meta_columns=True, options=merge).to_arrow()
    refused(table, given, 3, match="user-defined merge", **merge)


@pytest.mark.parametrize("memory", [None, "1"])
def test_rows_in_pieces_of_any_text_type(table, memory):
    table.upsert(rows(("a", "x", 2, 10), ("d", "y", 2, 40)), options=SMALL)
    current = read(table)
    for name, cast in (
        (NAME, lambda c: c.dictionary_encode()),
        (SEQNO, lambda c: c.cast(pa.string_view())),
        ("_hoodie_record_key", lambda c: c.cast(pa.large_string())),
    ):
        current = current.set_column(current.schema.get_field_index(name), name, cast(current[name]))
    current = pa.Table.from_batches(plus(current).to_batches(max_chunksize=1))
    more = {} if memory is None else {"hoodie.memory.merge.max.size": memory}
    assert prepped(table, "upsert", current, **more).updated == 4
    assert values(table) == {"a": 20, "b": 12, "c": 13, "d": 50}
    refused(table, current, 4, **more)


@pytest.mark.parametrize(("kind", "done"), [("upsert", "updated"), ("delete", "deleted")])
def test_rows_that_are_changed_between_look_and_write_are_refused(table, monkeypatch, kind, done):
    table.upsert(rows(("a", "x", 2, 10)), options=SMALL)
    given = plus(read(table, "a"))
    looks, real = [], local_engine.located

    def looked(*args):
        looks.append(None)
        out = real(*args)
        if len(looks) == 1:  # before the transaction, which looks again
            monkeypatch.setattr(local_engine, "located", real)
            HudiTable.open(table.uri).upsert(rows(("a", "x", 3, 99)), options=SMALL)
        return out

    monkeypatch.setattr(local_engine, "located", looked)
    with pytest.raises(ConcurrentWriterError, match="1 rows"):
        prepped(table, kind, given)
    assert len(looks) == 1
    assert values(table)["a"] == 99
    assert getattr(prepped(table, kind, read(table, "a")), done) == 1


def test_records_that_nothing_changed_in_between_are_read_once(table, monkeypatch):
    table.upsert(rows(("a", "x", 2, 10), ("d", "y", 2, 40)), options=SMALL)
    given, asked = read(table), []
    real = LoggedSlices.unchanged

    def unchanged(self, storage, group, rows):
        asked.append(group[0])
        return real(self, storage, group, rows)

    monkeypatch.setattr(LoggedSlices, "unchanged", unchanged)
    assert prepped(table, "upsert", given).updated == 4
    assert sorted(asked) == ["x", "y"]
