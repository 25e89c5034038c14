"""Upsert partitioner: assigns records to buckets by the workload profile.

Records whose key is in a file group go there.  New records first fill small base files of their partition,
then make new file groups of the target size.  Of a merge-on-read table records of a file group go to its log, and new
ones fill base files that have no log: the smallest ones, a few in each partition, which are rewritten.

With a bucket index each record says its file group, which is new where its bucket has none; then no file is filled
and none is split.

Source: Apache Hudi 0.15's upsert partitioner (writer documentation, "Workload profile and assignment"); the
choice of a record's insert bucket uses CRC-32 of the key, which both engines compute natively, where Apache
Hudi uses MD5: the shares are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_format.file_names import new_file_id_prefix
from hudi_format.model import BaseFile, FileSlice, WriteStat
from hudi_timeline.writing.workers.tasks import (
    APPEND,
    CONCAT,
    CREATE,
    MERGE,
    Bucket,
    InsertShare,
    LogTarget,
    ProfileRow,
    Routing,
)


@dataclass(frozen=True, slots=True)
class SizingRules:
    """File sizing rules in bytes and record counts; the defaults are Apache Hudi's."""

    max_file_bytes: int = 125829120
    small_file_limit_bytes: int = 104857600
    insert_split_size: int = 500000
    auto_split: bool = True
    record_size_estimate: int = 1024
    record_size_threshold: float = 1.0
    small_group_candidates: int = 1


def average_record_size(commits: Iterable[tuple[int, int]], rules: SizingRules) -> int:
    """Average record size of the newest large commit, else the configured estimate.

    Args:
        commits: (bytes written, records written) of completed commits, newest first.
    """
    least = rules.record_size_threshold * rules.small_file_limit_bytes
    for size, records in commits:
        if records > 0 and size > least:
            return max(1, math.ceil(size / records))
    return rules.record_size_estimate


@dataclass(frozen=True, slots=True)
class AssignPolicy:
    """Treatment of records by the operation.

    Attributes:
        drop_unlocated: records whose key is not in the table go nowhere (delete).
        drop_located: records whose key is in the table go nowhere (insert that drops duplicates).
        small_files: whether new records fill small files (insert and upsert; not the overwrites).
        append: new records that go to an existing file are appended, whatever their key (insert).
        logs: records of a file group go to its log (merge-on-read tables).
        append_located: so are records that go to the file group of their bucket (insert with a bucket index).
    """

    drop_unlocated: bool = False
    drop_located: bool = False
    small_files: bool = True
    append: bool = False
    logs: bool = False
    append_located: bool = False


