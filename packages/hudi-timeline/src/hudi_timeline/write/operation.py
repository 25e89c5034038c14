"""Every write operation, from options to commit, on any engine.

    options -> checks -> frame -> transaction (instant) -> tag -> profile -> assign -> write -> commit

What can be refused is refused before the transaction begins, so that the table stays as it was.  What fails
after that is rolled back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from hudi_format.config import WriteConfig, check_against_table, parse_write_options
from hudi_format.errors import (
    HudiError,
    InvalidOptionError,
    MissingColumnError,
    NotAHudiTableError,
    OptionError,
    SchemaError,
    TableExistsError,
    UnsupportedError,
)
from hudi_format.keys import KeySpec
from hudi_format.model import BaseFile, WriteStat
from hudi_format.names import META_DIR
from hudi_format.parquet.config import ParquetConfig
from hudi_format.partition_path import check_safe
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.avro import to_avro
from hudi_format.schema.evolve import reconcile
from hudi_format.schema.meta_columns import with_meta, without_meta
from hudi_format.storage import Storage
from hudi_timeline import commit, gate, table_config
from hudi_timeline.engine.protocol import Engine, PrepareTask
from hudi_timeline.instant import INFLIGHT, instant_path
from hudi_timeline.listing import list_partitions
from hudi_timeline.snapshot import TableSnapshot, snapshot_of
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import latest_schema, load_timeline, read_commit
from hudi_timeline.write import overwrite
from hudi_timeline.write.assign import AssignPolicy, SizingRules, assign, average_record_size
from hudi_timeline.write.properties import table_properties
from hudi_timeline.write.result import CommitResult
from hudi_timeline.write.tasks import BloomSettings, ProfileRow, WriteContext

log = logging.getLogger("hudi")

APPEND, OVERWRITE, IGNORE, ERROR = "append", "overwrite", "ignore", "error"
MODES = {"append": APPEND, "overwrite": OVERWRITE, "ignore": IGNORE, "error": ERROR, "errorifexists": ERROR}

DEFAULT_ORDERING_FIELD = "ts"
EVENT_TIME_PAYLOAD = "DefaultHoodieRecordPayload"
IS_DELETED = "_hoodie_is_deleted"
_REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partition")


@dataclass
class _Phases:
    """Seconds by phase, in the order in which the phases ran."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began


@dataclass(frozen=True)
class _Plan:
    """All that is decided before the first row is read."""

    storage: Storage
    config: WriteConfig
    table: TableConfig | None  # None: to be created
    properties: Mapping[str, str]  # of the table to be created
    key_spec: KeySpec
    ordering_field: str | None
    schema: pa.Schema  # to write, without meta columns
    input_schema: pa.Schema  # of the rows that the engine hands on
    event_time: bool
    warnings: tuple[str, ...]
    recreate: bool  # mode "overwrite" over an existing table

    @property
    def operation(self) -> str:
        return self.config.operation


def execute(
    engine: Engine[Any, Any],
    storage: Storage,
    data: Any,
    options: Mapping[str, str],
    *,
    mode: str = APPEND,
) -> CommitResult:
    """Run one write and return what it did.

    Args:
        engine: evaluates `data` and runs the workers.
        data: what the engine takes; None only for `delete_partition` with partitions given.
        options: Apache Hudi's write options.
        mode: append, overwrite, ignore or errorifexists.

    Raises:
        OptionError, SchemaError, UnsupportedError, RecordKeyError ...: before anything is written.
        ConcurrentWriterError: another writer is at work, or changed the same file groups first.
        WriteFailedError and others: the write failed and was rolled back.
    """
    phases = _Phases()
    with phases("plan"):
        config = parse_write_options(options)
        plan = _planned(engine, storage, data, config, mode)
    if plan is None:
        return CommitResult("", "", config.operation, storage.uri)
    if plan.operation == "bulk_insert" and not plan.config.combine_before_insert:
        return _bulk_insert(engine, data, plan, phases)
    frame = None
    if data is not None:
        with phases("evaluate"):
            frame = engine.prepare(data, _prepare_task(plan))
    try:
        return _keyed_write(engine, frame, plan, phases)
    finally:
        if frame is not None:
            engine.release(frame)


def check(
    engine: Engine[Any, Any], storage: Storage, data: Any, options: Mapping[str, str], *, mode: str = APPEND
) -> None:
    """Raise what `execute` would refuse by options, schema and table, for callers that have no rows yet.

    Args:
        data: what the engine takes; only its schema is looked at.
    """
    _planned(engine, storage, data, parse_write_options(options), mode)


