"""Base files of the file system view, in columnar form.

Columnar, so that a table of a million files is a matter of seconds: names are taken apart, checked against
the timeline and reduced to the newest of each file group by Arrow and numpy; `FileSlice` objects are made
only for what is asked.

Source: AbstractTableFileSystemView and HoodieFileGroup of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import column_of, flags, flags_of, integers, numbers_of, text, texts
from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.file_names import BASE_NAME
from hudi_format.model import BaseFile, FileSlice, VisibleInstants
from hudi_format.storage.protocol import FileInfo

_log = logging.getLogger(__name__)

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("write_token", pa.string(), nullable=False),
        pa.field("instant", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
    ]
)

_NOTHING, _SLASH = text(""), text("/")

Column: TypeAlias = pa.Array | pa.ChunkedArray

Group = tuple[str, str]
"""A file group: partition path and file id."""


class CommittedBaseFile(NamedTuple):
    """A base file in a completed commit.

    `size` in bytes, 0 where it does not say.
    """

    path: str
    size: int
    instant: str


@dataclass(frozen=True, slots=True, eq=False)
class FileView:
    """Base files as listed.

    Attributes:
        files: columns as `SCHEMA`, one row for each base file of any instant, completed or not.
        log_files: how many log files lie beside them.
    """

    files: pa.Table
    log_files: int = 0

    @classmethod
    def of_listing(cls, listing: Mapping[str, Sequence[FileInfo]]) -> FileView:
        """The base files of a listing."""
        paths = list(listing)
        counts = np.fromiter((len(listing[p]) for p in paths), np.int64, len(paths))
        names = texts([f.name for p in paths for f in listing[p]])
        sizes = integers([f.size for p in paths for f in listing[p]])
        codes = integers(np.repeat(np.arange(len(paths)), counts))
        return cls.of_columns(texts(paths).take(codes), names, sizes)

    @classmethod
    def of_columns(cls, partitions: Column, names: Column, sizes: Column) -> FileView:
        """The base files among files, given by partition path, name and size in bytes."""
        parts = pc.extract_regex(names, f"^{BASE_NAME}$")
        table = pa.table([partitions, names, *parts.flatten(), sizes], schema=SCHEMA)
        is_base = parts.is_valid()
        logs = pc.sum(pc.match_substring_regex(names, r"^\..*\.log\.[0-9]+")).as_py() or 0
        return cls(table.filter(is_base), logs)

    def has_older(self, instant: str) -> bool:
        """Whether there is a file of an earlier instant."""
        oldest = pc.min(self.files.column("instant")).as_py()
        return oldest is not None and oldest < instant

    def instants_of(self, file_ids: Collection[str]) -> list[tuple[Group, str]]:
        """The file group and instant of each file of some file ids."""
        found = self.files.filter(pc.is_in(self.files.column("file_id"), value_set=texts(list(file_ids))))
        columns = (found.column(n).to_pylist() for n in ("partition", "file_id", "instant"))
        return [((partition, file_id), instant) for partition, file_id, instant in zip(*columns, strict=True)]

    def latest(
        self,
        visible: VisibleInstants,
        *,
        as_of: str | None = None,
        replaced: Mapping[Group, str] | None = None,
        committed: Collection[str] | None = None,
    ) -> pa.Table:
        """Newest visible base file of each file group, sorted by partition and file id.

        Args:
            as_of: files of later instants do not count, nor replacements by them.
            replaced: the instant that replaced a file group.
            committed: the paths that the completed instants of the active timeline wrote; another file of
                such an instant is a leftover of a task that was tried twice, and does not count.

        Returns:
            A table of `SCHEMA`.
        """
        shown = self.files.filter(flags(self._shown(visible, as_of)))
        if committed is not None:
            shown = _without_strays(shown, visible, committed)
        if replaced:
            gone = {group for group, at in replaced.items() if as_of is None or at <= as_of}
            shown = _without(shown, gone)
        if shown.num_rows == 0:
            return shown
        order = pc.sort_indices(
            shown,
            [(n, "ascending") for n in ("partition", "file_id", "instant", "write_token")],
        )
        shown = shown.take(order).combine_chunks()
        return shown.filter(flags(_last_of_group(shown)))

    def _shown(self, visible: VisibleInstants, as_of: str | None) -> np.ndarray:
        """Mask of files of completed (or archived) instants not after `as_of`."""
        coded = self.files.column("instant").combine_chunks().dictionary_encode()
        texts = coded.dictionary.to_pylist()
        good = np.fromiter(
            ((t in visible and (as_of is None or t <= as_of)) for t in texts), np.bool_, len(texts)
        )
        if not texts:
            return np.zeros(0, np.bool_)
        shown: np.ndarray = good[numbers_of(coded.indices)]
        return shown


def _last_of_group(files: pa.Table) -> np.ndarray:
    """Mask of the last file of each group, for files sorted by group."""
    last = np.ones(files.num_rows, np.bool_)
    if files.num_rows > 1:
        differs = np.zeros(files.num_rows - 1, np.bool_)
        for name in ("partition", "file_id"):
            column = files.column(name).combine_chunks()
            differs |= flags_of(pc.not_equal(column[:-1], column[1:]))
        last[:-1] = differs
    return last


def paths_of(files: pa.Table) -> pa.ChunkedArray:
    """Paths below the table of a `SCHEMA` table's rows."""
    partition, name = files.column("partition"), files.column("name")
    return pc.if_else(
        pc.equal(partition, _NOTHING), name, pc.binary_join_element_wise(partition, name, _SLASH)
    )


