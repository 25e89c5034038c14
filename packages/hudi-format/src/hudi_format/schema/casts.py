"""Casts of one Arrow column to another type, without silent loss of values.

Three things need this: input in representations that are not stored (dictionaries, views, 64-bit
offsets, small integers), files older than a type promotion, and files whose lists and maps name their
inner fields otherwise.  Nested columns are taken apart and put together around their leaves; leaves
that need no conversion are not copied.

Source: Avro 1.11 schema resolution (promotions), as Apache Hudi 0.15 applies it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.arrow.arrays import is_text
from hudi_format.arrow.sizes import size_of
from hudi_format.errors import SchemaError
from hudi_format.keygen.java_text import to_text
from hudi_format.schema.avro import DEFAULT, is_union
from hudi_format.schema.decimals import decimals_of, exact_decimal, rescaled
from hudi_format.schema.exact import (
    Exact,
    MisfitError,
    exactly,
    hopeless,
    is_uuid,
    nulls_of,
    uuid_texts,
    without_nulls,
)
from hudi_format.schema.extension_types import is_vector, numbers_of

Column: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class _How:
    """Arguments of `convert`, passed to nested levels."""

    naive_is_utc: bool
    float_digits: bool
    retyped: bool
    exact: Exact | None


# Arrow's 32-bit offsets end here; columns with longer text are cut into chunks before they are converted.
_MAX_CHUNK_BYTES = (1 << 31) - 1

_INTEGERS: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
}
NUMBERS: dict[pa.DataType, int] = {pa.int32(): 0, pa.int64(): 1, pa.float32(): 2, pa.float64(): 3}
"""The stored types of numbers, with their rank: each is promoted to those above it."""


def is_any_list(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's list layouts (maps are not)."""
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or (pt.is_list_view(kind) or pt.is_large_list_view(kind))
    )


