"""Table snapshot: configuration and timeline read once, files listed on demand.

A snapshot never refreshes itself: a new state of the table is a new snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError, MissingFileError, StaleSnapshotError
from hudi_format.file_names import is_base_file_name
from hudi_format.fork_safe import cached_property
from hudi_format.model import FileSlice, VisibleInstants
from hudi_format.storage import stable_reads
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import feature_gate
from hudi_timeline.file_system_view.archived_replacements import (
    ArchivedReplacements,
    Replacements,
    archived_replacements,
    with_archived,
)
from hudi_timeline.file_system_view.base_files import (
    CommittedBaseFile,
    FileView,
    Group,
    check_written,
    file_slices,
)
from hudi_timeline.file_system_view.listing import Listing, PartitionFilter, list_partition_files, list_table
from hudi_timeline.file_system_view.outlived_snapshot import (
    LOST,
    Found,
    refuse_outlived,
    replaced_in_archive,
)
from hudi_timeline.file_system_view.restores import Restores
from hudi_timeline.table_config import META_FOLDER, TableConfig, load
from hudi_timeline.timeline.active_timeline import ListedFolder, Timeline, latest_schema, load_timeline
from hudi_timeline.timeline.commit_files import CommitFiles, read_commit_files
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import DELTA_COMMIT, Instant

if TYPE_CHECKING:
    from hudi_format.schema.internal_schema import ReadEvolution

# Of all commits together: some 100 MB.
MOST_CACHED_STATS = 200_000
# How long a read waits for an upgrade that moves the timeline, instant by instant.
MOVING_S = 5.0
# How often the timeline is read anew where commits of it are undone meanwhile.
_TRIES = 5


class CommitCache:
    """Commit metadata by instant file, read once; also from the archive.

    It is found in the archive too, where it was moved to after the timeline was listed.  Several threads may ask it at
    once; two may both read what neither has.

    Attributes:
        archived: what files of the archive say of replaced file groups, by name, size and time of the file.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.archived: dict[tuple[str, int, int], Replacements] = {}
        self._read: dict[tuple[str, int], CommitMetadata] = {}
        self._stats = 0
        self._files: dict[tuple[str, int], CommitFiles] = {}
        self._kept: dict[tuple[str, int], CommitFiles] = {}

    def get(self, instant: Instant) -> CommitMetadata:
        """Metadata of an instant.

        Raises CorruptFileError, MissingFileError: see `read_commit`.
        """
        key = (instant.file_name, instant.mtime_ms)
        found = self._read.get(key)
        if found is None:
            try:
                found = read_commit(self._storage, instant)
            except MissingFileError:
                from hudi_timeline.timeline.archived_timeline import (
                    read_moved,  # few reads need the decoders of archives
                )

                moved = read_moved(self._storage, instant) if instant.completed else None
                if not isinstance(moved, CommitMetadata):
                    raise
                found = moved
            if self._stats > MOST_CACHED_STATS:
                self._read.clear()
                self._stats = 0
            self._read[key] = found
            self._stats += len(found.stats)
        return found

    def keep(self, instant: Instant, files: CommitFiles) -> None:
        """Store the file entries of an archived instant, which has no file of its own."""
        self._kept[instant.file_name, instant.mtime_ms] = files

    def files(self, instants: Sequence[Instant]) -> list[CommitFiles]:
        """File entries of instants, each read once; errors as `get`."""
        keys = [(i.file_name, i.mtime_ms) for i in instants]
        found: dict[tuple[str, int], CommitFiles] = {}
        new: list[tuple[tuple[str, int], Instant]] = []
        for key, instant in zip(keys, instants, strict=True):
            # Each look is one step: another thread may add to these, or begin them anew.
            known = self._kept.get(key) or self._files.get(key)
            if known is None and (whole := self._read.get(key)) is not None:
                known = CommitFiles.of(whole)  # not read again where the whole metadata is there already
            if known is None:
                new.append((key, instant))
            else:
                found[key] = known
        found.update(
            zip(
                (k for k, _ in new),
                read_commit_files(self._storage, [i for _, i in new], self.get),
                strict=True,
            )
        )
        if sum(len(f.files) for f in list(self._files.values())) > MOST_CACHED_STATS:
            self._files = {}
        self._files.update(found)
        return [found[k] for k in keys]


@dataclass(frozen=True, slots=True)
class CommittedFileGroups:
    """File groups as committed up to an instant.

    Attributes:
        newest: the newest base file of each file group that is not replaced.
        replaced: the instant that replaced a file group.
        paths: every base file that these commits wrote.
        partitions: where the newest base files lie, and log files.
    """

    newest: Mapping[Group, CommittedBaseFile]
    replaced: Mapping[Group, str]
    paths: frozenset[str]
    partitions: frozenset[str]


