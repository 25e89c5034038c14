"""Partial update records, which have some of the columns (table version 8 and later).

Beside each column that some block lacks stands a boolean one, which is false where the record does not have the
column, and null or true where it does, whatever its value.  So rows can be taken, joined and stored like any others.

Source: HoodieDataBlock's IS_PARTIAL and SparkRecordMergingUtils.mergePartialRecords of Apache Hudi 1.x.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HAS = "\0has:"  # no name of a column begins so


def has_name(column: str) -> str:
    """Name of the marker column for the records that have `column`."""
    return _HAS + column


def is_has(column: str) -> bool:
    return column.startswith(_HAS)


def partial_schema(schema: pa.Schema, parts: Iterable[frozenset[str]]) -> pa.Schema:
    """`schema` with a marker column for each column that some part lacks.

    Args:
        parts: the columns that each part has.
    """
    lacking: set[str] = set()
    for columns in parts:
        lacking |= set(schema.names) - columns
    more = [pa.field(has_name(n), pa.bool_()) for n in schema.names if n in lacking]
    return pa.schema([*schema, *more]) if more else schema


def with_marks(rows: pa.Table, schema: pa.Schema, columns: frozenset[str] | None) -> pa.Table:
    """`rows` with the columns of `partial_schema`.

    Args:
        columns: those that the rows have; None for all.
    """
    for field in schema:
        if is_has(field.name):
            there = columns is None or field.name.removeprefix(_HAS) in columns
            mark = pa.nulls(rows.num_rows, pa.bool_()) if there else pa.repeat(False, rows.num_rows)
            rows = rows.append_column(field, mark)
    return rows


def with_lacking(merged: pa.Table, old: pa.Table, new: pa.Table) -> pa.Table:
    """Merged rows with old values in columns the new records lack, and both markers.

    Args:
        merged, old: rows without marks.
        new: the records that met `old`, with their marks.
    """
    for name in new.column_names:
        if not is_has(name):
            continue
        column = name.removeprefix(_HAS)
        there = has_mask(new, column)
        if there is not None:
            at = np.arange(len(there)) + np.where(there, len(there), 0)
            both = pa.chunked_array([*old.column(column).chunks, *merged.column(column).chunks])
            merged = merged.set_column(
                merged.column_names.index(column), merged.schema.field(column), both.take(pa.array(at))
            )
    marks = [f for f in new.schema if is_has(f.name)]
    for mark in marks:  # nothing is lacking any more: what no record said is null
        merged = merged.append_column(mark, pa.nulls(merged.num_rows, pa.bool_()))
    return merged


def has_mask(rows: pa.Table, column: str) -> np.ndarray | None:
    """Mask of rows that have the column (bool); None where all have."""
    name = has_name(column)
    if name not in rows.schema.names:
        return None
    mask: np.ndarray = pc.fill_null(rows.column(name), True).to_numpy()
    return None if mask.all() else mask
