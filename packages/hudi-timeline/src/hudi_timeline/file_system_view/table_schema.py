"""Table schema history for reads with schema on read.

The commits say whether there is one (`latest_schema`); `.hoodie/.schema/` holds all versions.

Source: TableSchemaResolver, InternalSchemaCache and FileBasedInternalSchemaStorageManager of Apache Hudi 0.15.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.merge.payloads import IS_DELETED, Default, MergeRule
from hudi_format.schema.avro import to_avro
from hudi_format.schema.extension_types import own_types
from hudi_format.schema.field_defaults import with_defaults_of
from hudi_format.schema.unions import number_unions, with_unions_of
from hudi_format.storage.stable_reads import read_whole
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.table_options import SCHEMA_ON_READ
from hudi_timeline.table_config import META_FOLDER
from hudi_timeline.timeline.commit_files import LATEST_SCHEMA
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant

if TYPE_CHECKING:
    from hudi_format.schema.internal_schema import SchemaVersion

FOLDER = f"{META_FOLDER}/.schema"
SUFFIX = ".schemacommit"


def with_history(snapshot: TableSnapshot, enabled: bool | None) -> TableSnapshot:
    """The snapshot with schema mappings by column id, for tables with a history.

    Args:
        enabled: what the user says; False reads files by name, as Apache Hudi does where it is not asked
            otherwise; None reads by id where there is a history.

    Raises:
        CorruptFileError, MissingFileError: the history cannot be read.
        UnsupportedError: the newest schema was written by someone who did not keep the history.
    """
    if enabled is False:
        return snapshot
    text, newest = _latest(snapshot)
    if newest is None:
        return snapshot
    from hudi_format.schema.internal_schema import ReadEvolution

    wanted = _parsed(snapshot, text, newest)
    versions = {v.version: v for v in _history(snapshot)}
    of_instant: dict[str, int] = {}
    seen = {text: wanted}
    for instant in snapshot.instants:
        own = snapshot.commits.get(instant).extra.get(LATEST_SCHEMA)
        if own:
            if own not in seen:
                seen[own] = _parsed(snapshot, own, instant)
            of_instant[instant.time] = seen[own].version
    for version in seen.values():
        versions.setdefault(version.version, version)
    ordered = tuple(versions[n] for n in sorted(versions))
    return replace(snapshot, evolution=ReadEvolution(wanted, ordered, of_instant))


def _latest(snapshot: TableSnapshot) -> tuple[str, Instant | None]:
    """Schema entry of the newest commit with one, and that commit, or None.

    Of a time before the active timeline, or behind a savepoint, the archive has it, as of `latest_schema`.
    """
    newest = newest_active(snapshot)
    since = "" if newest is None else newest[0].time
    if snapshot.may_be_archived_since(since) and history_file(snapshot):
        newest = snapshot.archived_schema(since) or newest
    if newest is None:
        return "", None
    instant, metadata = newest
    text = metadata.extra.get(LATEST_SCHEMA) or ""
    if not text and _named_before(snapshot, instant):
        raise UnsupportedError(
            f"the commit {instant.time} does not go on with the table's schema history",
            table=snapshot.storage.uri,
            instant=instant.time,
            remedy=f"read with {SCHEMA_ON_READ}=false, which matches columns by name, or with Apache Hudi.",
        )
    return text, instant if text else None


def newest_active(snapshot: TableSnapshot) -> tuple[Instant, CommitMetadata] | None:
    """Newest commit of the active timeline that has a schema, and its metadata."""
    for instant in reversed(snapshot.instants):
        metadata = snapshot.commits.get(instant)
        if metadata.table_schema_text:
            return instant, metadata
    return None


def _named_before(snapshot: TableSnapshot, instant: Instant) -> bool:
    """Whether an older commit has a schema history."""
    older = [i for i in snapshot.instants if i.time < instant.time]
    named = (i for i, f in zip(older, snapshot.commits.files(older), strict=True) if f.names_history)
    return any(snapshot.commits.get(i).extra.get(LATEST_SCHEMA) for i in named)


def history_file(snapshot: TableSnapshot) -> str:
    """Path of the newest valid schemacommit; "" where the table has no schema history."""
    if snapshot.timeline.lacks(FOLDER.rpartition("/")[2]):
        return ""
    # Each commit goes on with it: of older ones, which may have been undone, none counts.
    storage, completed = snapshot.storage, snapshot.visible().completed
    names = sorted(e.name for e in storage.list(FOLDER) if not e.is_dir and e.name.endswith(SUFFIX))
    # From table version 8 on a name has the completion time too: `<requested>_<completed>.schemacommit`.
    valid = [n for n in names if n.removesuffix(SUFFIX).partition("_")[0] in completed]
    return f"{FOLDER}/{valid[-1]}" if valid else ""


def _history(snapshot: TableSnapshot) -> tuple[SchemaVersion, ...]:
    """All versions in the newest valid schemacommit."""
    from hudi_format.schema.internal_schema import parse_versions

    storage, path = snapshot.storage, history_file(snapshot)
    if not path:
        return ()
    try:
        return read_whole(storage, path, parse_versions)
    except FileNotFoundError:
        raise MissingFileError(
            "a file of the schema history is gone",
            table=storage.uri,
            file=path,
            remedy="read the table again: a cleaner may have removed it meanwhile.",
        ) from None
    except CorruptFileError as e:
        e.advise(
            f"restore it from a backup, or read with {SCHEMA_ON_READ}=false, which matches columns by name."
        )
        raise e.at(table=storage.uri, file=path) from None


def _parsed(snapshot: TableSnapshot, text: str, instant: Instant) -> SchemaVersion:
    from hudi_format.schema.internal_schema import parse_version

    try:
        return parse_version(text)
    except CorruptFileError as e:
        raise e.at(table=snapshot.storage.uri, instant=instant.time, file=instant.path) from None


# Merges that look at the defaults of a table's schema.
#
# OverwriteNonDefaultsWithLatestAvroPayload, and partial updates of the mode IGNORE_DEFAULTS, leave the stored value
# where a record has the default of its column.  Schemas that Spark makes have no default but null; those of a schema
# registry, which Apache Hudi's streamer and its Flink writer keep, may.
#
# What is "the default" is decided by Java: the payload compares with `equals`, in which a text of a record (Avro's
# Utf8) is never a default (a String), nor are bytes, records or decimals; numbers, booleans and empty lists and maps
# may be.  IGNORE_DEFAULTS compares references, which are the same for null, booleans and the whole numbers of -128 to
# 127 that the JVM keeps.  Apache Hudi's compaction writes the rows so, so they are read so.
#
# Source: OverwriteWithLatestAvroPayload.overwriteField and PartialUpdateHandler.reconcileDefaultValues of Apache Hudi
# 0.15, 1.0.2 and 1.2.0; the golden tables `defaults_overwrite` and `defaults_partial`.

_KEPT_BY_JVM = range(-128, 128)


def with_defaults(rule: MergeRule, snapshot: TableSnapshot) -> MergeRule:
    """The rule with the non-null defaults of the snapshot's newest schema.

    Raises:
        CorruptFileError: the schema is no JSON, or the archive cannot be read.
        MissingFileError: the archive cannot be read.
        UnsupportedError: a default that is a list with elements.
    """
    if not rule.by_defaults:
        return rule
    by_reference = rule.name in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
    table = snapshot.storage.uri
    defaults = _defaults(snapshot)
    return replace(
        rule, defaults=tuple((n, _gap(n, t, d, by_reference, table)) for n, (t, d) in defaults.items())
    )


def with_defaults_of_table(rule: MergeRule, snapshot: TableSnapshot) -> MergeRule:
    """The rule of a write with the non-null defaults of the table's newest schema.

    Raises:
        as `with_defaults`.
    """
    return with_defaults(rule, snapshot.at(None))


def keeping_defaults(text: str, snapshot: TableSnapshot | None) -> str:
    """A write's schema with the non-null defaults of the table's newest one.

    Without them all later merges would go by null.

    Args:
        text: Avro schema of the rows that are written, which have no defaults.
        snapshot: the table before the write; None for a new one.

    Raises:
        CorruptFileError: the newest schema is no JSON.
    """
    if snapshot is None:
        return text
    newest, instant, file = _newest_schema(snapshot.at(None))
    if newest is None:
        return text
    try:
        return with_defaults_of(text, newest)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise CorruptFileError(
            f"the commit's schema is invalid: {e}", table=snapshot.storage.uri, instant=instant, file=file
        ) from None


def written_text(
    schema: pa.Schema, name: str, snapshot: TableSnapshot | None, given: str | None = None
) -> str:
    """Avro text of a write's columns, with the unions of the table's newest schema.

    Args:
        schema: with or without meta columns.
        name: of the table.
        snapshot: the table before the write; None for a new one.
        given: schema that the write's options give to its rows.

    Raises:
        CorruptFileError: the newest schema is no Avro schema.
        SchemaError: a column with a union that has another type now.
    """
    text, newest = to_avro(schema, name), None
    if snapshot is not None:
        newest, instant, file = _newest_schema(snapshot.at(None))
    try:
        for former in (newest, given):
            text = with_unions_of(text, former) if former else text
    except CorruptFileError as e:
        raise (
            e if snapshot is None else e.at(table=snapshot.storage.uri, instant=instant, file=file)
        ) from None
    return text


def refuse_unwritable(snapshot: TableSnapshot) -> None:
    """Refuse writes to schemas with unions of two number types, vectors, blobs or variants.

    They are numbers, structs and lists in Arrow, and would be in the table from then on.  Of unions of two number types
    Apache Hudi itself writes base files that it cannot read.

    Raises:
        UnsupportedError: naming the columns.
        CorruptFileError: the schema is no Avro schema.
    """
    table = snapshot.storage.uri
    text, instant, file = _newest_schema(snapshot.at(None))
    if text is None:
        return
    try:
        names = number_unions(text)
        own = own_types(text)
    except CorruptFileError as e:
        raise e.at(table=table, instant=instant, file=file) from None
    if own:
        shown = ", ".join(f"{name} ({kind})" for name, kind in own.items())
        raise UnsupportedError(
            f"columns of Apache Hudi's own types can be read, but not written: {shown}",
            table=table,
            remedy="write the table with Apache Hudi 1.2 or later.",
            columns=list(own),
        )
    if names:
        raise UnsupportedError(
            f"columns {', '.join(names)} are Avro unions of two number types, of which Apache Hudi cannot read the "
            "base files that it writes: they are read here, and not written",
            table=table,
            remedy="write the rows into a new table with one number type for each of these columns.",
            columns=names,
        )


def _newest_schema(snapshot: TableSnapshot) -> tuple[str | None, str, str]:
    """Text of the snapshot's newest schema, with its instant and file."""
    newest = newest_active(snapshot)
    newest = snapshot.archived_schema("" if newest is None else newest[0].time) or newest
    if newest is None:
        return snapshot.config.create_schema or None, "", ""
    instant, metadata = newest
    return metadata.schema_text, instant.time, instant.path


