"""`repair`: a plan from what `verify` finds, and its execution.

    lock { verify, plan -> the plan as a file in the backup folder -> each step -> }

What is taken away or replaced goes to `.hoodie/.repair_backup_<time>/`, under its own path.  A process that dies
on the way leaves a table with fewer findings; `repair` then goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hudi_format.errors import ConcurrentWriterError, OptionError
from hudi_format.instant_time import format_instant
from hudi_format.storage import Storage
from hudi_timeline import heartbeat
from hudi_timeline.commit_options import CommitOptions
from hudi_timeline.locks import protocol as locks
from hudi_timeline.verify.finding import KINDS, Finding
from hudi_timeline.verify.keys import ScanOf
from hudi_timeline.verify.planning import RepairPlan, make_plan
from hudi_timeline.verify.run import examine, verify
from hudi_timeline.verify.steps import apply

log = logging.getLogger("hudi")

REPAIR_BACKUP = ".hoodie/.repair_backup_"
PLAN_FILE = "repair_plan.json"


@dataclass(frozen=True)
class RepairResult:
    """What a repair did, or with `dry_run` would do.

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
    """Put right what `verify` finds and what has a safe repair.

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
    if dry_run:
        return RepairResult(_plan(storage, only, deep=deep, scan_of=scan_of))
    given = CommitOptions.from_options(dict(options or {}))
    lock = given.lock_of(storage)
    with locks.hold(lock, given.lock_wait_ms):
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


def _check_codes(only: Collection[str]) -> None:
    for name in only:
        if name not in KINDS and "/" not in name and "." not in name:
            raise OptionError(f"{name!r} is no code of a finding", remedy="`hudi verify` prints them.")


def _plan(
    storage: Storage, only: Collection[str] | None, *, deep: bool, scan_of: ScanOf | None
) -> RepairPlan:
    found, facts = examine(storage, deep=deep, scan_of=scan_of)
    wanted = [f for f in found if only is None or f.code in only or f.path in only]
    return make_plan(storage, facts, wanted, found)


def _refuse_live_writers(storage: Storage) -> None:
    for instant in heartbeat.list_instants(storage):
        alive = heartbeat.liveness(storage, instant)
        if alive.alive:
            raise ConcurrentWriterError(
                f"a writer is at work: {alive.reason}",
                table=storage.uri,
                instant=instant,
                remedy="repair when it is through, or has been stopped.",
            )


def _execute(storage: Storage, plan: RepairPlan, *, keep: bool) -> str:
    """Do the steps; the backup folder, "" where there is none."""
    if not plan:
        return ""
    folder = f"{REPAIR_BACKUP}{format_instant(datetime.now(UTC).replace(tzinfo=None))}"
    # Before the first change, so that a crash leaves behind what was to be done.
    storage.create(f"{folder}/{PLAN_FILE}", plan.to_json().encode())
    for step in plan.steps:
        apply(storage, step, folder if keep else "")
    return folder
