"""File checks against commits: missing, wrong size, uncommitted, replaced."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.file_names import (
    PARTITION_METADATA,
    parse_base_file,
    parse_cdc_file,
    parse_data_file,
    parse_log_file,
    parse_slice_file,
)
from hudi_format.model import WriteStat, join_path
from hudi_format.partition_metadata import depth_of
from hudi_format.schema.avro import from_avro
from hudi_format.storage.local import LocalStorage
from hudi_timeline.file_system_view.base_files import Group
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import Instant
from hudi_timeline.transaction.orphans import STAGING
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import (
    Removed,
    TableFacts,
    is_of_earlier_partition,
    is_old,
    live_files,
)

_CLUSTER = "CLUSTER"


def check_files(facts: TableFacts, report: VerifyReport) -> None:
    """Run the file checks."""
    _check_stats(facts, report)
    _check_schemas(facts, report)
    _check_written(facts, report)
    _check_strangers(facts, report)
    _check_replaced(facts, report)


def _check_stats(facts: TableFacts, report: VerifyReport) -> None:
    """Check each write statistic for consistency."""
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
                elif file is None and not _may_be_source(facts, instant):
                    problem = "not a data file name"
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


def _check_schemas(facts: TableFacts, report: VerifyReport) -> None:
    """Check that commits' schemas are readable."""
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


def _may_be_source(facts: TableFacts, instant: Instant) -> bool:
    """Whether files of an instant may be a bootstrap's source files."""
    return bool(facts.config.bootstrap_base_path) and instant.time.startswith("0000000000000")


def _check_written(facts: TableFacts, report: VerifyReport) -> None:
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
        if facts.is_metadata and is_of_earlier_partition(facts, partition, instant):
            continue  # an index that was dropped, or is built anew: its folder is removed without a cleaning
        if live is None:
            live = live_files(facts)
        if path in live:
            report.add(
                "file-missing", path, "a completed commit wrote the file, which is missing", instant.time
            )
            continue
        if facts.is_metadata or removed.has(partition, name) or _was_cleaned(facts, partition, name):
            continue
        report.add("old-file-missing", path, "a completed commit wrote the file, and no cleaning took it away",
                   instant.time)  # fmt: skip


def _named(facts: TableFacts) -> Iterator[tuple[Instant, str, int, bool]]:
    """Instant, path and size of each committed file, and whether it is all of that commit."""
    for instant, commit in facts.commits.items():
        for stat in facts.written[instant].files:
            name = stat.path.rpartition("/")[2]
            base = parse_base_file(stat.partition, name) is not None
            if base or parse_log_file(stat.partition, name) is not None:
                yield instant, stat.path, stat.size, base
        yield from ((instant, path, size, True) for path, size in _changes(commit))


def _changes(commit: CommitMetadata) -> Iterator[tuple[str, int]]:
    """CDC files of a commit with their sizes."""
    for stat in commit.stats:
        said = stat.extra.get("cdcStats")
        if isinstance(said, dict):
            for path, size in said.items():
                yield str(path).lstrip("/"), size if isinstance(size, int) else 0


def removed_files(facts: TableFacts) -> Removed:
    """Files deleted on purpose, by the active timeline."""
    out = Removed()
    for instant in facts.timeline.files:
        out.take(facts.contents.get(instant.path))
    return out


def _was_cleaned(facts: TableFacts, partition: str, name: str) -> bool:
    """Whether the archive shows the file as cleaned, or cannot be read."""
    return facts.archived.problem is not None or facts.archived.removed.has(partition, name)


def _check_strangers(facts: TableFacts, report: VerifyReport) -> None:
    """Report files of no completed commit."""
    named = {path for _, path, _, _ in _named(facts)}
    completed = {i.time for i in facts.timeline.completed_writes()}
    archived = facts.timeline.archived()
    own_instant = facts.config.version.names_logs_by_own_instant
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
            elif time in archived:
                if _is_unarchived(facts, time):
                    what = "its instant is on no timeline, and before the active one: readers take it for committed"
                    report.add("file-of-no-archived-instant", path, what, time)
            else:
                report.add("file-of-no-instant", path, "its instant is on no timeline", time)
    for file in facts.overwritten:
        what = "it is of the table that was overwritten, of a writer that outlived it: nothing reads it"
        report.add("file-of-no-instant", file.path, what, file.instant)


