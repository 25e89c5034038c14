"""Key lookup of the SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM and RECORD_INDEX indexes.

SIMPLE reads the keys of every file that may hold one; BLOOM first asks the files' footers.  Both then compare
the keys themselves, so they find the same.  The global kinds look in all partitions; RECORD_INDEX is one of them that
asks an index of keys, and looks into files only for what that does not say for certain.

Runs on threads of the local engine and in Spark's executors.

Source: HoodieSimpleIndex, HoodieBloomIndex and their global kinds of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array
from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import HudiError, MissingColumnError, UnsupportedError
from hudi_format.file_names import parse_base_file
from hudi_format.file_slice.reader import LogRecords, SliceMerge
from hudi_format.file_slice.record_versions import LoggedSlices
from hudi_format.fork_safe import cached_property
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.log.block import BlockType
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.reader import LogFileReader
from hudi_format.merge.key_index import KeyIndex, precombine
from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.payloads import IS_DELETED, MergeRule, Order, payload_rule
from hudi_format.merge.record_merger import combine, decide
from hudi_format.model import BaseFile, LogFile
from hudi_format.parquet.footer import read_entries
from hudi_format.parquet.kept_keys import KEPT
from hudi_format.parquet.reader import iter_row_groups, read_keys, read_table
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.footer_index import FILTER, MAYBE, RANGE, BloomIndex, Candidates
from hudi_index.bucket import BucketIndex
from hudi_index.metadata_footers import MetadataFooters, OpenedFooters
from hudi_index.record_index import KeyLocator, Places, places_of

SIMPLE, BLOOM = "SIMPLE", "BLOOM"
GLOBAL_SIMPLE, GLOBAL_BLOOM = "GLOBAL_SIMPLE", "GLOBAL_BLOOM"
BUCKET = "BUCKET"
RECORD_INDEX = "RECORD_INDEX"
CUSTOM = "CUSTOM"
"""An index of one's own (`hudi_index.custom_index.index_class`)."""
GLOBAL_KINDS = (GLOBAL_SIMPLE, GLOBAL_BLOOM, RECORD_INDEX, CUSTOM)
MISSED = "missed"
"""Verdict on a file whose keys were read in vain; others are of `hudi_index.bloom.footer_index`."""
HELD = "held"
"""Verdict on a file whose keys were kept from before."""
INMEMORY = "INMEMORY"
KINDS = (SIMPLE, BLOOM, INMEMORY, BUCKET, *GLOBAL_KINDS)


# The indexes within base files find a key also where a log has deleted it since.  Alone that is right: the record
# comes back in its old place.  But a key may stand in another file too, where it was inserted anew or moved to; then
# the places where it is deleted do not count, or it would come back there a second time.  Nor do they where a
# compaction is pending: it leaves the key out of the base file, and a record in the logs after it would not be found.
#
# Source: `mayContainDuplicateLookup` of HoodieIndexUtils in Apache Hudi 0.15, which looks at merged records for the
# global indexes only; within partitions it brings such records back twice.


