"""File listings from the metadata table, and their differences from storage.

A listing through the metadata table is as right as its writers were: one that some writer did not keep up hides
files or names files that are gone.  `differences` finds that by listing storage too.

Source: HoodieBackedTableMetadata of Apache Hudi 0.15 and 1.x; spec "Metadata table", section 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_format.errors import CorruptFileError, MissingFileError, NotAHudiTableError, UnsupportedError
from hudi_format.file_names import META_DIR, PARTITION_METADATA
from hudi_format.log.scanner import BlockScope
from hudi_format.model import FileSlice
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_index.metadata_table.files import TableFiles, read_partitions_and_files, read_table_files
from hudi_timeline.file_system_view.base_files import FileView
from hudi_timeline.file_system_view.file_slices import merged_slices, refuse_shortened
from hudi_timeline.file_system_view.listing import Listing, PartitionFilter, list_partition_files, list_table
from hudi_timeline.file_system_view.snapshot import TableSnapshot, load_snapshot, open_snapshot
from hudi_timeline.metadata_config import FILES, FOLDER, own_storage
from hudi_timeline.metadata_table.reader import is_current, trusted_scope
from hudi_timeline.table_config import PROPERTIES_FILE, load
from hudi_timeline.timeline.active_timeline import Timeline

NOT_LISTED = "not listed"
GONE = "gone"
OTHER_SIZE = "of another size"


@dataclass(frozen=True, slots=True)
class Difference:
    """A file on which metadata table and storage disagree.

    Attributes:
        partition, name: the file; `name` is "" for a whole partition.
        kind: NOT_LISTED: storage has it, the metadata table does not; GONE: the other way round; OTHER_SIZE.
        listed, stored: sizes in bytes, None where it is not there.
    """

    partition: str
    name: str
    kind: str
    listed: int | None = None
    stored: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The metadata table at one moment; implements `snapshot.Lister`.

    What a write of the table that is not completed has put there does not count (`trusted_scope`).  Records are looked
    up for the partitions that are wanted alone.
    """

    storage: Storage
    slices: tuple[FileSlice, ...]
    scope: BlockScope

    @classmethod
    def of(cls, storage: Storage, timeline: Timeline) -> MetadataFiles:
        """The metadata table of a table with this timeline.

        Raises:
            NotAHudiTableError: there is no metadata table.
            MissingFileError, CorruptFileError: a committed file is gone, or shorter than it was.
        """
        own = own_storage(storage)
        snapshot = open_snapshot(own)
        slices, committed = merged_slices(snapshot, list_partition_files(own, [FILES]))
        refuse_shortened(slices, committed, table=own.uri)
        suffixes = snapshot.config.version.suffixes_metadata_instants
        return cls(own, tuple(slices), trusted_scope(snapshot.timeline, timeline, suffixes=suffixes))

    def files(self, partitions: Iterable[str] | None = None) -> TableFiles:
        """Files of partitions; None for all.

        Raises:
            MissingFileError, CorruptFileError: a file of the metadata table is gone or damaged.
        """
        return read_table_files(self.storage, self.slices, self.scope, partitions)

    def _wanted(
        self, wanted: PartitionFilter | None, also: Iterable[str]
    ) -> tuple[TableFiles, list[str], tuple[str, ...]]:
        """Files of partitions admitted by a filter, with their paths, and those in `also`."""
        with _told_apart():
            if wanted is None:
                found = self.files()
                return found, sorted({*found.partitions, *also}), ()
            # Those of active commits are known before the list of all is read, and are mostly all there are.
            written = set(also)
            known = _kept(wanted, sorted(written))
            found = read_partitions_and_files(self.storage, self.slices, self.scope, known)
            paths = sorted(written.union(found.partitions))
            kept = _kept(wanted, paths)
            if more := set(kept).intersection(found.partitions).difference(known):
                entries = pa.concat_tables([found.entries, self.files(more).entries])
                found = TableFiles(found.partitions, entries)
            return found, kept, tuple(sorted(set(paths) - set(kept)))

    def listing(self, wanted: PartitionFilter | None, also: Iterable[str]) -> Listing:
        """The listing as of `listing.list_table`, without modification times."""
        found, looked_at, dropped = self._wanted(wanted, also)
        files: dict[str, list[FileInfo]] = {p: [] for p in looked_at}
        for partition, name, size in zip(*(c.to_pylist() for c in found.entries.columns), strict=True):
            files[partition].append(FileInfo(name, False, size))
        return Listing(files, dropped)

    def view(self, wanted: PartitionFilter | None, also: Iterable[str]) -> tuple[FileView, list[str]]:
        """The base files as a view, and the partitions listed."""
        found, looked_at, _ = self._wanted(wanted, also)
        return FileView.of_columns(*found.entries.columns), looked_at


