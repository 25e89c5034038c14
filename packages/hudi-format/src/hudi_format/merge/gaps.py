"""Values that say nothing: where the record that wins has one, the other record's value stays.

That is null, unless the merge says otherwise: the text that Debezium sends for a value that it does not have, or the
default of the column in the table's schema.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.merge.ordering import ordering_values
from hudi_format.merge.rules import Gap, Unavailable

Column: TypeAlias = pa.Array | pa.ChunkedArray


def kept(column: Column, gap: Gap) -> np.ndarray | None:
    """Per value, whether it counts rather than being filled (bool); None where all do.

    Args:
        gap: what is filled; None for nulls.
    """
    if gap is None:
        return np.asarray(column.is_valid()) if column.null_count else None
    kind = column.type
    if isinstance(gap, Unavailable):
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            marker: object = gap.text
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            marker = gap.text.encode()
        else:
            return None
        same = pc.equal(column, pa.scalar(marker, kind))
    elif gap.value is None:
        return None
    elif gap.value == ():
        return _turned(_empty(column))
    elif pa.types.is_floating(kind):
        # As Float.equals of Java: 0.0 is not -0.0, and NaN is NaN.
        values, wanted = ordering_values(column, pa.array([gap.value], kind))
        assert values.numbers is not None
        assert wanted.numbers is not None
        alike = values.numbers == wanted.numbers[0]
        return _turned(alike if values.valid is None else alike & (values.valid != 0))
    else:
        same = pc.equal(column, pa.scalar(gap.value, kind))
    filled = pc.fill_null(same, False)
    return ~np.asarray(filled) if pc.any(filled).as_py() else None


def _empty(column: Column) -> np.ndarray:
    """Per list or map, whether it has no elements; a null is none."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    none = [np.zeros(0, dtype=bool)]
    return np.concatenate(none + [(np.diff(c.offsets) == 0) & np.asarray(c.is_valid()) for c in chunks])


def _turned(filled: np.ndarray) -> np.ndarray | None:
    return ~filled if filled.any() else None