@dataclass(frozen=True)
class LoggedFiles:
    """Log files of base files, and how they are merged; picklable.

    Attributes:
        logs: log files by path of the base file.
        merge: settings of the table's merge.
        schema: the table's, with meta columns.
        committed: what completed instants say that they wrote, by path of the log file.
        planned: base files whose slices are in a pending compaction.
    """

    logs: Mapping[str, tuple[LogFile, ...]]
    merge: SliceMerge
    schema: pa.Schema
    committed: Mapping[str, Sequence[CommittedRange]] = field(default_factory=dict)
    planned: frozenset[str] = frozenset()

    def deleted(self, storage: Storage, file: BaseFile, keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """Mask of keys (bool) that the logs of a base file's slice have deleted.

        Args:
            keys: record keys that are in the base file.

        Raises:
            MissingFileError, CorruptFileError, SchemaError, UnsupportedError, StorageError: reading the slice.
        """
        none = np.zeros(len(keys), dtype=bool)
        logs = self.logs.get(file.path, ())
        if (
            not logs
            or not len(keys)
            or not (deletes_by_columns(self.merge.rule, self.schema) or has_deletes(storage, logs))
        ):
            return none
        wanted = pa.schema([self.schema.field(n).with_nullable(True) for n in self.merge.key_columns])
        asked = one_array(keys).cast(pa.string())
        parts = [
            one_array(self.merge.keys(part)).cast(pa.string())
            for part in self.stored(storage, file.path, keys, wanted)
        ]
        left = pa.chunked_array(parts, pa.string())
        gone: np.ndarray = pc.invert(pc.is_in(asked, value_set=one_array(left))).to_numpy(
            zero_copy_only=False
        )
        return gone

    def stored(
        self, storage: Storage, path: str, keys: pa.Array | pa.ChunkedArray, wanted: pa.Schema
    ) -> Iterator[pa.Table]:
        """Records of a base file with these keys, merged with its logs, without deleted ones.

        Args:
            path: of a base file with log files.
            wanted: columns to give; those that the table has not are null.

        Raises:
            as `deleted`.
        """
        merge = self.merge
        own = pa.schema(
            [self.schema.field(f.name).with_nullable(True) for f in wanted if f.name in self.schema.names]
        )
        needed = merge.merge_schema(own, self.schema)
        asked = one_array(keys).cast(pa.string())
        of_keys = pa.schema([needed.field(n) for n in merge.key_columns])
        file = parse_base_file("", path.rpartition("/")[2])
        reading = None if merge.evolution is None or file is None else merge.evolution.reading(file.instant)

        def mine(schema: pa.Schema) -> Iterator[pa.Table]:
            stored = schema if reading is None else reading.stored(schema)
            for group in iter_row_groups(storage, path, schema=stored):
                if reading is not None:
                    group = reading.given(group, schema)
                rows = group.filter(pc.is_in(merge.keys(group).cast(pa.string()), value_set=asked))
                if rows.num_rows:
                    yield rows

        with LogRecords(storage, self.logs[path], merge, needed, committed=self.committed) as records:
            if records.spilled:  # they meet rows by their places: those, and no others
                records.meet(mine(of_keys))
            for part in mine(needed):
                for start in range(0, part.num_rows, records.rows_at_once):
                    yield conform(records.merged(part.slice(start, records.rows_at_once)), wanted)


def deletes_by_columns(rule: MergeRule, schema: pa.Schema) -> bool:
    """Whether records of a log, by what is in their columns, may delete."""
    return bool(rule.custom or rule.delete_fields or {IS_DELETED, rule.delete_field} & set(schema.names))


def has_deletes(storage: Storage, logs: Sequence[LogFile]) -> bool:
    """Whether any block of log files deletes records."""
    for log in logs:
        with LogFileReader.open(storage, log.path) as reader:
            if any(b.type is BlockType.DELETE for b in reader.blocks):
                return True
    return False


@dataclass(frozen=True, slots=True)
class LookupTask:
    """Settings of a key lookup, and of keys found in another partition.

    Attributes:
        index: one of `KINDS`.
        prune_by_ranges: whether BLOOM believes the key ranges of footers.
        update_partition: global kinds: a record whose partition changed moves there; else it is updated where
            it is.
        combine: global kinds: of incoming records with one key in several partitions one is kept.
        ordering_field: column that decides between records of one key, a nested one by dot path.
        ordering_column: the top-level column that it is in, in the type to write.
        rule: how records of one key meet: the payload's.
        delete_all, delete_field, delete_marker: which records are deletes, as in `WriteContext`: they find
            the stored record wherever it is, and do not move it.
        virtual: makes the keys of the files' columns, where they hold none; only with SIMPLE.
        prepped: nothing is looked up: rows say the file that they stand in (`hudi_index.tagging`).
        bucket: of BUCKET: each row goes to its bucket's file group, which may be a new one; no key is looked up.
        groups: of BUCKET and RECORD_INDEX: file ids by partition, also of file groups that have logs only.
        drop_known: of BUCKET: rows whose key is in the table are left out; their bucket's keys are read.
        memory: of the rows; None: they are held.
        logged: the log files of the base files, of a merge-on-read table; None where there are none.
        only_living: a key that a log has deleted is not known; else it may be, see `LoggedFiles`.  Where records are
            compared with stored ones it never is, as in Apache Hudi: a delete in the log would win over it.
        locator: of RECORD_INDEX: the index of keys; None: the files are looked into instead.
        instead: a sentence on what is looked into instead of the metadata table, and why; "" for nothing.
        footers: of BLOOM: what the metadata table says of the files; None: their footers are read.
        slices: of prepped rows: those with logs, whose merged records they must be; None where there are none.
        alone: slices whose keys are not all in a base file, as they have log files alone or inserts in them, and whose
            merged records have the keys that are looked for: among the files they are those without a name; None where
            there are none.
    """

    index: str = SIMPLE
    prune_by_ranges: bool = True
    update_partition: bool = True
    combine: bool = True
    ordering_field: str | None = None
    ordering_column: pa.Field | None = None
    rule: MergeRule = field(default_factory=lambda: payload_rule(None))
    delete_all: bool = False
    delete_field: str = ""
    delete_marker: str = ""
    virtual: KeySpec | None = None
    prepped: bool = False
    memory: MemoryLimit | None = None
    bucket: BucketIndex | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drop_known: bool = False
    logged: LoggedFiles | None = None
    only_living: bool = False
    locator: KeyLocator | None = None
    instead: str = ""
    footers: MetadataFooters | None = None
    slices: LoggedSlices | None = None
    alone: LoggedSlices | None = None

    def looking(self) -> LookupTask:
        """The look-up of keys themselves, which a bucket index does not make."""
        return replace(self, index=SIMPLE, bucket=None, groups={}, drop_known=False)

    @property
    def is_global(self) -> bool:
        return self.index in GLOBAL_KINDS and not self.prepped

    @property
    def keeps_keys(self) -> bool:
        """Whether the keys of files stay in the process that looks into them."""
        return self.index == INMEMORY

    @property
    def uses_filters(self) -> bool:
        return self.index in (BLOOM, GLOBAL_BLOOM)

    @property
    def compares_stored(self) -> bool:
        """Whether a moving record is first compared with the stored one, and stays if older.

        With a payload by which also an older one fills, it moves all the same, as in Apache Hudi: with the stored
        record's values.
        """
        return (
            self.is_global
            and self.update_partition
            and self.rule.against_stored != Order.LATER
            and not (self.rule.fill_stored and self.rule.late_fills)
            and self.ordering_field is not None
            and not self.delete_all
        )

    @property
    def renews_stored(self) -> bool:
        """Whether a stored record that wins against another partition's record is rewritten.

        Apache Hudi merges the two, and updates the stored record's file by what comes out: of equal ordering values the
        incoming one counts.
        """
        return self.compares_stored and self.rule.against_stored == Order.GREATEST

    @property
    def takes_values_along(self) -> bool:
        """Whether a moving record is merged with the stored one, which fills it or meets it."""
        meets = self.rule.fill_stored or bool(self.rule.custom)
        return self.is_global and self.update_partition and meets and not self.delete_all

    @property
    def merges_beside_logs(self) -> bool:
        """Whether a record that stays is merged with the stored one where that is of a log.

        The payload makes another record of them than the records of a log make of one another.  A merge of the user's
        meets all of them in their order, whatever they stand in.
        """
        differs = self.compares_stored and self.rule.within != self.rule.against_stored
        return differs or (self.takes_values_along and not self.rule.custom)

    @property
    def needs_stored(self) -> bool:
        """Whether rows may have to be merged with stored records before they are written."""
        return self.takes_values_along or self.renews_stored or self.merges_beside_logs

    @property
    def fills_within(self) -> bool:
        """Whether incoming records of one key are merged across partitions."""
        return self.is_global and self.combine and self.rule.fill_within and not self.delete_all

    @property
    def keeps_together(self) -> bool:
        """Whether all incoming records of one key go where the last goes: a merge of the user's."""
        return self.is_global and bool(self.rule.custom) and not self.delete_all


def surviving(
    keys: pa.Array | pa.ChunkedArray, task: LookupTask, ordering: pa.Array | pa.ChunkedArray | None
) -> np.ndarray:
    """Ascending rows (int64) of the surviving record per key."""
    if task.rule.within == Order.GREATEST:
        return precombine(keys, ordering)
    return combine(keys, task.rule, ordering=ordering).rows


def with_equal_keys(rows: np.ndarray, same: np.ndarray | None) -> np.ndarray:
    """All rows that share a key with `rows`, ascending.

    Args:
        same: `FileLookup.same_keys`.
    """
    if same is None:
        return rows
    flags = np.zeros(len(same), dtype=bool)
    flags[rows] = True
    return np.flatnonzero(flags[same])


@dataclass(frozen=True, slots=True)
class KeyStages:
    """Stages of a look-up that resolved the rows, in rows.

    Attributes:
        told: their file group was said without a look into files.
        ruled_out: new ones, by the index or by footers alone.
        found: those in files whose keys were read.
        in_vain: new ones, for which keys of files were read: false positives of the filter, where there is one.
    """

    told: int
    ruled_out: int
    found: int
    in_vain: int

    @classmethod
    def of(cls, told: np.ndarray, compared: np.ndarray, hits: Iterable[np.ndarray]) -> KeyStages:
        """Stages by masks of rows that were told, and compared; and the rows in files."""
        found = np.zeros(len(told), dtype=bool)
        for at in hits:
            found[at] = True
        read = compared & ~told
        return cls(
            int(told.sum()),
            int((~told & ~compared).sum()),
            int((read & found).sum()),
            int((read & ~found).sum()),
        )

    def __str__(self) -> str:
        counts = (
            (self.told, "told by it"), (self.found, "found in files"), (self.ruled_out, "new by it alone"),
            (self.in_vain, "new, looked for in files"),
        )  # fmt: skip
        return ", ".join(f"{n:,} {what}" for n, what in counts if n) or "no keys"


@dataclass(frozen=True, slots=True)
class LookupCount:
    """Statistics of a lookup.

    Attributes:
        index: the index that was used.
        files: latest base files of the partitions that it looked in.
        by_range, by_filter: of these, ruled out by their footer's key range or bloom filter.
        opened: those whose keys were read.
        missed: of these, those that held none of the keys: false positives.
        held: those whose keys were kept from before.
        doubted: keys that the record index did not say for certain, and that were looked for in the files.
        why: what made it doubtful, "" for nothing.
        keys: what resolved the keys; None on Spark, whose rows are not counted for it.
        left: rows, no deletes, whose record stays in another partition than theirs, where none moves; on Spark once
            they were profiled.
    """

    index: str
    files: int = 0
    by_range: int = 0
    by_filter: int = 0
    opened: int = 0
    missed: int = 0
    doubted: int = 0
    why: str = ""
    held: int = 0
    keys: KeyStages | None = field(default=None, compare=False)
    left: int = field(default=0, compare=False)

    @classmethod
    def of(cls, index: str, verdicts: Iterable[str], *, doubted: int = 0, why: str = "") -> LookupCount:
        found = list(verdicts)
        missed = found.count(MISSED)
        opened = found.count(MAYBE) + missed
        return cls(
            index, len(found), found.count(RANGE), found.count(FILTER), opened, missed, doubted, why,
            found.count(HELD),
        )  # fmt: skip

    def __str__(self) -> str:
        ruled_out = f", {self.by_range} ruled out by key range, {self.by_filter} by bloom filter"
        return (
            f"{self.index}: keys of {self.opened} of {self.files} files read"
            + (ruled_out if self.by_range or self.by_filter else "")
            + (f", {self.missed} in vain" if self.missed and self.missed < self.opened else "")
            + (f"; {self.doubted:,} keys looked for in the files: {self.why}" if self.doubted else "")
        )


@dataclass(frozen=True, slots=True)
class KeyMatches:
    """Keys found in one file.

    Attributes:
        verdict: MAYBE if its keys were read, MISSED if in vain, HELD if they were kept, else what ruled it out.
        rows: the keys that are in it, each as its last row among the incoming ones, ascending.
        stays: per row, whether a stored record with that key has a greater ordering value; only where that
            was asked for.
    """

    verdict: str
    rows: np.ndarray
    stays: np.ndarray | None = None


@dataclass
class FileLookup:
    """Incoming keys, ready for lookup in files; shareable between threads.

    Args:
        keys: record keys; not null.
        ordering: their ordering values, where stored records are compared with them.

    Attributes:
        compared: per row, whether its key was compared with those of any file.
    """

    storage: Storage
    keys: pa.Array | pa.ChunkedArray
    task: LookupTask
    ordering: pa.Array | pa.ChunkedArray | None = None
    index: KeyIndex = field(init=False)
    compared: np.ndarray = field(init=False)
    _bloom: BloomIndex | None = field(init=False, default=None)
    _told: OpenedFooters | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.index = KeyIndex(self.keys)
        self.compared = np.zeros(self.index.rows, dtype=bool)
        if self.task.uses_filters:
            self._bloom = BloomIndex(self.index.keys, prune_by_ranges=self.task.prune_by_ranges)
            if self.task.footers is not None:
                self._told = OpenedFooters(self.task.footers)

    @cached_property
    def same_keys(self) -> np.ndarray | None:
        """Representative row of each row's key; None where no key repeats."""
        return self.index.find(self.index.keys) if self.index.duplicates else None

    def find(self, file: BaseFile, compare: np.ndarray | None = None) -> KeyMatches:
        """Keys found in a file, reading only key columns, and the ordering field where needed.

        Of a file without a name, a file group of `LookupTask.alone`, keys are those of its merged records.

        Args:
            compare: per incoming row, whether it moves if it is in this file: such rows are compared with the
                stored ones.

        Raises:
            MissingFileError, CorruptFileError, UnsupportedError, StorageError: reading the file.
        """
        none = np.empty(0, dtype=np.int64)
        if not self.index.rows:
            return KeyMatches(MAYBE, none)
        if not file.name:
            return self._find_in_logs(file)
        asked = None
        if self._bloom is not None:
            left = self._candidates(file, self._bloom)
            if left.verdict != MAYBE:
                return KeyMatches(left.verdict, none)
            asked = left.rows
        self.compared[slice(None) if asked is None else asked] = True
        keys, held = self._keys_of(file)
        rows = self.index.found(keys)
        verdict = HELD if held else MAYBE if len(rows) else MISSED
        return KeyMatches(verdict, rows, self.staying(file, rows, compare))

    def _find_in_logs(self, file: BaseFile) -> KeyMatches:
        """Keys found among the merged records of a file group."""
        found = np.zeros(self.index.rows, dtype=bool)
        if self.task.alone is not None:
            self.compared[:] = True
            for keys in self.task.alone.keys(self.storage, (file.partition, file.file_id)):
                found[self.index.found(keys)] = True
        rows = np.flatnonzero(found)
        return KeyMatches(MAYBE if len(rows) else MISSED, rows)

    def _keys_of(self, file: BaseFile) -> tuple[pa.Array | pa.ChunkedArray, bool]:
        """Keys of a file, and whether they were kept from before."""

        def read() -> pa.Array | pa.ChunkedArray:
            return read_keys(self.storage, file.path, self.task.virtual, size=file.size)

        return KEPT.of(self.storage, file, read) if self.task.index == INMEMORY else (read(), False)

    def _candidates(self, file: BaseFile, bloom: BloomIndex) -> Candidates:
        """Keys that the file's key range and bloom filter leave."""
        try:
            if self._told is not None:
                bounds = self._told.range(file)
                within = None if bounds is None else bloom.candidates(bounds)
                if within is not None and within.verdict == RANGE:
                    return within
                told = self._told.filter(file)
                if told is not None:
                    return bloom.candidates(told)
            return bloom.candidates(read_entries(self.storage, file.path, size=file.size))
        except HudiError as e:
            raise e.at(table=self.storage.uri, file=file.path) from None

    def staying(self, file: BaseFile, rows: np.ndarray, compare: np.ndarray | None) -> np.ndarray | None:
        """`KeyMatches.stays` of rows that are in a file; arguments and errors as of `find`."""
        if compare is None or self.ordering is None or not compare[rows].any():
            return None
        return self._staying(file, rows)

    def check_base(self, file: BaseFile, rows: np.ndarray, moves: np.ndarray) -> None:
        """Refuse records of a file group without base file, where their stored values count.

        Args:
            file: with the name "" where the file group has none.
            moves: per incoming row, whether it moves if it is in this file group.

        Raises:
            UnsupportedError: the file group.
        """
        if file.name or not len(rows):
            return
        moving = self.task.compares_stored or self.task.takes_values_along
        if self.task.merges_beside_logs or (moving and moves[rows].any()):
            raise UnsupportedError(
                f"records are in the file group {file.file_id} of {file.partition!r}, which has log files alone or "
                f"inserts in them, and {self.task.rule.name} needs their stored values",
                table=self.storage.uri,
                remedy="compact the table first.",
            )

    def places(self, pool: Executor | None = None) -> Places | None:
        """Places of the keys by the index, asked by a pool's threads; None where the task has none.

        Raises:
            StorageError: it does not answer.
        """
        locator, asked = self.task.locator, (self.index.keys, self.index.find, self.task.groups, pool)
        return None if locator is None else places_of(locator, *asked)

    def among(self, rows: np.ndarray) -> FileLookup:
        """Look-up of some of the rows in files, in their order."""
        task = replace(self.task, locator=None)
        picked = None if self.ordering is None else self.ordering.take(pa.array(rows))
        return FileLookup(self.storage, self.keys.take(pa.array(rows)), task, picked)

    def deleted(self, file: BaseFile, rows: np.ndarray) -> np.ndarray:
        """Mask of rows (bool) of a file whose record a log has deleted since; errors as `find`."""
        if self.task.logged is None or not len(rows):
            return np.zeros(len(rows), dtype=bool)
        return self.task.logged.deleted(self.storage, file, self.keys.take(pa.array(rows)))

    def _staying(self, file: BaseFile, rows: np.ndarray) -> np.ndarray:
        """Mask of rows whose stored record has a greater ordering value."""
        column, path = self.task.ordering_column, self.task.ordering_field
        if column is None or path is None:
            raise ValueError("stored records are compared, but the table has no ordering column")
        schema = pa.schema([pa.field(RECORD_KEY, pa.string()), column])
        logged = self.task.logged
        if logged is not None and file.path in logged.logs:
            asked = self.index.keys.take(pa.array(rows))
            parts = list(logged.stored(self.storage, file.path, asked, schema))
            stored = pa.concat_tables(parts) if parts else schema.empty_table()
        else:
            stored = read_table(self.storage, file.path, schema=schema, use_threads=False)
        values = ordering_column(stored, path, self.task.rule.sequence)
        if values is None:
            raise MissingColumnError(
                f"the table has no ordering column {path!r}", table=self.storage.uri, column=path
            )
        at = self.index.find(stored.column(RECORD_KEY))
        decision = decide(at, self.task.rule, stored_ordering=values, ordering=self.ordering)
        older = np.zeros(self.index.rows, dtype=bool)
        older[at[(at >= 0) & (decision.take < 0)]] = True
        staying: np.ndarray = older[rows]
        return staying
