"""Spark functions: record keys, partition paths, hashes, buckets, bloom filters.

Vectorised Python functions over the kernels of the lower packages, so that a query computes exactly what a write
does:

    from hudi_spark import functions as H
    df.withColumn("bucket", H.bucket_id(H.record_key("id"), fields=["id"], num_buckets=16))

On PySpark 4.1 and later columns arrive as Arrow; before, as text through pandas, which loses no value.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_format.errors import CorruptFileError, OptionError
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import absent, partition_paths, record_keys
from hudi_index.bloom.filter import BloomFilter, parse_filter
from hudi_index.hashing.java import bucket_ids
from hudi_index.hashing.java import java_hash as _java_hash
from hudi_spark.runtime.python_workers import forget_archives
from hudi_spark.runtime.settings import HAS_ARROW_UDF

# arrow_udf is not in PySpark before 4.1, and pandas_udf's overloads know no general functions.
_functions: Any = F

Kernel = Callable[[pa.RecordBatch], pa.Array]


def record_key(*fields: str) -> Column:
    """Record key that a write with these fields gives; null where it would refuse the row.

    Args:
        fields: column names, nested ones by dot path, in the order of
            `hoodie.datasource.write.recordkey.field`.

    Raises:
        OptionError: no field.
        TypeError: something else than names.
    """
    names = _names(fields, "record_key")
    return _column(RecordKeys(KeySpec(names, (), "NON_PARTITION")), "string", names)


def partition_path(*fields: str, hive_style: bool = False, url_encode: bool = False) -> Column:
    """Partition path that a write with these fields gives.

    Args:
        fields: column names, in the order of `hoodie.datasource.write.partitionpath.field`.
        hive_style: `hoodie.datasource.write.hive_style_partitioning`.
        url_encode: `hoodie.datasource.write.partitionpath.urlencode`.

    Raises:
        OptionError: no field.
        TypeError: something else than names.
    """
    names = _names(fields, "partition_path")
    spec = KeySpec(("_",), names, "COMPLEX", hive_style, url_encode)
    return _column(PartitionPaths(spec), "string", names)


def time_ordered(key: Column | str, created: Column | str) -> Column:
    """Time-ordered record key: 12 hexadecimal digits of milliseconds, a hyphen, `key`.

    As `hudi_format.keygen.ordered_keys.with_time_prefix`, and Spark's own expressions; null where either is, and for
    moments before 1970, which a write refuses.

    Args:
        created: timestamps of when the records came to be: a key must never change.
    """
    name = F.col(key) if isinstance(key, str) else key
    moment = F.col(created) if isinstance(created, str) else created
    millis = F.unix_millis(moment.cast("timestamp"))
    digits = F.lpad(F.lower(F.hex(F.when(millis >= 0, millis))), 12, "0")
    return F.concat(digits, F.lit("-"), name.cast("string"))


def java_hash(text: Column | str) -> Column:
    """Java's `String.hashCode()` of a text column; null for null."""
    return _of_text(JavaHashes(), "int", text)


def bucket_id(key: Column | str, *, fields: str | Sequence[str], num_buckets: int) -> Column:
    """Bucket id of each record key in a simple bucket index, from 0 on; null for null.

    Args:
        key: record keys as `record_key` gives them.
        fields: the hash fields, names or a text with commas; by default of an index the record key fields.
        num_buckets: `hoodie.bucket.index.num.buckets`.

    Raises:
        OptionError: no field, or no bucket.
        TypeError: something else than names, or a number that is none.
    """
    if not isinstance(num_buckets, (int, np.integer)):
        raise TypeError(
            f"num_buckets must be a number, as 16, not {type(num_buckets).__name__}: {num_buckets!r}"
        )
    names = _names(fields, "bucket_id")
    try:  # refuses a wrong number here, not in a task
        bucket_ids(pa.array([], pa.string()), names, num_buckets)
    except ValueError as e:
        raise OptionError(str(e), remedy="give the table's hoodie.bucket.index.num.buckets.") from None
    return _of_text(BucketIds(names, num_buckets), "int", key)


def ring_hash(key: Column | str, *, fields: str | Sequence[str]) -> Column:
    """Hash of each record key for consistent hashing, from 0 to 2^31 - 1; null for null.

    Args:
        key: record keys as `record_key` gives them.
        fields: the hash fields, names or a text with commas; by default of an index the record key fields.

    Raises:
        OptionError: no field.
        TypeError: something else than names.
    """
    return _of_text(RingHashes(_names(fields, "ring_hash")), "int", key)


def bloom_might_contain(filter_text: str, key: Column | str, *, type_code: str | None = None) -> Column:
    """Whether a bloom filter may contain each record key; False is certain.

    Args:
        filter_text: the footer entry `org.apache.hudi.bloomfilter`.
        type_code: the footer entry `hoodie_bloom_filter_type_code`, None where there is none.

    Raises:
        CorruptFileError: a text that is no filter.
    """
    try:
        _filter(filter_text, type_code)
    except CorruptFileError as e:
        e.advise("give both footer entries of one base file as they are.")
        raise
    return _of_text(MightContain(filter_text, type_code), "boolean", key)


# --- kernels: run in Python workers ----------------------------------------------------------------------


