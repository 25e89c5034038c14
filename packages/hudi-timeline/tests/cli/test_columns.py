"""Columns changed from a shell."""

import json

import pytest


def test_columns_are_changed_one_command_each(hudi, path):
    def ran(*arguments):
        code, out, error = hudi("alter", *arguments, "-o", "json")
        assert code == 0, error
        return json.loads(out)

    assert ran("add", path, "note", "string", "--after", "id")["columns"] == ["id", "note", "p", "v"]
    assert ran("rename", path, "v", "w")["changes"] == ["v renamed to w"]
    assert ran("widen", path, "w", "double", "--dry-run")["executed"] is False
    assert ran("move", path, "w", "--first")["columns"] == ["w", "id", "note", "p"]
    assert ran("drop", path, "note")["columns"] == ["w", "id", "p"]
    code, out, _ = hudi("head", path, "-o", "json")
    assert code == 0
    assert sorted(r["w"] for r in json.loads(out)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "PATH", "v", "string"), 1, "HUDI-E0501"),
        (("add", "PATH", "w", "text"), 1, "there is no type"),
        (("rename", "PATH", "nope", "w"), 1, "HUDI-E05"),
        (("drop", "PATH", "id"), 1, "makes keys"),
        (("widen", "PATH", "v", "int"), 1, "does not widen"),
        (("move", "PATH", "v"), 1, "one place"),
        (("move", "PATH"), 2, "COLUMN"),
        (("add", "nowhere", "v", "string"), 1, "HUDI-E0101"),
    ],
)
def test_what_does_not_go_is_one_line(hudi, path, arguments, code, said):
    got, _, error = hudi("alter", *(path if a == "PATH" else a for a in arguments))
    assert (got, said in error) == (code, True), error
    assert code == 2 or error.count("\n") == 1