class Lister(Protocol):
    """Source of file listings."""

    def listing(self, wanted: PartitionFilter | None, also: Iterable[str]) -> Listing:
        """The listing as of `list_table`; unknown partitions in `also` are empty."""
        ...

    def view(self, wanted: PartitionFilter | None, also: Iterable[str]) -> tuple[FileView, list[str]]:
        """The base files, and the partitions listed, including `also`."""
        ...


@dataclass(frozen=True)
class TableSnapshot:
    """The table as of an instant.

    Attributes:
        known_schema: the schema where it was read with the snapshot, or is another one than the table's.
        as_of: files and replacements of later instants do not count; None for all completed ones.
        evolution: how older files are read by column id, where the table has a schema history and the read goes
            by it; see `schema_history.with_history`.
        lenient: committed files that are not there are passed over, as Apache Hudi does it.
        lister: what lists the table's files; None for storage itself.
        announced: a write that is shown as completed before it is, to those who check it.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    known_schema: pa.Schema | None = field(default=None, repr=False)
    as_of: str | None = None
    commits: CommitCache = field(compare=False, repr=False, default=None)  # type: ignore[assignment]
    evolution: ReadEvolution | None = field(compare=False, repr=False, default=None)
    lenient: bool = False
    lister: Lister | None = field(compare=False, repr=False, default=None)
    announced: str | None = None

    def __post_init__(self) -> None:
        if self.commits is None:
            object.__setattr__(self, "commits", CommitCache(self.storage))

    @cached_property
    def stored_schema(self) -> pa.Schema | None:
        """The table's schema at that instant, without meta columns; None where there is none.

        Read where it is asked for, and kept.  Errors as `latest_schema`.
        """
        if self.known_schema is not None:
            return self.known_schema
        storage, timeline, read = self.storage, self.timeline, self.commits.get
        schema = latest_schema(
            storage, timeline, self.config, self.as_of, read=read, archived=self.archived_schema
        )
        if schema is None and self.as_of is not None:
            # Before the first commit there were no rows, of the table's later schema.
            schema = latest_schema(storage, timeline, self.config, read=read)
        return schema

    def may_be_archived_since(self, instant: str) -> bool:
        """Whether commits of the snapshot that are newer than an active one may be archived.

        "" stands for no active one.  A savepointed commit may have stayed while later ones were archived.
        """
        if instant == self.as_of or not (instant or self.as_of):
            return False
        return bool(self.timeline.completed_writes()) and instant < self.timeline.first_active

    def archived_schema(self, since: str) -> tuple[Instant, CommitMetadata] | None:
        """Newest archived commit of the snapshot after an active one that has a schema, or None.

        Args:
            since: the newest active one that has a schema; "" for none.

        Raises:
            CorruptFileError, MissingFileError, UnsupportedError: the archive cannot be read.
        """
        if not self.may_be_archived_since(since):
            return None
        from hudi_timeline.timeline.archived_timeline import archived_schema  # few reads need the archive

        undone = cache(lambda: Restores.of(self.storage, self.timeline))
        return archived_schema(
            self.storage, self.config, since, self.as_of, unless=lambda t: undone().surely_undid(t)
        )

    @property
    def schema(self) -> pa.Schema:
        """`stored_schema`, empty where that is None."""
        return pa.schema([]) if self.stored_schema is None else self.stored_schema

    @property
    def has_merged_states(self) -> bool:
        """Whether rows of some state may lie in log files: the table is merge on read, or was."""
        return self.config.table_type == "MERGE_ON_READ" or any(
            i.action == DELTA_COMMIT for i in self.timeline.completed_writes()
        )

    def at(self, as_of: str | None) -> TableSnapshot:
        """The snapshot of the same table as of an instant."""
        return replace(self, as_of=as_of, known_schema=None)

    def reloaded(self) -> TableSnapshot:
        """A new snapshot with the same configuration; keeps the commits already read."""
        return load_snapshot(self.storage, self.config, commits=self.commits)

    def with_timeline(self, timeline: Timeline) -> TableSnapshot:
        """The snapshot with another timeline."""
        return replace(self, timeline=timeline, known_schema=None)

    @property
    def instants(self) -> tuple[Instant, ...]:
        """Completed writes of the snapshot, oldest first."""
        writes = self.timeline.completed_writes()
        return writes if self.as_of is None else tuple(i for i in writes if i.time <= self.as_of)

    @property
    def instant(self) -> str:
        """Newest completed write of the snapshot; "" where there is none."""
        instants = self.instants
        return instants[-1].time if instants else ""

    def visible(self) -> VisibleInstants:
        return self.timeline.visible()

    def written(self, without: Collection[str] = ()) -> CommittedFileGroups:
        """Committed file groups; reads each commit once.

        Args:
            without: partitions of which nobody asks for the files.
        """
        newest: dict[Group, CommittedBaseFile] = {}
        replaced: dict[Group, str] = {}
        paths: set[str] = set()
        with_logs: set[str] = set()
        instants = self.instants
        for instant, commit in zip(instants, self.commits.files(instants), strict=True):
            for partition, file_id, path, size, _ in commit.files:
                # A commit that names a file of another partition than it lies in is not left out by either.
                if partition in without and path.startswith(f"{partition}/"):
                    continue
                if is_base_file(path):
                    newest[partition, file_id] = CommittedBaseFile(path, size, instant.time)
                    paths.add(path)
                else:
                    with_logs.add(partition)
            for partition, file_ids in commit.replaced.items():
                for file_id in file_ids:
                    replaced[partition, file_id] = instant.time
                    newest.pop((partition, file_id), None)
        partitions = with_logs.union(p for p, _ in newest)
        return CommittedFileGroups(newest, replaced, frozenset(paths), frozenset(partitions))

    def _written_partitions(self) -> set[str]:
        """Partitions with active commits, listed whatever a metadata table says."""
        return {f.partition for c in self.commits.files(self.instants) for f in c.files}

    def _not_wanted(self, wanted: PartitionFilter | None) -> set[str]:
        """Partitions with active commits that a filter drops."""
        if wanted is None:
            return set()
        partitions = sorted(self._written_partitions())
        return {p for p, keep in zip(partitions, wanted.keep(partitions), strict=True) if not keep}

    def listing(
        self, wanted: PartitionFilter | None = None, *, written: CommittedFileGroups | None = None
    ) -> Listing:
        """Files in the table's partitions, or in the wanted ones, now."""
        written = written or self.written()
        if self.lister is not None:
            return self.lister.listing(wanted, self._written_partitions())
        return list_table(self.storage, self.config, wanted=wanted, also=written.partitions)

    def files(
        self, partitions: Iterable[str] | None = None, *, wanted: PartitionFilter | None = None
    ) -> pa.Table:
        """Base file of each file slice, as a `view.SCHEMA` table.

        Args:
            partitions: paths of the partitions to look at; None for all.
            wanted: or those that a filter admits.

        Raises:
            MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
        """
        written = self.written(self._not_wanted(wanted) if partitions is None else ())
        looked_at: Sequence[str]
        if partitions is None and self.lister is not None:
            view, looked_at = self.lister.view(wanted, self._written_partitions())
        else:
            files: Mapping[str, Sequence[FileInfo]]
            if partitions is None:
                files = self.listing(wanted, written=written).files
            else:
                files = list_partition_files(self.storage, partitions)
            view, looked_at = FileView.of_listing(files), list(files)
        only = None if partitions is None else looked_at
        return self.checked_latest_of(view, looked_at, written, partitions=only, wanted=wanted)

    def checked_latest_of(
        self,
        view: FileView,
        looked_at: Sequence[str],
        written: CommittedFileGroups,
        *,
        partitions: Collection[str] | None = None,
        wanted: PartitionFilter | None = None,
    ) -> pa.Table:
        """`latest_of` for freshly listed folders; `partitions` and `wanted` as in `checked`."""
        latest = pa.table({})

        def find() -> Mapping[Group, Found]:
            nonlocal latest
            latest = self.latest_of(view, looked_at, written=written)
            return BaseFiles(latest)

        self.checked(written, find, partitions=partitions, wanted=wanted)
        return latest

    def checked(
        self,
        written: CommittedFileGroups,
        find: Callable[[], Mapping[Group, Found]],
        *,
        logs: bool = False,
        partitions: Collection[str] | None = None,
        wanted: PartitionFilter | None = None,
    ) -> None:
        """Find file slices in listed folders, and check that none was deleted since.

        Args:
            find: gives what was found of each file group.
            logs: whether log files count.
            partitions: those that were listed; None for all.
            wanted: or those that a filter admits.

        Raises:
            StaleSnapshotError: files of this state were cleaned, or commits undone, since its timeline was read.
            MissingFileError, CorruptFileError: as `find`.
        """
        try:
            found = find()
        except MissingFileError as e:
            if not self.lenient:
                refuse_outlived(
                    self, written, dict, logs=logs, partitions=partitions, wanted=wanted, missed=e.file
                )
                self._say_if_lost(e)
            raise
        if not self.lenient:
            refuse_outlived(self, written, lambda: found, logs=logs, partitions=partitions, wanted=wanted)

    @contextmanager
    def of_its_state(self) -> Iterator[None]:
        """The reading of planned files, one of which may be gone with the state that they are of.

        Raises:
            StaleSnapshotError: it was cleaned, or its commit undone, since the timeline was read.
            MissingFileError: it is gone, and the state is not.
            CorruptFileError, UnsupportedError: what a cleaning did cannot be read.
        """
        try:
            yield
        except MissingFileError as e:
            if not isinstance(e, StaleSnapshotError):
                refuse_outlived(self, self.written(), dict, logs=True, missed=e.file)
                self._say_if_lost(e)
            raise

    def _say_if_lost(self, error: MissingFileError) -> None:
        """Say in an error that its file is lost, unless it is one of a folder that changes without the state."""
        if error.table == self.storage.uri and not error.file.startswith(f"{META_FOLDER}/"):
            error.details[LOST] = True

    @cached_property
    def archived_replacements(self) -> ArchivedReplacements:
        """Archived replacements of file groups whose files may be there still."""
        return archived_replacements(self)

    def latest_of(
        self,
        view: FileView,
        partitions: Sequence[str],
        *,
        written: CommittedFileGroups | None = None,
        replaced: Mapping[Group, str] | None = None,
    ) -> pa.Table:
        """Newest files of some partitions, checked against the commits.

        Args:
            replaced: the replaced file groups, also by archived instants, where they are known.
        """
        written = written or self.written()
        if replaced is None:
            replaced = with_archived(self, written.replaced, view)
        latest = view.latest(self.visible(), as_of=self.as_of, replaced=replaced, committed=written.paths)
        if not self.lenient:
            check_written(
                latest, written.newest, partitions, self.storage.uri, lambda: replaced_in_archive(self)
            )
        return latest

    def slices(self, partitions: Iterable[str] | None = None) -> list[FileSlice]:
        """File slices of the table or of some partitions, sorted by partition and file id."""
        return file_slices(self.files(partitions))


