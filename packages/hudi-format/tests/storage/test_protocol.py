"""What storages are told apart by, and failures of the system as errors that name the file."""

import errno

import pytest

from hudi_format.errors import StorageError
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import (
    FlushingStorage,
    ObjectStorage,
    ReplacingStorage,
    WrappingStorage,
    named,
)


def test_a_local_disk_flushes_and_wraps_nothing(tmp_path):
    storage = LocalStorage(str(tmp_path))
    assert isinstance(storage, FlushingStorage)
    assert not isinstance(storage, ObjectStorage)
    assert not isinstance(storage, WrappingStorage)
    storage.unflushed().publish("f", b"x")
    storage.flush(["f"])
    assert storage.read("f") == b"x"


def test_a_store_in_memory_costs_requests_and_flushes_nothing():
    storage = open_storage("memory://protocol")
    assert isinstance(storage, ObjectStorage)
    assert not isinstance(storage, FlushingStorage)
    assert not isinstance(storage, ReplacingStorage) or not storage.can_replace


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "raise the quota"),
        (errno.EACCES, "grant this user access"),
        (errno.EROFS, "read-only"),
        (errno.EIO, ""),
    ],
)
def test_a_refusal_of_the_system_names_the_file_and_what_to_do(number, remedy):
    with pytest.raises(StorageError, match="the storage refused") as e, named("/t", "a/b"):
        raise OSError(number, "why")
    assert "a/b" in str(e.value)
    assert remedy in str(e.value)


@pytest.mark.parametrize(
    "error", [FileNotFoundError("x"), FileExistsError("x"), StorageError("x"), ValueError("x")]
)
def test_what_callers_ask_about_and_what_is_no_failure_of_the_system_stays(error):
    with pytest.raises(type(error)) as e, named("/t", "a"):
        raise error
    assert e.value is error
