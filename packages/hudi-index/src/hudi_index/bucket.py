"""Simple bucket index: the file group of a key by its hash.

Each partition has up to `num_buckets` file groups.  A group's id begins with its bucket in eight digits, so that
neither an index nor a file has to be read to find the group of a key.

Source: RFC-29; BucketIdentifier and HoodieSimpleBucketIndex of Apache Hudi 0.15, and what it wrote: its bulk_insert
gives ids that end in `-1` and so on too, only the eight digits count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeGuard, TypeVar

import numpy as np
import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.file_names import is_bucket_file_id, new_file_id_prefix
from hudi_index.hashing.java import bucket_ids

# The number of buckets of a table whose first write gives none; Apache Hudi's.
DEFAULT_BUCKETS = 256
# A file id has eight digits for it.
MOST_BUCKETS = 99_999_999
FEATURE = "bucket index"
# Up to so many buckets of all partitions are counted; more are sorted.
_COUNTED = 1 << 22
_Ring = TypeVar("_Ring")
_ANEW = (
    "read the table and write its rows to a new one (mode overwrite, or another path), or replace the rows of the "
    "partition with insert_overwrite."
)


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Settings of a table's bucket index.

    Attributes:
        num_buckets: buckets of each partition (`hoodie.bucket.index.num.buckets`).
        fields: record key fields whose values are hashed (`hoodie.bucket.index.hash.field`).
        seed: of the file ids of new file groups; "" for random ones.
    """

    num_buckets: int
    fields: tuple[str, ...]
    seed: str = field(default="", compare=False, kw_only=True)

    by_partition: ClassVar[bool] = False
    """Whether a key's bucket depends on its partition: it is known only with the partition's hashing metadata."""

    @property
    def most(self) -> int:
        """Number of buckets that no partition exceeds."""
        return self.num_buckets

    def of(self, keys: pa.Array | pa.ChunkedArray, partition: str = "") -> np.ndarray:
        """Bucket (int32) of each record key of a partition; keys are not null."""
        found: np.ndarray = bucket_ids(keys, self.fields, self.num_buckets).to_numpy(zero_copy_only=False)
        return found

    def numbers(
        self, keys: pa.Array | pa.ChunkedArray, codes: np.ndarray, partitions: Sequence[str]
    ) -> np.ndarray:
        """Bucket (int32) of each record key; `codes` are the numbers of their partitions."""
        return self.of(keys)

    def number(self, file_id: str, partition: str = "") -> int | None:
        """Bucket of a partition's file group; None for an id that is none of this index."""
        number = bucket_number(file_id)
        return number if number is not None and number < self.num_buckets else None

    def new_file_id(self, partition: str, number: int) -> str:
        """File id of a bucket that has no file group yet."""
        return new_bucket_file_id(number, self.seed, partition)

    def groups(self, partition: str, file_ids: Iterable[str], *, table: str) -> dict[int, str]:
        """File ids of a partition by bucket.

        Raises:
            UnsupportedError: a file group that is no bucket of this index, or two of one bucket.
        """
        out: dict[int, str] = {}
        for file_id in sorted(set(file_ids)):
            number = self.number(file_id, partition)
            if number is None:
                raise self._foreign(file_id, partition, table)
            if number in out:
                raise UnsupportedError(
                    f"partition {partition!r} has two file groups of bucket {number}, {out[number]} and {file_id}, so "
                    "a key may be in either (bulk_insert of Apache Hudi 0.15 makes a second one)",
                    table=table, remedy=_ANEW, feature=FEATURE,
                )  # fmt: skip
            out[number] = file_id
        return out

    def _foreign(self, file_id: str, partition: str, table: str) -> UnsupportedError:
        """Error about a file group of another index."""
        return UnsupportedError(
            f"file group {file_id} of partition {partition!r} is none of the table's "
            f"{self.num_buckets} buckets: it was written with another number of buckets, or another index",
            table=table, remedy=_ANEW, feature=FEATURE,
        )  # fmt: skip

    def check_keys(
        self, keys: pa.Array | pa.ChunkedArray, file_id: str, *, partition: str = "", table: str, path: str
    ) -> None:
        """Refuse a file whose keys do not all belong to its bucket.

        Raises:
            UnsupportedError: the first key that hashes to another bucket.
        """
        numbers, number = self.of(keys, partition), self.number(file_id, partition)
        if number is None:
            raise self._foreign(file_id, partition, table)
        wrong = np.flatnonzero(numbers != number)
        if len(wrong):
            raise UnsupportedError(
                f"{len(wrong):,} of {len(keys):,} keys in file group {file_id} belong to other buckets, first "
                f"{keys[int(wrong[0])].as_py()!r} to bucket {int(numbers[wrong[0]])} of "
                f"{self.most} by {', '.join(self.fields)}: the table was written with another number of "
                "buckets or other hash fields",
                table=table, file=path,
                remedy=f"give the number and fields it was written with; if it was written with several, {_ANEW}",
                feature=FEATURE,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartitionedBucketIndex(BucketIndex, Generic[_Ring]):
    """Settings of a bucket index with hashing metadata, and what is known of that.

    Attributes:
        num_buckets: of a partition that has none yet.
        rings: hashing metadata by partition; another one has its first.
    """

    rings: Mapping[str, _Ring] = field(default_factory=dict)

    by_partition: ClassVar[bool] = True
    kind: ClassVar[type[Any]]
    """Class of the hashing metadata."""

    def ring(self, partition: str) -> _Ring:
        """Hashing metadata of a partition."""
        found: _Ring = self.rings.get(partition) or self.kind.initial(partition, self.num_buckets)
        return found

    def with_rings(self, rings: Mapping[str, _Ring]) -> Self:
        """The settings with other hashing metadata."""
        return replace(self, rings=rings)

    def of(self, keys: pa.Array | pa.ChunkedArray, partition: str = "") -> np.ndarray:
        return self.numbers(keys, np.zeros(len(keys), dtype=np.int32), [partition])


def parse_hashing_metadata(
    content: bytes, partition: str, members: str
) -> tuple[str, int, int, list[object]]:
    """Instant, numbers of buckets and of resizes, and members, in a partition's file.

    Args:
        members: what the content calls them.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"no JSON: {e}") from None
    if not isinstance(found, dict) or not isinstance(found.get(members), list):
        raise ValueError(f"no object with {members}")
    if found.get("partitionPath") != partition:
        raise ValueError(f"it is of partition {found.get('partitionPath')!r}, not {partition!r}")
    instant, number, seq_no = found.get("instant"), found.get("numBuckets"), found.get("seqNo")
    if not isinstance(instant, str) or not is_whole(number) or not is_whole(seq_no):
        raise ValueError("instant, numBuckets or seqNo is missing")
    return instant, number, seq_no, found[members]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value of JSON is a number that is whole and not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def bucket_number(file_id: str) -> int | None:
    """Number at the beginning of a bucket's file id; None for an id of another shape."""
    return int(file_id[:8]) if file_id.isascii() and is_bucket_file_id(file_id) else None


def new_bucket_file_id(number: int, seed: str = "", partition: str = "") -> str:
    """File id of a bucket's new file group; `seed` as of `new_file_id_prefix`."""
    return f"{number:08d}{new_file_id_prefix(seed, partition, number)[8:]}-0"


def files_of_buckets(
    index: BucketIndex,
    used: Mapping[str, Iterable[int]],
    groups: Mapping[str, Iterable[str]],
    *,
    table: str,
) -> dict[tuple[str, int], str]:
    """File id of each used bucket: of its file group, else a new one.

    Args:
        used: buckets with rows, by partition.
        groups: file ids of the file groups by partition.

    Raises:
        UnsupportedError: file groups that contradict the index.
    """
    out = {}
    for partition, numbers in used.items():
        known = index.groups(partition, groups.get(partition, ()), table=table)
        for number in numbers:
            out[partition, number] = known.get(number) or index.new_file_id(partition, number)
    return out


def locate(
    index: BucketIndex,
    keys: pa.Array | pa.ChunkedArray,
    codes: np.ndarray,
    partitions: Sequence[str],
    groups: Mapping[str, Iterable[str]],
    *,
    table: str,
) -> tuple[tuple[tuple[int, str], ...], np.ndarray]:
    """File groups of rows, and the number of each row's group (int32).

    A file group is the number of its partition and its file id.

    Args:
        codes: per row, the number of its partition in `partitions`.
        groups: file ids of the file groups by partition.

    Raises:
        UnsupportedError: as `files_of_buckets`.
    """
    most = index.most
    pairs = codes.astype(np.int64) * most + index.numbers(keys, codes, partitions)
    found, location = _numbered(pairs, len(partitions) * most)
    places = [(int(p) // most, int(p) % most) for p in found]
    used: dict[str, list[int]] = {}
    for code, number in places:
        used.setdefault(partitions[code], []).append(number)
    ids = files_of_buckets(index, used, groups, table=table)
    chosen = tuple((code, ids[partitions[code], number]) for code, number in places)
    return chosen, location.astype(np.int32, copy=False)


def _numbered(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, ascending, and the number of each value among them; all are below `most`."""
    if most > _COUNTED:
        return np.unique(values, return_inverse=True)
    found = np.flatnonzero(np.bincount(values, minlength=most))
    numbers = np.zeros(most, dtype=np.int32)
    numbers[found] = np.arange(len(found), dtype=np.int32)
    return found, numbers[values]
