"""The table's files as its metadata table lists them, and where that differs from storage.

A listing through the metadata table is as right as its writers were: one that some writer did not keep up hides
files or names files that are gone.  `differences` finds that by listing storage too.

Source: HoodieBackedTableMetadata of Apache Hudi 0.15 and 1.x; spec "Metadata table", section 10.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_format.names import META_DIR, PARTITION_METADATA
from hudi_format.storage import Storage, open_beside
from hudi_index.mdt.files import TableFiles, read_table_files
from hudi_timeline.listing import list_partition_files, list_table
from hudi_timeline.merged_view import merged_slices
from hudi_timeline.metadata_table import FILES, FOLDER
from hudi_timeline.scan.merged import slice_merge
from hudi_timeline.snapshot import open_snapshot
from hudi_timeline.table_config import load
from hudi_timeline.timeline import load_timeline

NOT_LISTED = "not listed"
GONE = "gone"
OTHER_SIZE = "of another size"


@dataclass(frozen=True, slots=True)
class Difference:
    """One file on which metadata table and storage disagree.

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


def has_listing(storage: Storage) -> bool:
    """Whether the table's own properties say that its metadata table lists all files."""
    return FILES in load(storage).metadata_partitions


def list_by_metadata(storage: Storage) -> TableFiles:
    """The table's files as the metadata table says; whether it may be asked says `has_listing`.

    What a write of the table that is not completed has put there does not count.

    Raises:
        NotAHudiTableError: there is no metadata table.
        MissingFileError, CorruptFileError: a file of it is gone or damaged.
    """
    config = load(storage)
    timeline = load_timeline(storage, config)
    own = open_beside(storage, f"{storage.uri}/{FOLDER}")
    snapshot = open_snapshot(own)
    slices, _ = merged_slices(snapshot, list_partition_files(own, [FILES]))
    scope = slice_merge(snapshot).scope
    pending = frozenset(i.time for i in timeline.pending_writes())
    scope = replace(scope, rolled_back=scope.rolled_back | pending)
    return read_table_files(own, slices, scope)


def differences(storage: Storage) -> list[Difference]:
    """Where metadata table and storage disagree, sorted; [] for a metadata table that tells the truth.

    Files of a write that is under way are in storage only: ask while nobody writes.
    """
    listed = list_by_metadata(storage).files
    stored = {
        p: {f.name: f.size for f in files if not f.name.startswith(PARTITION_METADATA)}
        for p, files in list_table(storage, load(storage)).files.items()
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
