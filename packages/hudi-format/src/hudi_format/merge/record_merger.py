"""Record merger: combines records of one key, and decides against stored rows.

Everything is decided on keys, ordering values and marks of deletion; then each column is gathered once from
where its values come from.  No row is touched in Python.

Rows are positions, counted from 0 over all chunks of a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import MemoryLimit, gather, is_large, keep
from hudi_format.errors import SchemaError
from hudi_format.merge import _keymerge
from hudi_format.merge.key_index import key_groups
from hudi_format.merge.ordering import OrderingValues, ordering_values
from hudi_format.merge.overlay import overlay
from hudi_format.merge.partial_update import has_mask, has_name, is_has
from hudi_format.merge.payloads import IS_DELETED, Gap, MergeRule, Order, Unavailable
from hudi_format.schema.meta_fields import META_COLUMNS

# Values that say nothing: where the record that wins has one, the other record's value stays.
#
# That is null, unless the merge says otherwise: the text that Debezium sends for a value that it does not have, or the
# default of the column in the table's schema.

Column: TypeAlias = pa.Array | pa.ChunkedArray


def kept(column: Column, gap: Gap) -> np.ndarray | None:
    """Mask of values that count and are not filled (bool); None where all count.

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
    """Mask of empty lists or maps; null is not empty."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    none = [np.zeros(0, dtype=bool)]
    return np.concatenate(none + [(np.diff(c.offsets) == 0) & np.asarray(c.is_valid()) for c in chunks])


def _turned(filled: np.ndarray) -> np.ndarray | None:
    return ~filled if filled.any() else None


# What a record is; the numbers are those of the kernel.
DATA, DATA_DELETED, DATA_FLAG_NULL, DELETE, DELETE_DEFAULT = range(5)

_TAKE, _KEEP, _TAKE_FILL, _KEEP_FILL = range(4)


def deletes_of(kinds: np.ndarray) -> np.ndarray:
    """Mask of deletes (bool): records that are marked so, and entries of delete blocks."""
    mask: np.ndarray = (kinds == DATA_DELETED) | (kinds >= DELETE)
    return mask


@dataclass(frozen=True, slots=True)
class Combined:
    """One record per key.

    Attributes:
        rows: which row stands for each key, ascending (int64).
        kinds: what it is (DATA, DATA_DELETED, DELETE ...), one per row of `rows` (uint8).
    """

    rows: np.ndarray
    kinds: np.ndarray
    _groups: np.ndarray
    _actions: np.ndarray
    _heads: np.ndarray  # the group of each of `rows`
    _filled: bool
    _rule: MergeRule

    def take(self, rows: pa.Table, limit: MemoryLimit | None = None) -> pa.Table:
        """The combined records' rows, from a table with the same rows.

        Args:
            limit: where `rows` are more than it lets hold, the records are kept on disk.

        Where a rule fills what the winner lacks, a column's value may come from an earlier row, and meta columns are
        those of the last record that counted, or of the winner as the rule says.
        """
        if not self._filled:
            return rows if len(self.rows) == rows.num_rows else gather(rows, self.rows, limit)
        # One column is made at a time, and put away.
        away = limit if is_large(rows, limit) else None
        plain = pa.array(self.rows)
        source = np.empty(len(self._groups), dtype=np.int64)
        found: dict[str, pa.ChunkedArray] = {}
        for name in rows.column_names:
            if is_has(name):
                continue
            column = rows.column(name)
            meta = name in META_COLUMNS
            latest = meta and not self._rule.meta_of_winner
            has = has_mask(rows, name)
            if self._rule.fill_within and not meta:
                has = _both(has, kept(column, self._rule.gap(name)))
            at = plain
            if meta or has is not None:
                valid = None if has is None else has.astype(np.uint8)
                _keymerge.fold_column(self._groups, self._actions, valid, latest, source)
                at = pa.array(source[self._heads])
            found[name] = _put_away(column.take(at), away)
            if has_name(name) in rows.schema.names:
                found[has_name(name)] = rows.column(has_name(name)).take(at)
        return pa.table([found[n] for n in rows.column_names], schema=rows.schema)


def _put_away(column: pa.ChunkedArray, limit: MemoryLimit | None) -> pa.ChunkedArray:
    if limit is None:
        return column
    one = pa.table([column], names=[""])
    return keep([one], one.schema, limit).column(0)


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    return other if one is None else one if other is None else one & other


def combine(
    keys: Column,
    rule: MergeRule,
    *,
    ordering: Column | OrderingValues | None = None,
    kinds: np.ndarray | None = None,
    logged: bool = False,
    partial: bool = False,
) -> Combined:
    """One record per key, from records in order of arrival.

    Args:
        keys: record keys; rows without one are dropped.
        ordering: per row, the ordering value; null comes before all others.  None: the later record wins.
        kinds: per row, what it is; None: all are DATA.  DELETE and DELETE_DEFAULT are entries of delete
            blocks, with an ordering value and without (the number 0).
        logged: the rows are of log blocks, with meta columns, rather than of a write's input.
        partial: some rows lack columns, which `hudi_format.merge.partial_update` marks.

    Raises:
        SchemaError: an ordering column without an order.
    """
    groups = key_groups(keys)
    n = len(groups)
    if ordering is None:
        values = OrderingValues(None, None, None)
    elif isinstance(ordering, OrderingValues):
        values = ordering
    else:
        (values,) = ordering_values(ordering)
    how = rule.within if ordering is not None else Order.LATER
    fill = rule.fill_within or partial
    kinds = np.zeros(n, dtype=np.uint8) if kinds is None else np.ascontiguousarray(kinds, dtype=np.uint8)
    state = np.empty(n, dtype=np.int64)
    state_kind = np.empty(n, dtype=np.uint8)
    actions = np.empty(n, dtype=np.uint8)
    _keymerge.fold(
        groups, kinds, values.numbers, values.text, values.valid, int(how), fill, logged,
        rule.tombstones_compare, state, state_kind, actions,
    )  # fmt: skip
    if not rule.late_fills and not partial:
        actions[actions == _KEEP_FILL] = _KEEP
    heads = np.flatnonzero(state >= 0)
    order = np.argsort(state[heads], kind="stable")
    heads = heads[order]
    filled = fill and bool((actions >= _TAKE_FILL).any())
    return Combined(state[heads], state_kind[heads], groups, actions, heads, filled, rule)


@dataclass(frozen=True, slots=True)
class Decision:
    """Decisions for stored rows.

    Attributes:
        take: per stored row, the incoming row that it meets, -1 where it stays as it is (int64).
        gone: per stored row, whether it is deleted; None where none is.
        stored_wins: per stored row, whether it keeps its values and only has nulls filled; None where none
            does.
    """

    take: np.ndarray
    gone: np.ndarray | None
    stored_wins: np.ndarray | None


def decide(
    found: np.ndarray,
    rule: MergeRule,
    *,
    stored_ordering: Column | None = None,
    ordering: Column | None = None,
    kinds: np.ndarray | None = None,
) -> Decision:
    """Decisions for stored rows that meet the incoming record of their key.

    Args:
        found: per stored row, the incoming record with its key, -1 for none.
        stored_ordering, ordering: ordering values of the stored rows and of the incoming records; either
            None: the incoming record always wins.
        kinds: of the incoming records; None: all are DATA.

    Raises:
        SchemaError: ordering columns that do not compare.
    """
    n = len(found)
    deletes = None
    if kinds is not None:
        kinds = np.asarray(kinds, dtype=np.uint8)
        deletes = deletes_of(kinds)
    stays = None
    if rule.against_stored != Order.LATER and stored_ordering is not None and ordering is not None:
        stays = _stored_is_newer(found, rule.against_stored, stored_ordering, ordering)
        if rule.against_stored == Order.GREATEST_FIRST and rule.tombstones_compare and kinds is not None:
            # The payload keeps the stored row where both are equal; a delete is not the payload's to decide.
            entries = (found >= 0) & (kinds[np.maximum(found, 0)] == DELETE)
            stays[entries] = _stored_is_newer(found, Order.GREATEST, stored_ordering, ordering)[entries]
    take = np.asarray(found, dtype=np.int64)
    gone = None
    if deletes is not None and deletes.any():
        gone = (take >= 0) & deletes[np.maximum(take, 0)]
        if stays is not None and kinds is not None:
            # Deletes that are compared at all: marked rows under some payloads, entries of delete blocks in
            # tables of version 8 and later, unless they have no ordering value.
            kind = kinds[np.maximum(take, 0)]
            compared = (kind == DATA_DELETED) & rule.late_delete_loses
            if rule.tombstones_compare:
                compared |= kind == DELETE
            gone &= ~(stays & compared)
            late = stays & compared
            take = np.where(late, -1, take)
        gone = gone if gone.any() else None
    if stays is not None and rule.against_stored != Order.LATER_DATA and stays.any():
        stays = stays & (take >= 0)
        if gone is not None:
            stays &= ~gone
        if rule.fill_stored and rule.late_fills:
            return Decision(take, gone, stays if stays.any() else None)
        take = np.where(stays, np.int64(-1), take)
    assert len(take) == n
    return Decision(take, gone, None)


def _stored_is_newer(found: np.ndarray, how: Order, stored_ordering: Column, ordering: Column) -> np.ndarray:
    """Mask of stored rows newer than their incoming record; a null ordering value never wins."""
    old, new = ordering_values(stored_ordering, ordering)
    hit = np.flatnonzero(found >= 0)
    out = np.zeros(len(found), dtype=bool)
    if not len(hit):
        return out
    take = np.ascontiguousarray(found, dtype=np.int64).copy()
    if new.valid is not None:  # an incoming null is older than any value
        null = new.valid[found[hit]] == 0
        out[hit[null]] = True if old.valid is None else old.valid[hit[null]] != 0
        take[hit[null]] = -1
        hit = hit[~null]
    _keymerge.keep_newer(
        take,
        old.numbers,
        old.text,
        old.valid,
        new.numbers,
        new.text,
        len(ordering),
        how == Order.GREATEST_FIRST,
    )
    out[hit] = take[hit] < 0
    return out


def not_older(stored: Column, incoming: Column) -> pa.Array:
    """Mask of pairs whose later record's ordering value is not smaller; null is smallest."""
    pairs = np.arange(len(stored))
    return pa.array(~_stored_is_newer(pairs, Order.GREATEST, stored, incoming))


