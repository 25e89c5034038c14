"""What an index asks of the caller, who owns files and listings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class FooterValues(Protocol):
    """The key-value entries of a base file's footer, as `hudi_format.parquet.entries.read_entries` gives them."""

    @property
    def values(self) -> Mapping[str, memoryview]: ...
