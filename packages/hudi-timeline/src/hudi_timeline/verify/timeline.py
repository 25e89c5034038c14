"""Checks of the timeline as a state machine: which files there must be, and which cannot be together.

Source: spec "Timeline", sections 1 to 3; HoodieActiveTimeline of Apache Hudi 0.15 and 1.x.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from hudi_format.names import META_DIR
from hudi_timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    COMPLETED,
    INDEXING,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    file_name,
    unknown_action,
)
from hudi_timeline.metadata.actions import RestoreMetadata, RollbackMetadata, RollbackPlan
from hudi_timeline.verify.facts import Facts, is_old
from hudi_timeline.verify.finding import Report

# Their plan is in the requested file, and nothing can be said of them without it.
_PLANNED = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING, CLEAN, ROLLBACK, INDEXING})
_COMPACTS = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp\Z|.+\.tmp\Z|\.tmp[._-]")
_CRC = re.compile(r"\..+\.crc\Z")
# What lies beside the instants in `.hoodie`, from any release.
_KNOWN_NAMES = ("hoodie.properties", "hoodie.properties.backup", "hoodie.properties.updated", "lock")
_SPECIAL = re.compile(r"0{13,}[0-9]+\Z")


def check_timeline(facts: Facts, report: Report) -> None:
    """All checks of this module."""
    _check_names(facts, report)
    groups: dict[tuple[str, str], dict[str, list[Instant]]] = defaultdict(lambda: defaultdict(list))
    for file in facts.timeline.files:
        groups[file.time, file.comparable_action][file.state].append(file)
    undone = _being_undone(facts)
    for (time, _), states in groups.items():
        _check_states(facts, time, states, undone, report)
    _check_contradictions(facts, groups, report)
    _check_rolled_back(facts, report)
    _check_holes(facts, report)
    if not facts.is_metadata:  # whose instants are its table's, with digits of its own behind them
        _check_times(facts, report)


def _check_names(facts: Facts, report: Report) -> None:
    folder = facts.config.timeline_folder
    known = {i.file_name for i in facts.timeline.files}
    for entry in facts.entries:
        name = entry.name
        if entry.is_dir or name in known or _CRC.match(name):
            continue
        path = f"{folder}/{name}"
        if _TEMPORARY.match(name):
            if is_old(entry):
                report.add("timeline-temporary", path, "the temporary file of a writer that is gone")
        elif unknown_action(name):
            report.add(
                "timeline-unknown-action", path, "an instant of an action that this release does not know"
            )
        elif folder != META_DIR or not name.startswith(_KNOWN_NAMES):
            report.add("timeline-unknown-file", path, "a file that is neither an instant nor known otherwise")


def _being_undone(facts: Facts) -> set[str]:
    """Instants that an open rollback or restore is about: their files go one by one."""
    out = set()
    for instant in facts.timeline.files:
        if instant.action in (ROLLBACK, RESTORE) and instant.state == REQUESTED:
            plan = facts.contents.get(instant.path)
            if isinstance(plan, RollbackPlan) and plan.target is not None:
                out.add(plan.target.time)
            out |= {i.time for i in getattr(plan, "instants", ())}
    return out


def _check_states(
    facts: Facts, time: str, states: dict[str, list[Instant]], undone: set[str], report: Report
) -> None:
    highest = max((i for several in states.values() for i in several), key=lambda i: i.order())
    begun = [*states.get(REQUESTED, ()), *states.get(INFLIGHT, ())]
    # The name of the action before it was completed: a compaction becomes a commit.
    action = next((i.action for i in begun if i.action in _COMPACTS), highest.action)
    if len(states.get(COMPLETED, ())) > 1:
        first, *others = sorted(states[COMPLETED], key=lambda i: i.completion)
        for other in others:
            report.add(
                "timeline-two-completions",
                other.path,
                f"the instant is completed twice, at {first.completion} and at {other.completion}",
                time,
                first=first.path,
            )
    if time in undone and not highest.completed:
        return
    plan = next(iter(states.get(REQUESTED, ())), None)
    needs_plan = action in _PLANNED and not highest.completed
    if plan is None and highest.state == INFLIGHT and needs_plan:
        path = f"{facts.config.timeline_folder}/{file_name(time, action, REQUESTED)}"
        report.add(
            "timeline-no-plan", path, f"the plan of the pending {action} is not there", time, action=action
        )
        return
    if plan is not None and needs_plan and plan.size == 0 and action != ROLLBACK:
        report.add(
            "timeline-no-plan", plan.path, f"the plan of the pending {action} is empty", time, action=action
        )
        return
    missing = []
    if plan is None and highest.state != REQUESTED and action != SAVEPOINT:
        missing.append(REQUESTED)
    if highest.completed and not states.get(INFLIGHT):
        missing.append(INFLIGHT)
    # Archival takes the files of the states before the completed one first.
    if not missing or not facts.config.layout_version or time in facts.archived.times:
        return
    for state in missing:
        path = f"{facts.config.timeline_folder}/{file_name(time, action, state)}"
        code = "timeline-no-requested" if state == REQUESTED else "timeline-no-inflight"
        report.add(code, path, f"the {action} is {highest.state.lower()}, and was never {state.lower()}", time,
                   action=action, state=state)  # fmt: skip


def _check_contradictions(facts: Facts, groups: Iterable[tuple[str, str]], report: Report) -> None:
    actions: dict[str, set[str]] = defaultdict(set)
    for time, action in groups:
        if action in WRITE_ACTIONS:
            actions[time].add(action)
    for time, several in actions.items():
        if len(several) > 1:
            files = [i for i in facts.timeline.files if i.time == time and i.comparable_action in several]
            highest = max(files, key=lambda i: (i.completed, i.path))
            report.add("timeline-contradiction", highest.path,
                       f"one instant is a {' and a '.join(sorted(several))}", time,
                       files=[i.path for i in files])  # fmt: skip


def _check_rolled_back(facts: Facts, report: Report) -> None:
    # A compaction or clustering that was rolled back stays planned, and may be done at the same instant.
    planned = {
        i.time
        for i in facts.timeline.files
        if i.action in _COMPACTS or (i.action, i.state) == (REPLACE_COMMIT, REQUESTED)
    }
    completed = {i.time: i for i in facts.timeline.completed_writes()}
    for instant in facts.timeline.instants:
        done = facts.contents.get(instant.path)
        if not instant.completed or not isinstance(done, (RollbackMetadata, RestoreMetadata)):
            continue
        for target in {*done.commits, *(i.time for i in done.instants)}:
            if target in completed and target not in planned and target < instant.time:
                report.add(
                    "timeline-rolled-back",
                    completed[target].path,
                    f"the {instant.action} {instant.time} says that it undid the instant, which is completed",
                    target,
                )


def _check_holes(facts: Facts, report: Report) -> None:
    first = facts.timeline.first_active
    known = facts.known_times
    for instant, commit in facts.commits.items():
        for stat in commit.stats:
            before = stat.prev_commit
            if not before.isdigit() or before in known or (first and before < first) or before > instant.time:
                continue
            if before in facts.archived.times or facts.archived.problem is not None:
                continue
            report.add(
                "timeline-hole",
                f"{facts.config.timeline_folder}/{before}",
                f"{instant} rewrote a file of the instant {before}, which is on no timeline",
                before,
            )
    commits = {i.time for i in facts.timeline.completed_writes()}
    for saved in facts.timeline.of(SAVEPOINT):
        if saved.completed and saved.time not in commits:
            report.add(
                "savepoint-no-commit",
                saved.path,
                "the commit that it keeps is not on the timeline",
                saved.time,
            )


def _check_times(facts: Facts, report: Report) -> None:
    for instant in facts.timeline.files:
        problem = "" if _SPECIAL.match(instant.time) else _no_time(instant.time)
        if problem:
            report.add(
                "timeline-instant-time",
                instant.path,
                f"{instant.time} is no instant: {problem}",
                instant.time,
            )
        elif instant.completion and "_" in instant.file_name:
            problem = _no_time(instant.completion)
            if problem or instant.completion <= instant.time:
                what = problem or "which is not after its request"
                report.add(
                    "timeline-order", instant.path, f"completed at {instant.completion}, {what}", instant.time
                )


def _no_time(text: str) -> str:
    if len(text) not in (14, 17):
        return f"it has {len(text)} digits"
    try:
        datetime.strptime(text[:14], "%Y%m%d%H%M%S")
    except ValueError:
        return "it is no time"
    return ""
