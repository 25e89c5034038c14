"""Findings of `verify`, and the list of their kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from hudi_timeline.display.html_view import HtmlView, rows_view, titled

# Every kind of fault that `verify` knows: how bad it is, what to do, whether `repair` can do it.


class Severity(StrEnum):
    """Severity of a finding.

    ERROR: some reader or writer fails, or gives wrong rows.  WARNING: nothing is wrong yet, and a later operation
    may go wrong by it, or an older state cannot be read.  INFO: a leftover that nobody reads.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class FindingKind:
    severity: Severity
    remedy: str
    repairable: bool = False


_BACKUP = (
    "restore the file from a backup of the table, or restore the table to a savepoint before the instant."
)
_REPAIR = "`hudi repair` can put it right: look at its --plan first."
_MDT = "`hudi repair` takes the metadata table away; Apache Hudi builds it again at its next write."
_LEFT = "`hudi repair` removes it; it can also stay, as nothing reads it."


def _error(remedy: str = _BACKUP, *, repairable: bool = False) -> FindingKind:
    return FindingKind(Severity.ERROR, remedy, repairable)


def _warning(remedy: str = _REPAIR, *, repairable: bool = False) -> FindingKind:
    return FindingKind(Severity.WARNING, remedy, repairable)


def _info(remedy: str = _LEFT) -> FindingKind:
    return FindingKind(Severity.INFO, remedy, True)


