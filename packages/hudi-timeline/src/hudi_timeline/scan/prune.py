"""Which partitions cannot hold a row that a filter keeps.

The question is put to Arrow's own simplification of an expression under a guarantee (`city == "sf"`), as for row
groups (`hudi_format.parquet.matching`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.columns import integers
from hudi_format.errors import PartitionPathError
from hudi_format.filtering import filtered
from hudi_format.parquet.matching import all_of, equals, may_match
from hudi_format.partition_path import split_values
from hudi_timeline.partition_values import partition_table
from hudi_timeline.scan.plan import FROM_PATH, PartitionColumn, Predicate
from hudi_timeline.table_config import TableConfig


class PartitionPruner:
    """A `listing.PartitionFilter` made from a row filter.

    Only partition columns whose value comes from the path decide: elsewhere path and files may differ.
    """

    def __init__(
        self,
        filter: pc.Expression,
        schema: pa.Schema,
        config: TableConfig,
        columns: Sequence[PartitionColumn],
        parts: Sequence[Predicate] = (),
        *,
        exact: bool = True,
    ) -> None:
        """
        Args:
            columns: the table's partition columns.
            parts: predicates that all must hold where the filter does, and the other way round, where these are known.
            exact: whether rows hold just what their path says; else a null or an escaped text decides nothing.
        """
        from_path = {c.name for c in columns if c.source == FROM_PATH}
        # The values of a path alone tell whether these hold.
        self._told = [p for p in parts if p.columns and from_path.issuperset(p.columns)]
        # Whether the others say nothing of a path.
        self._told_by_path = bool(parts) and all(
            from_path.issuperset(p.columns) or from_path.isdisjoint(p.columns) for p in parts
        )
        self._filter = filter
        self._schema = schema
        self._config = config
        self._columns = columns
        self._exact = exact
        self._decides = any(c.source == FROM_PATH for c in columns)

    def keep(self, partitions: Sequence[str]) -> Sequence[bool]:
        if not self._decides:
            return [True] * len(partitions)
        fields = [c.name for c in self._columns]
        known = [
            n
            for n, p in enumerate(partitions)
            if split_values(p, fields) is not None and (self._exact or "%" not in p)
        ]
        if self._told_by_path:
            told = _passing([partitions[n] for n in known], self._columns, self._told)
            if told is not None:
                dropped = set(known).difference(known[n] for n in told)
                return [n not in dropped for n in range(len(partitions))]
        guarantees: list[pc.Expression | None] = [None] * len(partitions)
        found = _guarantees([partitions[n] for n in known], self._columns, self._exact)
        for n, guarantee in zip(known, found, strict=True):
            guarantees[n] = guarantee
        return may_match(self._filter, guarantees, self._schema)

    def keep_below(self, folders: Sequence[str]) -> Sequence[bool]:
        if not self._decides or not self._exact or len(self._columns) < 2:
            return [True] * len(folders)
        if self._told_by_path and all(len(p.columns) == 1 for p in self._told):
            told = self._told_below(folders)
            if told is not None:
                return told
        return may_match(self._filter, [self._prefix(f) for f in folders], self._schema)

    def _told_below(self, folders: Sequence[str]) -> list[bool] | None:
        """Which folders may have partitions below whose values pass; None as `_passing`."""
        kept = [True] * len(folders)
        by_count: dict[int, list[int]] = {}
        for n, folder in enumerate(folders):
            by_count.setdefault(self._known(folder.split("/")), []).append(n)
        for count, numbers in by_count.items():
            columns = self._columns[:count]
            names = {c.name for c in columns}
            paths = ["/".join(folders[n].split("/")[:count]) for n in numbers]
            passing = _passing(paths, columns, [p for p in self._told if names.issuperset(p.columns)])
            if passing is None:
                return None
            for n in set(range(len(numbers))).difference(passing):
                kept[numbers[n]] = False
        return kept

    def _known(self, segments: Sequence[str]) -> int:
        """How many values a folder on the way to a partition says for sure."""
        count = len(segments)
        if count >= len(self._columns):  # may be a whole path
            return 0
        if self._config.hive_style:
            heads = zip(self._columns, segments, strict=False)
            if not all(s.startswith(f"{c.name}=") for c, s in heads):
                return 0
            if not self._config.url_encode:
                # `a=1/2` may go on: a value is known once the next field's segment follows.
                count -= 1
        return count

    def _prefix(self, folder: str) -> pc.Expression | None:
        """What a folder on the way to a partition says for sure."""
        segments = folder.split("/")
        count = self._known(segments)
        known = [
            g
            for column, segment in zip(self._columns[:count], segments, strict=False)
            if column.source == FROM_PATH
            for g in _guarantees([segment], [column], self._exact)
            if g is not None
        ]
        return all_of(known)


def _passing(
    paths: list[str], columns: Sequence[PartitionColumn], told: Sequence[Predicate]
) -> Sequence[int] | None:
    """Which of the paths have values that pass all predicates; None where one has none of its column's type."""
    if not told or not paths:
        return range(len(paths))
    try:
        values = partition_table(paths, columns)
    except PartitionPathError:
        return None
    filter = all_of([p.expression for p in told])
    if filter is None:
        return range(len(paths))
    numbered = values.append_column("", integers(np.arange(len(paths))))
    found: list[int] = filtered(numbered, filter).column("").to_pylist()
    return found


def _guarantees(
    paths: list[str], columns: Sequence[PartitionColumn], nulls: bool
) -> list[pc.Expression | None]:
    if not paths:
        return []
    try:
        values = partition_table(paths, columns)
    except PartitionPathError:
        # One of them is no partition of this table; if it is read, that will say so.
        return [None] if len(paths) == 1 else [g for p in paths for g in _guarantees([p], columns, nulls)]
    names = values.column_names[1:]
    rows = zip(*(values.column(n).combine_chunks() for n in names), strict=True)
    return [
        all_of(
            [equals(name, value) for name, value in zip(names, row, strict=True) if nulls or value.is_valid]
        )
        for row in rows
    ]
