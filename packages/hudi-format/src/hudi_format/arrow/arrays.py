"""Conversion of plain values to Arrow columns and of columns to numpy, without pandas.

`pa.array`, `pa.scalar`, `to_numpy` and kernels that are given Python values import pandas, where it is installed, at
their first call: that takes a new process longer than opening a table and planning a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.sizes import size_of

# Offsets of Arrow's plain texts have 32 bits.
_MOST_BYTES = 2**31 - 1
# Fewer are filtered on one thread: handing them to others takes longer.
_ROWS_FOR_THREADS = 1 << 17


def texts(values: Sequence[str | None]) -> pa.Array:
    """A column of texts; None is null.

    Raises:
        UnicodeEncodeError: a text that UTF-8 does not have, such as a file name of other bytes.
    """
    nulls = None in values
    given = [v or "" for v in values] if nulls else values
    whole = "".join(given)  # type: ignore[arg-type]
    data = whole.encode()
    if len(data) > _MOST_BYTES:
        return pa.array(values, pa.string())
    parts: Iterable[str | bytes | None] = given
    if len(data) != len(whole):  # lengths in bytes are not those in characters
        parts = (v.encode() for v in given)  # type: ignore[union-attr]
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, parts), np.int32, len(values)), out=ends[1:])  # type: ignore[arg-type]
    valid = None
    if nulls:
        valid = flags(np.fromiter((v is not None for v in values), np.bool_, len(values))).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(values), [valid, pa.py_buffer(ends), pa.py_buffer(data)])


def text(value: str) -> pa.StringScalar:
    """One text."""
    return texts([value])[0]


def integers(values: Sequence[int] | np.ndarray) -> pa.Array:
    """A column of int64."""
    numbers = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def doubles(values: Sequence[float] | np.ndarray) -> pa.Array:
    """A column of float64."""
    numbers = np.ascontiguousarray(values, np.float64)
    return pa.Array.from_buffers(pa.float64(), len(numbers), [None, pa.py_buffer(numbers)])


def flags(values: Sequence[bool] | np.ndarray) -> pa.Array:
    """A column of booleans."""
    given = np.asarray(values, np.bool_)
    bits = np.packbits(given, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(given), [None, pa.py_buffer(bits)])


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of a type; None is null, a time a number of the type's units, a map its pairs.

    Other types than texts, booleans, signed integers, doubles, times, and lists and maps of those take pyarrow's way.

    Raises:
        OverflowError, pyarrow.ArrowInvalid: a number that the type does not hold.
    """
    if kind == pa.string():
        return texts(values)
    if kind == pa.bool_():
        valid, data = _validity(values), flags([bool(v) for v in values]).buffers()[1]
        return pa.Array.from_buffers(kind, len(values), [valid, data])
    if pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or kind == pa.float64():
        stored = pa.float64() if kind == pa.float64() else pa.int64()
        data = pa.py_buffer(np.array([0 if v is None else v for v in values], stored.to_pandas_dtype()))
        made = pa.Array.from_buffers(stored, len(values), [_validity(values), data])
        return made if kind == stored else made.cast(kind)  # numbers that it does not hold are refused
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        ends = np.zeros(len(values) + 1, np.int32)
        np.cumsum([len(v or ()) for v in values], out=ends[1:])
        flat = [item for v in values for item in v or ()]
        if pa.types.is_list(kind):
            child = column_of(flat, kind.value_type)
        else:
            parts = [
                column_of([k for k, _ in flat], kind.key_type),
                column_of([v for _, v in flat], kind.item_type),
            ]
            child = pa.StructArray.from_arrays(parts, fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(
            kind, len(values), [_validity(values), pa.py_buffer(ends)], children=[child]
        )
    return pa.array(values, kind)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array: large_string or large_binary beyond 2 GiB of texts or bytes."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    kind = column.type
    if (pa.types.is_string(kind) or pa.types.is_binary(kind)) and size_of(column) > _MOST_BYTES:
        column = column.cast(pa.large_string() if pa.types.is_string(kind) else pa.large_binary())
    return column.combine_chunks()


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows, each the values of its columns by name; what a row does not have is null."""
    return pa.Table.from_arrays(
        [column_of([r.get(f.name) for r in rows], f.type) for f in schema], schema=schema
    )


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    """Bits of the values that are not null; None where none is."""
    return flags([v is not None for v in values]).buffers()[1] if None in values else None


def numbers_of(column: pa.Array) -> np.ndarray:
    """The values of a column of integers or floats without nulls, not copied."""
    if column.null_count:
        raise ValueError("a column with nulls")
    kind = np.dtype(str(column.type).replace("double", "float64").replace("halffloat", "float16"))
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(0, kind)
    return np.frombuffer(buffer, kind, len(column), column.offset * kind.itemsize)


def flags_of(column: pa.Array) -> np.ndarray:
    """The values of a column of booleans without nulls."""
    if column.null_count:
        raise ValueError("a column with nulls")
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(0, np.bool_)
    end = column.offset + len(column)
    bits = np.frombuffer(buffer, np.uint8, (end + 7) // 8)
    return np.unpackbits(bits, count=end, bitorder="little")[column.offset :].view(np.bool_)


# Rows of a table that pass an expression, without `Table.filter`.
#
# `pyarrow.acero`, which that goes through, imports `pyarrow.dataset` and with it pandas, where that is installed; the
# module below it needs neither.  Threads are started for what is worth it.


def filtered(table: pa.Table, expression: pc.Expression) -> pa.Table:
    """The rows for which the expression is true.

    Raises:
        pyarrow.ArrowInvalid, ArrowNotImplementedError, ArrowTypeError: it does not fit the table's columns.
    """
    from pyarrow._acero import Declaration, FilterNodeOptions, TableSourceNodeOptions

    steps = [
        Declaration("table_source", TableSourceNodeOptions(table)),
        Declaration("filter", FilterNodeOptions(expression)),
    ]
    return Declaration.from_sequence(steps).to_table(use_threads=table.num_rows >= _ROWS_FOR_THREADS)


def repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """A column of one value."""
    # Of no rows Arrow makes neither a list nor a map of a value.
    return pa.repeat(value, rows) if rows and value.is_valid else pa.nulls(rows, value.type)


def no_columns(rows: int) -> pa.Table:
    """A table without columns that has a number of rows."""
    return pa.table({"": pa.nulls(rows)}).select([])


def put_together(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenated tables of one schema, with row counts kept where there are no columns."""
    if not len(schema):
        return no_columns(sum(p.num_rows for p in parts))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; as text what Python has no values for, e.g. the year 10000."""
    columns = [python_values(column) for column in rows.columns]
    names = rows.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values of a column for Python; see `python_value`."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [python_value(scalar) for scalar in column]


def python_value(scalar: pa.Scalar) -> Any:
    """A value for Python, where dates and times that it cannot hold are Arrow's text."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return pa.array([scalar], scalar.type).cast(with_leaves(scalar.type, _text_of_time))[0].as_py()


def _text_of_time(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) else kind


def with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with others in the place of those that stand in structs, lists and maps."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(with_leaves(f.type, leaf)) for f in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(with_leaves(kind.key_type, leaf), with_leaves(kind.item_type, leaf))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(with_leaves(kind.value_type, leaf)))
    return leaf(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's layouts of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def contains(kind: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type, or one inside of it, passes a test.

    Inside are those of fields, elements, keys and values, and what a dictionary or an extension type stands for.
    """
    if test(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return contains(kind.storage_type, test)
    if pa.types.is_dictionary(kind):
        return contains(kind.value_type, test)
    return any(contains(kind.field(n).type, test) for n in range(kind.num_fields))


def without_hidden_nulls(rows: pa.Table) -> pa.Table:
    """Rows whose structs that are null hold no nulls where the schema allows none.

    Nobody sees those, and every Arrow data frame has them; Arrow's writer of Parquet refuses them. Nulls that can be
    seen stay for it to refuse.
    """
    for index, field in enumerate(rows.schema):
        if requires(field.type):
            column = rows.column(index)
            made = pa.chunked_array([_without_hidden(c) for c in column.chunks], column.type)
            rows = rows.set_column(index, field, made)
    return rows


def requires(kind: pa.DataType) -> bool:
    """Whether values of a type hold some that must not be null, keys of maps apart."""
    if pa.types.is_dictionary(kind) or not pa.types.is_nested(kind):
        return False
    inner = [kind.item_field] if pa.types.is_map(kind) else [kind.field(n) for n in range(kind.num_fields)]
    return any(not f.nullable or requires(f.type) for f in inner)


def _without_hidden(array: pa.Array) -> pa.Array:
    kind = array.type
    if not requires(kind):
        return array
    if pa.types.is_struct(kind):
        seen, made = array.is_valid(), []
        for index, field in enumerate(kind.fields):
            child = array.field(index)
            if child.null_count and not field.nullable and not pc.any(pc.and_(child.is_null(), seen)).as_py():
                child = _all_valid(child)
            made.append(_without_hidden(child))
        return pa.StructArray.from_arrays(made, fields=list(kind.fields), mask=pc.invert(seen))
    validity, offsets = array.buffers()[:2]
    if pa.types.is_map(kind):
        pairs = [array.keys, _without_hidden(array.items)]
        values = pa.StructArray.from_arrays(pairs, fields=[kind.key_field, kind.item_field])
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = _without_hidden(array.values)
    else:
        return array
    return pa.Array.from_buffers(
        kind, len(array), [validity, offsets], array.null_count, array.offset, children=[values]
    )


def _all_valid(array: pa.Array) -> pa.Array:
    """The array with some value, for its type, in the place of each null."""
    kind = array.type
    if pa.types.is_struct(kind):
        inner = [array.field(n) for n in range(kind.num_fields)]
        # What is below was hidden with it.
        made = [
            c if f.nullable or not c.null_count else _all_valid(c) for c, f in zip(inner, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(made, fields=list(kind.fields))
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            _all_valid(array.indices), array.dictionary, ordered=kind.ordered
        )
    if pa.types.is_map(kind):
        pairs = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[kind.key_field, kind.item_field]
        )
        children = [pairs]
    else:
        children = [array.values] if pa.types.is_list(kind) or pa.types.is_large_list(kind) else []
    own = array.buffers()[1:2] if children else array.buffers()[1:]
    return pa.Array.from_buffers(kind, len(array), [None, *own], 0, array.offset, children=children)
