"""`python -m hudi_format inspect FILE` on files of Apache Hudi, and on damaged ones."""

import contextlib
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from golden_tables import golden
from log_bytes import SCHEMA, avro_content, block
from pyarrow import orc

from hudi_format.__main__ import main
from hudi_format.errors import HudiError, UnsupportedError
from hudi_format.inspect.files import inspect_file, inspect_parquet
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage


def shown(capsys, *arguments):
    code = main(["inspect", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_golden_log_file_is_shown_whole(version):
    storage = open_storage("memory://inspect")
    for path, data in golden_logs(version).items():
        name = path.rpartition("/")[2]
        storage.touch(f"{version}/{name}", data)
        report = inspect_file(f"memory://inspect/{version}/{name}")
        assert report.problems == ()
        assert report.facts["bytes"] == len(data)
        found = json.loads(report.to_json())["rows"]
        assert [(r["offset"], r["bytes"]) for r in found] == [
            (b.offset, b.size) for b in LogFileReader(data).blocks
        ]
        for row in found:
            assert (row["records"] is None) == (row["type"] == BlockType.COMMAND.name)


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


def test_damage_is_shown_and_gives_another_exit_code(tmp_path, capsys):
    path, data = next(iter(golden_logs("v6", "mor_avro_logs").items()))
    file = tmp_path / path.rpartition("/")[2]
    file.write_bytes(data[: len(data) // 2])
    code, out = shown(capsys, file)
    assert code == 1
    assert "problem: byte 0: block that runs past the end of the file" in out.out
    code, out = shown(capsys, file, "--json")
    assert json.loads(out.out)["problems"]
    # A block that is whole, but whose records are not.
    (first, *_) = LogFileReader(data).blocks
    at = first.content_offset + 4
    file.write_bytes(data[:at] + b"\x7f" + data[at + 1 :])
    code, out = shown(capsys, file)
    assert code == 1
    assert f"at byte {at}" in out.out


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


@pytest.mark.req("LF-06")
def test_what_a_header_says_does_nothing_to_a_terminal(tmp_path, capsys):
    file = tmp_path / ".f_1.log.1_1-0-1"
    file.write_bytes(block(3, {0: "\x1b[31m1\n2", 2: '"\x1b[2J"'}, avro_content([])))
    _, out = shown(capsys, file)
    assert "\x1b" not in out.out
    assert "\ufffd[31m1\ufffd2" in out.out


def test_base_files_show_row_groups_and_what_apache_hudi_wrote(tmp_path, capsys):
    (table,) = golden("v6", "mor_avro_logs")
    file = min(table.unpack(tmp_path).rglob("*.parquet"))  # some of them hold one key
    code, out = shown(capsys, file, "--json")
    found = json.loads(out.out)
    assert code == 0
    assert found["rows"][0]["codec"] == "GZIP"
    assert found["rows"][0]["rows"] > 0
    assert found["hoodie_min_record_key"] < found["hoodie_max_record_key"]
    assert found["schema"]["fields"][0]["name"] == "_hoodie_commit_time"


def test_orc_files_show_stripes(tmp_path, capsys):
    orc.write_table(pa.table({"a": [1, 2, 3]}), str(tmp_path / "x.orc"))
    code, out = shown(capsys, tmp_path / "x.orc", "--json")
    assert (code, json.loads(out.out)["rows"]) == (0, [{"stripe": 0, "rows": 3}])
    (tmp_path / "y.orc").write_bytes(b"ORC and nothing else")
    code, out = shown(capsys, tmp_path / "y.orc")
    assert (code, "HUDI-E0401" in out.err) == (2, True)


def test_hfiles_show_their_keys(tmp_path, capsys):
    data = next(d for d in golden_logs("v6", "mdt_all_indexes").values() if b'TRABLK"$' in d)
    with LogFileReader(data) as log:
        b = next(b for b in log.blocks if b.type is BlockType.HFILE_DATA)
        (tmp_path / "part").write_bytes(log.content(b).to_pybytes())
    code, out = shown(capsys, tmp_path / "part", "--json")
    (row,) = json.loads(out.out)["rows"]
    assert code == 0
    assert row["entries"] >= 1
    assert row["first key"] <= row["last key"]
    assert json.loads(out.out)["schema"]["name"] == "HoodieMetadataRecord"


def test_what_is_no_file_of_a_table_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("hello")
    code, out = shown(capsys, tmp_path / "text")
    assert (code, out.out) == (2, "")
    assert "neither a log file" in out.err
    assert shown(capsys, tmp_path / "none")[0] == 2
    assert shown(capsys, tmp_path)[0] == 2
    (tmp_path / "empty").touch()
    with pytest.raises(UnsupportedError):
        inspect_file(str(tmp_path / "empty"))
    (tmp_path / ".f-0_1.log.1_0-0-0").touch()
    code, out = shown(capsys, tmp_path / ".f-0_1.log.1_0-0-0")
    assert (code, "blocks" in out.out) == (0, True)
    with pytest.raises(HudiError):
        inspect_file(str(tmp_path / "none"))


@pytest.mark.req("NEW-37")
def test_a_codec_that_parquet_does_not_know_is_shown_by_its_number(tmp_path):
    path = tmp_path / "f-0_0-1-1_20240101000000000.parquet"
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), path, compression={"a": "zstd", "b": "snappy"})
    data = path.read_bytes()
    storage = LocalStorage(str(tmp_path))
    assert inspect_parquet(storage, path.name).rows[0][-1] == "SNAPPY ZSTD"
    found = set()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for at in range(start, len(data) - 8):
        path.write_bytes(data[:at] + b"\x24" + data[at + 1 :])  # 18 as Thrift writes it
        with contextlib.suppress(HudiError):
            found.update(row[-1] for row in inspect_parquet(storage, path.name).rows)
    assert any("unknown codec 18" in codecs for codecs in found)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_error(tmp_path, form):
    path = tmp_path / ".f_1.log.1_0-0-0"
    path.write_bytes(b"".join(next(iter(golden_logs(VERSIONS[0]).values())) for _ in range(3000)))
    command = [sys.executable, "-m", "hudi_format", "inspect", str(path), *form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_folder_or_an_unknown_store_is_told_from_a_file_that_is_gone(tmp_path, capsys):
    for address, what in (
        (tmp_path, "it is a folder"), (f"{tmp_path}/", "it is a folder"), ("/", "it is a folder"),
        (tmp_path / "x", "no such file"), (f"file://{tmp_path}/x", "no such file"),
        ("file:///no-such-file", "no such file"), ("memory://x", "no such file"),
        ("nowhere://x", "no file system is known"), ("nowhere://x/y", "no file system is known"),
    ):  # fmt: skip
        code, out = shown(capsys, address)
        assert (code, out.out) == (2, "")
        assert what in out.err, (address, out.err)