def _is_unarchived(facts: TableFacts, time: str) -> bool:
    """Whether the archive lacks a write at that time, although it reaches back or the write was undone."""
    archived = facts.archived
    if archived.problem is not None or not archived.oldest or time in archived.writes:
        return False
    return archived.oldest < time or time in archived.removed.targets or time in removed_files(facts).targets


def _check_replaced(facts: TableFacts, report: VerifyReport) -> None:
    for instant, stat, at in lost_writes(facts.commits):
        report.add("replaced-group-written", stat.path,
                   f"its file group was replaced by {at}: what was written later is not read", instant.time,
                   replaced=at)  # fmt: skip


def lost_writes(commits: Mapping[Instant, CommitMetadata]) -> Iterator[tuple[Instant, WriteStat, str]]:
    """Files written into file groups after these were replaced, and the replacing instant.

    Left out is what was written twice: while a resize of a ring is pending, Apache Hudi's writers log the records of a
    bucket that it replaces to that one and to those that take its place, whose slices begin with the resize.

    Args:
        commits: completed writes, oldest first.
    """
    gone: dict[Group, str] = {}
    clusterings = set()
    for instant, commit in commits.items():
        gone |= dict.fromkeys(commit.replaced_groups, instant.time)
        if commit.operation == _CLUSTER:
            clusterings.add(instant.time)
    for instant, commit in commits.items():
        late: dict[Group, list[WriteStat]] = {}
        elsewhere: Counter[Group] = Counter()
        for stat in commit.stats:
            at = gone.get((stat.partition, stat.file_id))
            if at is not None and instant.time > at:
                late.setdefault((stat.partition, at), []).append(stat)
            elif ".log." in stat.path:
                elsewhere[stat.partition, stat.prev_commit] += _records(stat)
        for (partition, at), stats in late.items():
            logged = at in clusterings and all(".log." in s.path for s in stats)
            if not (logged and sum(map(_records, stats)) == elsewhere[partition, at]):
                yield from ((instant, stat, at) for stat in stats)


def _records(stat: WriteStat) -> int:
    return stat.num_writes + stat.num_deletes


# Checks of names in the table's folders: data files, partition metadata files, and `.crc` files of local Hadoop.

_CRC = re.compile(r"\.(.+)\.crc\Z")
_CRC_HEAD = b"crc\x00"
# Apache Hudi's consistent-hashing index leaves these among the data; Spark's committers leave `_SUCCESS`.
_KNOWN = re.compile(r"[0-9]{14,17}\.commit\Z|_SUCCESS\Z|_common_metadata\Z|_metadata\Z")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp\Z")
_LARGEST_CRC_CHECK = 8 << 20  # bytes of a data file whose .crc is recomputed without `deep`


def instant_of(partition: str, name: str) -> str | None:
    """Instant in a data file's name, "" for a partition's own files, None for other names."""
    file = parse_data_file(partition, name)
    if file is not None:
        return file.instant
    known = name.startswith(PARTITION_METADATA) or _KNOWN.match(name) or _CRC.match(name)
    return "" if known else None


def check_names(facts: TableFacts, report: VerifyReport, *, deep: bool = False) -> None:
    """Run the name checks."""
    for folder, files in facts.folders.items():
        if folder.startswith(STAGING):
            continue
        hudi = [f.name for f in files if parse_slice_file(folder, f.name)]
        if folder not in facts.partitions:
            if hudi:
                path = join_path(folder, PARTITION_METADATA)
                report.add(
                    "partition-metadata-missing",
                    path,
                    f"the folder has {len(hudi)} data files and is not marked as a partition: no reader looks into it",
                    instant=min(filter(None, (instant_of(folder, n) for n in hudi))),
                    partition=folder,
                )
            continue
        for file in files:
            if instant_of(folder, file.name) is None:
                at_work = _TEMPORARY.match(file.name) and not is_old(file)
                if not at_work:
                    report.add(
                        "name-unknown", join_path(folder, file.name), "no name of a file of a Hudi table"
                    )
    _check_links(facts, report)
    _check_nested(facts, report)
    _check_partition_metadata(facts, report)
    _check_crcs(facts, report, deep=deep)


