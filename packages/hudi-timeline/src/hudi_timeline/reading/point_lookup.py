"""Rows by record key; an index of keys, or footers, rule out files without reading them.

What the record index says is looked at in the file that it names: a key that is not there, or that the index does not
have, is looked for as if there were no index.  In a file the keys are read first, and then only pages with their rows.

Source: spec "Base files", section 3: a file can be left out if a key is outside its key range or its bloom
filter says no.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_format._checks import text_list
from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.input import refuse_closed
from hudi_format.errors import HudiError, StaleSnapshotError
from hudi_format.file_slice.keyed_file import WantedKeys
from hudi_format.fork_safe import ProcessLock
from hudi_format.keygen.record_keys import nested_column, record_keys
from hudi_format.parquet.footer import read_entries
from hudi_format.parquet.pages import PagedFile
from hudi_format.parquet.row_group_filter import all_of
from hudi_format.schema.casts import convert, stored_leaf, unwrapped
from hudi_format.schema.evolution import as_stored, conform
from hudi_format.schema.exact import Exact
from hudi_format.schema.fit import fit, in_table_types, stored_types
from hudi_format.schema.input_rows import as_reader
from hudi_format.schema.iso_texts import dates_of, moments_of
from hudi_format.schema.meta_fields import PARTITION_PATH, RECORD_KEY, without_meta
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.footer_index import MAYBE, BloomIndex
from hudi_index.metadata_table.keys import RECORD_INDEX
from hudi_index.record_index import Located, OpenedRecordIndex, RecordIndex
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.outlived_snapshot import looked_again
from hudi_timeline.file_system_view.snapshot import CommitCache, TableSnapshot, open_snapshot
from hudi_timeline.metadata_table.reader import UNUSABLE, MetadataTable, is_current
from hudi_timeline.options.read_config import parse_read_options
from hudi_timeline.options.read_options import DATA_SKIPPING
from hudi_timeline.reading.queries import in_order
from hudi_timeline.reading.scan import Scan
from hudi_timeline.reading.task import ReadTask
from hudi_timeline.table_config import TableConfig

Keys: TypeAlias = str | Sequence[Any] | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch

THREADS = 8
"""Files that are read side by side; on a local disk as many as there are processors."""
KEPT_CHUNKS = 20_000
"""Column chunks of files whose layouts are kept."""
# Of so many keys for each file group the index is asked for a few first: where these are in most of the file groups,
# it would take a block for every key to say that nearly all files are to be read.
_MANY_PER_GROUP, _ASKED_PER_GROUP, _MOST_GROUPS = 8, 2, 0.75


def newest_rows(
    scan_of: Callable[..., Scan],
    storage: Storage,
    keys: Keys,
    partitions: Sequence[str] | None = None,
    commits: CommitCache | None = None,
    options: Mapping[str, str] | None = None,
    kept: KeptIndex | None = None,
    *,
    meta_columns: bool = True,
) -> pa.Table:
    """Newest rows with these record keys, of a newer snapshot where cleaning removed files.

    Args:
        scan_of: `HudiTable.read`.
        keys: record keys as text, values of the one key column, or rows with the key columns.
        partitions: paths of the partitions to look in; None for all.
        options: of the read; they say whether the record index is asked.
        meta_columns: whether they are given; else all others are in the table's order.
        kept: of the calls on one table with the same options and time; None where nothing is kept.

    Raises:
        MissingColumnError, RecordKeyError: `keys` are rows without key columns, or with a null in one.
        SchemaError: values that the key column does not hold.
        TypeError: keys or partitions that are no texts.
    """
    asked = parse_read_options(options or {})
    by_index = None
    if asked.metadata_enable and asked.data_skipping is not False:
        by_index = kept or KeptIndex()
    if options is not None:
        # The keys that an index does not have are looked for in all files.
        scan_of = partial(scan_of, options={**options, DATA_SKIPPING: "false"})
    if not meta_columns:
        scan_of = partial(_without_meta, scan_of)

    def look() -> pa.Table:
        now = open_snapshot(storage, commits=commits)
        return _look_up(scan_of, now, keys, partitions, by_index)

    rows = looked_again(look)
    return rows if meta_columns else rows.select(without_meta(rows.schema).names)


def _without_meta(scan_of: Callable[..., Scan], **how: Any) -> Scan:
    """The scan in the order of its table's columns, with those meta columns alone that say what was found."""
    scan = scan_of(**how)
    own = {*without_meta(scan.schema).names, RECORD_KEY, PARTITION_PATH}
    return scan.select(in_order([n for n in scan.schema.names if n in own], scan.snapshot.schema))


