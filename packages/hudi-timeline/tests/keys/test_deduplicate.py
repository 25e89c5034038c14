"""Rows that stand twice, taken out by a commit."""

import pyarrow as pa
import pytest
from converted_tables import opened, tree
from duplicated_tables import QUIET, SCHEMA, SCOPES, TABLES, duplicated, keys_of, row, rows_of
from made_tables import MadeTable, at, file_id

from hudi_format.errors import InvalidOptionError, UnknownPartitionError, UnsupportedError
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.keys.deduplicate import deduplicate
from hudi_timeline.options.service_options import DedupeType
from hudi_timeline.services.table_service import ServiceContext


def context(made):
    return ServiceContext(LocalStorage(str(made.path)))


@pytest.mark.req("NEW-08", "NEW-28")
@pytest.mark.parametrize(
    ("kind", "left"), [("insert_type", [1, 2, 3]), ("update_type", [2, 4, 5, 7]), ("upsert_type", [2, 5, 7])]
)
def test_rows_that_stand_twice_are_taken_out_by_a_commit(tmp_path, kind, left):
    made = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())]))
    first = [{"id": "a", "p": "p", "v": 1}, {"id": "b", "p": "p", "v": 2}, {"id": "c", "p": "p", "v": 3}]
    made.commit(at(1), {("p", file_id(1)): first})
    second = [{"id": "a", "p": "p", "v": 4}, {"id": "a", "p": "p", "v": 5}, {"id": "c", "p": "p", "v": 7}]
    made.commit(at(2), {("p", file_id(2)): second})
    before = tree(made)
    planned = deduplicate(context(made), "p", kind=DedupeType(kind), dry_run=True)
    assert tree(made) == before
    done = deduplicate(context(made), "p", kind=DedupeType(kind))
    assert (done.keys, done.rows, done.files) == (planned.keys, planned.rows, planned.files)
    found = opened(made).read(meta_columns=True).to_arrow()
    assert sorted(found.column("v").to_pylist()) == left
    assert set(found.column("_hoodie_commit_time").to_pylist()) <= {at(1), at(2)}
    assert opened(made).read(as_of=at(2)).to_arrow().num_rows == 6
    assert opened(made).verify() == []
    opened(made).rollback(done.instant)
    assert opened(made).read().to_arrow().num_rows == 6
    with pytest.raises(UnknownPartitionError, match="no files"):
        deduplicate(context(made), "nowhere")


def chosen(table, keep, across):
    """What stays, told by Python of all rows in the order of their writes."""
    groups = {}
    virtual = not table.config.populate_meta_fields
    rows = table.read(meta_columns=True).to_arrow().to_pylist()
    if not virtual:
        rows.sort(key=lambda r: (r["_hoodie_commit_time"], r["_hoodie_commit_seqno"]))
    for r in rows:
        groups.setdefault(("" if across else r["p"], r["id"]), []).append({n: r[n] for n in SCHEMA.names})
    pick = {
        "merge": lambda of: max(enumerate(of), key=lambda n: (n[1]["ts"], n[0]))[1],
        "insert_type": lambda of: of[0],
        "upsert_type": lambda of: of[-1],
    }[keep]
    return sorted((pick(of) for of in groups.values()), key=str)


