"""Footers of Parquet base files.

Source: Parquet format, "File metadata"; Hudi format, "Parquet footer key-value metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_format._lazy import CompiledParts
from hudi_format.arrow.input import first_line
from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    LibraryError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from hudi_format.parquet.arrow_file import ARROW_SCHEMA, parquet_file
from hudi_format.parquet.thrift import I32, LISTS, MAGIC, TAIL, Cursor, of_base_file
from hudi_format.schema.avro import from_avro
from hudi_format.storage.open import open_sized
from hudi_format.storage.protocol import Storage

# The key-value entries of many base files' footers, quickly: one range of bytes each, nothing decoded.
#
# For index look-ups, which want a key range and a bloom filter from each of thousands of files and nothing else.
# `read_footer` gives a footer with schema and statistics.

with CompiledParts():
    from hudi_format.parquet import _entries

_ENCRYPTED = b"PARE"
# A footer with Apache Hudi's default bloom filter has 431,380 bytes of it; a footer that is longer costs a
# second request.
FIRST_READ = 460 << 10
_OPEN_READ = 64 << 10  # of a file that Arrow has open, and mostly has in memory


@dataclass(frozen=True, slots=True)
class FooterEntries:
    """Key-value entries of a footer.

    Attributes:
        num_rows: of the file; -1 where the footer does not say.
        values: UTF-8 text by key; views of the bytes that were read.
    """

    num_rows: int
    values: Mapping[str, memoryview]

    def text(self, key: str) -> str | None:
        """The value of an entry.

        Raises:
            CorruptFileError: it is not UTF-8.
        """
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError as e:
            raise CorruptFileError(f"the footer's entry {key} is not UTF-8: {e.reason}") from None


def read_entries(storage: Storage, path: str, *, size: int = -1) -> FooterEntries:
    """The key-value entries of a base file's footer.

    Args:
        size: of the file, in bytes, where the caller knows it from a listing; saves a request.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: no Parquet file, or one that is cut off or damaged where it was looked at.
        UnsupportedError: its footer is encrypted.
        StorageError: the storage refused.
    """
    try:
        return _parse(read_footer_bytes(storage, path, size=size))
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, file=path) from None


def read_footer_bytes(storage: Storage, path: str, *, size: int = -1) -> memoryview:
    """Bytes of a footer.

    Args and Raises: as of `read_entries`; errors do not name the file.
    """
    if size < 0:
        info = storage.info(path)
        if info is None:
            raise MissingFileError("the base file is missing", table=storage.uri, file=path)
        size = info.size
    try:
        length = min(size, FIRST_READ)
        end = storage.read_range(path, size - length, length)
        needed = _footer_length(end, length, size) + TAIL
        if needed > length:
            end = storage.read_range(path, size - needed, needed)
            if len(end) != needed:
                raise CorruptFileError("the base file cannot be read as Parquet: it is shorter than listed")
    except FileNotFoundError:
        raise MissingFileError("the base file is missing", table=storage.uri, file=path) from None
    return memoryview(end)[len(end) - needed : len(end) - TAIL]


def footer_bytes(source: pa.NativeFile) -> memoryview:
    """Bytes of an open file's footer.

    Raises:
        CorruptFileError, UnsupportedError: as `read_entries`; they do not name the file.
    """
    size = source.size()
    length = min(size, _OPEN_READ)
    end = source.read_at(length, size - length)
    needed = _footer_length(end, length, size) + TAIL
    if needed > length:
        # Of a mapped file without a copy: a bloom filter makes footers long.
        source.seek(size - needed)
        end = memoryview(source.read_buffer(needed)).cast("B")
    return memoryview(end)[len(end) - needed : len(end) - TAIL]


def schema_part(footer: memoryview) -> bytes:
    """Bytes of a footer up to the end of its schema.

    Footers that begin with the same bytes have the same columns.

    Raises:
        CorruptFileError: it is no footer.
    """
    cursor = Cursor(bytes(footer))
    with of_base_file():
        for wanted, kinds in ((1, (I32,)), (2, LISTS)):  # FileMetaData: version, schema
            number, kind = cursor.field(wanted - 1)
            if number != wanted or kind not in kinds:
                raise ValueError(f"field {number} of type {kind} instead of {wanted}")
            cursor.skip(kind)
    return cursor.data[: cursor.at]


def _footer_length(end: bytes, length: int, size: int) -> int:
    if len(end) != length or size < TAIL + len(MAGIC):
        raise CorruptFileError("the base file cannot be read as Parquet: it is cut off")
    if end[-4:] == _ENCRYPTED:
        raise UnsupportedError(
            "the base file's footer is encrypted",
            remedy="rewrite it without encryption, with the engine that wrote it.",
        )
    if end[-4:] != MAGIC:
        raise CorruptFileError("the base file cannot be read as Parquet: it does not end with PAR1")
    found = int.from_bytes(end[-8:-4], "little")
    if found == 0 or found > size - TAIL - len(MAGIC):
        raise CorruptFileError(f"the base file cannot be read as Parquet: a footer of {found} bytes")
    return found


def _parse(footer: memoryview) -> FooterEntries:
    with of_base_file():
        num_rows, spans = _entries.key_value_spans(footer)
    values: dict[str, memoryview] = {}
    for key_at, key_length, at, length in spans:
        if key_length < 0 or length < 0:
            continue  # a key without a value says nothing
        try:
            key = str(footer[key_at : key_at + key_length], "utf-8")
        except UnicodeDecodeError:
            continue  # no entry of Hudi's
        values[key] = footer[at : at + length]
    return FooterEntries(num_rows, values)


# A base file's columns against the Avro schema in its footer: a name that is damaged would be a column of nulls.
#
# Source: AvroParquetWriter of parquet-avro, which Apache Hudi's and our writers of base files follow: the footer's
# entry `parquet.avro.schema` is the schema that Parquet's own was made of.  Row writers of Spark leave no such entry.


def missing_column(schema: pa.Schema, stated: pa.Schema) -> str | None:
    """First column or nested field of an Avro schema that Parquet's schema lacks.

    Args:
        schema: as Arrow reads it of the footer.
        stated: what the Avro schema of the same rows says; types do not count.
    """
    types = dict(zip(schema.names, schema.types, strict=True))
    for name, kind in zip(stated.names, stated.types, strict=True):
        own = types.get(name)
        if own is None:
            if not pt.is_null(kind):
                return str(name)
        elif pt.is_nested(kind) and (missing := _missing(own, kind, name)) is not None:
            return missing
    return None


def _missing(own: pa.DataType, stated: pa.DataType, path: str) -> str | None:
    """First nested field of the Avro type that the Parquet type lacks."""
    if pt.is_list(own) and pt.is_list(stated):
        return _missing(own.value_type, stated.value_type, path)
    if pt.is_map(own) and pt.is_map(stated):
        return _missing(own.item_type, stated.item_type, path)
    if not (pt.is_struct(own) and pt.is_struct(stated)):
        return None
    fields = {f.name: f.type for f in (own.field(n) for n in range(own.num_fields))}
    for member in (stated.field(n) for n in range(stated.num_fields)):
        if pt.is_null(member.type):
            continue  # parquet-avro leaves such fields out
        within = f"{path}.{member.name}" if path else member.name
        if member.name not in fields:
            return within
        if (missing := _missing(fields[member.name], member.type, within)) is not None:
            return missing
    return None


@lru_cache(maxsize=256)
def stated_schema(text: bytes) -> pa.Schema | None:
    """The schema of the footer's Avro schema entry; None where it is unusable.

    Rows do not depend on the entry: one that is damaged hinders nobody from reading them.
    """
    try:
        return from_avro(text.decode())
    except (HudiError, UnicodeDecodeError):
        return None


AVRO_SCHEMA = "parquet.avro.schema"
BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"

_Value = TypeVar("_Value")


def filter_entry(entries: Mapping[str, _Value]) -> _Value | None:
    """The bloom filter among a footer's entries, by its older name too; None for none."""
    return entries.get(BLOOM_FILTER) or entries.get(BLOOM_FILTER_OLD)


