"""Repairs of files: partition metadata, uncommitted files, the LSM manifest."""

from __future__ import annotations

import json
import re

from hudi_format import partition_metadata
from hudi_format import properties as props
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.file_names import parse_base_file, parse_log_file
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.metadata_table import FOLDER
from hudi_timeline.table_config import BACKUP_FILE, PROPERTIES_FILE
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.action_metadata import CleanPlan, RollbackMetadata, RollbackPlan, render_action
from hudi_timeline.timeline.instant import (
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
from hudi_timeline.verify.findings import Finding
from hudi_timeline.verify.repair_steps import RepairStep, create, move, replace
from hudi_timeline.verify.table_state import TableState

# Repairs of the timeline: missing states, plans that cannot be executed, results to be made again.


class NoRepair(Exception):
    """No safe repair; the text gives the reason."""


def _files(facts: TableState, finding: Finding) -> dict[str, Instant]:
    """Files of the finding's instant by state, of its action."""
    action = finding.details.get("action", "")
    comparable = Instant(finding.instant, action, REQUESTED).comparable_action
    return {
        i.state: i
        for i in facts.timeline.files
        if i.time == finding.instant and i.comparable_action == comparable
    }


def _add_state(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    action, state = finding.details["action"], finding.details["state"]
    files = _files(facts, finding)
    if action == CLEAN:  # the plan stands in both
        other = files.get(INFLIGHT if state == REQUESTED else REQUESTED)
        plan = facts.contents.get(other.path) if other is not None else None
        if other is None or not isinstance(plan, CleanPlan):
            raise NoRepair("the plan of the clean is lost; the clean is completed, and nothing reads it.")
        return [create(finding.path, facts.storage.read(other.path))]
    if state == INFLIGHT or action in (COMMIT, DELTA_COMMIT):
        return [create(finding.path)]
    if action == REPLACE_COMMIT:
        return [create(finding.path, avro_files.empty_replace_request())]
    if action == ROLLBACK:
        done = facts.contents.get(files[COMPLETED].path) if COMPLETED in files else None
        if isinstance(done, RollbackMetadata) and done.instants:
            return [create(finding.path, render_action(RollbackPlan(done.instants[0])))]
    raise NoRepair(f"the plan of the {action} is lost; it is completed, and nothing reads it.")


def _withdraw(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    """Withdraw an unexecutable plan without written files."""
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


def _written_at(facts: TableState, time: str) -> str:
    for partition, entries in facts.partitions.items():
        for entry in entries:
            file = parse_base_file(partition, entry.name) or parse_log_file(partition, entry.name)
            if file is not None and file.instant == time:
                return file.path
    return ""


_WITHDRAWN = (CLEAN, COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, ROLLBACK, INDEXING)


def _undo_result(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    """Repeat a clean or rollback with a lost result, which is harmless."""
    action, state = finding.details["action"], finding.details["state"]
    if state == REQUESTED and action in _WITHDRAWN:
        return _withdraw(facts, finding, found)
    if state == INFLIGHT and action in (COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
        return [
            replace(finding.path, b"")
        ]  # the profile of a write that is open; without it its markers say as much
    if state == INFLIGHT:
        plan = _files(facts, finding).get(REQUESTED)
        if action == CLEAN and plan is not None and isinstance(facts.contents.get(plan.path), CleanPlan):
            return [replace(finding.path, facts.storage.read(plan.path))]
        return [move(finding.path)]
    if action in (CLEAN, ROLLBACK):
        plan = _files(facts, finding).get(REQUESTED)
        if plan is not None and isinstance(facts.contents.get(plan.path), (CleanPlan, RollbackPlan)):
            return [move(finding.path)]
        raise NoRepair(f"the plan of the {action} is lost too.")
    raise NoRepair(f"what the {action} did stands nowhere else.")


def _one_completion(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    try:
        same = facts.storage.read(finding.path) == facts.storage.read(finding.details["first"])
    except (FileNotFoundError, HudiError):
        same = False
    if not same:
        raise NoRepair("the two files contradict each other.")
    return [move(finding.path)]


TIMELINE_REPAIRS = {
    "timeline-no-requested": _add_state,
    "timeline-no-inflight": _add_state,
    "timeline-no-plan": _withdraw,
    "timeline-empty": _undo_result,
    "timeline-unreadable": _undo_result,
    "timeline-two-completions": _one_completion,
    "plan-slice-missing": _withdraw,
    "plan-deletes-live-file": _withdraw,
}


_HISTORY = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet\Z")


def _mark_partition(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    partition = finding.details["partition"]
    times = [
        file.instant
        for entry in facts.folders.get(partition, ())
        if (file := parse_base_file(partition, entry.name) or parse_log_file(partition, entry.name))
        is not None
    ]
    if not times:
        times = [i.time for i in facts.timeline.completed_writes()]
    if not times:
        raise NoRepair("no commit could belong to the partition.")
    data = partition_metadata.render(min(times), partition_metadata.depth_of(partition))
    there = finding.path in facts.sizes
    return [replace(finding.path, data) if there else create(finding.path, data)]


def _move_stranger(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    if any(f.code == "timeline-hole" and f.instant == finding.instant for f in found):
        raise NoRepair("later commits are built on its instant, whose files are lost: it was committed.")
    if any(f.code == "timeline-contradiction" and f.instant == finding.instant for f in found):
        raise NoRepair("find out first what its instant was.")
    # A rollback takes the instant back there too.
    for entry in facts.storage.list(f"{FOLDER}/{facts.config.timeline_folder}"):
        if re.match(rf"{finding.instant}(_[0-9]+)?\.deltacommit\Z", entry.name):
            raise NoRepair(
                "the metadata table says that its instant was completed: the commit's file is lost."
            )
    return [move(finding.path)]


def _new_manifest(facts: TableState, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    """A manifest of all files not covered by a higher layer."""
    folder = facts.config.history_folder
    files = []
    for entry in facts.storage.list(folder):
        match = None if entry.is_dir else _HISTORY.match(entry.name)
        if match is not None:
            files.append((match[1], match[2], int(match[3]), entry))
    if not files:
        raise NoRepair("the history has no files.")
    kept = [
        entry
        for first, last, layer, entry in files
        if not any(f <= first and last <= t and higher > layer for f, t, higher, _ in files)
    ]
    listed = [{"fileName": e.name, "fileLen": e.size} for e in sorted(kept, key=lambda e: e.name)]
    data = json.dumps({"files": listed}, indent=2).encode()
    there = facts.storage.info(finding.path) is not None
    return [replace(finding.path, data) if there else create(finding.path, data)]


FILE_REPAIRS = {
    "partition-metadata-missing": _mark_partition,
    "partition-metadata": _mark_partition,
    "file-of-no-instant": _move_stranger,
    "archive-manifest": _new_manifest,
}


# Repairs of hoodie.properties.


def repair_properties(storage: Storage, finding: Finding) -> list[RepairStep]:
    """Steps for a finding about hoodie.properties.

    Raises:
        NoRepair: which value is the right one cannot be known.
    """
    if finding.code == "properties-content":
        entries = props.parse(storage.read(PROPERTIES_FILE), path=PROPERTIES_FILE)
        return [replace(PROPERTIES_FILE, table_config.render(entries))]
    if finding.code == "properties-value":
        raise NoRepair("which value is right cannot be known: correct it by hand.")
    backup = _backup(storage)
    if finding.code == "properties-backup" and finding.details.get("primary"):
        return [move(BACKUP_FILE)]
    if backup is None:
        raise NoRepair("the file has no intact backup: restore it from one of yours.")
    there = storage.info(PROPERTIES_FILE) is not None
    put_back = replace(PROPERTIES_FILE, backup) if there else create(PROPERTIES_FILE, backup)
    return [put_back, move(BACKUP_FILE)]


def _backup(storage: Storage) -> bytes | None:
    try:
        data = storage.read(BACKUP_FILE)
        table_config.read_file(storage, BACKUP_FILE)
    except (FileNotFoundError, CorruptFileError):
        return None
    return data
