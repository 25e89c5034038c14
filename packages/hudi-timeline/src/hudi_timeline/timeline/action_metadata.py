"""Action metadata: plans and results of every action as typed values.

Commits are `CommitMetadata`; the rest are the values here, read from the Avro containers that all table versions
share.  A field that a writer left out has its default.

Source: the Avro records of Apache Hudi 0.15 and 1.x; spec "Timeline", sections 2, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.storage.protocol import Storage
from hudi_timeline.timeline.avro_files import Record, parse
from hudi_timeline.timeline.commit_metadata import CommitMetadata, read_commit
from hudi_timeline.timeline.instant import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    COMPLETED,
    INDEXING,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    empty_file_error,
    read_instant,
)

_T = TypeVar("_T")
_Convert = Callable[[Any, str], Any]


def _typed(kind: type[_T]) -> Callable[[Any, str], _T]:
    def convert(value: Any, where: str) -> _T:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{where} is a {type(value).__name__}")
        return value

    return convert


def _list_of(item: _Convert) -> _Convert:
    def convert(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(
            item(v, f"{where}[{n}]") for n, v in enumerate(_typed(list)(value, where)) if v is not None
        )

    return convert


def _map_of(item: _Convert) -> _Convert:
    def convert(value: Any, where: str) -> dict[str, Any]:
        return {
            str(k): item(v, f"{where}[{k!r}]") for k, v in _typed(dict)(value, where).items() if v is not None
        }

    return convert


def _record_of(cls: type[_T]) -> Callable[[Any, str], _T]:
    def convert(value: Any, where: str) -> _T:
        record = _typed(dict)(value, where)
        given = {}
        for part in fields(cls):  # type: ignore[arg-type]
            name, convert_part = part.metadata["avro"], part.metadata["convert"]
            found = record.get(name)
            if found is not None:
                given[part.name] = convert_part(found, f"{where}.{name}" if where else name)
        return cls(**given)

    return convert


_TEXT, _LONG, _FLAG = _typed(str), _typed(int), _typed(bool)
_TEXTS = _list_of(_TEXT)


def _text(avro: str, default: str = "") -> Any:
    return field(default=default, metadata={"avro": avro, "convert": _TEXT})


def _long(avro: str, default: int = 0) -> Any:
    return field(default=default, metadata={"avro": avro, "convert": _LONG})


def _flag(avro: str) -> Any:
    return field(default=False, metadata={"avro": avro, "convert": _FLAG})


def _texts(avro: str) -> Any:
    return field(default=(), metadata={"avro": avro, "convert": _TEXTS})


def _map(avro: str, item: _Convert) -> Any:
    return field(default_factory=dict, metadata={"avro": avro, "convert": _map_of(item)})


def _records(avro: str, cls: type) -> Any:
    return field(default=(), metadata={"avro": avro, "convert": _list_of(_record_of(cls))})


def _one(avro: str, cls: type) -> dict[str, Any]:
    return {"avro": avro, "convert": _record_of(cls)}


@dataclass(frozen=True, slots=True)
class InstantName:
    """Reference to an instant."""

    time: str = _text("commitTime")
    action: str = _text("action")


@dataclass(frozen=True, slots=True)
class RetainedInstant:
    """The oldest instant that a cleaner retains."""

    time: str = _text("timestamp")
    action: str = _text("action")
    state: str = _text("state")


@dataclass(frozen=True, slots=True)
class FileToClean:
    path: str = _text("filePath")
    is_bootstrap_base_file: bool = _flag("isBootstrapBaseFile")


@dataclass(frozen=True, slots=True)
class CleanerPlan:
    """Plan of a clean: files by partition (absolute paths), and whole partitions."""

    earliest_to_retain: RetainedInstant | None = field(
        default=None, metadata=_one("earliestInstantToRetain", RetainedInstant)
    )
    last_completed: str = _text("lastCompletedCommitTimestamp")
    policy: str = _text("policy")
    files: Mapping[str, tuple[FileToClean, ...]] = _map(
        "filePathsToBeDeletedPerPartition", _list_of(_record_of(FileToClean))
    )
    old_files: Mapping[str, tuple[str, ...]] = _map("filesToBeDeletedPerPartition", _TEXTS)
    partitions: tuple[str, ...] = _texts("partitionsToBeDeleted")
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    partition: str = _text("partitionPath")
    policy: str = _text("policy")
    patterns: tuple[str, ...] = _texts("deletePathPatterns")
    deleted: tuple[str, ...] = _texts("successDeleteFiles")
    failed: tuple[str, ...] = _texts("failedDeleteFiles")
    is_partition_deleted: bool = _flag("isPartitionDeleted")


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """Result of a clean, by partition.

    `earliest_to_retain` is "" where it kept file versions.
    """

    start: str = _text("startCleanTime")
    took_ms: int = _long("timeTakenInMillis")
    files_deleted: int = _long("totalFilesDeleted")
    earliest_to_retain: str = _text("earliestCommitToRetain")
    last_completed: str = _text("lastCompletedCommitTimestamp")
    partitions: Mapping[str, CleanedPartition] = _map("partitionMetadata", _record_of(CleanedPartition))
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    partition: str = _text("partitionPath")
    file_id: str = _text("fileId")
    base_instant: str = _text("latestBaseInstant")
    files: tuple[str, ...] = _texts("filesToBeDeleted")
    log_blocks: Mapping[str, int] = _map("logBlocksToBeDeleted", _LONG)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    target: InstantName | None = field(default=None, metadata=_one("instantToRollback", InstantName))
    requests: tuple[RollbackRequest, ...] = _records("RollbackRequests", RollbackRequest)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    partition: str = _text("partitionPath")
    deleted: tuple[str, ...] = _texts("successDeleteFiles")
    failed: tuple[str, ...] = _texts("failedDeleteFiles")
    command_logs: Mapping[str, int] = _map("rollbackLogFiles", _LONG)
    logs_of_failed: Mapping[str, int] = _map("logFilesFromFailedCommit", _LONG)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    start: str = _text("startRollbackTime")
    took_ms: int = _long("timeTakenInMillis")
    files_deleted: int = _long("totalFilesDeleted")
    commits: tuple[str, ...] = _texts("commitsRollback")
    partitions: Mapping[str, RolledBackPartition] = _map("partitionMetadata", _record_of(RolledBackPartition))
    instants: tuple[InstantName, ...] = _records("instantsRollback", InstantName)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    instants: tuple[InstantName, ...] = _records("instantsToRollback", InstantName)
    savepoint: str = _text("savepointToRestoreTimestamp")
    version: int = _long("version", 2)


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """Result of a restore: its rollbacks, by rolled-back instant."""

    start: str = _text("startRestoreTime")
    took_ms: int = _long("timeTakenInMillis")
    commits: tuple[str, ...] = _texts("instantsToRollback")
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]] = _map(
        "hoodieRestoreMetadata", _list_of(_record_of(RollbackMetadata))
    )
    instants: tuple[InstantName, ...] = _records("restoreInstantInfo", InstantName)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class SavedPartition:
    partition: str = _text("partitionPath")
    files: tuple[str, ...] = _texts("savepointDataFile")


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Metadata of a savepoint.

    `at_ms` is in milliseconds since 1970.
    """

    by: str = _text("savepointedBy")
    at_ms: int = _long("savepointedAt")
    comments: str = _text("comments")
    partitions: Mapping[str, SavedPartition] = _map("partitionMetadata", _record_of(SavedPartition))
    version: int = _long("version", 1)


