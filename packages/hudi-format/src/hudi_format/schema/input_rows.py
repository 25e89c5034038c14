"""Input rows in any accepted form, as Arrow data."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, time
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Any, TypeGuard
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.arrays import contains
from hudi_format.arrow.input import (
    checked_reader,
    checked_table,
    first_line,
    no_rows,
    other_columns,
    reader_of,
    refuse_closed,
    source_failed,
)
from hudi_format.errors import HudiError, MissingColumnError, SchemaError
from hudi_format.schema.casts import is_any_list
from hudi_format.schema.python_values import alike, unlike

_REFUSALS = (pa.ArrowException, OSError, TypeError, ValueError, OverflowError)
# NumPy's units of time that Arrow has not, and those that hold the same moments.
_UNITS = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}


def types_are_guessed(data: object) -> bool:
    """Whether the rows' types were inferred from Python values, which have one float type."""
    if _comes_from(data, "pandas"):
        return True
    if hasattr(data, "__arrow_c_stream__") or _are_batches(data):
        return False
    return isinstance(data, (list, tuple, dict, Iterator))


def _comes_from(data: object, library: str) -> bool:
    return type(data).__module__.partition(".")[0] == library


@contextmanager
def telling_the_index(data: object) -> Iterator[None]:
    """A block whose error about a missing column says if it is the index of a pandas frame."""
    try:
        yield
    except MissingColumnError as e:
        levels = getattr(getattr(data, "index", None), "names", ())
        if _comes_from(data, "pandas") and e.details.get("column") in list(levels):
            e.remedy = "it is the index of the frame, which is no column of rows: give frame.reset_index()."
        raise


def _are_batches(data: object) -> TypeGuard[list[pa.RecordBatch]]:
    return isinstance(data, list) and bool(data) and all(isinstance(b, pa.RecordBatch) for b in data)


def as_reader(
    data: object, known: Callable[[], pa.Schema | None] | None = None
) -> pa.RecordBatchReader | pa.Table:
    """Checked Arrow data of the user's input.

    Args:
        known: the table's schema, which is asked for only where values do not say what they are: dicts may be structs
            or maps.

    Raises:
        SchemaError: no tabular data, or invalid; of a stream also when it is read.
    """
    given = _as_arrow(data, known)
    return checked_table(given) if isinstance(given, pa.Table) else checked_reader(given)


def _as_arrow(data: object, known: Callable[[], pa.Schema | None] | None) -> pa.RecordBatchReader | pa.Table:
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, type) or (_comes_from(data, "pandas") and not hasattr(data, "columns")):
        raise _unreadable(data)
    try:
        # Before its stream, which would have the index as a column.
        if _comes_from(data, "pandas"):
            return _frame(data, known)
        if _comes_from(data, "polars"):
            if hasattr(data, "collect"):  # a LazyFrame
                data = _given("the LazyFrame", data.collect)
            _refuse_of_polars(data)
        if hasattr(data, "__arrow_c_stream__"):
            return _stream_of(data)
        if hasattr(data, "scanner"):  # a dataset of pyarrow
            return reader_of(data.scanner())
        if isinstance(data, Iterator):
            refuse_closed(data, "rows")
            data = _given("rows", partial(list, data))
        if isinstance(data, tuple):
            data = list(data)
        if isinstance(data, list) and not data and known is not None and (schema := known()) is not None:
            return no_rows(schema)
        if _are_batches(data):
            return _of_batches(data)
        if isinstance(data, list) and data and all(isinstance(r, dict) for r in data):
            # Arrow's own way knows the columns of the first row only.
            names = dict.fromkeys(name for row in data for name in row)
            data = {name: [row.get(name) for row in data] for name in names}
        if isinstance(data, dict):
            _refuse_unnamed(data)
            return pa.table({name: _column(name, values, known) for name, values in data.items()})
    except HudiError:
        raise
    except _REFUSALS as e:
        raise SchemaError(
            f"the rows do not form a table: {first_line(e)}",
            remedy="give each column values of one type, and all columns the same length; one row is a list of one "
            "dict.",
        ) from e
    raise _unreadable(data)


