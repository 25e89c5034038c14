"""The stores that the suite of this folder runs on: this machine's disk, memory, and a real S3 server."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_format.storage import Storage, open_storage
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


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Store:
    if request.param == "local":
        return Store("local", str(tmp_path))
    if request.param == "memory":
        return Store("memory", f"memory://{uuid.uuid4().hex}")
    server = request.getfixturevalue("s3_server")
    # Nothing but the bucket is above some tables.
    return Store("s3", f"s3a://{server.new_bucket()}/a b", server.storage_options)