@dataclass(frozen=True)
class RecordKeys:
    spec: KeySpec

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        gone = [absent(to_text(rows.column(n))) for n in range(rows.num_columns)]
        if any(g is None for g in gone):
            return record_keys(rows, self.spec)
        usable = ~np.logical_and.reduce([g for g in gone if g is not None])
        keys = record_keys(rows.filter(pa.array(usable)), self.spec)
        places = np.cumsum(usable) - 1
        return pc.take(keys, pa.array(places, mask=~usable))


@dataclass(frozen=True)
class PartitionPaths:
    spec: KeySpec

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        return partition_paths(rows, self.spec).cast(pa.string())


@dataclass(frozen=True)
class JavaHashes:
    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        return _java_hash(rows.column(0))


@dataclass(frozen=True)
class BucketIds:
    fields: tuple[str, ...]
    num_buckets: int

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        return bucket_ids(rows.column(0), self.fields, self.num_buckets)


@dataclass(frozen=True)
class RingHashes:
    fields: tuple[str, ...]

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        from hudi_index.hashing.ring import ring_hashes  # few queries need it

        return ring_hashes(rows.column(0), self.fields)


@dataclass(frozen=True)
class MightContain:
    filter_text: str
    type_code: str | None

    def __call__(self, rows: pa.RecordBatch) -> pa.Array:
        return _filter(self.filter_text, self.type_code).might_contain(rows.column(0))


@lru_cache(maxsize=8)
def _filter(text: str, type_code: str | None) -> BloomFilter:
    return parse_filter(text, type_code)


# --- columns ---------------------------------------------------------------------------------------------


def _names(fields: str | Sequence[str], function: str) -> tuple[str, ...]:
    names = fields.split(",") if isinstance(fields, str) else fields
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{function} takes names of columns, not {type(name).__name__}: {str(name)[:80]}")
    if not names or not all(n.strip() for n in names):
        raise OptionError(
            f"{function} is given {'an empty name' if names else 'no field'}",
            remedy="name the columns that the table's own option names.",
        )
    return tuple(n.strip() for n in names)


def _of_text(kernel: Kernel, returns: str, text: Column | str) -> Column:
    if not isinstance(text, (str, Column)):
        raise TypeError(f"a column or its name is wanted, not {type(text).__name__}: {text!r:.80}")
    column = F.col(text) if isinstance(text, str) else text
    return kernel_column(kernel, returns, [column.cast("string")], ("text",))


def _column(kernel: Kernel, returns: str, fields: Sequence[str]) -> Column:
    return kernel_column(kernel, returns, [F.col(f) for f in fields], tuple(fields))


def kernel_column(kernel: Kernel, returns: str, columns: Sequence[Column], names: tuple[str, ...]) -> Column:
    """A Python function over columns, which arrive as a batch with these names."""
    if HAS_ARROW_UDF:
        return _arrow(kernel, returns, columns, names)
    parts = [part for n, column in enumerate(columns) for part in _as_text(column, n)]
    made: Any = _functions.pandas_udf(_on_pandas(kernel, names), returns)
    called: Column = made(F.struct(*parts))
    return called


def _arrow(kernel: Kernel, returns: str, columns: Sequence[Column], names: tuple[str, ...]) -> Column:
    def run(rows: pa.Array) -> pa.Array:
        answer = kernel(pa.RecordBatch.from_arrays(rows.flatten(), names=list(names)))
        forget_archives()
        return answer

    called: Column = _functions.arrow_udf(run, returns)(
        F.struct(*(c.alias(f"c{n}") for n, c in enumerate(columns)))
    )
    return called


def _as_text(column: Column, n: int) -> list[Column]:
    """A column's value as text for `_from_text`, and the name of its type.

    pandas has no nulls in integer columns and no decimals; text keeps every value.  JSON writes timestamps in
    UTC whatever the session's zone is, and binary as base64; the type's name is constant, so that Spark drops
    what is not of it.
    """
    kind = F.typeof(column)
    layout = {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
        "timeZone": "UTC",
    }
    coded = F.get_json_object(F.to_json(F.struct(column.alias("v")), layout), "$.v")
    text = F.when(kind.isin("timestamp", "timestamp_ntz", "binary"), coded).otherwise(column.cast("string"))
    return [text.alias(f"t{n}"), kind.alias(f"k{n}")]


def _on_pandas(kernel: Kernel, names: tuple[str, ...]) -> Callable[[pd.DataFrame], pd.Series]:
    def run(rows: pd.DataFrame) -> pd.Series:
        if rows.empty:
            return pd.Series([], dtype=object)
        arrays = [
            from_text(pa.array(rows.iloc[:, 2 * n], pa.string(), from_pandas=True), rows.iloc[0, 2 * n + 1])
            for n in range(len(names))
        ]
        answer = kernel(pa.RecordBatch.from_arrays(arrays, names=list(names)))
        forget_archives()
        return pd.Series(answer.to_pylist(), dtype=object)

    return run


def from_text(text: pa.Array, kind: str) -> pa.Array:
    """The values from the text of `_as_text`, where key text depends on the type."""
    if kind in ("timestamp", "timestamp_ntz"):
        return text.cast(pa.timestamp("us", "UTC"))
    if kind == "binary":
        return pa.array([None if t is None else b64decode(t) for t in text.to_pylist()], pa.binary())
    if kind.startswith("decimal("):
        precision, scale = (int(n) for n in kind[8:-1].split(","))
        return text.cast(pa.decimal128(precision, scale))
    if kind in ("float", "double"):
        return text.cast(pa.float32() if kind == "float" else pa.float64())
    return text
