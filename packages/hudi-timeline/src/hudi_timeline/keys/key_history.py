"""Key history: each commit that touched a key, with the row before and after it.

    active commits -> file groups that each touched -> their slices before and after it -> rows with the keys -> changes

No log of changes is needed: older file slices, and log blocks up to each commit, say what a row was.  Where the cleaner
has taken a slice, or the archive a commit, what came before is known by meta columns alone: a row that is still in a
file was written by the commit whose time it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import MissingFileError
from hudi_format.file_slice.reader import read_file_slice
from hudi_format.log.corruption import CommittedRange
from hudi_format.model import FileSlice
from hudi_format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.footer_index import BloomIndex
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.file_system_view.file_slice_history import FileHistory, latest_before, slice_named
from hudi_timeline.file_system_view.file_slices import newest_slices_of, pending_compactions
from hudi_timeline.file_system_view.partition_values import partition_columns, path_values
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, is_base_file, open_snapshot
from hudi_timeline.file_system_view.table_schema import with_history
from hudi_timeline.keys.keyed_slices import Writers, merge_of
from hudi_timeline.options.read_config import parse_read_options
from hudi_timeline.reading.merged_query import merged_schema
from hudi_timeline.reading.point_lookup import Keys, key_texts, may_hold, paths_of
from hudi_timeline.reading.snapshot_query import START
from hudi_timeline.timeline.archived_timeline import archived_instants
from hudi_timeline.timeline.instant import WRITE_ACTIONS, Instant

INSERT, UPDATE, DELETE = "i", "u", "d"

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = dict[str, list[Row]]
"""Rows of a slice by key."""


@dataclass(frozen=True, slots=True)
class KeyHistory(HtmlView):
    """History of some keys.

    Attributes:
        changes: oldest first: `key`, `partition`, `instant` and `operation` of the commit, `change` (i, u, d; null of a
            row of which only its being written is known), and the rows `before` and `after` it as structs.
        complete_from: the instant from which on every change is there with both rows: "000" where the table's whole
            history is, None where the newest commit's is not.
    """

    changes: pa.Table
    complete_from: str | None


def key_history(
    storage: Storage,
    options: Mapping[str, str],
    keys: Keys,
    partitions: str | Sequence[str] | None = None,
    *,
    commits: CommitCache | None = None,
) -> KeyHistory:
    """Changes of keys, as of `HudiTable.key_history`.

    Raises:
        MissingFileError, CorruptFileError: a file of a retained slice is not there, or damaged.
        UnsupportedError: logs whose merge is not built here, or a table without keys.
        RecordKeyError, SchemaError, TypeError: what is given is no key of the table.
    """
    asked = parse_read_options(options)
    chosen = None if partitions is None else paths_of(partitions)
    gone: set[str] = set()
    while True:
        snapshot = with_history(open_snapshot(storage, commits=commits), asked.schema_on_read)
        wanted = key_texts(keys, snapshot.config, snapshot.schema).drop_null()
        try:
            return _Telling(snapshot, wanted, chosen, asked.merge).told()
        except MissingFileError as e:
            # A cleaning or rollback since the listing: looked at again, the file is listed no more.  Every such file is
            # met once, and one that is met again is missing.
            if e.file in gone:
                raise
            gone.add(e.file)


@dataclass
class _Telling:
    """State of the telling.

    Attributes:
        found: changes so far.
        states: rows of each file group after the commit that was looked at last; None where that is not known.
        gaps: indexes of the commits at which something is not known.
    """

    snapshot: TableSnapshot
    wanted: pa.Array
    partitions: set[str] | None
    merge: str | None
    found: list[Row] = field(default_factory=list)
    states: dict[Group, Rows | None] = field(default_factory=dict)
    gaps: set[int] = field(default_factory=set)
    _listed: set[tuple[str, str, str]] = field(default_factory=set)

    def told(self) -> KeyHistory:
        snapshot = self.snapshot
        config = snapshot.config
        logs = snapshot.has_merged_states
        merge_of(snapshot, self.merge, logs=logs)  # what cannot be told is refused before anything is read
        self._logs, self._writers = logs, Writers(snapshot)
        self._schema = merged_schema(config, snapshot.schema)
        self._index = BloomIndex(self.wanted) if len(self.wanted) else None
        listed = [p for p in snapshot.listing().files if self.partitions is None or p in self.partitions]
        self._history = FileHistory(snapshot, listed, logs=logs)
        self._pending = pending_compactions(snapshot) if logs else {}
        self._newest = {(s.partition, s.file_id): s for s in newest_slices_of(snapshot, listed)}
        instants = list(snapshot.instants)
        if config.version.has_completion_times:
            instants.sort(key=lambda i: i.completion)
        if self._index is not None:
            for number, (instant, after) in enumerate(zip_longest(instants, instants[1:])):
                self._commit(number, instant, after.time if after else None)
            self._left()
        return KeyHistory(self._table(), self._complete_from([i.time for i in instants]))

    def _complete_from(self, instants: Sequence[str]) -> str | None:
        if self.gaps:
            later = max(self.gaps) + 1
            return instants[later] if later < len(instants) else None
        archived = archived_instants(self.snapshot.storage, self.snapshot.config)
        if any(i.action in WRITE_ACTIONS for i in archived):
            return instants[0] if instants else None
        return START

    def _commit(self, number: int, instant: Instant, following: str | None) -> None:
        """Changes of one commit."""
        commit, time = self.snapshot.commits.get(instant), instant.time
        stats: dict[Group, list[tuple[str, str]]] = {}
        for stat in commit.stats:
            if stat.file_id and stat.path:
                stats.setdefault((stat.partition, stat.file_id), []).append((stat.path, stat.prev_commit))
        gone = commit.replaced_groups
        before, after, blind = _Pool(), _Pool(), False
        for group in sorted({*stats, *gone}):
            if self.partitions is not None and group[0] not in self.partitions:
                continue
            previous = self._before(group, time, stats.get(group))
            if group in gone:
                rows: Rows | None = {}
            elif any(p not in self._history.sizes for p, _ in stats[group]):
                rows = None  # cleaned since
            elif previous is None and not any(is_base_file(p) for p, _ in stats[group]):
                rows = None  # logs of a slice whose base file is gone
            else:
                rows = self._after(group, time, following)
            if previous is None or rows is None:
                self.gaps.add(number)
                blind = True
            self.states[group] = rows
            before.add(group[0], previous)
            after.add(group[0], rows)
        for key in sorted({*before.rows, *after.rows}):
            self._changed(
                key, before.rows.get(key, []), after.rows.get(key, []), time, commit.operation, blind
            )

    def _before(self, group: Group, time: str, stats: Sequence[tuple[str, str]] | None) -> Rows | None:
        """Rows of a group before a commit; None where they are not known."""
        if group in self.states:
            return self.states[group]
        begun = slice_named(time, [p for p, _ in stats or ()])
        slice_ = self._history.before(group, time, begun) if stats else self._history.replaced(group, time)
        expected = {p for _, p in stats or ()}
        if stats is not None and expected == {"null"}:
            return {}
        if slice_ is None:
            return None
        if expected == {time}:  # from table version 8 on: the slice has log files only
            if self._history.lost(group, time, slice_):
                return None
        elif stats is not None and not expected & {slice_.base_instant, self._pending.get(group)}:
            return None  # an older one than the commit stood on
        rows = self._rows(slice_, latest_before(time))
        self._known(group[0], rows, slice_)
        return rows

    def _after(self, group: Group, time: str, following: str | None) -> Rows:
        slice_ = self._newest.get(group) if following is None else self._history.before(group, following)
        if slice_ is None:
            return {}
        return self._rows(slice_, time)

    def _left(self) -> None:
        """Rows of groups that no active commit touched, or whose rows after the last one that did are not known."""
        for group, one in sorted(self._newest.items()):
            if self.states.get(group) is None:
                self._known(group[0], self._rows(one, None), one)

    def _known(self, partition: str, rows: Rows, one: FileSlice) -> None:
        """Rows of which only their being written is known, by commits before those that are looked at."""
        for key, of in rows.items():
            for row in of:
                time = row.get(COMMIT_TIME) or one.base_instant
                self._add(key, partition, time, self._writers.operation(time), None, None, row)

    def _changed(
        self, key: str, before: list[tuple[str, Row]], after: list[tuple[str, Row]], time: str, operation: str,
        blind: bool,
    ) -> None:  # fmt: skip
        """Changes of one key in one commit: rows that are on one side only."""
        old = [b for b in before if not any(_same(b, a) for a in after)]
        new = [a for a in after if not any(_same(b, a) for b in before)]
        for was, now in zip_longest(old, new):
            if was is None and blind:
                # Whether there was a row, and whether this commit wrote the one there is, its time alone can say.
                written = now[1].get(COMMIT_TIME) or time
                name = self._writers.operation(written)
                self._add(key, now[0], written, name, None, None, now[1])
            elif now is None and blind:
                continue  # it may be in a file that is gone
            else:
                change = UPDATE if was and now else INSERT if now else DELETE
                row_before, row_after = was and was[1], now and now[1]
                self._add(key, (now or was)[0], time, operation, change, row_before, row_after)

    def _add(
        self, key: str, partition: str, time: str, operation: str | None, change: str | None, before: Row | None,
        after: Row | None,
    ) -> None:  # fmt: skip
        if after is not None and COMMIT_SEQNO in after:
            same = (key, partition, str(after[COMMIT_SEQNO]))
            if change is None and same in self._listed:
                return
            self._listed.add(same)
        self.found.append(
            {"key": key, "partition": partition, "instant": time, "operation": operation, "change": change,
             "before": before, "after": after}
        )  # fmt: skip

    def _rows(self, one: FileSlice, until: str | None) -> Rows:
        """Rows of a slice with the keys.

        Args:
            until: blocks of later commits do not count; None for all.  Log files of one commit each are chosen before.
        """
        storage, snapshot = self.snapshot.storage, self.snapshot
        base = one.base_file
        assert self._index is not None
        told_by_footer = snapshot.config.populate_meta_fields and not one.log_files
        footer = base.path if base is not None and told_by_footer and base.path.endswith(".parquet") else ""
        if footer and not may_hold(storage, footer, self._index):
            return {}
        at = replace(snapshot, as_of=until) if until and self._history.shared(one) else snapshot
        merge = merge_of(at, self.merge, logs=self._logs)
        by_key = None if merge.key_spec else pc.field(RECORD_KEY).isin(self.wanted)
        committed: Mapping[str, tuple[CommittedRange, ...]] = self._history.committed
        dropped = self._dropped(one.partition)
        out: Rows = {}
        for batch in read_file_slice(storage, one, merge, self._schema, filter=by_key, committed=committed):
            rows = pa.Table.from_batches([batch])
            keys = merge.keys(rows).cast(pa.string())
            there = pc.is_in(keys, self.wanted)
            for key, row in zip(keys.filter(there).to_pylist(), _plain(rows.filter(there)), strict=True):
                out.setdefault(key, []).append({**row, **dropped})
        return out

    def _dropped(self, partition: str) -> Row:
        """Values of the partition columns that the files lack, as its path has them in the column's own type."""
        config, schema = self.snapshot.config, self.snapshot.schema
        if not config.drop_partition_columns:
            return {}
        columns = partition_columns(config, schema, from_path=True)
        values = path_values([partition], columns, uri=self.snapshot.storage.uri).table.remove_column(
            0
        )  # the path
        types = {f.name: f.type for f in self._schema}
        same = [f.name for f in values.schema if types.get(f.name) == f.type]
        return {name: values.column(name)[0].as_py() for name in same}

    def _table(self) -> pa.Table:
        image = pa.struct([f for f in self._schema if f.name not in META_COLUMNS])
        schema = pa.schema(
            [*((n, pa.string()) for n in ("key", "partition", "instant", "operation", "change")),
             ("before", image), ("after", image)]
        )  # fmt: skip
        order = sorted(self.found, key=lambda r: (r["key"], r["instant"]))
        return pa.Table.from_pylist([{**r, **dict(_images(r))} for r in order], schema)