@pytest.mark.req("NEW-28")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("across", SCOPES)
@pytest.mark.parametrize(
    ("kind", "keep"),
    [(k, "merge") for k in TABLES] + [(k, how) for k in TABLES[:2] for how in ("insert_type", "upsert_type")],
)
def test_one_row_of_each_key_stays(tmp_path, kind, keep, across):
    table = duplicated(tmp_path / "t", kind)
    before, wanted = sorted(rows_of(table), key=str), chosen(table, keep, across)
    last = table.timeline.completed_writes()[-1].time
    seen = tree(Made(tmp_path / "t"))
    planned = table.deduplicate(keep=keep, across_partitions=across, dry_run=True)
    assert tree(Made(tmp_path / "t")) == seen
    done = table.deduplicate(keep=keep, across_partitions=across, options=QUIET)
    assert (done.keys, done.rows, done.files) == (planned.keys, planned.rows, planned.files)
    assert done.plan.to_pylist() == planned.plan.to_pylist()
    assert done.plan.column("action").to_pylist().count("removed") == done.rows == len(before) - len(wanted)
    assert sorted(rows_of(table), key=str) == wanted
    assert table.duplicates(across_partitions=across).num_rows == 0
    assert table.deduplicate(keep=keep, across_partitions=across).instant == ""
    assert [f for f in table.verify(deep=True) if across or f.code != "duplicate-key"] == []
    # Rows that stay were not written again.
    if "virtual" not in kind:
        assert (
            done.instant
            not in table.read(meta_columns=True).to_arrow().column("_hoodie_commit_time").to_pylist()
        )
    assert sorted(rows_at(table, last), key=str) == before
    table.restore(last)
    assert sorted(rows_of(table), key=str) == before


class Made:
    def __init__(self, path):
        self.path = path


def rows_at(table, instant):
    found = table.read(as_of=instant, meta_columns=False).to_arrow().to_pylist()
    return [{n: r[n] for n in SCHEMA.names} for r in found]


@pytest.mark.parametrize("across", SCOPES)
def test_updates_in_logs_of_keys_that_stand_twice_are_settled(tmp_path, across):
    table = duplicated(tmp_path / "t", "mor")
    table.upsert([row("a", "x", 20, "a4"), row("b", "x", 20, "b4")], options=QUIET)
    keys = set(keys_of(table, across))
    done = table.deduplicate(across_partitions=across, options=QUIET)
    found = {r["id"]: r for r in rows_of(table)}
    assert (found["a"]["v"], found["b"]["v"]) == ("a4", "b4")
    assert sorted(keys_of(table, across)) == sorted(keys)
    # What comes later goes on from there.
    table.upsert([row("a", "x", 30, "a5")], options=QUIET)
    table.compact()
    assert {r["v"] for r in rows_of(table) if r["id"] == "a"} == {"a5"}
    assert table.verify(deep=True) == []
    assert done.instant < table.timeline.completed_writes()[-1].time


@pytest.mark.parametrize("kind", TABLES)
def test_a_merge_that_makes_new_values_of_several_rows(tmp_path, kind):
    table = duplicated(tmp_path / "t", kind, **{"hudi.merge": '{"v": "max", "ts": "sum"}'})
    table.deduplicate(options=QUIET)
    found = {(r["p"], r["id"]): r for r in rows_of(table)}
    assert (found["x", "a"]["ts"], found["x", "a"]["v"]) == (12, "a3")
    assert (found["x", "b"]["ts"], found["x", "b"]["v"]) == (3, "b2")
    assert table.duplicates().num_rows == 0
    assert table.verify(deep=True) == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_payload_that_fills_what_the_winner_lacks(tmp_path, kind):
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    table = duplicated(tmp_path / "t", kind, **{"hoodie.datasource.write.payload.class": payload})
    table.bulk_insert([row("a", "x", 50, None), row("g", "x", 1, "g1")], options=QUIET)
    last = table.timeline.completed_writes()[-1].time
    done = table.deduplicate(options=QUIET)
    (found,) = [r for r in table.read(meta_columns=True).to_arrow().to_pylist() if r["id"] == "a"]
    assert (found["ts"], found["v"], found["_hoodie_commit_time"]) == (50, "a2", done.instant)
    assert done.plan.column("action").to_pylist().count("merged") == 1
    # An incremental read has the row that is new, and no other.
    assert [r["id"] for r in table.read_incremental(last, meta_columns=True).to_arrow().to_pylist()] == ["a"]


