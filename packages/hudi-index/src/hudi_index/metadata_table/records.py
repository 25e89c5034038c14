"""Records of the metadata table: their columns, and their values with meaning.

What reads files gives records as Arrow columns of one of the `SCHEMAS`; the functions here take such columns apart.  A
bound in column statistics is a union of wrappers, of which the written one depends on the release and on what
compacted the file, so that the type of the data column decides what a bound means: `bounds` gives both bounds in that
type, or null where they cannot be relied on.

Source: HoodieMetadata.avsc and HoodieMetadataPayload of Apache Hudi 0.15 and 1.x; spec "Metadata table", sections 3, 5
and 6.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import CorruptFileError
from hudi_index.hashing.java import ORDERS_PART
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table.keys import split_secondary_key
from hudi_index.metadata_table.merger import FILES, STATS

BLOOM, LOCATION, SECONDARY = "BloomFilterMetadata", "recordIndexMetadata", "SecondaryIndexMetadata"

# Members of the union of a bound.  Later releases added wrappers behind these, of dates that no release writes and of
# lists that have no order: a bound in one of those is null here.
_WRAPPED = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.binary(), pa.string(), pa.int32(),
    pa.decimal128(30, 15), pa.int64(), pa.int64(),
)  # fmt: skip
BOUND = pa.struct([pa.field(f"member{n}", pa.struct([pa.field("value", t)])) for n, t in enumerate(_WRAPPED)])
_VALUE_TYPE = pa.struct([pa.field("typeOrdinal", pa.int32()), pa.field("additionalInfo", pa.string())])

_FILE = pa.struct([pa.field("size", pa.int64()), pa.field("isDeleted", pa.bool_())])
_PAYLOADS = {
    FILES: pa.map_(pa.string(), _FILE),
    STATS: pa.struct(
        [
            pa.field("fileName", pa.string()), pa.field("columnName", pa.string()), pa.field("minValue", BOUND),
            pa.field("maxValue", BOUND), pa.field("valueCount", pa.int64()), pa.field("nullCount", pa.int64()),
            pa.field("totalSize", pa.int64()), pa.field("totalUncompressedSize", pa.int64()),
            pa.field("isDeleted", pa.bool_()), pa.field("isTightBound", pa.bool_()),
            pa.field("valueType", _VALUE_TYPE),
        ]
    ),
    BLOOM: pa.struct(
        [
            pa.field("type", pa.string()), pa.field("timestamp", pa.string()),
            pa.field("bloomFilter", pa.binary()), pa.field("isDeleted", pa.bool_()),
        ]
    ),
    LOCATION: pa.struct(
        [
            pa.field("partitionName", pa.string()), pa.field("fileIdHighBits", pa.int64()),
            pa.field("fileIdLowBits", pa.int64()), pa.field("fileIndex", pa.int32()), pa.field("fileId", pa.string()),
            pa.field("instantTime", pa.int64()), pa.field("fileIdEncoding", pa.int32()),
            pa.field("position", pa.int64()),
        ]
    ),
    SECONDARY: pa.struct([pa.field("isDeleted", pa.bool_())]),
}  # fmt: skip


def payload_field(partition: str) -> str:
    """Name of the record field that a metadata partition fills.

    Raises:
        ValueError: a partition that there is not.
    """
    named = {k.FILES: FILES, k.BLOOM_FILTERS: BLOOM, k.RECORD_INDEX: LOCATION}
    if partition.startswith(k.SECONDARY_INDEX):
        return SECONDARY
    if partition in (k.COLUMN_STATS, k.PARTITION_STATS) or partition.startswith(k.EXPR_INDEX):
        return STATS
    if partition not in named:
        raise ValueError(f"{partition!r} is no partition of a metadata table")
    return named[partition]


def schema_of(partition: str) -> pa.Schema:
    """Columns of a metadata partition's records: key, type and the partition's own field."""
    name = payload_field(partition)
    return pa.schema(
        [pa.field("key", pa.string()), pa.field("type", pa.int32()), pa.field(name, _PAYLOADS[name])]
    )


# --- column statistics --------------------------------------------------------------------------------

# What a column's values are stored as (`valueType`): from table version 9 on; 0 is as before.
LEGACY, DECIMAL = 0, 10
_ORDINALS: dict[str, tuple[int, ...]] = {
    "bool": (2,), "int": (3,), "long": (3, 4), "float": (5,), "double": (6,), "string": (7,), "date": (12,),
    "us": (16, 19), "ms": (15, 18), "decimal": (DECIMAL,),
}  # fmt: skip
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL = range(9)
_MEMBERS: dict[str, tuple[int, ...]] = {
    # Compaction of a table of version 6 turns dates into ints, and decimals into bytes.
    "bool": (_BOOLEAN,), "int": (_INT,), "long": (_LONG, _INT), "float": (_FLOAT,), "double": (_DOUBLE,),
    "string": (_STRING,), "date": (_DATE, _INT), "us": (_LONG,), "ms": (_LONG,),
}  # fmt: skip
_LEGACY_SCALE = 15
# Times in microseconds below this (1973) may be milliseconds: records before version 9 do not say which.
_LEAST_MICROS = 10**14


def _kind(type: pa.DataType) -> str:
    """Name of a data column's type in the tables above; "" for one whose bounds say nothing here."""
    t = pa.types
    if t.is_boolean(type):
        return "bool"
    if t.is_int8(type) or t.is_int16(type) or t.is_int32(type):
        return "int"
    if t.is_timestamp(type):
        return type.unit if type.unit in ("us", "ms") else ""
    names = (
        (t.is_int64, "long"), (t.is_float32, "float"), (t.is_float64, "double"), (t.is_string, "string"),
        (t.is_date32, "date"), (t.is_decimal128, "decimal"),
    )  # fmt: skip
    return next((name for holds, name in names if holds(type)), "")


