"""Records that meet a stored one of another partition, under payloads that do not just take the later one.

Where the payload fills values, a record that moves leaves the stored one behind as a delete, so what that fills is
taken along: the worker of the record's new place reads it from the file that holds it.  Where the stored record is
newer and wins, it stays in its place, and is written again with the values that it has.

Source: HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded of Apache Hudi 0.15, and what it did with the same rows
(tests/interop/test_index.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_format.keys import nested_column
from hudi_format.merge.keys import KeyIndex
from hudi_format.merge.modes import decide, merged_column
from hudi_format.merge.rules import Order
from hudi_format.parquet.reader import iter_row_groups
from hudi_format.schema.evolve import conform
from hudi_format.schema.meta_columns import META_COLUMNS, RECORD_KEY
from hudi_timeline.write.tasks import STORED_IN, WriteContext


def with_stored_values(context: WriteContext, rows: pa.Table) -> pa.Table:
    """The rows without `STORED_IN`, those that have one merged with the stored record of their key.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading the files.
    """
    if STORED_IN not in rows.schema.names:
        return rows
    files = rows.column(STORED_IN).combine_chunks().dictionary_encode()
    rows = rows.drop_columns([STORED_IN])
    codes = files.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    source = np.arange(rows.num_rows, dtype=np.int64)
    parts = [rows]
    end = rows.num_rows
    for code, path in enumerate(files.dictionary.to_pylist()):
        mine = np.flatnonzero(codes == code)
        for at, merged in _merged(context, path, rows.take(pa.array(mine))):
            source[mine[at]] = end + np.arange(merged.num_rows)
            end += merged.num_rows
            parts.append(merged)
    return pa.concat_tables(parts).take(pa.array(source)) if len(parts) > 1 else rows


def _merged(context: WriteContext, path: str, rows: pa.Table) -> list[tuple[np.ndarray, pa.Table]]:
    """Incoming rows merged with the stored ones of a file: which of `rows` they are, and what they become."""
    index = KeyIndex(rows.column(RECORD_KEY))
    name = context.ordering_field if context.rule.against_stored != Order.LATER else None
    ordering = nested_column(rows, name) if name else None
    out = []
    for group in iter_row_groups(context.storage, path):
        found = index.find(group.column(RECORD_KEY))
        hits = np.flatnonzero(found >= 0)
        if not len(hits):
            continue
        at = found[hits]
        stored = group.take(pa.array(hits))
        stored = conform(
            stored.select([n for n in stored.schema.names if n not in META_COLUMNS]), context.schema
        )
        met = decide(
            at, context.rule, stored_ordering=nested_column(stored, name) if name else None, ordering=ordering
        )
        # A payload that fills takes the incoming record's place whoever is newer: it moves.
        wins = met.stored_wins if context.rule.fill_stored else met.take < 0
        columns = [
            merged_column(
                stored.column(n), rows.column(n), at,
                fill=context.rule.fill_stored, stored_wins=wins,
            ) if n in context.schema.names else rows.column(n).take(pa.array(at))
            for n in rows.schema.names
        ]  # fmt: skip
        out.append((at, pa.table(columns, schema=rows.schema)))
    return out
