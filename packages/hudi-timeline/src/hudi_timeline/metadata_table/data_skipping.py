"""Data skipping: files that the metadata table's indexes rule out for a filter.

    partition_stats   a partition whose bounds no passing row has
    column_stats      a file whose bounds no passing row has
    bloom_filters     a base file that has none of the keys that pass
    record_index      a file group that none of the keys that pass is in
    expr_index_X      a file whose bounds of an expression no passing row's column can have
    secondary_index_X a file group that none of the keys with a value that passes is in

A file is ruled out where no row in it can pass; whatever an index does not say rules nothing out, and an index that
cannot be read, or contradicts the table, leaves out no file at all, with a warning.  Whether bounds admit the filter is
left to Arrow's simplification of an expression under a guarantee (`hudi_format.parquet.row_group_filter`).

Source: HoodieFileIndex, ColumnStatsIndexSupport and RecordLevelIndexSupport of Apache Hudi 0.15 and 1.x; spec
"Queries", section 8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.model import BaseFile, FileSlice, LogFile
from hudi_format.parquet.row_group_filter import all_of, equals, may_match, within
from hudi_format.parquet.row_groups import read_row_groups
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.probe import Probe, filter_text
from hudi_index.hashing.name_ids import file_name_id, name_id
from hudi_index.metadata_table import keys as k
from hudi_index.metadata_table import records as r
from hudi_index.metadata_table.keys import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPR_INDEX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hudi_index.metadata_table.merger import STATS
from hudi_index.record_index import located
from hudi_timeline.file_system_view.bucket_files import fixed_values
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.expression_index import index_definitions, secondary_columns, source_bounds
from hudi_timeline.metadata_table.file_indexes import PARQUET, THREADS
from hudi_timeline.metadata_table.reader import UNUSABLE, MetadataTable, is_current

# Below so many files their records are looked up one by one; else all of a column are read.
_LOOKED_UP = 1000
# A bloom filter has 430 kB by default: of more files they are not read.
_MOST_BLOOMS = 256
# Values of one filter that a secondary index is asked for.
_MOST_VALUES = 1000
# Each float column is asked for three times, see `_cases`.
_MOST_FLOATS = 2


@dataclass(frozen=True, slots=True)
class Skipped:
    """Files that a filter does not need.

    Attributes:
        by: the index that ruled a file out, by the file's path.
        warnings: one sentence each, for the user.
    """

    by: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def slices(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """The slices without base files that are ruled out; none of which nothing is left."""
        out = []
        for part in slices:
            base = part.base_file
            if base is not None and base.path in self.by:
                base = None
            if base is None and all(f.path in self.by for f in part.log_files):
                continue
            # Log records of one key may be in any of a slice's logs: the newest decides.
            out.append(FileSlice(part.partition, part.file_id, part.base_instant, base, part.log_files))
        return out


NOTHING = Skipped()


@dataclass(frozen=True, slots=True)
class DataSkipping:
    """Data skipping of one query.

    Attributes:
        snapshot: the table.
        schema: of the rows that the filter is for.
        filter: true for the rows to keep.
        columns: those that the filter needs.
        parts: filters that all must hold where this one does, each with the columns that it needs.
        from_path: columns whose values paths say, not files.
        newest: whether the rows are those of the newest state, which alone indexes of keys know; those of base files
            without the logs beside them are not.
    """

    snapshot: TableSnapshot
    schema: pa.Schema
    filter: pc.Expression
    columns: tuple[str, ...]
    parts: tuple[tuple[pc.Expression, tuple[str, ...]], ...]
    from_path: frozenset[str] = frozenset()
    newest: bool = True

    def skipped(self, slices: Sequence[FileSlice], logged_by: frozenset[str] | None = None) -> Skipped:
        """Files of slices that are ruled out.

        Args:
            logged_by: as `SliceMerge.skipped_by`: columns that alone may rule out files of slices with logs; None for
                all.
        """
        config = self.snapshot.config
        known = {COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX}
        has_any = any(p in known or p.startswith(EXPR_INDEX) for p in config.metadata_partitions)
        if not slices or not has_any or config.bootstrap_base_path:
            return NOTHING
        try:
            table = MetadataTable.of(self.snapshot)
            found = self._of(table, slices, logged_by)
        except UNUSABLE as e:
            if not is_current(self.snapshot):
                return NOTHING
            return Skipped(warnings=(_unusable(self.snapshot, e),))
        return Skipped(found)

    def _of(
        self, table: MetadataTable, slices: Sequence[FileSlice], logged_by: frozenset[str] | None
    ) -> dict[str, str]:
        out: dict[str, str] = {}
        valued: list[FileSlice] = []
        plain = [s for s in slices if not s.log_files]
        logged = [s for s in slices if s.log_files]
        for chosen, by in ((plain, None), (logged, logged_by)):
            columns = self._columns(by)
            if not chosen:
                continue
            if columns:
                out |= self._by_partition(table, chosen, columns)
                out |= self._by_file(table, [s for s in chosen if not _gone(s, out)], columns)
                out |= self._by_expression(table, [s for s in chosen if not _gone(s, out)], columns)
            if by is None or RECORD_KEY in by:
                out |= self._by_key(table, [s for s in chosen if not _gone(s, out)])
                # The index has the values of merged rows, so that it may rule out a slice with its logs, unless a merge
                # of the user's may give other values.
                valued += chosen
        out |= self._by_value(table, [s for s in valued if not _gone(s, out)])
        return out

    def _columns(self, by: frozenset[str] | None) -> list[str]:
        """Columns of the filter whose statistics may be believed."""
        if self.snapshot.evolution is not None:
            return []  # statistics go by names, and a column may have another's name of then
        names = [
            n
            for n in self.columns
            if n not in self.from_path
            and self.schema.names.count(n) == 1
            and (by is None or n in by)
            and r.has_bounds(self.schema.field(n).type)
        ]
        floats = [n for n in names if pa.types.is_floating(self.schema.field(n).type)]
        return names if len(floats) <= _MOST_FLOATS else [n for n in names if n not in floats]

    def _by_partition(
        self, table: MetadataTable, slices: Sequence[FileSlice], columns: Sequence[str]
    ) -> dict[str, str]:
        if PARTITION_STATS not in table.partitions or self.snapshot.as_of is not None:
            return {}
        partitions = sorted({s.partition for s in slices})
        keys = {n: [k.partition_stats_key(n, p) for p in partitions] for n in columns}
        records = table.lookup(PARTITION_STATS, [key for of in keys.values() for key in of])
        # Bounds that may lack values are left to the statistics of files.
        kept = admitted(self.filter, self.schema, records, keys, whole=True)
        dropped = {p for p, keep in zip(partitions, kept, strict=True) if not keep}
        # Those of a later state may be narrower.
        if not dropped or not table.is_current():
            return {}
        return {f.path: PARTITION_STATS for s in slices if s.partition in dropped for f in _files(s)}

    def _by_file(
        self, table: MetadataTable, slices: Sequence[FileSlice], columns: Sequence[str]
    ) -> dict[str, str]:
        files = [f for s in slices for f in self._with_stats(s)]
        if COLUMN_STATS not in table.partitions or not files:
            return {}
        records, keys = stats_of(table, COLUMN_STATS, files, columns)
        kept = admitted(self.filter, self.schema, records, keys)
        dropped = [n for n, keep in enumerate(kept) if not keep]
        if not dropped:
            return {}
        of = {name: [own[n] for n in dropped] for name, own in keys.items()}
        doubted = admitted(self.filter, self.schema, records, of, whole=True)
        inexact = {n: t for n in columns if pt.is_string(t := self.schema.field(n).type) or pt.is_floating(t)}
        back = _with_unbounded(
            self.snapshot.storage, [files[n] for n, may in zip(dropped, doubted, strict=True) if may], inexact
        )
        return {files[n].path: COLUMN_STATS for n in dropped if files[n].path not in back}

    def _by_expression(
        self, table: MetadataTable, slices: Sequence[FileSlice], columns: Sequence[str]
    ) -> dict[str, str]:
        """Files by the bounds of expressions of the filter's columns."""
        indexes = [p for p in table.partitions if p.startswith(EXPR_INDEX)]
        definitions = index_definitions(self.snapshot) if indexes and slices else {}
        out: dict[str, str] = {}
        for index in indexes:
            definition = definitions.get(index)
            if definition is None or definition.column not in columns:
                continue
            column = definition.column
            source = source_bounds(definition, self.schema.field(column).type)
            files = [f for s in slices for f in self._with_stats(s) if f.path not in out]
            if source is None or not files:
                continue
            records, keys = stats_of(table, index, files, [column])
            if not records.num_rows:
                continue
            found = _bounds(records.combine_chunks(), column, keys[column], source.of, source.beyond)
            kept = _admitted(self.filter, self.schema, [found])
            out |= {f.path: index for f, keep in zip(files, kept, strict=True) if not keep}
        return out

    def _with_stats(self, part: FileSlice) -> list[BaseFile | LogFile]:
        """Files whose statistics are of all that is in them."""
        if self.snapshot.config.version.names_logs_by_own_instant:
            return _files(part)
        # A log that writes append to may have had some before it had statistics.
        return [] if part.base_file is None else [part.base_file]

    def _by_key(self, table: MetadataTable, slices: Sequence[FileSlice]) -> dict[str, str]:
        """Files without any of the record keys that pass, where those are known."""
        if not slices or not self.snapshot.config.populate_meta_fields:
            return {}
        values = fixed_values(RECORD_KEY, self.schema, self.parts)
        if values is None:
            return {}
        keys = values.drop_null().filter(pc.not_equal(values.drop_null(), ""))
        out: dict[str, str] = {}
        if self._asks_key_indexes(table):
            out = _outside(table, slices, keys, RECORD_INDEX)
        if BLOOM_FILTERS in table.partitions:
            out |= _by_blooms(table, [s for s in slices if not _gone(s, out)], keys)
        return out

    def _asks_key_indexes(self, table: MetadataTable) -> bool:
        return RECORD_INDEX in table.partitions and self.snapshot.as_of is None and self.newest

    def _by_value(self, table: MetadataTable, slices: Sequence[FileSlice]) -> dict[str, str]:
        """Files of groups without any key that has a value that passes, by secondary indexes."""
        indexes = [p for p in table.partitions if p.startswith(SECONDARY_INDEX)]
        if (
            not slices
            or not indexes
            or not self._asks_key_indexes(table)
            or self.snapshot.evolution is not None
        ):
            return {}
        columns = secondary_columns(self.snapshot)
        out: dict[str, str] = {}
        for index in indexes:
            column = columns.get(index, "")
            left = [s for s in slices if not _gone(s, out)]
            if not left or column in self.from_path:
                continue
            values = fixed_values(column, self.schema, self.parts)
            if values is None or len(values) > _MOST_VALUES or pa.types.is_date(values.type):
                continue
            if values.null_count:
                continue  # of rows with null the first releases of 1.0 put nothing into the index
            prefixes = [k.secondary_prefix(str(v)) for v in values.to_pylist()]
            found = table.by_prefix(index, prefixes)
            live = [e for b in found.to_batches() for e in r.secondary_entries(b) if not e.is_deleted]
            keys = pa.array(sorted({e.record_key for e in live}), pa.string())
            out |= _outside(table, left, keys, index)
        return out


