"""Merges of the user's while base files are written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_format.merge.custom import Chains, custom_of
from hudi_format.merge.entries import Entries
from hudi_format.merge.keys import KeyIndex
from hudi_format.merge.rules import MergeRule
from hudi_format.schema.meta_columns import RECORD_KEY


class Folding:
    """Incoming rows, several of a key at times, that meet the rows of an old file by a merge of the user's.

    Args:
        rows: record key and data columns, in the order in which they came.
        kinds: per row, what it is (`hudi_format.merge.modes`); None where all are data.
    """

    def __init__(
        self, rows: pa.Table, rule: MergeRule, kinds: np.ndarray | None, ordering: str | None
    ) -> None:
        merge = custom_of(rule)
        if merge is None:
            raise ValueError(f"{rule.name} is no merge of the user's")
        self._chains = Chains(merge, ordering)
        kinds = np.zeros(rows.num_rows, np.uint8) if kinds is None else kinds
        self._resolved = self._chains.resolve(Entries(rows, rows.column(RECORD_KEY), None, kinds))
        self._index = KeyIndex(self._resolved.keys)
        self._seen = np.zeros(self._index.rows, dtype=bool)

    def meet(self, stored: pa.Table) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """What stored rows come to.

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
        """What the keys come to that no stored row had."""
        return self._chains.alone(self._resolved, ~self._seen)[0].rows


def folded_alone(rows: pa.Table, rule: MergeRule, kinds: np.ndarray | None, ordering: str | None) -> pa.Table:
    """One row per key, of rows that meet no stored ones; deletes are left out."""
    return Folding(rows, rule, kinds, ordering).rest()


__all__ = ["Folding", "folded_alone"]
