"""Checks of files against what commits say: missing, of another size, of no commit, of a group that is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_format.errors import HudiError
from hudi_format.model import join_path
from hudi_format.names import parse_base_file, parse_cdc_file, parse_log_file
from hudi_format.schema.avro import from_avro
from hudi_timeline.instant import Instant
from hudi_timeline.metadata.commit import CommitMetadata
from hudi_timeline.verify.archived_facts import Removed
from hudi_timeline.verify.facts import Facts
from hudi_timeline.verify.finding import Report
from hudi_timeline.verify.live import live_files, replaced_at


def check_files(facts: Facts, report: Report) -> None:
    """All checks of this module."""
    _check_stats(facts, report)
    _check_schemas(facts, report)
    _check_written(facts, report)
    _check_strangers(facts, report)
    _check_replaced(facts, report)


def _check_stats(facts: Facts, report: Report) -> None:
    """Each statistic's own parts must agree."""
    for instant, commit in facts.commits.items():
        for partition, stats in commit.partition_to_stats.items():
            for stat in stats:
                if not stat.path:
                    continue
                folder, _, name = stat.path.lstrip("/").rpartition("/")
                base, log = parse_base_file(partition, name), parse_log_file(partition, name)
                file = base or log
                problem = ""
                if folder != partition or stat.partition != partition:
                    problem = f"it is among those of the partition {partition!r}"
                elif file is None and not _is_source(facts, instant, name):
                    problem = "that is no name of a data file"
                elif file is not None and file.file_id != stat.file_id:
                    problem = f"its file id is said to be {stat.file_id!r}"
                elif base is not None and not facts.is_metadata and base.instant != instant.time:
                    problem = f"its name is of the instant {base.instant}"
                if problem:
                    report.add(
                        "commit-stat",
                        instant.path,
                        f"of {stat.path}: {problem}",
                        instant.time,
                        file=stat.path,
                    )


def _check_schemas(facts: Facts, report: Report) -> None:
    """The schemas that commits carry can be read; most carry the same."""
    known: dict[str, str] = {}
    for instant, commit in facts.commits.items():
        text = commit.schema_text
        if not text or facts.is_metadata:
            continue
        if text not in known:
            try:
                from_avro(text)
                known[text] = ""
            except HudiError as e:
                known[text] = e.message
        if known[text]:
            report.add("commit-schema", instant.path, known[text], instant.time)


def _is_source(facts: Facts, instant: Instant, name: str) -> bool:
    """A bootstrap's statistics may name files of the source."""
    return bool(facts.config.bootstrap_base_path) and instant.time.startswith("0000000000000")


def _check_written(facts: Facts, report: Report) -> None:
    live: set[str] | None = None
    removed = removed_files(facts)
    for instant, path, size, is_base in _named(facts):
        there = facts.sizes.get(path)
        if there is not None:
            if is_base and 0 < size != there:
                report.add("file-size", path, f"it has {there} bytes, its commit says {size}", instant.time,
                           size=there, committed=size)  # fmt: skip
            continue
        partition, _, name = path.rpartition("/")
        if facts.is_metadata and partition not in facts.partitions:
            continue  # an index that was dropped, or is built anew: its folder is removed without a cleaning
        if live is None:
            live = live_files(facts)
        if path in live:
            report.add(
                "file-missing", path, "a completed commit wrote the file, and it is not there", instant.time
            )
            continue
        if facts.is_metadata or removed.has(partition, name) or _was_cleaned(facts, partition, name):
            continue
        report.add("old-file-missing", path, "a completed commit wrote the file, and no cleaning took it away",
                   instant.time)  # fmt: skip


def _named(facts: Facts) -> Iterator[tuple[Instant, str, int, bool]]:
    """Instant, path and size of every file that commits name; whether all of it is of that commit."""
    for instant, commit in facts.commits.items():
        for stat in facts.written[instant].files:
            name = stat.path.rpartition("/")[2]
            base = parse_base_file(stat.partition, name) is not None
            if base or parse_log_file(stat.partition, name) is not None:
                yield instant, stat.path, stat.size, base
        yield from ((instant, path, size, True) for path, size in _changes(commit))


def _changes(commit: CommitMetadata) -> Iterator[tuple[str, int]]:
    """Files of change data capture with their sizes, as a commit names them."""
    for stat in commit.stats:
        said = stat.extra.get("cdcStats")
        if isinstance(said, dict):
            for path, size in said.items():
                yield str(path).lstrip("/"), size if isinstance(size, int) else 0


def removed_files(facts: Facts) -> Removed:
    """What the active timeline says was deleted on purpose, or is being deleted."""
    out = Removed()
    for instant in facts.timeline.files:
        out.take(facts.contents.get(instant.path))
    return out


def _was_cleaned(facts: Facts, partition: str, name: str) -> bool:
    """Whether the archive says so, or cannot be asked."""
    return facts.archived.problem is not None or facts.archived.removed.has(partition, name)


def _check_strangers(facts: Facts, report: Report) -> None:
    """Files that lie there and that no completed commit wrote."""
    named = {path for _, path, _, _ in _named(facts)}
    completed = {i.time for i in facts.timeline.completed_writes()}
    first = facts.timeline.first_active
    own_instant = facts.config.layout_version == 2
    for partition, files in facts.partitions.items():
        for entry in files:
            base, log = parse_base_file(partition, entry.name), parse_log_file(partition, entry.name)
            file = base or log or parse_cdc_file(partition, entry.name)
            if file is None:
                continue
            path, time = join_path(partition, entry.name), file.instant
            if path in named or time in facts.unreadable_times or facts.is_metadata:
                continue
            if time in completed:
                # Up to version 6 a log file is named after its slice, and may hold nothing but failed writes.
                if base is not None or (log is not None and own_instant):
                    report.add("file-stray", path, "its instant is completed, and does not name the file: it was left "
                               "by a task that was tried again", time)  # fmt: skip
            elif time in facts.known_times:
                continue  # pending: it will be completed or rolled back
            elif first and time < first:
                if _is_unarchived(facts, time):
                    what = "its instant is on no timeline, and before the active one: readers take it for committed"
                    report.add("file-of-no-archived-instant", path, what, time)
            else:
                report.add("file-of-no-instant", path, "its instant is on no timeline", time)


def _is_unarchived(facts: Facts, time: str) -> bool:
    """Whether the archive, which begins before it, does not have a write at that time."""
    archived = facts.archived
    return (
        archived.problem is None and bool(archived.oldest) and archived.oldest < time not in archived.writes
    )


def _check_replaced(facts: Facts, report: Report) -> None:
    gone = replaced_at(facts)
    for instant, commit in facts.written.items():
        for stat in commit.files:
            at = gone.get((stat.partition, stat.file_id))
            if at is not None and instant.time > at:
                report.add("replaced-group-written", stat.path,
                           f"its file group was replaced by {at}: what was written later is not read", instant.time,
                           replaced=at)  # fmt: skip
