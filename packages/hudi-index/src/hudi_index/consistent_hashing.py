"""Consistent-hashing bucket index: the file group of a key by its partition's ring.

Each partition has a ring of nodes, each with a value and a file group; a key goes to the first node whose value is not
below its hash.  A ring is kept as hashing metadata, which a resize replaces: it splits nodes, or merges neighbours, and
moves the keys of those alone.

Source: HoodieConsistentHashingMetadata, ConsistentHashingNode and ConsistentBucketIdentifier of Apache Hudi 0.15, and
the files and file groups that it wrote.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.file_names import new_file_id_prefix
from hudi_index.bucket import FEATURE, PartitionedBucketIndex, is_whole, parse_hashing_metadata

# The greatest value of a node; hashes are not above it either.
GREATEST = 0x7FFFFFFF
INITIAL_INSTANT = "0" * 14
NORMAL = "NORMAL"
# A prefix becomes part of a file's name.
_PREFIX = re.compile(r"[0-9A-Za-z-]{1,128}\Z")
_FIRST = "-0"


@dataclass(frozen=True, slots=True)
class HashingNode:
    """A bucket: the keys whose hash is above the former node's value, and not above this one's."""

    value: int
    file_id_prefix: str

    @property
    def file_id(self) -> str:
        return self.file_id_prefix + _FIRST

    @classmethod
    def parse(cls, given: object) -> HashingNode:
        """Node in a decoded ring.

        Raises:
            ValueError: what is wrong with it.
        """
        if not isinstance(given, dict):
            raise ValueError("a node is no object")
        value, prefix, tag = given.get("value"), given.get("fileIdPrefix"), given.get("tag", NORMAL)
        if not is_whole(value) or value > GREATEST:
            raise ValueError(f"a node's value is {value!r}")
        if not isinstance(prefix, str) or not _PREFIX.match(prefix):
            raise ValueError(f"a node's file id prefix is {prefix!r}")
        if tag != NORMAL:
            raise ValueError(f"a node's tag is {tag!r}: the ring of a resize that is not finished")
        return cls(value, prefix)


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """Ring of a partition as of an instant.

    Attributes:
        num_buckets: of the first ring; a resize leaves it.
        seq_no: number of resizes until then.
        nodes: by ascending value.
    """

    partition: str
    instant: str
    num_buckets: int
    seq_no: int
    nodes: tuple[HashingNode, ...]

    folder: ClassVar[str] = "consistent_hashing_metadata"

    @classmethod
    def initial(cls, partition: str, num_buckets: int) -> HashingMetadata:
        """First ring of a partition, which every writer makes alike.

        Raises:
            ValueError: no bucket.
        """
        if not 1 <= num_buckets <= GREATEST:
            raise ValueError(f"the number of buckets must be between 1 and {GREATEST}, not {num_buckets}")
        step = (GREATEST + num_buckets - 1) // num_buckets
        nodes, former = [], 0
        for n in range(1, num_buckets + 1):
            value = min(step * n, GREATEST)
            named = former.to_bytes(8) + value.to_bytes(8) + partition.encode()
            digest = hashlib.md5(named, usedforsecurity=False).digest()
            nodes.append(HashingNode(value, str(uuid.UUID(bytes=digest, version=3))))
            former = value
        return cls(partition, INITIAL_INSTANT, num_buckets, 0, tuple(nodes))

    @classmethod
    def parse(cls, content: bytes, partition: str) -> HashingMetadata:
        """Ring in a file's content.

        Raises:
            ValueError: what is wrong with it.
        """
        instant, number, seq_no, given = parse_hashing_metadata(content, partition, "nodes")
        nodes = sorted(map(HashingNode.parse, given), key=lambda n: n.value)
        if not nodes:
            raise ValueError("no node")
        for what in ({n.value for n in nodes}, {n.file_id_prefix for n in nodes}):
            if len(what) < len(nodes):
                raise ValueError("two nodes of one value, or of one file group")
        return cls(partition, instant, number, seq_no, tuple(nodes))

    def render(self) -> bytes:
        """Content of the ring's file, byte for byte as Apache Hudi's."""
        nodes = ", ".join(
            f'{{\n    "value" : {n.value},\n    "fileIdPrefix" : "{n.file_id_prefix}",\n    "tag" : "{NORMAL}"\n  }}'
            for n in self.nodes
        )
        partition = json.dumps(self.partition, ensure_ascii=False)
        return (
            f'{{\n  "version" : 0,\n  "partitionPath" : {partition},\n  "instant" : "{self.instant}",\n'
            f'  "numBuckets" : {self.num_buckets},\n  "seqNo" : {self.seq_no},\n  "nodes" : [ {nodes} ]\n}}'
        ).encode()

    @property
    def values(self) -> list[int]:
        return [n.value for n in self.nodes]

    def former(self, number: int) -> int:
        """Value of the node before one on the ring; the last one's before the first's."""
        return self.nodes[number - 1].value

    def keeps(self, file_id: str, after: HashingMetadata) -> bool:
        """Whether a file group stands for the same keys on this ring and on another one."""
        here, there = self._range_of(file_id), after._range_of(file_id)
        return here is not None and here == there

    def _range_of(self, file_id: str) -> tuple[int, int] | None:
        found = (n for n, node in enumerate(self.nodes) if node.file_id == file_id)
        number = next(found, None)
        return None if number is None else (self.former(number), self.nodes[number].value)

    def splits(self, number: int) -> bool:
        """Whether a node's range has a middle."""
        return middle_of(self.former(number), self.nodes[number].value) is not None

    def renewed(self, instant: str) -> HashingMetadata:
        """The ring with new file groups: of a partition whose file groups are replaced."""
        nodes = tuple(HashingNode(n.value, new_file_id_prefix()) for n in self.nodes)
        return replace(self, instant=instant, seq_no=self.seq_no + 1, nodes=nodes)

    def resized(
        self,
        instant: str,
        split: Iterable[int],
        merged: Iterable[Sequence[int]],
        new_prefix: Callable[[], str] = new_file_id_prefix,
    ) -> HashingMetadata:
        """The ring after a resize.

        Args:
            split: numbers of nodes that become two; one whose range has no middle stays as it is.
            merged: runs of numbers, each ascending by one (from the last to the first too), that become their last one.

        Raises:
            ValueError: a node in two of them, or a run that is none.
        """
        taken: set[int] = set()
        out = dict(enumerate(self.nodes))
        more = []
        for number in split:
            _take(taken, [number], len(self.nodes))
            node = out[number]
            middle = middle_of(self.former(number), node.value)
            if middle is not None:
                more.append(HashingNode(middle, new_prefix()))
                out[number] = HashingNode(node.value, new_prefix())
        for run in merged:
            _take(taken, run, len(self.nodes))
            steps = all((b - a) % len(self.nodes) == 1 for a, b in itertools.pairwise(run))
            if len(run) < 2 or not steps:
                raise ValueError(f"{list(run)} are no neighbours on a ring of {len(self.nodes)}")
            for number in run[:-1]:
                del out[number]
            out[run[-1]] = HashingNode(self.nodes[run[-1]].value, new_prefix())
        nodes = tuple(sorted((*out.values(), *more), key=lambda n: n.value))
        return replace(self, instant=instant, seq_no=self.seq_no + 1, nodes=nodes)