def _refuse_unnamed(columns: dict[object, object]) -> None:
    """Raise SchemaError for a column whose name is no text."""
    odd = [name for name in columns if not isinstance(name, str) or _is_no_text(name)]
    if odd:
        raise SchemaError(
            f"a column has the name {odd[0]!r}, which is no text",
            remedy="name each column by a text, as in {'id': ...}.",
        )


def _given(what: str, ask: Callable[[], Any]) -> Any:
    """What code of the caller's gives, whose own failure is told as that of a source."""
    try:
        return ask()
    except (MemoryError, HudiError):
        raise
    except Exception as e:
        raise source_failed(what, e) from e


def _stream_of(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (MemoryError, HudiError):
        raise
    except Exception as e:
        raise SchemaError(
            f"{type(data).__name__} gives no Arrow stream of a table: {first_line(e)}",
            remedy="give a table of it: a DataFrame (to_frame() of a Series), or pyarrow.table({name: values}).",
        ) from e


def _of_batches(batches: list[pa.RecordBatch]) -> pa.Table:
    first = batches[0].schema
    for number, batch in enumerate(batches):
        if batch.schema.names != first.names or batch.schema.types != first.types:
            raise other_columns(number, batch.schema, first)
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(b.columns, schema=first) for b in batches])


def _refuse_of_polars(frame: object) -> None:
    """Raise SchemaError for integers of 128 bits, which Arrow has not, and for Python objects, of which a stream of
    Polars has the addresses in memory."""
    for name, kind in dict(getattr(frame, "schema", {})).items():
        if str(kind) in ("Int128", "UInt128"):
            raise SchemaError(
                f"column {name} has Polars' type {kind}, which Arrow does not have",
                remedy=f"cast it, e.g. pl.col({name!r}).cast(pl.Int64), or pl.Decimal(38, 0) for more than 64 bits.",
                column=name,
            )
        if str(kind) == "Object":
            raise SchemaError(
                f"column {name} holds Python objects (Polars' type Object), which no table can store",
                remedy="give the column values of one type, e.g. pl.Series(name, values, dtype=pl.String).",
            )


def _unreadable(data: object) -> SchemaError:
    return SchemaError(
        "an empty list has no columns"
        if isinstance(data, list) and not data
        else f"cannot read rows from {type(data).__name__}",
        remedy="open the files, e.g. with pyarrow.dataset.dataset(path) or polars.scan_csv(path), or use `hudi import`."
        if isinstance(data, (str, PurePath))
        else "give a pyarrow Table, RecordBatchReader or Dataset, a pandas or polars DataFrame, any "
        "object with __arrow_c_stream__, or a list of dicts.",
    )


def _frame(frame: Any, known: Callable[[], pa.Schema | None] | None) -> pa.Table:
    """A pandas DataFrame's columns without its index.

    Raises:
        SchemaError: a column in a form that Arrow does not have.
    """
    for name, kind in frame.dtypes.items():
        is_sparse = str(kind).startswith("Sparse[")
        if is_sparse or getattr(kind, "kind", "") == "c":
            what = "is sparse" if is_sparse else "holds complex numbers"
            way = (
                f"give frame[{name!r}].sparse.to_dense()."
                if is_sparse
                else "give real and imaginary parts as columns."
            )
            raise SchemaError(
                f"column {name} {what}, which Arrow does not have", remedy=way, column=str(name)
            )
    times = Counter(frame.columns)
    objects = [
        n
        for n, kind in frame.dtypes.items()
        if str(kind) == "object" and isinstance(n, str) and times[n] == 1
    ]
    made = {name: _column(name, _without_nan(frame[name].tolist()), known) for name in objects}
    if len(objects) == len(frame.columns):
        return pa.table(made)
    table = pa.Table.from_pandas(frame.drop(columns=objects) if objects else frame, preserve_index=False)
    for name, column in made.items():
        table = table.append_column(name, column)
    return table.select([str(n) for n in frame.columns]) if objects else table


def _without_nan(values: list[Any]) -> list[Any]:
    """The values of a pandas column with None in place of NaN, which is null there, also within arrays."""
    kinds = set(map(type, values))
    if np.ndarray in kinds:
        values = [_array_without_nan(v) if isinstance(v, np.ndarray) else v for v in values]
    if not any(issubclass(t, (float, np.floating)) for t in kinds):
        return values
    return [None if isinstance(v, (float, np.floating)) and v != v else v for v in values]