def _planned(
    engine: Engine[Any, Any], storage: Storage, data: Any, config: WriteConfig, mode: str
) -> _Plan | None:
    """The plan; None where mode "ignore" leaves a table as it is."""
    mode = _mode(mode)
    table = _existing(storage)
    if table is not None and mode == ERROR:
        raise TableExistsError(
            "a table is already there", table=storage.uri,
            remedy='use mode("append") to add to it, or mode("overwrite") to replace it.',
        )  # fmt: skip
    if table is not None and mode == IGNORE:
        return None
    return _plan(engine, storage, data, config, table, mode)


def _mode(mode: str) -> str:
    known = MODES.get(mode.lower())
    if known is None:
        raise InvalidOptionError(
            f"unknown save mode {mode!r}", remedy="use append, overwrite, ignore or errorifexists."
        )
    return known


def _existing(storage: Storage) -> TableConfig | None:
    """The table at the path, None where there is nothing.

    Raises:
        NotAHudiTableError: there is something, but no table.
    """
    overwrite.recover(storage)
    try:
        return table_config.load(storage)
    except NotAHudiTableError:
        foreign = [e.name for e in storage.list("") if not e.name.startswith(".hoodie")]
        if foreign:
            raise NotAHudiTableError(
                f"the path holds something else than a Hudi table: {', '.join(sorted(foreign)[:3])}",
                table=storage.uri,
                remedy="give an empty or new path; nothing was written.",
            ) from None
        return None


# --- planning ------------------------------------------------------------------------------------------


def _plan(
    engine: Engine[Any, Any],
    storage: Storage,
    data: Any,
    config: WriteConfig,
    table: TableConfig | None,
    mode: str,
) -> _Plan:
    operation = config.operation
    recreate = table is not None and mode == OVERWRITE and operation != "insert_overwrite_table"
    if operation in ("delete", "delete_partition"):
        if mode != APPEND:
            raise OptionError(
                f"operation {operation!r} works on an existing table, so its mode must be append, not {mode}",
                table=storage.uri, remedy='use .mode("append").',
            )  # fmt: skip
        if table is None:
            raise NotAHudiTableError("there is no table to delete from", table=storage.uri)
    old = None if recreate else table
    if old is not None:
        check_against_table(config.raw, old.properties)
        gate.check_write(storage, old, load_timeline(storage, old), config.raw, operation.upper())
    if data is None and not (operation == "delete_partition" and config.partitions_to_delete):
        raise OptionError("no rows were given", table=storage.uri)

    stored = None
    if old is not None:
        stored = latest_schema(storage, load_timeline(storage, old), old)
    key_spec = key_spec_of(config, old)
    given = pa.schema([]) if data is None else without_meta(engine.schema(data))
    if operation in ("delete", "delete_partition"):  # whatever else the rows have is not looked at
        wanted = {n.partition(".")[0] for n in (*key_spec.key_fields, *key_spec.partition_fields)}
        given = pa.schema([f for f in given if f.name in wanted])
    incoming = normalize_schema(given)
    columns = incoming if data is not None else (stored or incoming)
    if data is not None:
        require(columns, key_spec.key_fields, "record key", storage)
        require(columns, key_spec.partition_fields, "partition", storage)
    if IS_DELETED in incoming.names and not pa.types.is_boolean(incoming.field(IS_DELETED).type):
        raise SchemaError(
            f"column {IS_DELETED} must be boolean, not {incoming.field(IS_DELETED).type}", table=storage.uri
        )
    ordering, warnings = _ordering_field(config, old, columns, operation, storage)

    if operation in ("delete", "delete_partition"):
        if stored is None:
            raise NotAHudiTableError(
                "the table has no schema yet, so it has no rows to delete", table=storage.uri
            )
        schema = stored
        roots = dict.fromkeys(n.partition(".")[0] for n in (*key_spec.key_fields, *key_spec.partition_fields))
        input_schema = pa.schema([])
        if data is not None:
            input_schema = pa.schema([_as_stored(incoming.field(n), stored) for n in roots])
    else:
        schema = incoming
        if stored is not None:
            try:
                schema = reconcile(
                    incoming, stored,
                    set_null_for_missing=config.set_null_for_missing_columns,
                    allow_column_drop=config.allow_column_drop,
                    reconcile=config.reconcile_schema,
                )  # fmt: skip
            except SchemaError as e:
                raise e.at(table=storage.uri) from None
        input_schema = schema
    payload = (config.payload_class or (old.payload_class if old else None) or "").rpartition(".")[2]
    properties = {} if old is not None else table_properties(config, key_spec, ordering, storage)
    return _Plan(
        storage, config, old, properties, key_spec, ordering, schema, input_schema,
        payload == EVENT_TIME_PAYLOAD, warnings, recreate,
    )  # fmt: skip


