"""The active timeline of a table at one moment.

One listing of `.hoodie`, or in layout 2 of `.hoodie/timeline`, makes a `Timeline`; it never refreshes itself.
Reading the files of instants is left to the functions below and to `hudi_timeline.timeline`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from hudi_format.errors import ConcurrentWriterError, CorruptFileError, HudiError, UnsupportedError
from hudi_format.model import NOT_OVERWRITTEN, OverwrittenInstants, VisibleInstants
from hudi_format.schema.avro import from_avro
from hudi_format.schema.meta_fields import without_meta
from hudi_format.storage import stable_reads
from hudi_format.storage.local import LocalStorage, list_at_once
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline.display.html_view import rows_view, titled
from hudi_timeline.table_config import (
    BACKUP_FILE,
    DEFAULT_TIMELINE,
    META_FOLDER,
    PROPERTIES_FILE,
    TIMELINE_PATH,
    TableConfig,
)
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import (
    ACTIONS,
    CLUSTERING,
    COMPACTION,
    COMPLETED,
    REPLACE_COMMIT,
    REQUESTED,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    empty_file_error,
    format_instant,
    instant_key,
    parse_instant,
    parse_instant_file,
    unknown_action,
    zone_of,
)

_log = logging.getLogger("hudi")


# How files of instants end that are requested or inflight.
_LOWER = (".requested", ".inflight")

_KNOWN_ENDINGS = frozenset(f"{a}{s}" for a in (*ACTIONS, CLUSTERING) for s in ("", *_LOWER)) | {"inflight"}

# The metadata table's: its records hold unions of several types.
HFILE = "HFILE"

# CREATE TABLE of Apache Hudi over a table leaves nothing in hoodie.properties that it does not know.
_OVERWRITTEN = re.compile(r"\.overwritten_(?P<until>\d{14,17})(?:_(?P<by>\d{14,17}))?\Z")


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of a table, oldest first.

    `instants` has one entry for each (time, action), in the highest state whose file is there.  `overwritten` are
    instants of the table whose place this one took.
    """

    instants: tuple[Instant, ...] = ()
    _files: tuple[Instant, ...] = ()
    # Files of lower states of completed instants, which few ask for: most of what a long timeline lists.
    _lower: tuple[FileInfo, ...] = ()
    _folder: str = field(default="", compare=False)
    _writes: tuple[Instant, ...] = field(default=(), compare=False, repr=False)
    # Where sizes and times of `_lower` are still to be asked for.
    _storage: Storage | None = field(default=None, compare=False, repr=False)
    # Names of all that was listed beside instants in `.hoodie`; None where that is not known.
    _beside: frozenset[str] | None = field(default=None, compare=False, repr=False)
    overwritten: OverwrittenInstants = NOT_OVERWRITTEN

    def __repr__(self) -> str:
        pending = sum(not i.completed for i in self.instants)
        last = f", newest {self.instants[-1].time}" if self.instants else ""
        return f"Timeline({len(self.instants):,} instants, {pending:,} pending{last})"

    def _repr_html_(self) -> str:
        names = ("instant", "action", "state", "completed at")
        rows = [(i.time, i.action, i.state, i.completion) for i in reversed(self.instants)]
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})
        return titled(repr(self), rows_view(table if any(columns[-1]) else table.drop_columns(names[-1])))

    @property
    def files(self) -> tuple[Instant, ...]:
        """All files of instants, oldest first."""
        if not self._lower:
            return self._files
        return self._with(self._files, self._lower)

    def files_of(self, keys: Collection[tuple[str, str]]) -> tuple[Instant, ...]:
        """Files of some instants, oldest first; no other is asked for.

        Args:
            keys: times and comparable actions.
        """
        lower = [e for e in self._lower if instant_key(e.name) in keys]
        return self._with([f for f in self._files if (f.time, f.comparable_action) in keys], lower)

    def _with(self, files: Iterable[Instant], lower: Iterable[FileInfo]) -> tuple[Instant, ...]:
        known = (_parsed(_known(e, self._folder, self._storage), self._folder) for e in lower)
        return tuple(sorted((*files, *(i for i in known if i is not None)), key=Instant.order))

    @classmethod
    def of_listing(
        cls, entries: Iterable[FileInfo], folder: str, config: TableConfig, storage: Storage | None = None
    ) -> Timeline:
        """The timeline of a folder's files.

        Args:
            folder: the timeline's, below the table; `.hoodie` itself is one of layout 1.
            config: the table's.
            storage: what says size and time of requested and inflight files, where the listing does not.
        """
        zone = zone_of(config.timezone)
        if storage is None:  # then the entries say all
            found = _known_timeline(tuple(entries), folder, zone)
        else:
            found = cls._of_listing(entries, folder, zone, storage)
        newer = config.overwritten.until > found.overwritten.until
        return replace(found, overwritten=config.overwritten) if newer else found

    @classmethod
    def _of_listing(
        cls, entries: Iterable[FileInfo], folder: str, zone: tzinfo | None, storage: Storage | None
    ) -> Timeline:
        found: list[Instant] = []
        lower: list[FileInfo] = []
        waiting: list[FileInfo] = []
        beside: set[str] = set()
        for entry in entries:
            if entry.is_dir:
                beside.add(entry.name)
                continue
            if entry.name.endswith(_LOWER):
                waiting.append(entry)
                continue
            instant = _parsed(entry, folder)
            if instant is not None and folder != META_FOLDER and not instant.completion:
                # Left by the table's upgrade from version 6, where the modification time is all there is.
                instant = replace(instant, completion=modified_at(instant, zone))
            if instant is not None:
                found.append(instant)
            else:
                beside.add(entry.name)
        done = {(i.time, i.comparable_action) for i in found}
        for entry in waiting:
            if instant_key(entry.name) in done:
                lower.append(entry)
            else:
                pending = _parsed(_known(entry, folder, storage), folder)
                if pending is not None:
                    found.append(pending)
        return replace(
            cls.of_files(found),
            _lower=tuple(lower),
            _folder=folder,
            _storage=storage,
            _beside=frozenset(beside) if folder == META_FOLDER else None,
            overwritten=overwritten_by_names(beside if folder == META_FOLDER else ()),
        )

    @classmethod
    def of_files(cls, files: Iterable[Instant]) -> Timeline:
        """The timeline of these files."""
        ordered = tuple(sorted(files, key=Instant.order))
        highest: dict[tuple[str, str], Instant] = {}
        for instant in ordered:  # ascending states: the last one of a group is the highest
            highest[instant.time, instant.comparable_action] = instant
        instants = tuple(highest.values())
        writes = tuple(i for i in instants if i.state == COMPLETED and i.action in WRITE_ACTIONS)
        return cls(instants, ordered, _writes=writes)

    def with_files(self, files: Iterable[Instant]) -> Timeline:
        """The timeline of the same table with these files alone."""
        return replace(Timeline.of_files(files), overwritten=self.overwritten)

    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commit, deltacommit and replacecommit instants."""
        return self._writes

    def pending_writes(self) -> tuple[Instant, ...]:
        """Pending commit, deltacommit and replacecommit instants, clusterings included."""
        return tuple(
            i
            for i in self.instants
            if not i.completed and (i.action in WRITE_ACTIONS or i.action == CLUSTERING)
        )

    def of(self, action: str) -> tuple[Instant, ...]:
        """Instants of one action, in any state."""
        return tuple(i for i in self.instants if i.action == action)

    def pending(self, action: str) -> tuple[Instant, ...]:
        """Pending instants of one action."""
        return tuple(i for i in self.of(action) if not i.completed)

    def completed(self, action: str) -> tuple[Instant, ...]:
        """Completed instants of one action."""
        return tuple(i for i in self.of(action) if i.completed)

    @property
    def savepoints(self) -> list[str]:
        """Savepointed commits, oldest first."""
        return sorted(i.time for i in self.completed(SAVEPOINT))

    def lacks(self, name: str) -> bool:
        """Whether `.hoodie` is known to have lacked a file or folder at the listing."""
        return self._beside is not None and name.partition("/")[0] not in self._beside

    def find(self, time: str) -> Instant | None:
        """The instant at a time, writes before others, or None."""
        found = [i for i in self.instants if i.time == time]
        return next((i for i in found if i.action in WRITE_ACTIONS), found[0] if found else None)

    def has_file(self, file_name: str) -> bool:
        """Whether a file of an instant was listed; the storage is not asked."""
        lower = (e for e in self._lower if e.name == file_name)
        return any(f.file_name == file_name for f in self._files) or any(
            _parsed(e, self._folder) is not None for e in lower
        )

    @property
    def first_active(self) -> str:
        """The time before which all of the table was archived, hence completed; "" if unknown.

        Whether an instant was archived says `archived`.  It is the oldest write in any state: archival stops before the
        oldest pending one.  A savepointed commit may have stayed while later ones were archived, so it does not count;
        where no other is completed, as after a restore to it, the newest of them does: what came after it was undone.
        """
        saved = {i.time for i in self.instants if i.action == SAVEPOINT}
        writes = WRITE_ACTIONS | {COMPACTION, CLUSTERING}
        found = [i for i in self.instants if i.action in writes]
        unsaved = [i for i in found if i.time not in saved]
        kept = [] if any(i.completed for i in unsaved) else [i.time for i in found if i.time in saved][-1:]
        return min((*(i.time for i in unsaved), *kept), default="")

    @property
    def newest_time(self) -> str:
        """Greatest time of any instant in any state; "" for an empty timeline."""
        return max((i.time for i in self.instants), default="")

    def visible(self) -> VisibleInstants:
        """Instants whose files are visible to a read."""
        return self._with_archived(i.time for i in self.completed_writes())

    def archived(self) -> VisibleInstants:
        """Instants that were archived, hence completed: the table's before the active timeline."""
        return self._with_archived(())

    def _with_archived(self, completed: Iterable[str]) -> VisibleInstants:
        return VisibleInstants(frozenset(completed), self.first_active, self.overwritten)


