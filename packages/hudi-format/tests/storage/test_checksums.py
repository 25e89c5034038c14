"""Checksum files of Hadoop's local file system, `.<name>.crc`: none may stay beside what we write."""

import pytest

from hudi_format.storage.local import LocalStorage


def write_with_arrow(storage, path):
    with storage.open_output(path) as out:
        out.write(b"new")


WAYS = {
    "publish": lambda s, p: s.publish(p, b"new"),
    "touch": lambda s, p: s.touch(p, b"new"),
    "open_output": write_with_arrow,
    "delete and create": lambda s, p: (s.delete(p), s.create(p, b"new")),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_checksum_of_the_old_content_goes_with_it(tmp_path, way):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_bytes(b"old")
    (tmp_path / "d/.f.crc").write_bytes(b"crc\x00")
    WAYS[way](storage, "d/f")
    assert storage.read("d/f") == b"new"
    assert not (tmp_path / "d/.f.crc").exists()


def test_a_refused_creation_leaves_file_and_checksum_alone(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / ".f.crc").write_bytes(b"crc\x00")
    with pytest.raises(FileExistsError):
        storage.create("f", b"new")
    assert (tmp_path / ".f.crc").exists()
    assert storage.read("f") == b"old"


def test_a_stale_checksum_without_its_file_goes_when_the_file_comes(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / ".f.crc").write_bytes(b"crc\x00")
    storage.create("f", b"new")
    assert not (tmp_path / ".f.crc").exists()
