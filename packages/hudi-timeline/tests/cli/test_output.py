"""Listings as table, JSON and CSV."""

import csv
import io
import json
import sys
import warnings

import pyarrow as pa
import pytest

from hudi_timeline import write_hudi
from hudi_timeline.reading.scan import Scan


@pytest.mark.parametrize("command", ["timeline", "commits", "partitions", "files", "schema", "head"])
def test_every_listing_comes_as_table_json_and_csv(hudi, path, command):
    code, text, _ = hudi(command, path)
    assert code == 0
    rows = json.loads(hudi(command, path, "-o", "json")[1])
    table = list(csv.DictReader(io.StringIO(hudi(command, path, "--output", "csv")[1])))
    assert len(rows) == len(table) > 0
    assert set(table[0]) <= set(rows[0])
    for name in table[0]:
        assert name in text or command == "commits"  # of which a terminal has those that fit


DRIVING = "\x1b]0;mine\x07\x9b31m\u202e\x7f"


@pytest.mark.parametrize("command", ["show", "partitions", "files", "schema", "head", "verify"])
def test_a_table_cannot_drive_the_terminal_that_shows_it(hudi, tmp_path, command):
    path = str(tmp_path / "t")
    rows = pa.table({"id": ["a" + DRIVING], "p": [DRIVING], "s": [{"x": DRIVING}], "ts": [1]})
    write_hudi(path, rows, key="id", partition_by="p", ordering="ts", name="t" + DRIVING)
    for output in ("table", "json", "ndjson"):
        code, out, error = hudi(command, path, "-o", output)
        assert code == 0
        assert not set("\x1b\x07\x9b\u202e\x7f") & set(out + error)
    if command == "head":
        assert "a\\x1b]0;mine\\x07\\x9b31m\\u202e\\x7f" in hudi(command, path)[1]
        assert json.loads(hudi(command, path, "-o", "json")[1])[0]["id"] == "a" + DRIVING
        assert next(csv.DictReader(io.StringIO(hudi(command, path, "-o", "csv")[1])))["id"] == "a" + DRIVING


def test_an_error_cannot_drive_the_terminal(hudi, tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, pa.table({"id": ["a"], "ts": [1]}), key="id", ordering="ts", name="t")
    code, _, error = hudi("head", path, "-w", f"id = '{DRIVING}' and nope\u202e = 1")
    assert (code, "\u202e" in error) == (1, False)


def test_a_warning_is_one_line(hudi, path, monkeypatch):
    def warn(self):
        warnings.warn(f"{DRIVING} is\nodd", stacklevel=1)
        return 1

    monkeypatch.setattr(Scan, "count", warn)
    assert hudi("count", path) == (0, "1\n", "warning: \\x1b]0;mine\\x07\\x9b31m\\u202e\\x7f is odd\n")


def test_an_output_that_is_not_in_utf8_loses_nothing(hudi, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    write_hudi(path, pa.table({"id": ["größe東"], "ts": [1]}), key="id", ordering="ts", name="t")

    def printed(*arguments):
        with monkeypatch.context() as patch:
            out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
            patch.setattr(sys, "stdout", out)
            code, _, error = hudi(*arguments)
            out.flush()
            return code, out.buffer.getvalue().decode("latin-1"), error

    code, shown, _ = printed("head", path)
    assert (code, "größe\\u6771" in shown) == (0, True)
    for output in ("json", "ndjson"):
        code, shown, _ = printed("head", path, "-o", output)
        assert (code, '"gr\\u00f6\\u00dfe\\u6771"' in shown) == (0, True)
    code, shown, error = printed("head", path, "-o", "csv")
    assert (code, error.count("\n"), "HUDI-E0300" in error) == (1, 1, True)
    assert "PYTHONUTF8" in error
    # A file is in UTF-8 whatever the terminal is.
    assert printed("export", path, str(tmp_path / "rows.ndjson"))[0] == 0
    assert (tmp_path / "rows.ndjson").read_bytes() == '{"id": "größe東", "ts": 1}\n'.encode()


def test_json_has_only_what_json_has(hudi, tmp_path):
    path = str(tmp_path / "t")
    far = pa.array([2**62, None, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({
        "id": ["a", "b", "c"], "f": [float("nan"), float("-inf"), 0.5], "l": [[float("inf"), None], [], None],
        "t": far, "s": pa.StructArray.from_arrays([far, pa.array([1, 2, 3])], ["t", "n"]), "ts": [1, 2, 3],
    })  # fmt: skip
    write_hudi(path, rows, key="id", ordering="ts", name="t")
    exported = tmp_path / "rows.ndjson"
    hudi("export", path, str(exported))
    for text in (hudi("head", path, "-o", "ndjson")[1], exported.read_text()):
        lines = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
        first, second, third = sorted(lines, key=lambda r: r["id"])
        assert (first["f"], second["f"], third["f"], first["l"]) == (
            "NaN",
            "-Infinity",
            0.5,
            ["Infinity", None],
        )
        assert first["s"] == {"t": first["t"], "n": 1}
        assert first["t"].startswith("17036-07-06")
        assert (second["t"], third["t"]) == (None, "1970-01-01T00:00:00+00:00")
    assert "17036-07-06" in hudi("head", path)[1]


def test_an_empty_map_is_an_object_as_all_maps_are(hudi, tmp_path):
    path, exported = str(tmp_path / "t"), tmp_path / "rows.ndjson"
    texts = pa.map_(pa.string(), pa.int64())
    kinds = {
        "m": texts,
        "l": pa.list_(texts),
        "s": pa.struct([("m", texts)]),
        "d": pa.map_(pa.string(), texts),
    }
    schema = pa.schema({"id": pa.string(), **kinds, "plain": pa.list_(pa.int64())})
    one = [("k", 1)]
    rows = [
        {"id": "a", "m": [], "l": [[], one], "s": {"m": []}, "d": [("x", []), ("y", one)], "plain": []},
        {"id": "b", "m": one, "l": [], "s": {"m": one}, "d": [], "plain": [1]},
        {"id": "c", "m": None, "l": [None], "s": {"m": None}, "d": [("x", None)], "plain": None},
    ]
    write_hudi(path, pa.Table.from_pylist(rows, schema), key="id", name="t")
    told = [
        {"id": "a", "m": {}, "l": [{}, {"k": 1}], "s": {"m": {}}, "d": {"x": {}, "y": {"k": 1}}, "plain": []},
        {"id": "b", "m": {"k": 1}, "l": [], "s": {"m": {"k": 1}}, "d": {}, "plain": [1]},
        {"id": "c", "m": None, "l": [None], "s": {"m": None}, "d": {"x": None}, "plain": None},
    ]
    hudi("export", path, str(exported))
    for text in (hudi("head", path, "-o", "ndjson")[1], exported.read_text()):
        assert sorted(map(json.loads, text.splitlines()), key=lambda r: r["id"]) == told
    assert sorted(json.loads(hudi("head", path, "-o", "json")[1]), key=lambda r: r["id"]) == told
    cells = next(r for r in csv.DictReader(io.StringIO(hudi("head", path, "-o", "csv")[1])) if r["id"] == "a")
    assert {n: json.loads(c) for n, c in cells.items() if n != "id"} == {
        n: told[0][n] for n in cells if n != "id"
    }


@pytest.mark.parametrize("command", ["head", "history", "partitions", "duplicates"])
def test_a_limit_beyond_all_numbers_of_rows_is_told(hudi, path, command):
    code, _, error = hudi(command, path, "-n", str(2**70))
    assert (code, "--limit" in error) == (2, True)
    assert hudi(command, path, "-n", str(2**40))[0] == 0
