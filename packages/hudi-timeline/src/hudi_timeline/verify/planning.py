"""Which steps put a finding right, and why none do where there is no safe way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hudi_format.storage import Storage
from hudi_timeline.metadata_table import FOLDER
from hudi_timeline.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from hudi_timeline.verify import repair_files, repair_timeline
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import KINDS, Finding, Severity
from hudi_timeline.verify.repair_properties import repair_properties
from hudi_timeline.verify.repair_timeline import NoRepair
from hudi_timeline.verify.steps import Step, move, set_properties


@dataclass(frozen=True, slots=True)
class Repair:
    """What is to be done about one finding.

    Attributes:
        steps: in their order; () where there is no safe repair.
        reason: why there is none, "" where there is one.
    """

    finding: Finding
    steps: tuple[Step, ...] = ()
    reason: str = ""

    @property
    def outline(self) -> tuple[tuple[str, ...], ...]:
        """What is done about what; files that are made anew may have another time in them."""
        finding = (self.finding.code, self.finding.path, self.finding.instant)
        return (finding, *((s.kind, s.path) for s in self.steps))

    def as_dict(self) -> dict[str, Any]:
        """The repair as JSON has it."""
        finding = {n: getattr(self.finding, n) for n in ("code", "path", "instant", "message")}
        return {"finding": finding, "steps": [s.as_dict() for s in self.steps], "reason": self.reason}


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What is to be done about all findings, in that order."""

    repairs: tuple[Repair, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every change, each once, in order."""
        return tuple(dict.fromkeys(s for r in self.repairs for s in r.steps))

    @property
    def unrepaired(self) -> tuple[Repair, ...]:
        """Findings that have no safe repair."""
        return tuple(r for r in self.repairs if not r.steps)

    def __bool__(self) -> bool:
        return any(r.steps for r in self.repairs)

    def to_json(self) -> str:
        """One JSON object with every repair."""
        return json.dumps({"repairs": [r.as_dict() for r in self.repairs]}, ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        lines = []
        for repair in self.repairs:
            lines.append(str(repair.finding))
            lines += [f"  {step}" for step in repair.steps] or [f"  no safe repair: {repair.reason}"]
        return "\n".join(lines) or "nothing to repair"


def make_plan(
    storage: Storage, facts: Facts | None, findings: Iterable[Finding], every: Iterable[Finding]
) -> RepairPlan:
    """The plan for these findings of a table.

    Args:
        every: all that were found; some forbid the repair of others.
        facts: the table as it is; None where it cannot be looked at.
    """
    found = list(every)
    repairs = [_plan_one(storage, facts, finding, found) for finding in findings]
    return RepairPlan(tuple(sorted(repairs, key=_order)))


def _order(repair: Repair) -> int:
    """hoodie.properties first, because all else is read by it; the metadata table last."""
    code = repair.finding.code
    if code.startswith("properties-"):
        return 0
    return 2 if any(s.path == FOLDER for s in repair.steps) else 1


def _plan_one(storage: Storage, facts: Facts | None, finding: Finding, found: list[Finding]) -> Repair:
    try:
        steps = _steps(storage, facts, finding, found)
    except NoRepair as e:
        return Repair(finding, reason=str(e))
    return Repair(finding, tuple(steps))


def _steps(storage: Storage, facts: Facts | None, finding: Finding, found: list[Finding]) -> list[Step]:
    if finding.code.startswith("properties-"):
        return repair_properties(storage, finding)
    if facts is None:
        raise NoRepair("hoodie.properties and the timeline come first.")
    inside = finding.path.startswith(f"{FOLDER}/") and finding.severity is not Severity.INFO
    if inside or finding.code in _METADATA:
        return _drop_metadata(facts)
    repair = _REPAIRS.get(finding.code)
    if repair is None:
        raise NoRepair(KINDS[finding.code].remedy)
    return repair(facts, finding, found)


def _drop_metadata(facts: Facts) -> list[Step]:
    # First switched off for every reader, then taken away: a crash between the two leaves a folder that nobody reads.
    off = {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""}
    there = facts.storage.info(FOLDER) is not None
    return [set_properties(off), *([move(FOLDER)] if there else [])]


def _move_away(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    return [move(finding.path)]


_METADATA = frozenset(c for c in KINDS if c.startswith("mdt-") and c != "mdt-not-used")
_Repairs = dict[str, Callable[[Facts, Finding, list[Finding]], list[Step]]]
_REPAIRS: _Repairs = {
    **dict.fromkeys(
        (
            "timeline-temporary",
            "timeline-unknown-file",
            "name-unknown",
            "crc-mismatch",
            "crc-orphan",
            "file-stray",
            "markers-left",
            "heartbeat-left",
            "staging-left",
            "mdt-not-used",
        ),
        _move_away,
    ),
    **repair_timeline.REPAIRS,
    **repair_files.REPAIRS,
}
