"""Key generators: record keys and partition paths from the columns of a batch.

Source: Simple-, Complex- and NonpartitionedAvroKeyGenerator of Apache Hudi 0.15 with KeyGenUtils and
HoodieAvroUtils; record keys and partition paths of the golden tables come out alike.  Where Apache Hudi's two
write paths differ (timestamps, binary), this is the record path: upsert, insert and delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    MissingColumnError,
    PartitionPathError,
    RecordKeyError,
    UnsupportedError,
)
from hudi_format.partition_path import HIVE_DEFAULT, check_safe, segment
from hudi_format.value_text import to_text

Kind = Literal["SIMPLE", "COMPLEX", "NON_PARTITION"]
Batch: TypeAlias = pa.RecordBatch | pa.Table

NULL_PART = "__null__"
EMPTY_PART = "__empty__"

_PACKAGE = "org.apache.hudi.keygen."
_CLASSES: dict[str, Kind] = {
    "SimpleKeyGenerator": "SIMPLE",
    "SimpleAvroKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "COMPLEX",
    "ComplexAvroKeyGenerator": "COMPLEX",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
}
_TYPES: dict[str, Kind] = {
    "SIMPLE": "SIMPLE",
    "SIMPLE_AVRO": "SIMPLE",
    "COMPLEX": "COMPLEX",
    "COMPLEX_AVRO": "COMPLEX",
    "NON_PARTITION": "NON_PARTITION",
    "NON_PARTITION_AVRO": "NON_PARTITION",
}
_CLASS_OF: dict[Kind, str] = {
    "SIMPLE": _PACKAGE + "SimpleKeyGenerator",
    "COMPLEX": _PACKAGE + "ComplexKeyGenerator",
    "NON_PARTITION": _PACKAGE + "NonpartitionedKeyGenerator",
}
_CLASS_OPTION = "hoodie.datasource.write.keygenerator.class"
_TYPE_OPTION = "hoodie.datasource.write.keygenerator.type"
_KEY_OPTION = "hoodie.datasource.write.recordkey.field"
_PARTITION_OPTION = "hoodie.datasource.write.partitionpath.field"

# How many rows an error names.
_SHOWN = 3

# Above this many possible combinations of partition values those that occur are looked for first.
_DENSE_COMBINATIONS = 1 << 20


@dataclass(frozen=True, slots=True)
class KeySpec:
    """How record key and partition path come from a row.

    Attributes:
        key_fields: columns of the record key, nested ones by dot path; one at least.
        partition_fields: columns of the partition path; none for NON_PARTITION.
        kind: SIMPLE (one key, one partition field), COMPLEX (any number) or NON_PARTITION.
        hive_style: path levels are `field=value`.
        url_encode: special characters of values are written as %XX.
    """

    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    kind: Kind
    hive_style: bool = False
    url_encode: bool = False

    def __post_init__(self) -> None:
        if not self.key_fields:
            raise InvalidOptionError(
                "no record key field is given", remedy=f"set {_KEY_OPTION}.", option=_KEY_OPTION
            )
        if self.kind == "SIMPLE" and (len(self.key_fields) != 1 or len(self.partition_fields) != 1):
            raise ConflictingOptionError(
                f"SimpleKeyGenerator takes one record key field and one partition field, not "
                f"{_list(self.key_fields)} and {_list(self.partition_fields)}",
                remedy=f"leave {_CLASS_OPTION} out, or set it to ComplexKeyGenerator (several fields) or "
                "NonpartitionedKeyGenerator (no partition field).",
                option=_CLASS_OPTION,
            )
        if self.kind == "NON_PARTITION" and self.partition_fields:
            # As Apache Hudi: this generator ignores a partition field.
            object.__setattr__(self, "partition_fields", ())

    @property
    def class_name(self) -> str:
        """The class that Apache Hudi has for it, as stored in hoodie.properties."""
        return _CLASS_OF[self.kind]

    @classmethod
    def from_class(
        cls,
        class_name: str | None,
        *,
        key_fields: Sequence[str],
        partition_fields: Sequence[str],
        hive_style: bool = False,
        url_encode: bool = False,
    ) -> KeySpec:
        """The spec of a key generator class, or of the one that Apache Hudi infers where none is named.

        Args:
            class_name: with or without package, also a name of KeyGeneratorType (`NON_PARTITION` ...).

        Raises:
            UnsupportedError: a key generator that is not built.
            ConflictingOptionError: fields that do not fit the generator.
        """
        keys, partitions = _fields(key_fields), _fields(partition_fields)
        kind = _kind(class_name, _CLASS_OPTION) if class_name else _inferred(keys, partitions)
        return cls(keys, partitions, kind, hive_style, url_encode)

    @classmethod
    def from_options(
        cls,
        *,
        key_fields: Sequence[str],
        partition_fields: Sequence[str],
        class_name: str | None = None,
        type_name: str | None = None,
        hive_style: bool = False,
        url_encode: bool = False,
    ) -> KeySpec:
        """The spec that a writer's options mean: the class, else the type, else inferred.

        Raises:
            UnsupportedError, ConflictingOptionError: as `from_class`.
        """
        if type_name and not class_name:
            class_name = _CLASS_OF[_kind(type_name, _TYPE_OPTION)]
        return cls.from_class(
            class_name,
            key_fields=key_fields,
            partition_fields=partition_fields,
            hive_style=hive_style,
            url_encode=url_encode,
        )

    def with_style(self, *, hive_style: bool, url_encode: bool) -> KeySpec:
        """The same fields with other paths."""
        return replace(self, hive_style=hive_style, url_encode=url_encode)


def _fields(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(n.strip() for n in names if n.strip())


def _inferred(key_fields: Sequence[str], partition_fields: Sequence[str]) -> Kind:
    if not partition_fields:
        return "NON_PARTITION"
    return "SIMPLE" if len(key_fields) == 1 and len(partition_fields) == 1 else "COMPLEX"


def _kind(name: str, option: str) -> Kind:
    short = name.strip().rpartition(".")[2]
    kind = _CLASSES.get(short) or _TYPES.get(short.upper())
    if kind is None:
        raise UnsupportedError(
            f"key generator {name} is not provided",
            remedy="use SimpleKeyGenerator, ComplexKeyGenerator or NonpartitionedKeyGenerator, on a column "
            "that holds the partition value as it should appear.",
            option=option,
        )
    return kind


def record_keys(batch: Batch, spec: KeySpec) -> pa.StringArray:
    """The record key of each row, none null or empty.

    One field gives its text, several give `f1:v1,f2:v2` with `__null__` and `__empty__` for absent values.

    Raises:
        MissingColumnError: a key column that the batch does not have.
        RecordKeyError: a row whose key is null or empty, or all of whose parts are; names column and rows.
    """
    texts = [to_text(_column(batch, name, "record key", _KEY_OPTION)) for name in spec.key_fields]
    if len(texts) == 1:
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


def absent(text: pa.Array) -> np.ndarray | None:
    """Which texts are null or empty (bool), None where none is."""
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
        remedy=f"drop these rows or fill the column, or choose another {_KEY_OPTION}.",
        column=",".join(fields),
        rows=len(rows),
        first_rows=[int(r) for r in rows[:_SHOWN]],
    )


def partition_paths(batch: Batch, spec: KeySpec) -> pa.DictionaryArray:
    """The partition path of each row, dictionary-encoded: int32 indices, distinct paths, no nulls.

    Values are turned into text once per distinct value, not per row.  Null and empty values become
    `__HIVE_DEFAULT_PARTITION__`; every path of the dictionary occurs and is safe to use below the table.

    Raises:
        MissingColumnError: a partition column that the batch does not have.
        PartitionPathError: a value that would leave the table's folder.
    """
    rows = batch.num_rows
    if not spec.partition_fields or not rows:
        return _encoded(np.zeros(rows, dtype=np.int32), [""] if rows else [])
    levels = [
        _level(_column(batch, name, "partition", _PARTITION_OPTION), name, spec)
        for name in spec.partition_fields
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
    """Codes below `bound` numbered densely from 0 (int32), and the code of each number."""
    if bound > _DENSE_COMBINATIONS:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return inverse.astype(np.int32), distinct.tolist()
    occurring = np.flatnonzero(np.bincount(codes, minlength=bound))
    places = np.zeros(bound, dtype=np.int32)
    places[occurring] = np.arange(len(occurring), dtype=np.int32)
    return places[codes], occurring.tolist()


def _level(column: pa.Array, name: str, spec: KeySpec) -> tuple[np.ndarray, list[str]]:
    """One level of the paths: a code per row, and the segment of each code."""
    if pa.types.is_floating(column.type):
        column = to_text(column)  # Arrow takes 0.0 and -0.0 for one value
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values: list[str | None] = to_text(encoded.dictionary).to_pylist()
    indices = encoded.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(values))
        values.append(None)
    codes = indices.to_numpy(zero_copy_only=False)
    # Several values may have one segment (null and empty), and a dictionary may hold unused ones.
    used = np.bincount(codes, minlength=len(values)) > 0
    numbers: dict[str, int] = {}
    places = np.zeros(len(values), dtype=np.int32)
    for i, value in enumerate(values):
        if used[i]:
            text = segment(name, value, hive_style=spec.hive_style, url_encode=spec.url_encode)
            places[i] = numbers.setdefault(text, len(numbers))
    return places[codes], list(numbers)


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
    """A column by name or dot path, null where a struct on the way is; None where there is no such column."""
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
    """A column by name or dot path, in one piece; null where a struct on the way is."""
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


__all__ = ["HIVE_DEFAULT", "KeySpec", "absent", "nested_column", "partition_paths", "record_keys", "to_text"]