def merged_column(
    stored: Column,
    incoming: Column,
    take: np.ndarray,
    *,
    fill: bool = False,
    stored_wins: np.ndarray | None = None,
    has: np.ndarray | None = None,
    gap: Gap = None,
    hits: np.ndarray | None = None,
) -> pa.Array:
    """The stored column with incoming values where `take` names a row.

    Args:
        stored, incoming: of one type, which may be in dictionaries; the result is in none.
        take: per stored value, the position in `incoming`, or -1.
        hits: where `take` is no -1, ascending (int64); for a caller that merges many columns.
        fill: nulls of the winner, or what `gap` says, are filled from the other side.
        stored_wins: per stored value, whether the stored one is the winner, which then only has nulls filled.
        has: per incoming value, whether there is one (bool); None where there are all.
        gap: what is filled, rather than nulls.

    Raises:
        SchemaError: columns of two types.
    """
    old, new = one_array(stored), one_array(incoming)
    kind = old.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        if fill or pa.types.is_nested(kind):  # which looks at values
            old = old.cast(kind)
    if pa.types.is_dictionary(new.type):
        new = new.cast(new.type.value_type)
    if kind != new.type:
        raise SchemaError(f"a stored value of type {kind} meets a new one of type {new.type}")
    rows = np.flatnonzero(take >= 0) if hits is None else hits
    if fill and len(rows):
        has = _both(has, kept(new, gap))
    if has is not None:
        rows = rows[has[take[rows]]]
    if stored_wins is not None:
        stays = kept(old, gap) if fill else None
        rows = rows[~(stored_wins if stays is None else stored_wins & stays)[rows]]
    source = np.asarray(take, dtype=np.int64)[rows]
    if not pa.types.is_nested(kind):
        return overlay(old, new, rows, source)
    if not len(rows):
        return old
    # Arrow replaces no nested values in place: gather from old and new laid end to end.
    places = np.arange(len(old), dtype=np.int64)
    places[rows] = source + len(old)
    return pa.concat_arrays([old, new]).take(pa.array(places))