def stats_of(
    table: MetadataTable, partition: str, files: Sequence[BaseFile | LogFile], columns: Sequence[str]
) -> tuple[pa.Table, dict[str, list[str]]]:
    """Records of statistics that have those of files, and the files' keys by column."""
    folders = {p: k.partition_id(p) for p in {f.partition for f in files}}
    places = [folders[f.partition] + file_name_id(f.name) for f in files]
    ids = {n: name_id(n) for n in columns}
    keys = {n: [column + place for place in places] for n, column in ids.items()}
    if len(files) <= _LOOKED_UP:
        return table.lookup(partition, [key for of in keys.values() for key in of]), keys
    return table.by_prefix(partition, [k.column_stats_prefix(n) for n in columns]), keys


def _with_unbounded(
    storage: Storage, files: Sequence[BaseFile | LogFile], columns: Mapping[str, pa.DataType]
) -> set[str]:
    """Paths of the files that have a row group with values and without bounds of them, by their footers.

    A file whose footer cannot be read is one of them: it is the reader of its rows who says what is wrong with it.
    """

    def lacks(file: BaseFile | LogFile) -> bool:
        if not file.path.endswith(PARQUET):
            return True
        try:
            groups = read_row_groups(storage, file.path, columns)
        except (MissingFileError, CorruptFileError, UnsupportedError):
            return True
        chunks = [c for g in groups for c in g.columns.items()]
        return any(c.nulls != c.num_values and c.bounds(columns[name]) is None for name, c in chunks)

    lacking = side_by_side(lacks, files, THREADS, "hudi-footers")
    return {f.path for f, lacks_bounds in zip(files, lacking, strict=True) if lacks_bounds}


