"""What the JSON of a commit says of files: the same as a full parser's answer, or none."""

import json
import random

import pytest

from hudi_format.commit_json import files_of_json

STAT = {
    "fileId": "f",
    "path": "p/f_1.parquet",
    "fileSizeInBytes": 7,
    "logOffset": 3,
    "runtimeStats": {"a": [1.5e3]},
}
STATS = '{"partitionToWriteStats" : %s}'
ONE = '{"partitionToWriteStats": {"p": [{"fileId": "f", "path": "p/f", "fileSizeInBytes": %s}]}}'


def parsed(data):
    """The answer of Python's parser; None where it fails, or finds something of another kind."""
    try:
        top = json.loads(data.decode())
        files = [
            (p, s["fileId"], s["path"].lstrip("/"), s["fileSizeInBytes"], s.get("logOffset") or 0)
            for p, stats in top["partitionToWriteStats"].items()
            for s in stats
            if s["path"]
        ]
        replaced = {p: tuple(ids) for p, ids in (top.get("partitionToReplaceFileIds") or {}).items()}
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    usual = all(type(i) is str and type(s) is int and type(o) is int for _, i, _, s, o in files)
    return (
        (files, replaced) if usual and all(type(i) is str for ids in replaced.values() for i in ids) else None
    )


def commit(**more):
    return {"partitionToWriteStats": {"p": [STAT, {**STAT, "path": None}], "é": [], "": [STAT]}, **more}


WHOLE = (
    commit(),
    commit(compacted=False, extraMetadata={"schema": '{"type":"record"}', "ü": "\\"}, operationType="UPSERT"),
    commit(partitionToReplaceFileIds={"p": ["a", "b"], "q": []}),
    commit(partitionToReplaceFileIds=None),
    {"partitionToWriteStats": {}},
)


@pytest.mark.parametrize("value", WHOLE)
@pytest.mark.parametrize("style", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_usual_files_are_told(value, style):
    data = json.dumps(value, **style).encode()
    found = files_of_json(data)
    if found is None:  # escapes in a partition's path are for the full parser
        assert b"\\u00e9" in data
    else:
        assert found == parsed(data)


UNUSUAL = {
    "nothing": "",
    "blanks": " \n",
    "a list": "[]",
    "no statistics": '{"operationType": "UPSERT"}',
    "none of them": STATS % "null",
    "a list of them": STATS % "[]",
    "a byte too few": STATS % '{"p": []}'[:-1],
    "a byte too many": STATS % "{}" + "x",
    "a comma too many": STATS % '{"p": [],}',
    "a control character": '{"a\n": 1, "partitionToWriteStats": {}}',
    "an escape in a name": '{"partitionToWriteStat\\u0073": {}, "partitionToWriteStats": {}}',
    "an unknown escape": '{"a": "\\x", "partitionToWriteStats": {}}',
    "statistics twice": '{"partitionToWriteStats": {}, "partitionToWriteStats": {}}',
    "a partition twice": STATS % '{"p": [], "p": []}',
    "a partition replaced twice": STATS % '{}, "partitionToReplaceFileIds": {"p": [], "p": []}',
    "a path twice": ONE % '1, "path": "x"',
    "a size twice": ONE % '1, "fileSizeInBytes": 1',
    "no size": STATS % '{"p": [{"fileId": "f", "path": "p/f"}]}',
    "no file id": STATS % '{"p": [{"fileId": null, "path": "p/f", "fileSizeInBytes": 1}]}',
    "a null size": ONE % "null",
    "a fraction": ONE % "1.0",
    "an exponent": ONE % "1e3",
    "a leading zero": ONE % "01",
    "19 digits": ONE % "1234567890123456789",
    "a text": ONE % '"1"',
    "an infinite size": ONE % "Infinity",
    "a not-a-number elsewhere": '{"a": NaN, "partitionToWriteStats": {}}',
    "nested too deep": '{"a": ' + "[" * 100 + "]" * 100 + ', "partitionToWriteStats": {}}',
    "an offset that is true": ONE % '1, "logOffset": true',
}


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_left_to_a_full_parser(text):
    assert files_of_json(text.encode()) is None


def test_bytes_that_are_no_text_are_left_to_a_full_parser():
    assert files_of_json(b'{"a": "\xff", "partitionToWriteStats": {}}') is None
    assert files_of_json(b'{"a": "\xed\xa0\x80", "partitionToWriteStats": {}}') is None  # a surrogate


def test_no_damage_makes_another_answer_than_a_full_parser_gives():
    """Of many damaged files each is the same to both, or to the full parser alone."""
    rng = random.Random(11)
    told = refused = 0
    sources = [json.dumps(v, ensure_ascii=False).encode() for v in WHOLE]
    pieces = [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"null",
        b"0",
        b"-",
        b".5",
        b"e",
        b"\xc3",
        b" ",
        b"path",
        b"\n",
    ]
    for _ in range(20_000):
        data = rng.choice(sources)
        for _ in range(rng.randint(1, 3)):
            at, length = rng.randrange(len(data) + 1), rng.choice((0, 0, 1, 1, 2, 7))
            data = data[:at] + (rng.choice(pieces) if rng.random() < 0.7 else b"") + data[at + length :]
        found = files_of_json(data)
        if found is None:
            refused += 1
        else:
            told += 1
            assert found == parsed(data), data
    assert told > 500
    assert refused > 5000


def test_a_number_of_18_digits():
    for digits in ("123456789012345678", "-123456789012345678", "0", "-0"):
        (file,), _ = files_of_json((ONE % digits).encode())
        assert file[3] == int(digits)
