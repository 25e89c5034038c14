"""Index choice of a write, and the index recorded in the table.

A table whose keys are unique over all partitions stays so only if every upsert looks in all of them.  So a global
index stands in hoodie.properties, which Apache Hudi's writes, upgrades and metadata tables leave alone; and each
commit says its index, for where the properties were made anew (by Apache Hudi 0.15's CREATE TABLE over a table that
is there): then the newest commit that says one counts, an archived one too.  A write that names no index goes on with
the global one; one that names an index within partitions is refused.  A table that never said any is written with
SIMPLE, as Apache Hudi on Spark does it.

A table of the index BUCKET is written with it always: any other index would put a key outside of its bucket.

Source: FAQ, "Can I switch from one index type to another"; apache/hudi#13241 for what silence about it costs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    HudiError,
    MissingFileError,
    UnsupportedError,
)
from hudi_format.keygen.key_generator import KeySpec
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import (
    BUCKET,
    CUSTOM,
    GLOBAL_BLOOM,
    GLOBAL_KINDS,
    GLOBAL_SIMPLE,
    KINDS,
    RECORD_INDEX,
    SIMPLE,
    LookupCount,
)
from hudi_timeline import table_config
from hudi_timeline.file_system_view import bucket_settings
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.file_options import INDEX_SWITCH, INDEX_TYPE, RECORD_UPDATE_PARTITION
from hudi_timeline.options.write_options import LOOKS_UP
from hudi_timeline.table_config import INDEX, INDEX_CLASS, PROPERTIES_FILE, TableConfig, index_of
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.transaction.transaction import Transaction

log = logging.getLogger("hudi")

# In the commit's extraMetadata.
RECORDED = INDEX


def recorded_index(properties: Mapping[str, str], commits: Iterable[Mapping[str, str]] = ()) -> str | None:
    """The recorded index of a table, or None.

    Args:
        properties: of the table.
        commits: what its commits say beside files (`CommitMetadata.extra`), newest first; asked only as far as needed,
            and not at all where the properties say the index.
    """
    said = index_of(properties)
    if said:
        return said
    return next((extra[RECORDED] for extra in commits if extra.get(RECORDED) in KINDS), None)


def remembered_index(snapshot: TableSnapshot, *, far: bool) -> tuple[str | None, bool]:
    """Recorded index of a table, and whether archived commits had to be read.

    Args:
        far: go back beyond the newest commit, where neither it nor the properties say an index.

    Raises:
        CorruptFileError, MissingFileError: of an active commit; an archive that cannot be read is passed over.
    """
    storage, table = snapshot.storage, snapshot.config
    newest_first = snapshot.timeline.completed_writes()[::-1]
    asked = newest_first if far else newest_first[:1]
    found = recorded_index(table.properties, (snapshot.commits.get(i).extra for i in asked))
    if found is not None or not far:
        return found, False
    from hudi_timeline.timeline.archived_timeline import (  # few writes need its decoders
        archive_files,
        archived_extra,
    )

    if snapshot.timeline.lacks(table.archive_folder) or not archive_files(storage, table):
        return None, False
    try:
        return recorded_index({}, archived_extra(storage, table)), True
    except (CorruptFileError, MissingFileError, UnsupportedError) as e:
        log.warning("%s: archived commits are not asked for the table's index: %s", storage.uri, e)
        return None, True


def choose_index(
    config: WriteConfig, recorded: str | None, *, new_table: bool, table: str, bucketed: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Index of a write, with warnings.

    Args:
        recorded: what `recorded_index` says.
        new_table: whether nothing was written to it yet.
        table: for messages.
        bucketed: a file id that shows a bucket index, where the table remembers none.

    Raises:
        ConflictingOptionError: an index within partitions is named for a table of a global one, or another one for a
            table of BUCKET, or the other way round.
        UnsupportedError: the table remembers an index that this version does not know.
    """
    named = config.index_type
    if recorded is not None and recorded not in KINDS and not (named and config.index_switch):
        raise UnsupportedError(
            f"the table is written with the index {recorded}, which this version does not know",
            table=table,
            file=PROPERTIES_FILE,
            remedy=f"write it with the version that made it so; if its keys need not be unique over all partitions, "
            f"set {INDEX_TYPE} and {INDEX_SWITCH}=true.",
            option=INDEX_TYPE,
        )
    if recorded == BUCKET or (recorded is None and bucketed):
        if named not in (None, BUCKET):
            seen = (
                "is written with BUCKET"
                if recorded
                else f"has file ids of a bucket index, such as {bucketed}"
            )
            raise ConflictingOptionError(
                f"the table {seen}: {named} would write keys to file groups of other buckets",
                table=table,
                remedy=f'set {INDEX_TYPE}=BUCKET, or write the table anew (mode "overwrite").',
                option=INDEX_TYPE,
            )
        return BUCKET, ()
    if named == BUCKET and recorded is not None and not new_table:
        raise ConflictingOptionError(
            f"the table is written with {recorded}: its file groups are no buckets, in which {BUCKET} would look for "
            "a key",
            table=table,
            remedy=f'set {INDEX_TYPE}={recorded} or omit it, or write the table anew (mode "overwrite").',
            option=INDEX_TYPE,
        )
    if recorded is None or recorded not in GLOBAL_KINDS:
        kind = named or SIMPLE
        if kind in GLOBAL_KINDS and not new_table and config.operation in LOOKS_UP:
            return kind, (
                f"the last commit was not written with a global index: a key that stands in several partitions is "
                f"changed in each of them by {kind}",
            )
        return kind, ()
    if named is None:
        return recorded, ()
    if named in GLOBAL_KINDS or config.operation not in LOOKS_UP:
        return named, ()
    if not config.index_switch:
        raise ConflictingOptionError(
            f"the table is written with {recorded}, whose keys are unique over all partitions; {named} would not "
            "find a key in another partition and write it a second time",
            table=table,
            remedy=f"set {INDEX_TYPE}={recorded} or omit it; to give up unique keys, set {INDEX_SWITCH}=true.",
            option=INDEX_TYPE,
        )
    return named, (
        f"keys were unique over all partitions with {recorded}; with {named} they no longer need be",
    )


