"""A look into an HFile: its data blocks, what its trailer and its file info say, its meta blocks."""

from __future__ import annotations

from typing import Any

from hudi_format.errors import CorruptFileError
from hudi_format.hfile import trailer as t
from hudi_format.hfile.reader import HFileReader
from hudi_format.inspect.report import Report, schemas_of
from hudi_format.storage import Storage

_LONG = 200  # characters of a file info entry that are shown
_NUMBERS = (t.KEY_VALUE_VERSION, t.MAX_MEMSTORE_TS, t.AVG_KEY_LENGTH, t.AVG_VALUE_LENGTH, t.CREATE_TIME)
_COLUMNS = ("data block at byte", "bytes", "bytes unpacked", "entries", "first key", "last key")


def inspect_hfile(storage: Storage, path: str) -> Report:
    """Data blocks of an HFile with their keys, trailer, file info and meta blocks.

    All blocks are read; damage in them is a problem of the report.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError: as `HFileReader.open`.
    """
    reader = HFileReader.open(storage, path)
    trailer = reader.trailer
    facts: dict[str, Any] = {
        "file": path,
        "bytes": reader.size,
        "version": f"3.{trailer.minor_version}",
        "entries": reader.entry_count,
        "compression": trailer.codec.name,
        "index levels": trailer.index_levels,
        "comparator": trailer.comparator,
    }
    for name, value in reader.file_info.items():
        if name != t.SCHEMA:
            facts[_key(name)] = _value(name, value)
    rows: list[tuple[Any, ...]] = []
    problems: list[str] = []
    try:
        for meta in reader.meta_blocks:
            facts[f"meta block {meta}"] = f"{len(reader.meta_block(meta) or b'')} bytes"
        for b in reader.data_blocks():
            rows.append((b.offset, b.size, b.content_size, b.entries, _key(b.first_key), _key(b.last_key)))
    except CorruptFileError as e:
        problems.append(str(e))
    return Report("HFile", facts, _COLUMNS, tuple(rows), schemas_of(reader.schema), tuple(problems))


def _value(name: bytes, value: bytes) -> str | int:
    """Numbers and text as they are, other bytes in hex; the schema is shown apart."""
    if name in _NUMBERS:
        return int.from_bytes(value)
    if name == t.LAST_KEY:
        return _key(value[2 : 2 + int.from_bytes(value[:2])])
    text = str(value, "utf-8", "replace")
    shown = text if text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text else value.hex()
    return shown if len(shown) <= _LONG else f"{len(value)} bytes"


def _key(key: bytes) -> str:
    return str(key, "utf-8", "backslashreplace")