def _without_strays(files: pa.Table, visible: VisibleInstants, committed: Collection[str]) -> pa.Table:
    active = pc.is_in(files.column("instant"), texts(sorted(visible.completed)))
    known = pc.is_in(paths_of(files), texts(list(committed)))
    stray = pc.and_not(active, known)
    if pc.any(stray).as_py():
        for path in paths_of(files.filter(stray)).to_pylist():
            _log.warning("%s is not among the files of its commit and is not read", path)
        return files.filter(pc.invert(stray))
    return files


def _without(files: pa.Table, groups: set[Group]) -> pa.Table:
    """`files` without some file groups."""
    if not groups:
        return files
    # Neither a partition path nor a file id can hold a line break that the other could be mistaken for:
    # a file id is part of a file name without "/".
    keys = pc.binary_join_element_wise(files.column("file_id"), files.column("partition"), _SLASH)
    gone = texts([f"{file_id}/{partition}" for partition, file_id in groups])
    return files.filter(pc.invert(pc.is_in(keys, gone)))


def base_files(files: pa.Table) -> list[BaseFile]:
    """Rows of a `SCHEMA` table as objects."""
    columns = (files.column(n).to_pylist() for n in SCHEMA.names)
    return [
        BaseFile(partition, name, file_id, instant, token, size)
        for partition, name, file_id, token, instant, size in zip(*columns, strict=True)
    ]


def table_of(files: Iterable[BaseFile]) -> pa.Table:
    """Objects as rows of `SCHEMA`."""
    rows = [(f.partition, f.name, f.file_id, f.write_token, f.instant, f.size) for f in files]
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([column_of(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def file_slices(files: pa.Table) -> list[FileSlice]:
    """One slice without log files for each base file."""
    return [FileSlice(b.partition, b.file_id, b.instant, b) for b in base_files(files)]


def check_written(
    latest: pa.Table,
    written: Mapping[Group, CommittedBaseFile],
    listed: Sequence[str] | None,
    uri: str,
    replaced_before: Callable[[], Collection[Group]] = tuple,
) -> None:
    """Raise if a group's newest committed file is not the listed one.

    Args:
        latest: what `FileView.latest` gave.
        written: the newest base file of each file group by commit metadata, replaced groups left out.
        listed: the partitions that were listed, None for all; other groups are not checked.
        replaced_before: gives the groups that archived instants replaced.

    Raises:
        MissingFileError: the file is not there.
        CorruptFileError: it has another size than the commit says.
    """
    partitions = None if listed is None else set(listed)
    # Of a million groups the commits that are active wrote few.
    ids = texts(list({file_id for _, file_id in written}))
    known = latest.filter(pc.is_in(latest.column("file_id"), value_set=ids))
    found = {(b.partition, b.file_id): b for b in base_files(known)}
    gone: Collection[Group] | None = None
    for group, file in written.items():
        if partitions is not None and group[0] not in partitions:
            continue
        base = found.get(group)
        if base is None or base.instant < file.instant:
            # What was written into a group after it was replaced is of no state, and a cleaning takes it.
            gone = replaced_before() if gone is None else gone
            if group in gone:
                continue
            raise missing_file(file, uri)
        # A savepoint keeps its commit active while later ones are archived: then a newer file is right.
        if base.instant == file.instant:
            check_size(file, base.size, uri)


def missing_file(file: CommittedBaseFile, uri: str) -> MissingFileError:
    """Error for a missing file of a commit."""
    return MissingFileError(
        "a file of a completed commit is missing",
        table=uri,
        instant=file.instant,
        file=file.path,
        remedy="read again, as a cleaner may have removed it while the table was read; if it is still not there, check "
        "the table with `hudi verify`, and put the file back from a copy of the table.",
    )


def check_size(file: CommittedBaseFile, size: int, uri: str) -> None:
    """Raise CorruptFileError if a file's size differs from its commit's."""
    if file.size > 0 and 0 <= size != file.size:
        raise CorruptFileError(
            f"the file has {size} bytes, its commit says {file.size}",
            table=uri,
            instant=file.instant,
            file=file.path,
        )
