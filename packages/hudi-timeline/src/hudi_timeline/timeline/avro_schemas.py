"""Avro schemas of plans and results, as Apache Hudi 0.15 writes them.

Field order, union order, `doc` and `default` entries are those in the files, so that a container
that we write has the same header.  Source: timeline format, "Avro schemas", and real files.
"""

from __future__ import annotations

from hudi_timeline.timeline.avro_types import array_of as _array
from hudi_timeline.timeline.avro_types import field_of as _field
from hudi_timeline.timeline.avro_types import map_of as _map
from hudi_timeline.timeline.avro_types import optional as _optional
from hudi_timeline.timeline.avro_types import record_of as _record
from hudi_timeline.timeline.avro_types import text
from hudi_timeline.timeline.avro_types import top_record as _top
from hudi_timeline.timeline.avro_types import version_field as _version

_S = text()

_INSTANT_INFO = _record("HoodieInstantInfo", _field("commitTime", _S), _field("action", _S))

ROLLBACK_PLAN = _top(
    _record(
        "HoodieRollbackPlan",
        _optional("instantToRollback", _INSTANT_INFO, doc="Hoodie instant that needs to be rolled back"),
        _optional(
            "RollbackRequests",
            _array(
                _record(
                    "HoodieRollbackRequest",
                    _field("partitionPath", _S),
                    _optional("fileId", _S),
                    _optional("latestBaseInstant", _S),
                    _field("filesToBeDeleted", _array(_S, default=[]), default=[]),
                    _optional("logBlocksToBeDeleted", _map("long")),
                )
            ),
        ),
        _version(),
    )
)

_ROLLBACK_PARTITION = _record(
    "HoodieRollbackPartitionMetadata",
    _field("partitionPath", _S),
    _field("successDeleteFiles", _array(_S)),
    _field("failedDeleteFiles", _array(_S)),
    _optional("rollbackLogFiles", _map("long")),
    _optional("logFilesFromFailedCommit", _map("long")),
)

_ROLLBACK = _record(
    "HoodieRollbackMetadata",
    _field("startRollbackTime", _S),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("commitsRollback", _array(_S)),
    _field("partitionMetadata", _map(_ROLLBACK_PARTITION)),
    _version(),
    _field("instantsRollback", _array(_INSTANT_INFO, default=[]), default=[]),
)

ROLLBACK_METADATA = _top(_ROLLBACK)

RESTORE_PLAN = _top(
    _record(
        "HoodieRestorePlan",
        _field("instantsToRollback", _array(_INSTANT_INFO, default=None), default=[]),
        _version(2),
        _optional("savepointToRestoreTimestamp", _S),
    )
)

RESTORE_METADATA = _top(
    _record(
        "HoodieRestoreMetadata",
        _field("startRestoreTime", _S),
        _field("timeTakenInMillis", "long"),
        _field("instantsToRollback", _array(_S)),
        _field("hoodieRestoreMetadata", _map(_array(["null", _ROLLBACK], default=None))),
        _version(),
        _field("restoreInstantInfo", _array("HoodieInstantInfo", default=None), default=[]),
    )
)

_CLEAN_PARTITION = _record(
    "HoodieCleanPartitionMetadata",
    _field("partitionPath", _S),
    _field("policy", _S),
    _field("deletePathPatterns", _array(_S)),
    _field("successDeleteFiles", _array(_S)),
    _field("failedDeleteFiles", _array(_S)),
    _optional("isPartitionDeleted", "boolean"),
)

CLEAN_METADATA = _top(
    _record(
        "HoodieCleanMetadata",
        _field("startCleanTime", _S),
        _field("timeTakenInMillis", "long"),
        _field("totalFilesDeleted", "int"),
        _field("earliestCommitToRetain", _S),
        _field("lastCompletedCommitTimestamp", _S, default=""),
        _field("partitionMetadata", _map(_CLEAN_PARTITION)),
        _version(),
        _optional("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata", default=None)),
        _optional("extraMetadata", _map(_S, default=None)),
    )
)

CLEANER_PLAN = _top(
    _record(
        "HoodieCleanerPlan",
        _optional(
            "earliestInstantToRetain",
            _record(
                "HoodieActionInstant", _field("timestamp", _S), _field("action", _S), _field("state", _S)
            ),
        ),
        _field("lastCompletedCommitTimestamp", _S, default=""),
        _field("policy", _S),
        _optional("filesToBeDeletedPerPartition", _map(_array(_S))),
        _version(),
        _optional(
            "filePathsToBeDeletedPerPartition",
            _map(
                _array(
                    _record(
                        "HoodieCleanFileInfo",
                        _optional("filePath", _S),
                        _optional("isBootstrapBaseFile", "boolean"),
                    )
                )
            ),
            doc="This field replaces the field filesToBeDeletedPerPartition",
        ),
        _optional("partitionsToBeDeleted", _array(_S), doc="partitions to be deleted"),
        _optional("extraMetadata", _map(_S, default=None)),
    )
)

SAVEPOINT_METADATA = _top(
    _record(
        "HoodieSavepointMetadata",
        _field("savepointedBy", _S),
        _field("savepointedAt", "long"),
        _field("comments", _S),
        _field(
            "partitionMetadata",
            _map(
                _record(
                    "HoodieSavepointPartitionMetadata",
                    _field("partitionPath", _S),
                    _field("savepointDataFile", _array(_S)),
                )
            ),
        ),
        _version(),
    )
)

_SLICE_INFO = _record(
    "HoodieSliceInfo",
    _optional("dataFilePath", _S),
    _optional("deltaFilePaths", _array(_S)),
    _field("fileId", ["null", _S]),
    _optional("partitionPath", _S),
    _optional("bootstrapFilePath", _S),
    _version(),
)

_CLUSTERING_PLAN = _record(
    "HoodieClusteringPlan",
    _optional(
        "inputGroups",
        _array(
            _record(
                "HoodieClusteringGroup",
                _optional("slices", _array(_SLICE_INFO)),
                _optional("metrics", _map("double")),
                {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
                _optional("extraMetadata", _map(_S)),
                _version(),
            )
        ),
    ),
    _optional(
        "strategy",
        _record(
            "HoodieClusteringStrategy",
            _optional("strategyClassName", _S),
            _optional("strategyParams", _map(_S)),
            _version(),
        ),
    ),
    _optional("extraMetadata", _map(_S)),
    _version(),
    _optional("preserveHoodieMetadata", "boolean"),
)

REQUESTED_REPLACE = _top(
    _record(
        "HoodieRequestedReplaceMetadata",
        _optional("operationType", _S),
        _optional("clusteringPlan", _CLUSTERING_PLAN),
        _optional("extraMetadata", _map(_S)),
        _version(),
    )
)