def _kept(wanted: PartitionFilter, paths: Sequence[str]) -> list[str]:
    return [p for p, keep in zip(paths, wanted.keep(paths), strict=True) if keep]


@contextmanager
def _told_apart() -> Iterator[None]:
    """Say of damage to the metadata table that the table itself can be read."""
    try:
        yield
    except (MissingFileError, CorruptFileError) as e:
        e.remedy = (
            f"{e.remedy} Without hoodie.metadata.enable=true the table's own folders are listed.".lstrip()
        )
        raise


def through_metadata(snapshot: TableSnapshot) -> TableSnapshot:
    """The snapshot, listing files from the metadata table where that is complete."""
    if FILES not in snapshot.config.metadata_partitions:
        return snapshot
    try:
        with _told_apart():
            lister = MetadataFiles.of(snapshot.storage, snapshot.timeline)
    except _DAMAGED:
        if is_current(snapshot):
            raise
        return snapshot
    return replace(snapshot, lister=_ReadLister(lister, snapshot))


_DAMAGED = (NotAHudiTableError, MissingFileError, CorruptFileError)


@dataclass(frozen=True, slots=True)
class _ReadLister:
    """The metadata table for a read, or the table's folders where its files went meanwhile; a `snapshot.Lister`.

    Others may drop it, or build it anew, while it is read, as a write with hoodie.metadata.enable=false and a restore
    do: they say so on the timeline or in the properties, then delete it.
    """

    metadata: MetadataFiles
    snapshot: TableSnapshot

    def listing(self, wanted: PartitionFilter | None, also: Iterable[str]) -> Listing:
        try:
            return self.metadata.listing(wanted, also)
        except _DAMAGED:
            if is_current(self.snapshot):
                raise
        return self.snapshot.listing(wanted)

    def view(self, wanted: PartitionFilter | None, also: Iterable[str]) -> tuple[FileView, list[str]]:
        try:
            return self.metadata.view(wanted, also)
        except _DAMAGED:
            if is_current(self.snapshot):
                raise
        files = self.snapshot.listing(wanted).files
        return FileView.of_listing(files), list(files)


def list_by_metadata(storage: Storage) -> TableFiles:
    """The table's files per metadata table.

    Raises:
        NotAHudiTableError: there is no metadata table.
        MissingFileError, CorruptFileError: a file of it is gone or damaged.
    """
    return MetadataFiles.of(storage, load_snapshot(storage).timeline).files()


def differences(storage: Storage) -> list[Difference]:
    """Sorted differences between metadata table and storage; [] for a correct metadata table.

    Files of a write that is under way are in storage only: ask while nobody writes.

    Raises:
        UnsupportedError: the table has no metadata table.
        NotAHudiTableError: there is no table.
    """
    config = load(storage)
    if storage.info(f"{FOLDER}/{PROPERTIES_FILE}") is None:
        raise UnsupportedError(
            "the table has no metadata table to compare with its files",
            table=storage.uri,
            remedy="verify() finds what is wrong with the files; hoodie.metadata.enable=true makes a metadata table "
            "with the next write.",
        )
    listed = list_by_metadata(storage).files
    stored = {
        p: {f.name: f.size for f in files if not f.name.startswith(PARTITION_METADATA)}
        for p, files in list_table(storage, config).files.items()
        if p != META_DIR
    }
    out = []
    for partition in sorted({*listed, *stored}):
        if partition not in listed or partition not in stored:
            out.append(Difference(partition, "", GONE if partition in listed else NOT_LISTED))
        ours, theirs = stored.get(partition, {}), listed.get(partition, {})
        for name in sorted({*ours, *theirs}):
            size, said = ours.get(name), theirs.get(name)
            if size != said:
                kind = NOT_LISTED if said is None else GONE if size is None else OTHER_SIZE
                out.append(Difference(partition, name, kind, said, size))
    return out