def deleted_kinds(rows: pa.Table, rule: MergeRule, field: str = "", marker: str = "") -> np.ndarray | None:
    """Kind of each row: DATA, DATA_DELETED or DATA_FLAG_NULL (uint8); None where all are DATA.

    Args:
        field, marker: `hoodie.payload.delete.field` and `.marker`; "" where not given.

    Raises:
        SchemaError: `_hoodie_is_deleted` is not boolean.
    """
    names = rows.schema.names
    if field and rule.delete_fields:
        mask = _marked(rows, field, marker)
        return mask.astype(np.uint8) if mask is not None and mask.any() else None
    out: np.ndarray | None = None
    if IS_DELETED in names:
        flags = rows.column(IS_DELETED)
        if not pa.types.is_boolean(flags.type):
            raise SchemaError(f"column {IS_DELETED} must be boolean, not {flags.type}", column=IS_DELETED)
        out = pc.fill_null(flags, False).to_numpy().astype(np.uint8)
        if flags.null_count and rule.fill_within:
            out[~flags.is_valid().to_numpy()] = DATA_FLAG_NULL
    if rule.delete_field:
        mask = _marked(rows, rule.delete_field, rule.delete_marker, any_case=not rule.exact_marker)
        if mask is not None:
            out = mask.astype(np.uint8) if out is None else np.where(mask, np.uint8(DATA_DELETED), out)
    return out if out is not None and out.any() else None


def event_times(column: Column) -> pa.Array | None:
    """Event times in milliseconds (int64, null for none); None for types without one.

    As Apache Hudi reads them: whole numbers, or text, of ten digits are seconds and of thirteen milliseconds.
    """
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    text = one_array(column).cast(pa.string())
    seconds, millis = (pc.match_substring_regex(text, f"^[0-9]{{{n}}}$") for n in (10, 13))
    number = pc.if_else(pc.or_(seconds, millis), text, None).cast(pa.int64())
    return pc.if_else(seconds, pc.multiply(number, 1000), number)


def _marked(rows: pa.Table, field: str, marker: str, *, any_case: bool = False) -> np.ndarray | None:
    if field not in rows.schema.names:
        return None
    column = rows.column(field)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return None
    text = column.cast(pa.string())
    if any_case:
        text, marker = pc.utf8_lower(text), marker.lower()
    out: np.ndarray = pc.fill_null(pc.equal(text, marker), False).to_numpy()
    return out
