"""The seam between base-file writers and what lies in their footers about keys.

hudi-format knows no index: the caller passes an observer from hudi_index.bloom, or `NO_OBSERVER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa


class KeyObserver(Protocol):
    """Sees each record key that a base file receives; the footer gets what it returns."""

    def add(self, keys: pa.StringArray) -> None:
        """Take keys in the order in which they are written; no nulls."""
        ...

    def finish(self) -> Mapping[str, str]:
        """Entries for the footer."""
        ...


class _NoObserver:
    def add(self, keys: pa.StringArray) -> None:
        return

    def finish(self) -> Mapping[str, str]:
        return {}


NO_OBSERVER: KeyObserver = _NoObserver()