def _number(value: Any, where: str) -> float:
    return float(_typed((float, int))(value, where))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One slice to compact; file names are relative to the partition."""

    partition: str = _text("partitionPath")
    file_id: str = _text("fileId")
    base_instant: str = _text("baseInstantTime")
    data_file: str = _text("dataFilePath")
    log_files: tuple[str, ...] = _texts("deltaFilePaths")
    metrics: Mapping[str, float] = _map("metrics", _number)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Plan of a compaction or log compaction."""

    operations: tuple[CompactionOperation, ...] = _records("operations", CompactionOperation)
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    preserve_meta_columns: bool = _flag("preserveHoodieMetadata")
    missing_partitions: tuple[str, ...] = _texts("missingSchedulePartitions")
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class SliceName:
    """One slice to cluster; paths are absolute."""

    partition: str = _text("partitionPath")
    file_id: str = _text("fileId")
    data_file: str = _text("dataFilePath")
    log_files: tuple[str, ...] = _texts("deltaFilePaths")


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    slices: tuple[SliceName, ...] = _records("slices", SliceName)
    output_groups: int = _long("numOutputFileGroups", 1)
    metrics: Mapping[str, float] = _map("metrics", _number)
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)


@dataclass(frozen=True, slots=True)
class ClusteringStrategy:
    class_name: str = _text("strategyClassName")
    params: Mapping[str, str] = _map("strategyParams", _TEXT)


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    groups: tuple[ClusteringGroup, ...] = _records("inputGroups", ClusteringGroup)
    strategy: ClusteringStrategy | None = field(default=None, metadata=_one("strategy", ClusteringStrategy))
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    preserve_meta_columns: bool = _flag("preserveHoodieMetadata")
    missing_partitions: tuple[str, ...] = _texts("missingSchedulePartitions")
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class ReplaceRequest:
    """Request of a replacecommit, with a plan only for clustering."""

    operation: str = _text("operationType")
    clustering: ClusteringPlan | None = field(default=None, metadata=_one("clusteringPlan", ClusteringPlan))
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A metadata partition, and the instant up to which it is indexed."""

    partition: str = _text("metadataPartitionPath")
    up_to: str = _text("indexUptoInstant")
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    partitions: tuple[IndexedPartition, ...] = _records("indexPartitionInfos", IndexedPartition)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    partitions: tuple[IndexedPartition, ...] = _records("indexPartitionInfos", IndexedPartition)
    operation: str = _text("operationType")
    version: int = _long("version", 1)


Action = (
    CommitMetadata | CleanerPlan | CleanMetadata | RollbackPlan | RollbackMetadata | RestorePlan | RestoreMetadata
    | SavepointMetadata | CompactionPlan | ReplaceRequest | IndexPlan | IndexMetadata
)  # fmt: skip

# By action and state: the name of the Avro record, and what becomes of it.  Commits are elsewhere.
_KINDS: Mapping[tuple[str, str], tuple[str, type[Action]]] = {
    (CLEAN, REQUESTED): ("HoodieCleanerPlan", CleanerPlan),
    (CLEAN, INFLIGHT): ("HoodieCleanerPlan", CleanerPlan),
    (CLEAN, COMPLETED): ("HoodieCleanMetadata", CleanMetadata),
    (ROLLBACK, REQUESTED): ("HoodieRollbackPlan", RollbackPlan),
    (ROLLBACK, COMPLETED): ("HoodieRollbackMetadata", RollbackMetadata),
    (RESTORE, REQUESTED): ("HoodieRestorePlan", RestorePlan),
    (RESTORE, COMPLETED): ("HoodieRestoreMetadata", RestoreMetadata),
    (SAVEPOINT, COMPLETED): ("HoodieSavepointMetadata", SavepointMetadata),
    (COMPACTION, REQUESTED): ("HoodieCompactionPlan", CompactionPlan),
    (LOG_COMPACTION, REQUESTED): ("HoodieCompactionPlan", CompactionPlan),
    (REPLACE_COMMIT, REQUESTED): ("HoodieRequestedReplaceMetadata", ReplaceRequest),
    (CLUSTERING, REQUESTED): ("HoodieRequestedReplaceMetadata", ReplaceRequest),
    (INDEXING, REQUESTED): ("HoodieIndexPlan", IndexPlan),
    (INDEXING, COMPLETED): ("HoodieIndexCommitMetadata", IndexMetadata),
}


def read_action(storage: Storage, instant: Instant) -> Action | None:
    """Content of an instant's file; None for an empty file of a pending instant.

    Raises:
        CorruptFileError: a completed instant's file is empty, or it holds something else.
        MissingFileError: the file is not there (any more).
        UnsupportedError: a file of that action and state has no content that is known.
    """
    if instant.action in WRITE_ACTIONS and (instant.action, instant.state) not in _KINDS:
        return read_commit(storage, instant)

    def parsed(data: bytes) -> Action | None:
        if not data:
            if instant.completed:
                raise empty_file_error(instant, storage.uri)
            return None
        return parse_action(instant.action, instant.state, data)

    return read_instant(storage, instant, parsed)


def parse_action(action: str, state: str, data: bytes) -> Action:
    """Typed value of a plan or result from the bytes of its file.

    Raises:
        CorruptFileError: no container of that record, or fields of other types.
        UnsupportedError: no content is known of a file of that action and state.
    """
    kind = _KINDS.get((action, state))
    if kind is None:
        raise UnsupportedError(
            f"no content is known of a file of {action} that is {state.lower()}",
            remedy="read the file with Apache Hudi.",
        )
    name, cls = kind
    return _as(cls, parse(name, data), name)


def action_of_record(action: str, state: str, record: Record) -> Action:
    """Typed value of a decoded record; errors as `parse_action`."""
    name, cls = _KINDS[action, state]
    return _as(cls, record, name)


def _as(cls: type[_T], record: Record, name: str) -> _T:
    try:
        return _record_of(cls)(record, "")
    except ValueError as e:
        raise CorruptFileError(
            f"no {name}: {e}", remedy="restore the file from a backup of the table."
        ) from None
