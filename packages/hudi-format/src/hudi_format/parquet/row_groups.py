"""Row groups of a base file and their column chunks: sizes, codecs, statistics.

Arrow ends the process where it is asked for a chunk that contradicts the footer's schema or has a codec that it does
not know, and where it is to write such a footer out again; here such a chunk says less.

Source: parquet.thrift, ColumnMetaData, Statistics and ColumnOrder; Parquet format, "Logical types".
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.arrays import column_of
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.parquet.footer import read_footer_bytes
from hudi_format.parquet.thrift import of_base_file
from hudi_format.schema.decimals import exact_decimal
from hudi_format.storage.protocol import Storage

with CompiledParts():
    from hudi_format.parquet import _chunks

Raw = bool | int | float | bytes

# CompressionCodec of parquet.thrift, by number.
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")

# Pages with a dictionary and long runs of its codes have fewer bytes than this says; a code for each value has more.
VALUES_PER_BYTE = 16
# What one array of 32-bit offsets can hold.
_MOST_TEXT = (1 << 31) - 1

_BOOLEAN, _INT32, _INT64, _BYTE_ARRAY, _FIXED = 0, 1, 2, 6, 7
_NUMBERS = {_BOOLEAN: struct.Struct("<?"), _INT32: struct.Struct("<i"), _INT64: struct.Struct("<q"),
            4: struct.Struct("<f"), 5: struct.Struct("<d")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of one row group.

    Attributes:
        path: names with dots between them.
        codec: its name.
        num_values: nulls counted; -1 where the footer does not say.
        unpacked: bytes before they were compressed; -1 where the footer does not say.
        packed: bytes in the file.
        dictionary: whether it has a page with one.
        nulls: None where the footer does not say.
        low, high: bounds of the values that are not null, as they are stored; None where the footer does not say, or
            means an order that is not that of the column's type.
        data: place of its first page with values; -1 where the footer does not say, or names another file.
    """

    path: str
    codec: str
    num_values: int
    unpacked: int
    packed: int
    dictionary: bool
    nulls: int | None
    low: Raw | None
    high: Raw | None
    data: int = -1

    def bounds(self, kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
        """Both bounds in the column's Arrow type; None where one is missing, NaN or malformed."""
        low, high = _scalar(self.low, kind), _scalar(self.high, kind)
        return None if low is None or high is None else (low, high)

    def holds_only(self, value: pa.Scalar, rows: int) -> bool:
        """Whether all of these rows surely have one value, by nulls and bounds alone."""
        if self.nulls is None or self.nulls != (0 if value.is_valid else rows):
            return False
        if not value.is_valid:
            return True
        if pa.types.is_string(value.type):  # bounds of which may be cut
            return bool(self.low == self.high == value.as_py().encode())
        bounds = self.bounds(value.type)
        return bounds is not None and bool(bounds[0] == bounds[1] == value)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group and its requested columns, by path."""

    num_rows: int
    columns: Mapping[str, ColumnChunk]


def row_groups(footer: memoryview, columns: Collection[str] | None = None) -> list[RowGroup]:
    """Row groups of a footer.

    Args:
        footer: its bytes, as `hudi_format.parquet.footer.footer_bytes` gives them.
        columns: paths of those that are wanted; None for all.

    Raises:
        CorruptFileError: it is cut off, or no footer.
    """
    wanted = None if columns is None else {name.encode() for name in columns}
    with of_base_file():
        groups, ordered = _chunks.row_groups(footer, wanted)
    out = []
    for rows, chunks in groups:
        made = (_chunk(c, c[0] < len(ordered) and ordered[c[0]]) for c in chunks)
        out.append(RowGroup(rows, {c.path: c for c in made}))
    return out


def repeating(groups: Sequence[RowGroup], columns: Collection[str], batch_rows: int) -> list[str]:
    """Text columns whose values repeat, so that reading them as dictionaries pays.

    Args:
        batch_rows: how many rows are read at once: written out, their text must fit into an array.
    """
    found = [c for c in columns if "." not in c]
    for group in groups:
        rows = max(0, min(group.num_rows, batch_rows))
        found = [c for c in found if (chunk := group.columns.get(c)) is not None and _repeats(chunk, rows)]
    return found if groups else []


def _repeats(chunk: ColumnChunk, rows: int) -> bool:
    # A text is no longer than the pages that it is in.
    fits = 0 <= chunk.unpacked * rows < _MOST_TEXT
    return chunk.dictionary and fits and chunk.unpacked * VALUES_PER_BYTE <= chunk.num_values


def read_row_groups(storage: Storage, path: str, columns: Collection[str] | None = None) -> list[RowGroup]:
    """Row groups of a base file, from one ranged read of its footer.

    Args:
        columns: as of `row_groups`.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: as
            `hudi_format.parquet.footer.read_entries`.
    """
    try:
        return row_groups(read_footer_bytes(storage, path), columns)
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, file=path) from None


def _chunk(found: _chunks._Chunk, ordered: bool) -> ColumnChunk:
    _, path, physical, codec, values, unpacked, packed, dictionary, nulls, low, high, *others, data = found
    old_low, old_high = others
    name = CODECS[codec] if 0 <= codec < len(CODECS) else f"unknown codec {codec}"
    if not ordered:
        # The oldest statistics compare all bytes as if they were signed: only numbers are in order.
        low, high = (old_low, old_high) if physical in _NUMBERS else (None, None)
    return ColumnChunk(
        path.decode(errors="replace"), name, values, unpacked, max(packed, 0), dictionary >= 0,
        nulls if nulls >= 0 else None, _raw(low, physical), _raw(high, physical), data,
    )  # fmt: skip


def _raw(data: bytes | None, physical: int) -> Raw | None:
    if data is None or physical in (_BYTE_ARRAY, _FIXED):
        return data
    form = _NUMBERS.get(physical)
    if form is None or form.size != len(data):  # INT96 has no order
        return None
    value: Raw = form.unpack(data)[0]
    return value


def _scalar(raw: Raw | None, kind: pa.DataType) -> pa.Scalar | None:
    """A stored bound as a value; None where it does not fit the type."""
    if raw is None or raw != raw:
        return None
    try:
        if isinstance(raw, bytes):
            return _of_bytes(raw, kind)
        if isinstance(raw, (bool, float)):
            fits = pt.is_boolean(kind) if isinstance(raw, bool) else pt.is_floating(kind)
            return column_of([raw], kind)[0] if fits else None
        if pt.is_decimal(kind):
            return _decimal(raw, kind)
        if pt.is_signed_integer(kind):
            return column_of([raw], kind)[0]
        # Parquet has no seconds and no dates in milliseconds: there the number has another unit.
        if pt.is_temporal(kind) and not pt.is_date64(kind) and getattr(kind, "unit", "") != "s":
            return column_of([raw], pa.int32() if kind.bit_width == 32 else pa.int64())[0].cast(kind)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return None


def _of_bytes(raw: bytes, kind: pa.DataType) -> pa.Scalar | None:
    if pt.is_string(kind) or pt.is_large_string(kind):
        try:
            return column_of([raw.decode()], kind)[0]
        except UnicodeDecodeError:  # a bound may be cut in the middle of a character
            return None
    if pt.is_decimal(kind):
        return _decimal(int.from_bytes(raw, "big", signed=True), kind) if raw else None
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        return pa.scalar(raw, kind)
    return None


def _decimal(unscaled: int, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(exact_decimal(unscaled, kind.scale), kind)
