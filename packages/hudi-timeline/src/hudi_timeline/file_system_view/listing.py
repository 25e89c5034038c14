"""Listing of the table's folders: partitions and their files.

A folder is a partition if and only if it holds a partition metadata file, also inside of another partition: values
"2024" and "2024/01" make such folders.  Folders are listed level by level, on threads where the storage is remote.  A
folder below the table with a `.hoodie` of its own is another table, and nothing in it is looked at.

Source: FileSystemBackedTableMetadata of Apache Hudi 0.15, which looks at nothing inside of a partition; its metadata
table lists such partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hudi_format.file_names import META_DIR, PARTITION_METADATA
from hudi_format.model import join_path
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.parallel import on_threads, subfolders, walk_folders
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.table_config import TableConfig

METAFILES = frozenset(PARTITION_METADATA + suffix for suffix in ("", ".parquet", ".orc"))


class PartitionFilter(Protocol):
    """Filter of partitions, to avoid listing others."""

    def keep(self, partitions: Sequence[str]) -> Sequence[bool]:
        """Mask of wanted partitions, by whole path."""
        ...

    def keep_below(self, folders: Sequence[str]) -> Sequence[bool]:
        """Mask of folders above partitions; False only where no partition below is wanted."""
        ...

    def keep_inside(self, partitions: Sequence[str]) -> Sequence[bool]:
        """Mask of partitions; False only where no partition inside of it is wanted."""
        ...


@dataclass(frozen=True, slots=True)
class ThesePartitions:
    """Partition filter that admits given paths."""

    paths: frozenset[str]

    def keep(self, partitions: Sequence[str]) -> Sequence[bool]:
        return [p in self.paths for p in partitions]

    def keep_below(self, folders: Sequence[str]) -> Sequence[bool]:
        return [any(p.startswith(f"{folder}/") for p in self.paths) for folder in folders]

    def keep_inside(self, partitions: Sequence[str]) -> Sequence[bool]:
        return self.keep_below(partitions)


@dataclass(frozen=True, slots=True)
class Listing:
    """Files by partition path, from one walk over the table.

    `dropped` are partitions that the filter did not want; there may be more of them that were never
    seen, below folders in `dropped_folders`.
    """

    files: Mapping[str, Sequence[FileInfo]]
    dropped: tuple[str, ...] = ()
    dropped_folders: tuple[str, ...] = ()


def list_table(
    storage: Storage,
    config: TableConfig,
    *,
    wanted: PartitionFilter | None = None,
    also: Iterable[str] = (),
) -> Listing:
    """Files of all partitions, or of those that `wanted` admits.

    Args:
        also: partitions to list even if the walk does not find them (commits name them).
    """
    files: dict[str, Sequence[FileInfo]] = {}
    dropped: list[str] = []
    dropped_folders: list[str] = []
    level = [""]
    while level:
        entries: Iterable[tuple[str, list[FileInfo]]] = zip(
            level, on_threads(storage, storage.list, level), strict=True
        )
        below: list[str] = []
        for folder, found in entries:
            if _is_marked(found):
                if _is_other_table(folder, found) and any(
                    p == "" or folder.startswith(f"{p}/") for p in files
                ):
                    continue
                files[folder] = [e for e in found if not e.is_dir]
            below += _folders_in(folder, found)
        level = _admitted(storage, config, below, wanted, dropped, dropped_folders)
    more = sorted(set(also) - files.keys() - set(dropped))
    if wanted is not None and more:
        kept = wanted.keep(more)
        dropped += [p for p, k in zip(more, kept, strict=True) if not k]
        more = [p for p, k in zip(more, kept, strict=True) if k]
    for partition, found in zip(more, on_threads(storage, storage.list, more), strict=True):
        files[partition] = [e for e in found if not e.is_dir]
    if wanted is not None and files:
        # A whole path may say more than a folder on the way to it did.
        paths = list(files)
        for path, keep in zip(paths, wanted.keep(paths), strict=True):
            if not keep:
                dropped.append(path)
                del files[path]
    return Listing(files, tuple(dropped), tuple(dropped_folders))


def _admitted(
    storage: Storage,
    config: TableConfig,
    folders: list[str],
    wanted: PartitionFilter | None,
    dropped: list[str],
    dropped_folders: list[str],
) -> list[str]:
    """The `folders` to list; unwanted partitions are added to `dropped`."""
    if wanted is None or not folders:
        return folders
    below = wanted.keep_below(folders)
    dropped_folders += [f for f, k in zip(folders, below, strict=True) if not k]
    folders = [f for f, k in zip(folders, below, strict=True) if k]
    if not folders:
        return []
    whole = wanted.keep(folders)
    # `2024` may be a partition or lie above `2024/03/05`, or both: a look at its names tells, and costs less than
    # listing the files of a partition that nobody wants.
    doubtful = [f for f, k in zip(folders, whole, strict=True) if not k]
    if type(storage) is LocalStorage:
        inside: list[str] = []
        for folder in doubtful:
            names, is_one = storage.folders(folder, METAFILES)
            if is_one:
                dropped.append(folder)
            inside += [] if META_DIR in names else [join_path(folder, n) for n in names]
        rest = set(doubtful)
        return [
            *(f for f in folders if f not in rest),
            *_admitted(storage, config, inside, wanted, dropped, dropped_folders),
        ]
    # A request says whether it is one, and no more; and a filter mostly whether anything can be wanted inside.
    if doubtful:
        doubtful = [f for f, k in zip(doubtful, wanted.keep_inside(doubtful), strict=True) if not k]
    are_partitions = set()
    for folder, is_one in zip(
        doubtful, on_threads(storage, lambda f: is_partition(storage, config, f), doubtful), strict=True
    ):
        if is_one:
            are_partitions.add(folder)
            dropped.append(folder)
    return [f for f in folders if f not in are_partitions]


def _is_marked(entries: Iterable[FileInfo]) -> bool:
    return any(e.name in METAFILES and not e.is_dir for e in entries)


def _is_other_table(folder: str, entries: Sequence[FileInfo]) -> bool:
    return folder != "" and any(e.is_dir and e.name == META_DIR for e in entries)


def _folders_in(folder: str, entries: Sequence[FileInfo]) -> list[str]:
    """Subfolders that are part of the table or lead to such."""
    if _is_other_table(folder, entries):
        return []
    return [f for f in subfolders(folder, entries) if f != META_DIR]


def walk(storage: Storage) -> dict[str, list[FileInfo]]:
    """Files of every folder of the table except `.hoodie`, also without partition metadata.

    Names tell nothing of a folder: `_x`, `.x` and `__HIVE_DEFAULT_PARTITION__` are partitions of these values.
    """
    return {
        folder: [e for e in found if not e.is_dir]
        for folder, found in walk_folders(storage, into=_folders_in)
        if not _is_other_table(folder, found)
    }


def is_partition(storage: Storage, config: TableConfig, folder: str) -> bool:
    """Whether a folder holds a partition metadata file."""
    names = [PARTITION_METADATA]
    if config.partition_metafile_base_format:
        names.insert(0, f"{PARTITION_METADATA}.{config.base_file_format.lower()}")
    return any(storage.info(join_path(folder, name)) is not None for name in names)


def list_partitions(storage: Storage, config: TableConfig) -> list[str]:
    """Sorted paths of all partitions; [""] for a non-partitioned table with data."""
    return sorted(list_table(storage, config).files)


def list_files(storage: Storage, partition: str) -> list[FileInfo]:
    """Files of one partition, hidden ones too; [] where there is no such folder."""
    return [e for e in storage.list(partition) if not e.is_dir]


def list_partition_files(storage: Storage, partitions: Iterable[str]) -> dict[str, list[FileInfo]]:
    """The files of given partitions."""
    paths = sorted(set(partitions))
    found = on_threads(storage, lambda p: list_files(storage, p), paths)
    return dict(zip(paths, found, strict=True))
