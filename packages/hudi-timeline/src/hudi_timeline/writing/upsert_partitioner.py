"""Upsert partitioner: assigns records to buckets by the workload profile.

Records whose key is in a file group go there.  New records first fill small base files of their partition,
then make new file groups of the target size.

Source: Apache Hudi 0.15's upsert partitioner (writer documentation, "Workload profile and assignment"); the
choice of a record's insert bucket uses CRC-32 of the key, which both engines compute natively, where Apache
Hudi uses MD5: the shares are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudi_format.file_names import new_file_id_prefix
from hudi_format.model import BaseFile
from hudi_timeline.writing.tasks import CONCAT, CREATE, MERGE, Bucket, InsertShare, ProfileRow, Routing


@dataclass(frozen=True, slots=True)
class SizingRules:
    """File sizing rules in bytes and record counts; the defaults are Apache Hudi's."""

    max_file_bytes: int = 125829120
    small_file_limit_bytes: int = 104857600
    insert_split_size: int = 500000
    auto_split: bool = True
    record_size_estimate: int = 1024
    record_size_threshold: float = 1.0


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
    """

    drop_unlocated: bool = False
    drop_located: bool = False
    small_files: bool = True
    append: bool = False


def assign(
    profile: Sequence[ProfileRow],
    files: Mapping[str, Sequence[BaseFile]],
    record_size: Callable[[], int],
    rules: SizingRules,
    policy: AssignPolicy,
) -> Routing:
    """Buckets of a write, and the assignment of records.

    Args:
        profile: incoming records by partition and file group.
        files: latest base files by partition, with sizes.
        record_size: average bytes of a stored record; called only if a new record has to be placed.
    """
    buckets: list[Bucket] = []
    located: dict[tuple[str, str], int] = {}
    rows_of: dict[int, int] = {}
    by_id = {(p, f.file_id): f for p, of in files.items() for f in of}

    def bucket_for(partition: str, base: BaseFile, kind: str) -> int:
        number = located.get((partition, base.file_id))
        if number is None:
            number = len(buckets)
            buckets.append(Bucket(number, partition, kind, base.file_id, base))
            located[partition, base.file_id] = number
        return number

    for row in profile:
        if row.file_id and not policy.drop_located:
            number = bucket_for(row.partition, by_id[row.partition, row.file_id], MERGE)
            rows_of[number] = rows_of.get(number, 0) + row.rows

    inserts: dict[str, tuple[InsertShare, ...]] = {}
    size = 0
    for row in profile:
        if row.file_id or policy.drop_unlocated or row.rows == 0:
            continue
        size = size or max(1, record_size())
        shares: list[tuple[int, int]] = []  # (records, bucket)
        left = row.rows
        if policy.small_files and rules.small_file_limit_bytes > 0:
            small = [f for f in files.get(row.partition, ()) if 0 <= f.size < rules.small_file_limit_bytes]
            for f in small:
                room = min((rules.max_file_bytes - f.size) // size, left)
                if room > 0:
                    number = bucket_for(row.partition, f, CONCAT if policy.append else MERGE)
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
                buckets.append(Bucket(number, row.partition, CREATE, new_file_id_prefix()))
                shares.append((n, number))
        upto = 0.0
        out: list[InsertShare] = []
        for n, number in shares:
            upto += n / row.rows
            rows_of[number] = rows_of.get(number, 0) + n
            out.append(InsertShare(upto, number))
        out[-1] = InsertShare(1.0, out[-1].bucket)
        inserts[row.partition] = tuple(out)

    sized = tuple(
        Bucket(b.number, b.partition, b.kind, b.file_id, b.base_file, rows_of.get(b.number, 0))
        for b in buckets
    )
    # A small file that takes new records is a bucket too, and still no place for records it has.
    return Routing(sized, {} if policy.drop_located else located, inserts)