def moves_records(config: WriteConfig, kind: str, key_spec: KeySpec) -> bool:
    """Whether a record moves whose partition changed; without partitions none does."""
    moves = {
        GLOBAL_SIMPLE: config.simple_update_partition,
        GLOBAL_BLOOM: config.bloom_update_partition,
        RECORD_INDEX: config.record_update_partition,
        CUSTOM: config.record_update_partition,
    }
    # Of the index of keys it is not so by default.
    return bool(moves.get(kind)) and bool(key_spec.partition_fields)


def about_left(
    config: WriteConfig, key_spec: KeySpec, operation: str, looked_up: LookupCount | None
) -> tuple[str, ...]:
    """Warning of records that stay in another partition than their rows without an option."""
    if operation != "upsert" or looked_up is None or not looked_up.left:
        return ()
    if looked_up.index not in (RECORD_INDEX, CUSTOM) or config.record_update_partition is not None:
        return ()
    fields = ", ".join(key_spec.partition_fields)
    rows = "1 row has" if looked_up.left == 1 else f"{looked_up.left:,} rows have"
    return (
        f"{rows} another {fields} than the partition that the record of that key is in: it is updated there, and its "
        f"{fields} is read as that partition's; {RECORD_UPDATE_PARTITION}=true moves such records, and false leaves "
        "them without this warning",
    )


def index_to_record(kind: str, recorded: str | None, operation: str, *, new_table: bool) -> str | None:
    """Index to record after a write; None for no change.

    An operation that looks nothing up gives no global index up, and does not say that there is none.
    """
    always = new_table or operation in LOOKS_UP or kind in GLOBAL_KINDS or kind == BUCKET
    return kind if always else recorded


def in_commit(kind: str | None, bucket: BucketIndex | None = None) -> dict[str, str]:
    """Commit entries of a recorded index."""
    if kind is None:
        return {}
    return {RECORDED: kind} | ({} if bucket is None else bucket_settings.as_properties(bucket))


def in_properties(
    kind: str | None,
    table: TableConfig,
    *,
    asked_archive: bool,
    bucket: BucketIndex | None = None,
    class_name: str | None = None,
) -> tuple[RememberedIndex, ...]:
    """Participants that record the index in hoodie.properties; () if not needed.

    Args:
        kind: what `index_to_record` gives.
        table: as it was read when the write began.
        asked_archive: the archived commits were asked; the next write need not do it again.
        class_name: of an index of one's own, where the write names it.
    """
    if bucket is not None:
        wanted = bucket_settings.properties(bucket)
        if wanted.items() <= table.properties.items():
            return ()
        return (RememberedIndex(BUCKET, table.properties.get(INDEX), wanted),)
    if kind == CUSTOM and class_name:
        wanted = {INDEX: CUSTOM, INDEX_CLASS: class_name}
        if wanted.items() <= table.properties.items():
            return ()
        return (RememberedIndex(CUSTOM, table.properties.get(INDEX), wanted),)
    said = recorded_index(table.properties)
    within = said is None or (said in KINDS and said not in GLOBAL_KINDS)
    if said == kind or (within and kind not in GLOBAL_KINDS and (said or not asked_archive)):
        return ()
    return (RememberedIndex(kind or SIMPLE, table.properties.get(INDEX)),)


@dataclass
class RememberedIndex:
    """Participant of a commit that records the index in hoodie.properties.

    A global one or BUCKET is there before the commit is visible, and another one within partitions after it: whatever
    a crash leaves, nothing is forgotten.  Nor is a global one that another writer has put there since this write began.

    Attributes:
        kind: what the table is to remember.
        was: what it remembered when the write began.
        settings: all properties of BUCKET, or of an index of one's own.
    """

    kind: str
    was: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str = "the index in hoodie.properties"
    _before: Mapping[str, str | None] = field(default_factory=dict)
    _changed: bool = False
    _transaction: Transaction | None = None

    @property
    def _first(self) -> bool:
        """Whether it is there before the commit is visible."""
        return self.kind in GLOBAL_KINDS or self.kind == BUCKET

    def prepare(self, transaction: Transaction, metadata: CommitMetadata) -> None:
        self._transaction = transaction
        if self._first:
            values = self.settings or {INDEX: self.kind}
            stored = table_config.load(transaction.storage).properties
            self._before = {key: stored.get(key) for key in values}
            self._changed = True
            table_config.update(transaction.storage, values)

    def publish(self) -> None:
        transaction = self._transaction
        if transaction is None or self._first:
            return
        try:
            now = table_config.load(transaction.storage).properties.get(INDEX)
            if now == self.was or now not in (*GLOBAL_KINDS, BUCKET):
                table_config.update(transaction.storage, {INDEX: self.kind})
        except (HudiError, OSError) as e:
            transaction.warnings.append(f"{self.name} could not be changed to {self.kind}: {e}")

    def undo(self) -> None:
        transaction = self._transaction
        if transaction is None or not self._changed:
            return
        table_config.update(
            transaction.storage,
            {key: value for key, value in self._before.items() if value is not None},
            [key for key, value in self._before.items() if value is None],
        )
