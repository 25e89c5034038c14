"""Merges that look at the defaults of a table's schema, of which only null is known here.

OverwriteNonDefaultsWithLatestAvroPayload, and partial updates of the mode IGNORE_DEFAULTS, leave the stored value
where a record has the default of its column.  Schemas that Spark makes have no default but null; those of a schema
registry may.
"""

from __future__ import annotations

import json

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.merge.modes import IS_DELETED
from hudi_format.merge.rules import MergeRule
from hudi_timeline.snapshot import CommitCache
from hudi_timeline.timeline import SCHEMA_NEUTRAL, Timeline


def refuse_defaults(rule: MergeRule, timeline: Timeline, commits: CommitCache, table: str) -> None:
    """Refuse such a merge where the newest schema has a default that is not null.

    Raises:
        UnsupportedError: naming the columns.
        CorruptFileError: the schema is no JSON.
    """
    if not rule.by_defaults:
        return
    for instant in reversed(timeline.completed_writes()):
        metadata = commits.get(instant)
        if metadata.operation in SCHEMA_NEUTRAL or not metadata.schema_text:
            continue
        try:
            fields = json.loads(metadata.schema_text)["fields"]
            # That of the mark of deletes is false, which changes nothing: a stored row is not deleted.
            names = [f["name"] for f in fields if f.get("default") is not None and f["name"] != IS_DELETED]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
            raise CorruptFileError(
                f"the commit's schema is none: {e}", table=table, instant=instant.time, file=instant.path
            ) from None
        if names:
            raise UnsupportedError(
                f"{rule.name} leaves stored values where a record has its column's default, and defaults other than "
                f"null are not provided: {', '.join(names)}",
                table=table,
                instant=instant.time,
                remedy="read and write the table with Apache Hudi, or choose another payload.",
                columns=names,
            )
        return


__all__ = ["refuse_defaults"]
