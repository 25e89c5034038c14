"""Repair of a table: of what `verify` finds, or by the name of a repair.

    lock { verify, plan -> the plan as a file in the backup folder -> each step -> }

What is taken away or replaced goes to `.hoodie/.repair_backup_<time>/`, under its own path.  A process that dies
on the way leaves a table with fewer findings; `repair` then goes on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hudi_format.errors import ConcurrentWriterError, OptionError
from hudi_format.storage.protocol import Storage
from hudi_timeline.concurrency import heartbeat
from hudi_timeline.concurrency.locks.select import lock_of
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.metadata_config import FOLDER
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.services.table_service import WITH_INDEXES, ServiceContext
from hudi_timeline.timeline.instant import format_instant
from hudi_timeline.verify.check_keys import ScanOf
from hudi_timeline.verify.findings import KINDS, Finding
from hudi_timeline.verify.repair_steps import RepairStep, apply
from hudi_timeline.verify.repairs import TABLE_REPAIRS, NoRepair, steps_for
from hudi_timeline.verify.table_state import TableFacts
from hudi_timeline.verify.verify import examine, verify

log = logging.getLogger("hudi")

REPAIR_BACKUP = ".hoodie/.repair_backup_"
PLAN_FILE = "repair_plan.json"


@dataclass(frozen=True)
class RepairResult(HtmlView):
    """Result of a repair, or of its `dry_run`.

    Attributes:
        plan: the repairs, and findings without one.
        folder: where what was taken away is kept, below the table; "" where nothing was, or was to be kept.
        steps: how many changes were made.
        left: what `verify` finds afterwards; None of a dry run.
    """

    plan: RepairPlan
    folder: str = ""
    steps: int = 0
    left: tuple[Finding, ...] | None = None


def repair(
    storage: Storage,
    *,
    plan: RepairPlan | None = None,
    dry_run: bool = False,
    deep: bool = False,
    only: Collection[str] | None = None,
    keep: bool = True,
    options: Mapping[str, str] | None = None,
    scan_of: ScanOf | None = None,
) -> RepairResult:
    """Repair the findings with a safe repair.

    Args:
        plan: of an earlier dry run: only what is in it is done, and only what is still so.
        dry_run: give the plan and change nothing.
        deep: also by what a deep verification finds.
        only: codes of findings, or paths, to repair; None for all.
        keep: whether what is taken away is kept in the backup folder.
        options: of the lock: `hoodie.write.lock.*`.
        scan_of: as `verify`.

    Raises:
        ConcurrentWriterError: a writer is at work.
        LockError, StorageError.
    """
    if only is not None:
        _check_codes(only)
    if plan is not None and not isinstance(plan, RepairPlan):
        raise TypeError(
            f"plan must be that of repair(dry_run=True).plan, not {type(plan).__name__}: {plan!r:.80}"
        )
    if dry_run:
        return RepairResult(_plan(storage, only, deep=deep, scan_of=scan_of))
    with lock_of(storage, parse_transaction_options(options or {})).held():
        _refuse_live_writers(storage)
        now = _plan(storage, only, deep=deep, scan_of=scan_of)
        if plan is not None:
            known = {r.outline for r in plan.repairs}
            now = replace(now, repairs=tuple(r for r in now.repairs if r.outline in known))
        folder = _execute(storage, now, keep=keep)
    left = tuple(verify(storage, deep=deep, scan_of=scan_of))
    result = RepairResult(now, folder, len(now.steps), left)
    log.info("%s: repair made %d changes, %d findings are left", storage.uri, result.steps, len(left))
    return result


def repair_by_name(context: ServiceContext, name: str, *, dry_run: bool = False) -> tuple[RepairStep, ...]:
    """Repair the table by one of `TABLE_REPAIRS`; nothing is kept of what is taken away.

    Returns:
        The steps that were made, or would be.

    Raises:
        UnsupportedError: the feature gate, or base files of a format that the repair does not know.
        LockError, StorageError.
    """
    plan = TABLE_REPAIRS[name]
    if dry_run:
        return tuple(plan(context.looked(allowed=WITH_INDEXES)))
    with context.locked(keep_metadata=True, allowed=WITH_INDEXES) as snapshot:
        steps = tuple(plan(snapshot))
        for step in steps:
            apply(context.storage, step, "")
    return steps


def _check_codes(only: Collection[str]) -> None:
    if isinstance(only, str) or not isinstance(only, Collection):
        raise TypeError(
            f"only must be a list of findings' codes or paths, not {type(only).__name__}: {only!r:.80}"
        )
    for name in only:
        if not isinstance(name, str):
            raise TypeError(f"a finding's code must be a text, not {type(name).__name__}: {name!r:.80}")
        if name not in KINDS and "/" not in name and "." not in name:
            raise OptionError(f"{name!r} is not a finding's code", remedy="`hudi verify` prints them.")


def _plan(
    storage: Storage, only: Collection[str] | None, *, deep: bool, scan_of: ScanOf | None
) -> RepairPlan:
    found, facts = examine(storage, deep=deep, scan_of=scan_of)
    wanted = [f for f in found if only is None or f.code in only or f.path in only]
    return make_plan(storage, facts, wanted, found)


def _refuse_live_writers(storage: Storage) -> None:
    for instant in heartbeat.list_instants(storage):
        alive = heartbeat.liveness(storage, instant, to_act=True)
        if alive.alive:
            raise ConcurrentWriterError(
                f"a writer is at work: {alive.reason}",
                table=storage.uri,
                instant=instant,
                remedy="repair when it has finished or has been stopped.",
            )


def _execute(storage: Storage, plan: RepairPlan, *, keep: bool) -> str:
    """Execute the steps; returns the backup folder, "" for none."""
    if not plan:
        return ""
    folder = f"{REPAIR_BACKUP}{format_instant(datetime.fromtimestamp(time.time(), UTC).replace(tzinfo=None))}"
    # Before the first change, so that a crash leaves behind what was to be done.
    storage.create(f"{folder}/{PLAN_FILE}", plan.to_json().encode())
    for step in plan.steps:
        apply(storage, step, folder if keep else "")
    return folder


# Which steps put a finding right, and why none do where there is no safe way.


@dataclass(frozen=True, slots=True)
class Repair:
    """Repair of one finding.

    Attributes:
        steps: in their order; () where there is no safe repair.
        reason: why there is none, "" where there is one.
    """

    finding: Finding
    steps: tuple[RepairStep, ...] = ()
    reason: str = ""

    @property
    def outline(self) -> tuple[tuple[str, ...], ...]:
        """Actions and targets of the steps, without regenerated content."""
        finding = (self.finding.code, self.finding.path, self.finding.instant)
        return (finding, *((s.kind, s.path) for s in self.steps))

    def as_dict(self) -> dict[str, Any]:
        """The repair as a JSON object."""
        finding = {n: getattr(self.finding, n) for n in ("code", "path", "instant", "message")}
        return {"finding": finding, "steps": [s.as_dict() for s in self.steps], "reason": self.reason}


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Repairs of all findings, in that order."""

    repairs: tuple[Repair, ...] = ()

    @property
    def steps(self) -> tuple[RepairStep, ...]:
        """Distinct steps, in order."""
        return tuple(dict.fromkeys(s for r in self.repairs for s in r.steps))

    @property
    def unrepaired(self) -> tuple[Repair, ...]:
        """Findings without a safe repair."""
        return tuple(r for r in self.repairs if not r.steps)

    def __bool__(self) -> bool:
        return any(r.steps for r in self.repairs)

    def to_json(self) -> str:
        """JSON object with every repair."""
        return json.dumps({"repairs": [r.as_dict() for r in self.repairs]}, ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        lines = []
        for repair in self.repairs:
            lines.append(str(repair.finding))
            lines += [f"  {step}" for step in repair.steps] or [f"  no safe repair: {repair.reason}"]
        return "\n".join(lines) or "nothing to repair"


def make_plan(
    storage: Storage, facts: TableFacts | None, findings: Iterable[Finding], every: Iterable[Finding]
) -> RepairPlan:
    """Repair plan of findings.

    Args:
        every: all that were found; some forbid the repair of others.
        facts: the table as it is; None where it cannot be looked at.
    """
    found = list(every)
    repairs = [_plan_one(storage, facts, finding, found) for finding in findings]
    return RepairPlan(tuple(sorted(repairs, key=_order)))


def _order(repair: Repair) -> int:
    """Sort key: hoodie.properties first, the metadata table last."""
    code = repair.finding.code
    if code.startswith("properties-"):
        return 0
    return 2 if any(s.path == FOLDER for s in repair.steps) else 1


def _plan_one(storage: Storage, facts: TableFacts | None, finding: Finding, found: list[Finding]) -> Repair:
    try:
        steps = steps_for(storage, facts, finding, found)
    except NoRepair as e:
        return Repair(finding, reason=str(e))
    return Repair(finding, tuple(steps))
