"""Arguments that are checked: lists of texts, JSON text, and functions by name."""

import pyarrow as pa
import pytest

from hudi_format import _checks as checks
from hudi_format.errors import InvalidOptionError


@pytest.mark.parametrize(
    "given", [["a", None, "b"], ("a", "b"), iter(["a", "b"]), pa.array(["a", None, "b"]), {"a": 1, "b": 2}]
)
def test_any_list_of_texts_is_taken_and_its_nulls_are_left_out(given):
    assert checks.text_list("keys", given) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("ab", "keys must be a list of texts, not one text"),
        (b"ab", "keys must be a list of texts, not one text"),
        (7, "keys must be a list of texts, not int"),
        (["a", 7], r"keys\[1\] must be a text, not int: 7"),
        (pa.array([7]), r"keys\[0\] must be a text, not int: 7"),
    ],
)
def test_what_is_no_list_of_texts_is_told_by_name_and_place(given, message):
    with pytest.raises(TypeError, match=message):
        checks.text_list("keys", given)


def test_json_is_read_from_text_and_bytes():
    assert checks.loads('{"a": [1, "é"]}') == checks.loads('{"a": [1, "é"]}'.encode()) == {"a": [1, "é"]}
    assert checks.loads(r'"\ud83d\ude00"') == "\U0001f600"  # both halves of one character


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"\udc00": 1}', "{", b"\xff", "1" * 5000])
def test_json_that_could_not_be_written_again_is_refused(text):
    with pytest.raises(ValueError):
        checks.loads(text)


def test_a_function_is_found_by_module_and_name():
    import json
    import os.path

    assert checks.imported("json:loads", "o") is json.loads
    assert checks.imported(" os.path : join ", "o") is os.path.join
    assert checks.imported("json:JSONDecoder.decode", "o") is json.JSONDecoder.decode


@pytest.mark.parametrize("reference", ["no_such_module:f", "json:no_such", ".json:loads", "json", ":f"])
def test_a_function_that_cannot_be_imported_is_told_with_its_option(reference):
    with pytest.raises(InvalidOptionError, match="cannot be imported") as e:
        checks.imported(reference, "hoodie.some.option")
    assert e.value.details["option"] == "hoodie.some.option"


def test_what_is_no_function_is_refused():
    with pytest.raises(InvalidOptionError, match="is a str, not a function"):
        checks.imported("json:__name__", "o")
