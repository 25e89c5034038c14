"""Footers without the bounds of floating-point columns, which pass over NaN.

NaN equals no number and is less than none: by bounds Arrow's datasets take `x != 1.0` and `~(x < 5)` for false where
they are true for a row with NaN, and nothing in a footer says that a chunk has none.  They also compare the bounds of
32-bit columns with values of 64 bits as these are, and the rows with what they are rounded to.

Source: parquet.thrift, FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
"""

from __future__ import annotations

from hudi_format.parquet import _chunks, _entries
from hudi_format.parquet.arrow_file import ARROW_SCHEMA
from hudi_format.parquet.thrift import BINARY, MAGIC, file_end, of_base_file, structs, text

_EMPTY_STRUCT = b"\0"


def without_float_bounds(footer: memoryview, path: str) -> bytes | None:
    """A `_metadata` file of one base file, without the bounds of FLOAT and DOUBLE columns.

    Args:
        footer: bytes of the footer.
        path: of the base file, as the row groups are to name it.

    Returns:
        Bytes of the file, without the footer's entries but that with Arrow's schema; None where there is no row group.

    Raises:
        CorruptFileError: it is no footer, or that of a file whose pages are in another one.
    """
    with of_base_file():
        begins, statistics, entries = _chunks.float_places(footer)
        if not begins:
            return None
        changes = [(at, length, _EMPTY_STRUCT) for at, length in statistics]
        changes += [(at, 1, _named(footer[at], path.encode())) for at in begins]
        if entries[0] >= 0:
            changes.append((*entries, _arrow_alone(footer)))
    parts, done = [], 0
    for at, length, by in sorted(changes):
        parts += [bytes(footer[done:at]), by]
        done = at + length
    return MAGIC + file_end(b"".join((*parts, bytes(footer[done:]))))


def _named(head: int, path: bytes) -> bytes:
    """The beginning of a ColumnChunk with a path (field 1), instead of this first byte."""
    step = head >> 4  # to the number of the field that was the first; 0 where the number itself follows
    if step == 1:
        raise ValueError("its pages are in another file")
    return bytes([1 << 4 | BINARY]) + text(path) + bytes([head - (1 << 4) if step else head])


def _arrow_alone(footer: memoryview) -> bytes:
    """The list of entries, of which only Arrow's schema is left."""
    found = []
    for key_at, key_length, at, length in _entries.key_value_spans(footer)[1]:
        if key_length >= 0 and length >= 0 and footer[key_at : key_at + key_length] == ARROW_SCHEMA:
            both = (ARROW_SCHEMA, bytes(footer[at : at + length]))
            found.append(b"".join(bytes([1 << 4 | BINARY]) + text(t) for t in both) + b"\0")
    return structs(found)