def overwritten_path(overwritten: OverwrittenInstants) -> str:
    """Path of the empty file whose name says which instants were overwritten."""
    return f"{META_FOLDER}/.overwritten_{'_'.join(filter(None, (overwritten.until, overwritten.by)))}"


def overwritten_by_names(names: Iterable[str]) -> OverwrittenInstants:
    """The overwritten instants that such a file among others says."""
    found = (OverwrittenInstants(m["until"], m["by"] or "") for m in map(_OVERWRITTEN.match, names) if m)
    return max(found, key=lambda o: o.until, default=NOT_OVERWRITTEN)


# Each step of a write lists the timeline anew, which seldom has changed since.
@lru_cache(maxsize=8)
def _known_timeline(entries: tuple[FileInfo, ...], folder: str, zone: tzinfo | None) -> Timeline:
    return Timeline._of_listing(entries, folder, zone, None)


class ListedFolder(NamedTuple):
    """Entries of a timeline's folder, and the storage for their missing sizes and times."""

    entries: Sequence[FileInfo]
    asked: Storage | None

    def has(self, path: str) -> bool:
        """Whether the folder has a file or folder; `path` is below the table."""
        name = path.rpartition("/")[2]
        return any(e.name == name for e in self.entries)


def load_timeline(storage: Storage, config: TableConfig, listed: ListedFolder | None = None) -> Timeline:
    """The current active timeline, from one listing.

    Args:
        listed: the folder `.hoodie`, where it was listed just now.

    Raises:
        CorruptFileError: a completed write whose file is empty; a table of version 8 or later whose timeline's
            folder is not there.
        UnsupportedError: a layout that this release does not know.
        ConcurrentWriterError: the timeline is being moved by an upgrade or a downgrade of the table.
    """
    if not config.version.agrees:
        raise UnsupportedError(
            f"table version {config.version} with timeline layout {config.version.layout} cannot be read",
            table=storage.uri,
            remedy="correct hoodie.table.version or hoodie.timeline.layout.version: layout 1 goes with the versions "
            "up to 6, layout 2 with 8 and 9.",
        )
    folder = config.timeline_folder
    if listed is None or folder != META_FOLDER:
        listed = list_folder(storage, folder)
    entries, asked = listed
    _refuse_half_moved(storage, config, entries)
    if folder == META_FOLDER and not any(e.name in _PROPERTIES for e in entries):
        raise ConcurrentWriterError(
            "the table disappeared during the read: it is being overwritten or deleted",
            table=storage.uri,
            remedy="try again when that is done.",
        )
    if (
        not entries
        and config.version.has_timeline_folder
        and storage.is_local
        and storage.info(folder) is None
    ):
        # Object stores have no empty folders: there nothing is told from nothing.
        raise CorruptFileError(
            f"the timeline's folder {folder} is missing",
            table=storage.uri,
            file=folder,
            remedy=f"restore the folder from a backup, or correct {TIMELINE_PATH} in hoodie.properties.",
        )
    for name in _unknown(e.name for e in entries if not e.is_dir):
        _log.warning(
            "%s: %s is of an action that this release does not know, and is passed over", storage.uri, name
        )
    timeline = Timeline.of_listing(entries, folder, config, asked)
    # Apache Hudi makes the file of a completed instant and then fills it: where renaming is not its way, a listing may
    # fall in between.
    until, is_last = time.monotonic() + stable_reads.PATIENCE_S, False
    while (empty := next((i for i in timeline.completed_writes() if i.size == 0), None)) is not None:
        if is_last or not stable_reads.may_be_filled(storage, empty.path):
            raise empty_file_error(empty, storage.uri)
        is_last = time.monotonic() > until  # this process may have been held up too
        time.sleep(stable_reads.PAUSE_S)
        entries, asked = list_folder(storage, folder)
        timeline = Timeline.of_listing(entries, folder, config, asked)
    return timeline


