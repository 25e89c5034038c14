"""Merges that look at the defaults of a table's schema.

OverwriteNonDefaultsWithLatestAvroPayload, and partial updates of the mode IGNORE_DEFAULTS, leave the stored value
where a record has the default of its column.  Schemas that Spark makes have no default but null; those of a schema
registry, which Apache Hudi's streamer and its Flink writer keep, may.

What is "the default" is decided by Java: the payload compares with `equals`, in which a text of a record (Avro's
Utf8) is never a default (a String), nor are bytes, records or decimals; numbers, booleans and empty lists and maps
may be.  IGNORE_DEFAULTS compares references, which are the same for null, booleans and the whole numbers of -128 to
127 that the JVM keeps.  Apache Hudi's compaction writes the rows so, so they are read so.

Source: OverwriteWithLatestAvroPayload.overwriteField and PartialUpdateHandler.reconcileDefaultValues of Apache Hudi
0.15, 1.0.2 and 1.2.0; the golden tables `defaults_overwrite` and `defaults_partial`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.json_text import loads
from hudi_format.merge.modes import IS_DELETED
from hudi_format.merge.rules import Default, MergeRule
from hudi_format.schema.avro import union_columns
from hudi_format.schema.vector import own_types
from hudi_timeline.instant import Instant
from hudi_timeline.snapshot import CommitCache
from hudi_timeline.timeline import SCHEMA_NEUTRAL, Timeline

_KEPT_BY_JVM = range(-128, 128)


def with_defaults(
    rule: MergeRule, writes: Iterable[Instant], commits: CommitCache, create_schema: str | None, table: str
) -> MergeRule:
    """The rule with the defaults that are not null, of the newest schema.

    Args:
        writes: the completed writes that count, oldest first.
        create_schema: the schema of a table whose writes name none.

    Raises:
        CorruptFileError: the schema is no JSON.
        UnsupportedError: a default that is a list with elements.
    """
    if not rule.by_defaults:
        return rule
    by_reference = rule.name in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
    defaults = _defaults(writes, commits, create_schema, table)
    return replace(
        rule, defaults=tuple((n, _gap(n, t, d, by_reference, table)) for n, (t, d) in defaults.items())
    )


def refuse_defaults(rule: MergeRule, timeline: Timeline, commits: CommitCache, table: str) -> None:
    """Refuse to write by such a merge where the newest schema has a default that is not null.

    The schema of the rows that are written has none: the table's would lose it, and all later merges would go by null.

    Raises:
        UnsupportedError: naming the columns.
        CorruptFileError: the schema is no JSON.
    """
    if not rule.by_defaults:
        return
    names = list(_defaults(timeline.completed_writes(), commits, None, table))
    if names:
        raise UnsupportedError(
            f"{rule.name} leaves stored values where a record has its column's default, and the defaults other than "
            f"null of {', '.join(names)} would be lost by a write of rows that have none",
            table=table,
            remedy="write the table with Apache Hudi's streamer, or choose another payload.",
            columns=names,
        )


def refuse_unwritable(
    writes: Iterable[Instant], commits: CommitCache, create_schema: str | None, table: str
) -> None:
    """Refuse to write where the newest schema has columns that are unions of several types, vectors, blobs or variants.

    They are structs and lists in Arrow, and would be in the table from then on.  Apache Hudi itself inserts and logs
    records with unions, and fails to rewrite a file that has them (`Not in union`, `Union is malformed`).

    Raises:
        UnsupportedError: naming the columns.
        CorruptFileError: the schema is no Avro schema.
    """
    text, instant, file = _newest_schema(writes, commits, create_schema)
    if text is None:
        return
    try:
        names = union_columns(text)
        own = own_types(text)
    except CorruptFileError as e:
        raise e.at(table=table, instant=instant, file=file) from None
    if own:
        shown = ", ".join(f"{name} ({kind})" for name, kind in own.items())
        raise UnsupportedError(
            f"columns of Apache Hudi's own types are read, not written: {shown}",
            table=table,
            remedy="write the table with Apache Hudi 1.2 or later.",
            columns=list(own),
        )
    if names:
        raise UnsupportedError(
            f"columns {', '.join(names)} are Avro unions of several types, which are read, not written",
            table=table,
            remedy="write the table with the job that made it, or into a new table with one type for each column.",
            columns=names,
        )


def _newest_schema(
    writes: Iterable[Instant], commits: CommitCache, create_schema: str | None
) -> tuple[str | None, str, str]:
    """The newest schema's text, and the instant and file that have it."""
    for instant in reversed(list(writes)):
        metadata = commits.get(instant)
        if metadata.operation not in SCHEMA_NEUTRAL and metadata.schema_text:
            return metadata.schema_text, instant.time, instant.path
    return create_schema or None, "", ""


def _defaults(
    writes: Iterable[Instant], commits: CommitCache, create_schema: str | None, table: str
) -> dict[str, tuple[Any, Any]]:
    """Columns with a default that is not null: type and default."""
    text, instant, file = _newest_schema(writes, commits, create_schema)
    return {} if text is None else _of_schema(text, table, instant, file)


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
            f"the commit's schema is none: {e}", table=table, instant=instant, file=file
        ) from None


def _gap(column: str, kind: Any, default: Any, by_reference: bool, table: str) -> Default:
    """What is filled in a column.  A default belongs to the first type of a union."""
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
            f"the column {column} has a list with elements as its default, and the merge goes by defaults",
            table=table,
            remedy="read the table with Apache Hudi.",
            columns=[column],
        )
    return Default(None)


__all__ = ["refuse_defaults", "refuse_unwritable", "with_defaults"]
