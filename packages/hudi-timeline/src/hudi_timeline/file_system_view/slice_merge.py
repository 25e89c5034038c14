"""Merge settings of a table's file slices, as its properties say.

Source: spec "Queries", sections 2 and 3.
"""

from __future__ import annotations

from hudi_format.errors import InvalidOptionError, SchemaError, UnsupportedError
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.log.scanner import BlockScope
from hudi_format.merge.payloads import MergeRule, check_compared, mode_rule, payload_rule
from hudi_format.merge.user_merger import MERGE, custom_of
from hudi_index.metadata_table import merger
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import with_defaults
from hudi_timeline.options.allowed_functions import table_merge_rule
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.instant import LOG_COMPACTION


def slice_merge(snapshot: TableSnapshot, merge: str | None = None) -> SliceMerge:
    """Merge settings of the table's slices.

    Args:
        merge: a merge of the user's (`hudi_format.merge.user_merger`) instead of the table's own.

    Raises:
        UnsupportedError: a payload class that is not built here.
        FunctionNotAllowedError: a function that only the table names.
    """
    config = snapshot.config
    by_mode = config.version.has_merge_mode
    try:
        text = merge or config.properties.get(MERGE)
        given = merge
        if not text and metadata_config.is_one(config):
            text = given = merger.FUNCTION
        if text:
            if len(config.ordering_fields) > 1:
                raise UnsupportedError(
                    "a user-defined merge needs a single ordering field, but the table has "
                    f"{', '.join(config.ordering_fields)}",
                    remedy="omit hudi.merge.",
                    option=MERGE,
                )
            fixed = {n.partition(".")[0] for n in (*config.record_key_fields, *config.partition_fields)}
            rule = table_merge_rule(text, sorted(fixed), given=given, storage=snapshot.storage)
            checked = custom_of(rule)
            if checked is not None:
                checked.check(snapshot.schema, config.ordering_field)
        else:
            rule = _mode_rule(config) if by_mode else payload_rule(config.payload_class)
            check_compared(rule, config.ordering_fields)
            if config.version.fills_schema_defaults:
                rule = with_defaults(rule, snapshot)
    except (UnsupportedError, SchemaError, InvalidOptionError) as e:
        raise e.at(table=snapshot.storage.uri) from None
    if by_mode:
        scope = BlockScope(latest=snapshot.as_of or "", grouped=True)
    else:
        scope = BlockScope(
            visible=snapshot.visible(),
            inflight=frozenset(
                i.time
                for i in (*snapshot.timeline.pending_writes(), *snapshot.timeline.pending(LOG_COMPACTION))
            ),
            latest=snapshot.as_of or "",
        )
    key_spec = None if config.populate_meta_fields else metadata_config.key_spec(config)
    return SliceMerge(
        rule,
        config.ordering_field,
        scope,
        key_spec,
        more_ordering=config.ordering_fields[1:],
        evolution=snapshot.evolution,
        float_digits=config.version.keeps_digits_of_floats,
    )


def _mode_rule(config: TableConfig) -> MergeRule:
    """Merge rule of a table of version 8 or later: merge mode, or custom payload class."""
    return mode_rule(
        config.merge_mode,
        payload=config.payload_class,
        has_ordering=bool(config.ordering_fields),
        partial_update=config.partial_update_mode,
        properties=config.merge_properties,
    )