def unwrapped(kind: pa.DataType) -> pa.DataType:
    """The type behind an encoding: a dictionary's or run-end encoding's values, JSON's text."""
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return unwrapped(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json":
        return unwrapped(kind.storage_type)
    return kind


def stored_leaf(kind: pa.DataType) -> pa.DataType | None:
    """The stored type of a flat type's values; None where there is none.

    Fixed-size binary and timestamps in milliseconds are left as they are: both occur in tables.
    """
    if isinstance(kind, pa.BaseExtensionType):  # one that is made in Python has no hash
        return pa.string() if is_uuid(kind) else None
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_boolean(kind) or kind in NUMBERS:
        return kind
    if is_text(kind):
        return pa.string()
    if pt.is_fixed_size_binary(kind):
        return kind
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_date(kind):
        return pa.date32()
    if pt.is_timestamp(kind):
        zone = "UTC" if kind.tz is not None else None
        return pa.timestamp("ms" if kind.unit == "ms" else "us", zone)
    if pt.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    return None


def promotes(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a stored flat type may be promoted to another one.

    Numbers go up int, long, float, double; numbers, dates and decimals become text (Java's); text and bytes
    become each other (bytes must be UTF-8 then); numbers and text become decimals that hold all their digits;
    decimals gain digits; timestamps change their unit where no digit is lost.
    """
    if source == target:
        return True
    if source in NUMBERS and target in NUMBERS:
        return NUMBERS[source] < NUMBERS[target]
    if pt.is_string(target):
        becomes_text = source in NUMBERS or pt.is_date(source) or pt.is_decimal(source)
        return bool(becomes_text or pt.is_binary(source) or pt.is_fixed_size_binary(source))
    if pt.is_binary(target) or pt.is_fixed_size_binary(target):
        return bool(pt.is_string(source) or pt.is_binary(source) or pt.is_fixed_size_binary(source))
    if pt.is_decimal(target) and (source in NUMBERS or pt.is_string(source)):
        return True
    if pt.is_decimal(source) and pt.is_decimal(target):
        whole = source.precision - source.scale
        return bool(whole <= target.precision - target.scale and source.scale <= target.scale)
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    return False


def refusal(path: str, source: pa.DataType, target: pa.DataType, reason: str = "") -> SchemaError:
    """Error for a column that cannot be cast to the wanted type."""
    text = f"column {path} has type {source}, which cannot become {target}"
    return SchemaError(
        f"{text}: {reason}" if reason else text,
        remedy=zone_remedy(source, target) or "cast the column before writing.",
        column=path,
        source=str(source),
        target=str(target),
    )


def zone_remedy(source: pa.DataType, target: pa.DataType) -> str:
    """Remedy for a timestamp with a time zone and one without; "" for other types."""
    kinds = (source, target)
    if not all(map(pt.is_timestamp, kinds)) or len({k.tz is None for k in kinds}) == 1:
        return ""
    if source.tz is None:
        return "set the time zone of the column's values to UTC before writing."
    return "remove the time zone of the column's values before writing."


def convert(
    column: Column,
    target: pa.DataType,
    path: str,
    *,
    naive_is_utc: bool = False,
    keep_dictionary: bool = False,
    float_digits: bool = False,
    retyped: bool = False,
    exact: Exact | None = None,
) -> Column:
    """The column cast to `target`; unchanged where it has that type.

    Args:
        target: a type as it is stored; inner field names and nullability are taken over.
        path: the column's name, dots between levels; for error messages.
        naive_is_utc: take timestamps without a zone for UTC (Parquet's INT96 is read as such).
        keep_dictionary: leave text that is dictionary-encoded so, with 32-bit codes and plain text.
        float_digits: floats keep the digits that they print with when they become doubles: 0.1 stays 0.1.
        retyped: the column's type was changed by the table's owner (schema on read), which lets text become dates and
            rounds fractions and text to the digits of decimals.  Writes do not do that by themselves.
        exact: values decide, not types: those go together of which every value survives.

    Raises:
        SchemaError: the types do not go together, or a value does not survive; names the column.
        MisfitError: with `exact`, the value that does not survive.
    """
    return _convert(column, target, path, _How(naive_is_utc, float_digits, retyped, exact), keep_dictionary)


def _convert(
    column: Column, target: pa.DataType, path: str, how: _How, keep_dictionary: bool = False
) -> Column:
    if column.type == target:
        return column
    try:
        return _converted(column, target, path, how, keep_dictionary)
    except pa.ArrowException as e:  # of encodings below encodings, for one
        raise refusal(path, column.type, target, str(e)) from e


def _converted(column: Column, target: pa.DataType, path: str, how: _How, keep_dictionary: bool) -> Column:
    if pt.is_null(unwrapped(column.type)):
        return _each_chunk(column, target, lambda a: nulls_of(len(a), target))
    if keep_dictionary and pt.is_string(target) and pt.is_dictionary(column.type):
        return _each_chunk(column, pa.dictionary(pa.int32(), target), _plain_dictionary)
    source, exact = unwrapped(column.type), how.exact
    if is_uuid(source) and pt.is_string(target):
        return _each_chunk(column, target, uuid_texts)
    if exact is not None and not _same_kind(source, target):
        return _each_chunk(column, target, lambda a: _exact_leaf(a, target, path, how, exact))
    if _is_union_of_numbers(source, target):
        return _each_chunk(column, target, lambda a: _one_number(_decoded(a), target))
    if is_vector(source, target):
        return _each_chunk(column, target, lambda a: numbers_of(_decoded(a), target))
    if pt.is_nested(source) or pt.is_nested(target):
        if not _same_kind(source, target):
            raise refusal(path, source, target)
        return _each_chunk(column, target, lambda a: _nested(_decoded(a), target, path, how))
    stored = stored_leaf(source)
    if how.naive_is_utc and stored is not None and pt.is_timestamp(stored) and stored.tz is None:
        stored = pa.timestamp(stored.unit, target.tz if pt.is_timestamp(target) else None)
    if how.retyped and stored == pa.string() and pt.is_date32(target):
        return _each_chunk(column, target, lambda a: _dates(_decoded(a), path))
    if stored is None or not promotes(stored, target):
        raise refusal(path, source, target)
    if pt.is_decimal128(target) and (pt.is_floating(stored) or pt.is_string(stored)):
        return _each_chunk(
            column, target, lambda a: _decimals(_decoded(a), target, path, rounded=how.retyped)
        )
    return _each_chunk(column, target, lambda a: _leaf(_decoded(a), target, path, how.float_digits))


_UNIONS_OF_NUMBERS = {pa.int64(): {pa.int32(), pa.int64()}, pa.float64(): {pa.float32(), pa.float64()}}


def _is_union_of_numbers(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a struct is Parquet's form of an Avro union read as one number (`from_avro`)."""
    if target not in _UNIONS_OF_NUMBERS or not pt.is_struct(source) or source.num_fields != 2:
        return False
    fields = [source.field(n) for n in range(2)]
    return is_union([f.name for f in fields]) and {f.type for f in fields} == _UNIONS_OF_NUMBERS[target]


def _one_number(array: pa.StructArray, target: pa.DataType) -> pa.Array:
    return pc.coalesce(*(pc.struct_field(array, [n]).cast(target) for n in range(2)))


def _same_kind(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both types are lists, maps or structs."""
    return bool(
        (is_any_list(source) and is_any_list(target))
        or (pt.is_map(source) and pt.is_map(target))
        or (pt.is_struct(source) and pt.is_struct(target))
    )


def _exact_leaf(array: pa.Array, target: pa.DataType, path: str, how: _How, exact: Exact) -> pa.Array:
    """Cast of values where one type is flat, or the kinds differ."""
    given = array.type
    known = not isinstance(given, pa.BaseExtensionType) or is_uuid(given) or unwrapped(given) != given
    array = _decoded(array)
    if pt.is_map(target) and pt.is_struct(array.type) and not array.type.num_fields:
        # An empty dict, which says no more of what it would hold.
        return _empty_maps(array.is_valid(), target)
    if not known or pt.is_nested(array.type) or pt.is_nested(target):
        return hopeless(array, given, target, path)
    stored = stored_leaf(array.type)
    promoted = None
    if stored is not None and promotes(stored, target):

        def promoted(values: pa.Array) -> pa.Array:
            try:
                return convert(values, target, path, float_digits=how.float_digits)
            except SchemaError as e:
                raise ValueError(e.message) from None

    return exactly(array, target, path, exact, promoted)


def _empty_maps(valid: pa.Array, target: pa.MapType) -> pa.Array:
    none = [pa.nulls(0, target.key_type), pa.nulls(0, target.item_type)]
    entries = pa.StructArray.from_arrays(none, fields=[target.key_field, target.item_field])
    offsets = pa.py_buffer(np.zeros(len(valid) + 1, np.int32))
    return pa.Array.from_buffers(target, len(valid), [valid.buffers()[1], offsets], children=[entries])


def _each_chunk(column: Column, target: pa.DataType, function: Callable[[pa.Array], pa.Array]) -> Column:
    if isinstance(column, pa.Array):
        return function(column)
    pieces, done = [], 0
    for piece in (piece for chunk in column.chunks for piece in _bounded(chunk)):
        try:
            pieces.append(function(piece))
        except MisfitError as e:
            e.index += done
            raise
        done += len(piece)
    return pa.chunked_array(pieces, type=target)


def _bounded(chunk: pa.Array) -> list[pa.Array]:
    """The chunk split into pieces whose text and lists fit 32-bit offsets."""
    if len(chunk) < 2 or not _has_wide_offsets(chunk.type):
        return [chunk]
    if size_of(chunk) <= _MAX_CHUNK_BYTES:
        return [chunk]
    middle = len(chunk) // 2
    return [*_bounded(chunk.slice(0, middle)), *_bounded(chunk.slice(middle))]


def _has_wide_offsets(kind: pa.DataType) -> bool:
    if pt.is_nested(kind):
        return True
    return bool(
        pt.is_large_string(kind) or pt.is_large_binary(kind)
        or pt.is_string_view(kind) or pt.is_binary_view(kind)
        or pt.is_dictionary(kind) or pt.is_run_end_encoded(kind)
    )  # fmt: skip


def _decoded(array: pa.Array) -> pa.Array:
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pt.is_dictionary(array.type):
            array = _takeable(_decoded(array.dictionary)).take(array.indices)
        elif pt.is_run_end_encoded(array.type):
            # Arrow's own function knows only values of flat types, and no views.
            ends = array.run_ends.to_numpy()
            runs = np.searchsorted(ends, np.arange(len(array)) + array.offset, side="right")
            array = _takeable(_decoded(array.values)).take(pa.array(runs))
        else:
            return array


def _takeable(values: pa.Array) -> pa.Array:
    """The values in a layout that supports `take`."""
    if pt.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pt.is_binary_view(values.type) else values


def _plain_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    if array.type == pa.dictionary(pa.int32(), pa.string()) and not array.dictionary.null_count:
        return array
    if array.dictionary.null_count:  # Arrow's Parquet writer knows nulls among the codes only
        return _decoded(array).cast(pa.string()).dictionary_encode()
    values = _decoded(array.dictionary).cast(pa.string())
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), values)


def _leaf(array: pa.Array, target: pa.DataType, path: str, float_digits: bool = False) -> pa.Array:
    if array.type == target:
        return array
    # Whole numbers round to the nearest float, as Avro's promotion does; everything else must be exact.
    rounds = pt.is_floating(target) and pt.is_integer(array.type)
    try:
        if pt.is_fixed_size_binary(array.type) and pt.is_string(target):
            array = array.cast(pa.binary())
        elif float_digits and pt.is_float32(array.type) and pt.is_float64(target):
            array = _digits(array)
        elif _goes_by_text(array.type, target):
            array = to_text(array)
        elif pt.is_decimal128(target) and (pt.is_integer(array.type) or pt.is_decimal(array.type)):
            return rescaled(array, target)
        return array.cast(target, safe=not rounds)
    except pa.ArrowException as e:
        raise refusal(path, array.type, target, str(e)) from e


def _goes_by_text(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the cast goes through Java's text of the values."""
    if pt.is_floating(source):
        return not pt.is_floating(target)
    return bool(pt.is_date(source) and pt.is_string(target))


# java.sql.Date.valueOf, which Apache Hudi's readers of logs and its vectorised one of base files ask.
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")


def _dates(texts: pa.Array, path: str) -> pa.Array:
    """Dates of texts; 2024-2-9 is read as 2024-02-09."""
    encoded = texts.dictionary_encode()
    days: list[date | None] = []
    for text in encoded.dictionary.to_pylist():
        found = None if text is None else _DATE.fullmatch(text)
        try:
            days.append(None if text is None else date(*map(int, found.groups() if found else ())))
        except (TypeError, ValueError):
            shown = f"{text[:40]!r} is not a date such as 2024-02-09"
            raise refusal(path, texts.type, pa.date32(), shown) from None
    return pc.take(pa.array(days, pa.date32()), encoded.indices)


def _decimals(array: pa.Array, target: pa.Decimal128Type, path: str, *, rounded: bool) -> pa.Array:
    try:
        return decimals_of(to_text(array) if pt.is_floating(array.type) else array, target, rounded=rounded)
    except pa.ArrowInvalid as e:
        raise refusal(path, array.type, target, str(e)) from e


def _digits(floats: pa.Array) -> pa.Array:
    """Doubles of floats, by way of their decimal text."""
    out = floats.cast(pa.string()).cast(pa.float64())
    # Java's text is the shortest one, as Arrow's, but for large numbers and the smallest.
    size = pc.abs(floats)
    odd = pc.or_(pc.greater_equal(size, 1e7), pc.and_(pc.less(size, 1e-35), pc.greater(size, 0.0)))
    odd = pc.fill_null(pc.and_(odd, pc.is_finite(floats)), False)
    if not pc.any(odd).as_py():
        return out
    return pc.replace_with_mask(out, odd, to_text(floats.filter(odd)).cast(pa.float64()))


def _nested(array: pa.Array, target: pa.DataType, path: str, how: _How) -> pa.Array:
    if array.type == target:
        return array
    if pt.is_struct(target):
        return _struct(array, target, path, how)
    if pt.is_map(target):
        return _map(array, target, path, how)
    return _list(array, target, path, how)


def _inner(array: pa.Array, field: pa.Field, path: str, how: _How) -> pa.Array:
    out = _convert(array, field.type, path, how)
    if not field.nullable and out.null_count:
        if how.exact is not None:
            raise _no_value(out.is_null(), array.type, field.type, path)
        raise SchemaError(f"column {path} must not be null, but has {out.null_count} nulls", column=path)
    return out


def _no_value(missing: pa.Array, source: pa.DataType, target: pa.DataType, path: str) -> MisfitError:
    return MisfitError(path, pc.index(missing, True).as_py(), None, source, target, "it must not be null")


def _of_rows(e: MisfitError, offsets: pa.Array) -> MisfitError:
    """The misfit of a list or map element, as one of its row; `offsets` begin at 0."""
    e.index = int(np.searchsorted(offsets.to_numpy(), e.index, side="right")) - 1
    return e


def _struct(array: pa.StructArray, target: pa.StructType, path: str, how: _How) -> pa.Array:
    gone = array.is_null() if array.null_count else None
    children = []
    for field in target:
        index = array.type.get_field_index(field.name)
        inner = f"{path}.{field.name}"
        if index >= 0:
            child = array.field(index)
            if gone is not None and child.type != field.type:
                child = pc.struct_field(array, [index])  # what lies below a null is no value, on any level
            child = _convert(child, field.type, inner, how)
        else:
            child = _absent(field, len(array))
        if not field.nullable and child.null_count:
            missing = child.is_null() if gone is None else pc.and_(child.is_null(), pc.invert(gone))
            if pc.any(missing).as_py():
                if how.exact is not None:
                    raise _no_value(missing, array.type, field.type, inner)
                raise SchemaError(
                    f"column {inner} must not be null, but has nulls in some rows", column=inner
                )
            if not pt.is_nested(child.type):
                child = without_nulls(child)
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=gone)


def _absent(field: pa.Field, rows: int) -> pa.Array:
    """A field that the values lack: its default where its Avro schema gave it one, else null."""
    text = (field.metadata or {}).get(DEFAULT)
    if text is None:
        return nulls_of(rows, field.type)
    try:
        return pa.repeat(pa.scalar(_default(json.loads(text), field.type), field.type), rows)
    except (pa.ArrowException, TypeError, ValueError):  # no value of the type, as Avro's own readers find
        return nulls_of(rows, field.type)


def _default(value: Any, kind: pa.DataType) -> Any:
    """A default's JSON as a value of a type; bytes are characters there, and a union's is of its first type."""
    if value is None:
        return None
    if pt.is_struct(kind) and is_union([f.name for f in kind]):
        return {kind.field(0).name: _default(value, kind.field(0).type)}
    if pt.is_map(kind):
        if not isinstance(value, dict):  # of a list with a null in it Arrow makes the end of the process
            raise TypeError("no map")
        return [(k, _default(v, kind.item_type)) for k, v in value.items()]
    if isinstance(value, dict) and pt.is_struct(kind):
        own = {f.name: json.loads(f.metadata[DEFAULT]) for f in kind if DEFAULT in (f.metadata or {})}
        given = {**own, **value}  # Avro's, where the record's default leaves a field out
        return {f.name: _default(given[f.name], f.type) for f in kind if f.name in given}
    if isinstance(value, list) and pt.is_list(kind):
        return [_default(v, kind.value_type) for v in value]
    if isinstance(value, str) and (pt.is_binary(kind) or pt.is_fixed_size_binary(kind)):
        return value.encode("latin-1")
    if isinstance(value, str) and pt.is_decimal(kind):
        return exact_decimal(int.from_bytes(value.encode("latin-1"), "big", signed=True), kind.scale)
    return value


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """32-bit offsets from 0, and the span of the child that they refer to."""
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    if start or array.offset or offsets.offset:
        offsets = pc.subtract(offsets, start)
    return offsets.cast(pa.int32()), start, end


def _list(array: pa.Array, target: pa.ListType, path: str, how: _How) -> pa.Array:
    if not len(array):
        return pa.array([], target)
    mask = array.is_null() if array.null_count else None
    if (pt.is_list(array.type) or pt.is_large_list(array.type)) and not _hides_values(array):
        offsets, start, end = _offsets(array)
        values = array.values.slice(start, end - start)
    else:  # laid out anew; Arrow 26 casts views with nulls to invalid lists
        offsets, values = _laid_out(array), array.flatten()
    try:
        values = _inner(values, target.value_field, f"{path}.{target.value_field.name}", how)
    except MisfitError as e:
        raise _of_rows(e, offsets) from None
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=mask)


def _laid_out(array: pa.Array) -> pa.Array:
    """List offsets into the result of `flatten`, where null lists have no values."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _hides_values(array: pa.ListArray | pa.MapArray) -> bool:
    """Whether null lists or maps have values below them."""
    if not array.null_count:
        return False
    lengths = np.diff(array.offsets.to_numpy())
    return bool(lengths[array.is_null().to_numpy(zero_copy_only=False)].any())


def _map(array: pa.MapArray, target: pa.MapType, path: str, how: _How) -> pa.Array:
    if not len(array):
        return pa.array([], target)
    if _hides_values(array):
        # Laid out anew, by way of a list: Arrow takes no maps that have views below them
        entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
        lists = pa.Array.from_buffers(
            pa.list_(entries.type), len(array), array.buffers()[:2],
            null_count=array.null_count, offset=array.offset, children=[entries],
        )  # fmt: skip
        entries, offsets = lists.flatten(), _laid_out(lists)
        keys, items = entries.field(0), entries.field(1)
    else:
        offsets, start, end = _offsets(array)
        keys, items = array.keys.slice(start, end - start), array.items.slice(start, end - start)
    try:
        keys = _inner(keys, target.key_field, f"{path}.key", how)
        items = _inner(items, target.item_field, f"{path}.value", how)
    except MisfitError as e:
        raise _of_rows(e, offsets) from None
    mask = array.is_null() if array.null_count else None
    if mask is None:
        return pa.MapArray.from_arrays(offsets, keys, items, type=target)
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    validity = pc.invert(mask).buffers()[1]
    return pa.Array.from_buffers(
        target, len(array), [validity, offsets.buffers()[1]], array.null_count, children=[entries]
    )