def admitted(
    filter: pc.Expression,
    schema: pa.Schema,
    records: pa.Table,
    keys: Mapping[str, Sequence[str]],
    *,
    whole: bool = False,
) -> list[bool]:
    """Whether each file or partition may have rows that pass a filter.

    Args:
        schema: of the rows.
        records: of `column_stats` or `partition_stats`.
        keys: of the files or partitions, equally many for each column that may decide.
        whole: whether bounds that may be those of some of the values only (`may_lack_values`) decide nothing.
    """
    count = len(next(iter(keys.values()), ()))
    if not records.num_rows or not count:
        return [True] * count
    rows = records.combine_chunks()
    columns = [bounds_of(rows, name, own, schema.field(name).type, whole=whole) for name, own in keys.items()]
    return _admitted(filter, schema, columns)


def bounds_of(
    rows: pa.Table, name: str, keys: Sequence[str], kind: pa.DataType, *, whole: bool = False
) -> Bounds:
    """Bounds of a column in the files of these keys; arguments as of `admitted`.

    Args:
        rows: records, in one piece.
        kind: the column's type.
    """
    doubted = partial(r.may_lack_values, type=kind) if whole else None
    return _bounds(rows, name, keys, partial(r.bounds, type=kind), doubted=doubted)


def _admitted(filter: pc.Expression, schema: pa.Schema, columns: Sequence[Bounds]) -> list[bool]:
    """As `admitted`, by bounds."""
    count = len(columns[0].low)
    asked = np.arange(count)
    kept = np.ones(count, dtype=bool)
    if count >= _IN_GROUPS:
        # Bounds of files together, in the order of the first column: few filters need more than some of these groups.
        order = pc.sort_indices(columns[0].low).to_numpy()
        groups = [order[at : at + _GROUP] for at in range(0, count, _GROUP)]
        grouped = [c.grouped(order) for c in columns]
        may = _may_pass(filter, schema, grouped, np.arange(len(groups)))
        kept[:] = False
        asked = np.sort(np.concatenate([g for g, m in zip(groups, may, strict=True) if m] or [asked[:0]]))
    kept[asked] = _may_pass(filter, schema, columns, asked)
    return [bool(k) for k in kept]


