"""Result of a write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from hudi_format.model import WriteStat
from hudi_format.schema.changes import SchemaChange
from hudi_index.lookup import LookupCount

if TYPE_CHECKING:
    from hudi_timeline.writing.routing import Forecast

_PARTITIONS_SHOWN = 10


@dataclass(frozen=True)
class CommitResult:
    """One completed write.

    Attributes:
        instant: the commit's instant time; "" where nothing was written (mode "ignore", or no rows and
            `hoodie.allow.empty.commit=false`).
        completion: when the commit was completed, as an instant time of the table's zone; readers in that order
            (`hudi.read.incremental.order=completion`) have it as their checkpoint, others the instant.
        action: `commit` or `replacecommit`.
        operation: Hudi's operation name, lower case.
        write_stats: a statistic for each file written.
        replaced: file groups that are no longer visible, by partition.
        dropped_rows: rows of these, of a write that put none in their place; None where the active commits do not
            say it, and for all other writes.
        timings: seconds by phase.
        warnings: what the user should know, one sentence each.
        duplicates: how a record may stand in the table twice after this write, one sentence each: what the operation
            does not look for; () where it looked for all, or the table was empty.
        ordering_field: the column that decided between records of one key, or None.
        schema_changes: what became of the table's schema, column by column.
        quarantined: rows that were not taken, by the rule that they break.
        quarantine: the path of the table that has them; "" where none was given.
        retries: how often the write lost to another one before.
        dry_run: nothing was written; the other attributes say what would be, without bytes.
        rewritten_bytes: of a dry run: size of the base files that would be read and written again; None where it is not
            known.
        forecast: of a dry run: bytes and seconds that the write is expected to take, by those of the table's last
            commits; None where these do not say theirs.
        lookup: the index of an upsert or delete and how many files it had to look into; None where unknown.
    """

    instant: str
    action: str
    operation: str
    table: str
    write_stats: tuple[WriteStat, ...] = ()
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    ordering_field: str | None = None
    schema_changes: tuple[SchemaChange, ...] = ()
    lookup: LookupCount | None = None
    quarantined: Mapping[str, int] = field(default_factory=dict)
    quarantine: str = ""
    completion: str = ""
    dropped_rows: int | None = None
    retries: int = 0
    dry_run: bool = False
    duplicates: tuple[str, ...] = ()
    rewritten_bytes: int | None = None
    forecast: Forecast | None = None

    @property
    def inserted(self) -> int:
        return sum(s.num_inserts for s in self.write_stats)

    @property
    def updated(self) -> int:
        return sum(s.num_update_writes for s in self.write_stats)

    @property
    def deleted(self) -> int:
        return sum(s.num_deletes for s in self.write_stats)

    @property
    def files_written(self) -> int:
        """Number of new file groups."""
        return sum(s.prev_commit == "null" for s in self.write_stats)

    @property
    def files_rewritten(self) -> int:
        """Number of rewritten file groups."""
        return sum(s.prev_commit != "null" and "logVersion" not in s.extra for s in self.write_stats)

    @property
    def log_files_written(self) -> int:
        """Number of new log files."""
        return sum("logVersion" in s.extra for s in self.write_stats)

    @property
    def bytes_written(self) -> int:
        return sum(s.total_write_bytes for s in self.write_stats)

    @property
    def event_times(self) -> tuple[int, int] | None:
        """Smallest and largest event time of updated records, in milliseconds since 1970.

        None where the payload keeps none: it is DefaultHoodieRecordPayload and its kin that do, of the column
        `hoodie.payload.event.time.field`.
        """
        least = [s.min_event_time for s in self.write_stats if s.min_event_time is not None]
        greatest = [s.max_event_time for s in self.write_stats if s.max_event_time is not None]
        return (min(least), max(greatest)) if least and greatest else None

    @property
    def partitions(self) -> tuple[str, ...]:
        """Sorted partitions with a written or replaced file."""
        return tuple(sorted({s.partition for s in self.write_stats} | set(self.replaced)))

    def __repr__(self) -> str:
        if not self.instant and not self.dry_run:
            return f"CommitResult(nothing written to {self.table})"
        parts = [f"{n:,} {what}" for n, what in self._counts() if n] or [self._dropped() or "no rows changed"]
        name = f"dry run of {self.operation}" if self.dry_run else f"{self.operation} {self.instant}"
        text = f"{name}: {', '.join(parts)}; {self._files()}"
        if self.quarantined:
            text += f"; {self._aside()}"
        if self.schema_changes:
            more = f" and {len(self.schema_changes) - 3} more" if len(self.schema_changes) > 3 else ""
            text += f"; schema: {', '.join(map(str, self.schema_changes[:3]))}{more}"
        if self.dry_run:
            keys = None if self.lookup is None else self.lookup.keys
            text += "" if self.lookup is None or keys is None else f"; keys by {self.lookup.index}: {keys}"
            text += "" if self.forecast is None else f"; {self.forecast}"
            return f"CommitResult({text})"
        return f"CommitResult({text}; {self.bytes_written / 1e6:.1f} MB, {self.seconds:.2f} s)"

    def _repr_html_(self) -> str:
        """HTML view for notebooks."""
        if self.dry_run:
            return f"<p>{escape(repr(self))}</p>"
        if not self.instant:
            return f"<p>Nothing was written to <code>{escape(self.table)}</code>.</p>"
        counts = [f"{n:,} {what}" for n, what in self._counts() if n] or [self._dropped() or "none changed"]
        shown = self.partitions[:_PARTITIONS_SHOWN]
        more = len(self.partitions) - len(shown)
        phases = [f"{name} {seconds:.2f} s" for name, seconds in self.timings.items()]
        facts = [
            ("table", self.table),
            ("commit", f"{self.instant} ({self.action}, {self.operation})"),
            ("rows", ", ".join(counts)),
            ("quarantine", self._aside()),
            ("files", f"{self._files()}, {self.bytes_written / 1e6:.1f} MB"),
            ("partitions", ", ".join(p or "(none)" for p in shown) + (f" and {more:,} more" if more else "")),
            ("time", f"{self.seconds:.2f} s: {', '.join(phases)}"),
            ("ordering field", self.ordering_field or ""),
            ("schema", "; ".join(map(str, self.schema_changes))),
            ("warnings", "; ".join(self.warnings)),
            ("duplicates", "; ".join(self.duplicates)),
        ]
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in facts
            if value
        )
        return f"<table>{rows}</table>"

    @property
    def seconds(self) -> float:
        """Duration of the write in seconds."""
        return sum(self.timings.values())

    def _counts(self) -> list[tuple[int, str]]:
        return [(self.inserted, "inserted"), (self.updated, "updated"), (self.deleted, "deleted")]

    def _dropped(self) -> str:
        """Partitions replaced by nothing; "" for none."""
        groups, partitions = sum(len(ids) for ids in self.replaced.values()), len(self.replaced)
        if not groups:
            return ""
        count = self.dropped_rows
        rows = "" if count is None else f"{count:,} row{'s' * (count != 1)} in "
        return (
            f"{rows}{groups:,} file group{'s' * (groups > 1)} of {partitions:,} "
            f"partition{'s' * (partitions > 1)} dropped"
        )

    def _aside(self) -> str:
        if not self.quarantined:
            return ""
        rules = ", ".join(f"{rule} {n:,}" for rule, n in self.quarantined.items())
        return f"{sum(self.quarantined.values()):,} quarantined in {self.quarantine} ({rules})"

    def _files(self) -> str:
        replaced = sum(len(ids) for ids in self.replaced.values())
        files = f"{self.files_written} new and {self.files_rewritten} rewritten files"
        if self.log_files_written:
            files += f", {self.log_files_written} log file{'s' * (self.log_files_written > 1)}"
        return f"{files}, {replaced} replaced" if replaced else files
