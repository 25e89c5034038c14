"""Footers of base files: what they say besides the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.storage import Storage

AVRO_SCHEMA = "parquet.avro.schema"
BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"


@dataclass(frozen=True)
class Footer:
    """A base file's footer.

    Attributes:
        schema: Arrow schema as Parquet's types say, all columns.
        entries: key-value entries that are text (`ARROW:schema` and others that are not are left out).
        metadata: Arrow's own view, with row groups and their statistics.
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


def open_parquet(storage: Storage, path: str, **arguments: object) -> pq.ParquetFile:
    """Arrow's reader of a base file; the caller closes it.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is no Parquet file.
    """
    try:
        source = storage.open_input(path)
    except FileNotFoundError:
        raise MissingFileError("the base file is missing", table=storage.uri, file=path) from None
    except (pa.ArrowInvalid, ValueError):  # a memory map of an empty file
        raise CorruptFileError("the base file is empty", table=storage.uri, file=path, offset=0) from None
    try:
        return pq.ParquetFile(source, **arguments)
    except (pa.ArrowInvalid, OSError) as e:
        source.close()
        raise corrupt(storage, path, e) from None


def corrupt(storage: Storage, path: str, error: Exception) -> CorruptFileError:
    """The error for bytes that Arrow's reader refuses."""
    return CorruptFileError(
        f"the base file cannot be read as Parquet: {str(error).splitlines()[0]}", table=storage.uri, file=path
    )


def entries_of(metadata: pq.FileMetaData) -> dict[str, str]:
    """Text entries of a footer."""
    out: dict[str, str] = {}
    for key, value in (metadata.metadata or {}).items():
        try:
            out[key.decode()] = value.decode()
        except UnicodeDecodeError:
            continue  # no entry of Hudi's
    return out


def read_footer(storage: Storage, path: str) -> Footer:
    """A base file's footer.

    Raises:
        MissingFileError, CorruptFileError: as `open_parquet`.
    """
    with open_parquet(storage, path) as file:
        metadata = file.metadata
        info = storage.info(path)
        return Footer(
            metadata.num_rows,
            metadata.num_row_groups,
            file.schema_arrow.remove_metadata(),
            entries_of(metadata),
            info.size if info is not None else -1,
            metadata,
        )
