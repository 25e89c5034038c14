"""Files that another writer has made and not yet filled: waited for while they are young, and no longer."""

import os
import time

import pytest

from hudi_format.errors import CorruptFileError
from hudi_format.storage import stable_reads
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.stable_reads import may_be_filled, read_whole


def whole(data):
    if not data.endswith(b"."):
        raise CorruptFileError("not whole")
    return data


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 0.2)
    return LocalStorage(str(tmp_path))


def test_a_whole_file_is_parsed_at_once(storage, tmp_path):
    (tmp_path / "f").write_bytes(b"all.")
    assert read_whole(storage, "f", whole) == b"all."


def test_a_file_that_is_filled_in_pieces_is_waited_for(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 30.0)
    (tmp_path / "f").write_bytes(b"")
    seen = []

    def parse(data):
        seen.append(data)
        # Each look at it is followed by more of it: no clock decides what is read when.
        (tmp_path / "f").write_bytes(b"piece" if data == b"" else b"pieces.")
        return whole(data)

    assert read_whole(storage, "f", parse) == b"pieces."
    assert seen == [b"", b"piece", b"pieces."]


def test_a_file_that_came_to_rest_is_damaged(storage, tmp_path):
    (tmp_path / "f").write_bytes(b"part")
    with pytest.raises(CorruptFileError, match="not whole"):
        read_whole(storage, "f", whole)


def test_an_old_file_is_damaged_without_waiting(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("nobody fills it"))
    (tmp_path / "f").write_bytes(b"part")
    old = time.time() - 10 * stable_reads.YOUNG_S
    os.utime(tmp_path / "f", (old, old))
    assert not may_be_filled(storage, "f")
    with pytest.raises(CorruptFileError, match="not whole"):
        read_whole(storage, "f", whole)


def test_a_file_that_goes_meanwhile_is_not_there(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(stable_reads, "PATIENCE_S", 30.0)
    (tmp_path / "f").write_bytes(b"part")

    monkeypatch.setattr(time, "sleep", lambda _: (tmp_path / "f").unlink())
    with pytest.raises(FileNotFoundError):
        read_whole(storage, "f", whole)
    with pytest.raises(FileNotFoundError):
        read_whole(storage, "f", whole)
