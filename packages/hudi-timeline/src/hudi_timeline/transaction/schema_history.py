"""Schema history of a table with schema on read, which each commit goes on with.

From a table's first change of columns by id on, every commit names the newest version (`latest_schema`) and has a file
of all of them, `.hoodie/.schema/<instant>.schemacommit`.  The file is there before the commit is visible, and counts
only where it is; what a write that failed leaves is removed by the next one.

Source: saveInternalSchema of BaseHoodieWriteClient and FileBasedInternalSchemaStorageManager of Apache Hudi 0.15.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.meta_fields import META_COLUMNS, META_SCHEMA, with_meta
from hudi_format.storage.open import flush
from hudi_format.storage.stable_reads import read_whole
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.file_system_view.table_schema import (
    FOLDER,
    SUFFIX,
    history_file,
    refuse_unwritable,
    with_history,
)
from hudi_timeline.timeline.commit_files import LATEST_SCHEMA
from hudi_timeline.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudi_timeline.timeline.instant import INSTANT_DIGITS

if TYPE_CHECKING:
    from hudi_format.schema.internal_schema import ReadEvolution, SchemaVersion

ALTER_SCHEMA = "ALTER_SCHEMA"
"""Apache Hudi's name of the operation that changes columns and no rows."""


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """A table's schema history at a moment.

    Attributes:
        text: of the newest schemacommit; "" where there is none.
        versions: oldest first; () where the table has no history.
    """

    text: str = ""
    versions: tuple[SchemaVersion, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.versions)

    @property
    def most(self) -> int:
        """The greatest id that any column has or had."""
        return max((v.most for v in self.versions), default=-1)

    def at(self, instant: str) -> SchemaVersion:
        """The version that files of an instant are to have."""
        numbers = [v.version for v in self.versions]
        return self.versions[max(bisect_right(numbers, number_of(instant)) - 1, 0)]


def number_of(instant: str) -> int:
    """Number of a version that begins with an instant."""
    return int(instant[:INSTANT_DIGITS])


def load_history(snapshot: TableSnapshot) -> SchemaHistory:
    """History of a table; empty where it has none.

    Raises:
        CorruptFileError, MissingFileError: it cannot be read.
    """
    path = history_file(snapshot)
    if not path:
        return SchemaHistory()
    from hudi_format.schema.internal_schema import parse_versions

    def parse(data: bytes) -> SchemaHistory:
        versions = parse_versions(data)
        return SchemaHistory(data.decode(), versions)

    try:
        return read_whole(snapshot.storage, path, parse)
    except CorruptFileError as e:
        e.advise("restore it from a backup.")
        raise e.at(table=snapshot.storage.uri, file=path) from None


@dataclass(frozen=True, slots=True)
class SchemaHistoryFile:
    """Participant of a commit: the file of all versions that goes with it.

    It counts only where the commit is completed.

    Attributes:
        snapshot: the table under the lock, without the commit.
    """

    snapshot: TableSnapshot
    instant: str
    text: str
    name: str = "schema history"

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.instant}{SUFFIX}"

    def prepare(self, _: object, __: object) -> None:
        self.store()

    def publish(self) -> None:
        return

    def undo(self) -> None:
        self.snapshot.storage.delete(self.path)
        flush(self.snapshot.storage, [self.path], written=False)

    def store(self) -> None:
        """Write the file, and remove those of commits that never were or are archived."""
        storage, writes = self.snapshot.storage, self.snapshot.timeline.completed_writes()
        active = {i.time for i in writes}
        for entry in storage.list(FOLDER):
            if not entry.is_dir and entry.name.partition(".")[0].partition("_")[0] not in active:
                storage.delete(f"{FOLDER}/{entry.name}")
        storage.publish(self.path, self.text.encode())
        flush(storage, [self.path])