def _look_up(
    scan_of: Callable[..., Scan],
    now: TableSnapshot,
    keys: Keys,
    partitions: Sequence[str] | None,
    by_index: KeptIndex | None,
) -> pa.Table:
    """Rows as of `newest_rows`.

    Args:
        now: the table.
        by_index: ask the metadata table's record index, where it has a complete one.
    """
    config = now.config
    asked = asked_keys(keys, config, now.schema)
    wanted = asked.texts.drop_null()
    among = None if partitions is None else paths_of(partitions)
    found: list[pa.Table] = []
    if by_index is not None and len(wanted) and config.populate_meta_fields:
        found = by_index.rows(scan_of, now, wanted, among)
        if found and not len(_without(wanted, found)):
            return pa.concat_tables(found)
    find = _finder(scan_of, now, _without(wanted, found))
    if found and _state_of(find.scan.snapshot) != _state_of(now):
        # The table was changed meanwhile: all rows are of one state, and have its columns.
        found, find = [], _finder(scan_of, now, wanted)
    if len(wanted):
        found += find.found(among)
    if config.populate_meta_fields and asked.times is not None:
        found += _by_times(scan_of, find.scan.snapshot, asked.times, found, among)
    return pa.concat_tables(found) if found else find.scan.schema.empty_table()


def _by_times(
    scan_of: Callable[..., Scan],
    now: TableSnapshot,
    times: pa.Table,
    found: Sequence[pa.Table],
    among: set[str] | None,
) -> list[pa.Table]:
    """Rows of keys with timestamps that were not found as microseconds, by the values of their key columns.

    Apache Hudi's bulk_insert, and its other writes with `consistent.logical.timestamp.enabled`, which a table does not
    keep, make keys with timestamps as text by some clock.  The text of another instant may be the same there, so that
    the text does not say which row is meant.

    Raises:
        StaleSnapshotError: the table is not as it was when the others were found.
    """
    storage, config = now.storage, now.config
    left = _without(pc.unique(_made(times, config)), found)
    if not len(left):
        return []
    scan = scan_of()
    if _state_of(scan.snapshot) != _state_of(now):
        raise StaleSnapshotError(
            "the table was changed while keys were looked up", table=storage.uri, remedy="look them up again."
        )
    conditions = []
    for name in config.record_key_fields:
        if name in times.schema.names and times.schema.field(name).type == scan.schema.field(name).type:
            conditions.append(pc.field(name).isin(pc.unique(times.column(name))))
    rows = _finder_by_columns(scan, config, left, all_of(conditions)).found(among)
    # A text that was asked for as it stands may be the time of such a row.
    given = [t.column(RECORD_KEY) for t in found]
    known = pa.chunked_array([c.cast(pa.string()) for g in given for c in g.chunks], pa.string())
    rows = [t.filter(pc.invert(pc.is_in(t.column(RECORD_KEY).cast(pa.string()), known))) for t in rows]
    return [t for t in rows if t.num_rows]


