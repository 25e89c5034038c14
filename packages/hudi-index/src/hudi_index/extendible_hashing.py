"""Extendible-hashing bucket index: buckets that split one by one, by one more bit of hash.

A partition begins with the buckets of a simple index.  One that has grown full splits alone: bucket `b` of `m` becomes
the buckets `b` and `b + m` of `2 m`, and its depth is one more.  The directory of a partition says the depth of each
bucket; file ids begin with the bucket as those of a simple index do, so that who reads the table needs no directory.

Source: RFC-29, "Extendable Hash"; Fagin, Nievergelt, Pippenger and Strong, "Extendible hashing", 1979.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_index.bucket import (
    FEATURE,
    MOST_BUCKETS,
    PartitionedBucketIndex,
    bucket_number,
    is_whole,
    parse_hashing_metadata,
)
from hudi_index.hashing.java import bucket_ids

# 2 ** 26 is the greatest power of two that a file id has digits for.
DEEPEST = 26


@dataclass(frozen=True, slots=True)
class DirectoryBucket:
    """The keys whose hash has the remainder `number` by `num_buckets * 2 ** depth`."""

    number: int
    depth: int


@dataclass(frozen=True, slots=True)
class HashingDirectory:
    """Buckets of a partition as of an instant.

    Attributes:
        num_buckets: of depth 0.
        seq_no: number of resizes until then.
        buckets: by ascending number; each hash belongs to one of them.
    """

    partition: str
    instant: str
    num_buckets: int
    seq_no: int
    buckets: tuple[DirectoryBucket, ...]

    folder: ClassVar[str] = "extendible_hashing_metadata"

    @classmethod
    def initial(cls, partition: str, num_buckets: int) -> HashingDirectory:
        """Directory of a partition that nothing was split in."""
        return cls(partition, "", num_buckets, 0, tuple(DirectoryBucket(n, 0) for n in range(num_buckets)))

    @classmethod
    def parse(cls, content: bytes, partition: str) -> HashingDirectory:
        """Directory in a file's content.

        Raises:
            ValueError: what is wrong with it.
        """
        instant, number, seq_no, given = parse_hashing_metadata(content, partition, "buckets")
        if not 0 < number <= MOST_BUCKETS:
            raise ValueError(f"numBuckets is {number}")
        buckets = tuple(sorted(map(_bucket, given), key=lambda b: b.number))
        _check_cover(number, buckets)
        return cls(partition, instant, number, seq_no, buckets)

    def render(self) -> bytes:
        """Content of the directory's file."""
        content = {
            "version": 0, "partitionPath": self.partition, "instant": self.instant, "numBuckets": self.num_buckets,
            "seqNo": self.seq_no, "buckets": [{"number": b.number, "depth": b.depth} for b in self.buckets],
        }  # fmt: skip
        return json.dumps(content, indent=2, ensure_ascii=False).encode()

    @property
    def depth(self) -> int:
        """Depth of the deepest bucket."""
        return max(b.depth for b in self.buckets)

    @property
    def places(self) -> int:
        """Number that is above every bucket."""
        return self.num_buckets << self.depth

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """Bucket (int32) of each hash, which may be its remainder by `places`."""
        out = np.full(len(hashes), -1, dtype=np.int32)
        left = np.arange(len(hashes))
        for depth in sorted({b.depth for b in self.buckets}):
            numbers = np.array([b.number for b in self.buckets if b.depth == depth], dtype=np.int64)
            rest = hashes[left].astype(np.int64) % (self.num_buckets << depth)
            at = np.minimum(np.searchsorted(numbers, rest), len(numbers) - 1)
            hit = numbers[at] == rest
            out[left[hit]] = rest[hit]
            left = left[~hit]
        return out

    def keeps(self, file_id: str, after: HashingDirectory) -> bool:
        """Whether a file group stands for the same keys in this directory and in another one."""
        if self.num_buckets != after.num_buckets:
            return False
        mine = [b for b in self.buckets if b.number == bucket_number(file_id)]
        return bool(mine) and mine[0] in after.buckets

    def split(self, instant: str, levels: Mapping[int, int]) -> HashingDirectory:
        """The directory after splits.

        Args:
            levels: by bucket, by how much it becomes deeper.

        Raises:
            ValueError: a bucket that is none, or one that a file id has no digits for.
        """
        known = {b.number: b for b in self.buckets}
        out = dict(known)
        for number, more in levels.items():
            if number not in known or more < 1:
                raise ValueError(f"bucket {number} cannot be split by {more} levels")
            for made in self.children(known[number], more):
                out[made.number] = made
        buckets = tuple(sorted(out.values(), key=lambda b: b.number))
        return replace(self, instant=instant, seq_no=self.seq_no + 1, buckets=buckets)

    def children(self, bucket: DirectoryBucket, levels: int) -> tuple[DirectoryBucket, ...]:
        """Buckets that one becomes.

        Raises:
            ValueError: file ids have no digits for them.
        """
        step, depth = self.num_buckets << bucket.depth, bucket.depth + levels
        if depth > DEEPEST or self.num_buckets << depth > MOST_BUCKETS + 1:
            raise ValueError(f"a partition has at most {MOST_BUCKETS + 1:,} buckets")
        return tuple(DirectoryBucket(bucket.number + step * n, depth) for n in range(1 << levels))

    def merged(self, instant: str, numbers: Iterable[int]) -> HashingDirectory:
        """The directory after merges of buckets with their twins.

        Args:
            numbers: of each pair, the lower one.

        Raises:
            ValueError: a bucket whose twin is deeper, or that is none.
        """
        out = {b.number: b for b in self.buckets}
        for number in numbers:
            pair = self.pair(number)
            if pair is None or number not in out:
                raise ValueError(f"bucket {number} has no twin to be merged with")
            del out[pair[1]]
            out[number] = DirectoryBucket(number, out[number].depth - 1)
        buckets = tuple(sorted(out.values(), key=lambda b: b.number))
        return replace(self, instant=instant, seq_no=self.seq_no + 1, buckets=buckets)

    def pair(self, number: int) -> tuple[int, int] | None:
        """A bucket and its twin of the same depth, by number; None where it has none."""
        depths = {b.number: b.depth for b in self.buckets}
        depth = depths.get(number, 0)
        if not depth:
            return None
        half = self.num_buckets << (depth - 1)
        low = number % half
        pair = (low, low + half)
        return pair if all(depths.get(n) == depth for n in pair) else None


