"""Plan of a resize: which buckets are split or merged, into which file groups.

A plan is made of a snapshot and nothing else.  It names the slices that it divides, so that it can be seen whether they
still are what they were, and the new file groups, so that what a dry run shows is what is done.

Source: RFC-29, "Multiple Rehash" and "Extendable Hash"; BaseConsistentHashingBucketClusteringPlanStrategy of Apache
Hudi 0.15 for the sizes at which consistent hashing splits and merges.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hudi_format.errors import ConflictingOptionError, OptionError, UnsupportedError
from hudi_format.model import FileSlice
from hudi_index.bucket import FEATURE, MOST_BUCKETS, BucketIndex, PartitionedBucketIndex, new_bucket_file_id
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata, middle_of
from hudi_index.extendible_hashing import DEEPEST, ExtendibleBucketIndex, HashingDirectory
from hudi_timeline.file_system_view.bucket_groups import slices_by_bucket, table_index
from hudi_timeline.file_system_view.bucket_settings import name_of
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.hashing_rings import Ring, load_kind
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options.file_options import (
    BUCKET_ENGINE,
    CONSISTENT_HASHING,
    EXTENDIBLE_HASHING,
    NUM_BUCKETS,
)
from hudi_timeline.options.service_config import ResizeConfig
from hudi_timeline.services.compaction.compaction_planner import reserved_groups

SPLIT, MERGE, REDISTRIBUTE = "split", "merge", "redistribute"


@dataclass(frozen=True, slots=True)
class BucketMove:
    """Split of a bucket, merge of some, or redistribution of the rows of some among others.

    Attributes:
        kind: `split`, `merge` or `redistribute`.
        slices: what is read, and replaced.
        targets: file ids of the new buckets, by their number in the index of after the resize.
    """

    kind: str
    partition: str
    slices: tuple[FileSlice, ...]
    targets: Mapping[int, str]

    @property
    def bytes(self) -> int:
        """Size of the files that are read."""
        return sum(s.bytes for s in self.slices)

    @property
    def file_ids(self) -> tuple[str, ...]:
        """File groups that are replaced."""
        return tuple(s.file_id for s in self.slices)


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """Resize of a bucket index.

    Attributes:
        before, after: settings of the index.
        moves: of the buckets that have a file group.
        rings: new rings, or directories, by partition; without their instant.
        buckets: number of buckets of each partition that changes, before and after.
        skipped: why a bucket that should be split or merged is left out, one sentence each.
        made_of: instant of the former ring, and the file groups, of each partition of `rings`.
    """

    before: BucketIndex
    after: BucketIndex
    moves: tuple[BucketMove, ...] = ()
    rings: Mapping[str, Ring] = field(default_factory=dict)
    buckets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    made_of: Mapping[str, tuple[str, frozenset[str]]] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return bool(self.rings) or self.settings_change

    @property
    def settings_change(self) -> bool:
        """Whether hoodie.properties changes."""
        one, other = self.before, self.after
        return type(one) is not type(other) or one.num_buckets != other.num_buckets

    @property
    def bytes(self) -> int:
        """Size of the files that are read."""
        return sum(m.bytes for m in self.moves)

    @property
    def engine(self) -> str:
        """Engine of after the resize."""
        return name_of(type(self.after))

    def index(self, instant: str) -> BucketIndex:
        """The index of after the resize, with the rings of its partitions."""
        if not isinstance(self.after, PartitionedBucketIndex):
            return self.after
        kind = self.after.kind
        return self.after.with_rings({p: r for p, r in self.dated(instant).items() if isinstance(r, kind)})

    def dated(self, instant: str) -> dict[str, Ring]:
        """The new rings with the instant of the resize."""
        return {p: replace(r, instant=instant) for p, r in self.rings.items()}

    def __repr__(self) -> str:
        splits, again = (sum(m.kind == kind for m in self.moves) for kind in (SPLIT, REDISTRIBUTE))
        more = f", {again} redistributions" if again else ""
        merges = len(self.moves) - splits - again
        return f"ResizePlan({splits} splits, {merges} merges{more}, {self.bytes:,} bytes, {self.engine})"


def make_resize_plan(
    snapshot: TableSnapshot,
    config: ResizeConfig,
    *,
    num_buckets: int | None = None,
    partitions: Collection[str] | None = None,
    engine: str | None = None,
    overwrite: bool = False,
) -> ResizePlan:
    """Plan of a resize; arguments as `hudi_timeline.services.buckets.resizing.resize`.

    Raises:
        UnsupportedError: no bucket index, one that does not say its settings, or file groups that contradict it.
        OptionError: nothing says what is to be done.
        ConflictingOptionError: a number of buckets, or an engine, that the table's cannot become.
        CorruptFileError, MissingFileError: hashing metadata cannot be read.
    """
    table = snapshot.storage.uri
    index = table_index(snapshot)
    wanted = _engine(index, engine, table)
    if isinstance(index, ConsistentBucketIndex) and num_buckets is not None:
        raise ConflictingOptionError(
            "the buckets of consistent hashing are split and merged one by one, by their size", table=table,
            remedy="omit the number; hoodie.bucket.index.max.num.buckets and min.num.buckets bound it.",
            option=NUM_BUCKETS,
        )  # fmt: skip
    if num_buckets is None and wanted is BucketIndex:
        raise OptionError(
            f"the table has {index.num_buckets} buckets in each partition, and nothing says how many there are to be",
            table=table, option=NUM_BUCKETS,
            remedy=f"give a multiple of {index.num_buckets}, or the engine {EXTENDIBLE_HASHING}, by which full buckets "
            "are split one by one.",
        )  # fmt: skip
    if overwrite and wanted is not BucketIndex:
        raise ConflictingOptionError(
            f"overwrite goes with the engine SIMPLE, and the engine is {name_of(wanted)}", table=table,
            remedy="omit it: full buckets are split and small ones merged one by one.", option=BUCKET_ENGINE,
        )  # fmt: skip
    slices = newest_slices_of(snapshot, None if partitions is None else sorted(partitions))
    if num_buckets is not None and wanted is BucketIndex:
        if partitions is not None:
            raise ConflictingOptionError(
                "partitions are named, and with the engine SIMPLE all have the same number of buckets", table=table,
                remedy=f"omit the partitions, or give the engine {EXTENDIBLE_HASHING}.", option=BUCKET_ENGINE,
            )  # fmt: skip
        return _renumbered(snapshot, index, num_buckets, slices, overwrite=overwrite)
    if wanted is ConsistentBucketIndex and isinstance(index, ConsistentBucketIndex):
        return _on_rings(snapshot, index, slices, config)
    extendible = index if isinstance(index, ExtendibleBucketIndex) else None
    extendible = extendible or ExtendibleBucketIndex(index.num_buckets, index.fields)
    return _in_directories(snapshot, index, extendible, slices, config, num_buckets)


def _engine(index: BucketIndex, engine: str | None, table: str) -> type[BucketIndex]:
    if engine is None or engine.strip().upper() == name_of(type(index)):
        return type(index)
    if engine.strip().upper() == EXTENDIBLE_HASHING and type(index) is BucketIndex:
        return ExtendibleBucketIndex
    raise ConflictingOptionError(
        f"the engine is {name_of(type(index))}, which cannot become {engine}", table=table,
        remedy=f"SIMPLE can become {EXTENDIBLE_HASHING}; for {CONSISTENT_HASHING} read the table and write its rows to "
        "a new one.",
        option=BUCKET_ENGINE,
    )  # fmt: skip


def _renumbered(
    snapshot: TableSnapshot,
    index: BucketIndex,
    num_buckets: int,
    slices: Sequence[FileSlice],
    *,
    overwrite: bool,
) -> ResizePlan:
    """All buckets replaced by so many new ones.

    The bucket of a hash is its remainder, so that rows stay among the numbers which leave one remainder by the greatest
    common divisor of both counts.  Each such class is divided by itself: where buckets are multiplied, bucket i of n
    into i, i + n, i + 2 n and so on; where the counts have no common divisor, all buckets of a partition together.
    """
    table, before = snapshot.storage.uri, index.num_buckets
    if num_buckets == before:
        return ResizePlan(index, index)
    if not 0 < num_buckets <= MOST_BUCKETS:
        raise ConflictingOptionError(
            f"{before} buckets cannot become {num_buckets}", table=table,
            remedy=f"give a number from 1 to {MOST_BUCKETS}.", option=NUM_BUCKETS,
        )  # fmt: skip
    if num_buckets % before and not overwrite:
        raise ConflictingOptionError(
            f"{before} buckets cannot become {num_buckets} by splitting each", table=table,
            remedy=f"give a multiple of {before}; overwrite=True (`hudi buckets resize --overwrite`) makes any number "
            "of them, by dividing the rows of several buckets together.",
            option=NUM_BUCKETS,
        )  # fmt: skip
    reserved = reserved_groups(snapshot)
    step = math.gcd(before, num_buckets)
    moves = []
    found = slices_by_bucket(index, slices, table)
    for partition, of in sorted(found.items()):
        classes: dict[int, list[FileSlice]] = {}
        for number, one in sorted(of.items()):
            if (partition, one.file_id) in reserved:
                raise UnsupportedError(
                    f"file group {one.file_id} of partition {partition!r} is in a compaction that is not finished, and "
                    "all buckets are replaced at once",
                    table=table, remedy="run the compaction first: `hudi compact run PATH`.", feature=FEATURE,
                )  # fmt: skip
            classes.setdefault(number % step, []).append(one)
        for number, members in sorted(classes.items()):
            targets = {n: new_bucket_file_id(n) for n in range(number, num_buckets, step)}
            kind = SPLIT if step == before else MERGE if len(targets) == 1 else REDISTRIBUTE
            moves.append(BucketMove(kind, partition, tuple(members), targets))
    return ResizePlan(
        index,
        replace(index, num_buckets=num_buckets),
        tuple(moves),
        buckets=dict.fromkeys(found, (before, num_buckets)),
    )


class _Reserved:
    """File groups that other plans have, and what was left out for them."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        self.groups = reserved_groups(snapshot)
        self.skipped: list[str] = []

    def leaves_out(self, slices: Iterable[FileSlice]) -> bool:
        held = [s for s in slices if (s.partition, s.file_id) in self.groups]
        self.skipped += [
            f"file group {s.file_id} of partition {s.partition or '.'} is in another plan that is not finished"
            for s in held
        ]
        return bool(held)


