"""What the failures of a store become."""

from __future__ import annotations

import errno
from http.client import IncompleteRead

import pytest

from hudi_format.errors import StorageError
from hudi_format.storage.errors import refusals
from hudi_format.storage.schemes import scheme_of


class _Refused(OSError):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(errno.EIO, text)
        self.response = {"Error": {"Code": code}}


@pytest.mark.req("NEW-36")
@pytest.mark.parametrize(
    ("error", "says", "remedy"),
    [
        (_Refused("NoSuchBucket", "x"), "the bucket 'b' does not exist", "create the bucket"),
        (_Refused("403", "x"), "access was denied", "fs.s3a.access.key"),
        (PermissionError("the signature topsecret is wrong"), r"signature \*\*\* is wrong", "credentials"),
        (OSError("Forbidden: b/t"), "access was denied", "credentials"),
        (TimeoutError("too long"), "cannot be reached", "network"),
        (OSError(errno.EIO, "first line\nsecond line"), "first line", "again"),
        (EOFError("the connection ended"), "connection ended", "again"),
        (IncompleteRead(b"part"), "IncompleteRead", "again"),
    ],
)
def test_refusals_are_one_line_with_a_remedy(error, says, remedy):
    with (
        pytest.raises(StorageError, match=says) as e,
        refusals("s3://b/t", "f", scheme_of("s3://b/t"), ["topsecret"]),
    ):
        raise error
    assert remedy in e.value.remedy
    assert e.value.file == "f"
    assert "\n" not in str(e.value)
    assert "topsecret" not in str(e.value)


def test_what_is_no_failure_of_the_store_stays_as_it_is():
    for error in (KeyError("x"), FileNotFoundError("f"), FileExistsError("f"), AssertionError("bug")):
        with pytest.raises(type(error)), refusals("s3://b/t", "f", scheme_of("s3://b/t")):
            raise error
