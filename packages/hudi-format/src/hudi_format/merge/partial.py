"""Records that have some of the table's columns only: blocks of partial updates (table version 8 and later).

Beside each column that some block lacks stands a boolean one, which is false where the record does not have the
column, and null or true where it does, whatever its value.  So rows can be taken, joined and stored like any others.

Source: HoodieDataBlock's IS_PARTIAL and SparkRecordMergingUtils.mergePartialRecords of Apache Hudi 1.x.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.log.blocks import LogBlock

_HAS = "\0has:"  # no name of a column begins so


def has_name(column: str) -> str:
    """The name of the column that says which records have `column`."""
    return _HAS + column


def is_has(column: str) -> bool:
    return column.startswith(_HAS)


def block_columns(block: LogBlock) -> frozenset[str]:
    """Names of the columns that a data block has.

    Raises:
        CorruptFileError: its schema is none.
    """
    try:
        return frozenset(f["name"] for f in json.loads(block.schema)["fields"])
    except (ValueError, LookupError, TypeError, RecursionError) as e:
        raise block.broken(f"a SCHEMA that is none: {type(e).__name__}: {e}") from None


def partial_schema(schema: pa.Schema, blocks: Iterable[LogBlock]) -> pa.Schema:
    """`schema` with a column beside each that some block of partial updates lacks."""
    lacking: set[str] = set()
    for block in blocks:
        if block.is_partial:
            lacking |= set(schema.names) - block_columns(block)
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


def has_mask(rows: pa.Table, column: str) -> np.ndarray | None:
    """Per row, whether it has the column (bool); None where all have."""
    name = has_name(column)
    if name not in rows.schema.names:
        return None
    mask: np.ndarray = pc.fill_null(rows.column(name), True).to_numpy()
    return None if mask.all() else mask
