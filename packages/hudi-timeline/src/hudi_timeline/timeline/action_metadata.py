"""Action metadata: plans and results of every action as typed values.

Commits are `CommitMetadata`; the rest are the values here, read from the Avro containers that all table versions
share.  A field that a writer left out has its default.

Source: the Avro records of Apache Hudi 0.15 and 1.x; spec "Timeline", sections 2, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.model import join_path
from hudi_format.storage.protocol import Storage
from hudi_timeline.options.service_config import KEEP_COMMITS
from hudi_timeline.timeline.avro_files import Record, parse, render
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

SAVEPOINTED = "savepointed_timestamps"
GUARDED = "hudi.clean.guarded"
"""In the inflight file of a cleaning whose executor looks at the timeline, under the lock, before it deletes."""

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
    own: Callable[[Any, str], _T] | None = getattr(cls, "of_record", None)
    if own is not None:  # the record has other fields than the class
        return own

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


def _plain(value: Any) -> Any:
    """Inverse of `_record_of`: a value as fastavro takes it."""
    if is_dataclass(value):
        return {part.metadata["avro"]: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class InstantName:
    """Reference to an instant."""

    time: str = _text("commitTime")
    action: str = _text("action")


@dataclass(frozen=True, slots=True)
class FileToClean:
    path: str = _text("filePath")
    is_bootstrap_base_file: bool = _flag("isBootstrapBaseFile")


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """Plan of a cleaning, unchecked (`hudi_timeline.services.pending_cleans.check_plan`).

    Attributes:
        policy: KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS.
        earliest: the oldest instant that stays readable; None with the policy of versions, or where all do.
        last_commit: the newest completed commit when it was planned; "" where it does not say.
        files: names of the files by partition.
        partitions: partitions whose folder goes too, because nothing is left in them.
        savepoints: the savepoints that it spares.
        sources: paths of source files of a bootstrap that it deletes; of other writers only.
        guarded: whether its executor looks at the timeline, under the lock, before it deletes.
    """

    policy: str = KEEP_COMMITS
    earliest: Instant | None = None
    last_commit: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    guarded: bool = False

    @property
    def count(self) -> int:
        """Number of files to delete."""
        return sum(map(len, self.files.values()))

    def __bool__(self) -> bool:
        return bool(self.count or self.partitions)

    def to_bytes(self, uri: str) -> bytes:
        """Bytes of the requested or inflight file of a table at `uri`; paths are absolute."""
        at = self.earliest
        extra = {SAVEPOINTED: ",".join(self.savepoints)} if self.savepoints else {}
        return render("HoodieCleanerPlan", {
            "earliestInstantToRetain": at and {"timestamp": at.time, "action": at.action, "state": at.state},
            "lastCompletedCommitTimestamp": self.last_commit,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": 2,
            "filePathsToBeDeletedPerPartition": {
                p: [_plain(FileToClean(f"{uri}/{join_path(p, n)}")) for n in names]
                for p, names in self.files.items()
            },
            "partitionsToBeDeleted": list(self.partitions),
            "extraMetadata": {**extra, GUARDED: "true"} if self.guarded else extra,
        })  # fmt: skip

    @classmethod
    def of_record(cls, value: Any, where: str) -> CleanPlan:
        """The plan in a clean file's record, of any writer.

        Its paths are absolute, which are stale once a table was moved: partition and name count.
        """
        record = {k: v for k, v in _typed(dict)(value, where).items() if v is not None}
        infos: dict[str, tuple[FileToClean, ...]] = _map_of(_list_of(_record_of(FileToClean)))(
            record.get("filePathsToBeDeletedPerPartition", {}), "filePathsToBeDeletedPerPartition"
        )
        paths = {p: tuple(f.path for f in several) for p, several in infos.items()}
        old = record.get("filesToBeDeletedPerPartition", {})
        for partition, several in _map_of(_TEXTS)(old, "filesToBeDeletedPerPartition").items():
            paths[partition] = (*paths.get(partition, ()), *several)
        at = _map_of(_TEXT)(record.get("earliestInstantToRetain", {}), "earliestInstantToRetain")
        extra = _map_of(_TEXT)(record.get("extraMetadata", {}), "extraMetadata")
        return cls(
            _TEXT(record.get("policy", ""), "policy") or KEEP_COMMITS,
            Instant(at["timestamp"], at["action"], at["state"]) if at else None,
            _TEXT(record.get("lastCompletedCommitTimestamp", ""), "lastCompletedCommitTimestamp"),
            {p: tuple(path.rpartition("/")[2] for path in several) for p, several in paths.items()},
            _TEXTS(record.get("partitionsToBeDeleted", []), "partitionsToBeDeleted"),
            _savepoints_in(extra),
            tuple(f.path for several in infos.values() for f in several if f.is_bootstrap_base_file),
            GUARDED in extra,
        )


def _savepoints_in(extra: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(t for t in extra.get(SAVEPOINTED, "").split(",") if t)


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
    """Files deleted by a cleaning, by partition.

    Attributes:
        earliest_to_retain: the oldest instant whose files it kept; "" where it went by versions, or says nothing.
        last_completed: the newest commit when it was planned; "" where it does not say.
    """

    start: str = _text("startCleanTime")
    took_ms: int = _long("timeTakenInMillis")
    files_deleted: int = _long("totalFilesDeleted")
    earliest_to_retain: str = _text("earliestCommitToRetain")
    last_completed: str = _text("lastCompletedCommitTimestamp")
    partitions: Mapping[str, CleanedPartition] = _map("partitionMetadata", _record_of(CleanedPartition))
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    version: int = _long("version", 1)
    bootstrap: Mapping[str, CleanedPartition] = _map(
        "bootstrapPartitionMetadata", _record_of(CleanedPartition)
    )

    @property
    def savepoints(self) -> tuple[str, ...]:
        """The savepoints that it spared."""
        return _savepoints_in(self.extra)


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Files of a partition to delete, or a slice that gets a command block after its logs.

    Attributes:
        base_instant: of the slice.
        files: absolute paths, which are stale once a table was moved.
        log_blocks: the log files with the write's blocks, as paths or names, and bytes.
    """

    partition: str = _text("partitionPath")
    file_id: str = _text("fileId")
    base_instant: str = _text("latestBaseInstant")
    files: tuple[str, ...] = _texts("filesToBeDeleted")
    log_blocks: Mapping[str, int] = _map("logBlocksToBeDeleted", _LONG)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Plan of a rollback, unchecked (`hudi_timeline.transaction.rollback_plan.check_plan`)."""

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
    source_file: str = _text("bootstrapFilePath")


@dataclass(frozen=True, slots=True)
class CompactionStrategy:
    """Class of Apache Hudi that executes a plan; a plan of a compaction names none."""

    class_name: str = _text("compactorClassName")
    params: Mapping[str, str] = _map("strategyParams", _TEXT)
    version: int = _long("version", 1)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Plan of a compaction or log compaction."""

    operations: tuple[CompactionOperation, ...] = _records("operations", CompactionOperation)
    extra: Mapping[str, str] = _map("extraMetadata", _TEXT)
    strategy: CompactionStrategy | None = field(default=None, metadata=_one("strategy", CompactionStrategy))
    preserve_meta_columns: bool = _flag("preserveHoodieMetadata")
    missing_partitions: tuple[str, ...] = _texts("missingSchedulePartitions")
    version: int = _long("version", 1)

    def __bool__(self) -> bool:
        return bool(self.operations)

    def to_bytes(self) -> bytes:
        """Bytes of the requested file; a file that is not there is null, and not an empty name."""
        record = _plain(self)
        for operation in record["operations"]:
            for name in ("dataFilePath", "bootstrapFilePath"):
                operation[name] = operation[name] or None
        return render("HoodieCompactionPlan", record)


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
    CommitMetadata | CleanPlan | CleanMetadata | RollbackPlan | RollbackMetadata | RestorePlan | RestoreMetadata
    | SavepointMetadata | CompactionPlan | ReplaceRequest | IndexPlan | IndexMetadata
)  # fmt: skip

# By action and state: the name of the Avro record, and what becomes of it.  Commits are elsewhere.
_KINDS: Mapping[tuple[str, str], tuple[str, type[Action]]] = {
    (CLEAN, REQUESTED): ("HoodieCleanerPlan", CleanPlan),
    (CLEAN, INFLIGHT): ("HoodieCleanerPlan", CleanPlan),
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
    (INDEXING, INFLIGHT): ("HoodieIndexPlan", IndexPlan),
    (INDEXING, COMPLETED): ("HoodieIndexCommitMetadata", IndexMetadata),
}

_NAMES = {cls: name for name, cls in _KINDS.values()}


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
        parse_one = _parsed_before if len(data) <= _SHORT else parse_action
        return parse_one(instant.action, instant.state, data)

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


# As of commits: one call reads a plan several times.
_SHORT, _KEPT = 32_768, 64
_parsed_before = lru_cache(maxsize=_KEPT)(parse_action)


def render_action(value: Action) -> bytes:
    """Bytes of the file of a plan or result; see `to_bytes` for those that have it."""
    return render(_NAMES[type(value)], _plain(value))


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