def assign(
    profile: Sequence[ProfileRow],
    slices: Mapping[str, Sequence[FileSlice]],
    record_size: Callable[[], int],
    rules: SizingRules,
    policy: AssignPolicy,
    pending: Mapping[tuple[str, str], str] | None = None,
    *,
    seed: str = "",
) -> Routing:
    """Buckets of a write, and the assignment of records.

    Args:
        profile: incoming records by partition and file group.
        slices: latest file slices by partition, with sizes.
        record_size: average bytes of a stored record; called only if a new record has to be placed.
        pending: instant of the pending compaction of a file group, by partition and file id.
        seed: of the file ids of new file groups; "" for random ones.
    """
    pending = pending or {}
    buckets: list[Bucket] = []
    located: dict[tuple[str, str], int] = {}
    rows_of: dict[int, int] = {}
    by_id = {(p, s.file_id): s for p, of in slices.items() for s in of}
    small_files = {
        p: _small_files(of, rules, policy, pending)
        for p, of in slices.items()
        if policy.small_files and rules.small_file_limit_bytes > 0
    }
    # A base file that takes new records is rewritten, and with it its changed ones.
    rewritten = {
        (row.partition, f.file_id)
        for row in profile
        if not row.file_id and row.rows
        for f in small_files.get(row.partition, ())
    }

    def bucket_for(file_slice: FileSlice, kind: str) -> int:
        group = (file_slice.partition, file_slice.file_id)
        number = located.get(group)
        if number is None:
            number = len(buckets)
            target = None
            if policy.logs and group not in rewritten:
                kind, target = APPEND, log_target(file_slice, pending.get(group))
            base = file_slice.base_file
            buckets.append(Bucket(number, group[0], kind, group[1], base, log=target))
            located[group] = number
        return number

    for row in profile:
        if not row.file_id or policy.drop_located:
            continue
        known = by_id.get((row.partition, row.file_id))
        if known is not None:
            number = bucket_for(known, CONCAT if policy.append_located else MERGE)
        elif policy.drop_unlocated:
            continue
        else:  # the first records of a bucket of a bucket index
            number = len(buckets)
            buckets.append(Bucket(number, row.partition, CREATE, row.file_id.removesuffix("-0")))
            located[row.partition, row.file_id] = number
        rows_of[number] = rows_of.get(number, 0) + row.rows

    inserts: dict[str, tuple[InsertShare, ...]] = {}
    size = 0
    for row in profile:
        if row.file_id or policy.drop_unlocated or row.rows == 0:
            continue
        size = size or max(1, record_size())
        shares: list[tuple[int, int]] = []  # (records, bucket)
        left = row.rows
        for f in small_files.get(row.partition, ()):
            room = min((rules.max_file_bytes - f.size) // size, left)
            if room > 0:
                number = bucket_for(by_id[f.partition, f.file_id], CONCAT if policy.append else MERGE)
                shares.append((room, number))
                left -= room
            if left <= 0:
                break
        if left > 0:
            per_bucket = rules.insert_split_size
            if rules.auto_split:
                per_bucket = max(1, math.ceil(rules.max_file_bytes / size))
            count = math.ceil(left / per_bucket)
            for i in range(count):
                n = per_bucket if i < count - 1 else left - per_bucket * (count - 1)
                number = len(buckets)
                buckets.append(
                    Bucket(number, row.partition, CREATE, new_file_id_prefix(seed, row.partition, number))
                )
                shares.append((n, number))
        upto = 0.0
        out: list[InsertShare] = []
        for n, number in shares:
            upto += n / row.rows
            rows_of[number] = rows_of.get(number, 0) + n
            out.append(InsertShare(upto, number))
        out[-1] = InsertShare(1.0, out[-1].bucket)
        inserts[row.partition] = tuple(out)

    sized = tuple(replace(b, expected_rows=rows_of.get(b.number, 0)) for b in buckets)
    # A small file that takes new records is a bucket too, and still no place for records it has.
    return Routing(sized, {} if policy.drop_located else located, inserts)


def _small_files(
    slices: Sequence[FileSlice],
    rules: SizingRules,
    policy: AssignPolicy,
    pending: Mapping[tuple[str, str], str],
) -> list[BaseFile]:
    """Base files of a partition that take new records, in order."""
    small = [
        s.base_file
        for s in slices
        if s.base_file is not None
        and 0 <= s.base_file.size < rules.small_file_limit_bytes
        and not (policy.logs and (s.log_files or (s.partition, s.file_id) in pending))
    ]
    if not policy.logs:
        return small
    return sorted(small, key=lambda f: f.size)[: rules.small_group_candidates]


def log_target(file_slice: FileSlice, compaction: str | None = None) -> LogTarget:
    """Place of the next log file of a slice.

    Args:
        file_slice: with its log files; where a compaction is pending also those that were written since.
        compaction: the pending compaction of its file group: it has begun the slice that takes new logs.
    """
    base = file_slice.base_file
    instant = compaction or file_slice.base_instant
    # A log file of another instant in its name is one of a table that was taken down from version 8.
    own = [f for f in file_slice.log_files if f.instant == instant]
    version = max((f.version for f in own), default=0) + 1
    name = base.name if base is not None and compaction is None else ""
    return LogTarget(instant, version, name, tuple(f.name for f in own))


def profile_stats(profile: Sequence[ProfileRow], routing: Routing) -> dict[str, tuple[WriteStat, ...]]:
    """Workload profile for the inflight file, as in Apache Hudi."""
    base = {(b.partition, b.file_id): b.base_instant for b in routing.buckets}
    # The first records of a bucket of a bucket index name a file group that is to be made.
    made = {group for group, n in routing.located.items() if routing.buckets[n].kind == CREATE}
    fresh: dict[str, int] = {}
    for row in profile:
        if not row.file_id or (row.partition, row.file_id) in made:
            fresh[row.partition] = fresh.get(row.partition, 0) + row.rows
    out: dict[str, list[WriteStat]] = {}
    for partition in dict.fromkeys(row.partition for row in profile):
        out[partition] = [WriteStat("", "", partition, num_inserts=fresh.get(partition, 0))]
    for row in profile:
        if row.file_id and (row.partition, row.file_id) not in made:
            prev = base.get((row.partition, row.file_id), "null")
            out[row.partition].append(
                WriteStat(row.file_id, "", row.partition, prev_commit=prev, num_update_writes=row.rows)
            )
    return {p: tuple(stats) for p, stats in out.items()}