def _looked_at(
    now: TableSnapshot, tasks: Sequence[ReadTask], rows: Callable[[ReadTask], pa.Table | None]
) -> list[pa.Table]:
    """Rows that are found in tasks of a snapshot.

    Raises:
        StaleSnapshotError: a file was cleaned, or its commit undone, since they were planned.
    """
    # Threads that wait for each other's processor cost more of its time.
    threads = min(THREADS, pa.cpu_count()) if now.storage.is_local else THREADS
    with now.of_its_state():
        looked = side_by_side(rows, tasks, threads, "hudi-get")
        return [t for t in looked if t is not None and t.num_rows]


def _without(wanted: pa.Array, found: Sequence[pa.Table]) -> pa.Array:
    """The keys of which no row was found."""
    keys = [c.cast(pa.string()) for t in found for c in t.column(RECORD_KEY).chunks]
    return wanted.filter(pc.invert(pc.is_in(wanted, pa.concat_arrays(keys)))) if keys else wanted


@dataclass(slots=True)
class KeptIndex:
    """Record index and read tasks of one state of a table, kept until the table has another.

    Calls may come from several threads; one at a time asks the index.
    """

    _state: object = None
    _index: OpenedRecordIndex | None = None
    _tasks: dict[tuple[str, str], ReadTask] = field(default_factory=dict)
    _layouts: dict[str, PagedFile] = field(default_factory=dict)
    _lock: ProcessLock = field(default_factory=ProcessLock)

    def rows(
        self, scan_of: Callable[..., Scan], now: TableSnapshot, wanted: pa.Array, among: set[str] | None
    ) -> list[pa.Table]:
        """Rows in the file groups that the record index names; [] where it cannot be used.

        Args:
            now: the table.
            among: partitions to look in; None for all.
        """
        with self._lock.threads:
            try:
                if self._state != (state := _state_of(now)):
                    self._index, self._state, self._layouts = None, None, {}
                    if RECORD_INDEX not in now.config.metadata_partitions:
                        self._tasks, self._state = {}, state
                        return []
                    self._index, self._tasks = _opened(scan_of)
                    # Files that are listed while the table changes may be of a later state.
                    self._state = state if self._state_is(now) else None
                told = None
                if self._index is not None and not self._in_most_files(self._index, wanted, among):
                    told = self._index.locate(wanted)
            except UNUSABLE as e:
                self._state = None
                if is_current(now):
                    warnings.warn(f"{now.storage.uri}: the record index cannot be used: {e}", stacklevel=5)
                return []
            if sum(f.num_chunks for f in self._layouts.values()) > KEPT_CHUNKS:
                self._layouts = {}
            tasks, current, layouts = self._tasks, self._state is not None, self._layouts
        if told is None or not current:
            return []
        groups = [g for g in told.groups if g in tasks and (among is None or g[0] in among)]
        keep = pc.field(RECORD_KEY).isin(wanted)
        keys = WantedKeys(wanted, layouts)
        chosen = [replace(tasks[g], filter=keep, filter_columns=(RECORD_KEY,), keys=keys) for g in groups]
        found = _looked_at(now, chosen, ReadTask.to_table)
        _say_lost(now.storage, told, found, among)
        return found

    def _in_most_files(self, index: OpenedRecordIndex, wanted: pa.Array, among: set[str] | None) -> bool:
        """Whether some of many keys are in most of the file groups, so that looking through these is less work."""
        groups = {g for g in self._tasks if among is None or g[0] in among}
        if not groups or len(wanted) < _MANY_PER_GROUP * len(groups):
            return False
        asked = np.linspace(0, len(wanted) - 1, _ASKED_PER_GROUP * len(groups)).astype(np.int64)
        told = index.locate(wanted.take(pa.array(asked)))
        return len(groups.intersection(told.groups)) >= _MOST_GROUPS * len(groups)

    def _state_is(self, now: TableSnapshot) -> bool:
        return _state_of(open_snapshot(now.storage, commits=now.commits)) == _state_of(now)