def _as_stored(column: pa.Field, stored: pa.Schema) -> pa.Field:
    """A key column of rows to delete, in the table's type where it fits, whose text is that of the keys."""
    index = stored.get_field_index(column.name)
    if index < 0:
        return column
    try:
        return reconcile(
            pa.schema([column]), pa.schema([stored.field(index)]), set_null_for_missing=True
        ).field(0).with_nullable(True)  # fmt: skip
    except SchemaError:
        return column  # other types may have the same text: 7 and "7"


def require(schema: pa.Schema, fields: Sequence[str], what: str, storage: Storage) -> None:
    for name in fields:
        kind: pa.DataType | None = None
        for part in name.split("."):
            if kind is None:
                index = schema.get_field_index(part)
                found = schema.field(index) if index >= 0 else None
            else:
                index = kind.get_field_index(part) if pa.types.is_struct(kind) else -1
                found = kind.field(index) if index >= 0 else None
            if found is None:
                raise MissingColumnError(
                    f"{what} column {name!r} is not in the data, which has {', '.join(schema.names)}",
                    table=storage.uri,
                    remedy=f"add the column, or correct the option that names the {what} field.",
                    column=name,
                )
            kind = found.type


def key_spec_of(config: WriteConfig, table: TableConfig | None) -> KeySpec:
    if table is not None:
        return table.key_spec()
    if not config.record_key_fields:
        raise UnsupportedError(
            "no record key field is given; keys made up by the writer are not provided yet",
            remedy="set hoodie.datasource.write.recordkey.field to the column(s) that identify a record.",
            option="hoodie.datasource.write.recordkey.field",
        )
    return KeySpec.from_options(
        key_fields=config.record_key_fields,
        partition_fields=config.partition_fields or (),
        class_name=config.keygen_class,
        type_name=config.keygen_type,
        hive_style=bool(config.hive_style),
        url_encode=bool(config.url_encode),
    )


def _ordering_field(
    config: WriteConfig, table: TableConfig | None, columns: pa.Schema, operation: str, storage: Storage
) -> tuple[str | None, tuple[str, ...]]:
    """The column that decides between records of one key, and what to say about it."""
    field = (table.ordering_field if table is not None else None) or config.ordering_field
    given = (table is not None and table.ordering_field is not None) or config.ordering_given
    if operation in ("delete", "delete_partition"):
        return None, ()
    if given and field:
        require(columns, (field,), "ordering", storage)
        return field, ()
    if config.ordering_given:  # given empty: none on purpose
        return None, ()
    if table is None and DEFAULT_ORDERING_FIELD in columns.names:
        return DEFAULT_ORDERING_FIELD, (
            f"no ordering field was given: column {DEFAULT_ORDERING_FIELD!r} is used, as Apache Hudi does; name it "
            "with hoodie.datasource.write.precombine.field",
        )
    return None, ()


def _prepare_task(plan: _Plan) -> PrepareTask:
    combines = plan.event_time or _combines(plan)
    return PrepareTask(
        schema=plan.input_schema,
        key_spec=plan.key_spec,
        ordering_field=plan.ordering_field,
        check_ordering=plan.ordering_field is not None and combines,
        storage_level=plan.config.storage_level,
    )


def _combines(plan: _Plan) -> bool:
    if plan.operation == "upsert":
        return plan.config.combine_before_upsert
    if plan.operation == "delete":
        return plan.config.combine_before_delete
    return plan.config.combine_before_insert


