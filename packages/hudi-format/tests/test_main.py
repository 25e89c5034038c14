"""`python -m hudi_format inspect` of an HFile."""

import json
import subprocess
import sys

import pytest
from golden_logs import VERSIONS, golden_logs
from hfile_reference import FILES, blocks, entries

from hudi_format.__main__ import main
from hudi_format.errors import HudiError, UnsupportedError
from hudi_format.inspect.files import inspect_file


@pytest.mark.parametrize("name", ["16KB_GZ_200_20_non_unique", "1KB_GZ_20000_large_keys", "no_entry"])
def test_every_data_block_is_shown(name, capsys):
    file = next(p for p in FILES if p.stem.endswith(name))
    data = file.read_bytes()
    assert main(["inspect", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    want = [b for b in blocks(data) if b.magic == b"DATABLK*"]
    assert [(r["data block at byte"], r["bytes"], r["bytes unpacked"]) for r in shown["rows"]] == [
        (b.offset, b.size, len(b.content)) for b in want
    ]
    pairs = entries(data)
    assert sum(r["entries"] for r in shown["rows"]) == shown["entries"] == len(pairs)
    assert (shown["bytes"], shown["compression"], shown["KEY_VALUE_VERSION"]) == (len(data), "GZ", 1)
    if pairs:
        assert shown["rows"][0]["first key"] == pairs[0][0].decode()
        assert shown["rows"][-1]["last key"] == shown["hfile.LASTKEY"] == pairs[-1][0].decode()
    else:
        assert shown["schema"]["name"] == "trip"
        assert shown["meta block bloomFilter"] == "431380 bytes"


def test_damage_is_a_problem_and_what_comes_before_it_is_shown(tmp_path, capsys):
    file = next(p for p in FILES if p.stem.endswith("64KB_NONE_5000"))
    data = bytearray(file.read_bytes())
    data[200_000] ^= 1
    (tmp_path / "f.hfile").write_bytes(data)
    assert main(["inspect", str(tmp_path / "f.hfile")]) == 1
    out = capsys.readouterr().out
    assert "hudi-key-000001110" in out
    assert "checksum is wrong" in out


def shown(capsys, *arguments):
    code = main(["inspect", *map(str, arguments)])
    return code, capsys.readouterr()


def test_what_is_no_file_of_a_table_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("hello")
    code, out = shown(capsys, tmp_path / "text")
    assert (code, out.out) == (2, "")
    assert "not a log file" in out.err
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


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.sampled(2)
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
        (tmp_path, "is a folder"), (f"{tmp_path}/", "is a folder"), ("/", "is a folder"),
        (tmp_path / "x", "does not exist"), (f"file://{tmp_path}/x", "does not exist"),
        ("file:///no-such-file", "does not exist"), ("memory://x", "does not exist"),
        ("nowhere://x", "no file system is known"), ("nowhere://x/y", "no file system is known"),
    ):  # fmt: skip
        code, out = shown(capsys, address)
        assert (code, out.out) == (2, "")
        assert what in out.err, (address, out.err)
