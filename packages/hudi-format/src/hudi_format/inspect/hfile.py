"""A look into an HFile: entries, keys, file info and meta blocks."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from hudi_format.hfile.reader import HFileReader
from hudi_format.inspect.report import Report
from hudi_format.storage import Storage

_LONG = 200  # characters of a file info entry that are shown


def inspect_hfile(storage: Storage, path: str) -> Report:
    """Entries of an HFile by the first bytes of their keys, and what its file info says.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError: as `HFileReader.open`.
    """
    reader = HFileReader.open(storage, path)
    facts: dict[str, Any] = {"file": path, "entries": reader.entry_count, "meta blocks": reader.meta_blocks}
    for name, value in reader.file_info.items():
        facts[name if isinstance(name, str) else str(_key(name))] = _value(value)
    first = last = None
    count = size = 0
    for batch in reader.batches():
        if len(batch):
            first = batch.column(0)[0].as_py() if first is None else first
            last = batch.column(0)[len(batch) - 1].as_py()
            count += len(batch)
            size += pc.sum(pc.binary_length(batch.column(1))).as_py()
    rows = () if first is None else ((count, size, _key(first), _key(last)),)
    return Report(
        "HFile", facts, ("entries", "bytes of values", "first key", "last key"), rows, reader.schema or ""
    )


def _value(value: bytes) -> str:
    """Text as it is, numbers and other bytes in hex; the schema is shown apart."""
    text = str(value, "utf-8", "replace")
    shown = text if text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text else value.hex()
    return shown if len(shown) <= _LONG else f"{len(value)} bytes"


def _key(key: bytes | None) -> str | None:
    return None if key is None else str(key, "utf-8", "backslashreplace")