def _state_of(snapshot: TableSnapshot) -> object:
    instants = tuple((i.time, i.action, i.state, i.completion) for i in snapshot.timeline.instants)
    return instants, dict(snapshot.config.properties)


def _opened(
    scan_of: Callable[..., Scan],
) -> tuple[OpenedRecordIndex | None, dict[tuple[str, str], ReadTask]]:
    """Record index and read tasks by file group; None where the table has no index for that time."""
    scan = scan_of()
    snapshot = scan.snapshot
    if RECORD_INDEX not in snapshot.config.metadata_partitions or snapshot.as_of is not None:
        return None, {}
    table = MetadataTable.of(snapshot)
    index = RecordIndex(table.storage, table.slices(RECORD_INDEX), table.scope).opened()
    return index, {(t.partition, t.file_id): t for t in _read_tasks(scan)}


def _say_lost(storage: Storage, told: Located, found: Sequence[pa.Table], among: set[str] | None) -> None:
    """Warn of keys that are not in the files that the index names."""
    there = {
        (key, partition)
        for t in found
        for key, partition in zip(
            t.column(RECORD_KEY).to_pylist(), t.column(PARTITION_PATH).to_pylist(), strict=True
        )
    }
    places = zip(told.keys.to_pylist(), (told.groups[n][0] for n in told.group.tolist()), strict=True)
    lost = sorted(key for key, p in places if (among is None or p in among) and (key, p) not in there)
    if lost:
        warnings.warn(
            f"{storage.uri}: the record index names files for {len(lost)} keys that are not in them, such as "
            f"{lost[0]!r}; they are looked for in all files. Run `hudi verify --deep`.",
            stacklevel=6,
        )


@dataclass(frozen=True)
class _Finder:
    """State of a lookup, and the search in a task's rows."""

    scan: Scan
    tasks: list[ReadTask]
    rows: Callable[[ReadTask], pa.Table | None]

    def found(self, among: set[str] | None) -> list[pa.Table]:
        """Rows in some partitions, None for all; errors as of `_looked_at`."""
        tasks = [t for t in self.tasks if among is None or t.partition in among]
        return _looked_at(self.scan.snapshot, tasks, self.rows)


def _finder(scan_of: Callable[..., Scan], now: TableSnapshot, wanted: pa.Array) -> _Finder:
    if now.config.populate_meta_fields:
        return _finder_by_footers(scan_of(filter=pc.field(RECORD_KEY).isin(wanted)), wanted)

    # Virtual keys: the key columns alone say which files to read.
    return _finder_by_columns(scan_of(), now.config, wanted, _typed_condition(now.config, now.schema, wanted))


def _finder_by_columns(
    scan: Scan, config: TableConfig, wanted: pa.Array, condition: pc.Expression | None
) -> _Finder:
    """Search by key columns.

    Args:
        condition: that all wanted rows meet, on key columns; None for none.
    """
    spec = metadata_config.key_spec(config)
    fields = list(dict.fromkeys(f.partition(".")[0] for f in config.record_key_fields))
    of_keys = pa.schema([scan.schema.field(n) for n in fields])

    def rows_of(task: ReadTask) -> pa.Table | None:
        probe = replace(
            task, schema=of_keys, needed=of_keys, filter=condition, filter_columns=tuple(fields)
        ).to_table()
        if not pc.any(pc.is_in(record_keys(probe, spec), wanted)).as_py():
            return None
        every = task.to_table()
        return every.filter(pc.is_in(record_keys(every, spec), wanted))

    return _Finder(scan, _read_tasks(scan), rows_of)


def _finder_by_footers(scan: Scan, wanted: pa.Array) -> _Finder:
    index = BloomIndex(wanted) if len(wanted) else None
    keys = WantedKeys(wanted)

    def rows(task: ReadTask) -> pa.Table | None:
        if index is None:
            return None
        # Footers of ORC files say nothing that can be read here.
        if task.path.endswith(".parquet") and not may_hold(scan.storage, task.path, index):
            if task.logs is None:
                return None
            # The footer says nothing about the keys in a slice's logs; without the base file they are cheap.
            task = replace(task, path="")
        return replace(task, keys=keys).to_table()

    return _Finder(scan, _read_tasks(scan), rows)


