"""`python -m hudi_format inspect FILE` on files of Apache Hudi, and on damaged ones."""

import contextlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from golden_tables import golden
from pyarrow import orc

from hudi_format.__main__ import main
from hudi_format.errors import HudiError
from hudi_format.inspect.files import inspect_file, inspect_parquet
from hudi_format.log.block import BlockType
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage


def shown(capsys, *arguments):
    code = main(["inspect", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.sampled(3)
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
