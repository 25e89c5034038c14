"""Arrow's reader of a Parquet file, with the types that Parquet itself says.

Writers on Arrow (Polars, DuckDB's and pandas' users, other engines) leave their own schema in the footer, after which
Arrow gives text as dictionaries or with long offsets, and numbers as durations.  Apache Hudi knows nothing of it, and
neither does who reads base files here.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_format.parquet import _entries, thrift

# Larger column chunks are decoded from a buffer of this size instead of being read whole.
STREAM_BYTES = 1 << 20
ARROW_SCHEMA = b"ARROW:schema"
"""Key of the footer's entry with such a schema."""
_ENTRIES, _KEY = 5, 1  # fields of the footer, and of its entries
# Pages of these encodings Arrow does not give as dictionaries.
_DELTAS = frozenset({"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"})
# Decimals with so many digits are 128 bits wide.
_MOST_DIGITS = 38
# Types that only a schema of Arrow asks for.
_ARROWS = frozenset(
    kind.id
    for kind in (
        pa.dictionary(pa.int32(), pa.string()), pa.run_end_encoded(pa.int32(), pa.string()), pa.duration("s"),
        pa.date64(), pa.large_string(), pa.large_binary(), pa.large_list(pa.null()), pa.string_view(),
        pa.binary_view(), pa.list_view(pa.null()), pa.large_list_view(pa.null()), pa.list_(pa.null(), 1),
        pa.decimal32(1), pa.decimal64(1),
    )
)  # fmt: skip
# Types that Arrow makes of Parquet's alone: those of nearly every column, told by their numbers.
_PLAIN = frozenset(
    kind.id
    for kind in (
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
        pa.decimal128(1), pa.time64("us"),
    )
)  # fmt: skip


def parquet_file(
    source: pa.NativeFile,
    *,
    is_local: bool = True,
    dictionary_columns: Collection[str] = (),
    arrow_types: bool = False,
) -> pq.ParquetFile:
    """Arrow's reader of the Parquet file in an open source.

    Args:
        is_local: whether a read is no request to a server.
        dictionary_columns: text columns to give as dictionaries, where the encodings of their pages allow it.
        arrow_types: give the types of a schema of Arrow in the footer, where there is one: those of a user's data.

    Raises:
        KeyError: one of these columns is not there.
        pa.ArrowException, OSError, ValueError: it is no Parquet, or damaged.
    """
    # Remote stores: one request for the column chunks of a row group instead of one for each.
    opened = partial(
        pq.ParquetFile,
        source,
        pre_buffer=not is_local,
        buffer_size=stream_bytes(source),
        coerce_int96_timestamp_unit="us",  # in nanoseconds times end with the year 2262
    )
    coded = list(dictionary_columns)
    file = opened(read_dictionary=coded)
    metadata = file.metadata
    others = (f.type for f in file.schema_arrow if f.name not in dictionary_columns)
    if not arrow_types and not all(_is_of_parquet(kind) for kind in others):
        metadata = _without_arrow_schema(source, metadata)
    if coded:
        coded = _without_deltas(metadata, coded)
    if metadata is not file.metadata or len(coded) < len(dictionary_columns):
        file = opened(read_dictionary=coded, metadata=metadata)
    return file


def has_arrow_schema(footer: memoryview) -> bool:
    """Whether a footer has a schema of Arrow, whose types other readers give columns.

    Raises:
        CorruptFileError: it is no footer.
    """
    with thrift.of_base_file():
        _, spans = _entries.key_value_spans(footer)  # values are passed over: a bloom filter is long
    return any(footer[at : at + max(length, 0)] == ARROW_SCHEMA for at, length, _, _ in spans)


def stream_bytes(source: pa.NativeFile) -> int:
    """Buffer size for decoding a column chunk; 0 for all of it.

    Of a remote file each read is a request.
    """
    return STREAM_BYTES if isinstance(source, pa.OSFile) else 0


def has_int96(file: pq.ParquetFile) -> bool:
    """Whether the file has INT96 timestamps, which Arrow reads without a time zone.

    It always means an instant.  Other timestamps of the same file would be taken for instants too; no
    writer mixes the two.
    """
    if not any(pt.is_timestamp(t) or pt.is_nested(t) for t in file.schema_arrow.types):
        return False
    columns = file.schema
    return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))


def as_instants(schema: pa.Schema) -> pa.Schema:
    """The schema with times of UTC where it has times without a zone."""
    return pa.schema([f.with_type(_as_instant(f.type)) for f in schema])


def _as_instant(kind: pa.DataType) -> pa.DataType:
    if pt.is_timestamp(kind):
        return kind if kind.tz is not None else pa.timestamp(kind.unit, "UTC")
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_instant(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_as_instant(kind.item_type)))
    if pt.is_struct(kind):
        return pa.struct([f.with_type(_as_instant(f.type)) for f in kind])
    return kind


def _is_of_parquet(kind: pa.DataType) -> bool:
    """Whether Arrow makes a type of what Parquet says alone."""
    if kind.id in _PLAIN:
        return True
    if pt.is_timestamp(kind):
        return kind.tz in (None, "UTC")
    if pt.is_list(kind):
        return _is_of_parquet(kind.value_type)
    if pt.is_map(kind):
        return _is_of_parquet(kind.key_type) and _is_of_parquet(kind.item_type)
    if pt.is_struct(kind):
        return all(_is_of_parquet(f.type) for f in kind)
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if pt.is_decimal256(kind):
        return bool(kind.precision > _MOST_DIGITS)
    return kind.id not in _ARROWS


def _without_arrow_schema(source: pa.NativeFile, metadata: pq.FileMetaData) -> pq.FileMetaData:
    """The metadata without Arrow's schema, if it has one."""
    if ARROW_SCHEMA not in (metadata.metadata or {}):
        return metadata  # an extension type, for example, is Parquet's own
    size = metadata.serialized_size
    fields = thrift.Cursor(source.read_at(size, source.size() - size - thrift.TAIL)).fields()
    entries = [e for e in thrift.Cursor(thrift.raw_of(fields, _ENTRIES)).structs() if not _is_arrow_schema(e)]
    entries_of_parquet = (thrift.LIST, thrift.structs([thrift.struct(e) for e in entries]))
    footer = thrift.struct(thrift.replaced(fields, {_ENTRIES: entries_of_parquet}))
    return pq.read_metadata(pa.BufferReader(thrift.MAGIC + thrift.file_end(footer)))


def _is_arrow_schema(entry: thrift.Fields) -> bool:
    return thrift.raw_of(entry, _KEY).endswith(ARROW_SCHEMA)


def _without_deltas(metadata: pq.FileMetaData, columns: Collection[str]) -> list[str]:
    """The columns of which no page holds deltas between texts."""
    schema, groups = metadata.schema, range(metadata.num_row_groups)
    places = {schema.column(n).path: n for n in range(len(schema))}
    return [
        c for c in columns
        if not any(_DELTAS.intersection(metadata.row_group(g).column(places[c]).encodings) for g in groups)
    ]  # fmt: skip
