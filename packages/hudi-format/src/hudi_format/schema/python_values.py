"""Python values of a column that Arrow would change, or that end the process in it.

Arrow takes the type of a column from some values, and converts the others to it: text among bytes becomes bytes, a UUID
or a boolean among integers a number, a fraction of NumPy among them loses what is after the point, and a date of NumPy
before a number ends the process.  So the kinds of values are looked at before Arrow sees them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from hudi_format.errors import SchemaError

_NULL, _ANY, _INTEGER, _FRACTION, _DECIMAL, _DAY, _MOMENT = (
    "null",
    "any",
    "int",
    "float",
    "decimal",
    "date",
    "datetime",
)
# The first that a class belongs to is its kind: `bool` is an `int`, and `datetime` a `date`.
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("bool", (bool, np.bool_)),
    (_INTEGER, (int, np.integer)),
    ("NumPy duration", (np.timedelta64,)),
    # Beside a whole number Arrow makes one of it, and else refuses it.
    ("NumPy long double", (np.longdouble,)),
    (_FRACTION, (float, np.floating)),
    (_DECIMAL, (Decimal,)),
    ("text", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("NumPy moment", (np.datetime64,)),
    (_MOMENT, (datetime,)),
    (_DAY, (date,)),
    ("time", (time,)),
    ("timedelta", (timedelta,)),
    ("UUID", (UUID,)),
    ("nested", (list, tuple, set, frozenset, range, np.ndarray, Mapping)),
    (_ANY, (pa.Scalar,)),
)
# Kinds that one column may hold: Arrow refuses those of their values that do not fit the others.
_TOGETHER = ({_INTEGER, _FRACTION}, {_DAY, _MOMENT}, {_DECIMAL, _INTEGER})
_NULLS = ("NoneType", "NaTType", "NAType")


def _is_null(made: type) -> bool:
    return _kind_of(made) == _NULL


@cache
def _kind_of(made: Any) -> str:
    if made.__name__ in _NULLS:
        return _NULL
    kind = next((kind for kind, classes in _KINDS if issubclass(made, classes)), None)
    return f"{made.__module__}.{made.__qualname__}" if kind is None else kind


def alike(name: str, values: Sequence[Any], *, pairs: bool = False) -> Sequence[Any]:
    """The values of a column, of which Arrow makes a column with the same values, or an error.

    NaT and NA of pandas are given as None, and NumPy's numbers of several kinds as Python's.

    Args:
        pairs: tuples of two are a key and a value of a map.

    Raises:
        SchemaError: values of kinds that make no one column, with the first that does not fit.
    """
    mixed, odd = _look_at(values, pairs)
    if not mixed:
        return _plain(values) if odd else values
    # The first value that those before it do not go with.
    row = bisect_left(range(1, len(values)), True, key=lambda n: _look_at(values[:n], pairs)[0])
    several = _look_at(values[row : row + 1], pairs)[0]
    what = "has values of several types" if several else "has another type than the values before it"
    raise unlike(name, values[row], row, what)


def unlike(name: str, value: object, row: int, what: str) -> SchemaError:
    """Error for a value that does not fit its column."""
    return SchemaError(
        f"the rows do not form a table: column {name}: {shown(value)} in row {row:,} (counted from 0) {what}",
        remedy="give each column values of one type.",
        column=name,
        row=row,
        value=value,
    )


def shown(value: object) -> str:
    """The value as Python writes it, cut short."""
    text = repr(value)
    return f"{text[:57]}..." if len(text) > 60 else text


def _unfit(types: set[type]) -> bool:
    kinds = {_kind_of(t) for t in types} - {_NULL, _ANY}
    return len(kinds) > 1 and not any(kinds <= fit for fit in _TOGETHER)


def _needs_plain(types: set[type]) -> bool:
    """Whether there are NumPy's numbers among others, which Arrow converts unseen, or nulls of pandas, which are dates
    of the year 1 to it."""
    if any(_is_null(t) for t in types - {type(None)}):
        return True
    kinds = {_kind_of(t) for t in types} - {_NULL}
    return len(kinds) > 1 and any(issubclass(t, np.number) for t in types)


def _look_at(values: Iterable[Any], pairs: bool) -> tuple[bool, bool]:
    """Whether the types of values of one Arrow array are unfit, at any depth, and whether they are to be plain."""
    types: set[Any] = set(map(type, values))
    if _unfit(types):
        return True, False
    odd = _needs_plain(types)
    forms = {_form_of(t) for t in types} - {None}
    if not forms:
        return False, odd
    by_name: defaultdict[object, list[Any]] = defaultdict(list)
    elements: list[Any] = []
    typed = False  # whether there are arrays whose elements need no look, but beside dates of NumPy
    if forms == {list}:  # without a step of Python's for each
        elements.extend(chain.from_iterable(v for v in values if v is not None))
        values = ()
    for value in values:
        made: Any = type(value)
        form = _form_of(made)
        if form is dict:
            for key, inner in value.items():
                by_name[key].append(inner)
        elif form is tuple and pairs and len(value) == 2:
            by_name[0].append(value[0])
            by_name[1].append(value[1])
        elif form is list or form is tuple:
            elements.extend(value)
        elif form is np.ndarray and value.dtype == object:
            elements.extend(value.tolist())
        elif form is np.ndarray and value.dtype.kind != "M":
            typed = True
    if typed and any(isinstance(e, np.datetime64) for e in elements):
        return True, False
    for inner in (elements, *by_name.values()):
        if inner:
            mixed, also_odd = _look_at(inner, pairs)
            if mixed:
                return True, False
            odd = odd or also_odd
    return False, odd


@cache
def _form_of(made: Any) -> type | None:
    """How values of a class hold others: as a dict, a list, a tuple or an array; None if they hold none."""
    if issubclass(made, Mapping):
        return dict
    if issubclass(made, tuple):
        return tuple
    if issubclass(made, (list, set, frozenset)):
        return list
    return np.ndarray if issubclass(made, np.ndarray) else None


def _plain(value: Any) -> Any:
    if _is_null(type(value)):
        return None
    if isinstance(value, np.number):
        return value if isinstance(value, np.timedelta64) else value.item()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value)) if type(value) in (tuple, list) else list(map(_plain, value))
    if isinstance(value, (set, frozenset)):
        return list(map(_plain, value))
    return value
