"""Rows that were read from a slice are told from those whose record is another one by now."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from slices import SCHEMA, rows_of, write_slice

from hudi_format.errors import MissingFileError
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.payloads import payload_rule
from hudi_format.merge.user_merger import custom_rule
from hudi_format.model import VisibleInstants
from hudi_format.schema.meta_fields import COMMIT_SEQNO, RECORD_KEY
from hudi_format.storage.open import open_storage

EVENT_TIME = SliceMerge(payload_rule("DefaultHoodieRecordPayload"), "ts")
PARTIAL = SliceMerge(payload_rule("PartialUpdateAvroPayload"), "ts")
GROUP = ("", "f-0")


def records(pairs, instant):
    return rows_of([(k, {"ts": ts, "text": text}) for k, ts, text in pairs], instant)


def slice_of(storage, logs, merge=EVENT_TIME, base=True):
    stored = records([("a", 5, "x"), ("b", 5, None), ("c", 5, "x"), ("a", 5, "twice")], "1") if base else None
    return LoggedSlices({GROUP: write_slice(storage, stored, logs)}, merge, SCHEMA)


def read(storage, slices):
    found = read_file_slice(storage, slices.slices[GROUP], slices.merge, SCHEMA)
    return pa.Table.from_batches(list(found), SCHEMA)


def unchanged(storage, slices, rows):
    """Keys and numbers of the rows that are as they were."""
    mask = slices.unchanged(storage, GROUP, rows)
    kept = rows.filter(pa.array(mask))
    return list(zip(kept[RECORD_KEY].to_pylist(), kept[COMMIT_SEQNO].to_pylist(), strict=True))


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


@pytest.mark.parametrize("base", [True, False])
def test_keys_are_those_of_merged_records(storage, base):
    slices = slice_of(storage, [records([("l", 1, "log"), ("a", 9, "log")], "100")], base=base)
    found = [k for keys in slices.keys(storage, GROUP) for k in keys.to_pylist()]
    assert sorted(set(found)) == (["a", "b", "c", "l"] if base else ["a", "l"])


@pytest.mark.parametrize("base", [True, False])
def test_what_is_read_is_there_until_a_log_changes_it(storage, base):
    first = records([("l", 1, "log"), ("m", 1, "log")], "100")
    slices = slice_of(storage, [first], base=base)
    rows = read(storage, slices)
    assert slices.unchanged(storage, GROUP, rows).all()
    assert rows.num_rows == (6 if base else 2)
    later = [
        first,
        records([("l", 2, "new"), ("c", 9, "new"), ("n", 1, "new")], "101"),
        (pa.array(["m"]), None),
    ]
    slices = slice_of(storage, later, base=base)
    left = [("a", "1_0_0"), ("b", "1_0_1"), ("a", "1_0_3")] if base else []
    assert unchanged(storage, slices, rows) == left
    assert slices.unchanged(storage, GROUP, read(storage, slices)).all()


def test_a_log_that_loses_changes_nothing_and_one_that_fills_does(storage):
    late = [records([("a", 1, "late"), ("b", 1, "late")], "100")]
    rows = read(storage, slice_of(storage, []))
    assert slice_of(storage, late).unchanged(storage, GROUP, rows).all()
    partial = slice_of(storage, late, PARTIAL)
    filled = dict(zip(*(read(storage, partial)[n].to_pylist() for n in (RECORD_KEY, "text")), strict=True))
    assert filled["b"] == "late"
    assert ("b", "1_0_1") not in unchanged(storage, partial, rows)
    assert ("c", "1_0_2") in unchanged(storage, partial, rows)


def test_a_logged_record_that_another_one_fills_is_another_one(storage):
    one = records([("l", 5, None)], "100")
    before = read(storage, slice_of(storage, [one], PARTIAL, base=False))
    both = slice_of(storage, [one, records([("l", 1, "late")], "101")], PARTIAL, base=False)
    assert read(storage, both)["text"].to_pylist() == ["late"]
    assert unchanged(storage, both, before) == []


def kinds():
    def views(column):
        return column.cast(pa.string_view())

    def chunks(column):
        return pa.chunked_array([column.slice(0, 1), column.slice(1, 0), column.slice(1)], column.type)

    yield "plain", lambda c: c
    yield "dictionary", lambda c: c.dictionary_encode()
    yield "large", lambda c: c.cast(pa.large_string())
    yield "views", views
    yield "chunks", chunks


@pytest.mark.parametrize("kind", [pytest.param(f, id=n) for n, f in kinds()])
def test_versions_of_any_text_column(storage, kind):
    slices = slice_of(storage, [records([("c", 9, "new")], "100")])
    keys = ["zz", "a", "c", "a", "b", None, "b", "x"]
    numbers = ["", "1_0_0", "1_0_2", "1_0_0", None, "1_0_1", "1_0_1", "1_0_1"]
    rows = pa.table({RECORD_KEY: kind(pa.array(keys)), COMMIT_SEQNO: kind(pa.array(numbers))})
    wanted = [False, True, False, True, False, False, True, False]
    assert slices.unchanged(storage, GROUP, rows).tolist() == wanted
    assert slices.unchanged(storage, GROUP, rows.slice(3, 4)).tolist() == wanted[3:7]
    assert slices.unchanged(storage, GROUP, rows.slice(0, 0)).dtype == np.bool_


def test_a_worker_gets_its_slices_and_a_file_that_is_gone_is_told(storage, tmp_path):
    slices = slice_of(storage, [records([("a", 9, "new")], "100")])
    path = slices.slices[GROUP].log_files[0].path
    slices = replace(slices, committed={path: (), "other": ()})
    part = pickle.loads(pickle.dumps(slices.of([GROUP])))
    assert (dict(part.slices), set(part.committed)) == (slices.slices, {path})
    assert not slices.of([]).slices
    rows = read(storage, slices)
    (tmp_path / path).unlink()
    with pytest.raises(MissingFileError):
        slices.unchanged(storage, GROUP, rows)


def test_slices_are_compared_once_while_nothing_of_them_changes(storage):
    first = slice_of(storage, [records([("a", 9, "new")], "100")])
    path = first.slices[GROUP].log_files[0].path
    visible = VisibleInstants(frozenset({"1", "100"}), "1")
    scope = BlockScope(visible, frozenset({"101"}))
    first = replace(first, merge=replace(first.merge, scope=scope))

    def compared(**changes):
        more = replace(scope, **changes)
        return replace(first, merge=replace(first.merge, scope=more)).after(first).compared

    assert first.after(None).compared == frozenset()
    assert compared() == compared(inflight=frozenset({"101", "102"})) == {GROUP}
    assert not compared(inflight=frozenset())  # complete by now, or taken back
    assert not compared(visible=VisibleInstants(frozenset({"1", "100", "101"}), "1"))
    assert not replace(first, committed={path: (CommittedRange("100", 0, 10),)}).after(first).compared
    grown = replace(first.slices[GROUP], log_files=())
    assert not replace(first, slices={GROUP: grown}).after(first).compared
    assert not replace(first, slices={("p", "f-1"): grown}).after(first).compared


def test_versions_that_cannot_be_told():
    for merge, why in (
        (EVENT_TIME, ""),
        (PARTIAL, ""),
        (replace(EVENT_TIME, rule=custom_rule('{"text": "max"}')), "user-defined merge"),
        (replace(EVENT_TIME, key_spec=KeySpec(("id",), (), "NON_PARTITION")), "no meta columns"),
    ):
        told = LoggedSlices({}, merge, SCHEMA).untold
        assert why in told if why else told == ""
