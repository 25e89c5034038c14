"""Timeline checks: required files, and combinations that cannot occur.

Source: spec "Timeline", sections 1 to 3; HoodieActiveTimeline of Apache Hudi 0.15 and 1.x.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import time as now_s

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_names import META_DIR, parse_base_file
from hudi_format.model import join_path
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.concurrency import heartbeat, markers
from hudi_timeline.table_config import (
    BACKUP_FILE,
    CHECKSUM,
    NAME,
    PROPERTIES_FILE,
    TableConfig,
    checksum,
    content_checksum,
    stored_content_checksum,
)
from hudi_timeline.timeline.action_metadata import (
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    ReplaceRequest,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hudi_timeline.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    COMPLETED,
    INDEXING,
    INFLIGHT,
    INSTANT_DIGITS,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    file_name,
    parse_instant,
    unknown_action,
)
from hudi_timeline.timeline.lsm_timeline import history_files
from hudi_timeline.transaction import orphans
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import (
    TableFacts,
    beginning_of,
    is_old,
    live_files,
    replaced_groups,
    saved_files,
)

# Their plan is in the requested file, and nothing can be said of them without it.
_PLANNED = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING, CLEAN, ROLLBACK, INDEXING})
_COMPACTS = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp\Z|.+\.tmp\Z|\.tmp[._-]")
_CRC = re.compile(r"\..+\.crc\Z")
# What lies beside the instants in `.hoodie`, from any release.
_KNOWN_NAMES = (
    "hoodie.properties",
    "hoodie.properties.backup",
    "hoodie.properties.updated",
    "lock",
    ".overwritten_",
)
_SPECIAL = re.compile(r"0{13,}[0-9]+\Z")


def check_timeline(facts: TableFacts, report: VerifyReport) -> None:
    """Run the timeline checks."""
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


def _check_names(facts: TableFacts, report: VerifyReport) -> None:
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


def _being_undone(facts: TableFacts) -> set[str]:
    """Instants of pending rollbacks and restores, whose files are being deleted."""
    out = set()
    for instant in facts.timeline.files:
        if instant.action in (ROLLBACK, RESTORE) and instant.state == REQUESTED:
            plan = facts.contents.get(instant.path)
            if isinstance(plan, RollbackPlan) and plan.target is not None:
                out.add(plan.target.time)
            out |= {i.time for i in getattr(plan, "instants", ())}
    return out


def _check_states(
    facts: TableFacts, time: str, states: dict[str, list[Instant]], undone: set[str], report: VerifyReport
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
            "timeline-no-plan", path, f"the plan of the pending {action} is missing", time, action=action
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
    if not missing or not facts.config.version.has_requested_states or time in facts.archived.times:
        return
    for state in missing:
        path = f"{facts.config.timeline_folder}/{file_name(time, action, state)}"
        code = "timeline-no-requested" if state == REQUESTED else "timeline-no-inflight"
        report.add(code, path, f"the {action} is {highest.state.lower()}, and was never {state.lower()}", time,
                   action=action, state=state)  # fmt: skip


def _check_contradictions(facts: TableFacts, groups: Iterable[tuple[str, str]], report: VerifyReport) -> None:
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


def _check_rolled_back(facts: TableFacts, report: VerifyReport) -> None:
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


def _check_holes(facts: TableFacts, report: VerifyReport) -> None:
    archived = facts.timeline.archived()
    known = facts.known_times
    for instant, commit in facts.commits.items():
        for stat in commit.stats:
            before = stat.prev_commit
            if not before.isdigit() or before in known or before in archived or before > instant.time:
                continue
            if before in facts.archived.times or facts.archived.problem is not None:
                continue
            if facts.is_metadata and before < beginning_of(facts, stat.partition):
                continue  # the partition was made anew since
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


def _check_times(facts: TableFacts, report: VerifyReport) -> None:
    for instant in facts.timeline.files:
        problem = "" if _SPECIAL.match(instant.time) else _no_time(instant.time)
        if problem:
            report.add(
                "timeline-instant-time",
                instant.path,
                f"{instant.time} is not an instant: {problem}",
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
    if len(text) not in (14, INSTANT_DIGITS):
        return f"it has {len(text)} digits"
    try:
        parse_instant(text[:14])
    except ValueError:
        return "it is not a time"
    return ""


# Checks of plans that wait for their execution: what they read must be there, what they delete must not be needed.


def check_plans(facts: TableFacts, report: VerifyReport) -> None:
    """Run the plan checks."""
    for instant in facts.timeline.files:
        if instant.state != REQUESTED or instant.time not in facts.pending_times:
            continue
        plan = facts.contents.get(instant.path)
        if isinstance(plan, (CompactionPlan, ReplaceRequest)):
            _check_inputs(facts, instant, plan, report)
        elif isinstance(plan, CleanPlan) and instant.action == CLEAN:
            _check_deletes(facts, instant, plan, report)
    _check_savepoints(facts, report)


def _check_inputs(
    facts: TableFacts, instant: Instant, plan: CompactionPlan | ReplaceRequest, report: VerifyReport
) -> None:
    missing = sorted({p for p in _inputs(plan) if p not in facts.sizes})
    if missing and instant.action == LOG_COMPACTION and isinstance(plan, CompactionPlan):
        left = tuple(o for o in plan.operations if not _is_overtaken(facts, o))
        missing = sorted({p for p in _inputs(replace(plan, operations=left)) if p not in facts.sizes})
    if missing:
        report.add(
            "plan-slice-missing",
            instant.path,
            f"the pending {instant.action} reads {missing[0]}, which is missing"
            + (f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""),
            instant.time,
            action=instant.action,
            missing=missing,
        )


def _is_overtaken(facts: TableFacts, operation: CompactionOperation) -> bool:
    """Whether a log compaction leaves a slice alone: its group was replaced, or has a newer one.

    The slice may be cleaned then; whoever executes the plan withdraws it.
    """
    group = (operation.partition, operation.file_id)
    if group in replaced_groups(facts):
        return True
    files = (
        parse_base_file(stat.partition, stat.path.rpartition("/")[2])
        for commit in facts.written.values()
        for stat in commit.files
        if (stat.partition, stat.file_id) == group
    )
    return any(f is not None and f.instant > operation.base_instant for f in files)


def _inputs(plan: CompactionPlan | ReplaceRequest) -> Iterator[str]:
    """Paths of a plan's input files.

    Absolute ones are stale once a table was moved: the name counts.
    """
    if isinstance(plan, CompactionPlan):
        slices = [(o.partition, (o.data_file, *o.log_files)) for o in plan.operations]
    else:
        groups = plan.clustering.groups if plan.clustering is not None else ()
        slices = [(s.partition, (s.data_file, *s.log_files)) for g in groups for s in g.slices]
    for partition, files in slices:
        for file in files:
            if file:
                yield join_path(partition, file.rpartition("/")[2])


def _check_deletes(facts: TableFacts, instant: Instant, plan: CleanPlan, report: VerifyReport) -> None:
    kept = live_files(facts) | saved_files(facts).keys()
    planned = {join_path(partition, name) for partition, names in plan.files.items() for name in names}
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


def _check_savepoints(facts: TableFacts, report: VerifyReport) -> None:
    for instant in facts.timeline.of(SAVEPOINT):
        saved = facts.contents.get(instant.path)
        if not instant.completed or not isinstance(saved, SavepointMetadata):
            continue
        for path in sorted(
            p for p, t in saved_files(facts).items() if t == instant.time and p not in facts.sizes
        ):
            report.add("savepoint-file-missing", path, f"the savepoint {instant.time} keeps a missing file",
                       instant.time)  # fmt: skip


# Checks of hoodie.properties: checksums, the backup of an update, values that exclude each other.

_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
_FORMATS = ("PARQUET", "ORC", "HFILE")


def check_properties(storage: Storage, report: VerifyReport) -> TableConfig | None:
    """Configuration for the other checks; None where it is unreadable."""
    primary = _read(storage, PROPERTIES_FILE)
    backup = _read(storage, BACKUP_FILE)
    if backup is not None:
        whole = "the backup is whole" if isinstance(backup, dict) else f"the backup is not whole: {backup}"
        gone = "and the file itself is missing" if primary is None else "and was not removed"
        report.add(
            "properties-backup",
            BACKUP_FILE,
            f"an update of hoodie.properties did not come to its end: its backup is there {gone}; {whole}",
            primary=isinstance(primary, dict),
            backup=isinstance(backup, dict),
        )
    if isinstance(primary, str):
        code = "properties-checksum" if "checksum" in primary else "properties-unreadable"
        report.add(code, PROPERTIES_FILE, primary, backup=isinstance(backup, dict))
    found = primary if isinstance(primary, dict) else backup
    if not isinstance(found, dict):
        if primary is None and backup is None:
            report.add(
                "properties-unreadable", PROPERTIES_FILE, "hoodie.properties and its backup are missing"
            )
        return _despite_names(storage) if isinstance(primary, str) else None
    try:
        config = TableConfig(found)
    except CorruptFileError as e:
        report.add("properties-value", PROPERTIES_FILE, e.message)
        return None
    _check_values(config, report)
    if isinstance(primary, dict):
        stored = stored_content_checksum(storage.read(PROPERTIES_FILE))
        if stored is not None and stored != content_checksum(primary):
            report.add(
                "properties-content",
                PROPERTIES_FILE,
                f"its entries were changed since it was written: they give the checksum {content_checksum(primary)}, "
                f"the file says {stored}",
            )
    return config if config.version.layout_exists else None


def _read(storage: Storage, path: str) -> dict[str, str] | str | None:
    """Entries of a file, an error text, or None where it is missing."""
    try:
        found = props.parse(storage.read(path), path=path)
    except FileNotFoundError:
        return None
    except CorruptFileError as e:
        return e.message
    if not found.get(NAME):
        return f"{NAME} is missing"
    said = found.get(CHECKSUM)
    if said is not None and said.strip() != checksum(found):
        return f"checksum mismatch: {CHECKSUM}={said}, the table's names give {checksum(found)}"
    return found


def _despite_names(storage: Storage) -> TableConfig | None:
    """Configuration of a file whose names contradict its checksum."""
    try:
        found = props.parse(storage.read(PROPERTIES_FILE), path=PROPERTIES_FILE)
        config = TableConfig(found)
    except (CorruptFileError, FileNotFoundError):
        return None
    return config if found.get(NAME) and config.version.layout_exists else None


def _check_values(config: TableConfig, report: VerifyReport) -> None:
    wrong: dict[str, str] = {}
    if config.table_type not in _TYPES:
        wrong[table_config.TYPE] = config.table_type
    if config.base_file_format not in _FORMATS:
        wrong[table_config.BASE_FILE_FORMAT] = config.base_file_format
    if not config.version.exists:
        wrong[table_config.VERSION] = str(config.version)
    if not config.version.agrees:
        wrong[table_config.LAYOUT_VERSION] = f"{config.version.layout} with table version {config.version}"
    if config.timezone not in ("LOCAL", "UTC"):
        wrong[table_config.TIMEZONE] = config.timezone
    if wrong:
        text = "; ".join(f"{key} is {value}" for key, value in wrong.items())
        report.add("properties-value", PROPERTIES_FILE, text, keys=sorted(wrong))


# What writers left behind that counts as nothing: markers, heartbeats, folders of staged rows; and the archive.


def check_leftovers(facts: TableFacts, report: VerifyReport, *, now: Callable[[], float] = now_s) -> None:
    """Run the checks for orphaned files.

    Args:
        now: seconds since the epoch.
    """
    storage = facts.storage
    known = {i.time for i in facts.timeline.instants} | facts.open_times
    # Of a completed instant they go when it is archived; asynchronous services leave them until then.
    for instant in markers.list_instants(storage):
        if instant not in known:
            report.add("markers-left", markers.marker_folder(instant), "markers of an instant that is on no timeline",
                       instant)  # fmt: skip
    for instant in heartbeat.list_instants(storage):
        if instant in facts.open_times:
            continue
        liveness = heartbeat.liveness(storage, instant, now=now)
        if liveness.alive or liveness.age_ms is None:  # its writer took it away since the listing
            continue
        state = "is completed" if instant in known else "is on no timeline"
        report.add("heartbeat-left", heartbeat.heartbeat_path(instant), f"the heartbeat of an instant that {state}",
                   instant)  # fmt: skip
    for entry in storage.list(heartbeat.FOLDER):
        if not entry.is_dir and entry.name.endswith(".tmp") and is_old(entry):
            report.add("timeline-temporary", f"{heartbeat.FOLDER}/{entry.name}",
                       "the temporary file of a writer that is gone")  # fmt: skip
    for entry in storage.list(""):
        if entry.is_dir and entry.name.startswith(orphans.STAGING):
            youngest = max((f.mtime_ms for f in storage.list(entry.name)), default=entry.mtime_ms)
            if now() * 1000 - youngest > orphans.STAGING_AGE_MS:
                report.add("staging-left", entry.name, "staged rows of a write that is gone")


def check_archive(facts: TableFacts, report: VerifyReport) -> None:
    """Check that the archive is readable; in layout 2, that its manifest matches its files."""
    config, storage = facts.config, facts.storage
    if config.version.has_lsm_history:
        try:
            history_files(storage, config)
        except (CorruptFileError, MissingFileError) as e:
            name = e.file.rpartition("/")[2]
            code = "archive-manifest" if name.startswith("manifest_") else "archive-unreadable"
            report.add(code, e.file, e.message)
            return
    problem = facts.archived.problem
    if problem is not None:
        report.add("archive-unreadable", problem.file or config.history_folder, problem.message)