def _images(change: Row) -> Iterator[tuple[str, Row | None]]:
    for side in ("before", "after"):
        row = change[side]
        yield side, None if row is None else {k: v for k, v in row.items() if k not in META_COLUMNS}


def _plain(rows: pa.Table) -> Iterator[Row]:
    """Rows as dicts, in which values that Python does not have, such as the year 10000, stay Arrow's."""
    columns: list[Iterable[object]] = []
    for column in rows.columns:
        try:
            columns.append(column.to_pylist())
        except (OverflowError, ValueError):
            columns.append([_python_value(v) for v in column])
    return (dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True))


def _python_value(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar


class _Pool:
    """Rows of several file groups by key, with their partitions."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[str, Row]]] = {}

    def add(self, partition: str, rows: Rows | None) -> None:
        for key, of in (rows or {}).items():
            self.rows.setdefault(key, []).extend((partition, row) for row in of)


def _same(one: tuple[str, Row], other: tuple[str, Row]) -> bool:
    """Whether two rows are one that nobody changed, wherever its file group is."""
    if one[0] != other[0]:
        return False
    # A merge of parts of a record, or one by the greater ordering value, may leave the times of an older record.
    return all(_equal(value, other[1][name]) for name, value in one[1].items() if name != FILE_NAME)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, pa.Scalar) or isinstance(other, pa.Scalar):  # which have no texts
        return type(one) is type(other) and bool(one == other)
    return repr(one) == repr(other)  # NaN is itself