DAMAGED_REMEDY = CorruptFileError.usual_remedy


@dataclass(frozen=True)
class Footer:
    """A base file's footer.

    Attributes:
        schema: Arrow schema as Parquet's types say, all columns, without metadata.
        entries: key-value entries that are text; Arrow's copy of its own schema is left out.
        size: of the file, in bytes.
        metadata: Arrow's own view.  It may end the process where it is asked for a column chunk of a damaged file:
            `hudi_format.parquet.row_groups` tells of these.
    """

    num_rows: int
    num_row_groups: int
    schema: pa.Schema
    entries: dict[str, str]
    size: int
    metadata: pq.FileMetaData = field(repr=False, compare=False)

    @property
    def avro_schema(self) -> str | None:
        """The writer's Avro schema with meta columns; None for files of Spark's row writers."""
        return self.entries.get(AVRO_SCHEMA)


def open_parquet(storage: Storage, path: str, *, arrow_types: bool = False) -> pq.ParquetFile:
    """Arrow's reader of a base file; the caller closes it.

    Arguments and errors as of `open_with_source`.
    """
    return open_with_source(storage, path, arrow_types=arrow_types)[0]


def open_with_source(
    storage: Storage,
    path: str,
    *,
    dictionary_columns: tuple[str, ...] = (),
    size: int = -1,
    arrow_types: bool = False,
) -> tuple[pq.ParquetFile, pa.NativeFile]:
    """Arrow's reader of a base file, and its source, which is closed with it.

    Args:
        dictionary_columns: text columns to hand out as dictionaries, without decoding each row.
        size: of the file in bytes, where a listing told; saves a request.
        arrow_types: as of `parquet_file`.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is no Parquet file, or is cut off.
        UnsupportedError: it is encrypted, or otherwise beyond what Arrow reads.
        StorageError: the storage refused.
    """
    with reading(storage, path):
        source = open_sized(storage, path, size)
        try:
            file = parquet_file(
                source, is_local=storage.is_local, dictionary_columns=dictionary_columns, arrow_types=arrow_types
            )  # fmt: skip
            _check_schema(file, storage, path)
            return file, source
        except KeyError as e:  # of the columns to read as dictionaries
            source.close()
            raise ValueError(f"it has no column {e}") from None
        except BaseException:
            source.close()
            raise


