"""Avro schema of archive entries in timeline layout 1, as Apache Hudi 0.15 writes it.

Source: HoodieArchivedMetaEntry; real archive files.
"""

from __future__ import annotations

from typing import Any

from hudi_timeline.timeline import avro_schemas as schemas
from hudi_timeline.timeline.avro_types import (
    Schema,
    array_of,
    field_of,
    map_of,
    optional,
    record_of,
    text,
    top_record,
    version_field,
)

_LONGS = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteBytes",
    "totalWriteErrors",
)
_MORE_LONGS = (
    "totalLogRecords",
    "totalLogFiles",
    "totalUpdatedRecordsCompacted",
    "numInserts",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)

WRITE_STAT = record_of(
    "HoodieWriteStat",
    *(optional(name, text()) for name in ("fileId", "path", "prevCommit")),
    *(optional(name, "long") for name in _LONGS),
    optional("partitionPath", text()),
    *(optional(name, "long") for name in _MORE_LONGS),
)


def _extra() -> Schema:
    return optional("extraMetadata", map_of(text(), default=None))


_COMMIT = record_of(
    "HoodieCommitMetadata",
    optional("partitionToWriteStats", map_of(array_of(WRITE_STAT))),
    _extra(),
    version_field(),
    optional("operationType", text()),
)
_REPLACE_COMMIT = record_of(
    "HoodieReplaceCommitMetadata",
    optional("partitionToWriteStats", map_of(array_of("HoodieWriteStat"))),
    optional("extraMetadata", map_of(text())),
    version_field(),
    optional("operationType", text()),
    optional("partitionToReplaceFileIds", map_of(array_of(text()))),
)
_COMPACTION_METADATA = record_of(
    "HoodieCompactionMetadata",
    field_of(
        "partitionToCompactionWriteStats",
        [
            "null",
            map_of(
                array_of(
                    record_of(
                        "HoodieCompactionWriteStat",
                        optional("partitionPath", text()),
                        optional("totalLogRecords", "long"),
                        optional("totalLogFiles", "long"),
                        optional("totalUpdatedRecordsCompacted", "long"),
                        optional("hoodieWriteStat", "HoodieWriteStat"),
                    )
                )
            ),
        ],
    ),
)
_COMPACTION_PLAN = record_of(
    "HoodieCompactionPlan",
    optional(
        "operations",
        array_of(
            record_of(
                "HoodieCompactionOperation",
                field_of("baseInstantTime", ["null", text()]),
                optional("deltaFilePaths", array_of(text())),
                optional("dataFilePath", text()),
                field_of("fileId", ["null", text()]),
                optional("partitionPath", text()),
                optional("metrics", map_of("double")),
                optional("bootstrapFilePath", text()),
            )
        ),
    ),
    optional("extraMetadata", map_of(text())),
    version_field(),
    optional(
        "strategy",
        record_of(
            "HoodieCompactionStrategy",
            optional("compactorClassName", text()),
            optional("strategyParams", map_of(text())),
            version_field(),
        ),
    ),
    field_of("preserveHoodieMetadata", ["boolean", "null"], default=False),
)
COMPACTION_PLAN: Schema = top_record(_COMPACTION_PLAN)
_INDEX_COMMIT = record_of(
    "HoodieIndexCommitMetadata",
    version_field(),
    optional("operationType", text()),
    optional(
        "indexPartitionInfos",
        array_of(
            record_of(
                "HoodieIndexPartitionInfo",
                version_field(),
                optional("metadataPartitionPath", text()),
                optional("indexUptoInstant", text()),
            )
        ),
    ),
)


def _inner(top: Schema) -> Schema:
    """A root record as a nested one, without namespace."""
    return {key: value for key, value in top.items() if key != "namespace"}


ARCHIVED_ENTRY: dict[str, Any] = top_record(
    record_of(
        "HoodieArchivedMetaEntry",
        optional("hoodieCommitMetadata", _COMMIT),
        optional("hoodieCleanMetadata", _inner(schemas.CLEAN_METADATA)),
        optional("hoodieCompactionMetadata", _COMPACTION_METADATA),
        optional("hoodieRollbackMetadata", _inner(schemas.ROLLBACK_METADATA)),
        optional("hoodieSavePointMetadata", _inner(schemas.SAVEPOINT_METADATA)),
        optional("commitTime", text()),
        optional("actionType", text()),
        version_field(),
        optional("hoodieCompactionPlan", _COMPACTION_PLAN),
        optional("hoodieCleanerPlan", _inner(schemas.CLEANER_PLAN)),
        optional("actionState", text()),
        optional("hoodieReplaceCommitMetadata", _REPLACE_COMMIT),
        optional("hoodieRequestedReplaceMetadata", _inner(schemas.REQUESTED_REPLACE)),
        optional("HoodieInflightReplaceMetadata", "HoodieCommitMetadata"),
        optional("hoodieIndexCommitMetadata", _INDEX_COMMIT),
        optional("stateTransitionTime", text()),
    )
)
