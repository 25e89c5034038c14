"""Notes of stores of keys."""

import pytest

from hudi_format.errors import CorruptFileError
from hudi_timeline.custom_index.catch_up import StoreNote


def test_a_note_is_read_as_it_was_written():
    note = StoreNote({"2": 20, "1": 10}, frozenset({"3"}), frozenset({"4", "5"}), "5")
    assert StoreNote.parse(note.text()) == note


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"writes": {"1": "x"}}', "[" * 100_000])
def test_what_is_no_note_is_refused(text):
    with pytest.raises(CorruptFileError, match="note of the index cannot be read"):
        StoreNote.parse(text)