def _typed_condition(config: TableConfig, schema: pa.Schema, wanted: pa.Array) -> pc.Expression | None:
    """Filter on a single key column, for row-group statistics; None where there is none."""
    if len(config.record_key_fields) != 1 or config.record_key_fields[0] not in schema.names:
        return None
    name = config.record_key_fields[0]
    kind = schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        return None  # other types have several texts
    try:
        return pc.field(name).isin(wanted.cast(kind))
    except pa.ArrowInvalid:  # a key that is no number is not there, but the others may be
        return None


def _read_tasks(scan: Scan) -> list[ReadTask]:
    return [t for t in scan.plan_files() if isinstance(t, ReadTask)]


def _as_in_table(table: pa.Table, config: TableConfig, schema: pa.Schema, exact: Exact) -> pa.Table:
    """Key columns in the table's types: 1.5 is 1.50 in a table with two digits."""
    roots = dict.fromkeys(name.partition(".")[0] for name in config.record_key_fields)
    table = table.select([n for n in roots if n in table.schema.names])
    # Texts may be keys as `_hoodie_record_key` has them.
    typed = pa.schema([f for f in table.schema if stored_leaf(unwrapped(f.type)) != pa.string()])
    table = fit(table, in_table_types(typed, schema), exact=exact)
    return conform(table, pa.schema([as_stored(f, schema) for f in stored_types(table.schema)]))