class BaseFiles(Mapping[Group, Found]):
    """File groups of a `view.SCHEMA` table, made on demand."""

    def __init__(self, files: pa.Table) -> None:
        self._files = files

    @cached_property
    def _instants(self) -> dict[Group, str]:
        columns = (self._files.column(n).to_pylist() for n in ("partition", "file_id", "instant"))
        return {(partition, file_id): instant for partition, file_id, instant in zip(*columns, strict=True)}

    def __getitem__(self, group: Group) -> Found:
        return Found(self._instants[group])

    def __iter__(self) -> Iterator[Group]:
        return iter(self._instants)

    def __len__(self) -> int:
        return len(self._instants)


def is_base_file(path: str) -> bool:
    """Whether the path of a write statistic is that of a base file."""
    return is_base_file_name(path[path.rfind("/") + 1 :])


def open_snapshot(storage: Storage, *, commits: CommitCache | None = None) -> TableSnapshot:
    """Snapshot of the table as it is now.

    Raises:
        NotAHudiTableError, CorruptFileError: as `table_config.load`.
        UnsupportedError: a table that this version would read wrong.
        ConcurrentWriterError: its timeline is being moved by an upgrade or a downgrade, for longer than a moment.
        StaleSnapshotError: its newest commits are undone faster than they can be read.
    """
    tries = 0
    while True:
        config, timeline = load_both(storage)
        try:
            feature_gate.check_read(storage, config, timeline)
            return snapshot_of(storage, config, timeline, commits=commits)
        except StaleSnapshotError:
            # A commit was undone between the listing and its reading: nobody has seen that state.
            tries += 1
            if tries == _TRIES:
                raise


