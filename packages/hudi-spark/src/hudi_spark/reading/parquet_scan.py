"""Native Spark scans of listed Parquet base files.

Spark is kept from listing the files once more in a job of its own, and from reading partition values off their
paths.  Names are taken as they are: no character of theirs is a wildcard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_format.storage.protocol import Storage
from hudi_spark.runtime.settings import setting

DISCOVERY_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NEVER = str(1 << 30)
# Old dates are stored in today's calendar; Spark 3.5 refuses them where a file does not say so.
_AS_STORED = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
# A session may be set to pass over files that are gone or damaged: rows would be lost without a word.
WHOLE = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
_WILDCARDS = re.compile(r"([\\*?\[\]{}])")
_NAN = "nanvl({name}, CAST('NaN' AS {kind}))"


_NO_FILE_SYSTEM = (
    "No FileSystem for scheme",
    "fs.s3a.S3AFileSystem not found",
    "UnsupportedFileSystemException",
    "FileSystem not found",
)


def lacks_file_system(error: Exception) -> bool:
    """Whether Spark refused a path because the JVM lacks a file system for its scheme."""
    return any(text in str(error) for text in _NO_FILE_SYSTEM)


def file_uri(storage: Storage, path: str) -> str:
    """A file's path for Hadoop's Path: not encoded, with scheme."""
    if storage.is_local:
        return f"file://{storage.uri}/{path}"
    # Hadoop's own file system of S3 has this scheme; "s3" has none in it.
    uri = "s3a" + storage.uri[2:] if storage.uri.startswith("s3:") else storage.uri
    return f"{uri}/{path}"


def base_files(
    spark: SparkSession,
    storage: Storage,
    paths: Sequence[str],
    schema: T.StructType,
    hadoop: Mapping[str, str] | None = None,
) -> DataFrame:
    """Rows of base files in a schema, with Spark's `_metadata` column.

    Args:
        paths: relative to the table; one at least.
        hadoop: `fs.*` options of the call, for Hadoop's own file system.
    """
    uris = [_WILDCARDS.sub(r"\\\1", file_uri(storage, p)) for p in paths]
    with setting(spark, DISCOVERY_THRESHOLD, _NEVER):
        reader = (
            spark.read.schema(schema)
            .option("recursiveFileLookup", "true")
            .options(**_AS_STORED, **WHOLE, **(hadoop or {}))
        )
        return reader.format("parquet").load(uris)


def beyond_bounds(name: str, kind: T.DataType) -> Column | None:
    """A column's own values, which no scan compares with bounds; None without floats.

    For Spark, NaN is greater than all numbers and equal to itself.  The bounds that Arrow writes leave NaN out, so that
    the scan would pass over row groups whose only rows for a condition are those with NaN.  A condition on an
    expression that gives the same value stays with Spark, which evaluates it for each row; of a struct with floats,
    conditions on all its fields do.  Nor would the conditions that NaN does not meet do: by a dictionary Spark 3.5's
    scan passes over row groups of -0.0 at `d = 0`, `d >= 0` and `d in (0, 5)`, which hold for it elsewhere.

    Args:
        name: of a column, without quotes.
        kind: its type in the files.  Spark compares fields of structs, and nothing in arrays and maps.
    """
    quoted = f"`{name}`"
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return F.expr(_NAN.format(name=quoted, kind=kind.simpleString()))
    if not isinstance(kind, T.StructType):
        return None
    made = None
    for path, of in _floats(kind):
        place = ".".join(f"`{p}`" for p in path)
        value = F.expr(_NAN.format(name=f"{quoted}.{place}", kind=of.simpleString()))
        made = (F.col(quoted) if made is None else made).withField(place, value)
    return made


def _floats(kind: T.StructType) -> Iterator[tuple[tuple[str, ...], T.DataType]]:
    """The fields of a struct, and of those in it, that are floats: names from the outside in."""
    if len({n.lower() for n in kind.names}) < len(kind.names):
        return  # Spark finds a field by its name in any case
    for field in kind.fields:
        if isinstance(field.dataType, (T.FloatType, T.DoubleType)):
            yield (field.name,), field.dataType
        elif isinstance(field.dataType, T.StructType):
            yield from (((field.name, *path), of) for path, of in _floats(field.dataType))