def _in_directories(
    snapshot: TableSnapshot,
    index: BucketIndex,
    new: ExtendibleBucketIndex,
    slices: Sequence[FileSlice],
    config: ResizeConfig,
    num_buckets: int | None,
) -> ResizePlan:
    """Full buckets split and empty twins merged, partition by partition."""
    table = snapshot.storage.uri
    new = new.with_rings(load_kind(snapshot, {s.partition for s in slices}, HashingDirectory))
    reserved = _Reserved(snapshot)
    moves: list[BucketMove] = []
    rings: dict[str, Ring] = {}
    counts, made_of = {}, {}
    for partition, of in sorted(slices_by_bucket(new, slices, table).items()):
        directory = new.ring(partition)
        levels = _levels(directory, of, config, num_buckets, table)
        levels = {n: more for n, more in levels.items() if n not in of or not reserved.leaves_out([of[n]])}
        after = directory.split("", levels) if levels else directory
        own = [_split_move(directory, partition, of[n], n, more) for n, more in levels.items() if n in of]
        pairs = [] if num_buckets is not None else _pairs(directory, of, set(levels), config, new.num_buckets)
        pairs = [p for p in pairs if not reserved.leaves_out(of[n] for n in p if n in of)]
        if pairs:
            after = after.merged("", [low for low, _ in pairs])
        for low, high in pairs:
            merged = tuple(of[n] for n in (low, high) if n in of)
            if merged:
                own.append(BucketMove(MERGE, partition, merged, {low: new_bucket_file_id(low)}))
        if after is not directory:
            rings[partition] = replace(after, seq_no=directory.seq_no + 1)
            counts[partition] = (len(directory.buckets), len(after.buckets))
            made_of[partition] = (directory.instant, frozenset(s.file_id for s in of.values()))
            moves += own
    settings = ExtendibleBucketIndex(new.num_buckets, new.fields)
    return ResizePlan(index, settings, tuple(moves), rings, counts, tuple(reserved.skipped), made_of)


