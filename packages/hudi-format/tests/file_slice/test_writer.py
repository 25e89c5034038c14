"""Base files written new and rewritten: rows, places, meta columns and the counts of their statistics."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.file_slice.writer import FileSpec, Incoming, RowCounter, concat_file, merge_file, stamp
from hudi_format.merge.payloads import payload_rule
from hudi_format.merge.record_merger import DATA, DATA_DELETED
from hudi_format.model import BaseFile
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_format.storage.local import LocalStorage

SCHEMA = pa.schema([("v", pa.int64()), ("ts", pa.int64())])


def spec(instant, **more):
    return FileSpec("p", "f-0", "0-1-1", instant, SCHEMA, ParquetConfig(), f"{instant}_0_", **more)


def records(*pairs):
    keys = [k for k, _, _ in pairs]
    return pa.table(
        {"_hoodie_record_key": keys, "v": [v for _, v, _ in pairs], "ts": [t for _, _, t in pairs]}
    )


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


@pytest.fixture
def old(storage):
    """A file of four records, written by instant 1."""
    made = spec("1")
    rows = stamp(records(*((k, n, 10) for n, k in enumerate("abcd"))), made, RowCounter())
    rows = pa.table(
        [
            c.cast(pa.string()) if n in META_COLUMNS else c
            for n, c in zip(rows.column_names, rows.columns, strict=True)
        ],
        rows.column_names,
    )
    with storage.open_output(made.path) as out:
        pq.write_table(rows, out, row_group_size=2)
    return BaseFile("p", made.name, "f-0", "1", "0-1-1")


def read(storage, made):
    return pq.read_table(storage.open_input(made.path))


def test_new_rows_have_the_meta_columns_of_their_file_and_numbers_of_their_own():
    counter = RowCounter()
    made = spec("7")
    first, second = (stamp(records((k, 1, 1)), made, counter).to_pylist()[0] for k in "ab")
    assert (first["_hoodie_commit_seqno"], second["_hoodie_commit_seqno"]) == ("7_0_0", "7_0_1")
    assert [first[n] for n in META_COLUMNS if n != "_hoodie_commit_seqno"] == ["7", "a", "p", made.name]


def test_updates_stay_in_place_new_records_follow_and_the_rest_keeps_its_commit(storage, old):
    stat = merge_file(storage, spec("2"), old, Incoming(records(("c", 30, 20), ("x", 99, 1))))
    rows = read(storage, spec("2")).to_pylist()
    assert [(r["_hoodie_record_key"], r["v"], r["_hoodie_commit_time"]) for r in rows] == [
        ("a", 0, "1"), ("b", 1, "1"), ("c", 30, "2"), ("d", 3, "1"), ("x", 99, "2"),
    ]  # fmt: skip
    assert {r["_hoodie_file_name"] for r in rows} == {spec("2").name}
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (5, 1, 1, 0)
    assert (stat.prev_commit, stat.file_size_in_bytes) == ("1", storage.info(spec("2").path).size)


def test_deletes_take_rows_out_and_bring_none_in(storage, old):
    kinds = np.array([DATA_DELETED, DATA_DELETED, DATA], np.uint8)
    incoming = Incoming(records(("a", 0, 1), ("nope", 0, 1), ("b", 7, 1)), kinds=kinds)
    stat = merge_file(storage, spec("2"), old, incoming)
    assert read(storage, spec("2"))["_hoodie_record_key"].to_pylist() == ["b", "c", "d"]
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes) == (3, 1, 0, 1)


@pytest.mark.parametrize(
    ("keys", "deleted", "told"),
    [("bxy", "", ["x", "y"]), ("abcd", "", []), ("xz", "z", ["x"]), ("ax", "a", None)],
)
def test_new_keys_are_told_where_none_went(storage, old, keys, deleted, told):
    rows = records(*((k, 1, 20) for k in keys))
    kinds = np.array([DATA_DELETED if k in deleted else DATA for k in keys], np.uint8)
    incoming = Incoming(rows, kinds=kinds)
    found = merge_file(storage, spec("2"), old, incoming, tells_keys=True).new_keys
    assert told == (None if found is None else found.to_pylist())
    assert merge_file(storage, spec("3"), old, incoming).new_keys is None


@pytest.mark.parametrize("limit", [None, MemoryLimit(1)], ids=["held", "by pieces"])
def test_a_record_that_is_older_than_the_stored_one_is_dropped(storage, old, limit):
    rows = records(("a", 50, 9), ("b", 60, 11), ("x", 70, 0))
    rule = payload_rule("org.apache.hudi.common.model.DefaultHoodieRecordPayload")
    incoming = Incoming(rows, rule, ordering=rows["ts"].combine_chunks(), ordering_field="ts")
    merge_file(storage, spec("2"), old, incoming, limit=limit)
    found = read(storage, spec("2"))
    assert dict(zip(found["_hoodie_record_key"].to_pylist(), found["v"].to_pylist(), strict=True)) == {
        "a": 0, "b": 60, "c": 2, "d": 3, "x": 70,
    }  # fmt: skip


def test_inserts_are_appended_without_a_look_at_the_keys(storage, old):
    stat = concat_file(storage, spec("2"), old, [records(("a", 100, 1)), records(("b", 101, 1))])
    assert read(storage, spec("2"))["_hoodie_record_key"].to_pylist() == ["a", "b", "c", "d", "a", "b"]
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (6, 2, 0)


def test_a_guard_that_refuses_leaves_no_finished_file(storage, old):
    def refuse():
        raise RuntimeError("the marker is gone")

    with pytest.raises(RuntimeError, match="marker"):
        merge_file(storage, spec("2"), old, Incoming(records(("a", 1, 1))), guard=refuse)
    if storage.info(spec("2").path) is not None:
        with pytest.raises(pa.ArrowException):
            read(storage, spec("2"))
