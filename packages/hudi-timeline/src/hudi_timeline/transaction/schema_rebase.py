"""Merging of a commit's schema with those of concurrent commits.

A commit's schema becomes the table's.  One that was decided before another writer added a column, or widened one,
would take that back without a word, though the two have no file group in common.  So the two are merged: what either
added stays.  The files need nothing: a reader finds null for a column that a file lacks, and takes its narrower values
for the table's type, as for all files from before a change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from hudi_format.errors import HudiError, SchemaError
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.changes import ADDED, DROPPED, RELAXED, WIDENED, SchemaChange, schema_changes
from hudi_format.schema.evolution import reconcile
from hudi_format.schema.extension_types import own_types
from hudi_format.schema.field_defaults import with_defaults_of
from hudi_format.schema.meta_fields import without_meta
from hudi_format.schema.unions import number_unions, with_unions_of
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import history_file
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction import conflict_resolution
from hudi_timeline.transaction.conflict_resolution import Rivals
from hudi_timeline.transaction.conflict_strategies import ConflictStrategy, SimpleConcurrentFileWrites
from hudi_timeline.transaction.schema_history import ALTER_SCHEMA
from hudi_timeline.transaction.write_basis import Basis

# In the commit's extraMetadata: the columns that its writer dropped because its options said so, as a JSON list.
ON_PURPOSE = "hudi.schema.dropped"

Recheck: TypeAlias = Callable[[CommitMetadata, Rivals], CommitMetadata]
"""Looks at what others did since a write began: raises, or gives the metadata to publish beside them."""


def beside_others(
    instant: str,
    metadata: CommitMetadata,
    before: TableSnapshot,
    now: TableSnapshot,
    recheck: Recheck | None = None,
    strategy: ConflictStrategy | None = None,
) -> tuple[CommitMetadata, tuple[str, ...]]:
    """Metadata to publish next to concurrent commits, with warnings.

    Args:
        instant: of the write.
        metadata: what it is about to publish.
        before, now: the table when it began, and under the lock.
        recheck: called where others have changed anything in between.
        strategy: says which file groups are the same; None for Apache Hudi's default.

    Raises:
        WriteConflictError: it does not go with what others did in between.
        ConcurrentWriterError: the table was restored.
    """
    changes = Basis.of(before.config, before.timeline).changes(now.config, now.timeline)
    strategy = strategy or SimpleConcurrentFileWrites()
    rivals = conflict_resolution.check(instant, metadata, changes, before.timeline, now, strategy)
    if not changes:
        return metadata, ()
    if recheck is not None:
        checked, metadata = metadata.file_groups(), recheck(metadata, rivals)
        if more := metadata.file_groups() - checked:
            conflict_resolution.check_planned(
                instant, metadata.operation, more, before.timeline, now, strategy
            )
    metadata, warning = _rebased(instant, metadata, rivals, before.timeline, now)
    return metadata, (warning,) if warning else ()


def _rebased(
    instant: str,
    metadata: CommitMetadata,
    rivals: Rivals,
    before: Timeline,
    now: TableSnapshot,
) -> tuple[CommitMetadata, str]:
    """Metadata rebased on writes completed since the begin, with a warning.

    Args:
        instant: of this write.
        rivals: what these writes did; they share no file group with this one.
        before: the timeline when this write began.
        now: the table under the lock.

    Raises:
        WriteConflictError: schemas that do not go together; or the newest commit is, and stays, one that lacks what
            this write adds.
    """
    own_text = metadata.schema_text
    altered = next((i for i, c in rivals.commits.items() if c.operation == ALTER_SCHEMA), None)
    # Later files, also those of services, count as of the new columns, and were written with the old ones.
    stale = (
        bool(c.table_schema_text) or (i.time > instant and bool(c.stats)) for i, c in rivals.commits.items()
    )
    if altered is not None or (metadata.operation == ALTER_SCHEMA and any(stale)):
        # By names alone a renamed column would come back beside itself.
        what = (
            "columns were changed" if altered is not None else "files were written with other columns in mind"
        )
        raise rivals.changes.conflict(
            f"{what} meanwhile", table=now.storage.uri, instant=instant, read_again=True
        )
    if not own_text:
        return metadata, ""

    def refuse(why: str) -> HudiError:
        return rivals.changes.conflict(why, table=now.storage.uri, instant=instant)

    config, read, writes = now.config, now.commits.get, now.timeline.completed_writes()
    last = writes[-1] if writes else None
    by_id = last is not None and last.time > instant and bool(history_file(now))
    texts = {i: text for i, c in rivals.commits.items() if (text := c.table_schema_text) and text != own_text}
    if not texts and not by_id:
        return metadata, ""
    ours = without_meta(from_avro(own_text))
    base = without_meta(from_avro(text)) if (text := _newest(before, read, config)) else pa.schema([])
    if by_id and (own := _gained(base, ours)):
        # A version of an older instant is not the newest one's: what both have added would be two columns.
        raise refuse(
            f"a commit after this one has been completed, and {', '.join(own)} would be other columns by id"
        )
    merged = ours
    for rival, text in texts.items():
        if number_unions(text) or own_types(text):
            raise refuse(f"{rival.time} brought columns that are read here, not written")
        theirs = without_meta(from_avro(text))
        try:
            merged = _merged(merged, theirs, base)
        except SchemaError as e:
            raise refuse(f"the schema of {rival.time} does not go with this write's: {e.message}") from None
    _check_fixed(config, ours, merged, refuse)
    if last is not None and last.time > instant:
        # The newest instant's schema is the table's, whenever it was completed.
        stays = _newest(now.timeline, read, config)
        there = without_meta(from_avro(stays)) if stays else pa.schema([])
        if lost := _gained(there, merged):
            raise refuse(
                f"a commit after this one has been completed, whose schema lacks {', '.join(lost)} as this write has it"
            )
    if merged.equals(ours):
        return metadata, ""
    text = to_avro(merged, config.name)
    try:
        for former in (own_text, *texts.values()):  # Arrow's schemas have no unions, and no defaults
            text = with_defaults_of(with_unions_of(text, former), former)
    except SchemaError as e:
        raise refuse(e.message) from None
    added = [c.column for c in schema_changes(merged, ours, merged) if c.kind == ADDED]
    warning = f"{rivals.changes} while this write was running: its schema was merged with theirs"
    if added:
        warning += f", and its rows have null in {', '.join(added)}"
    return replace(metadata, extra={**metadata.extra, SCHEMA_KEY: text}), warning


def dropped_on_purpose(changes: Iterable[SchemaChange]) -> dict[str, str]:
    """Commit entry for deliberately dropped columns."""
    names = sorted(c.column for c in changes if c.kind == DROPPED)
    return {ON_PURPOSE: json.dumps(names)} if names else {}


def _newest(timeline: Timeline, read: Callable[[Instant], CommitMetadata], config: TableConfig) -> str:
    """Text of the table's schema at that time, "" where it had none."""
    found = (read(i).table_schema_text for i in reversed(timeline.completed_writes()))
    return next((text for text in found if text), config.create_schema or "")


