"""Row-group pruning by statistics.

The question is put to Arrow's own simplification of an expression under a guarantee (`3 <= ts <= 7`), so any filter
that Arrow can evaluate prunes; what it cannot decide is kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.schema.casts import convert, promotes

if TYPE_CHECKING:
    from hudi_format.parquet.row_groups import ColumnChunk

# Statistics leave NaN out, so each column of floats is asked for twice: within its range, and with NaN.
_MOST_FLOATS = 4


def may_match(
    filter: pc.Expression, guarantees: Sequence[pc.Expression | None], schema: pa.Schema
) -> list[bool]:
    """Whether each guarantee may be consistent with the filter; None guarantees nothing.

    Arrow computes what a guarantee fixes, which may fail (`cast(x, int64)` of NaN) where no row has such a value: then
    it decides nothing.
    """
    try:
        return _may_match(filter, guarantees, schema)
    except pa.ArrowException:
        if len(guarantees) == 1:
            return [True]
    return [may_match(filter, [g], schema)[0] for g in guarantees]


def _may_match(
    filter: pc.Expression, guarantees: Sequence[pc.Expression | None], schema: pa.Schema
) -> list[bool]:
    # Its import takes as long as that of pyarrow, and brings pandas where that is installed.
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

    # Fragments are never opened: only their partition expressions are looked at.
    parquet, files = ds.ParquetFileFormat(), pafs.LocalFileSystem()
    fragments = [
        parquet.make_fragment(str(n), files, partition_expression=g)
        for n, g in enumerate(guarantees)
        if g is not None
    ]
    dataset = ds.FileSystemDataset(fragments, schema, parquet, files)
    kept = {int(f.path) for f in dataset.get_fragments(filter=filter)}
    return [g is None or n in kept for n, g in enumerate(guarantees)]


def equals(name: str, value: pa.Scalar) -> pc.Expression:
    """Expression for equality with a value, null included."""
    return pc.field(name) == pc.scalar(value) if value.is_valid else pc.field(name).is_null()


def within(name: str, low: pa.Scalar, high: pa.Scalar, *, has_nulls: bool) -> list[pc.Expression]:
    """Guarantees that a column's values are between two bounds, or null."""
    if pa.types.is_float32(low.type):
        # A set of doubles is rounded to the column's type where rows are looked for in it, and not where bounds are.
        ends = np.array([low.as_py(), high.as_py()], np.float32)
        with np.errstate(over="ignore"):
            low, high = pa.array(np.nextafter(ends, np.array([-np.inf, np.inf], np.float32)), low.type)
    field = pc.field(name)
    at_least, at_most = field >= pc.scalar(low), field <= pc.scalar(high)
    if not has_nulls:
        return [at_least, at_most]
    # This form of a range with nulls is one that Arrow's simplification knows; an outer `or` is not.
    return [at_least | field.is_null(), at_most | field.is_null()]


def all_of(parts: Sequence[pc.Expression]) -> pc.Expression | None:
    """Conjunction of expressions; None for an empty sequence."""
    out: pc.Expression | None = None
    for part in parts:
        out = part if out is None else out & part
    return out


def matching_row_groups(
    footer: memoryview,
    stored: pa.Schema,
    filter: pc.Expression,
    columns: Sequence[str],
    schema: pa.Schema,
    constants: pa.RecordBatch | None = None,
) -> list[int]:
    """Numbers of the row groups that may pass the filter, by the footer's statistics.

    Args:
        footer: bytes of the footer.
        stored: the file's schema.
        columns: columns that the filter needs.
        schema: the schema that the filter is written for; statistics are compared in its types.
        constants: one row with the columns whose value is the same in the whole file.
    """
    # Not above: partitions are pruned by this module too, which needs no Parquet.
    from hudi_format.parquet.row_groups import row_groups

    fixed: list[pc.Expression] = []
    if constants is not None:
        fixed = [equals(n, constants.column(n)[0]) for n in constants.schema.names if n in columns]
    moving = [n for n in columns if constants is None or n not in constants.schema.names]
    # Two columns of one name: which of them a chunk is of is not known.
    moving = [n for n in moving if stored.get_field_index(n) >= 0 and n in schema.names]
    floats = [n for n in moving if pa.types.is_floating(stored.field(n).type)]
    if len(floats) > _MOST_FLOATS:
        moving = [n for n in moving if n not in floats]
    numbers: list[int] = []
    guarantees: list[pc.Expression | None] = []
    for number, group in enumerate(row_groups(footer, moving)):
        cases = []
        for name in moving:
            if name in group.columns:
                kind = schema.field(name).type
                found = _range(group.columns[name], stored.field(name).type, kind)
                cases.append(
                    [found, [equals(name, pa.scalar(math.nan, kind))]]
                    if found and name in floats
                    else [found]
                )
        for chosen in itertools.product(*cases):
            numbers.append(number)
            guarantees.append(all_of([*fixed, *itertools.chain(*chosen)]))
    kept = may_match(filter, guarantees, schema)
    return sorted({n for n, keep in zip(numbers, kept, strict=True) if keep})


@dataclass(frozen=True, slots=True)
class RowGroupFilter:
    """A filter over a schema, some of whose columns a file may lack.

    Attributes:
        expression: the filter.
        schema: the columns that it may name, in the types in which it is meant.
        by: the columns whose statistics may leave row groups out; None for all.
        columns: those that the filter names; None where that is not known.
        constants: as of `matching_row_groups`.
    """

    expression: pc.Expression
    schema: pa.Schema
    by: frozenset[str] | None = None
    columns: tuple[str, ...] | None = None
    constants: pa.RecordBatch | None = None

    @property
    def names(self) -> list[str]:
        """The columns whose statistics are looked at."""
        # An expression does not say its columns; a name that stands in its text by chance costs time only.
        text = str(self.expression) if self.columns is None else ""
        named = [n for n in self.schema.names if n in text] if self.columns is None else self.columns
        return [n for n in named if self.by is None or n in self.by]

    def matching(self, footer: memoryview, stored: pa.Schema) -> list[int]:
        """Same as the function `matching_row_groups`."""
        return matching_row_groups(footer, stored, self.expression, self.names, self.schema, self.constants)


def _range(chunk: ColumnChunk, stored: pa.DataType, wanted: pa.DataType) -> list[pc.Expression]:
    """Guarantees of a column chunk's statistics."""
    if chunk.nulls == chunk.num_values and chunk.nulls:
        return [pc.field(chunk.path).is_null()]
    bounds = chunk.bounds(stored)
    if bounds is None:
        return []
    if wanted != stored:
        if not (_numeric(stored) and _numeric(wanted) and promotes(stored, wanted)):
            return []
        # Promotions keep the order of values, as those of the rows do.
        found = convert(pa.array([b.as_py() for b in bounds], stored), wanted, chunk.path, float_digits=True)
        bounds = (found[0], found[1])
    return within(chunk.path, *bounds, has_nulls=chunk.nulls != 0)


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_floating(kind))