def _array_without_nan(values: np.ndarray) -> Any:
    """A list's values as pandas has them: numbers among which there are nulls are floats."""
    if values.dtype.kind == "O":
        return _without_nan(values.tolist())
    return _without_nan(values.tolist()) if values.dtype.kind == "f" and np.isnan(values).any() else values


def _column(name: str, values: Any, known: Callable[[], pa.Schema | None] | None) -> Any:
    # Of texts and dicts Arrow takes the letters, numbers or names, one by one, for the values of rows.
    if isinstance(values, (str, bytes, bytearray, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(
            f"column {name} is one {type(values).__name__}, {values!r:.80}, and no list of values"
        )
    if not isinstance(values, (list, tuple)):
        refuse_closed(values, f"column {name}")
        if str(getattr(values, "dtype", "")) != "object":
            return _in_units_of_arrow(values) if isinstance(values, np.ndarray) else values
        values = values.tolist() if isinstance(values, np.ndarray) else _without_nan(list(values))
    values, pairs = _alike(name, values, known)
    # Of the keys and values of maps, as if they were elements of lists, Arrow's search for a type may be the end of it.
    guess, plain = None if pairs else _guess(values), None
    if guess is None:
        moments = _moments(values)
        if moments is not None:
            return moments
        if any(map(_has_uuids, values)):
            plain = _without_uuids(values, _known_type(name, known))
            guess = None if pairs else _guess(plain)
        if guess is None and not any(isinstance(v, (list, tuple, Mapping)) for v in values):
            raise _mixed(name, values if plain is None else plain, None)
    values, kind = values if plain is None else plain, None
    if guess is not None:
        _refuse_lost_times(name, values, guess.type)
    # A list of nothing may be a map of nothing, as a dict may be a struct or a map.
    if guess is None or contains(guess.type, _may_be_map):
        stored = _known_type(name, known)
        # A dict may be a map: what Arrow takes for a struct has the table's maps.
        maps = stored is not None and contains(stored, pt.is_map)
        if stored is not None and maps and (guess is None or _with_maps(guess.type, stored) is not None):
            kind = _own_type(values, stored)
            if kind is None:
                raise _untyped(name, values, stored)
            _refuse_lost_times(name, values, kind)
    if kind is None and guess is not None:
        return guess
    if kind is not None:
        _refuse_lacking_pairs(name, values, kind)
    try:
        return pa.array(values, kind)
    except _REFUSALS:
        raise _mixed(name, values, kind) from None


def _refuse_lacking_pairs(name: str, values: Sequence[Any], kind: pa.DataType) -> None:
    """Raise SchemaError for a null among the pairs of a map, which ends the process where Arrow sees it."""
    if pt.is_map(kind) and not pt.is_nested(kind.item_type) and set(map(type, values)) <= {dict, type(None)}:
        return  # nearly always, and without a step of Python's for each
    for row, value in enumerate(values):
        if _lacks_pair(value, kind):
            raise unlike(name, value, row, _why_not(value, row, kind))


def _lacks_pair(value: Any, kind: pa.DataType) -> bool:
    if not pt.is_nested(kind) or not isinstance(value, Collection) or isinstance(value, (str, bytes)):
        return False
    if pt.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        if any(p is None for p in pairs):
            return True
        item = kind.item_type
        return pt.is_nested(item) and any(_lacks_pair(p[1], item) for p in pairs if _is_pair(p))
    if pt.is_struct(kind):
        if isinstance(value, Mapping):
            members: Iterable[Any] = value.items()
        else:  # Arrow takes tuples by place, lists of pairs by name
            members = zip(kind.names, value, strict=False) if isinstance(value, tuple) else value
        return any(_lacks_pair(p[1], _member(kind, p[0]) or pa.null()) for p in members if _is_pair(p))
    return pt.is_nested(kind.value_type) and any(_lacks_pair(v, kind.value_type) for v in value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _alike(
    name: str, values: Sequence[Any], known: Callable[[], pa.Schema | None] | None
) -> tuple[Sequence[Any], bool]:
    """The values of a column as values of one kind, and whether they are that only as pairs of a map.

    UUIDs beside others become those.
    """
    try:
        return alike(name, values), False
    except SchemaError:
        stored = _known_type(name, known)
        if any(map(_has_uuids, values)):
            values = _without_uuids(values, stored)
            with suppress(SchemaError):
                return alike(name, values), False
        pairs = stored is not None and contains(stored, pt.is_map)
        return alike(name, values, pairs=pairs), pairs


def _guess(values: Sequence[Any]) -> pa.Array | None:
    """The values in the type that Arrow finds for them; None where it finds none."""
    try:
        return pa.array(values)
    except _REFUSALS:
        return None


def _known_type(name: str, known: Callable[[], pa.Schema | None] | None) -> pa.DataType | None:
    schema = known() if known is not None else None
    return schema.field(name).type if schema is not None and schema.get_field_index(name) >= 0 else None


def _has_uuids(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_uuids, value.values()))
    return isinstance(value, UUID) or (isinstance(value, (list, tuple)) and any(map(_has_uuids, value)))


def _without_uuids(value: Any, kind: pa.DataType | None) -> Any:
    """A column's values, or one of them, with UUIDs as bytes where the table has bytes, else as text.

    Arrow knows UUIDs as the values of a column of nothing else, and before its release 23 not at all.

    Args:
        kind: the column's type in the table; None where that is not known.
    """
    if isinstance(value, UUID):
        return value.bytes if kind is not None and _holds_bytes(kind) else str(value)
    if isinstance(value, Mapping):
        return {n: _without_uuids(v, _member(kind, n)) for n, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_uuids(v, kind) for v in value]
    return value


def _holds_bytes(kind: pa.DataType) -> bool:
    if is_any_list(kind):
        return _holds_bytes(kind.value_type)
    return bool(pt.is_binary(kind) or pt.is_fixed_size_binary(kind))


def _member(kind: pa.DataType | None, name: Any) -> pa.DataType | None:
    """The type of a dict's value by its key, in a column that may be a list of dicts."""
    while kind is not None and is_any_list(kind):
        kind = kind.value_type
    if kind is not None and pt.is_map(kind):
        return kind.item_type
    if kind is None or not pt.is_struct(kind) or not isinstance(name, str) or kind.get_field_index(name) < 0:
        return None
    return kind.field(name).type


def _own_type(values: Sequence[Any], table: pa.DataType) -> pa.DataType | None:
    """The values' own type, with the table's maps; None where they have none.

    In the table's Arrow would cut what does not fit, without a word.
    """
    given = [v for v in values if v is not None]
    if pt.is_map(table):
        item = _own_type(list(chain.from_iterable(map(_items, given))), table.item_type)
        return None if item is None else pa.map_(table.key_type, item)
    if contains(table, pt.is_map):
        if pt.is_struct(table) and all(isinstance(v, Mapping) for v in given):
            names = dict.fromkeys(key for v in given for key in v)
            found = {
                n: _own_type([v.get(n) for v in given], _member(table, n) or pa.null())
                for n in names
                if isinstance(n, str)
            }
            return None if None in found.values() else pa.struct(list(found.items()))
        if is_any_list(table) and all(isinstance(v, Collection) for v in given):
            element = _own_type([e for v in given for e in v], table.value_type)
            return None if element is None else pa.list_(element)
        return None
    try:
        plain = alike("", given)
    except SchemaError:
        return None
    guess = _guess(plain)
    if guess is None:
        guess = _moments(plain)
    if guess is None:
        return None
    return table if pt.is_null(guess.type) else guess.type


def _untyped(name: str, values: Sequence[Any], table: pa.DataType) -> SchemaError:
    """Error for the first value that has no type, or not one with those before it."""
    row = bisect_left(range(1, len(values)), True, key=lambda n: _own_type(values[:n], table) is None)
    return unlike(name, values[row], row, _why_not(values[row], row, table))


def _items(value: Any) -> Iterable[Any]:
    """The values of a map, which is given as a dict or as pairs."""
    if isinstance(value, Mapping):
        return value.values()
    return [p[1] for p in value if _is_pair(p)] if isinstance(value, Collection) else ()


def _moments(values: Sequence[Any]) -> pa.Array | None:
    """Dates or timestamps of NumPy scalars, whose units Arrow takes of arrays only; None where others are there."""
    if not all(v is None or isinstance(v, np.datetime64) for v in values):
        return None
    return pa.array(_in_units_of_arrow(np.array(values, "datetime64")))


def _in_units_of_arrow(values: np.ndarray) -> np.ndarray:
    """NumPy's dates of years, months or weeks in days, and its hours and minutes in seconds."""
    if values.dtype.kind != "M":
        return values
    unit = np.datetime_data(values.dtype)[0]
    return values.astype(f"datetime64[{_UNITS[unit]}]") if unit in _UNITS else values


def _refuse_lost_times(name: str, values: Sequence[Any], kind: pa.DataType) -> None:
    """Raise SchemaError for a time of day among dates, which Arrow leaves out, and for moments with and without a zone,
    of which it takes the latter for times of UTC or the former's zone away, and for nanoseconds, which it drops."""
    if not contains(kind, lambda k: pt.is_date(k) or pt.is_timestamp(k)):
        return
    for row, value in enumerate(values):
        lost = _lost(value, kind)
        if lost:
            raise unlike(name, value, row, lost)


def _lost(value: Any, kind: pa.DataType) -> str | None:
    """What a column of a type has not of a value, which may be nested."""
    if isinstance(value, datetime):
        if value != value:  # NaT
            return None
        if pt.is_date(kind) and (value.time() != time() or getattr(value, "nanosecond", 0)):
            return "has a time of day, and values before it are dates"
        if pt.is_date(kind) and value.tzinfo is not None:
            return "has a time zone, and others of the column are dates"
        if pt.is_timestamp(kind) and (value.tzinfo is None) != (kind.tz is None):
            if kind.tz is None:
                return "has a time zone, and values before it have none"
            return "has no time zone, and values before it have one"
        if pt.is_timestamp(kind) and kind.unit != "ns" and getattr(value, "nanosecond", 0):
            return "has nanoseconds, which a table does not store: round it, e.g. by floor('us')"
    elif pt.is_struct(kind):
        if isinstance(value, Mapping):
            return next((lost for f in kind if (lost := _lost(value.get(f.name), f.type))), None)
    elif pt.is_map(kind):
        return next((lost for v in _items(value) if (lost := _lost(v, kind.item_type))), None)
    elif pt.is_list(kind) and isinstance(value, (list, tuple)):
        return next((lost for v in value if (lost := _lost(v, kind.value_type))), None)
    return None


def _mixed(name: str, values: Sequence[Any], kind: pa.DataType | None) -> SchemaError:
    """Error for the first value that does not fit the previous ones or the table's type."""

    def refused(count: int) -> bool:
        try:
            pa.array(values[:count], kind)
        except _REFUSALS:
            return True
        return False

    row = bisect_left(range(1, len(values)), True, key=refused)
    return unlike(name, values[row], row, _why_not(values[row], row, kind))


def _why_not(value: object, row: int, kind: pa.DataType | None) -> str:
    if kind is not None:
        return f"is no {kind}"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return "does not fit into 64 bits; decimals have up to 38 digits"
    if isinstance(value, str):
        return (
            "is half of a surrogate pair, and no text"
            if _is_no_text(value)
            else "has another type than the values before it"
        )
    return "has another type than the values before it" if row else "has no type"


def _is_no_text(value: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in value)


def _may_be_map(kind: pa.DataType) -> bool:
    return bool(pt.is_struct(kind) or (is_any_list(kind) and pt.is_null(kind.value_type)))


def _with_maps(kind: pa.DataType, table: pa.DataType) -> pa.DataType | None:
    """The inferred type with the table's maps for structs and lists of nothing; None where there are none."""
    if _may_be_map(kind) and pt.is_map(table):
        return table
    if is_any_list(kind) and pt.is_list(table):
        inner = _with_maps(kind.value_type, table.value_type)
        return None if inner is None else pa.list_(inner)
    if pt.is_struct(kind) and pt.is_struct(table):
        found = {
            f.name: _with_maps(f.type, table.field(f.name).type)
            for f in kind
            if table.get_field_index(f.name) >= 0
        }
        if any(t is not None for t in found.values()):
            return pa.struct([f.with_type(found.get(f.name) or f.type) for f in kind])
    return None