def continued(
    snapshot: TableSnapshot, instant: str, metadata: CommitMetadata
) -> tuple[CommitMetadata, tuple[SchemaHistoryFile, ...]]:
    """Commit metadata that goes on with the history, and its file; () where there is none.

    A change of columns brings the version in its metadata, and may be the first.

    Args:
        snapshot: the table under the lock, without the commit.

    Raises:
        CorruptFileError, MissingFileError: the history cannot be read.
        UnsupportedError: a column that it has no name for.
    """
    history = load_history(snapshot)
    given = metadata.extra.get(LATEST_SCHEMA) if metadata.operation == ALTER_SCHEMA else None
    if not history and given is None:
        return metadata, ()
    from hudi_format.schema.internal_schema import parse_version
    from hudi_format.schema.schema_versions import (
        history_text,
        latest_text,
        numbered,
        same_columns,
        version_of,
    )

    if given is not None:
        whole = history_text(history.text or first_version(snapshot), parse_version(given))
        return metadata, (SchemaHistoryFile(snapshot, instant, whole),)
    wanted = newest = history.at(instant)
    extra = {}
    if metadata.schema_text:
        schema = with_meta(from_avro(metadata.schema_text))
        extra[SCHEMA_KEY] = _with_meta_fields(metadata.schema_text)
        try:
            # Columns that a later commit has brought have its ids here too.
            known = numbered(numbered(schema, history.versions[-1]), newest)
            wanted = version_of(known, number_of(instant), history.most)
        except HudiError as e:
            raise e.at(table=snapshot.storage.uri, instant=instant) from None
    whole = history.text
    if same_columns(wanted, newest):
        wanted = newest
    else:
        whole = history_text(history.text, wanted)
    extra[LATEST_SCHEMA] = latest_text(wanted)
    return replace(metadata, extra={**metadata.extra, **extra}), (
        SchemaHistoryFile(snapshot, instant, whole),
    )


def _with_meta_fields(text: str) -> str:
    """Avro text with the meta columns, and all else as it was, such as defaults."""
    record = json.loads(text)
    meta = json.loads(to_avro(META_SCHEMA, "t"))["fields"]
    fields = [*meta, *(f for f in record["fields"] if f["name"] not in META_COLUMNS)]
    return json.dumps({**record, "fields": fields}, separators=(",", ":"), ensure_ascii=False)


def first_version(snapshot: TableSnapshot) -> SchemaVersion:
    """Version of a table that has no history yet: its columns, numbered.

    Raises:
        UnsupportedError: a column that a history has no name for.
    """
    from hudi_format.schema.schema_versions import FIRST, version_of

    return version_of(with_meta(snapshot.stored_schema or pa.schema([])), FIRST)


def written_evolution(snapshot: TableSnapshot, schema: pa.Schema, instant: str) -> ReadEvolution | None:
    """Mapping of older files to the rows that a write makes; None where names tell all.

    Args:
        schema: that the write gives its files, without meta columns.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedError: the history cannot be read, or gone on with.
    """
    if not history_file(snapshot):
        return None
    evolution = with_history(snapshot, None).evolution
    if evolution is None:
        return None
    from hudi_format.schema.schema_versions import numbered, version_of

    most = max(v.most for v in evolution.versions)
    wanted = version_of(numbered(with_meta(schema), evolution.wanted), number_of(instant), most)
    return replace(evolution, wanted=wanted)


def refuse_unwritable_schema(snapshot: TableSnapshot) -> None:
    """Refuse writes to a schema that they could not go on with.

    Raises:
        UnsupportedError: columns that are read, not written.
        CorruptFileError, MissingFileError: the schema or its history cannot be read.
    """
    refuse_unwritable(snapshot)
    load_history(snapshot)


def as_planned(snapshot: TableSnapshot, instant: str) -> TableSnapshot:
    """Snapshot with the columns as of a plan's instant, of which the files that it makes count.

    They are read by the ids of the version of that time, whatever columns later commits have brought.

    Raises:
        CorruptFileError, MissingFileError: the history cannot be read.
        UnsupportedError: no commit that is older than the plan says its columns any more.
    """
    history = load_history(snapshot)
    if not history or history.versions[-1].version <= number_of(instant):
        return snapshot
    then = snapshot.at(instant)
    if not any(snapshot.commits.get(i).schema_text for i in then.instants):
        refuse_older_than_history(snapshot, instant)
    return then


def refuse_older_than_history(snapshot: TableSnapshot, instant: str) -> None:
    """Refuse to complete an action that was planned before the newest change of columns.

    Its files would count as of that time, and be read by the ids of another version.

    Raises:
        UnsupportedError: with what to do instead.
    """
    history = load_history(snapshot)
    if history and history.versions[-1].version > number_of(instant):
        raise UnsupportedError(
            f"{instant} was planned before the table's columns were changed ({history.versions[-1].version})",
            table=snapshot.storage.uri,
            instant=instant,
            remedy="execute it with Apache Hudi, or unschedule it and plan it anew.",
        )
