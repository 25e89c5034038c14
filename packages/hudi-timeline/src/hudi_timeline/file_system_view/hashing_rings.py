"""Hashing metadata of the consistent-hashing bucket index: the ring of each partition.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta
    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.commit        (a marker, empty)

The newest ring counts that is committed: the first one is from the start, another one once its instant is completed or
has a marker.  Apache Hudi 0.15 puts markers into the partition's own folder, where it does not find them again, and
takes a ring whose instant was archived for committed if the partition has files of its file groups; later releases put
them beside the ring.

Source: ConsistentBucketIndexUtils.loadMetadata of Apache Hudi 0.15, and what it wrote (golden bucket_consistent_mor).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_names import parse_base_file, parse_log_file
from hudi_format.model import join_path
from hudi_format.storage.parallel import on_threads
from hudi_index.bucket import BucketIndex
from hudi_index.consistent_hashing import INITIAL_INSTANT, ConsistentBucketIndex, HashingMetadata
from hudi_timeline.file_system_view.snapshot import TableSnapshot

FOLDER = ".bucket_index"
RINGS = f".hoodie/{FOLDER}/consistent_hashing_metadata"
RING, MARKER = ".hashing_meta", ".commit"


def has_rings(snapshot: TableSnapshot) -> bool:
    """Whether a table has hashing metadata, and so a consistent-hashing index."""
    return not snapshot.timeline.lacks(FOLDER) and bool(snapshot.storage.list(RINGS))


def _folder(partition: str) -> str:
    return f"{RINGS}/{partition}" if partition else RINGS


def ring_path(partition: str, instant: str) -> str:
    return f"{_folder(partition)}/{instant}{RING}"


def marker_path(partition: str, instant: str) -> str:
    return f"{_folder(partition)}/{instant}{MARKER}"


def load_rings(snapshot: TableSnapshot, partitions: Iterable[str]) -> dict[str, HashingMetadata]:
    """Rings of the partitions that have one.

    Raises:
        CorruptFileError: a file that is no hashing metadata.
        MissingFileError: a partition has rings, and none of them counts.
    """
    if snapshot.timeline.lacks(FOLDER):
        return {}
    asked = sorted(set(partitions))
    found = on_threads(snapshot.storage, lambda p: _ring_of(snapshot, p), asked)
    return {p: ring for p, ring in zip(asked, found, strict=True) if ring is not None}


def any_ring(snapshot: TableSnapshot) -> HashingMetadata | None:
    """Ring of some partition; None where no partition has one."""
    folder, at = RINGS, ""
    while True:
        entries = sorted(snapshot.storage.list(folder), key=lambda e: e.name)
        if any(e.name.endswith(RING) for e in entries if not e.is_dir):
            return _ring_of(snapshot, at)
        below = [e.name for e in entries if e.is_dir]
        if not below:
            return None
        folder, at = f"{folder}/{below[0]}", join_path(at, below[0])


def with_rings(index: BucketIndex, snapshot: TableSnapshot, partitions: Iterable[str]) -> BucketIndex:
    """The index with the rings of these partitions; the same for a simple one.

    Raises:
        CorruptFileError, MissingFileError: as `load_rings`.
    """
    if not isinstance(index, ConsistentBucketIndex):
        return index
    return index.with_rings(load_rings(snapshot, partitions))


def read_ring(snapshot: TableSnapshot, partition: str, instant: str) -> HashingMetadata:
    """Ring of a partition as of an instant.

    Raises:
        CorruptFileError: the file is no hashing metadata.
    """
    path = ring_path(partition, instant)
    try:
        return HashingMetadata.parse(snapshot.storage.read(path), partition)
    except ValueError as e:
        raise CorruptFileError(
            f"no hashing metadata: {e}", table=snapshot.storage.uri, file=path,
            remedy="nothing was written; restore the file from a backup: the keys of the partition's buckets are found "
            "by it.",
        ) from None  # fmt: skip


def _ring_of(snapshot: TableSnapshot, partition: str) -> HashingMetadata | None:
    names = [e.name for e in snapshot.storage.list(_folder(partition)) if not e.is_dir]
    rings = sorted((n.removesuffix(RING) for n in names if n.endswith(RING)), reverse=True)
    marked = {n.removesuffix(MARKER) for n in names if n.endswith(MARKER)}
    for number, instant in enumerate(rings):
        if _counts(snapshot, partition, instant, marked, rings[number + 1 :]):
            return read_ring(snapshot, partition, instant)
    if rings:
        raise MissingFileError(
            f"partition {partition!r} has hashing metadata of {rings[0]}, which was not completed, and none before it",
            table=snapshot.storage.uri, file=ring_path(partition, INITIAL_INSTANT),
            remedy="nothing was written; restore the file from a backup.",
        )  # fmt: skip
    return None


def _counts(
    snapshot: TableSnapshot, partition: str, instant: str, marked: set[str], older: Sequence[str]
) -> bool:
    """Whether a ring is committed."""
    if instant == INITIAL_INSTANT or instant in marked:
        return True
    found = snapshot.timeline.find(instant)
    if found is not None:
        return found.completed
    if instant >= snapshot.timeline.first_active:  # rolled back
        return False
    names = [e.name for e in snapshot.storage.list(partition)]
    if f"{instant}{MARKER}" in names:
        return True
    ring = read_ring(snapshot, partition, instant)
    before = read_ring(snapshot, partition, older[0]).nodes if older else ()
    own = {n.file_id for n in ring.nodes} - {n.file_id for n in before}
    files = (parse_base_file(partition, n) or parse_log_file(partition, n) for n in names)
    return any(f.file_id in own for f in files if f is not None)


__all__ = [
    "FOLDER",
    "RINGS",
    "any_ring",
    "has_rings",
    "load_rings",
    "marker_path",
    "read_ring",
    "ring_path",
    "with_rings",
]