def _context(plan: _Plan, transaction: commit.Transaction, table: TableConfig) -> WriteContext:
    c = plan.config
    bloom = None
    if c.bloom_enabled:
        bloom = BloomSettings(c.bloom_type, c.bloom_entries, c.bloom_fpp, c.bloom_max_entries)
    return WriteContext(
        storage=plan.storage,
        instant=transaction.instant,
        inflight=instant_path(transaction.instant, transaction.action, INFLIGHT),
        schema=plan.schema,
        avro_schema=to_avro(with_meta(plan.schema), table.name),
        parquet=ParquetConfig(
            codec=c.codec,
            level=c.codec_level if c.codec == "zstd" else None,
            row_group_bytes=c.parquet_block_bytes,
            page_bytes=c.parquet_page_bytes,
            max_file_bytes=c.parquet_max_file_bytes,
            dictionary=c.dictionary,
        ),
        bloom=bloom,
        key_spec=plan.key_spec,
        ordering_field=plan.ordering_field,
        combine=_combines(plan),
        event_time=plan.event_time,
        delete_all=plan.operation == "delete",
        delete_field=c.delete_field or "",
        delete_marker=c.delete_marker or "",
    )


# --- running -------------------------------------------------------------------------------------------


@contextmanager
def _transaction(plan: _Plan) -> Iterator[tuple[commit.Transaction, TableConfig]]:
    """A begun transaction on the table, which is made first where it is new."""
    action = "replacecommit" if plan.operation in _REPLACING else "commit"
    with overwrite.aside(plan.storage) if plan.recreate else nullcontext():
        table = plan.table or table_config.create(plan.storage, plan.properties)
        try:
            with commit.begin(
                plan.storage, table, action=action, operation=plan.operation.upper(), config=plan.config
            ) as transaction:
                yield transaction, transaction.config
        except BaseException:
            if plan.table is None:
                _remove_unborn(plan.storage)
            raise


def _remove_unborn(storage: Storage) -> None:
    """Take away a table that a failed first write made, so that the path is as it was."""
    try:
        timeline = load_timeline(storage, table_config.load(storage))
    except HudiError:
        return  # half made or damaged: left for the user to see
    if not timeline.completed_writes() and not timeline.pending_writes():
        storage.delete_dir(META_DIR)


def _finish(
    plan: _Plan,
    transaction: commit.Transaction,
    table: TableConfig,
    stats: Sequence[WriteStat],
    phases: _Phases,
    replaced: Mapping[str, Sequence[str]] | None = None,
) -> CommitResult:
    with phases("commit"):
        transaction.commit(
            stats,
            replaced=None if replaced is None else {p: tuple(ids) for p, ids in replaced.items()},
            schema_text=to_avro(plan.schema, table.name),
            extra=plan.config.extra_metadata,
        )
    result = CommitResult(
        instant=transaction.instant,
        action=transaction.action,
        operation=plan.operation,
        table=plan.storage.uri,
        write_stats=tuple(stats),
        replaced={p: tuple(ids) for p, ids in (replaced or {}).items()},
        timings=dict(phases.seconds),
        warnings=(*plan.warnings, *transaction.warnings),
        ordering_field=plan.ordering_field,
    )
    for warning in result.warnings:
        log.warning("%s: %s", plan.storage.uri, warning)
    log.info("%r", result)
    return result


def _bulk_insert(engine: Engine[Any, Any], data: Any, plan: _Plan, phases: _Phases) -> CommitResult:
    with _transaction(plan) as (transaction, table):
        context = _context(plan, transaction, table)
        transaction.inflight(None)  # Apache Hudi's row writer leaves it empty too
        with phases("write"):
            stats = engine.write_stream(data, _prepare_task(plan), context)
        return _finish(plan, transaction, table, stats, phases)


def _keyed_write(engine: Engine[Any, Any], frame: Any, plan: _Plan, phases: _Phases) -> CommitResult:
    with phases("evaluate"):
        counts = engine.partition_counts(frame) if frame is not None else {}
        for partition in counts:
            check_safe(partition)
    with _transaction(plan) as (transaction, table):
        context = _context(plan, transaction, table)
        snapshot = snapshot_of(plan.storage, table, transaction.snapshot_timeline)
        if plan.operation in _REPLACING:
            return _replace(engine, frame, counts, plan, phases, transaction, table, context, snapshot)
        with phases("list"):
            files = _latest_base_files(snapshot, sorted(counts))
        if plan.operation in ("upsert", "delete"):
            with phases("tag"):
                frame = engine.tag(frame, plan.storage, files)
        stats = _route_and_write(engine, frame, files, plan, phases, transaction, context)
        return _finish(plan, transaction, table, stats, phases)


def _latest_base_files(snapshot: TableSnapshot, partitions: Sequence[str]) -> dict[str, list[BaseFile]]:
    out: dict[str, list[BaseFile]] = {p: [] for p in partitions}
    for file_slice in snapshot.slices(partitions):
        if file_slice.base_file is not None:
            out[file_slice.partition].append(file_slice.base_file)
    return out


