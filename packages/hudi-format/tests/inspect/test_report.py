"""Reports on files as text and tables."""

import json

import pytest
from golden_logs import golden_logs
from log_bytes import SCHEMA, avro_content, block

from hudi_format.__main__ import main
from hudi_format.inspect.report import printable, printable_json
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader


def shown(capsys, *arguments):
    code = main(["inspect", *map(str, arguments)])
    return code, capsys.readouterr()


def test_the_table_of_a_log_file(tmp_path, capsys):
    kinds = [BlockType.AVRO_DATA, BlockType.DELETE]
    path, data = next(
        (p, d) for p, d in golden_logs("v6").items() if [b.type for b in LogFileReader(d).blocks] == kinds
    )
    file = tmp_path / path.rpartition("/")[2]
    file.write_bytes(data)
    code, out = shown(capsys, file)
    assert (code, out.err) == (0, "")
    data_block, delete_block = LogFileReader(data).blocks
    lines = out.out.splitlines()
    (head,) = [n for n, line in enumerate(lines) if line.strip().startswith("offset")]
    first, second = lines[head + 2].split(), lines[head + 3].split()
    assert first[:4] == ["0", str(data_block.size), "AVRO_DATA", data_block.instant]
    assert second[:4] == [str(delete_block.offset), str(delete_block.size), "DELETE", delete_block.instant]
    assert first[5] <= first[6]
    assert "1 AVRO_DATA, 1 DELETE" in out.out
    assert '["null", "string"]' in out.out


@pytest.mark.req("LF-06", "LF-19")
def test_every_header_entry_and_every_schema_of_a_log_file_is_shown(tmp_path, capsys):
    other = SCHEMA.replace('"name":"r"', '"name":"other"')
    assert other != SCHEMA
    headers = [
        {0: "1", 2: SCHEMA, 6: "0,1"},
        {0: "2", 2: other, 4: "1", 7: "true", 8: "9", 5: "AQ==", 42: "new"},
        {0: "3", 1: "2", 3: "0"},
    ]
    kinds = (3, 3, 0)
    contents = (avro_content([]), avro_content([]), b"")
    file = tmp_path / ".f_1.log.1_1-0-1"
    file.write_bytes(b"".join(map(block, kinds, headers, contents)))
    code, out = shown(capsys, file, "--json")
    found = json.loads(out.out)
    assert code == 0
    assert [row["header"] for row in found["rows"]] == [
        {"INSTANT_TIME": "1", "BLOCK_IDENTIFIER": "0,1"},
        {
            "INSTANT_TIME": "2", "COMPACTED_BLOCK_TIMES": "1", "RECORD_POSITIONS": "AQ==", "IS_PARTIAL": "true",
            "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": "9", "42": "new",
        },
        {"INSTANT_TIME": "3", "TARGET_INSTANT_TIME": "2", "COMMAND_BLOCK_TYPE": "0"},
    ]  # fmt: skip
    assert [row["schema"] for row in found["rows"]] == [1, 2, None]
    assert found["schemas"] == [json.loads(SCHEMA), json.loads(other)]
    assert found["schema"] == found["schemas"][-1]
    code, out = shown(capsys, file)
    assert "schema 1\n" in out.out
    assert "schema 2\n" in out.out
    assert "unknown header entries 42; partial update; " in out.out


def test_what_a_header_says_does_nothing_to_a_terminal(tmp_path, capsys):
    file = tmp_path / ".f_1.log.1_1-0-1"
    file.write_bytes(block(3, {0: "\x1b[31m1\n2", 2: '"\x1b[2J"'}, avro_content([])))
    _, out = shown(capsys, file)
    assert "\x1b" not in out.out
    assert "\\x1b[31m1\\n2" in out.out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m\x07", "\\x1b[31m\\x07"),
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\x7f\x9b31m", "\\x7f\\x9b31m"),
        ("\u202eexe.\u2066\ufeff", "\\u202eexe.\\u2066\\ufeff"),
        ("\udcff", "\\udcff"),
        ("größe 東京 می‌خواهم 👍🏽", "größe 東京 می‌خواهم 👍🏽"),
    ],
)
def test_what_drives_a_terminal_is_shown_as_an_escape(text, shown):
    assert printable(text) == shown


def test_json_keeps_its_values():
    value = {"\x9b31m": "\u202e\x7f\n\x1b", "n": [1, "é"]}
    text = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert all(c.isprintable() or c == "\n" for c in text)