def _bucket(given: object) -> DirectoryBucket:
    number, depth = (given.get("number"), given.get("depth")) if isinstance(given, dict) else (None, None)
    if not is_whole(number) or not is_whole(depth) or number > MOST_BUCKETS or depth > DEEPEST:
        raise ValueError(f"{given!r} is no bucket")
    return DirectoryBucket(number, depth)


def _check_cover(num_buckets: int, buckets: Sequence[DirectoryBucket]) -> None:
    """Raise ValueError unless each hash belongs to exactly one bucket."""
    covered = dict.fromkeys(range(num_buckets), 0) if num_buckets <= len(buckets) else {}
    taken = {(b.number, b.depth) for b in buckets}
    for b in buckets:
        if b.number >= num_buckets << b.depth:
            raise ValueError(f"bucket {b.number} is none of depth {b.depth}")
        above = ((b.number % (num_buckets << d), d) for d in range(b.depth))
        if any(a in taken for a in above):
            raise ValueError(f"bucket {b.number} lies in another one")
        root = b.number % num_buckets
        if root in covered:
            covered[root] += 1 << (DEEPEST - b.depth)
    if len(taken) < len(buckets):
        raise ValueError("two buckets of one number")
    if not covered or set(covered.values()) != {1 << DEEPEST}:
        raise ValueError("there are hashes that belong to no bucket")


@dataclass(frozen=True, slots=True)
class ExtendibleBucketIndex(PartitionedBucketIndex[HashingDirectory]):
    """Settings of an extendible-hashing index, and the directories that are known."""

    kind = HashingDirectory

    @property
    def most(self) -> int:
        return max((self.num_buckets, *(r.places for r in self.rings.values())))

    def numbers(
        self, keys: pa.Array | pa.ChunkedArray, codes: np.ndarray, partitions: Sequence[str]
    ) -> np.ndarray:
        out: np.ndarray = bucket_ids(keys, self.fields, self.num_buckets).to_numpy(zero_copy_only=False)
        split = [(code, self.rings[p]) for code, p in enumerate(partitions) if p in self.rings]
        if not split:
            return out
        out = out.copy()
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(partitions) + 1))
        hashes: dict[int, np.ndarray] = {}
        for code, directory in split:
            rows, places = order[ends[code] : ends[code + 1]], directory.places
            if not len(rows):
                continue
            if places not in hashes:
                found = bucket_ids(keys, self.fields, places)
                hashes[places] = found.to_numpy(zero_copy_only=False)
            out[rows] = directory.find(hashes[places][rows])
        return out

    def number(self, file_id: str, partition: str = "") -> int | None:
        number, found = bucket_number(file_id), self.rings.get(partition)
        if number is None:
            return None
        if found is None:
            return number if number < self.num_buckets else None
        return number if any(b.number == number for b in found.buckets) else None

    def _foreign(self, file_id: str, partition: str, table: str) -> UnsupportedError:
        return UnsupportedError(
            f"file group {file_id} is none of the {len(self.ring(partition).buckets)} buckets of partition "
            f"{partition!r}: it was written by a writer that does not know which of them were split, or with another "
            "index",
            table=table, feature=FEATURE,
            remedy="`hudi verify` says which keys are at a wrong place; replace the rows of the partition with "
            "insert_overwrite.",
        )  # fmt: skip
