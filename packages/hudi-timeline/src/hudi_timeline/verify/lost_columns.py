"""Lost columns: dropped by a writer that did not know of their addition.

A write that is planned before another one adds a column, and does not look again, leaves the schema that it knew: the
column is gone, and its values from each file that it rewrote.  Releases of ours up to 2026 did so, and so may other
writers.  A column that was dropped on purpose looks alike, so only what shows the order of things counts:

- The commit began before the one that added the column was completed: its writer cannot have known of it.
- Or it follows the one that added the column, has the very schema of before it, was written by us, and does not say
  that it drops any (`rebase.ON_PURPOSE`), which those of our writes do that drop columns by their options.

Nothing is said of a column that the table has again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import HudiError, SchemaError
from hudi_format.schema.avro import from_avro
from hudi_format.schema.changes import DROPPED, WIDENED, schema_changes
from hudi_format.schema.evolution import reconcile
from hudi_format.schema.meta_fields import without_meta
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import REQUESTED, Instant, parse_instant
from hudi_timeline.transaction.schema_rebase import ON_PURPOSE
from hudi_timeline.verify.check_base_files import CheckedFile
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts

# Files of a table that was copied have the times of the copy.
_CLOCK_MS = 60_000
# A schema history says itself which columns were dropped.
_HISTORY = "latest_schema"
_ARROW = "parquet-cpp-arrow"


@dataclass(frozen=True)
class _Said:
    """A commit with a schema."""

    instant: Instant
    commit: CommitMetadata
    schema: pa.Schema


def check_lost_columns(facts: TableFacts, sound: Sequence[CheckedFile], report: VerifyReport) -> None:
    """Report lost columns.

    Args:
        sound: the base files that can be read.
    """
    said = [] if facts.is_metadata else list(_schemas(facts))
    if len({s.commit.schema_text for s in said}) < 2:
        return
    ours = {f.file.instant for f in sound if _is_ours(f)}
    requested = {i.time: i.mtime_ms for i in facts.timeline.files if i.state == REQUESTED}
    newest = said[-1].schema
    for number, later in enumerate(said):
        if later.commit.extra.get(ON_PURPOSE) or later.commit.extra.get(_HISTORY):
            continue
        for place, earlier in enumerate(said[:number]):
            if earlier.commit.schema_text == later.commit.schema_text:
                continue
            if _overlap(earlier.instant, later.instant, requested):
                base = next(
                    (s for s in said[number - 1 :: -1] if not _overlap(s.instant, later.instant, requested)),
                    None,
                )
                how = "was not completed when this commit's write began"
            elif place == number - 1 and place > 0 and later.instant.time in ours:
                base = said[place - 1]
                if _types(base.schema) != _types(later.schema):
                    continue
                how = "stands between this commit and the one whose schema it has"
            else:
                continue
            known = pa.schema([]) if base is None else base.schema
            lost = _changed(earlier.schema, later.schema) - _changed(known, later.schema)
            gone = sorted(lost & _changed(earlier.schema, newest))
            if gone:
                report.add(
                    "schema-column-lost",
                    later.instant.path,
                    f"{', '.join(gone)} of {earlier.instant} left the schema with it, and {earlier.instant.time} {how}",
                    later.instant.time,
                    columns=gone,
                    added=earlier.instant.time,
                )


def _schemas(facts: TableFacts) -> Iterable[_Said]:
    known: dict[str, pa.Schema | None] = {}
    for instant, commit in facts.commits.items():
        text = commit.table_schema_text
        if not text:
            continue
        if text not in known:
            try:
                known[text] = without_meta(from_avro(text))
            except HudiError:  # a finding of its own
                known[text] = None
        schema = known[text]
        if schema is not None:
            yield _Said(instant, commit, schema)


def _changed(before: pa.Schema, after: pa.Schema) -> set[str]:
    """Columns and members dropped, or narrowed in type."""
    changes = schema_changes(after, before, after)
    gone = {c.column for c in changes if c.kind == DROPPED}
    retyped = {c.column for c in changes if c.kind == WIDENED}
    return gone | {n for n in retyped if not _holds(before, after, n.partition(".")[0])}


def _holds(before: pa.Schema, after: pa.Schema, column: str) -> bool:
    try:
        both = reconcile(
            pa.schema([before.field(column)]), pa.schema([after.field(column)]), set_null_for_missing=True
        )
    except SchemaError:
        return False
    return bool(both.field(0).type == after.field(column).type)


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in schema}


def _overlap(earlier: Instant, later: Instant, requested: dict[str, int]) -> bool:
    """Whether a write was pending when one of a later instant began."""
    if earlier.completion:
        return earlier.completion > later.time
    first, second = requested.get(earlier.time), requested.get(later.time)
    if not first or not second:
        return False
    try:
        apart = (parse_instant(later.time) - parse_instant(earlier.time)).total_seconds() * 1000
    except ValueError:
        return False
    return earlier.mtime_ms > second and abs((second - first) - apart) < _CLOCK_MS


def _is_ours(checked: CheckedFile) -> bool:
    return checked.footer is not None and str(checked.footer.metadata.created_by).startswith(_ARROW)
