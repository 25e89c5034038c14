"""Repairs: steps for a finding by its code, and repairs of hudi-cli by name.

Source of the latter: RepairsCommand of Apache Hudi 0.15.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format import partition_metadata
from hudi_format import properties as props
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.file_names import PARTITION_METADATA, parse_slice_file
from hudi_format.model import join_path
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FOLDER, partition_properties
from hudi_timeline.table_config import (
    BACKUP_FILE,
    PARTITION_METAFILE_BASE_FORMAT,
    PROPERTIES_FILE,
)
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
    WRITE_ACTIONS,
    Instant,
    parse_instant_file,
)
from hudi_timeline.verify.findings import KINDS, Finding, Severity
from hudi_timeline.verify.repair_steps import RepairStep, create, move, replace, set_properties
from hudi_timeline.verify.table_state import TableFacts

# The one Avro schema of a Parquet file of partition metadata.
_KEY_SCHEMA = '{"type":"record","name":"HoodieRecordKey","namespace":"","doc":"","fields":[{"name":"_hoodie_record_key","type":["null","string"],"doc":"","default":null}]}'  # noqa: E501

# Repairs of the timeline: missing states, plans that cannot be executed, results to be made again.


class NoRepair(Exception):
    """No safe repair; the text gives the reason."""


def _files(facts: TableFacts, finding: Finding) -> dict[str, Instant]:
    """Files of the finding's instant by state, of its action."""
    action = finding.details.get("action", "")
    comparable = Instant(finding.instant, action, REQUESTED).comparable_action
    return {
        i.state: i
        for i in facts.timeline.files
        if i.time == finding.instant and i.comparable_action == comparable
    }