def has_bounds(type: pa.DataType) -> bool:
    """Whether `bounds` can tell any of columns of a type."""
    return bool(_kind(type))


def bounds(stats: pa.StructArray, type: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Least and greatest values of column statistics, in the type of the data column.

    All values of the column that are neither null nor NaN lie between them, both included.  Both are null where that
    cannot be relied on: one is absent, is NaN, is of a type that the column did not have, or above the other; the
    column is binary, nested or of a type without order; texts that Java and Arrow order in different ways; decimals
    that the column cannot hold; times whose unit is not known.

    Args:
        stats: the field `ColumnStatsMetadata` of records.
        type: the column's, now.
    """
    kind = _kind(type)
    count = len(stats)
    if not kind or not count:
        return pa.nulls(count, type), pa.nulls(count, type)
    said = _ordinals(stats)
    low, high = (_side(stats.field(name), kind, type, stats, said) for name in ("minValue", "maxValue"))
    known = np.asarray(low.is_valid()) & np.asarray(high.is_valid()) & np.asarray(stats.is_valid())
    known &= np.isin(said, (LEGACY, *_ORDINALS[kind]))
    # A column of nulls has false for both bounds where it is boolean.
    counts, nulls = (pc.fill_null(stats.field(n), -1).to_numpy(zero_copy_only=False) for n in _COUNTS)
    known &= ~((counts >= 0) & (counts == nulls))
    if kind in ("float", "double"):
        known &= ~np.asarray(pc.fill_null(pc.or_(pc.is_nan(low), pc.is_nan(high)), True))
    if kind in ("us", "ms"):
        legacy = said == LEGACY
        small = [
            np.abs(pc.fill_null(side.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)) < _LEAST_MICROS
            for side in (low, high)
        ]
        known &= ~(legacy & (small[0] | small[1] | (kind == "ms")))
    if kind == "string":
        for side in (low, high):
            known &= ~np.asarray(pc.fill_null(pc.match_substring_regex(side, ORDERS_PART), True))
    ordered = (
        pc.less_equal(low.cast(pa.int8()), high.cast(pa.int8()))
        if kind == "bool"
        else pc.less_equal(low, high)
    )
    known &= np.asarray(pc.fill_null(ordered, False))
    mask = pa.array(known)
    nothing = pa.scalar(None, type)
    return pc.if_else(mask, low, nothing), pc.if_else(mask, high, nothing)


_COUNTS = ("valueCount", "nullCount")
# Bytes of the longest text of which Parquet's writer in Java keeps bounds (ParquetMetadataConverter.withinLimit).
_LONGEST_TEXT = 4096


def may_lack_values(stats: pa.StructArray, type: pa.DataType) -> np.ndarray:
    """Mask of column statistics whose bounds may be those of some of the values only.

    A row group with a longer text than a bound may have is stored without bounds and without its number of nulls.
    Apache Hudi takes it for one of nulls, and gives the bounds of the file's other row groups (ParquetUtils), or of the
    partition's other files.  For one with NaN it reads zero for both bounds, which those of others may hide.

    Args:
        stats, type: as of `bounds`.
    """
    kind = _kind(type)
    nulls, size = (
        pc.fill_null(stats.field(n), -1).to_numpy(zero_copy_only=False)
        for n in ("nullCount", "totalUncompressedSize")
    )
    # Those of logs are made from the values, and say no size.
    if kind in ("float", "double"):
        return np.asarray(size != 0)
    return np.asarray((kind == "string") & (nulls != 0) & ((size < 0) | (size > _LONGEST_TEXT)))


def _ordinals(stats: pa.StructArray) -> np.ndarray:
    found = pc.struct_field(stats, ["valueType", "typeOrdinal"])
    ordinals: np.ndarray = pc.fill_null(found, LEGACY).to_numpy(zero_copy_only=False)
    return ordinals


def _member(bound: pa.StructArray, number: int) -> pa.Array:
    return pc.struct_field(bound, [f"member{number}", "value"])


def _side(
    bound: pa.StructArray, kind: str, type: pa.DataType, stats: pa.StructArray, said: np.ndarray
) -> pa.Array:
    if kind == "decimal":
        return _decimals(bound, type, stats, said)
    found = _member(bound, _MEMBERS[kind][0])
    for number in _MEMBERS[kind][1:]:
        found = pc.coalesce(found, _member(bound, number).cast(found.type))
    if kind == "int":
        least, most = -(1 << (type.bit_width - 1)), (1 << (type.bit_width - 1)) - 1
        fits = pc.and_(pc.greater_equal(found, least), pc.less_equal(found, most))
        found = pc.if_else(fits, found, pa.scalar(None, found.type))
    return found.cast(type)


def _decimals(
    bound: pa.StructArray, type: pa.Decimal128Type, stats: pa.StructArray, said: np.ndarray
) -> pa.Array:
    """Bounds of decimals: of scale 15, or of the scale that the value type says."""
    wrapped = _member(bound, _DECIMAL).to_pylist()
    raw = _member(bound, _BYTES).to_pylist()
    infos = pc.struct_field(stats, ["valueType", "additionalInfo"]).to_pylist()
    out: list[Decimal | None] = []
    for value, data, info, ordinal in zip(wrapped, raw, infos, said.tolist(), strict=True):
        scale = _LEGACY_SCALE
        if ordinal == DECIMAL:
            scale = _scale(info)
        if scale < 0 or (value is None and not data):
            out.append(None)
            continue
        unscaled = (
            int(value.scaleb(_LEGACY_SCALE)) if value is not None else int.from_bytes(data, signed=True)
        )
        if value is not None:
            scale = _LEGACY_SCALE
        out.append(_rescaled(unscaled, scale, type))
    return pa.array(out, type)


def _scale(info: str | None) -> int:
    """Scale of `precision,scale`; -1 for another text."""
    precision, comma, scale = (info or "").partition(",")
    return int(scale) if comma and precision.strip().isdecimal() and scale.strip().isdecimal() else -1


def _rescaled(unscaled: int, scale: int, type: pa.Decimal128Type) -> Any:
    if scale > type.scale:
        whole, rest = divmod(unscaled, 10 ** (scale - type.scale))
        if rest:
            return None
    else:
        whole = unscaled * 10 ** (type.scale - scale)
    if abs(whole) >= 10**type.precision:
        return None
    return Decimal(whole).scaleb(-type.scale, Context(prec=type.precision + 2))


# --- values ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BloomFilterRecord:
    """Bloom filter of a base file.

    Attributes:
        type_code: as in a footer, for `hudi_index.bloom.filter.parse_filter`.
        text: the filter in base64, as in a footer.
    """

    key: str
    type_code: str
    text: bytes
    instant: str
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class SecondaryEntry:
    """A value of an indexed column, and the key of a record that has it."""

    value: str | None
    record_key: str
    is_deleted: bool


def bloom_filters(records: pa.RecordBatch) -> Iterator[BloomFilterRecord]:
    """Bloom filters of records of `bloom_filters`."""
    for row in records.to_pylist():
        found = row[BLOOM]
        if found is not None:
            yield BloomFilterRecord(
                row["key"], found["type"] or "", found["bloomFilter"] or b"", found["timestamp"] or "",
                bool(found["isDeleted"]),
            )  # fmt: skip


def file_id_of(location: dict[str, Any], key: str = "") -> str:
    """File id of a record index entry: a UUID in two halves with an index, or a text.

    Raises:
        CorruptFileError: neither.
    """
    encoding = location["fileIdEncoding"] or 0
    high, low, index = (location[n] for n in ("fileIdHighBits", "fileIdLowBits", "fileIndex"))
    if encoding == 1 and location["fileId"]:
        return str(location["fileId"])
    if encoding != 0 or high is None or low is None or index is None:
        raise CorruptFileError(f"the record index has an invalid location for the key {key!r}")
    text = str(uuid.UUID(int=((high & _LONG_MASK) << 64) | (low & _LONG_MASK)))
    return text if index == -1 else f"{text}-{index}"


_LONG_MASK = 2**64 - 1


def secondary_entries(records: pa.RecordBatch) -> Iterator[SecondaryEntry]:
    """Entries of a secondary index.

    Raises:
        CorruptFileError: a key without a separator.
    """
    for row in records.to_pylist():
        value, key = split_secondary_key(row["key"])
        found = row[SECONDARY]
        yield SecondaryEntry(value, key, found is not None and bool(found["isDeleted"]))
