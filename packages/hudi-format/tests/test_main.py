"""`python -m hudi_format inspect` of an HFile."""

import json

import pytest
from hfile_reference import FILES, blocks, entries

from hudi_format.__main__ import main


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