def _route_and_write(
    engine: Engine[Any, Any],
    frame: Any,
    files: Mapping[str, Sequence[BaseFile]],
    plan: _Plan,
    phases: _Phases,
    transaction: commit.Transaction,
    context: WriteContext,
    *,
    new_files_only: bool = False,
) -> list[WriteStat]:
    with phases("profile"):
        profile = engine.profile(frame)
    c = plan.config
    rules = SizingRules(
        c.parquet_max_file_bytes, c.small_file_limit_bytes, c.insert_split_size, c.auto_split,
        c.record_size_estimate, c.record_size_threshold,
    )  # fmt: skip
    policy = AssignPolicy(
        drop_unlocated=plan.operation == "delete",
        small_files=not new_files_only and plan.operation in ("upsert", "insert"),
        append=plan.operation == "insert" and c.allow_duplicate_on_inserts,
    )
    routing = assign(profile, files, _record_size(plan, transaction, rules), rules, policy)
    transaction.inflight(_profile_stats(profile, files))
    with phases("write"):
        return list(engine.write(frame, context, routing))


def _record_size(plan: _Plan, transaction: commit.Transaction, rules: SizingRules) -> Callable[[], int]:
    def commits() -> Iterator[tuple[int, int]]:
        for instant in reversed(transaction.snapshot_timeline.completed_writes()):
            stats = [s for of in read_commit(plan.storage, instant).partition_to_stats.values() for s in of]
            yield sum(s.total_write_bytes for s in stats), sum(s.num_writes for s in stats)

    return lambda: average_record_size(commits(), rules)


def _profile_stats(
    profile: Sequence[ProfileRow], files: Mapping[str, Sequence[BaseFile]]
) -> dict[str, tuple[WriteStat, ...]]:
    """The workload profile as Apache Hudi keeps it in the inflight file."""
    base = {(p, f.file_id): f.instant for p, of in files.items() for f in of}
    fresh = {row.partition: row.rows for row in profile if not row.file_id}
    out: dict[str, list[WriteStat]] = {}
    for partition in dict.fromkeys(row.partition for row in profile):
        out[partition] = [WriteStat("", "", partition, num_inserts=fresh.get(partition, 0))]
    for row in profile:
        if row.file_id:
            prev = base[row.partition, row.file_id]
            out[row.partition].append(
                WriteStat(row.file_id, "", row.partition, prev_commit=prev, num_update_writes=row.rows)
            )
    return {p: tuple(stats) for p, stats in out.items()}


def _replace(
    engine: Engine[Any, Any],
    frame: Any,
    counts: Mapping[str, int],
    plan: _Plan,
    phases: _Phases,
    transaction: commit.Transaction,
    table: TableConfig,
    context: WriteContext,
    snapshot: TableSnapshot,
) -> CommitResult:
    with phases("list"):
        if plan.operation == "insert_overwrite_table":
            partitions = None
        elif plan.operation == "insert_overwrite":
            partitions = sorted({*counts, *plan.config.static_overwrite_partitions})
        else:
            partitions = _partitions_to_delete(plan, counts, snapshot)
        replaced: dict[str, list[str]] = {}
        for file_slice in snapshot.slices(partitions):
            replaced.setdefault(file_slice.partition, []).append(file_slice.file_id)
    stats: list[WriteStat] = []
    if plan.operation == "delete_partition":
        transaction.inflight({})
    else:
        stats = _route_and_write(engine, frame, {}, plan, phases, transaction, context, new_files_only=True)
    return _finish(plan, transaction, table, stats, phases, replaced)


def _partitions_to_delete(plan: _Plan, counts: Mapping[str, int], snapshot: TableSnapshot) -> list[str]:
    """Existing partitions that are named, by pattern or by the rows given."""
    existing = list_partitions(plan.storage, snapshot.config)
    wanted: set[str] = set()
    for name in plan.config.partitions_to_delete:
        pattern = name.replace("%2A", "*").strip("/")
        # Only "*" is a wildcard in Apache Hudi; brackets and question marks stand for themselves.
        literal = pattern.replace("[", "[[]").replace("?", "[?]")
        wanted.update(p for p in existing if fnmatchcase(p, literal))
    wanted.update(p for p in counts if p in set(existing))
    return sorted(wanted)
