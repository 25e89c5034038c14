"""Archival planning: instants to move out of the active timeline.

    cleanings, rollbacks   each by itself: where there are more than `most`, all but the newest `least`
    commits                where there are more than `most`: all but `least`, of those that nothing holds back

Commits are held back by a write that is open, a savepoint, a replacement whose files are there still, and the count for
the next compaction.  What the policy of cleaning retains raises `least` and `most`, so that a commit that can be
read as of its time stays on the timeline, and one more.  It is asked of the policy and not of the last cleaning: where
writes leave nothing to clean, the last one may be long ago.

Source: HoodieTimelineArchiver and ArchivalUtils of Apache Hudi 0.15.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache
from typing import Any

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError
from hudi_format.file_names import parse_log_file, parse_slice_file
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.listing import list_partition_files
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.own_table import own_if_there
from hudi_timeline.options.service_config import KEEP_HOURS, ServiceConfig
from hudi_timeline.services.clean_planner import before_pending, retained_by_policy
from hudi_timeline.services.pending_cleans import last_clean
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    COMPLETED,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    format_instant,
    parse_instant,
    zone_of,
)

_BY_THEMSELVES = (CLEAN, ROLLBACK)


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """Instants to archive, oldest first, with the files of all states.

    Attributes:
        warning: what keeps commits on the timeline that nothing else holds back; "" where nothing does.
    """

    instants: tuple[Instant, ...] = ()
    files: tuple[Instant, ...] = ()
    warning: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)


def wants_archive(timeline: Timeline, config: ServiceConfig, fresh_cleans: int = 0) -> bool:
    """Whether the timeline is long enough for archival.

    Args:
        fresh_cleans: cleanings that were completed since it was loaded.
    """
    cleans, rollbacks = (len(timeline.completed(a)) for a in _BY_THEMSELVES)
    return (
        max(len(timeline.completed_writes()), cleans + fresh_cleans, rollbacks) > config.archive_max_commits
    )


def make_plan(snapshot: TableSnapshot, config: ServiceConfig) -> ArchivePlan:
    """The instants that can be archived now.

    Raises:
        CorruptFileError: the last cleaning or a replacement cannot be read.
    """
    timeline = snapshot.timeline
    if not wants_archive(timeline, config):
        return ArchivePlan()
    least, most = limits(timeline, config, zone_of(snapshot.config.timezone))
    chosen: list[Instant] = []
    for action in _BY_THEMSELVES:
        done = timeline.completed(action)
        if len(done) > most:
            chosen += done[: len(done) - least]
    warning = ""
    if len(timeline.completed_writes()) > most:
        commits = _commits(snapshot, config)[: len(timeline.completed_writes()) - least]
        commits, warning = _before_files_left(snapshot, commits)
        commits, hidden = _without_hidden_files(snapshot, commits)
        warning = warning or hidden
        chosen += commits
    kept_from = _needed_by_metadata_table(snapshot)
    chosen = sorted(i for i in chosen if kept_from is None or i.time < kept_from)
    keys = {(i.time, i.comparable_action) for i in chosen}
    return ArchivePlan(tuple(chosen), timeline.files_of(keys), warning)


def _needed_by_metadata_table(snapshot: TableSnapshot) -> str | None:
    """Instant of the metadata table's last compaction; None where there is no metadata table.

    What it says of later instants counts only while these stand on the timeline.
    """
    if not metadata_config.built(snapshot.config):
        return None
    own = own_if_there(snapshot.storage)  # a dry run holds no lock: it may be gone since
    return None if own is None else own.last_compaction


def limits(timeline: Timeline, config: ServiceConfig, zone: tzinfo | None) -> tuple[int, int]:
    """Number of commits to keep, and the number that triggers archival."""
    least, most = config.archive_min_commits, config.archive_max_commits
    retained = _retained(timeline, config, zone)
    if retained is None:
        return least, most
    needed = sum(i.time > retained.time for i in timeline.completed_writes()) + 2
    more = max(0, needed - least)
    return least + more, most + more


def _retained(timeline: Timeline, config: ServiceConfig, zone: tzinfo | None) -> Instant | None:
    """Oldest commit retained by the cleaning policy; hours count from the newest commit."""
    commits = timeline.completed_writes()
    try:
        newest = parse_instant(commits[-1].time)
    except (IndexError, ValueError):  # no commit, or a bootstrap's
        return None
    chosen = retained_by_policy(commits, config, newest, zone)
    return chosen if config.clean_policy == KEEP_HOURS else before_pending(timeline, chosen, WRITE_ACTIONS)


def _commits(snapshot: TableSnapshot, config: ServiceConfig) -> list[Instant]:
    """Archivable commits, oldest first."""
    timeline = snapshot.timeline
    saved = timeline.savepoints
    bounds = _bounds(snapshot.storage, timeline)
    if snapshot.config.table_type == "MERGE_ON_READ":
        bounds += _for_next_compaction(timeline, config.compaction_delta_commits)
    if saved and not config.archive_beyond_savepoint:
        bounds.append(saved[0])
    # Savepointed commits count among those that stay: with several of them the count alone would take newer ones away
    # (Apache Hudi does), up to the newest.
    retained = (
        _retained(timeline, config, zone_of(snapshot.config.timezone)) or timeline.completed_writes()[-1]
    )
    bound = min([*bounds, retained.time])
    return [i for i in timeline.completed_writes() if i.time < bound and i.time not in saved]


def _bounds(storage: Storage, timeline: Timeline) -> list[str]:
    """Times of instants that must stay, with all later ones, under any option."""
    bounds = []
    commits = timeline.completed_writes()
    kinds = WRITE_ACTIONS | {COMPACTION, LOG_COMPACTION, CLUSTERING}
    pending = next((i for i in timeline.instants if not i.completed and i.action in kinds), None)
    if pending is not None:
        # A writer that is open may have planned on the commit before it.
        bounds.append(max((i.time for i in commits if i.time < pending.time), default=pending.time))
    replaced = timeline.completed(REPLACE_COMMIT)
    if replaced:
        # Until the cleaner has been past a replacement, the timeline alone knows of the replaced groups.
        cleaned = last_clean(storage, timeline)
        covered = "" if cleaned is None else cleaned.earliest_to_retain or cleaned.start
        bounds += [i.time for i in replaced if i.time >= covered][:1]
    return bounds


def _before_files_left(snapshot: TableSnapshot, commits: list[Instant]) -> tuple[list[Instant], str]:
    """Commits before the first replacement with undeleted files, and a warning.

    The cleaner may have been past it and have left them: to a savepoint, where a store would not delete them, or where
    it was planned before the replacement was completed.  Without the replacement their rows would be the table's again.
    """
    replaced = {
        i.time: snapshot.commits.get(i).replaced_groups for i in commits if i.action == REPLACE_COMMIT
    }
    if not replaced:
        return commits, ""
    listing = list_partition_files(snapshot.storage, {p for groups in replaced.values() for p, _ in groups})
    left: dict[tuple[str, str], str] = {}
    for partition, entries in listing.items():
        for entry in entries:
            file = parse_slice_file(partition, entry.name)
            if file is not None:
                left[partition, file.file_id] = file.path
    for at, groups in replaced.items():
        path = next((left[g] for g in sorted(groups & left.keys())), None)
        if path is not None:
            return [i for i in commits if i.time < at], (
                f"instants from {at} on are not archived: {path}, which that write replaced, is still there; "
                "delete the savepoint that keeps it, or clean with hoodie.cleaner.incremental.mode=false"
            )
    return commits, ""


def _without_hidden_files(snapshot: TableSnapshot, commits: list[Instant]) -> tuple[list[Instant], str]:
    """Commits that do not hide files behind the first savepoint, and a warning.

    To Apache Hudi the active timeline begins at the savepoint: it takes the files of an instant that is archived from
    behind it for those of a failed write, and answers with the file group's older rows.
    """
    saved = snapshot.timeline.savepoints
    beyond = {i.time for i in commits if saved and i.time > saved[0]}
    if not beyond:
        return commits, ""
    newest_base: dict[tuple[str, str], str] = {}
    written: dict[str, frozenset[tuple[str, str]]] = {}
    replaced: set[tuple[str, str]] = set()
    for instant in snapshot.timeline.completed_writes():
        metadata = snapshot.commits.get(instant)
        replaced |= metadata.replaced_groups
        written[instant.time] = groups = frozenset(
            (p, s.file_id) for p, stats in metadata.partition_to_stats.items() for s in stats if s.file_id
        )
        logs = {
            (p, s.file_id)
            for p, stats in metadata.partition_to_stats.items()
            for s in stats
            if parse_log_file(p, s.path.rpartition("/")[2]) is not None
        }
        newest_base.update(dict.fromkeys(groups - logs, instant.time))
    kept = {time for time in beyond if any(time >= newest_base.get(g, "") for g in written[time] - replaced)}
    if not kept:
        return commits, ""
    return [i for i in commits if i.time not in kept], (
        f"{len(kept)} commits beyond the savepoint of {saved[0]} are not archived, {min(kept)} the first: they wrote "
        "the newest files of file groups, which Apache Hudi does not read once their commits are archived; delete the "
        "savepoint to archive them"
    )


def _for_next_compaction(timeline: Timeline, delta_commits: int) -> list[str]:
    """Oldest instant needed to schedule the next compaction."""
    deltas = [i.time for i in timeline.of(DELTA_COMMIT)]
    last = max((i.time for i in timeline.completed(COMMIT)), default=None)
    since = [t for t in deltas if last is None or t > last]
    if len(since) >= delta_commits:
        return [since[len(since) - delta_commits]]
    if last is not None:
        return [last]
    return deltas[:1]


# Instants as entries of the archive: one for each state, with what the instant's file held.
#
# Source: MetadataConversionUtils of Apache Hudi 0.15; real archive files.

_ROLLING = "ROLLING_STAT"


def archive_entry(storage: Storage, table: TableConfig, instant: Instant) -> dict[str, Any]:
    """Archive entry of one state of an instant, as a HoodieArchivedMetaEntry.

    Raises:
        CorruptFileError: the instant's file cannot be read; it is then left on the timeline.
    """
    data = storage.read(instant.path)
    moment = datetime.fromtimestamp(instant.mtime_ms / 1000, zone_of(table.timezone))
    entry: dict[str, Any] = {
        "commitTime": instant.time,
        "actionType": instant.action,
        "actionState": instant.state,
        "stateTransitionTime": format_instant(moment.replace(tzinfo=None)),
    }
    try:
        name, value = _content(instant, data)
    except CorruptFileError as e:
        raise e.at(table=storage.uri, instant=instant.time, file=instant.path) from None
    if name:
        entry[name] = value
    return entry


@cache
def _stat_fields() -> tuple[str, ...]:
    """Names of the fields of a write statistic in the archive."""
    entry = json.loads(avro_files.schema_text(avro_files.ARCHIVED_ENTRY))
    commit = entry["fields"][0]["type"][1]
    stats = commit["fields"][0]["type"][1]["values"]["items"]
    return tuple(f["name"] for f in stats["fields"])


def _content(instant: Instant, data: bytes) -> tuple[str, Any]:
    """Entry field for the file's content, and the content."""
    action, completed = instant.action, instant.state == COMPLETED
    path = instant.path
    if action == REPLACE_COMMIT and instant.state == REQUESTED:
        return "hoodieRequestedReplaceMetadata", _record("HoodieRequestedReplaceMetadata", data, path)
    if action == REPLACE_COMMIT:
        name = "hoodieReplaceCommitMetadata" if completed else "HoodieInflightReplaceMetadata"
        return name, _commit(data, path, replaced=completed)
    if action in WRITE_ACTIONS:
        return "hoodieCommitMetadata", _commit(data, path, replaced=False)
    if action == CLEAN:
        if completed:
            return "hoodieCleanMetadata", _record("HoodieCleanMetadata", data, path)
        return "hoodieCleanerPlan", _record("HoodieCleanerPlan", data, path)
    if action == ROLLBACK and completed:
        return "hoodieRollbackMetadata", _record("HoodieRollbackMetadata", data, path)
    if action == SAVEPOINT and completed:
        return "hoodieSavePointMetadata", _record("HoodieSavepointMetadata", data, path)
    if action in (COMPACTION, LOG_COMPACTION) and instant.state == REQUESTED:
        return "hoodieCompactionPlan", _record("HoodieCompactionPlan", data, path)
    return "", None


def _record(name: str, data: bytes, path: str) -> Any:
    # Empty files of cleanings and overwrites say nothing; Apache Hudi's readers take them so.
    return avro_files.parse(name, data, path=path) if data else None


def _commit(data: bytes, path: str, *, replaced: bool) -> dict[str, Any]:
    """Commit metadata from JSON, limited to the archive's fields."""
    try:
        value = loads(data) if data else {}
        extra: Mapping[str, Any] = value.get("extraMetadata") or {}
        stats = {
            partition: [{name: stat.get(name) for name in _stat_fields()} for stat in of]
            for partition, of in (value.get("partitionToWriteStats") or {}).items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError) as e:
        raise CorruptFileError(
            f"no commit metadata: {e}",
            file=path,
            remedy="restore the file from a backup; nothing is archived before it can be read.",
        ) from None
    operation = value.get("operationType") or "UNKNOWN"
    out: dict[str, Any] = {
        "partitionToWriteStats": stats,
        "extraMetadata": {**extra, _ROLLING: ""},
        "version": None,
        "operationType": "COMPACT" if value.get("compacted") is True else operation,
    }
    if replaced:
        out["partitionToReplaceFileIds"] = value.get("partitionToReplaceFileIds") or {}
    return out