_PROPERTIES = {p.rpartition("/")[2] for p in (PROPERTIES_FILE, BACKUP_FILE)}


def _refuse_half_moved(storage: Storage, config: TableConfig, entries: Iterable[FileInfo]) -> None:
    """Raise while the timeline is being moved between the folders of two layouts.

    An upgrade to version 8, or a downgrade from it, moves instants one by one and says the new version last: a table
    with half a timeline, or none, would lack rows.
    """
    if not config.version.has_timeline_folder:
        other = f"{META_FOLDER}/{DEFAULT_TIMELINE}"
        if not any(e.is_dir and e.name == DEFAULT_TIMELINE for e in entries):
            return
    elif storage.is_local:  # on an object store that is another request of each read
        other = META_FOLDER
    else:
        return
    moved = (_parsed(e, other) for e in storage.list(other) if not e.is_dir)
    if any(i is not None and i.completed for i in moved):
        raise ConcurrentWriterError(
            f"an upgrade or downgrade is under way: the version is {config.version}, and instants are in {other}",
            table=storage.uri,
            file=other,
            remedy="try again when it is done; if its writer died, let Apache Hudi do the upgrade or downgrade again.",
        )


def _unknown(names: Iterable[str]) -> Iterator[str]:
    """File names of unknown actions."""
    return (n for n in names if n.partition(".")[2] not in _KNOWN_ENDINGS and unknown_action(n))


