"""Files that are no bug capsules, and changed ones."""

import zipfile

import pytest

from hudi_format.errors import CorruptFileError, TableExistsError, UnsupportedError
from hudi_timeline.bug_capsule import open_capsule

pytestmark = pytest.mark.req("NEW-13")


def test_what_is_no_capsule_or_would_leave_its_folder_is_refused(tmp_path):
    (tmp_path / "no.zip").write_bytes(b"no")
    with pytest.raises(CorruptFileError):
        open_capsule(tmp_path / "no.zip", tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("capsule.json", '{"format": 1, "files": [{"path": "../x", "mtime_ms": 0}]}')
        archive.writestr("files/../x", "x")
    with pytest.raises(CorruptFileError, match="not below the table"):
        open_capsule(tmp_path / "evil.zip", tmp_path / "a" / "b")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(TableExistsError):
        open_capsule(tmp_path / "evil.zip", tmp_path / "full")


def test_a_changed_byte_of_a_capsule_gives_a_table_or_an_error(tmp_path):
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("capsule.json", '{"format": 1, "files": [{"path": "a/b", "mtime_ms": 1000}]}')
        archive.writestr("files/a/b", "content " * 9)
    data = whole.read_bytes()
    refused = 0
    for at in range(len(data)):
        for bit in (0, 5, 7):
            changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            (tmp_path / "bug.zip").write_bytes(changed)
            try:
                open_capsule(tmp_path / "bug.zip", tmp_path / f"{at}-{bit}")
            except (CorruptFileError, UnsupportedError):
                refused += 1
    assert refused > len(data)