KINDS: dict[str, FindingKind] = {
    # hoodie.properties
    "properties-unreadable": _error("restore .hoodie/hoodie.properties from a backup."),
    "properties-checksum": _error(
        "correct hoodie.table.name, hoodie.database.name or hoodie.table.checksum by hand; `hudi repair` does so "
        "where a whole backup of the file is there.",
        repairable=True,
    ),
    "properties-content": _error(
        "undo what was changed by hand in hoodie.properties, which no call opens so; if the table is as it says, "
        "`hudi repair` accepts it.",
        repairable=True,
    ),
    "properties-backup": _warning(repairable=True),
    "properties-value": _error("correct the value in .hoodie/hoodie.properties by hand."),
    # the timeline's states
    "timeline-folder": _error("restore the folder from a backup, or correct hoodie.timeline.path."),
    "timeline-no-requested": _warning(repairable=True),
    "timeline-no-inflight": _warning(repairable=True),
    "timeline-no-plan": _error(
        "restore the plan from a backup; `hudi repair` withdraws one that wrote nothing yet.", repairable=True
    ),
    "timeline-empty": _error(
        "restore the file from a backup; `hudi repair` undoes that of a clean or rollback, which is then done again.",
        repairable=True,
    ),
    "timeline-unreadable": _error(
        "restore the file from a backup; `hudi repair` undoes that of a clean or rollback, which is then done again.",
        repairable=True,
    ),
    "timeline-contradiction": _error(
        "find out which of the two actions the instant was; keep its files only."
    ),
    "timeline-two-completions": _error(repairable=True),
    "timeline-order": _error("correct the name: a completion lies after its request."),
    "timeline-instant-time": _warning("instants have 17 digits, of old releases 14; look at who made it."),
    "timeline-unknown-file": _warning(repairable=True),
    "timeline-unknown-action": _warning("use a release that knows the action; nothing here reads it."),
    "timeline-temporary": _info(),
    "timeline-hole": _error("restore the instant's files from a backup: later commits are built on it."),
    "timeline-rolled-back": _error(
        "delete the instant's completed file: the timeline says that it was rolled back."
    ),
    "savepoint-no-commit": _error("restore the commit's files from a backup, or delete the savepoint."),
    "savepoint-file-missing": _error("restore the file from a backup, or delete the savepoint."),
    # plans that are to be executed
    "plan-slice-missing": _error(
        "restore the file from a backup; `hudi repair` withdraws the plan where nothing was written for it.",
        repairable=True,
    ),
    "plan-deletes-live-file": _error(_REPAIR, repairable=True),
    # names and folders
    "name-unknown": _warning(repairable=True),
    "partition-metadata-missing": _error(_REPAIR, repairable=True),
    "partition-metadata": _warning(repairable=True),
    "partition-nested": _warning(
        "read it with a metadata table of Apache Hudi's, or write its rows into a partition that lies in no other one, "
        "as with hoodie.datasource.write.partitionpath.urlencode=true in a new table."
    ),
    "link-not-listed": _warning(
        "put the folder itself in the link's place, or remove the link: listings of the table find nothing behind it."
    ),
    "crc-mismatch": _error(
        "the file or its .crc was changed by a program that does not keep .crc files; `hudi repair` takes the .crc "
        "away.",
        repairable=True,
    ),
    "crc-orphan": _info(),
    # files against commits
    "file-missing": _error(),
    "old-file-missing": _warning(
        "restore the file from a backup; the table as of that commit cannot be read."
    ),
    "file-size": _error(),
    "file-stray": _warning(repairable=True),
    "file-of-no-instant": _warning(repairable=True),
    "file-of-no-archived-instant": _error(
        "it counts as committed, and no commit is known that wrote it: look at its rows, and move it away by hand if "
        "they are not the table's."
    ),
    "commit-stat": _error("restore the commit's file from a backup: what it says of the file cannot be."),
    "commit-schema": _error("restore the commit's file from a backup: reads of the table go by its schema."),
    "schema-column-lost": _error(
        "write rows with the column, and it is in the schema again, with its values in the files that were not written "
        "since; those of the others are in the table as of the instant that added it, as long as cleaning left its "
        "files: read them there (as_of) and upsert them."
    ),
    "replaced-group-written": _error(
        "write the rows of the file again: its group is replaced, and not read."
    ),
    # a bucket index
    "bucket-group": _error(
        "its rows are read, and not found by writes: write the partition's rows with insert_overwrite."
    ),
    "bucket-keys": _error(
        "an upsert writes these keys a second time: correct the number of buckets and the hash fields in "
        "hoodie.properties if they are wrong there, else write the partition's rows with insert_overwrite."
    ),
    "ring-unreadable": _error("restore the file from a backup: writes find the partition's keys by it."),
    # log files
    "log-damaged": _error(),
    "log-damaged-uncommitted": _warning("no committed block is hit; compact the file group."),
    "log-header": _error(),
    "log-content": _error(),
    "log-of-copy-on-write": _error(
        "other readers show the base files alone, and writers refuse the table: set hoodie.table.type=MERGE_ON_READ in "
        ".hoodie/hoodie.properties again, `hudi compact run` it, and then let `hudi repair overwrite-hoodie-props` "
        "change the type."
    ),
    "log-block-of-no-instant": _warning(
        "the instant was neither completed nor rolled back: roll it back before the timeline is archived past it, "
        "or its rows will show; compacting the file group does it too."
    ),
    # base files
    "base-file-unreadable": _error(),
    "base-file-rows": _error(),
    "base-file-meta-columns": _error(),
    "base-file-bloom": _warning(
        "rewrite the file (an upsert into its group does): readers and writers refuse the filter."
    ),
    "base-file-key-range": _error(
        "rewrite the file: a look-up of keys outside the range does not find them."
    ),
    "base-file-bloom-keys": _error(
        "rewrite the file: a look-up of keys that the filter denies does not find them."
    ),
    "base-file-statistics": _error("rewrite the file: filters drop rows by its statistics."),
    "base-file-data": _error(),
    "row-partition": _error("write the rows again into their own partition."),
    "row-commit-time": _error("rewrite the file: incremental queries go by the time in the rows."),
    "row-key": _error("rewrite the rows with a key."),
    "duplicate-key": _warning("delete one of the rows, by its key and then write it again."),
    # metadata table
    "mdt-missing": _error(_MDT, repairable=True),
    "mdt-not-used": _info(),
    "mdt-unreadable": _error(_MDT, repairable=True),
    "mdt-not-listed": _error(_MDT, repairable=True),
    "mdt-gone": _error(_MDT, repairable=True),
    "mdt-size": _error(_MDT, repairable=True),
    "mdt-column-stats": _error(_MDT, repairable=True),
    "mdt-bloom": _error(_MDT, repairable=True),
    "mdt-record-index": _error(_MDT, repairable=True),
    "mdt-partition-stats": _error(_MDT, repairable=True),
    "mdt-secondary-index": _error(_MDT, repairable=True),
    "mdt-expression-index": _error(_MDT, repairable=True),
    # leftovers
    "markers-left": _info(),
    "heartbeat-left": _info(),
    "staging-left": _info(),
    # archive
    "archive-unreadable": _error("restore the file from a backup: queries of archived commits fail."),
    "archive-manifest": _error(_REPAIR, repairable=True),
    # not looked at
    "merge-not-allowed": _warning(
        "if you trust the function, allow it (hudi_timeline.allow_functions, `hudi "
        "--allow-function NAME verify ...`) and verify again; rows changed by log files "
        "were not checked."
    ),
    # anything else
    "unreadable": _error(),
}


