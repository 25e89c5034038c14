"""What `verify` finds: one value for each fault, and the list of all kinds of fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hudi_timeline.verify.kinds import KINDS, Severity

__all__ = ["KINDS", "Finding", "Report", "Severity", "State", "to_json"]


class State(StrEnum):
    """What the findings say about a table."""

    SOUND = "sound"
    LEFTOVERS = "leftovers"
    DOUBTFUL = "doubtful"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Finding:
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
        """Whether faults of this kind can be repaired; `repair` says for each one why not, where it cannot."""
        return KINDS[self.code].repairable

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON has it."""
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


class Report:
    """Findings while they are collected; each (code, path, instant) once.  Threads may share it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Finding] = {}
        self._paths: set[str] = set()

    def add(self, code: str, path: str, message: str, instant: str = "", **details: Any) -> None:
        """Take a finding of a kind."""
        kind = KINDS[code]
        one_line = " ".join(message.split())
        found = Finding(code, kind.severity, path, instant, one_line, kind.remedy, details)
        self._found.setdefault((code, path, instant), found)
        self._paths.add(path)

    def take(self, findings: Iterable[Finding]) -> None:
        """Take findings as they are."""
        for found in findings:
            self._found.setdefault((found.code, found.path, found.instant), found)
            self._paths.add(found.path)

    def names(self, path: str) -> bool:
        """Whether there is a finding of a path already."""
        return path in self._paths

    def findings(self) -> list[Finding]:
        """All of them: worst first, then by path and code."""
        return sorted(self._found.values(), key=lambda f: (_RANK[f.severity], f.path, f.code, f.instant))


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_STATES = {Severity.ERROR: State.DAMAGED, Severity.WARNING: State.DOUBTFUL, Severity.INFO: State.LEFTOVERS}


def state_of(findings: Iterable[Finding]) -> State:
    """What the worst finding says."""
    worst = min((f.severity for f in findings), key=lambda s: _RANK[s], default=None)
    return State.SOUND if worst is None else _STATES[worst]


def to_json(findings: Iterable[Finding], *, uri: str) -> str:
    """One JSON object: the table, its state, how many findings of each severity, and the findings."""
    found = list(findings)
    counts = {str(s): sum(f.severity is s for f in found) for s in Severity}
    top = {"table": uri, "state": str(state_of(found)), "counts": counts}
    return json.dumps({**top, "findings": [f.as_dict() for f in found]}, ensure_ascii=False, indent=2)