def _merged(ours: pa.Schema, theirs: pa.Schema, base: pa.Schema) -> pa.Schema:
    """Union of both schemas; a column dropped by one side stays dropped.

    Raises:
        SchemaError: both have a column, in types that do not go together.
    """
    dropped = {n for n in base.names if n not in ours.names}
    wanted = pa.schema([f for f in theirs if f.name not in dropped])
    if not _lost(wanted, ours) and all(ours.field(f.name).nullable or not f.nullable for f in wanted):
        return ours
    return reconcile(ours, wanted, set_null_for_missing=True)


def _lost(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Columns and members missing in `after`, or with another type."""
    changes = schema_changes(after, before, after)
    return [c.column for c in changes if c.kind in (DROPPED, WIDENED)]


def _gained(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Columns and members that are new in `after`, or take more values."""
    changes = schema_changes(after, before, after)
    return [c.column for c in changes if c.kind in (ADDED, WIDENED, RELAXED)]


def _check_fixed(
    config: TableConfig, ours: pa.Schema, merged: pa.Schema, refuse: Callable[[str], HudiError]
) -> None:
    """Refuse type changes of key, partition and ordering columns."""
    fields: Iterable[str] = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    for name in dict.fromkeys(f.partition(".")[0] for f in fields):
        if name in ours.names and name in merged.names and ours.field(name).type != merged.field(name).type:
            raise refuse(
                f"column {name} is {merged.field(name).type} now, and this write made keys, paths or an order of it as "
                f"{ours.field(name).type}"
            )