def _split_move(
    directory: HashingDirectory, partition: str, one: FileSlice, number: int, levels: int
) -> BucketMove:
    bucket = next(b for b in directory.buckets if b.number == number)
    targets = {b.number: new_bucket_file_id(b.number) for b in directory.children(bucket, levels)}
    return BucketMove(SPLIT, partition, (one,), targets)


def _levels(
    directory: HashingDirectory,
    of: Mapping[int, FileSlice],
    config: ResizeConfig,
    num_buckets: int | None,
    table: str,
) -> dict[int, int]:
    """By how much buckets become deeper."""
    if num_buckets is not None:
        ratio = num_buckets / directory.num_buckets
        depth = int(math.log2(ratio)) if ratio >= 1 else -1
        if directory.num_buckets << max(depth, 0) != num_buckets:
            raise ConflictingOptionError(
                f"the {directory.num_buckets} buckets of a partition cannot become {num_buckets} by splitting them in "
                "two again and again",
                table=table, remedy=f"give {directory.num_buckets} times a power of two.", option=NUM_BUCKETS,
            )  # fmt: skip
        return {b.number: depth - b.depth for b in directory.buckets if b.depth < depth}
    out: dict[int, int] = {}
    count = len(directory.buckets)
    depths = {b.number: b.depth for b in directory.buckets}
    for number, one in sorted(of.items(), key=lambda item: -item[1].bytes):
        size, levels = one.bytes, 0
        while (
            size / (1 << levels) > config.split_bytes
            and depths[number] + levels < DEEPEST
            and directory.num_buckets << (depths[number] + levels + 1) <= MOST_BUCKETS + 1
            and (config.most is None or count + (1 << (levels + 1)) - 1 <= config.most)
        ):
            levels += 1
        if levels:
            out[number] = levels
            count += (1 << levels) - 1
    return out