def _add_state(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
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


def _withdraw(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    """Withdraw an unexecutable plan without written files."""
    action = finding.details["action"]
    files = _files(facts, finding)
    if COMPLETED in files:
        raise NoRepair("the instant is completed.")
    if action in (COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT):
        written = _written_at(facts, finding.instant)
        if written and action == COMPACTION:
            raise NoRepair(
                f"{written} belongs to it: `hudi compact repair PATH {finding.instant}` plans it anew."
            )
        if written:
            raise NoRepair(f"{written} belongs to it: roll the {action} back instead.")
    # The inflight file first: what is left of it then is a plan that was never begun.
    ordered = [files[s] for s in (INFLIGHT, REQUESTED) if s in files]
    return [move(i.path) for i in ordered]


def _written_at(facts: TableFacts, time: str) -> str:
    for partition, entries in facts.partitions.items():
        for entry in entries:
            file = parse_slice_file(partition, entry.name)
            if file is not None and file.instant == time:
                return file.path
    return ""


_WITHDRAWN = (CLEAN, COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, ROLLBACK, INDEXING)


def _undo_result(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
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


def _one_completion(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    try:
        same = facts.storage.read(finding.path) == facts.storage.read(finding.details["first"])
    except (FileNotFoundError, HudiError):
        same = False
    if not same:
        raise NoRepair("the two files contradict each other.")
    return [move(finding.path)]


_HISTORY = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet\Z")


def _mark_partition(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    partition = finding.details["partition"]
    times = _instants(partition, facts.folders.get(partition, ()))
    times = times or [i.time for i in facts.timeline.completed_writes()]
    if not times:
        raise NoRepair("no commit could belong to the partition.")
    data = partition_metadata.render(min(times), partition_metadata.depth_of(partition))
    there = finding.path in facts.sizes
    return [replace(finding.path, data) if there else create(finding.path, data)]


def _move_stranger(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
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


def _new_manifest(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
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


# Repairs by the code of a finding.


def steps_for(
    storage: Storage, facts: TableFacts | None, finding: Finding, found: list[Finding]
) -> list[RepairStep]:
    """Steps for a finding.

    Args:
        facts: the table as it is; None where it cannot be looked at.
        found: all findings; some forbid the repair of others.

    Raises:
        NoRepair: there is no safe one.
    """
    if finding.code.startswith("properties-"):
        return repair_properties(storage, finding)
    if facts is None:
        raise NoRepair("hoodie.properties and the timeline come first.")
    inside = finding.path.startswith(f"{FOLDER}/") and finding.severity is not Severity.INFO
    repair = _drop_metadata if inside else FINDING_REPAIRS.get(finding.code)
    if repair is None:
        raise NoRepair(KINDS[finding.code].remedy)
    return repair(facts, finding, found)


def _drop_metadata(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    # First switched off for every reader, then taken away: a crash between the two leaves a folder that nobody reads.
    there = facts.storage.info(FOLDER) is not None
    return [set_properties(partition_properties()), *([move(FOLDER)] if there else [])]


def _move_away(facts: TableFacts, finding: Finding, found: list[Finding]) -> list[RepairStep]:
    return [move(finding.path)]


_MOVED_AWAY = (
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
)
FINDING_REPAIRS: dict[str, Callable[[TableFacts, Finding, list[Finding]], list[RepairStep]]] = {
    **dict.fromkeys((c for c in KINDS if c.startswith("mdt-")), _drop_metadata),
    **dict.fromkeys(_MOVED_AWAY, _move_away),
    "timeline-no-requested": _add_state,
    "timeline-no-inflight": _add_state,
    "timeline-no-plan": _withdraw,
    "timeline-empty": _undo_result,
    "timeline-unreadable": _undo_result,
    "timeline-two-completions": _one_completion,
    "plan-slice-missing": _withdraw,
    "plan-deletes-live-file": _withdraw,
    "partition-metadata-missing": _mark_partition,
    "partition-metadata": _mark_partition,
    "file-of-no-instant": _move_stranger,
    "archive-manifest": _new_manifest,
}


# Repairs of hudi-cli, of whatever of their subject a table has.


def _add_partition_metadata(snapshot: TableSnapshot) -> list[RepairStep]:
    """Files of instants that are on the timeline and not completed count as none."""
    visible = snapshot.visible()
    steps = []
    for folder, entries in sorted(walk(snapshot.storage).items()):
        if any(e.name.startswith(PARTITION_METADATA) for e in entries):
            continue
        instants = [i for i in _instants(folder, entries) if i in visible]
        if instants:
            data = partition_metadata.render(min(instants), partition_metadata.depth_of(folder))
            path = join_path(folder, PARTITION_METADATA)
            steps.append(create(path, data, f"make it, of {min(instants)}"))
    return steps


def _instants(folder: str, entries: Iterable[FileInfo]) -> list[str]:
    files = (parse_slice_file(folder, e.name) for e in entries)
    return [f.instant for f in files if f is not None]


def _remove_corrupt_cleans(snapshot: TableSnapshot) -> list[RepairStep]:
    storage, timeline = snapshot.storage, snapshot.timeline
    found: list[str] = []
    for instant in timeline.pending(CLEAN):
        files = [f.path for f in timeline.files if f.time == instant.time and f.action == CLEAN]
        if any(_is_no_plan(storage, path) for path in files):
            found += files
    # Inflight before requested, so that half of it is still found.
    return [move(path, "delete it") for path in sorted(found)]


def _is_no_plan(storage: Storage, path: str) -> bool:
    try:
        avro_files.parse("HoodieCleanerPlan", storage.read(path), path=path)
    except CorruptFileError:
        return True
    return False


def _migrate_partition_metadata(snapshot: TableSnapshot) -> list[RepairStep]:
    storage, file_format = snapshot.storage, snapshot.config.base_file_format
    if file_format != "PARQUET":
        raise UnsupportedError(
            f"partition metadata is not written as {file_format}",
            table=storage.uri,
            remedy="use Apache Hudi's `repair migrate-partition-meta`.",
        )
    steps = []
    for folder, entries in sorted(walk(storage).items()):
        path = join_path(folder, PARTITION_METADATA)
        if any(e.name == PARTITION_METADATA for e in entries):
            data = _as_parquet(folder, storage.read(path))
            steps += [replace(f"{path}.parquet", data, "make it of the text file"), move(path)]
    # The property first: from then on writers make the new files, and readers take either.
    return [set_properties({PARTITION_METAFILE_BASE_FORMAT: "true"}), *steps] if steps else []


def _as_parquet(folder: str, text: bytes) -> bytes:
    """A Parquet file without rows, with the text file's content in its footer."""
    values = {
        "commitTime": "",
        "partitionDepth": str(partition_metadata.depth_of(folder)),
        **props.parse(text),
    }
    footer = {**values, "parquet.avro.schema": _KEY_SCHEMA, "writer.model.name": "avro"}
    schema = pa.schema([("_hoodie_record_key", pa.string())])
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(footer)
    return bytes(out.getvalue())


TABLE_REPAIRS: dict[str, Callable[[TableSnapshot], list[RepairStep]]] = {
    "addpartitionmeta": _add_partition_metadata,
    "corrupted-clean-files": _remove_corrupt_cleans,
    "migrate-partition-meta": _migrate_partition_metadata,
}
"""The steps of hudi-cli's repairs for a table, by their names; those with a note are told."""


def empty_commits(storage: Storage) -> tuple[Instant, ...]:
    """Completed writes with an empty file, oldest first; reads of them raise."""
    found = []
    for entry in storage.list(table_config.load(storage).timeline_folder):
        instant = parse_instant_file(entry.name, mtime_ms=entry.mtime_ms, size=entry.size)
        if instant is not None and instant.completed and instant.action in WRITE_ACTIONS and entry.size == 0:
            found.append(instant)
    return tuple(sorted(found))
