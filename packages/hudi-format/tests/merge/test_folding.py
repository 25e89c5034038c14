"""Merges of the user's as base files are written: rows of a key in their order, from the stored record on."""

import merge_functions
import numpy as np
import pyarrow as pa
import pytest

from hudi_format.merge.folding import Folding, folded_alone, inserted_alone
from hudi_format.merge.payloads import payload_rule
from hudi_format.merge.record_merger import DATA, DATA_DELETED
from hudi_format.merge.user_merger import STORED, custom_rule, merge_text

HOOKED = custom_rule(
    merge_text(
        {
            "function": merge_functions.in_unit,
            "insert": merge_functions.first_of,
            "properties": {"times": "2", "name": "new"},
        }
    )
)


def rows(*given):
    names = ["_hoodie_record_key", "count", "name"]
    return pa.table([pa.array(c) for c in zip(*given, strict=True)], names=names)


def kinds(*given):
    return np.array(given, dtype=np.uint8)


def shown(table):
    return [tuple(r.values()) for r in table.sort_by("_hoodie_record_key").to_pylist()]


@pytest.mark.req("NEW-04", "PM-03")
def test_a_stored_record_is_met_and_not_inserted():
    given = rows(("a", -5, "stored"), ("b", 1, "stored"), ("c", -1, "c"), ("a", 7, "a"), ("d", 1, "d"))
    one = folded_alone(given, HOOKED, kinds(STORED, STORED, DATA, DATA, DATA), None)
    # The stored ones keep their names and their negative counts; of the others a negative one is dropped.
    assert shown(one) == [("a", 4, "a"), ("b", 1, "stored"), ("d", 1, "new")]


@pytest.mark.req("NEW-04")
def test_a_delete_ends_a_stored_record_and_what_follows_begins_anew():
    given = rows(("a", 5, "stored"), ("b", 5, "stored"), ("a", 0, ""), ("b", 0, ""), ("a", 1, "a"))
    one = folded_alone(given, HOOKED, kinds(STORED, STORED, DATA_DELETED, DATA_DELETED, DATA), None)
    assert shown(one) == [("a", 1, "new")]


def test_rows_of_a_file_and_stored_ones_of_another_are_met_in_one_rewrite():
    moved = rows(("m", -1, "stored"), ("k", 3, "k"), ("m", 2, "m"))
    folding = Folding(moved, HOOKED, kinds(STORED, DATA, DATA), None)
    met, take, gone = folding.meet(rows(("k", 4, "old"), ("x", 1, "old")))
    assert (shown(met), take.tolist(), gone.tolist()) == ([("k", 14, "k")], [0, -1], [False, False])
    assert shown(folding.rest()) == [("m", 2, "m")]


def test_new_rows_are_made_by_the_insert_function_alone():
    given = rows(("a", 1, "a"), ("a", 2, "b"), ("b", 1, "gone"))
    assert shown(inserted_alone(given, HOOKED, kinds(DATA, DATA, DATA_DELETED), None)) == [
        ("a", 1, "new"),
        ("a", 2, "new"),
    ]
    plain = custom_rule('{"count": "sum"}')
    assert inserted_alone(given, plain, None, None) is given
    with pytest.raises(ValueError, match="not a user-defined merge"):
        Folding(given, payload_rule(None), None, None)
