"""Which files the newest state of a table and its savepoints need, by what commits say."""

from __future__ import annotations

from hudi_format.model import join_path
from hudi_format.names import parse_base_file, parse_log_file
from hudi_timeline.instant import SAVEPOINT
from hudi_timeline.metadata.actions import SavepointMetadata
from hudi_timeline.verify.facts import Facts

Group = tuple[str, str]


def newest_base(facts: Facts) -> dict[Group, tuple[str, str]]:
    """By file group that is not replaced, the instant and path of its newest base file; listed or written."""
    newest: dict[Group, tuple[str, str]] = {}
    gone = replaced_at(facts)
    for instant, commit in facts.written.items():
        for stat in commit.files:
            group = (stat.partition, stat.file_id)
            if parse_base_file(stat.partition, stat.path.rpartition("/")[2]) and group not in gone:
                newest[group] = max(newest.get(group, ("", "")), (instant.time, stat.path))
    first = facts.timeline.first_active
    for partition, files in facts.partitions.items():
        for file in files:
            base = parse_base_file(partition, file.name)
            if base is not None and base.instant < first and (partition, base.file_id) not in gone:
                group = (partition, base.file_id)
                newest[group] = max(newest.get(group, ("", "")), (base.instant, base.path))
    return newest


def replaced_at(facts: Facts) -> dict[Group, str]:
    """The instant that replaced a file group."""
    return {
        (partition, file_id): instant.time
        for instant, commit in facts.written.items()
        for partition, ids in commit.replaced.items()
        for file_id in ids
    }


def live_files(facts: Facts) -> set[str]:
    """Paths of the files that a snapshot of the newest state reads."""
    newest = newest_base(facts)
    out = {path for _, path in newest.values()}
    gone = replaced_at(facts)
    completion = {i.time: i.completion for i in facts.timeline.completed_writes()}
    for instant, commit in facts.written.items():
        for stat in commit.files:
            log = parse_log_file(stat.partition, stat.path.rpartition("/")[2])
            group = (stat.partition, stat.file_id)
            if log is None or group in gone:
                continue
            base = newest.get(group, ("", ""))[0]
            # From version 8 on a log file belongs to the slice that was begun before its commit was completed.
            at = completion.get(instant.time) or log.instant
            if (at if facts.config.layout_version == 2 else log.instant) >= base:
                out.add(stat.path)
    return out


def saved_files(facts: Facts) -> dict[str, str]:
    """Paths of the files that savepoints keep, with the savepoint's time."""
    out: dict[str, str] = {}
    for instant in facts.timeline.of(SAVEPOINT):
        saved = facts.contents.get(instant.path)
        if instant.completed and isinstance(saved, SavepointMetadata):
            for partition, kept in saved.partitions.items():
                out.update((join_path(partition, n.rpartition("/")[2]), instant.time) for n in kept.files)
    return out