# So many files are asked for in groups first.
_IN_GROUPS, _GROUP = 512, 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a column in files, or in groups of files.

    Attributes:
        low, high: in the column's type.
        known: whether a file has both.
        nulls: whether it may have nulls.
        beyond: values up to the first one, and from the second one on, may be outside of the bounds; None for none.
    """

    name: str
    low: pa.Array
    high: pa.Array
    known: np.ndarray
    nulls: np.ndarray
    beyond: tuple[pa.Scalar, pa.Scalar] | None = None

    def grouped(self, order: np.ndarray) -> Bounds:
        """Bounds of `_GROUP` files at a time, in an order of them."""
        places = pa.array(order)
        low, high = self.low.take(places), self.high.take(places)
        known, nulls = self.known[order], self.nulls[order]
        starts = range(0, len(order), _GROUP)
        # Not by way of Python, whose dates and times end at the year 9999.
        lows = pa.concat_arrays([pa.repeat(pc.min(low.slice(at, _GROUP)), 1) for at in starts])
        highs = pa.concat_arrays([pa.repeat(pc.max(high.slice(at, _GROUP)), 1) for at in starts])
        whole = np.array([known[at : at + _GROUP].all() for at in starts])
        some = np.array([nulls[at : at + _GROUP].any() for at in starts])
        return Bounds(self.name, lows, highs, whole, some, self.beyond)


def _bounds(
    rows: pa.Table,
    name: str,
    keys: Sequence[str],
    bounds: Callable[[pa.StructArray], tuple[pa.Array, pa.Array]],
    beyond: tuple[pa.Scalar, pa.Scalar] | None = None,
    *,
    doubted: Callable[[pa.StructArray], np.ndarray] | None = None,
) -> Bounds:
    places = pc.index_in(pa.array(keys, pa.string()), rows.column("key").combine_chunks())
    found = rows.column(STATS).combine_chunks().take(places)
    live = pc.fill_null(pc.invert(found.field("isDeleted")), False)
    low, high = bounds(found)
    told = np.asarray(pc.and_(live, low.is_valid())) & np.asarray(places.is_valid())
    if doubted is not None:
        told &= ~doubted(found)
    nulls = np.asarray(pc.not_equal(pc.fill_null(found.field("nullCount"), -1), 0))
    return Bounds(name, low, high, told, nulls, beyond)


def _may_pass(
    filter: pc.Expression, schema: pa.Schema, columns: Sequence[Bounds], asked: np.ndarray
) -> np.ndarray:
    """Mask of those asked for that may have rows that pass."""
    kept = np.zeros(len(asked), dtype=bool)
    numbers: list[int] = []
    guarantees: list[pc.Expression | None] = []
    for number, n in enumerate(asked.tolist()):
        cases = [
            _cases(c.name, c.low[n], c.high[n], c.beyond, has_nulls=bool(c.nulls[n]))
            for c in columns
            if c.known[n]
        ]
        if not cases:
            kept[number] = True
            continue
        for chosen in itertools.product(*cases):
            numbers.append(number)
            guarantees.append(all_of(list(itertools.chain(*chosen))))
    for number, may in zip(numbers, may_match(filter, guarantees, schema), strict=True):
        kept[number] |= may
    return kept


def _files(part: FileSlice) -> list[BaseFile | LogFile]:
    base: list[BaseFile | LogFile] = [] if part.base_file is None else [part.base_file]
    return [*base, *part.log_files]


def _gone(part: FileSlice, skipped: Collection[str]) -> bool:
    """Whether all files of a slice are ruled out."""
    return all(f.path in skipped for f in _files(part))


def _cases(
    name: str,
    low: pa.Scalar,
    high: pa.Scalar,
    beyond: tuple[pa.Scalar, pa.Scalar] | None = None,
    *,
    has_nulls: bool,
) -> list[list[pc.Expression]]:
    """Guarantees of a column's bounds, of which one holds for each row.

    Bounds leave NaN out, which Arrow compares with nothing, and which Spark takes for more than infinity.
    """
    between = within(name, low, high, has_nulls=has_nulls)
    if beyond is not None:
        return [between, [pc.field(name) <= beyond[0]], [pc.field(name) >= beyond[1]]]
    if not pa.types.is_floating(low.type):
        return [between]
    return [between, *([equals(name, pa.scalar(v, low.type))] for v in (math.nan, math.inf))]


def _outside(table: MetadataTable, slices: Sequence[FileSlice], keys: pa.Array, named: str) -> dict[str, str]:
    """Files of groups that the record index has none of the keys in.

    Args:
        named: the index that the keys come from.
    """
    found = located(table.lookup(RECORD_INDEX, keys)).by_key()
    wanted = set(found.values())
    if not table.is_current():
        return {}
    written = table.snapshot.written()
    replaced = written.replaced.keys() - written.newest.keys()
    strange = next((key for key, group in found.items() if group in replaced), None)
    if strange is not None:
        raise CorruptFileError(
            f"the record index has the key {strange!r} in {found[strange][1]}, which was replaced",
            table=table.storage.uri,
            remedy="read with hoodie.metadata.enable=false; `hudi verify` says what else is wrong.",
        )
    return {f.path: named for s in slices if (s.partition, s.file_id) not in wanted for f in _files(s)}


def _by_blooms(table: MetadataTable, slices: Sequence[FileSlice], keys: pa.Array) -> dict[str, str]:
    """Base files whose bloom filters have none of the keys."""
    files = [s.base_file for s in slices if s.base_file is not None]
    if not files or len(files) > _MOST_BLOOMS:
        return {}
    paths = {k.bloom_filter_key(f.partition, f.name): f.path for f in files}
    probe = Probe(keys)
    out = {}
    for batch in table.lookup(BLOOM_FILTERS, list(paths)).to_batches():
        for found in r.bloom_filters(batch):
            if found.is_deleted or not found.text:
                continue
            text = filter_text(memoryview(found.text), found.type_code or None)
            if not probe.rows or not len(probe.might_be_in(text)):
                out[paths[found.key]] = BLOOM_FILTERS
    return out


def _unusable(snapshot: TableSnapshot, error: HudiError) -> str:
    return (
        f"no file is left out by the indexes of {snapshot.storage.uri}, because its metadata table cannot be used: "
        f"{error}"
    )