def _take(taken: set[int], numbers: Sequence[int], count: int) -> None:
    if taken & set(numbers) or len(set(numbers)) < len(numbers):
        raise ValueError("a node takes part in a resize once")
    if not all(0 <= n < count for n in numbers):
        raise ValueError(f"the ring has {count} nodes, not {max(numbers) + 1}")
    taken.update(numbers)


def middle_of(former: int, value: int) -> int | None:
    """Value that halves the range of a node; None where it is too small."""
    middle = ((former + value + (GREATEST + 1 if former >= value else 0)) >> 1) & GREATEST
    return None if middle in (former, value) else middle


@dataclass(frozen=True, slots=True)
class ConsistentBucketIndex(PartitionedBucketIndex[HashingMetadata]):
    """Settings of a consistent-hashing index, and the rings that are known."""

    kind = HashingMetadata

    @property
    def most(self) -> int:
        return max((self.num_buckets, *(len(r.nodes) for r in self.rings.values())))

    def numbers(
        self, keys: pa.Array | pa.ChunkedArray, codes: np.ndarray, partitions: Sequence[str]
    ) -> np.ndarray:
        from hudi_index.hashing.ring import ring_hashes, ring_places  # only for tables of this index

        hashes = ring_hashes(keys, self.fields).to_numpy(zero_copy_only=False)
        return ring_places(hashes, [self.ring(p).values for p in partitions], codes)

    def number(self, file_id: str, partition: str = "") -> int | None:
        prefix = file_id.removesuffix(_FIRST)
        found = (n for n, node in enumerate(self.ring(partition).nodes) if node.file_id_prefix == prefix)
        return next(found, None) if prefix != file_id else None

    def new_file_id(self, partition: str, number: int) -> str:
        return self.ring(partition).nodes[number].file_id

    def _foreign(self, file_id: str, partition: str, table: str) -> UnsupportedError:
        return UnsupportedError(
            f"file group {file_id} is not on the ring of partition {partition!r}, which "
            f"has {len(self.ring(partition).nodes)} nodes as of {self.ring(partition).instant}: it was written with "
            "another index, or after it had been replaced",
            table=table, feature=FEATURE,
            remedy="read the table and write its rows to a new one (mode overwrite, or another path), or replace the "
            "rows of the partition with insert_overwrite.",
        )  # fmt: skip
