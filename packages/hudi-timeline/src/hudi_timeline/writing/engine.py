"""Engine protocol: the distributed part of a write.

`hudi_timeline.writing.operation` decides what happens; an engine evaluates the incoming data, finds where its
keys are, and runs workers (`hudi_timeline.writing.workers`) on it.  The frame `F` is opaque to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.model import BaseFile, WriteStat
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import LookupCount, LookupTask
from hudi_timeline.writing.workers.tasks import ProfileRow, Routing, WriteContext

if TYPE_CHECKING:
    from hudi_timeline.reading.scan import Scan
    from hudi_timeline.services.compaction.slice_tasks import Task
    from hudi_timeline.validation.row_rules import Screened, Screening
    from hudi_timeline.validation.sql_validators import Queries

D = TypeVar("D", contravariant=True)
F = TypeVar("F")

# Whose types count.
TABLE, DATA = "table", "data"


@dataclass(frozen=True, slots=True)
class BulkOrder:
    """Row order of bulk_insert.

    Attributes:
        mode: Apache Hudi's name of the sort mode.
        columns: sort by them within each partition instead.
        function: of the user, as `module:function`, orders them instead.
        tasks: writing tasks; None leaves it to the engine.
    """

    mode: str = "NONE"
    columns: tuple[str, ...] = ()
    function: str | None = None
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """Preparation of incoming rows.

    Attributes:
        schema: the columns to hand on, in order, in the types to write (without meta columns); the
            engine conforms the data to it.  For deletes: the key and partition columns.
        key_spec: record key and partition path.
        ordering_field: must not be null in any row when `check_ordering`.
        stored_keys: the rows were read from the table with their meta columns, which say key and partition path.
        stated: meta columns that say what was read: the file that each row stands in, null for new rows, and the
            version of its record, which the rows may not have.
        storage_level: Spark's name of the level at which the evaluated input is kept.
        order: of the rows of a bulk_insert.
        memory: of the rows; None: they are held.
        bucket: of the index BUCKET: an engine that hashes keys apart from their look-up does it with this.
        read_back: asked with rows in the types to write, their keys and partition paths, where these are in this
            process: refuses values that were read from folders.
    """

    schema: pa.Schema
    key_spec: KeySpec
    ordering_field: str | None
    check_ordering: bool
    storage_level: str = "MEMORY_AND_DISK_SER"
    stored_keys: bool = False
    stated: tuple[str, ...] = ()
    order: BulkOrder = BulkOrder()
    memory: MemoryLimit | None = None
    bucket: BucketIndex | None = None
    read_back: Callable[[pa.Table, pa.Array, pa.Array], None] | None = None


class Engine(Protocol[D, F]):
    """Evaluates, tags, routes and writes; one instance serves one write."""

    name: str
    parallelism: int
    types: str
    """Whose types of known columns count where no option says it, `TABLE` or `DATA`: those of rows that declare their
    types may change the table's as in Apache Hudi, those that were guessed from values may not."""
    streams_buckets: bool
    """Whether `write_stream` makes the file groups of a bucket index too, where a partition has none yet."""
    warnings: tuple[str, ...]
    """What the data's own types say and no table keeps, one sentence each."""
    on_progress: Callable[[int, int], None]
    """Told how much of a phase is done, and of how much, where the engine knows; from any thread."""

    def progress(self, asked: str) -> str:
        """Progress setting for `progress.reporter`; an engine may have its own display."""
        ...

    def schema(self, data: D) -> pa.Schema:
        """Schema of the incoming data, meta columns included."""
        ...

    def fitted(self, data: Any, schema: pa.Schema, *, exact: bool) -> Any:
        """Rows with untyped null columns in the types of `schema`.

        Args:
            exact: values of other types too, where nothing is lost.

        Raises:
            SchemaError: with `exact`, the first value that does not fit; of a stream only once it is read.
        """
        ...

    def screen(self, data: D, screening: Screening) -> Screened:
        """Valid rows, separated from the invalid ones.

        Raises:
            ValidationError: bad rows that are not to be kept; of a stream only once it is read.
            InvalidOptionError, MissingColumnError, SchemaError: a rule that cannot be understood.
        """
        ...

    def another(self, data: Any) -> tuple[Any, Any]:
        """An engine of this kind for a write of other rows, None included, and those rows."""
        ...

    def queries(self, before: Scan | pa.Table, after: Scan | pa.Table) -> AbstractContextManager[Queries]:
        """SQL over the two states; tables stand for their schema only."""
        ...

    def frame_of(self, scan: Scan) -> Any:
        """A scan in the engine's native form."""
        ...

    def prepare(self, data: D, task: PrepareTask) -> F:
        """Rows evaluated exactly once, with record key and partition path.

        Raises:
            RecordKeyError, OrderingValueError, PartitionPathError: naming column and first rows.
        """
        ...

    def partition_counts(self, frame: F) -> dict[str, int]:
        """Rows by partition path."""
        ...

    def tag(self, frame: F, storage: Storage, files: Mapping[str, Sequence[BaseFile]], task: LookupTask) -> F:
        """The frame with each row's file group; `files` are the latest base files by partition.

        A key that is in several files of its partition gives a row for each.  With a global index `files` are
        those of all partitions, and rows may come back with another partition, see `LookupTask`.
        """
        ...

    def deleted_keys(self, frame: F, among: Mapping[str, pa.Array], task: LookupTask) -> list[str]:
        """Record keys of rows that are deletes, of those among others.

        Args:
            frame: untagged.
            among: record keys by partition; with a global index those of all together.
        """
        ...

    @property
    def looked_up(self) -> LookupCount | None:
        """Lookup statistics once the rows are written; None where unknown."""
        ...

    def profile(self, frame: F) -> list[ProfileRow]:
        """Row counts by (partition, file group); untagged rows have file id ""."""
        ...

    def write(self, frame: F, context: WriteContext, routing: Routing) -> list[WriteStat]:
        """Send every row to its bucket and run `write_bucket` there.

        Rows without a bucket are dropped (deletes of keys that are not in the table).
        """
        ...

    def write_stream(self, data: D, task: PrepareTask, context: WriteContext) -> list[WriteStat]:
        """bulk_insert: evaluate, key and write in one pass, without index.

        One open file per partition and task, in `task.order`; with a bucket index, which takes `streams_buckets`, one
        file per bucket.  Frees nothing and keeps nothing.
        """
        ...

    def compact(self, tasks: Sequence[Task]) -> list[WriteStat | None]:
        """Run tasks of a compaction; the results are in any order.

        Raises:
            HudiError: of the first task that failed.
        """
        ...

    def release(self, frame: F | None) -> None:
        """Release caches of `screen` and `prepare`."""
        ...
