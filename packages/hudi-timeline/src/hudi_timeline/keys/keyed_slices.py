"""Newest file slices with their record keys, and who wrote their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.spill import MemoryLimit
from hudi_format.errors import UnknownPartitionError, UnsupportedError
from hudi_format.file_slice.reader import SliceMerge, read_file_slice
from hudi_format.fork_safe import cached_property
from hudi_format.merge.payloads import payload_rule
from hudi_format.model import FileSlice
from hudi_format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.file_slices import CommittedLogs, newest_with_ranges
from hudi_timeline.file_system_view.slice_merge import slice_merge
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.reading.merged_query import merged_schema
from hudi_timeline.timeline.archived_timeline import archived_actions
from hudi_timeline.timeline.commit_metadata import CommitMetadata
from hudi_timeline.timeline.instant import WRITE_ACTIONS


@dataclass(frozen=True)
class KeyedSlices:
    """Newest slices of a table or of some partitions, and how their rows are read.

    Attributes:
        committed: byte ranges of log files, see `CommittedLogs`.
        schema: columns of the merged rows.
    """

    snapshot: TableSnapshot
    slices: Sequence[FileSlice]
    committed: CommittedLogs
    merge: SliceMerge
    schema: pa.Schema

    @classmethod
    def of(
        cls,
        snapshot: TableSnapshot,
        partitions: str | Sequence[str] | None = None,
        *,
        merge: str | None = None,
        limit: MemoryLimit | None = None,
    ) -> KeyedSlices:
        """The newest slices.

        Args:
            partitions: paths; None for all.
            merge: a merge of the user's instead of the table's own.

        Raises:
            UnknownPartitionError: a partition without files.
            UnsupportedError: logs whose merge is not built here, or keys that are stored nowhere.
        """
        asked = [partitions] if isinstance(partitions, str) else partitions
        asked = None if asked is None else [p.strip("/") for p in asked]
        config = snapshot.config
        slices, committed = newest_with_ranges(snapshot, asked)
        for partition in asked or ():
            if not any(s.partition == partition for s in slices):
                raise UnknownPartitionError(
                    f"the partition {partition!r} has no files",
                    table=snapshot.storage.uri,
                    remedy="`hudi partitions PATH` lists them.",
                )
        found = merge_of(snapshot, merge, logs=any(s.log_files for s in slices))
        found = replace(found, limit=limit)
        return cls(snapshot, slices, committed, found, merged_schema(config, snapshot.schema))

    @property
    def virtual(self) -> bool:
        """Whether keys are made of key columns."""
        return self.merge.key_spec is not None

    def keys(self, one: FileSlice) -> Iterator[pa.Table]:
        """Keys of a slice's rows in their order, with `commit_time` and `commit_seqno`."""
        columns = self.merge.key_columns if self.virtual else [RECORD_KEY, COMMIT_TIME, COMMIT_SEQNO]
        for rows in self.rows(one, columns):
            keys = self.merge.keys(rows)
            nothing = pa.nulls(rows.num_rows, pa.string())
            times = (
                (nothing, nothing) if self.virtual else (rows.column(COMMIT_TIME), rows.column(COMMIT_SEQNO))
            )
            yield pa.table([keys, *times], names=["key", "commit_time", "commit_seqno"]).cast(_KEYS)

    def rows(self, one: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of a slice's rows, in its order; errors as `read_file_slice`."""
        batches = read_file_slice(
            self.snapshot.storage,
            one,
            self.merge,
            self.schema,
            columns=list(columns),
            committed=self.committed,
        )
        for batch in batches:
            yield pa.Table.from_batches([batch])


def merge_of(snapshot: TableSnapshot, merge: str | None = None, *, logs: bool) -> SliceMerge:
    """Merge of slices whose rows are told by key.

    Args:
        merge: of the user's instead of the table's own.
        logs: whether there are any: without, it does not matter which class would merge them.

    Raises:
        UnsupportedError: a merge that is not built here, or keys that are stored nowhere.
    """
    config = snapshot.config
    if not config.populate_meta_fields and not config.record_key_fields:
        raise UnsupportedError(
            "the table's rows have no record keys: neither meta columns nor key columns hold them",
            table=snapshot.storage.uri,
            remedy="rewrite the table with hoodie.populate.meta.fields=true or with record key columns.",
        )
    if logs:
        return slice_merge(snapshot, merge)
    spec = None if config.populate_meta_fields else metadata_config.key_spec(config)
    return SliceMerge(
        payload_rule(None), key_spec=spec, evolution=snapshot.evolution,
        float_digits=config.version.keeps_digits_of_floats,
    )  # fmt: skip


_KEYS = pa.schema([(n, pa.string()) for n in ("key", "commit_time", "commit_seqno")])


@dataclass(frozen=True)
class Writers:
    """Writes of a table by instant, active and archived ones."""

    snapshot: TableSnapshot

    @cached_property
    def _active(self) -> Mapping[str, CommitMetadata]:
        snapshot = self.snapshot
        return {i.time: snapshot.commits.get(i) for i in snapshot.timeline.completed_writes()}

    @cached_property
    def _archived(self) -> Mapping[str, str]:
        storage, config = self.snapshot.storage, self.snapshot.config
        found: dict[str, str] = {}
        for instant, content in archived_actions(storage, config, WRITE_ACTIONS):
            if isinstance(content, CommitMetadata) and content.operation:
                found[instant.time] = content.operation
        return found

    def operation(self, instant: str | None) -> str | None:
        """Operation of a write; None where neither timeline says."""
        if instant is None:
            return None
        active = self._active.get(instant)
        if active is not None:
            return active.operation or None
        return self._archived.get(instant)

    def operations(self, instants: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Operation of the write at each instant."""
        distinct = pc.unique(instants)
        names = pa.array([self.operation(i) for i in distinct.to_pylist()], pa.string())
        return names.take(pc.index_in(instants, distinct))

    def log_of(self, instant: str, one: FileSlice) -> str | None:
        """The log file of a slice that a write appended to; None where that is not known."""
        names = {f.name: f.path for f in one.log_files}
        active = self._active.get(instant)
        for stat in () if active is None else active.stats:
            path = names.get(stat.path.rpartition("/")[2])
            if path is not None and stat.partition == one.partition:
                return path
        return one.log_files[0].path if len(one.log_files) == 1 else None
