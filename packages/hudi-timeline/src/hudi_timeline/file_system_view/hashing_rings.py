"""Hashing metadata of bucket indexes: the ring, or the directory, of each partition.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta
    .hoodie/.bucket_index/extendible_hashing_metadata/<partition>/<instant>.hashing_meta   (of this project alone)
    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.commit        (a marker, empty)

The newest ring counts that is committed: the first one is from the start, another one once its instant is completed or
has a marker.  Apache Hudi 0.15 puts markers into the partition's own folder, where it does not find them again, and
takes a ring whose instant was archived for committed if the partition has files of its file groups; later releases put
them beside the ring.  Directories of extendible hashing are kept by the same rules.

Source: ConsistentBucketIndexUtils.loadMetadata of Apache Hudi 0.15, and what it wrote (golden bucket_consistent_mor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_names import parse_slice_file
from hudi_format.model import join_path
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import BucketIndex, PartitionedBucketIndex
from hudi_index.consistent_hashing import INITIAL_INSTANT, HashingMetadata
from hudi_index.extendible_hashing import HashingDirectory
from hudi_timeline.file_system_view.snapshot import TableSnapshot

FOLDER = ".bucket_index"
ROOT = f".hoodie/{FOLDER}"
RINGS = f"{ROOT}/{HashingMetadata.folder}"
RING, MARKER = ".hashing_meta", ".commit"

Ring: TypeAlias = HashingMetadata | HashingDirectory
_R = TypeVar("_R", HashingMetadata, HashingDirectory, Ring)


def has_rings(snapshot: TableSnapshot) -> bool:
    """Whether a table has hashing metadata, and so a consistent-hashing index."""
    return not snapshot.timeline.lacks(FOLDER) and bool(snapshot.storage.list(RINGS))


def _folder(partition: str, kind: type[Ring]) -> str:
    return join_path(f"{ROOT}/{kind.folder}", partition) if partition else f"{ROOT}/{kind.folder}"


def ring_path(partition: str, instant: str, kind: type[Ring] = HashingMetadata) -> str:
    return f"{_folder(partition, kind)}/{instant}{RING}"


def marker_path(partition: str, instant: str, kind: type[Ring] = HashingMetadata) -> str:
    return f"{_folder(partition, kind)}/{instant}{MARKER}"


def load_rings(snapshot: TableSnapshot, partitions: Iterable[str]) -> dict[str, HashingMetadata]:
    """Rings of the partitions that have one; errors as `load_kind`."""
    return load_kind(snapshot, partitions, HashingMetadata)


def load_kind(snapshot: TableSnapshot, partitions: Iterable[str], kind: type[_R]) -> dict[str, _R]:
    """Rings, or directories, of the partitions that have one.

    Raises:
        CorruptFileError: a file that is no hashing metadata.
        MissingFileError: a partition has rings, and none of them counts.
    """
    if snapshot.timeline.lacks(FOLDER):
        return {}
    asked = sorted(set(partitions))
    found = on_threads(snapshot.storage, lambda p: _ring_of(snapshot, p, kind), asked)
    return {p: ring for p, ring in zip(asked, found, strict=True) if ring is not None}


def any_ring(snapshot: TableSnapshot) -> HashingMetadata | None:
    """Ring of some partition; None where no partition has one."""
    folder, at = RINGS, ""
    while True:
        entries = sorted(snapshot.storage.list(folder), key=lambda e: e.name)
        if any(e.name.endswith(RING) for e in entries if not e.is_dir):
            return _ring_of(snapshot, at, HashingMetadata)
        below = [e.name for e in entries if e.is_dir]
        if not below:
            return None
        folder, at = f"{folder}/{below[0]}", join_path(at, below[0])


def with_rings(index: BucketIndex, snapshot: TableSnapshot, partitions: Iterable[str]) -> BucketIndex:
    """The index with the rings of these partitions; the same for a simple one.

    Raises:
        CorruptFileError, MissingFileError: as `load_kind`.
    """
    if isinstance(index, PartitionedBucketIndex):
        return index.with_rings(load_kind(snapshot, partitions, index.kind))
    return index


def is_seen(snapshot: TableSnapshot, instant: str) -> bool:
    """Whether a snapshot shows a resize: its file groups are those from after it."""
    if instant in ("", INITIAL_INSTANT):
        return True
    if snapshot.as_of is not None and instant > snapshot.as_of:
        return False
    found = snapshot.timeline.find(instant)
    return instant in snapshot.timeline.archived() if found is None else found.completed


def read_ring(snapshot: TableSnapshot, partition: str, instant: str, kind: type[_R]) -> _R:
    """Ring, or directory, of a partition as of an instant.

    Raises:
        CorruptFileError: the file is no hashing metadata.
    """
    return parse_ring(snapshot.storage, ring_path(partition, instant, kind), partition, kind)


def parse_ring(storage: Storage, path: str, partition: str, kind: type[_R]) -> _R:
    """Ring, or directory, in a file; errors as `read_ring`."""
    try:
        return kind.parse(storage.read(path), partition)
    except ValueError as e:
        raise CorruptFileError(
            f"no hashing metadata: {e}", table=storage.uri, file=path,
            remedy="nothing was written; restore the file from a backup: the keys of the partition's buckets are found "
            "by it.",
        ) from None  # fmt: skip


def keeps(before: Ring, file_id: str, after: Ring) -> bool:
    """Whether a file group stands for the same keys before and after a resize."""
    if isinstance(before, HashingMetadata):
        return isinstance(after, HashingMetadata) and before.keeps(file_id, after)
    return isinstance(after, HashingDirectory) and before.keeps(file_id, after)


def rings_before(snapshot: TableSnapshot, index: BucketIndex) -> Callable[[str], Ring | None]:
    """Function that gives a partition's ring, or directory, as of a snapshot, or None."""

    def ring(partition: str) -> Ring | None:
        known = with_rings(index, snapshot, [partition])
        return known.ring(partition) if isinstance(known, PartitionedBucketIndex) else None

    return ring