def _times_of(texts: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | None:
    """Dates or times that texts say in ISO 8601, null for other texts; None where the key is of another type."""
    read: Callable[[pa.Array], pa.Array]
    if pt.is_date32(kind):
        read = dates_of
    elif pt.is_timestamp(kind):
        read = partial(moments_of, target=kind)
    else:
        return None
    texts = one_array(convert(texts, pa.string(), RECORD_KEY))
    try:
        return read(texts)
    except ValueError:  # other texts among them, which may be keys as they are stored
        return pa.concat_arrays([_time_of(texts.slice(n, 1), read, kind) for n in range(len(texts))])


def _time_of(text: pa.Array, read: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> pa.Array:
    try:
        return read(text)
    except ValueError:
        return pa.nulls(1, kind)


def _with_times(rows: pa.Table, config: TableConfig, schema: pa.Schema) -> pa.Table | None:
    """The rows whose text is all that their dates and times are, with these; None where there are none."""
    there, any_times = pa.repeat(True, rows.num_rows), False
    for name in config.record_key_fields:
        at = rows.schema.get_field_index(name)
        if (
            at < 0
            or schema.get_field_index(name) < 0
            or stored_leaf(unwrapped(rows.field(at).type)) != pa.string()
        ):
            continue
        times = _times_of(rows.column(at), schema.field(name).type)
        if times is not None:
            rows, any_times = rows.set_column(at, name, times), True
            there = pc.and_(there, times.is_valid())
    return rows.filter(there) if any_times else None


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """Record keys that are asked for.

    Attributes:
        texts: distinct keys as the table has them, where its timestamps are microseconds.
        times: rows with the key columns, of keys with timestamps; these may stand in the table's keys as text too.
    """

    texts: pa.Array
    times: pa.Table | None


def key_texts(keys: Keys, config: TableConfig, schema: pa.Schema) -> pa.Array:
    """Distinct record keys as text; arguments and errors as of `newest_rows`."""
    return asked_keys(keys, config, schema).texts


def asked_keys(keys: Keys, config: TableConfig, schema: pa.Schema) -> AskedKeys:
    """Record keys of what was given; arguments and errors as of `newest_rows`."""
    keys = [keys] if isinstance(keys, str) else keys
    rows, exact = keys, Exact()
    if isinstance(keys, (Mapping, pa.RecordBatchReader)) or hasattr(keys, "columns"):
        # What iterates over batches or names of columns; data frames too.
        given = as_reader(dict(keys) if isinstance(keys, Mapping) else keys)
        rows = given if isinstance(given, pa.Table) else given.read_all()
        exact = Exact(rounds=isinstance(keys, Mapping))
    elif not isinstance(keys, (pa.Array, pa.ChunkedArray)):
        refuse_closed(keys, "keys")
        given = keys if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable) else list(keys)
        if given and isinstance(given, list) and all(isinstance(k, dict) for k in given):
            rows, exact = as_reader(given), Exact(rounds=True)
        elif isinstance(given, list) and not any(k is None or isinstance(k, str) for k in given):
            rows, exact = as_reader({"keys": given})["keys"], Exact(rounds=True)
        else:
            rows = pa.array(text_list("keys", cast("list[str | None]", given)), pa.string())
    if isinstance(rows, (pa.Array, pa.ChunkedArray)):
        fields = config.record_key_fields
        if stored_leaf(unwrapped(rows.type)) == pa.string() or pt.is_null(rows.type):
            texts = convert(rows, pa.string(), RECORD_KEY)
            said = None if len(fields) != 1 else _with_times(pa.table({fields[0]: texts}), config, schema)
            return _asked(texts, said, config, schema, exact)
        if len(fields) != 1 or "." in fields[0]:
            raise TypeError(
                f"keys of the columns {', '.join(fields) or RECORD_KEY} are texts, or rows with these columns, not "
                f"{rows.type}"
            )
        rows = pa.table({fields[0]: rows})
    rows = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    said = _with_times(rows, config, schema)
    rows = _as_in_table(rows, config, schema, exact)
    made = _made(rows, config)
    if said is None and _has_times(rows, config):
        return AskedKeys(pc.unique(made), rows)
    return _asked(made, said, config, schema, exact)


def _asked(
    texts: pa.Array | pa.ChunkedArray,
    said: pa.Table | None,
    config: TableConfig,
    schema: pa.Schema,
    exact: Exact,
) -> AskedKeys:
    """Keys that are texts, and the same with the dates and times that texts among them say."""
    if said is None:
        return AskedKeys(pc.unique(texts), None)
    rows = _as_in_table(said, config, schema, exact)
    # Both: a text of a time is a key by itself in tables with consistent timestamps.
    both = pc.unique(pa.concat_arrays([one_array(texts), _made(rows, config)]))
    return AskedKeys(both, rows if _has_times(rows, config) else None)


def _has_times(rows: pa.Table, config: TableConfig) -> bool:
    columns = (nested_column(rows, name) for name in config.record_key_fields)
    return any(c is not None and pt.is_timestamp(c.type) for c in columns)


def _made(rows: pa.Table, config: TableConfig) -> pa.Array:
    return one_array(record_keys(rows, config.record_key_spec())).cast(pa.string())


def paths_of(partitions: str | Iterable[str]) -> set[str]:
    """Paths of given partitions; unknown ones are looked for in vain, as unknown keys are.

    Raises:
        TypeError: what is given is no text and no list of texts, such as values by column.
    """
    if isinstance(partitions, Mapping):
        raise TypeError(
            f"partitions are paths below the table, such as 'p=1', not values by column: {partitions!r}"
        )
    texts = text_list("partitions", [partitions] if isinstance(partitions, str) else partitions)
    return {p.strip("/") for p in texts}


def may_hold(storage: Storage, path: str, index: BloomIndex) -> bool:
    """Whether a file may contain one of the keys, by its footer."""
    if not index.probe.rows:
        return False
    try:
        return index.candidates(read_entries(storage, path)).verdict == MAYBE
    except HudiError as e:
        raise e.at(table=storage.uri, file=path) from None
