"""Instants as entries of the archive: one for each state, with what the instant's file held.

Source: MetadataConversionUtils of Apache Hudi 0.15; real archive files.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hudi_format.errors import CorruptFileError
from hudi_format.instant_time import format_instant, zone_of
from hudi_format.json_text import loads
from hudi_format.storage import Storage
from hudi_timeline.instant import (
    CLEAN,
    COMPACTION,
    COMPLETED,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudi_timeline.metadata import avro_records
from hudi_timeline.metadata.archived_schema import WRITE_STAT
from hudi_timeline.table_config import TableConfig

_STAT_FIELDS = tuple(f["name"] for f in WRITE_STAT["fields"])
_ROLLING = "ROLLING_STAT"


def archive_entry(storage: Storage, table: TableConfig, instant: Instant) -> dict[str, Any]:
    """The entry of one state of an instant, as a record of `archived_schema.ARCHIVED_ENTRY`.

    Raises:
        CorruptFileError: the instant's file cannot be read; it is then left on the timeline.
    """
    data = storage.read(instant.path)
    moment = datetime.fromtimestamp(instant.mtime_ms / 1000, zone_of(table.timezone))
    entry: dict[str, Any] = {
        "commitTime": instant.time,
        "actionType": instant.action,
        "actionState": instant.state,
        "stateTransitionTime": format_instant(moment.replace(tzinfo=None)),
    }
    try:
        name, value = _content(instant, data)
    except CorruptFileError as e:
        raise e.at(table=storage.uri, instant=instant.time, file=instant.path) from None
    if name:
        entry[name] = value
    return entry


def _content(instant: Instant, data: bytes) -> tuple[str, Any]:
    """The field of the entry that holds the file's content, and the content."""
    action, completed = instant.action, instant.state == COMPLETED
    path = instant.path
    if action == REPLACE_COMMIT and instant.state == REQUESTED:
        return "hoodieRequestedReplaceMetadata", _record("HoodieRequestedReplaceMetadata", data, path)
    if action == REPLACE_COMMIT:
        name = "hoodieReplaceCommitMetadata" if completed else "HoodieInflightReplaceMetadata"
        return name, _commit(data, path, replaced=completed)
    if action in WRITE_ACTIONS:
        return "hoodieCommitMetadata", _commit(data, path, replaced=False)
    if action == CLEAN:
        if completed:
            return "hoodieCleanMetadata", _record("HoodieCleanMetadata", data, path)
        return "hoodieCleanerPlan", _record("HoodieCleanerPlan", data, path)
    if action == ROLLBACK and completed:
        return "hoodieRollbackMetadata", _record("HoodieRollbackMetadata", data, path)
    if action == SAVEPOINT and completed:
        return "hoodieSavePointMetadata", _record("HoodieSavepointMetadata", data, path)
    if action in (COMPACTION, LOG_COMPACTION) and instant.state == REQUESTED:
        return "hoodieCompactionPlan", _record("HoodieCompactionPlan", data, path)
    return "", None


def _record(name: str, data: bytes, path: str) -> Any:
    # Empty files of cleanings and overwrites say nothing; Apache Hudi's readers take them so.
    return avro_records.parse(name, data, path=path) if data else None


def _commit(data: bytes, path: str, *, replaced: bool) -> dict[str, Any]:
    """Commit metadata out of its JSON: the fields that the archive knows."""
    try:
        value = loads(data) if data else {}
        extra: Mapping[str, Any] = value.get("extraMetadata") or {}
        stats = {
            partition: [{name: stat.get(name) for name in _STAT_FIELDS} for stat in of]
            for partition, of in (value.get("partitionToWriteStats") or {}).items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError) as e:
        raise CorruptFileError(
            f"no commit metadata: {e}",
            file=path,
            remedy="restore the file from a backup; nothing is archived before it can be read.",
        ) from None
    operation = value.get("operationType") or "UNKNOWN"
    out: dict[str, Any] = {
        "partitionToWriteStats": stats,
        "extraMetadata": {**extra, _ROLLING: ""},
        "version": None,
        "operationType": "COMPACT" if value.get("compacted") is True else operation,
    }
    if replaced:
        out["partitionToReplaceFileIds"] = value.get("partitionToReplaceFileIds") or {}
    return out