def _ring_of(snapshot: TableSnapshot, partition: str, kind: type[_R]) -> _R | None:
    names = [e.name for e in snapshot.storage.list(_folder(partition, kind)) if not e.is_dir]
    rings = sorted((n.removesuffix(RING) for n in names if n.endswith(RING)), reverse=True)
    marked = {n.removesuffix(MARKER) for n in names if n.endswith(MARKER)}
    for number, instant in enumerate(rings):
        if _counts(snapshot, partition, instant, marked, rings[number + 1 :], kind):
            return read_ring(snapshot, partition, instant, kind)
    if rings and kind is HashingMetadata:  # a directory has no first one
        raise MissingFileError(
            f"partition {partition!r} has hashing metadata of {rings[0]}, which was not completed, and none before it",
            table=snapshot.storage.uri, file=ring_path(partition, INITIAL_INSTANT),
            remedy="nothing was written; restore the file from a backup.",
        )  # fmt: skip
    return None


def _counts(
    snapshot: TableSnapshot,
    partition: str,
    instant: str,
    marked: set[str],
    older: Sequence[str],
    kind: type[Ring],
) -> bool:
    """Whether a ring is committed."""
    if instant != INITIAL_INSTANT and instant in snapshot.timeline.overwritten:
        return False
    if instant == INITIAL_INSTANT or (instant in marked and kind is HashingMetadata):
        return True
    found = snapshot.timeline.find(instant)
    if found is not None:
        return found.completed
    if instant not in snapshot.timeline.archived():  # Apache Hudi leaves the marker of one rolled back
        return False
    if kind is HashingDirectory:  # one that is not completed goes with its instant
        return True
    names = [e.name for e in snapshot.storage.list(partition)]
    if f"{instant}{MARKER}" in names:
        return True
    ring = read_ring(snapshot, partition, instant, HashingMetadata)
    before = read_ring(snapshot, partition, older[0], HashingMetadata).nodes if older else ()
    own = {n.file_id for n in ring.nodes} - {n.file_id for n in before}
    files = (parse_slice_file(partition, n) for n in names)
    return any(f.file_id in own for f in files if f is not None)
