"""Footers of base files, and opening the files.

Source: Parquet format, "File metadata"; Hudi format, "Parquet footer key-value metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    LibraryError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)
from hudi_format.parquet.stated import missing_column, stated_schema
from hudi_format.storage import Storage, open_sized

AVRO_SCHEMA = "parquet.avro.schema"
BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"

STREAM_BYTES = 1 << 20

DAMAGED_REMEDY = CorruptFileError.usual_remedy

_ARROW_SCHEMA = "ARROW:schema"


@dataclass(frozen=True)
class Footer:
    """A base file's footer.

    Attributes:
        schema: Arrow schema as Parquet's types say, all columns, without metadata.
        entries: key-value entries that are text; Arrow's copy of its own schema is left out.
        size: of the file, in bytes.
        metadata: Arrow's own view.  It may end the process where it is asked for a column chunk of a damaged file:
            `hudi_format.parquet.chunks` tells of these.
    """

    num_rows: int
    num_row_groups: int
    schema: pa.Schema
    entries: dict[str, str]
    size: int
    metadata: pq.FileMetaData = field(repr=False, compare=False)

    @property
    def avro_schema(self) -> str | None:
        """The writer's Avro schema, meta columns included; row writers of Spark leave none."""
        return self.entries.get(AVRO_SCHEMA)


def open_parquet(
    storage: Storage, path: str, *, dictionary_columns: tuple[str, ...] = (), size: int = -1
) -> pq.ParquetFile:
    """Arrow's reader of a base file; the caller closes it.  Arguments and errors as of `open_with_source`."""
    return open_with_source(storage, path, dictionary_columns=dictionary_columns, size=size)[0]


def open_with_source(
    storage: Storage, path: str, *, dictionary_columns: tuple[str, ...] = (), size: int = -1
) -> tuple[pq.ParquetFile, pa.NativeFile]:
    """Arrow's reader of a base file, and what it reads, which goes with it when the caller closes the reader by force.

    Args:
        dictionary_columns: text columns to hand out as dictionaries, without decoding each row.
        size: of the file in bytes, where a listing told; saves a request.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is no Parquet file, or is cut off.
        UnsupportedError: it is encrypted, or otherwise beyond what Arrow reads.
        StorageError: the storage refused.
    """
    with reading(storage, path):
        source = open_sized(storage, path, size)
        try:
            # Remote stores: one request for the column chunks of a row group instead of one for each.
            file = pq.ParquetFile(
                source,
                pre_buffer=not storage.is_local,
                buffer_size=stream_bytes(source),
                read_dictionary=list(dictionary_columns),
                coerce_int96_timestamp_unit="us",
            )
            _check_schema(file, storage, path)
            return file, source
        except KeyError as e:  # of the columns to read as dictionaries
            source.close()
            raise ValueError(f"it has no column {e}") from None
        except BaseException:
            source.close()
            raise


def _check_schema(file: pq.ParquetFile, storage: Storage, path: str) -> None:
    """Refuse a schema that no writer makes, or that is not what the file's own entry says."""
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
    """Refuse what no writer makes and only a damaged footer says.

    Columns that have no values anywhere: Arrow leaves them out without a word.  Names that come twice, of columns or
    of the fields of a struct: which of them is meant cannot be told.

    Raises:
        ValueError: naming the column.
    """
    if (name := _twice(schema.names)) is not None:
        raise ValueError(f"column {name} is there twice")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if not _has_values(kind):
            raise ValueError(f"column {name} is {kind}, which has no values")
        if (within := _field_twice(kind)) is not None:
            raise ValueError(f"field {within} within column {name} is there twice")


def _twice(names: list[str]) -> str | None:
    """The first name that came before."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _field_twice(kind: pa.DataType) -> str | None:
    """The name of a struct's field, at any depth, that comes twice in its struct."""
    if not pa.types.is_nested(kind):
        return None
    fields = [kind.field(n) for n in range(kind.num_fields)]
    # Keys and values of maps, and items of lists, are told by their place.
    if pa.types.is_struct(kind) and (name := _twice([f.name for f in fields])) is not None:
        return name
    return next((n for f in fields if (n := _field_twice(f.type)) is not None), None)


def _has_values(kind: pa.DataType) -> bool:
    """Whether each struct inside has fields."""
    if pa.types.is_timestamp(kind):
        return kind.tz is None or bool(kind.tz)  # a name that is no text is a ValueError
    if not pa.types.is_nested(kind):
        return True
    return kind.num_fields > 0 and all(_has_values(kind.field(n).type) for n in range(kind.num_fields))


def stream_bytes(source: pa.NativeFile) -> int:
    """How many bytes of a column chunk to hold while it is decoded; 0 for all of it.

    Of a remote file each read is a request.
    """
    return STREAM_BYTES if isinstance(source, pa.OSFile) else 0


@contextmanager
def reading(storage: Storage, path: str, kind: str = "Parquet") -> Iterator[None]:
    """Turn what Arrow raises while it reads a base file, of that kind, into an error that names the file.

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
            f"the base file uses a feature of {kind} that is not read: {_first_line(e)}",
            table=storage.uri,
            file=path,
            remedy="have the engine that wrote it write it again without that feature.",
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
    """What to say where Arrow refuses a decimal for its bytes, as Avro's fixed types may have more than it has digits.

    Arrow puts decimals of up to 38 digits in 16 bytes, and reads no more of them, whatever they are.
    """
    found = _DECIMAL.search(str(error))
    if found is None or int(found[1]) <= 16:
        return None
    return UnsupportedError(
        f"a Parquet file with a decimal of {found[1]} bytes, which is not read; 16 are the most",
        remedy="use a fixed type of 16 bytes or less in the job that writes the table.",
    )


def corrupt(storage: Storage, path: str, error: Exception, kind: str = "Parquet") -> HudiError:
    """The error for bytes that Arrow's reader refuses: LibraryError where they are sound, else CorruptFileError."""
    reason, remedy = _first_line(error), DAMAGED_REMEDY
    if kind == "Parquet" and _is_of_arrow(error) and _reads_whole(storage, path):
        return LibraryError(
            f"pyarrow {pa.__version__} failed on a base file that it reads as a whole: {reason}",
            table=storage.uri,
            file=path,
            remedy="run it again; if it fails again, install another version of pyarrow. The file is not damaged.",
        )
    # Damaged sizes end so too: what the file is cannot be told.
    if isinstance(error, MemoryError) or "bad_alloc" in reason:
        reason = f"memory ran out ({reason}), which says damage only where there is plenty"
        remedy = f"read it with more memory first; if that fails too, {remedy}"
    message = f"the base file cannot be read as {kind}: {reason}"
    return CorruptFileError(message, table=storage.uri, file=path, remedy=remedy)


def _is_of_arrow(error: Exception) -> bool:
    """Whether Arrow's reader refused, and not a check of ours on what it gave."""
    return isinstance(error, (pa.ArrowException, OSError)) and "bad_alloc" not in str(error)


# Larger files are not read a second time.
_MOST_READ_AGAIN = 1 << 30


def _reads_whole(storage: Storage, path: str) -> bool:
    """Whether a file is sound: read plainly, with checksums where it has them, it gives all its rows."""
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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def entries_of(metadata: pq.FileMetaData) -> dict[str, str]:
    """Text entries of a footer."""
    out: dict[str, str] = {}
    for key, value in (metadata.metadata or {}).items():
        try:
            out[key.decode()] = value.decode()
        except UnicodeDecodeError:
            continue  # no entry of Hudi's
    out.pop(_ARROW_SCHEMA, None)
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
