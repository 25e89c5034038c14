"""Repairs of the timeline: missing states, plans that cannot be executed, results to be made again."""

from __future__ import annotations

from hudi_format.errors import HudiError
from hudi_format.names import parse_base_file, parse_log_file
from hudi_timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    COMPLETED,
    DELTA_COMMIT,
    INDEXING,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    Instant,
)
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.actions import CleanerPlan, RollbackMetadata, RollbackPlan
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Finding
from hudi_timeline.verify.steps import Step, create, move, replace


class NoRepair(Exception):
    """There is no safe repair; the text says why."""


def _files(facts: Facts, finding: Finding) -> dict[str, Instant]:
    """The files of the finding's instant by state, those of its action."""
    action = finding.details.get("action", "")
    comparable = Instant(finding.instant, action, REQUESTED).comparable_action
    return {
        i.state: i
        for i in facts.timeline.files
        if i.time == finding.instant and i.comparable_action == comparable
    }


def _add_state(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    action, state = finding.details["action"], finding.details["state"]
    files = _files(facts, finding)
    if action == CLEAN:  # the plan stands in both
        other = files.get(INFLIGHT if state == REQUESTED else REQUESTED)
        plan = facts.contents.get(other.path) if other is not None else None
        if other is None or not isinstance(plan, CleanerPlan):
            raise NoRepair("the plan of the clean is lost; the clean is completed, and nothing reads it.")
        return [create(finding.path, facts.storage.read(other.path))]
    if state == INFLIGHT or action in (COMMIT, DELTA_COMMIT):
        return [create(finding.path)]
    if action == REPLACE_COMMIT:
        return [create(finding.path, avro_records.empty_replace_request())]
    if action == ROLLBACK:
        done = facts.contents.get(files[COMPLETED].path) if COMPLETED in files else None
        if isinstance(done, RollbackMetadata) and done.instants:
            target = {"commitTime": done.instants[0].time, "action": done.instants[0].action}
            record = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
            return [create(finding.path, avro_records.render("HoodieRollbackPlan", record))]
    raise NoRepair(f"the plan of the {action} is lost; it is completed, and nothing reads it.")


def _withdraw(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    """Take back a plan that cannot be executed, where nothing was written for it."""
    action = finding.details["action"]
    files = _files(facts, finding)
    if COMPLETED in files:
        raise NoRepair("the instant is completed.")
    if action in (COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT):
        written = _written_at(facts, finding.instant)
        if written:
            raise NoRepair(f"{written} belongs to it: roll the {action} back instead.")
    # The inflight file first: what is left of it then is a plan that was never begun.
    ordered = [files[s] for s in (INFLIGHT, REQUESTED) if s in files]
    return [move(i.path) for i in ordered]


def _written_at(facts: Facts, time: str) -> str:
    for partition, entries in facts.partitions.items():
        for entry in entries:
            file = parse_base_file(partition, entry.name) or parse_log_file(partition, entry.name)
            if file is not None and file.instant == time:
                return file.path
    return ""


_WITHDRAWN = (CLEAN, COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, ROLLBACK, INDEXING)


def _undo_result(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    """A clean or rollback whose result is lost is done again by its plan, which does no harm."""
    action, state = finding.details["action"], finding.details["state"]
    if state == REQUESTED and action in _WITHDRAWN:
        return _withdraw(facts, finding, found)
    if state == INFLIGHT and action in (COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
        return [
            replace(finding.path, b"")
        ]  # the profile of a write that is open; without it its markers say as much
    if state == INFLIGHT:
        plan = _files(facts, finding).get(REQUESTED)
        if action == CLEAN and plan is not None and isinstance(facts.contents.get(plan.path), CleanerPlan):
            return [replace(finding.path, facts.storage.read(plan.path))]
        return [move(finding.path)]
    if action in (CLEAN, ROLLBACK):
        plan = _files(facts, finding).get(REQUESTED)
        if plan is not None and isinstance(facts.contents.get(plan.path), (CleanerPlan, RollbackPlan)):
            return [move(finding.path)]
        raise NoRepair(f"the plan of the {action} is lost too.")
    raise NoRepair(f"what the {action} did stands nowhere else.")


def _one_completion(facts: Facts, finding: Finding, found: list[Finding]) -> list[Step]:
    try:
        same = facts.storage.read(finding.path) == facts.storage.read(finding.details["first"])
    except (FileNotFoundError, HudiError):
        same = False
    if not same:
        raise NoRepair("the two files say different things.")
    return [move(finding.path)]


REPAIRS = {
    "timeline-no-requested": _add_state,
    "timeline-no-inflight": _add_state,
    "timeline-no-plan": _withdraw,
    "timeline-empty": _undo_result,
    "timeline-unreadable": _undo_result,
    "timeline-two-completions": _one_completion,
    "plan-slice-missing": _withdraw,
    "plan-deletes-live-file": _withdraw,
}