def _defaults(snapshot: TableSnapshot) -> dict[str, tuple[Any, Any]]:
    """Columns with a non-null default: type and default."""
    text, instant, file = _newest_schema(snapshot)
    return {} if text is None else _of_schema(text, snapshot.storage.uri, instant, file)


def _of_schema(text: str, table: str, instant: str, file: str) -> dict[str, tuple[Any, Any]]:
    try:
        fields = loads(text)["fields"]
        # The default of the mark of deletes is false, which changes nothing: a stored row is not deleted.
        return {
            f["name"]: (f["type"], f["default"])
            for f in fields
            if f.get("default") is not None and f["name"] != IS_DELETED
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise CorruptFileError(
            f"the commit's schema is invalid: {e}", table=table, instant=instant, file=file
        ) from None


def _gap(column: str, kind: Any, default: Any, by_reference: bool, table: str) -> Default:
    """Filled default of a column; a default belongs to the first type of a union."""
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    logical = isinstance(kind, dict) and kind.get("logicalType")
    name = kind.get("type") if isinstance(kind, dict) else kind
    if isinstance(default, bool):
        return Default(default if name == "boolean" else None)
    if name in ("int", "long") and isinstance(default, int):
        return Default(default if not by_reference or default in _KEPT_BY_JVM else None)
    if by_reference or logical == "decimal":
        return Default(None)
    if name in ("float", "double") and isinstance(default, (int, float)):
        return Default(float(np.float32(default)) if name == "float" else float(default))
    if default in ([], {}) and name in ("array", "map"):
        return Default(())
    if name == "array":
        raise UnsupportedError(
            f"the column {column} has a default with list elements, which this merge does not support",
            table=table,
            remedy="read the table with Apache Hudi.",
            columns=[column],
        )
    return Default(None)
