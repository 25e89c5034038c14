"""The stores that the suite of this folder runs on: this machine's disk, memory, a real S3 server, and folders.

The last is a disk reached through fsspec whose rename refuses to overwrite, as that of HDFS does, which needs a
cluster.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline import HudiTable


@dataclass
class Store:
    """A place of one test's own.

    Attributes:
        root: URL of a folder.
        options: storage options.
    """

    name: str
    root: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def uri(self, table: str = "t") -> str:
        return f"{self.root}/{table}"

    def storage(self, table: str = "t") -> Storage:
        return open_storage(self.uri(table), self.options)

    def open(self, table: str = "t") -> HudiTable:
        return HudiTable.open(self.uri(table), storage_options=self.options)


class Folders(LocalFileSystem):
    """A tree of folders under a scheme of HDFS."""

    protocol = "webhdfs"

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(super()._strip_protocol(str(path).removeprefix("webhdfs://")))

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        failed = OSError(f"rename of {path1} to {path2} failed")
        if os.path.isdir(path1):
            if os.path.lexists(path2):
                raise failed
            os.rename(path1, path2)
            return
        try:
            # One step, as a name node's is: of rivals that rename to one name, all but one must be refused.
            os.link(path1, path2)
        except FileExistsError:
            raise failed from None
        os.unlink(path1)


@pytest.fixture(autouse=True, scope="session")
def _folders() -> None:
    fsspec.register_implementation("webhdfs", Folders, clobber=True)


@pytest.fixture(params=["local", "memory", "s3", "folders"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Store:
    if request.param == "local":
        return Store("local", str(tmp_path))
    if request.param == "memory":
        return Store("memory", f"memory://{uuid.uuid4().hex}")
    if request.param == "folders":
        return Store("folders", f"webhdfs://{tmp_path}")
    server = request.getfixturevalue("s3_server")
    # Nothing but the bucket is above some tables.
    return Store("s3", f"s3a://{server.new_bucket()}/a b", server.storage_options)
