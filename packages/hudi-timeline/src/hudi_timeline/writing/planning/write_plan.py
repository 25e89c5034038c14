"""Write plan: decisions from options, schema and table before the first row.

What can be refused is refused here, so that the table stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import (
    InvalidOptionError,
    MissingColumnError,
    NotAHudiTableError,
    OptionError,
    SchemaError,
    TableExistsError,
    UnsupportedError,
)
from hudi_format.file_slice.cdc_writer import CdcSettings
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.log.encoder import block_type
from hudi_format.merge.payloads import IS_DELETED, MergeRule, Order, payload_rule
from hudi_format.merge.user_merger import MERGE, custom_of
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.changes import SchemaChange
from hudi_format.schema.evolution import as_stored
from hudi_format.schema.fit import in_table_types, in_utc, without_untyped
from hudi_format.schema.meta_fields import with_meta, without_meta
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import BucketIndex
from hudi_index.custom_index.index_class import CustomIndex
from hudi_index.lookup import BLOOM, CUSTOM, GLOBAL_BLOOM, SIMPLE, LookupTask
from hudi_timeline import feature_gate, metadata_config, table_config
from hudi_timeline.custom_index.indexed_table import custom_index
from hudi_timeline.file_system_view.file_slices import MERGE_ON_READ
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot
from hudi_timeline.file_system_view.table_schema import with_defaults_of_table, written_text
from hudi_timeline.options import WriteConfig, check_against_table
from hudi_timeline.options.allowed_functions import table_merge_rule
from hudi_timeline.options.compaction_config import refuse_without_logs
from hudi_timeline.options.transaction_config import TransactionConfig
from hudi_timeline.options.write_options import LOOKS_UP, OPERATIONS, PREPPED, REPLACING, WRITES_NO_ROWS
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.instant import (
    COMMIT,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    instant_path,
)
from hudi_timeline.transaction import early_conflicts, overwrite
from hudi_timeline.transaction.schema_history import refuse_unwritable_schema, written_evolution
from hudi_timeline.transaction.transaction import Transaction
from hudi_timeline.transaction.write_basis import NOTHING, Basis
from hudi_timeline.writing.bulk_insert_sort import user_function
from hudi_timeline.writing.engine import TABLE, BulkOrder, Engine, PrepareTask
from hudi_timeline.writing.planning import bucket_index, keys
from hudi_timeline.writing.planning.index_choice import (
    choose_index,
    index_to_record,
    moves_records,
    remembered_index,
)
from hudi_timeline.writing.planning.new_table import table_properties
from hudi_timeline.writing.planning.write_schema import (
    GivenSchema,
    about_utc,
    check_former_types,
    check_key_types,
    evolve,
    former_schemas,
    given_schema,
    left_out,
    own_schema,
    refuse_left_out,
)
from hudi_timeline.writing.workers.tasks import LogConfig, WriteContext

APPEND, OVERWRITE, IGNORE, ERROR = "append", "overwrite", "ignore", "error"
MODES = {"append": APPEND, "overwrite": OVERWRITE, "ignore": IGNORE, "error": ERROR, "errorifexists": ERROR}

DEFAULT_ORDERING_FIELD = "ts"


@dataclass(frozen=True)
class Plan:
    """All decisions before the first row is read."""

    storage: Storage
    config: WriteConfig
    snapshot: TableSnapshot | None  # that it was decided from; None: the table is to be created
    properties: Mapping[str, str]  # of the table to be created
    key_spec: KeySpec
    ordering_field: str | None
    schema: pa.Schema  # to write, without meta columns
    input_schema: pa.Schema  # of the rows that the engine hands on
    rule: MergeRule
    warnings: tuple[str, ...]
    replaced: TableConfig | None  # of the table whose place the new one takes: mode "overwrite"
    schema_changes: tuple[SchemaChange, ...] = ()
    stored_keys: bool = False  # rows come with the table's meta columns, which say key and partition path
    index: str = SIMPLE
    recorded_index: str | None = None  # what the table remembered when this was planned
    index_to_record: str | None = None  # what it is to remember after the write
    asked_archive: bool = False  # for the index
    virtual: bool = False  # the files' meta columns are left empty
    basis: Basis = NOTHING  # what of the table all this was decided from
    exact: bool = False  # values of the rows are cast where nothing is lost, not promoted
    bucket: BucketIndex | None = None  # settings of the index BUCKET
    custom_index: CustomIndex | None = None  # of the index CUSTOM, where the options name its class
    given_schema: str | None = None  # Avro text that the options give to the rows

    @property
    def table(self) -> TableConfig | None:
        """Configuration of the table; None for a new one."""
        return None if self.snapshot is None else self.snapshot.config

    @property
    def operation_name(self) -> str:
        """Operation name in results and commits."""
        return self.config.operation + (PREPPED if self.config.prepped else "")

    @property
    def operation(self) -> str:
        return self.config.operation


def plan_write(
    engine: Engine[Any, Any], storage: Storage, data: Any, config: WriteConfig, mode: str, *, opened: bool = False
) -> Plan | None:  # fmt: skip
    """The plan; None where mode "ignore" keeps a table.

    Args:
        opened: the table was opened before; where it is gone, none is made.
    """
    mode = mode_of(mode)
    table = _existing(storage, config.transaction, opened=opened)
    if table is not None and mode == ERROR:
        raise TableExistsError(
            "a table is already there", table=storage.uri,
            remedy='use mode("append") to add to it, or mode("overwrite") to replace it.',
        )  # fmt: skip
    if table is not None and mode == IGNORE:
        return None
    return plan_for(engine, storage, data, config, table, mode)


def is_operation(mode: str) -> bool:
    """Whether a text that is given as a save mode is an operation instead, as "upsert" is."""
    return mode.lower() in OPERATIONS


def mode_of(mode: str) -> str:
    """A save mode under its own name; InvalidOptionError for one that is none."""
    known = MODES.get(mode.lower())
    if known is None:
        remedy = "use append, overwrite, ignore or errorifexists."
        if is_operation(mode):
            remedy = f"use append; {mode} is an operation: hoodie.datasource.write.operation={mode.lower()}."
        raise InvalidOptionError(f"unknown save mode {mode!r}", remedy=remedy)
    return known


def _existing(storage: Storage, options: TransactionConfig, *, opened: bool) -> TableConfig | None:
    """The table at the path; None where there is nothing.

    Raises NotAHudiTableError: there is something, but no table; or there is no table that was opened.
    """
    try:
        return table_config.load(storage)
    except NotAHudiTableError as e:
        if e.details.get("overwritten") and overwrite.finish(storage, options):
            return table_config.load(storage)
        if opened:
            raise NotAHudiTableError(
                "the table is not there any more, it was deleted or moved since it was opened", table=storage.uri,
                remedy="put its folder back, open it where it is now, or create a new table; nothing was written.",
            ) from None  # fmt: skip
        beside = (e.name for e in storage.list("") if not e.name.startswith(".hoodie"))
        foreign = sorted(beside, key=feature_gate.shown_first)
        if foreign:
            raise NotAHudiTableError(
                f"the path holds something else than a Hudi table: {', '.join(foreign[:3])}",
                table=storage.uri,
                remedy="give an empty or new path; nothing was written.",
            ) from None
        return None


# --- planning ------------------------------------------------------------------------------------------


def plan_for(
    engine: Engine[Any, Any],
    storage: Storage,
    data: Any,
    config: WriteConfig,
    table: TableConfig | None,
    mode: str,
    snapshot: TableSnapshot | None = None,
) -> Plan:
    """Plan for a table.

    Args:
        data: only its schema is looked at.
        table: None where there is none yet.  snapshot: where it was loaded with `table`.
    """
    operation = config.operation
    replaced = table if mode == OVERWRITE and operation != "insert_overwrite_table" else None
    if operation in WRITES_NO_ROWS:
        if mode != APPEND:
            raise OptionError(
                f"operation {operation!r} works on an existing table, so its mode must be append, not {mode}",
                table=storage.uri, remedy='use .mode("append").',
            )  # fmt: skip
        if table is None:
            raise NotAHudiTableError("there is no table to delete from", table=storage.uri,
                                     remedy="correct the path.")  # fmt: skip
    old = None if replaced is not None else table
    merge = old.properties.get(MERGE) if old else None
    refuse_without_logs(config.services.compaction, (old or config).table_type, merge, table=storage.uri)
    if old is None:
        snapshot = None
    else:
        snapshot = snapshot or load_snapshot(storage, old)
        check_against_table(config.raw, old.properties)
        name = f"{operation}{PREPPED if config.prepped else ''}".upper()
        feature_gate.check_write(
            storage, old, snapshot.timeline, config.transaction, name, read=snapshot.commits.get
        )
    if data is None and not (operation == "delete_partition" and config.partitions_to_delete):
        raise OptionError(
            "no rows were given", table=storage.uri, remedy="give data, or the partitions to delete."
        )

    stored = recorded = None
    asked_archive, unwritten, bucketed = False, True, ""
    if snapshot is not None:
        stored = snapshot.stored_schema
        refuse_unwritable_schema(snapshot)
        looks_up = operation in LOOKS_UP or config.duplicate_policy != "none"
        recorded, asked_archive = remembered_index(snapshot, far=looks_up)
        unwritten = not snapshot.timeline.completed_writes() and not asked_archive
        if recorded is None and (bucketed := bucket_index.bucketed_files(snapshot)) and not looks_up:
            recorded, asked_archive = remembered_index(snapshot, far=True)
    names = [] if data is None else engine.schema(data).names
    key_spec = keys.key_spec_of(config, old, no_rows=data is None)
    config, stored_keys = keys.with_made_up_keys(config, key_spec, names, storage)
    operation = config.operation
    key_spec = keys.for_operation(key_spec, config)
    if config.prepped:
        keys.require_stored(names, operation, storage)
        stored_keys = True
    index, about_index = choose_index(
        config, recorded, new_table=unwritten, table=storage.uri, bucketed=bucketed
    )
    custom = custom_index(config.index_class, config.index_arguments) if index == CUSTOM else None
    bucket = bucket_index.settings(config, key_spec, snapshot, index, recorded, table=storage.uri)
    to_record = index_to_record(index, recorded, operation, new_table=unwritten)
    given = pa.schema([]) if data is None else without_meta(engine.schema(data))
    if operation in WRITES_NO_ROWS:  # whatever else the rows have is not looked at
        wanted = {n.partition(".")[0] for n in (*key_spec.key_fields, *key_spec.partition_fields)}
        given = pa.schema([f for f in given if f.name in wanted])
    declared = None
    if operation not in WRITES_NO_ROWS:
        declared = given_schema(config, storage)
    types = config.types or engine.types
    exact = types == TABLE and engine.types == TABLE
    incoming, untyped = _incoming(given, stored, declared, config, key_spec, exact=exact)
    about_times = tuple(about_utc(given, incoming)) if exact else ()
    dropped = keys.dropped_columns(config, old, key_spec)
    virtual = keys.has_virtual_keys(config, old, key_spec, index, storage)
    stored = None if stored is None else keys.without(stored, dropped)
    columns = incoming if data is not None else (stored or incoming)
    if data is not None:
        require(columns, key_spec.key_fields, "record key", storage)
        require(columns, key_spec.partition_fields, "partition", storage)
    if IS_DELETED in incoming.names and not pa.types.is_boolean(incoming.field(IS_DELETED).type):
        raise SchemaError(
            f"column {IS_DELETED} must be boolean, not {incoming.field(IS_DELETED).type}",
            table=storage.uri,
            remedy="cast it: rows in which it is true are deletes.",
            column=IS_DELETED,
        )
    changes: tuple[SchemaChange, ...] = ()
    ordering, warnings = _ordering_field(config, old, columns, operation, storage)

    if operation in WRITES_NO_ROWS:
        if stored is None:
            raise NotAHudiTableError("the table has no schema yet", table=storage.uri, remedy="write rows.")
        schema = stored
        roots = dict.fromkeys(n.partition(".")[0] for n in (*key_spec.key_fields, *key_spec.partition_fields))
        input_schema = pa.schema([])
        if data is not None:
            input_schema = pa.schema([as_stored(incoming.field(n), stored) for n in roots])
            try:
                check_key_types(stored, input_schema, (*key_spec.key_fields, *key_spec.partition_fields))
            except SchemaError as e:
                raise e.at(table=storage.uri) from None
    else:
        if declared is not None:
            declared.check(incoming, storage)
            incoming = declared.schema
        try:
            evolution = evolve(
                keys.without(incoming, dropped), stored, config, key_spec,
                keeps_types=types == TABLE and declared is None,
                own=own_schema(given, stored, incoming) if exact and declared is None else None,
            )  # fmt: skip
            if stored is not None:
                refuse_left_out(untyped, config)
            check_former_types(evolution.changes, evolution.schema, former_schemas(snapshot))
            written_text(evolution.schema, "t", snapshot, declared.text if declared else None)
        except SchemaError as e:
            raise e.at(table=storage.uri) from None
        schema = evolution.schema
        input_schema = pa.schema([*schema, *(f for f in incoming if f.name in dropped)])
        if operation == "bulk_insert":
            if config.partitioner:
                user_function(config.partitioner)
            require(schema, config.bulk_insert_sort_columns, "sort", storage)
        changes, warnings = evolution.changes, (*warnings, *left_out(untyped), *evolution.warnings)
    keys.check_partition_columns(key_spec, input_schema, storage)
    keys.check_dropped_columns(key_spec, ordering, schema, dropped, storage)
    if snapshot is not None:
        keys.check_timestamps(snapshot, key_spec, input_schema)
    rule = _rule(config, old, storage, key_spec, schema, ordering)
    if snapshot is not None:
        rule = with_defaults_of_table(rule, snapshot)
    warnings = (*warnings, *overwrite.about_scope(operation, config.overwrite_mode, anew=bool(replaced)))
    if operation in ("insert", "upsert") and config.small_file_limit_bytes > config.max_file_bytes:
        # Not refused: Apache Hudi takes both, and whoever lowers the greatest size alone has them.
        warnings = (
            *warnings,
            f"hoodie.parquet.small.file.limit ({config.small_file_limit_bytes:,} bytes) is above "
            f"hoodie.parquet.max.file.size ({config.max_file_bytes:,}): each file below the latter takes new "
            "records until it is full, so nearly full ones are written again for a few; set the limit lower",
        )
    properties = (
        {} if old is not None else table_properties(config, key_spec, ordering, storage, index, bucket)
    )
    return Plan(
        storage, config, snapshot, properties, key_spec, ordering, schema, input_schema, rule,
        (*warnings, *about_times, *about_index, *keys.about_marks(rule, input_schema)), replaced, changes, stored_keys,
        index, recorded, to_record, asked_archive, virtual,
        NOTHING if snapshot is None else Basis.of(snapshot.config, snapshot.timeline), exact, bucket, custom,
        None if declared is None else declared.text,
    )  # fmt: skip


def _incoming(
    given: pa.Schema,
    stored: pa.Schema | None,
    declared: GivenSchema | None,
    config: WriteConfig,
    key_spec: KeySpec,
    *,
    exact: bool,
) -> tuple[pa.Schema, list[str]]:
    """Normalised schema of the rows, and untyped columns left out.

    Args:
        exact: values are cast to the table's types, so that the rows' own do not count where the table has some.
    """
    known = declared.schema if declared is not None else stored
    given = in_utc(given) if exact else given
    if known is not None:
        given = in_table_types(given, known, nulls_only=not exact)
    needed = (*key_spec.key_fields, *key_spec.partition_fields, config.ordering_field or "")
    given, untyped = without_untyped(given, {n.partition(".")[0] for n in needed})
    return normalize_schema(given), untyped


def require(schema: pa.Schema, fields: Sequence[str], what: str, storage: Storage) -> None:
    for name in fields:
        if keys.type_of(schema, name) is None:
            raise MissingColumnError(
                f"{what} column {name!r} is not in the data, which has {', '.join(schema.names) or 'none'}",
                table=storage.uri,
                remedy=f"add the column, or correct the option that names the {what} field.",
                column=name,
            )


def _ordering_field(
    config: WriteConfig, table: TableConfig | None, columns: pa.Schema, operation: str, storage: Storage
) -> tuple[str | None, tuple[str, ...]]:
    """Ordering field, with warnings."""
    field = (table.ordering_field if table is not None else None) or config.ordering_field
    given = (table is not None and table.ordering_field is not None) or config.ordering_given
    if operation in WRITES_NO_ROWS:
        return None, ()
    if given and field:
        require(columns, (field,), "ordering", storage)
        if table is None:
            keys.check_ordering(columns, (field,), storage)
        return field, ()
    # Given empty it is none on purpose.
    if table is None and not config.ordering_given and keys.has_order(columns, DEFAULT_ORDERING_FIELD):
        return DEFAULT_ORDERING_FIELD, (
            f"no ordering field was given: column {DEFAULT_ORDERING_FIELD!r} is used, as Apache Hudi does; name it "
            "with hoodie.datasource.write.precombine.field",
        )
    return None, ()


def write_action(plan: Plan) -> str:
    """Action of a write on the timeline."""
    if plan.operation in REPLACING:
        return REPLACE_COMMIT
    table_type = plan.config.table_type if plan.table is None else plan.table.table_type
    return DELTA_COMMIT if table_type == MERGE_ON_READ else COMMIT


def prepare_task(plan: Plan) -> PrepareTask:
    combining = combines(plan) or plan.rule.against_stored != Order.LATER
    return PrepareTask(
        schema=plan.input_schema,
        key_spec=plan.key_spec,
        ordering_field=plan.ordering_field,
        check_ordering=plan.ordering_field is not None and combining,
        storage_level=plan.config.storage_level,
        stored_keys=plan.stored_keys,
        stated=keys.stated_columns(plan.config, logs=write_action(plan) == DELTA_COMMIT),
        order=BulkOrder(
            plan.config.bulk_insert_sort_mode,
            plan.config.bulk_insert_sort_columns,
            plan.config.partitioner,
            plan.config.shuffle_parallelism,
        ),
        memory=memory_limit(plan.config),
        bucket=plan.bucket,
    )


def memory_limit(config: WriteConfig) -> MemoryLimit | None:
    """Memory limit of a write; None where the user gave none."""
    if config.memory_max is None:
        return None
    return MemoryLimit(config.memory_max, config.spill_path, config.spill_compress, given=True)


def combines(plan: Plan) -> bool:
    return _combining(plan.config)


def _combining(config: WriteConfig) -> bool:
    if config.prepped:
        return False
    if config.operation == "upsert":
        return config.combine_before_upsert
    if config.operation == "delete":
        return config.combine_before_delete
    return config.combine_before_insert or (
        config.operation == "insert" and config.duplicate_policy == "drop"
    )


def _rule(
    config: WriteConfig,
    table: TableConfig | None,
    storage: Storage,
    key_spec: KeySpec,
    schema: pa.Schema,
    ordering: str | None,
) -> MergeRule:
    """Merge rule of the write, else of the table.

    Raises:
        OptionError: a delete field that the payload does not look at.
        UnsupportedError: a payload that is not built here.
        SchemaError: a merge of the user's that does not fit the columns.
        FunctionNotAllowedError: a merge function that only the table names.
    """
    if config.operation in WRITES_NO_ROWS:
        return payload_rule(None)  # whatever is stored goes
    stored = table.properties.get(MERGE) if table else None
    if stored and config.payload_class:
        raise OptionError(
            f"the table merges by {stored}, and the write names the payload {config.payload_class}",
            table=storage.uri,
            remedy="omit hoodie.datasource.write.payload.class.",
        )
    text = config.merge or stored
    if text:
        fixed = {n.partition(".")[0] for n in (*key_spec.key_fields, *key_spec.partition_fields)}
        try:
            rule = table_merge_rule(text, sorted(fixed), given=config.merge, storage=storage)
            merge = custom_of(rule)
            if merge is not None:
                merge.check(schema, ordering)
        except (SchemaError, OptionError) as e:
            raise e.at(table=storage.uri) from None
        return rule
    try:
        rule = payload_rule(config.payload_class or (table.payload_class if table else None))
        keys.check_compared(rule, ordering, schema)
    except (SchemaError, UnsupportedError) as e:
        raise e.at(table=storage.uri) from None
    if config.delete_field and not rule.delete_fields:
        raise OptionError(
            f"hoodie.payload.delete.field has no meaning to the payload {rule.name}", table=storage.uri,
            remedy="omit it, or set hoodie.datasource.write.payload.class to "
"DefaultHoodieRecordPayload.",
        )  # fmt: skip
    if rule.fill_within and not _combining(config):
        # Apache Hudi takes the ordering value when it combines; without it nothing stored is newer.
        return replace(rule, against_stored=Order.LATER)
    return rule


def fails_on_known_keys(plan: Plan) -> bool:
    """Whether an insert fails on known keys."""
    return plan.operation == "insert" and plan.config.duplicate_policy == "fail"


def drops_duplicates(plan: Plan) -> bool:
    """Whether an insert drops known and duplicate keys."""
    return plan.operation == "insert" and plan.config.duplicate_policy == "drop"


def lookup_task(plan: Plan) -> LookupTask:
    c = plan.config
    column = None
    if plan.ordering_field is not None:
        column = plan.input_schema.field(plan.ordering_field.partition(".")[0])
    return LookupTask(
        index=plan.index,
        prune_by_ranges=c.bloom_prune_by_ranges,
        # An insert that takes no known key takes none of another partition either.
        update_partition=moves_records(c, plan.index, plan.key_spec) and plan.operation != "insert",
        combine=combines(plan),
        ordering_field=plan.ordering_field,
        ordering_column=column,
        rule=plan.rule,
        delete_all=plan.operation == "delete",
        delete_field=c.delete_field or "",
        delete_marker=c.delete_marker or "",
        virtual=plan.key_spec if plan.virtual else None,
        prepped=c.prepped,
        memory=memory_limit(c),
        bucket=plan.bucket,
        drop_known=drops_duplicates(plan),
    )


def write_context(plan: Plan, transaction: Transaction, table: TableConfig) -> WriteContext:
    c = plan.config
    has_bloom = c.bloom_enabled or plan.index in (BLOOM, GLOBAL_BLOOM)
    # A bucket has one file.
    parquet = c.parquet if plan.bucket is None else replace(c.parquet, max_file_bytes=1 << 62)

    def text_of(schema: pa.Schema) -> str:
        return written_text(schema, table.name, transaction.snapshot, plan.given_schema)

    return WriteContext(
        storage=transaction.storage,
        instant=transaction.instant,
        inflight=instant_path(table, transaction.instant, transaction.action, INFLIGHT),
        completed=instant_path(table, transaction.instant, transaction.action, COMPLETED),
        schema=plan.schema,
        input_schema=plan.input_schema,
        virtual=plan.virtual,
        stored_keys=plan.stored_keys,
        avro_schema=text_of(with_meta(plan.schema)),
        parquet=parquet,
        bloom=c.bloom if has_bloom else None,
        key_spec=plan.key_spec,
        ordering_field=plan.ordering_field,
        combine=combines(plan),
        rule=plan.rule,
        event_time_field=c.event_time_field,
        delete_all=plan.operation == "delete",
        delete_field=c.delete_field or "",
        delete_marker=c.delete_marker or "",
        memory=memory_limit(c),
        log=LogConfig(block_type(c.log_block_format), c.log_block_bytes, c.log_file_bytes),
        cdc=CdcSettings(table.cdc_mode, text_of(plan.schema)) if table.cdc_enabled else None,
        bucket=plan.bucket,
        seed=f"{c.transaction.seed}\0{transaction.instant}" if c.transaction.seed else "",
        early=early_conflicts.of(transaction, c.transaction, by_bucket=plan.bucket is not None),
        evolution=written_evolution(transaction.snapshot, plan.schema, transaction.instant),
        tells_keys=metadata_config.has_key_index(table),
    )
