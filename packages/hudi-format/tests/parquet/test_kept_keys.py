"""Keys of base files that stay in a process: read once, up to a size, and never those of another file."""

import pyarrow as pa
import pytest

from hudi_format.errors import MissingFileError
from hudi_format.model import BaseFile
from hudi_format.parquet.kept_keys import KeptKeys
from hudi_format.parquet.reader import read_keys
from hudi_format.storage.local import LocalStorage


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path))


def test_kept_keys_are_read_once_and_the_oldest_go_first(storage):
    keys = pa.array(["0123456789"] * 100)
    kept = KeptKeys(limit_bytes=int(2.5 * keys.nbytes))
    read = []

    def ask(name):
        if storage.info(f"p/{name}") is None:
            storage.create(f"p/{name}", b"1")
        file = BaseFile("p", name, name, "1")
        found, held = kept.of(storage, file, lambda: read.append(name) or keys)
        assert found.to_pylist() == keys.to_pylist()
        return held

    assert [ask(n) for n in ("a", "b", "a", "c", "a", "b")] == [False, False, True, False, True, False]
    assert read == ["a", "b", "c", "b"]
    nothing = KeptKeys(limit_bytes=1)
    assert [nothing.of(storage, BaseFile("", "f", "f", "1"), lambda: keys)[1] for _ in range(2)] == [
        False,
        False,
    ]
    storage.publish("p/a", b"another")
    assert not ask("a"), "another file of the same name"
    with pytest.raises(MissingFileError):
        kept.of(storage, BaseFile("p", "d", "d", "1"), lambda: read_keys(storage, "p/d"))
