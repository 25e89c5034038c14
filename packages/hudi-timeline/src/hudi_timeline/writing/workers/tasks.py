"""Write tasks: frozen values with everything a worker needs.

A worker gets a `WriteContext`, its `Bucket` and its rows; it opens no table, reads no option and keeps
no state, so that the same worker runs on threads and in Spark executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import SchemaError
from hudi_format.file_slice.cdc_writer import CdcSettings
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.log.block import BlockType
from hudi_format.log.writer import DEFAULT_BLOCK_SIZE, DEFAULT_FILE_SIZE
from hudi_format.merge.ordering import ordering_column
from hudi_format.merge.payloads import MergeRule, payload_rule
from hudi_format.model import BaseFile
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import ReadEvolution, Reading
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.key_observer import BloomSettings
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import LoggedFiles
from hudi_index.tagging import MOVED, STORED_IN
from hudi_timeline.transaction.early_conflicts import EarlyDetection

CREATE = "CREATE"
MERGE = "MERGE"
CONCAT = "CONCAT"
APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of log files: block type, sizes in bytes; the defaults are Apache Hudi's."""

    block: BlockType = BlockType.AVRO_DATA
    block_bytes: int = DEFAULT_BLOCK_SIZE
    file_bytes: int = DEFAULT_FILE_SIZE


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Place of the next log file of a file slice.

    Attributes:
        base_instant: that began the slice; of a slice that a pending compaction began, the compaction's instant.
        version: of the next log file.
        base_file: name of the slice's base file; "" for none.
        files: names of the slice's log files.
    """

    base_instant: str
    version: int = 1
    base_file: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Settings shared by all files of a write.

    Attributes:
        storage: the table's storage.
        instant: this write's instant time.
        inflight: path of its inflight file; without it no file is begun.
        completed: path of its completed file; beside it no log file is begun.
        schema: columns of the data files without meta columns, in order.
        input_schema: columns of the rows before those that only the partition path keeps are left out; None for
            `schema`.
        stored_keys: the rows of a bulk_insert come with record key and partition path in their meta columns.
        virtual: the files' meta columns are left empty; keys are made of the key columns.
        avro_schema: the Avro text of `schema` with meta columns, for the footers.
        parquet: codec, sizes.
        bloom: footer filters, None for none.
        key_spec: how record key and partition path come from a row.
        ordering_field: column that decides between records of one key, None for "the later one".
        combine: whether records of one key are reduced to one before they are written.
        rule: how records of one key meet: the payload's.
        delete_all: the rows are keys to delete (operation `delete`).
        event_time_field: column whose range over the updated records goes into the commit, where the rule has it.
        delete_field, delete_marker: rows in which this column has this text are deletes.
        memory: of the rows of all workers that run side by side; None: they are held.
        log: sizes and block type of log files.
        cdc: how changes are logged beside rewritten files; None where the table logs none.
        bucket: of the index BUCKET; stored keys must belong to the file group that is rewritten.
        seed: of the file ids of new file groups, with the instant; "" for random ones.
        early: looks at the markers of other writers before a file is begun; None where the options do not ask for it.
        logged: log files of the base files that stored records are taken from (`STORED_IN`); None where there are none.
        evolution: how older files are read by column id, where the table has a schema history; else None.
        tells_keys: statistics say the new keys of rewritten files, for an index of keys.
    """

    storage: Storage
    instant: str
    inflight: str
    schema: pa.Schema
    avro_schema: str
    parquet: ParquetConfig
    bloom: BloomSettings | None
    key_spec: KeySpec
    ordering_field: str | None = None
    combine: bool = True
    rule: MergeRule = field(default_factory=lambda: payload_rule(None))
    delete_all: bool = False
    event_time_field: str = ""
    delete_field: str = ""
    delete_marker: str = ""
    input_schema: pa.Schema | None = None
    virtual: bool = False
    stored_keys: bool = False
    memory: MemoryLimit | None = None
    completed: str = ""
    log: LogConfig = field(default_factory=LogConfig)
    cdc: CdcSettings | None = None
    bucket: BucketIndex | None = None
    early: EarlyDetection | None = None
    seed: str = ""
    logged: LoggedFiles | None = None
    evolution: ReadEvolution | None = None
    tells_keys: bool = False

    def reading(self, file: BaseFile) -> Reading | None:
        """Mapping of a base file's columns; None where names tell them."""
        return None if self.evolution is None else self.evolution.reading(file.instant)

    def row_schema(self) -> pa.Schema:
        """Columns of a worker's rows: record key, then the needed data columns.

        A delete needs no data columns but the ordering field's, and that only to choose between
        equal keys, which for deletes makes no difference.
        """
        key = pa.field("_hoodie_record_key", pa.string())
        return pa.schema([key] if self.delete_all else [key, *self.schema])


def check_sequences(context: WriteContext, rows: pa.Table) -> None:
    """Refuse log positions that are none, which no later write or read could compare.

    Raises:
        SchemaError: naming the column and the first of them.
    """
    name = context.ordering_field
    if not context.rule.sequence or not name or context.delete_all:
        return
    try:
        ordering_column(rows, name, sequence=True)
    except SchemaError as e:
        e.message = f"column {name!r}: {e.message}"
        raise


def as_written(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the types to write, with missing columns null and move columns kept."""
    out = conform(rows, schema)
    for name in (MOVED, STORED_IN):
        if name in rows.schema.names:
            out = out.append_column(name, rows.column(name))
    return out


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows of one file group; `number` is dense from 0 within a write.

    CREATE makes new files `<file_id_prefix>-0`, `-1` ...; MERGE rewrites `base_file` with the rows merged
    into it by key; CONCAT rewrites it with the rows appended; APPEND adds a log file to the slice `log`.
    """

    number: int
    partition: str
    kind: str
    file_id: str
    base_file: BaseFile | None = None
    expected_rows: int = 0
    log: LogTarget | None = None

    @property
    def base_instant(self) -> str:
        """Instant that began the slice; "null" for a new file group."""
        if self.log is not None:
            return self.log.base_instant
        return "null" if self.base_file is None else self.base_file.instant

    @property
    def expected_bytes(self) -> int:
        """Estimated cost, to balance buckets over tasks."""
        size = self.base_file.size if self.base_file is not None and self.kind != APPEND else 0
        return max(size, 0) + 100 * self.expected_rows


@dataclass(frozen=True, slots=True)
class InsertShare:
    """Share of a partition's new records for one bucket; `upto` is cumulative.

    A record goes to the first bucket with crc32(record key) < upto * 2**32.
    """

    upto: float
    bucket: int


@dataclass(frozen=True, slots=True)
class Routing:
    """Assignment of rows to buckets.

    `located[(partition, file_id)]` for rows whose key is in that file group; `inserts[partition]` for the
    others, shares ascending, the last with `upto` 1.0.
    """

    buckets: tuple[Bucket, ...]
    located: Mapping[tuple[str, str], int] = field(default_factory=dict)
    inserts: Mapping[str, tuple[InsertShare, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Number of incoming rows for a file group; `file_id` "" for new keys.

    Attributes:
        moved: of these, rows that take a record away from it, which moves to another partition.
    """

    partition: str
    file_id: str
    rows: int
    moved: int = 0


@dataclass(frozen=True, slots=True)
class TaskToken:
    """Task attempt, as in write tokens of file names and sequence numbers."""

    partition_id: int = 0
    stage_id: int = 0
    attempt_id: int = 0

    @property
    def text(self) -> str:
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"