def list_folder(storage: Storage, folder: str = META_FOLDER) -> ListedFolder:
    """Listing of a timeline's folder.

    Two of three files are of lower states of completed instants, and asking a local disk for each takes most of the
    time of a listing.
    """
    if type(storage) is LocalStorage:
        return ListedFolder(list_at_once(storage, folder, unless=_LOWER), storage)
    return ListedFolder(storage.list(folder), None)


def _known(entry: FileInfo, folder: str, storage: Storage | None) -> FileInfo:
    """The entry with its size and time; unchanged where the file is gone."""
    return entry if storage is None else storage.info(f"{folder}/{entry.name}") or entry


@lru_cache(maxsize=4096)
def _parsed(entry: FileInfo, folder: str) -> Instant | None:
    return parse_instant_file(entry.name, folder, mtime_ms=entry.mtime_ms, size=entry.size)


def modified_at(instant: Instant, zone: tzinfo | None) -> str:
    """Modification time of the instant's file, as an instant time of that zone."""
    return format_instant(datetime.fromtimestamp(instant.mtime_ms / 1000, zone))


def completed_at(instant: Instant, zone: tzinfo | None) -> str:
    """Completion time of a completed instant, as an instant time of the table's zone.

    Before version 8 the modification time of its file is all that says it; its own time where the storage knows none.
    """
    return instant.completion or (modified_at(instant, zone) if instant.mtime_ms else instant.time)


