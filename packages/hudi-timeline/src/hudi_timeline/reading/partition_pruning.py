"""Partition pruning: partitions that cannot have rows for a filter.

The question is put to Arrow's own simplification of an expression under a guarantee (`city == "sf"`), as for row
groups (`hudi_format.parquet.row_group_filter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import filtered, integers
from hudi_format.errors import PartitionPathError
from hudi_format.keygen.partition_path import split_values
from hudi_format.parquet.row_group_filter import all_of, equals, may_match
from hudi_timeline.file_system_view.partition_values import PartitionColumn, path_values
from hudi_timeline.reading.plan import Predicate
from hudi_timeline.table_config import TableConfig

MANY_RANGES = 64
"""So many ranges of values tell whether a filter can be decided by ranges."""


class PartitionPruner:
    """A `listing.PartitionFilter` of a row filter.

    Only partition columns whose value comes from the path decide: elsewhere path and files may differ.
    """

    def __init__(
        self,
        filter: pc.Expression,
        schema: pa.Schema,
        config: TableConfig,
        columns: Sequence[PartitionColumn],
        parts: Sequence[Predicate] = (),
    ) -> None:
        """Partition filter of a row filter.

        Args:
            columns: the table's partition columns.
            parts: predicates that all must hold where the filter does, and the other way round, where these are known.
        """
        from_path = {c.name for c in columns if c.told_by_paths}
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
        # Else a null or an escaped text decides nothing: the files hold the value.
        self._exact = not any(c.copied for c in columns)
        self._decides = bool(from_path)
        # Levels are then no values by themselves.
        self._formatted = any(c.formatted for c in columns)

    def keep(self, partitions: Sequence[str]) -> Sequence[bool]:
        if not self._decides:
            return [True] * len(partitions)
        fields = [c.name for c in self._columns]
        known = [
            n
            for n, p in enumerate(partitions)
            if split_values(p, fields) is not None and not any(c.may_be_other(p) for c in self._columns)
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
        if self._formatted and not self._config.hive_style:
            return [True] * len(folders)
        if self._told_by_path and all(len(p.columns) == 1 for p in self._told):
            told = self._told_below(folders)
            if told is not None:
                return told
        return may_match(self._filter, [self._prefix(f) for f in folders], self._schema)

    def keep_inside(self, partitions: Sequence[str]) -> Sequence[bool]:
        if not self._decides:
            return [True] * len(partitions)
        column, single = self._columns[-1], len(self._columns) == 1
        if self._formatted and not (single and pa.types.is_string(column.type)):
            return [True] * len(partitions)
        if not single and (self._config.url_encode or (self._exact and not self._config.hive_style)):
            # Values have one level each; or, of several fields, which level is of which could not be told.
            return [False] * len(partitions)
        if not column.told_by_paths or not pa.types.is_string(column.type):
            numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
            kept = not column.told_by_paths or not any(is_kind(column.type) for is_kind in numbers)
            return [kept] * len(partitions)  # the text of a number has no slash
        kept_folders = set(partitions)
        for known, folders in self._inner_values(partitions).items():
            kept_folders -= set(self._none_inside(known, sorted(folders.items())))
        return [p in kept_folders for p in partitions]

    def _inner_values(self, partitions: Sequence[str]) -> dict[str, dict[str, str]]:
        """Prefixes of the last column's values within partitions, by the other columns' values.

        Paths of which that is not known are left out.
        """
        found: dict[str, dict[str, str]] = {}
        name = self._columns[-1].name
        for path in partitions:
            before, _, last = path.rpartition("/") if len(self._columns) > 1 else ("", "", path)
            if len(self._columns) > 1 and (
                before.count("/") + 2 != len(self._columns) or not last.startswith(f"{name}=")
            ):
                continue
            if not self._columns[-1].may_be_other(path):
                text = unquote(last.removeprefix(f"{name}="))
                found.setdefault(before, {})[f"{text}/"] = path
        return found

    def _none_inside(self, before: str, folders: Sequence[tuple[str, str]]) -> list[str]:
        """Sorted paths whose inner values all fail the filter, found by bisection.

        All are asked for as one range of text, then halves: of many partitions a filter says the same.
        """
        known: list[pc.Expression] = []
        if before:
            paths = _guarantees([before], self._columns[:-1], self._exact)
            known = [g for g in paths if g is not None]
        field = pc.field(self._columns[-1].name)
        none: list[str] = []
        parts = [folders]
        while parts:
            # "0" is the character after the slash.
            ends = [max(text[:-1] + "0" for text, _ in part) for part in parts]
            ranges = [
                all_of([*known, field >= pc.scalar(part[0][0]), field < pc.scalar(end)])
                for part, end in zip(parts, ends, strict=True)
            ]
            again: list[Sequence[tuple[str, str]]] = []
            for part, may in zip(parts, may_match(self._filter, ranges, self._schema), strict=True):
                if not may:
                    none += [path for _, path in part]
                elif len(part) > 1:
                    again += [part[: len(part) // 2], part[len(part) // 2 :]]
            if len(parts) >= MANY_RANGES and len(again) > len(parts):
                break  # a filter that ranges say little of
            parts = again
        return none

    def _told_below(self, folders: Sequence[str]) -> list[bool] | None:
        """Mask of folders with possibly passing partitions below; None as in `_passing`."""
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
        """Number of column values determined by a folder above partitions."""
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
        """Guarantee for all rows below a folder above partitions."""
        segments = folder.split("/")
        count = self._known(segments)
        known = [
            g
            for column, segment in zip(self._columns[:count], segments, strict=False)
            if column.told_by_paths
            for g in _guarantees([segment], [column], self._exact)
            if g is not None
        ]
        return all_of(known)


def _passing(
    paths: list[str], columns: Sequence[PartitionColumn], told: Sequence[Predicate]
) -> Sequence[int] | None:
    """Numbers of paths that pass all predicates; None where a value is not of its type, or they fail of it."""
    if not told or not paths:
        return range(len(paths))
    try:
        values = path_values(paths, columns)
    except PartitionPathError:
        return None
    if values.untold:
        return None
    filter = all_of([p.expression for p in told])
    if filter is None:
        return range(len(paths))
    numbered = values.table.append_column("", integers(np.arange(len(paths))))
    try:
        found: list[int] = filtered(numbered, filter).column("").to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None  # of a value that no row that is read need have
    return found


def _guarantees(
    paths: list[str], columns: Sequence[PartitionColumn], nulls: bool
) -> list[pc.Expression | None]:
    if not paths:
        return []
    try:
        values = path_values(paths, columns)
    except PartitionPathError:
        # One of them is no partition of this table; if it is read, that will say so.
        return [None] if len(paths) == 1 else [g for p in paths for g in _guarantees([p], columns, nulls)]
    names = values.table.column_names[1:]
    rows = zip(*(values.table.column(n).combine_chunks() for n in names), strict=True)
    return [
        all_of(
            [
                equals(name, value)
                for name, value in zip(names, row, strict=True)
                if (nulls or value.is_valid) and name not in values.untold.get(path, ())
            ]
        )
        for path, row in zip(paths, rows, strict=True)
    ]