def _pairs(
    directory: HashingDirectory,
    of: Mapping[int, FileSlice],
    split: Collection[int],
    config: ResizeConfig,
    first: int,
) -> list[tuple[int, int]]:
    """Twins that together are small."""
    out = []
    count, least = len(directory.buckets), config.least or first
    for bucket in directory.buckets:
        pair = directory.pair(bucket.number)
        if pair is None or pair[0] != bucket.number or set(pair) & set(split) or count <= least:
            continue
        if sum(of[n].bytes for n in pair if n in of) < config.merge_bytes:
            out.append(pair)
            count -= 1
    return out


def _on_rings(
    snapshot: TableSnapshot,
    index: ConsistentBucketIndex,
    slices: Sequence[FileSlice],
    config: ResizeConfig,
) -> ResizePlan:
    """Large nodes split and small neighbours merged, partition by partition."""
    known = index.with_rings(load_kind(snapshot, {s.partition for s in slices}, HashingMetadata))
    reserved = _Reserved(snapshot)
    moves: list[BucketMove] = []
    rings: dict[str, Ring] = {}
    counts, made_of = {}, {}
    for partition, of in sorted(slices_by_bucket(known, slices, snapshot.storage.uri).items()):
        ring = known.ring(partition)
        split = _large(ring, of, config, reserved)
        runs = _small_runs(ring, of, set(split), config, reserved, config.least or index.num_buckets)
        after = ring.resized("", split, runs)
        if after.nodes == ring.nodes:
            continue
        rings[partition] = after
        counts[partition] = (len(ring.nodes), len(after.nodes))
        made_of[partition] = (ring.instant, frozenset(s.file_id for s in of.values()))
        places = {n.value: (i, n.file_id) for i, n in enumerate(after.nodes)}
        for number in split:
            value = ring.nodes[number].value
            ends = (middle_of(ring.former(number), value), value)
            targets = dict(places[v] for v in ends if v is not None)
            moves.append(BucketMove(SPLIT, partition, (of[number],), targets))
        for run in runs:
            merged = tuple(of[n] for n in run if n in of)
            if merged:
                targets = dict([places[ring.nodes[run[-1]].value]])
                moves.append(BucketMove(MERGE, partition, merged, targets))
    return ResizePlan(index, index, tuple(moves), rings, counts, tuple(reserved.skipped), made_of)


def _large(
    ring: HashingMetadata, of: Mapping[int, FileSlice], config: ResizeConfig, reserved: _Reserved
) -> list[int]:
    """Nodes to split, the largest first."""
    slots = len(of) if config.most is None else max(config.most - len(ring.nodes), 0)
    large = [n for n in sorted(of, key=lambda n: -of[n].bytes) if of[n].bytes > config.split_bytes]
    return [n for n in large if ring.splits(n) and not reserved.leaves_out([of[n]])][:slots]


def _small_runs(
    ring: HashingMetadata,
    of: Mapping[int, FileSlice],
    split: Collection[int],
    config: ResizeConfig,
    reserved: _Reserved,
    least: int,
) -> list[list[int]]:
    """Runs of neighbours that together are small."""
    count = len(ring.nodes)
    runs: list[list[int]] = [[]]
    size = 0
    for number in range(len(ring.nodes)):
        own = of[number].bytes if number in of else 0
        fits = number not in split and own < config.merge_bytes
        fits = fits and not (number in of and reserved.leaves_out([of[number]]))
        if not fits:
            runs.append([])
            size = 0
            continue
        if runs[-1] and (size + own >= config.merge_bytes or count <= least):
            runs.append([])
            size = 0
        if runs[-1]:
            count -= 1
        runs[-1].append(number)
        size += own
    return [r for r in runs if len(r) > 1]
