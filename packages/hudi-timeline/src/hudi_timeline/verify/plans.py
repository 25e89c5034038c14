"""Checks of plans that wait for their execution: what they read must be there, what they delete must not be needed."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_format.model import join_path
from hudi_timeline.instant import CLEAN, REQUESTED, SAVEPOINT, Instant
from hudi_timeline.metadata.actions import (
    CleanerPlan,
    CompactionPlan,
    ReplaceRequest,
    SavepointMetadata,
)
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Report
from hudi_timeline.verify.live import live_files, saved_files


def check_plans(facts: Facts, report: Report) -> None:
    """All checks of this module."""
    for instant in facts.timeline.files:
        if instant.state != REQUESTED or instant.time not in facts.pending_times:
            continue
        plan = facts.contents.get(instant.path)
        if isinstance(plan, (CompactionPlan, ReplaceRequest)):
            _check_inputs(facts, instant, plan, report)
        elif isinstance(plan, CleanerPlan) and instant.action == CLEAN:
            _check_deletes(facts, instant, plan, report)
    _check_savepoints(facts, report)


def _check_inputs(
    facts: Facts, instant: Instant, plan: CompactionPlan | ReplaceRequest, report: Report
) -> None:
    missing = sorted({p for p in _inputs(plan) if p not in facts.sizes})
    if missing:
        report.add(
            "plan-slice-missing",
            instant.path,
            f"the pending {instant.action} reads {missing[0]}, which is not there"
            + (f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""),
            instant.time,
            action=instant.action,
            missing=missing,
        )


def _inputs(plan: CompactionPlan | ReplaceRequest) -> Iterator[str]:
    """Paths of the files that a plan reads.  Absolute ones are stale once a table was moved: the name counts."""
    if isinstance(plan, CompactionPlan):
        slices = [(o.partition, (o.data_file, *o.log_files)) for o in plan.operations]
    else:
        groups = plan.clustering.groups if plan.clustering is not None else ()
        slices = [(s.partition, (s.data_file, *s.log_files)) for g in groups for s in g.slices]
    for partition, files in slices:
        for file in files:
            if file:
                yield join_path(partition, file.rpartition("/")[2])


def _check_deletes(facts: Facts, instant: Instant, plan: CleanerPlan, report: Report) -> None:
    kept = live_files(facts) | saved_files(facts).keys()
    planned = {
        join_path(partition, name.rpartition("/")[2])
        for partition, names in (
            *((p, [f.path for f in files]) for p, files in plan.files.items()),
            *((p, list(names)) for p, names in plan.old_files.items()),
        )
        for name in names
    }
    wrong = sorted(planned & kept)
    if wrong:
        report.add(
            "plan-deletes-live-file",
            instant.path,
            f"the pending clean would delete {wrong[0]}, which the newest state or a savepoint needs"
            + (f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""),
            instant.time,
            action=instant.action,
            files=wrong,
        )


def _check_savepoints(facts: Facts, report: Report) -> None:
    for instant in facts.timeline.of(SAVEPOINT):
        saved = facts.contents.get(instant.path)
        if not instant.completed or not isinstance(saved, SavepointMetadata):
            continue
        for path in sorted(
            p for p, t in saved_files(facts).items() if t == instant.time and p not in facts.sizes
        ):
            report.add("savepoint-file-missing", path, f"the savepoint {instant.time} keeps a file that is not there",
                       instant.time)  # fmt: skip
