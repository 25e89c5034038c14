"""User-defined merges of incoming rows, as base files are written.

The rows of a key may begin with its stored record, where that is of another file: a record that moves to another
partition meets it on its way.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.merge import record_merger
from hudi_format.merge.key_index import KeyIndex
from hudi_format.merge.log_entries import Entries
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.user_merger import Chains, custom_of
from hudi_format.schema.meta_fields import RECORD_KEY


class Folding:
    """Incoming rows, possibly several per key, merged into an old file by a user-defined merge.

    Args:
        rows: record key and data columns, in the order in which they came.
        kinds: per row, what it is (`hudi_format.merge.record_merger`, or `STORED`); None where all are data.
    """

    def __init__(
        self, rows: pa.Table, rule: MergeRule, kinds: np.ndarray | None, ordering: str | None
    ) -> None:
        merge = custom_of(rule)
        if merge is None:
            raise ValueError(f"{rule.name} is not a user-defined merge")
        self._chains = Chains(merge, ordering)
        kinds = np.zeros(rows.num_rows, np.uint8) if kinds is None else kinds
        self._resolved = self._chains.resolve(Entries(rows, rows.column(RECORD_KEY), None, kinds))
        self._index = KeyIndex(self._resolved.keys)
        self._seen = np.zeros(self._index.rows, dtype=bool)

    def meet(self, stored: pa.Table) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """Stored rows after the merge.

        Returns:
            Merged rows; per stored row, which of them it becomes, -1 where it stays as it is; and per stored
            row, whether it goes.
        """
        hits = self._index.find(stored.column(RECORD_KEY))
        met = np.flatnonzero(hits >= 0)
        numbers = hits[met]
        self._seen[numbers] = True
        entries, starts, counts = self._resolved.entries, self._resolved.starts, self._resolved.counts
        assert starts is not None
        assert counts is not None
        columns = [stored.column(n) for n in entries.rows.column_names]
        old = pa.table(columns, schema=entries.rows.schema).take(pa.array(met))
        rows, alive = self._chains.fold(old, entries, starts[numbers], counts[numbers])
        take = np.full(stored.num_rows, -1, dtype=np.int64)
        take[met] = np.arange(len(met))
        gone = np.zeros(stored.num_rows, dtype=bool)
        gone[met] = ~alive
        return rows, take, gone

    def rest(self) -> pa.Table:
        """Rows of the keys without a stored row."""
        return self._chains.alone(self._resolved, ~self._seen)[0].rows


def folded_alone(rows: pa.Table, rule: MergeRule, kinds: np.ndarray | None, ordering: str | None) -> pa.Table:
    """One row per key, without a file of stored rows; deletes are left out."""
    return Folding(rows, rule, kinds, ordering).rest()


def inserted_alone(
    rows: pa.Table, rule: MergeRule, kinds: np.ndarray | None, ordering: str | None
) -> pa.Table:
    """Rows of which nothing is stored, as the merge's `insert` makes them, without deletes."""
    merge = custom_of(rule)
    if merge is None or not merge.insert:
        return rows
    if kinds is not None:
        rows = rows.filter(pa.array(~record_merger.deletes_of(kinds)))
    if not rows.num_rows:
        return rows
    made = merge.inserted(rows, one_array(rows.column(RECORD_KEY)), ordering)
    return made.rows if made.deleted is None else made.rows.filter(pc.invert(made.deleted))