class State(StrEnum):
    """Overall state of a table."""

    SOUND = "sound"
    LEFTOVERS = "leftovers"
    DOUBTFUL = "doubtful"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Finding(HtmlView):
    """One fault of a table.

    Attributes:
        code: stable name of the kind of fault, one of `KINDS`.
        severity: how bad it is.
        path: the file or folder at fault, below the table.
        instant: the instant at fault, "" where there is none.
        message: what is wrong, in one line.
        remedy: what to do about it.
        details: further facts by name, as JSON has them; `repair` goes by them.
    """

    code: str
    severity: Severity
    path: str
    instant: str
    message: str
    remedy: str
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def repairable(self) -> bool:
        """Whether this kind of fault is repairable; `repair` gives the reason otherwise."""
        return KINDS[self.code].repairable

    def as_dict(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "path": self.path,
            "instant": self.instant,
            "message": self.message,
            "remedy": self.remedy,
            "repairable": self.repairable,
            "details": dict(self.details),
        }

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.path}: {self.message}"


class Findings(list[Finding]):
    """Findings of one table, with a view for notebooks."""

    def _repr_html_(self) -> str:
        if not self:
            return titled("No findings: the table is sound")
        shown = ("severity", "code", "path", "message", "remedy", "repairable")
        rows = pa.Table.from_pylist([{k: f.as_dict()[k] for k in shown} for f in self])
        return titled(f"{len(self):,} finding{'s' * (len(self) > 1)}", rows_view(rows))


class VerifyReport:
    """Collected findings, each (code, path, instant) once; threads may share it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Finding] = {}
        self._paths: set[str] = set()

    def add(self, code: str, path: str, message: str, instant: str = "", **details: Any) -> None:
        """Add a finding."""
        kind = KINDS[code]
        one_line = " ".join(message.split())
        self.take([Finding(code, kind.severity, path, instant, one_line, kind.remedy, details)])

    def take(self, findings: Iterable[Finding]) -> None:
        """Add existing findings."""
        for found in findings:
            self._found.setdefault((found.code, found.path, found.instant), found)
            self._paths.add(found.path)

    def names(self, path: str) -> bool:
        """Whether a path already has a finding."""
        return path in self._paths

    def findings(self) -> Findings:
        """All findings, worst first, then by path and code."""
        return Findings(
            sorted(self._found.values(), key=lambda f: (_RANK[f.severity], f.path, f.code, f.instant))
        )


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_STATES = {Severity.ERROR: State.DAMAGED, Severity.WARNING: State.DOUBTFUL, Severity.INFO: State.LEFTOVERS}


def state_of(findings: Iterable[Finding]) -> State:
    """State by the worst finding."""
    worst = min((f.severity for f in findings), key=lambda s: _RANK[s], default=None)
    return State.SOUND if worst is None else _STATES[worst]


def to_json(findings: Iterable[Finding], *, uri: str) -> str:
    """JSON object of the table's state, counts by severity, and findings."""
    found = list(findings)
    counts = {str(s): sum(f.severity is s for f in found) for s in Severity}
    top = {"table": uri, "state": str(state_of(found)), "counts": counts}
    return json.dumps({**top, "findings": [f.as_dict() for f in found]}, ensure_ascii=False, indent=2)
