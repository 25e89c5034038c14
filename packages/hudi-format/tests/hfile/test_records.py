"""Records of HFiles get the keys of their entries back."""

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.hfile.records import with_keys

ENTRIES = pa.array([b"a", b"b", b"c"])


def rows(*keys, kind=None):
    return pa.record_batch({"v": range(len(keys)), "key": pa.array(keys, kind)})


def test_empty_and_missing_keys_are_those_of_the_entries_and_others_stay():
    found = with_keys(rows("", None, "own"), ENTRIES)
    assert found["key"].to_pylist() == ["a", "b", "own"]
    assert found["v"].to_pylist() == [0, 1, 2]


def test_a_record_of_another_key_is_damage_where_keys_must_agree():
    assert with_keys(rows("", "b", None), ENTRIES, keys_agree=True)["key"].to_pylist() == ["a", "b", "c"]
    with pytest.raises(CorruptFileError, match="entry 'c' holds the record of 'own'"):
        with_keys(rows("", "b", "own"), ENTRIES, keys_agree=True)


def test_a_column_of_the_users_that_is_no_text_or_is_not_there_is_left_alone():
    numbers = rows(1, 2, 3)
    assert with_keys(numbers, ENTRIES) is numbers
    assert with_keys(rows("", "", ""), ENTRIES, "other")["key"].to_pylist() == ["", "", ""]


def test_an_entry_whose_key_is_no_text_is_damage():
    with pytest.raises(CorruptFileError, match="key that is not UTF-8"):
        with_keys(rows(""), pa.array([b"\xff"]))
