"""Lossless conversion of flat Arrow columns to a table's types.

Wider than Avro's promotions, and stricter: 1.0 becomes the whole number 1 and a long becomes an int where it fits, ISO
text becomes a date or a time, but text never becomes a number, nothing becomes a boolean, and a whole number that a
double does not hold is refused.  The first value that does not survive is named.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.arrow.arrays import is_text
from hudi_format.schema.decimals import rescaled
from hudi_format.schema.iso_texts import dates_of, lack_zones, moments_of


@dataclass(frozen=True, slots=True)
class Exact:
    """Rules of the lossless conversion.

    Attributes:
        rounds: doubles become the floats nearest to them, as their type was guessed from Python's numbers, which
            know no other; else a double that no float equals is refused.
        without_zone: filled with the columns in which texts of times without a zone were taken for times of UTC.
    """

    rounds: bool = False
    without_zone: set[str] = field(default_factory=set, compare=False)


class MisfitError(Exception):
    """A value that cannot be converted; outer levels translate `index` to the row number.

    Attributes:
        path: the column's name, dots between levels.
        index: of the value in the array that was given.
        value: None for a null where none may be.
    """

    def __init__(
        self, path: str, index: int, value: object, source: pa.DataType, target: pa.DataType, reason: str
    ) -> None:
        super().__init__(reason)
        self.path, self.index, self.value = path, index, value
        self.source, self.target, self.reason = source, target, reason


def is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"


def uuid_texts(array: pa.Array) -> pa.Array:
    """UUIDs in their usual form, with hyphens."""
    return pa.array([None if v is None else str(v) for v in array.to_pylist()], pa.string())


def nulls_of(count: int, kind: pa.DataType) -> pa.Array:
    """Nulls of a type; below null structs, required fields get values."""
    if not pt.is_struct(kind):
        return pa.nulls(count, kind)
    children = [(nulls_of if f.nullable else _anything)(count, f.type) for f in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.repeat(True, count))


def _anything(count: int, kind: pa.DataType) -> pa.Array:
    if pt.is_struct(kind):
        children = [(nulls_of if f.nullable else _anything)(count, f.type) for f in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if pt.is_list(kind) or pt.is_map(kind):
        offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
        return pa.Array.from_buffers(
            kind, count, [None, offsets], 0, children=[pa.array([], kind.field(0).type)]
        )
    return without_nulls(pa.nulls(count, kind))


def without_nulls(array: pa.Array) -> pa.Array:
    """The values with nulls replaced.

    Arrow's casts refuse nulls of types that must not be null.
    """
    return pa.Array.from_buffers(
        array.type, len(array), [None, *array.buffers()[1:]], null_count=0, offset=array.offset
    )


def hopeless(array: pa.Array, source: pa.DataType, target: pa.DataType, path: str) -> pa.Array:
    """Nulls of the wanted type, for a column without any value.

    Raises:
        MisfitError: at the first value.
    """
    if array.null_count == len(array):
        return nulls_of(len(array), target)
    index = pc.index(array.is_valid(), True).as_py()
    raise MisfitError(path, index, _value(array, index), source, target, "")


def exactly(
    array: pa.Array,
    target: pa.DataType,
    path: str,
    how: Exact,
    promoted: Callable[[pa.Array], pa.Array] | None,
) -> pa.Array:
    """The flat column with the type `target`.

    Args:
        array: decoded: no dictionary, no extension type.
        promoted: what Avro's promotion makes of it, where there is one.

    Raises:
        MisfitError: a value does not survive.
    """
    cast = _cast(array.type, target, how, path) or promoted
    if cast is None or array.null_count == len(array):
        return hopeless(array, array.type, target, path)

    def refused(count: int) -> str | None:
        """Why the first values cannot be cast, "" where nothing is said of it; None where they can.

        The error itself would hold this call, which holds it, and with it all that the callers have read.
        """
        try:
            cast(array.slice(0, count))
        except _LossError as e:
            return str(e)
        except (pa.ArrowException, ValueError):
            return ""
        return None

    try:
        return cast(array)
    except (pa.ArrowException, ValueError):
        # The first value that does not survive is the one without which what comes before it can be cast.
        first = pc.index(array.is_valid(), True).as_py()
        index = bisect_left(range(1, len(array)), True, lo=first, key=lambda n: refused(n) is not None)
        reason = refused(index + 1) or ""
        raise MisfitError(path, index, _value(array, index), array.type, target, reason) from None


def _value(array: pa.Array, index: int) -> object:
    try:
        return array[index].as_py()
    except (ValueError, OverflowError):  # nanoseconds, and years, that Python's types do not hold
        if pt.is_temporal(array.type):
            return f"{array[index].value} {array.type}"
        return " ".join(array.slice(index, 1).to_string().split())  # they may lie inside of it


class _LossError(ValueError):
    pass


def _require(kept: pa.Array | np.ndarray, why: str) -> None:
    whole = kept.all() if isinstance(kept, np.ndarray) else pc.all(kept, min_count=0).as_py()
    if not whole:
        raise _LossError(why)


def _cast(
    source: pa.DataType, target: pa.DataType, how: Exact, path: str
) -> Callable[[pa.Array], pa.Array] | None:
    """The cast of a column; None where only promotions apply."""
    if pt.is_integer(target):
        return _to_integers(source, target)
    if pt.is_floating(target):
        return _to_floats(source, target, how)
    if pt.is_date32(target):
        return _to_dates(source)
    if pt.is_timestamp(target):
        return _of_times(target, how, path) if is_text(source) else _to_timestamps(source, target)
    if pt.is_decimal(target) and (pt.is_decimal(source) or pt.is_integer(source)):
        return lambda a: rescaled(a, target)
    if pt.is_fixed_size_binary(target) and pt.is_fixed_size_binary(source):
        return lambda a: a.cast(pa.binary()).cast(target)
    if is_text(source) and not (is_text(target) or pt.is_binary(target) or pt.is_fixed_size_binary(target)):
        return _never
    return None


def _never(array: pa.Array) -> pa.Array:
    raise ValueError(array.type)


def _to_integers(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if pt.is_integer(source) or pt.is_decimal(source):
        return lambda a: a.cast(target)
    if not pt.is_floating(source):
        return _never
    # Beyond this a float stands for several whole numbers, one of which it was rounded from.
    most = 2.0 ** (11 if pt.is_float16(source) else 24 if pt.is_float32(source) else 53)

    def whole(array: pa.Array) -> pa.Array:
        floats = array.cast(pa.float64())
        _require(pc.is_finite(floats), "")
        _require(pc.equal(pc.floor(floats), floats), "it is not a whole number")
        _require(pc.less_equal(pc.abs(floats), most), "floats of that size are not exact")
        return floats.cast(pa.int64()).cast(target)

    return whole


def _to_floats(source: pa.DataType, target: pa.DataType, how: Exact) -> Callable[[pa.Array], pa.Array] | None:
    bits = 24 if pt.is_float32(target) else 53
    if pt.is_integer(source):

        def of_integers(array: pa.Array) -> pa.Array:
            values = array.fill_null(0).to_numpy(zero_copy_only=False)
            # The smallest number has no counterpart; as a number without a sign its bits are right.
            size = values if pt.is_unsigned_integer(source) else np.abs(values.astype(np.int64))
            size = size.astype(np.uint64)
            lowest = np.maximum(size & (~size + np.uint64(1)), np.uint64(1))
            _require(size // lowest < np.uint64(1 << bits), f"it has too many digits for {target}")
            return array.cast(target, safe=False)

        return of_integers
    if pt.is_decimal(source):

        def of_decimals(array: pa.Array) -> pa.Array:
            # By text to the nearest one, which Arrow's direct cast misses by a digit.
            out = array.cast(pa.string()).cast(target)
            _require(pc.equal(out.cast(source), array), f"it has too many digits for {target}")
            return out

        return of_decimals
    if pt.is_float64(source) and pt.is_float32(target):

        def of_doubles(array: pa.Array) -> pa.Array:
            out = array.cast(target)
            if how.rounds:
                kept = pc.or_(pc.is_finite(out), pc.invert(pc.is_finite(array)))
                _require(kept, f"it is too large for {target}")
            else:
                same = pc.or_(pc.equal(out.cast(source), array), pc.is_nan(array))
                _require(same, f"it has no equal {target}")
            return out

        return of_doubles
    return None if pt.is_floating(source) else _never


def _to_dates(source: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if is_text(source):
        return lambda a: _stating(dates_of, a)
    if pt.is_date64(source) or (pt.is_timestamp(source) and source.tz is None):

        def days(array: pa.Array) -> pa.Array:
            out = array.cast(pa.date32(), safe=False)
            _require(pc.equal(out.cast(source), array), "it has a time of day")
            return out

        return days
    return (lambda a: a.cast(pa.date32())) if pt.is_date32(source) else _never


def _of_times(target: pa.DataType, how: Exact, path: str) -> Callable[[pa.Array], pa.Array]:
    def times(texts: pa.Array) -> pa.Array:
        out = _stating(lambda a: moments_of(a, target), texts)
        if target.tz is not None and lack_zones(texts):
            how.without_zone.add(path)
        return out

    return times


def _stating(read: Callable[[pa.Array], pa.Array], texts: pa.Array) -> pa.Array:
    """What `read` makes of texts; its refusal is a reason to tell."""
    try:
        return read(texts)
    except ValueError as e:
        raise _LossError(str(e)) from None


def _to_timestamps(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if pt.is_timestamp(source) and (source.tz is None) == (target.tz is None):
        return lambda a: a.cast(target)
    if pt.is_timestamp(source) and source.tz is None:  # for UTC
        return lambda a: a.cast(pa.timestamp(source.unit, target.tz)).cast(target)
    if pt.is_date(source) and target.tz is None:
        return lambda a: a.cast(target)
    return _never