def _check_schema(file: pq.ParquetFile, storage: Storage, path: str) -> None:
    """Refuse an invalid schema, or one that contradicts the footer's Avro schema."""
    schema = file.schema_arrow
    check_columns(schema)
    text = (file.metadata.metadata or {}).get(AVRO_SCHEMA.encode())
    stated = stated_schema(text) if text is not None else None
    if stated is not None and (missing := missing_column(schema, stated)) is not None:
        raise CorruptFileError(
            f"the base file lacks column {missing}, which its own Avro schema has",
            table=storage.uri,
            file=path,
            column=missing,
        )


def check_columns(schema: pa.Schema) -> None:
    """Refuse schemas that only a damaged footer has.

    Columns that have no values anywhere: Arrow leaves them out without a word.  Names that come twice, of columns or
    of the fields of a struct: which of them is meant cannot be told.

    Raises:
        ValueError: naming the column.
    """
    if (name := _twice(schema.names)) is not None:
        raise ValueError(f"column {name} is duplicated")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if not (pt.is_nested(kind) or pt.is_timestamp(kind)):  # nearly every column
            continue
        if not _has_values(kind):
            raise ValueError(f"column {name} has type {kind}, which has no values")
        if (within := _field_twice(kind)) is not None:
            raise ValueError(f"field {within} within column {name} is duplicated")


def _twice(names: list[str]) -> str | None:
    """The first repeated name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _field_twice(kind: pa.DataType) -> str | None:
    """The first repeated field name within a struct, at any depth."""
    if not pa.types.is_nested(kind):
        return None
    fields = [kind.field(n) for n in range(kind.num_fields)]
    # Keys and values of maps, and items of lists, are told by their place.
    if pa.types.is_struct(kind) and (name := _twice([f.name for f in fields])) is not None:
        return name
    return next((n for f in fields if (n := _field_twice(f.type)) is not None), None)


def _has_values(kind: pa.DataType) -> bool:
    """Whether every nested struct has fields."""
    if pa.types.is_timestamp(kind):
        return kind.tz is None or bool(kind.tz)  # a name that is no text is a ValueError
    if not pa.types.is_nested(kind):
        return True
    return kind.num_fields > 0 and all(_has_values(kind.field(n).type) for n in range(kind.num_fields))


@contextmanager
def reading(storage: Storage, path: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn Arrow's error while reading a base file of that kind into one that names the file.

    Arrow raises OSError both where the operating system refuses, then with an error number, and for bytes
    that it cannot decode, then without one.
    """
    try:
        yield
    except HudiError:
        raise
    except FileNotFoundError:
        raise MissingFileError("the base file is missing", table=storage.uri, file=path) from None
    except pa.ArrowNotImplementedError as e:
        raise UnsupportedError(
            f"the base file uses an unsupported feature of {kind}: {first_line(e)}",
            table=storage.uri,
            file=path,
            remedy="rewrite it without that feature, with the engine that wrote it.",
        ) from None
    except (pa.ArrowException, ValueError) as e:
        wide = long_decimal(e)
        if wide is not None:
            raise wide.at(table=storage.uri, file=path) from None
        raise corrupt(storage, path, e, kind) from None
    except OSError as e:
        if e.errno:
            raise StorageError(f"the storage refused: {e.strerror or e}", table=storage.uri, file=path) from e
        raise corrupt(storage, path, e, kind) from None