def load_both(storage: Storage) -> tuple[TableConfig, Timeline]:
    """Consistent configuration and timeline; errors as `open_snapshot`."""
    until = time.monotonic() + MOVING_S
    while True:
        config = load(storage)
        try:
            return config, load_timeline(storage, config)
        except ConcurrentWriterError:
            if time.monotonic() > until:
                raise
        time.sleep(stable_reads.PAUSE_S)


def snapshot_of(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    as_of: str | None = None,
    *,
    commits: CommitCache | None = None,
) -> TableSnapshot:
    """Snapshot from a loaded configuration and timeline.

    Args:
        as_of: an instant time (digits); whether it can be answered is not checked here.
    """
    snapshot = TableSnapshot(storage, config, timeline, None, as_of, commits or CommitCache(storage))
    return replace(snapshot, known_schema=snapshot.schema)


def load_snapshot(
    storage: Storage,
    config: TableConfig | None = None,
    *,
    commits: CommitCache | None = None,
    listed: ListedFolder | None = None,
) -> TableSnapshot:
    """Snapshot for changing the table, without a feature check.

    Args:
        config: as it was read just now; read here where it is not given.
        listed: the folder `.hoodie`, where it was listed just now.

    Raises:
        NotAHudiTableError, CorruptFileError, ConcurrentWriterError: as `open_snapshot`.
    """
    if config is None:
        config, timeline = load_both(storage)
    else:
        timeline = load_timeline(storage, config, listed)
    return TableSnapshot(storage, config, timeline, None, None, commits or CommitCache(storage))
