"""Files of hashing metadata: first ones, those of a commit, and their end with it.

A partition's first ring is made by the first write into it and stays whatever becomes of the write: all writers make
the same.  Another ring belongs to the replacecommit that replaces its file groups: it is there before the commit is
visible, counts from then on, and is gone once that commit is undone.

Source: ConsistentBucketIndexUtils of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hudi_format.errors import HudiError, WriteConflictError
from hudi_format.storage.open import flush
from hudi_format.storage.parallel import walk_folders
from hudi_format.storage.protocol import Storage
from hudi_index.consistent_hashing import ConsistentBucketIndex, HashingMetadata
from hudi_timeline.file_system_view.hashing_rings import ROOT, Ring, keeps, marker_path, parse_ring, ring_path
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction.conflict_strategies import FileGroup

if TYPE_CHECKING:
    from hudi_timeline.transaction.transaction import Transaction


def create_first_rings(
    storage: Storage, index: ConsistentBucketIndex, partitions: Sequence[str], *, instant: str
) -> None:
    """Create the first ring of each partition that has none.

    Args:
        index: with the rings that its rows were routed by.
        instant: of the write, for messages.

    Raises:
        WriteConflictError: another writer has made another ring since.
    """
    for partition in partitions:
        if partition in index.rings:
            continue
        first = index.ring(partition)
        path = ring_path(partition, first.instant)
        try:
            storage.create(path, first.render())
            flush(storage, [path])
        except FileExistsError:
            there = HashingMetadata.parse(storage.read(path), partition)
            if there.nodes != first.nodes:
                raise WriteConflictError(
                    f"another writer gave partition {partition!r} {len(there.nodes)} buckets first, and this write's "
                    f"rows are for {len(first.nodes)}",
                    table=storage.uri, instant=instant, remedy="run the write again; it then takes those.",
                ) from None  # fmt: skip


def refuse_new_rings(
    storage: Storage,
    rivals: Iterable[str],
    groups: Iterable[FileGroup],
    before: Callable[[str], Ring | None],
    *,
    instant: str,
    kind: type[Ring] = HashingMetadata,
) -> None:
    """Refuse the commit of rows that were routed by rings which are no more.

    Args:
        rivals: replacecommits that were completed since the rows were routed.
        groups: file groups of the rows.
        before: gives the ring of a partition that they were routed by; None where it had none.
        kind: of the table's hashing metadata.

    Raises:
        WriteConflictError: one of them gave one of the file groups other keys.
        CorruptFileError: the hashing metadata of one of them.
    """
    asked: dict[str, set[str]] = {}
    for partition, file_id in groups:
        asked.setdefault(partition, set()).add(file_id)
    for rival in rivals:
        for partition in sorted(asked):
            path = ring_path(partition, rival, kind)
            if storage.info(path) is None:
                continue
            now = parse_ring(storage, path, partition, kind)
            old = before(partition)
            changed = sorted(f for f in asked[partition] if old is None or not keeps(old, f, now))
            if changed:
                raise WriteConflictError(
                    f"{rival} gave partition {partition!r} other buckets first", table=storage.uri, instant=instant,
                    remedy="run the write again; it then goes by them.", rival=rival,
                    file_groups=[f"{partition or '.'}/{f}" for f in changed],
                )  # fmt: skip


@dataclass
class NewRings:
    """Participant of a replacecommit that gives partitions new rings.

    Attributes:
        rings: by partition, of the commit's instant.
    """

    rings: Mapping[str, Ring]
    name: str = "hashing metadata"
    _transaction: Transaction | None = field(default=None, repr=False)

    def prepare(self, transaction: Transaction, metadata: CommitMetadata) -> None:
        self._transaction = transaction
        for partition, ring in self.rings.items():
            transaction.storage.publish(ring_path(partition, ring.instant, type(ring)), ring.render())
        flush(transaction.storage, [ring_path(p, r.instant, type(r)) for p, r in self.rings.items()])

    def publish(self) -> None:
        transaction = self._transaction
        if transaction is None:
            return
        # Readers know the commit without a marker as long as it is active.  Rings get none: Apache Hudi 0.15 puts its
        # own elsewhere, and finds no ring at all beside that of a running resize where an older one has a marker.
        try:
            for partition, ring in self.rings.items():
                if isinstance(ring, HashingMetadata):
                    continue
                transaction.storage.publish(marker_path(partition, ring.instant, type(ring)), b"")
        except (HudiError, OSError) as e:
            transaction.warnings.append(f"markers of {self.name} are missing: {e}")

    def undo(self) -> None:
        transaction = self._transaction
        if transaction is not None:
            for partition, ring in self.rings.items():
                transaction.storage.delete(ring_path(partition, ring.instant, type(ring)))


def delete_rings(storage: Storage, instant: str) -> None:
    """Delete the rings of an undone instant; markers first, without which they do not count."""
    folders = [(f, [e.name for e in entries]) for f, entries in walk_folders(storage, ROOT)]
    for path in (marker_path, ring_path):
        name = path("", instant).rpartition("/")[2]
        gone = [f"{folder}/{name}" for folder, names in folders if name in names]
        for one in gone:
            storage.delete(one)
        if gone:
            flush(storage, gone, written=False)