def _check_links(facts: TableFacts, report: VerifyReport) -> None:
    """Report links that listings leave out."""
    if not isinstance(facts.storage, LocalStorage):
        return
    for folder in facts.folders:
        for name, target in facts.storage.left_out(folder).items():
            path = join_path(folder, name)
            listed = target in facts.folders
            what = "whose files are listed there" if listed else "which no listing of the table shows"
            report.add(
                "link-not-listed",
                path,
                f"a link to {target or 'the whole table'}, {what}: listings pass over it",
                target=target,
                listed=listed,
            )


def _check_nested(facts: TableFacts, report: VerifyReport) -> None:
    for folder in facts.partitions:
        parts = folder.split("/") if folder else []
        around = next((p for n in range(len(parts)) if (p := "/".join(parts[:n])) in facts.partitions), None)
        if around is not None:
            report.add(
                "partition-nested",
                folder,
                f"the partition lies inside of {around or 'that of the whole table'}: without a metadata table "
                "Apache Hudi reads none of its rows",
                partition=folder,
            )


def _check_partition_metadata(facts: TableFacts, report: VerifyReport) -> None:
    found = [(p, f) for p, files in facts.partitions.items() for f in files if f.name == PARTITION_METADATA]

    def problem(item: tuple[str, object]) -> str:
        partition = item[0]
        path = join_path(partition, PARTITION_METADATA)
        try:
            entries: Mapping[str, str] = props.parse(facts.storage.read(path), path=path)
        except FileNotFoundError:
            return ""
        except CorruptFileError as e:
            return e.message
        depth = entries.get("partitionDepth", "")
        if depth != str(depth_of(partition)):
            return f"it says partitionDepth={depth}, the folder is {depth_of(partition)} deep"
        return "" if entries.get("commitTime", "").isdigit() else "it says no commitTime"

    for (partition, _), text in zip(found, facts.each(problem, found), strict=True):
        if text:
            report.add(
                "partition-metadata", join_path(partition, PARTITION_METADATA), text, partition=partition
            )


def _check_crcs(facts: TableFacts, report: VerifyReport, *, deep: bool) -> None:
    names: dict[str, dict[str, int]] = {
        folder: {f.name: f.size for f in files} for folder, files in facts.folders.items()
    }
    for folder in dict.fromkeys((".hoodie", facts.config.timeline_folder)):
        names[folder] = {e.name: e.size for e in facts.storage.list(folder) if not e.is_dir}
    todo = list(_crcs(names))
    for folder, name, target in [t for t in todo if t[2] not in names[t[0]]]:
        report.add("crc-orphan", join_path(folder, name), f"its data file {target} is missing")
    there = [
        (folder, name, target)
        for folder, name, target in todo
        if target in names[folder] and (deep or names[folder][target] <= _LARGEST_CRC_CHECK)
    ]

    def differs(item: tuple[str, str, str]) -> bool:
        folder, name, target = item
        try:
            said = facts.storage.read(join_path(folder, name))
            return not _crc_holds(said, facts.storage.read(join_path(folder, target)))
        except FileNotFoundError:
            return False

    for (folder, name, target), wrong in zip(there, facts.each(differs, there), strict=True):
        if wrong:
            report.add("crc-mismatch", join_path(folder, name),
                       f"its checksums are not those of {target}: Hadoop's local file system refuses the file",
                       target=join_path(folder, target))  # fmt: skip


def _crcs(names: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str, str]]:
    for folder, files in names.items():
        for name in files:
            match = _CRC.match(name)
            if match is not None:
                yield folder, name, match[1]


def _crc_holds(said: bytes, data: bytes) -> bool:
    """Whether a Hadoop checksum matches.

    Source: ChecksumFileSystem of Hadoop: "crc", 0, bytes for each checksum, CRC-32s.
    """
    if said[:4] != _CRC_HEAD or len(said) < 8:
        return False
    size = int.from_bytes(said[4:8], "big")
    if size <= 0 or len(said) - 8 != 4 * -(-len(data) // size):
        return False
    view = memoryview(data)
    return all(
        zlib.crc32(view[at : at + size]) == int.from_bytes(said[8 + n * 4 : 12 + n * 4], "big")
        for n, at in enumerate(range(0, len(data), size))
    )