def test_a_pending_compaction_of_the_rows_is_refused(tmp_path):
    table = duplicated(tmp_path / "t", "mor")
    table.compact(mode="schedule")
    before = tree(Made(tmp_path / "t"))
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="is pending"):
            table.deduplicate(dry_run=dry_run)
    assert {k for k in tree(Made(tmp_path / "t")) if "rollback" in k} == {
        k for k in before if "rollback" in k
    }
    table.compact(mode="execute")
    table.deduplicate()
    assert table.duplicates().num_rows == 0


def test_a_slice_of_logs_alone_may_be_left_without_a_row(tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", **QUIET}
    table = HudiTable.create(
        tmp_path / "t", SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        table_type="MERGE_ON_READ", options=options,
    )  # fmt: skip
    table.upsert([row("a", "x", 1, "old")], options=options)
    table.upsert([row("a", "y", 2, "new")], options=options)
    done = table.deduplicate(across_partitions=True, options=QUIET)
    assert (done.keys, done.rows) == (1, 1)
    assert [r["v"] for r in rows_of(table)] == ["new"]
    table.upsert([row("b", "x", 1, "again")], options=options)
    assert sorted(r["v"] for r in rows_of(table)) == ["again", "new"]
    assert table.verify(deep=True) == []


def test_what_cannot_be_chosen_is_refused(tmp_path):
    table = duplicated(tmp_path / "t", "cow")
    before = tree(Made(tmp_path / "t"))
    with pytest.raises(InvalidOptionError, match="which row of a key stays"):
        table.deduplicate(keep="oldest")
    with pytest.raises(UnknownPartitionError):
        table.deduplicate(partitions=["nowhere"], dry_run=True)
    assert tree(Made(tmp_path / "t")) == before


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("kind", ["merge", "insert_type", "upsert_type"])
def test_rows_of_altered_columns_are_taken_out_too(tmp_path, table_type, kind):
    """Files of before have the columns under other names, in other types, or under names that are reused."""
    schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int32()), ("w", pa.string())]
    )
    table = HudiTable.create(
        tmp_path, schema, record_keys="id", partition_fields="p", ordering_fields="ts", table_type=table_type
    )
    first = [{"id": i, "p": "p", "ts": 1, "v": n, "w": f"old {i}"} for n, i in enumerate("abc")]
    table.insert(pa.Table.from_pylist(first, schema))
    table.upsert(pa.Table.from_pylist([{**first[2], "ts": 2, "v": 5, "w": "old c again"}], schema))
    table.alter().rename("w", "word").add("w", "double").widen("v", pa.int64()).execute()
    second = [{"id": i, "p": "p", "ts": 9, "v": 2**40, "word": f"new {i}", "w": 1.5} for i in "bd"]
    table.bulk_insert(second)
    table.bulk_insert([{**second[1], "ts": 8, "v": 7, "word": "later d", "w": None}])
    assert table.duplicates()["key"].to_pylist() == ["b", "b", "d", "d"]
    done = table.deduplicate(keep=kind)
    assert (done.keys, done.rows) == (2, 2)
    b, d = {
        "merge": ((2**40, "new b", 1.5), (2**40, "new d", 1.5)),
        "insert_type": ((1, "old b", None), (2**40, "new d", 1.5)),
        "upsert_type": ((2**40, "new b", 1.5), (7, "later d", None)),
    }[kind]
    want = {"a": (0, "old a", None), "b": b, "c": (5, "old c again", None), "d": d}
    opened = HudiTable.open(str(tmp_path))

    def rows():
        return {r["id"]: (r["v"], r["word"], r["w"]) for r in opened.read().to_arrow().to_pylist()}

    assert rows() == want
    assert opened.duplicates().num_rows == 0
    assert opened.verify(deep=True) == []
    last = opened.upsert([{"id": "a", "p": "p", "ts": 9, "v": 9, "word": "last", "w": 2.5}])
    assert rows() == {**want, "a": (9, "last", 2.5)}
    opened.rollback(last)
    opened.rollback(done.instant)
    assert opened.duplicates()["key"].to_pylist() == ["b", "b", "d", "d"]