def completion_ms(instant: Instant, zone: tzinfo | None) -> int:
    """Completion time in milliseconds since 1970.

    `zone` is the table's, None the machine's.
    """
    try:
        moment = parse_instant(instant.completion)
    except ValueError:
        return instant.mtime_ms
    return round(moment.replace(tzinfo=zone).timestamp() * 1000)


def is_clustering(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether a pending replacecommit is a clustering, by its requested file or layout 2 name."""
    if instant.action == CLUSTERING:
        return True
    if instant.action != REPLACE_COMMIT:
        return False
    name = f"{instant.time}.{REPLACE_COMMIT}.{REQUESTED.lower()}"
    files = timeline.files_of({(instant.time, instant.comparable_action)})
    requested = next((f for f in files if f.file_name == name), None)
    if requested is None or requested.size == 0:
        return False
    from hudi_timeline.timeline.avro_files import plans_clustering, read_record

    try:
        request = read_record(storage, "HoodieRequestedReplaceMetadata", requested.path, instant.time)
    except FileNotFoundError:  # rolled back since the listing
        return False
    return plans_clustering(request)


def resizes_buckets(storage: Storage, clustering: Instant) -> bool:
    """Whether a pending clustering only splits and merges buckets of consistent hashing."""
    from hudi_timeline.timeline.avro_files import read_record, resizes_alone

    try:
        request = read_record(
            storage, "HoodieRequestedReplaceMetadata", clustering.path_in(REQUESTED), clustering.time
        )
    except FileNotFoundError:  # executed, or taken back
        return False
    return resizes_alone(request)


def latest_schema(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    as_of: str | None = None,
    *,
    read: Callable[[Instant], CommitMetadata] | None = None,
    archived: Callable[[str], tuple[Instant, CommitMetadata] | None] = lambda _: None,
) -> pa.Schema | None:
    """The table's schema without meta columns; None where the table has none.

    Args:
        read: gives a commit's metadata, for callers that keep them; `read_commit` otherwise.
        archived: gives the newest archived commit with a schema that is newer than an instant, where there is one.

    The newest completed write (up to `as_of`) that carries a schema decides, then
    `hoodie.table.create.schema`, then the footer of the newest base file.  Of a time before the active timeline, or
    behind a savepoint, the archive knows the schema: an older one lacks the columns that came later.

    Source: TableSchemaResolver of 0.15.
    """
    writes = [i for i in timeline.completed_writes() if as_of is None or i.time <= as_of]
    newest_file = ""
    newest: tuple[Instant, CommitMetadata] | None = None
    for instant in reversed(writes):
        metadata = read_commit(storage, instant) if read is None else read(instant)
        if metadata.table_schema_text:
            newest = instant, metadata
            break
        if not newest_file:
            paths = (s.path for stats in metadata.partition_to_stats.values() for s in stats)
            newest_file = next((p for p in paths if p.endswith(".parquet")), "")
    newest = archived("" if newest is None else newest[0].time) or newest
    if newest is not None:
        instant, metadata = newest
        try:
            return _table_schema(
                from_avro(metadata.schema_text, times_as_numbers=config.base_file_format == HFILE), config
            )
        except HudiError as e:
            raise e.at(table=storage.uri, instant=instant.time, file=instant.path) from None
    if config.create_schema:
        try:
            return _table_schema(from_avro(config.create_schema), config)
        except HudiError as e:
            raise e.at(table=storage.uri, file=PROPERTIES_FILE) from None
    if newest_file:
        from hudi_format.parquet.footer import read_footer

        footer = read_footer(storage, newest_file)
        return _table_schema(from_avro(footer.avro_schema) if footer.avro_schema else footer.schema, config)
    return None


def _table_schema(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    schema = without_meta(schema)
    if config.drop_partition_columns:  # then the commits' schema lacks them; they read back as text
        for name in config.partition_fields:
            if name not in schema.names:
                schema = schema.append(pa.field(name, pa.string()))
    return schema