_DECIMAL = re.compile(r"Decimal[0-9]+::FromBigEndian was ([0-9]+)")


def long_decimal(error: Exception) -> UnsupportedError | None:
    """Error for a decimal with more bytes than Arrow reads, as Avro's fixed types allow.

    Arrow puts decimals of up to 38 digits in 16 bytes, and reads no more of them, whatever they are.
    """
    found = _DECIMAL.search(str(error))
    if found is None or int(found[1]) <= 16:
        return None
    return UnsupportedError(
        f"a Parquet file with a decimal of {found[1]} bytes; at most 16 are supported",
        remedy="use a fixed type of 16 bytes or less in the job that writes the table.",
    )


def corrupt(storage: Storage, path: str, error: Exception, kind: str = "Parquet") -> HudiError:
    """Error for bytes that Arrow refuses: LibraryError if they are valid, else CorruptFileError."""
    reason, remedy = first_line(error), DAMAGED_REMEDY
    if kind == "Parquet" and _is_of_arrow(error) and _reads_whole(storage, path):
        return LibraryError(
            f"pyarrow {pa.__version__} failed on a valid base file, which it reads as a whole: {reason}",
            table=storage.uri,
            file=path,
            remedy="run it again; if it fails again, install another version of pyarrow. The file is not damaged.",
        )
    # Damaged sizes end so too: what the file is cannot be told.
    if isinstance(error, MemoryError) or "bad_alloc" in reason:
        reason = f"out of memory ({reason}); with enough memory this means damage"
        remedy = f"read it with more memory first; if that fails too, {remedy}"
    message = f"the base file cannot be read as {kind}: {reason}"
    return CorruptFileError(message, table=storage.uri, file=path, remedy=remedy)


def _is_of_arrow(error: Exception) -> bool:
    """Whether Arrow raised the error, and not a check of this library."""
    return isinstance(error, (pa.ArrowException, OSError)) and "bad_alloc" not in str(error)


# Larger files are not read a second time.
_MOST_READ_AGAIN = 1 << 30


def _reads_whole(storage: Storage, path: str) -> bool:
    """Whether the file is valid: a plain read with checksums gives all rows."""
    try:
        info = storage.info(path)
        if info is None or info.size > _MOST_READ_AGAIN:
            return False
        with (
            storage.open_input(path) as source,
            pq.ParquetFile(source, page_checksum_verification=True) as file,
        ):
            rows = sum(batch.num_rows for batch in file.iter_batches(use_threads=False))
            return bool(rows == file.metadata.num_rows)
    except (HudiError, pa.ArrowException, OSError, ValueError, MemoryError):
        return False


def entries_of(metadata: pq.FileMetaData) -> dict[str, str]:
    """Text entries of a footer."""
    out: dict[str, str] = {}
    for key, value in (metadata.metadata or {}).items():
        try:
            out[key.decode()] = value.decode()
        except UnicodeDecodeError:
            continue  # no entry of Hudi's
    out.pop(ARROW_SCHEMA.decode(), None)
    return out


def read_footer(storage: Storage, path: str) -> Footer:
    """A base file's footer.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: as `open_parquet`.
    """
    with reading(storage, path), open_parquet(storage, path) as file:
        info = storage.info(path)
        return Footer(
            file.metadata.num_rows,
            file.metadata.num_row_groups,
            file.schema_arrow.remove_metadata(),
            entries_of(file.metadata),
            info.size if info is not None else -1,
            file.metadata,
        )
