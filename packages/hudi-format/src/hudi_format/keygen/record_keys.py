"""Record keys and partition paths of a batch, by key generator.

Source: the Avro key generators of Apache Hudi 0.15 with KeyGenUtils and HoodieAvroUtils; record keys and partition
paths of the golden tables come out alike.  Where Apache Hudi's two write paths differ (timestamps, binary, keys of
GlobalDeleteKeyGenerator), this is the record path: upsert, insert and delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import MissingColumnError, PartitionPathError, RecordKeyError, SchemaError
from hudi_format.keygen.java_text import to_text
from hudi_format.keygen.key_generator import KEY_OPTION, PARTITION_OPTION, TIMESTAMP, KeySpec
from hudi_format.keygen.partition_path import HIVE_DEFAULT, check_safe, null_text_error, null_texts, segment
from hudi_format.keygen.timestamp_based import partition_texts

Batch: TypeAlias = pa.RecordBatch | pa.Table

NULL_PART = "__null__"
EMPTY_PART = "__empty__"

# How many rows an error names.
_SHOWN = 3

# Above this many possible combinations of partition values those that occur are looked for first.
_DENSE_COMBINATIONS = 1 << 20


def record_keys(batch: Batch, spec: KeySpec) -> pa.StringArray:
    """Record key of each row, never null or empty.

    One field gives its text, several give `f1:v1,f2:v2` with `__null__` and `__empty__` for absent values.

    Raises:
        MissingColumnError: a key column that the batch does not have.
        RecordKeyError: a row whose key is null or empty, or all of whose parts are; names column and rows.
        ValueError: the spec has no key fields; see `made_up_keys`.
    """
    if spec.auto:
        raise ValueError("the table's record keys are made up by its writer, not taken from columns")
    texts = [
        to_text(_column(batch, name, "record key", KEY_OPTION), zone=spec.timestamp_zone)
        for name in spec.key_fields
    ]
    if len(texts) == 1 and spec.kind != "GLOBAL_DELETE":
        _refuse_absent(absent(texts[0]), spec.key_fields)
        return texts[0]
    missing = [absent(t) for t in texts]
    if all(m is not None for m in missing):
        _refuse_absent(np.logical_and.reduce([m for m in missing if m is not None]), spec.key_fields)
    pieces: list[pa.Array | pa.Scalar] = []
    for i, (name, text, gone) in enumerate(zip(spec.key_fields, texts, missing, strict=True)):
        pieces.append(pa.scalar(f"{',' if i else ''}{name}:"))
        pieces.append(text if gone is None else _with_placeholders(text))
    return pc.binary_join_element_wise(*pieces, "")


def made_up_keys(instant: str, partition: int, numbers: range) -> pa.StringArray:
    """Generated record keys: `<instant>_<number of the task>_<number of the row in it>`.

    Source: AutoRecordGenWrapperKeyGenerator.  With instant "" they lack it; see `with_instant`.
    """
    counts = pa.array(np.arange(numbers.start, numbers.stop)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{partition}_"), counts, "")


def with_instant(keys: pa.ChunkedArray | pa.Array, instant: str) -> pa.ChunkedArray | pa.Array:
    """Generated keys with their missing instant added; keys of stored records are unchanged."""
    lacking = pc.starts_with(keys, "_")
    return pc.if_else(lacking, pc.binary_join_element_wise(pa.scalar(instant), keys, ""), keys)


def absent(text: pa.Array) -> np.ndarray | None:
    """Mask of null and empty texts (bool); None where there are none."""
    if len(text) == 0:
        return None
    lengths = pc.binary_length(text)
    if not text.null_count and pc.min(lengths).as_py() > 0:
        return None
    out: np.ndarray = pc.fill_null(pc.equal(lengths, 0), True).to_numpy(zero_copy_only=False)
    return out


def _with_placeholders(text: pa.Array) -> pa.Array:
    filled = pc.fill_null(text, NULL_PART)
    return pc.if_else(pc.equal(filled, ""), EMPTY_PART, filled)


def _refuse_absent(mask: np.ndarray | None, fields: Sequence[str]) -> None:
    if mask is None or not mask.any():
        return
    rows = np.flatnonzero(mask)
    what = f"field {fields[0]!r} is" if len(fields) == 1 else f"fields {_list(fields)} are all"
    raise RecordKeyError(
        f"record key {what} null or empty in {len(rows)} of {len(mask)} rows, first in row "
        + ", ".join(str(r) for r in rows[:_SHOWN]),
        remedy=f"drop these rows or fill the column, or choose another {KEY_OPTION}.",
        column=",".join(fields),
        rows=len(rows),
        first_rows=[int(r) for r in rows[:_SHOWN]],
    )


def partition_paths(batch: Batch, spec: KeySpec) -> pa.DictionaryArray:
    """Partition path of each row, dictionary-encoded: int32 indices, distinct paths, no nulls.

    Values are turned into text once per distinct value, not per row.  Null and empty values become
    `__HIVE_DEFAULT_PARTITION__`; every path of the dictionary occurs and is safe to use below the table.

    Raises:
        MissingColumnError: a partition column that the batch does not have.
        PartitionPathError: a value that would leave the table's folder, or be read back as null where the spec
            refuses that.
    """
    rows = batch.num_rows
    if not spec.partition_fields or not rows:
        return _encoded(np.zeros(rows, dtype=np.int32), [""] if rows else [])
    levels = [
        _level(_column(batch, name, "partition", PARTITION_OPTION), name, kind, spec)
        for name, kind in zip(spec.partition_fields, spec.field_kinds, strict=True)
    ]
    codes, paths = levels[0]
    for level_codes, segments in levels[1:]:
        codes, used = _renumbered(
            codes.astype(np.int64) * len(segments) + level_codes, len(paths) * len(segments)
        )
        paths = [f"{paths[u // len(segments)]}/{segments[u % len(segments)]}" for u in used]
    for path in paths:
        _check(path, spec)
    return _encoded(codes, paths)


def _renumbered(codes: np.ndarray, bound: int) -> tuple[np.ndarray, list[int]]:
    """Codes below `bound` renumbered densely from 0 (int32), and the code of each number."""
    if bound > _DENSE_COMBINATIONS:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return inverse.astype(np.int32), distinct.tolist()
    occurring = np.flatnonzero(np.bincount(codes, minlength=bound))
    places = np.zeros(bound, dtype=np.int32)
    places[occurring] = np.arange(len(occurring), dtype=np.int32)
    return places[codes], occurring.tolist()


def _level(column: pa.Array, name: str, kind: str, spec: KeySpec) -> tuple[np.ndarray, list[str]]:
    """One level of the paths: a code per row, and the segment of each code."""
    _refuse_binary(column.type, name)
    if kind == TIMESTAMP and spec.times is not None:
        dates, texts = partition_texts(column, spec.times, name)
        return dates, [
            segment(name, t, hive_style=spec.hive_style, url_encode=spec.url_encode) for t in texts
        ]
    if pa.types.is_floating(column.type):
        column = to_text(column)  # Arrow takes 0.0 and -0.0 for one value
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values: list[str | None] = to_text(encoded.dictionary, zone=spec.timestamp_zone).to_pylist()
    indices = encoded.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(values))
        values.append(None)
    codes = indices.to_numpy(zero_copy_only=False)
    # Several values may have one segment (null and empty), and a dictionary may hold unused ones.
    counts = np.bincount(codes, minlength=len(values))
    used = counts > 0
    if spec.refuses_null_texts:
        nulls = null_texts(name, hive_style=spec.hive_style, url_encode=spec.url_encode)
        refused = sum(int(n) for n, value in zip(counts, values, strict=True) if value in nulls)
        if refused:
            raise null_text_error(name, refused, len(codes))
    numbers: dict[str, int] = {}
    places = np.zeros(len(values), dtype=np.int32)
    for i, value in enumerate(values):
        if used[i]:
            text = segment(name, value, hive_style=spec.hive_style, url_encode=spec.url_encode)
            places[i] = numbers.setdefault(text, len(numbers))
    return places[codes], list(numbers)


def _refuse_binary(kind: pa.DataType, name: str) -> None:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_binary(value) or pa.types.is_large_binary(value) or pa.types.is_fixed_size_binary(value):
        raise SchemaError(
            f"partition column {name!r} is binary: its bytes cannot be read back from a partition path",
            remedy="partition by another column, or by the bytes as text.",
            column=name,
        )


def _check(path: str, spec: KeySpec) -> None:
    try:
        check_safe(path)
    except PartitionPathError as e:
        raise PartitionPathError(
            f"{e.message}; it comes from {_list(spec.partition_fields)}",
            remedy=e.remedy,
            column=",".join(spec.partition_fields),
            path=path,
        ) from e


def _encoded(codes: np.ndarray, paths: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(paths, pa.string()))


def nested_column(batch: Batch, path: str) -> pa.Array | pa.ChunkedArray | None:
    """A column by name or dot path, null below null structs; None where there is no such column."""
    name, rest = (path, []) if path in batch.schema.names else (path.split(".")[0], path.split(".")[1:])
    if name not in batch.schema.names:
        return None
    column = batch.column(name)
    for step in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(step) < 0:
            return None
        column = pc.struct_field(column, step)
    return column


def _column(batch: Batch, path: str, what: str, option: str) -> pa.Array:
    """A column by name or dot path as one array, null below null structs."""
    name = path if path in batch.schema.names else path.split(".")[0]
    if batch.schema.names.count(name) > 1:
        raise MissingColumnError(
            f"{what} column {name!r} stands more than once in the data", option=option, column=path
        )
    column = nested_column(batch, path)
    if column is not None:
        return _one_piece(column)
    near = [n for n in batch.schema.names if n.lower() == name.lower() and n != name]
    raise MissingColumnError(
        f"{what} column {path!r} is not in the data, which has {', '.join(batch.schema.names)}",
        remedy=f"names are case-sensitive: use {near[0]!r}."
        if near
        else f"add the column, or correct {option}.",
        option=option,
        column=path,
    )


def _one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        # More than 2 GiB of text in one column.
        combined = pa.concat_arrays([c.cast(pa.large_string()) for c in combined.chunks])
    return combined


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


__all__ = [
    "HIVE_DEFAULT", "KeySpec", "absent", "made_up_keys", "nested_column", "partition_paths", "record_keys", "to_text",
    "with_instant",
]  # fmt: skip
