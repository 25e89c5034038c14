"""The quarantine: a separate table for rejected rows, with the reason.

One partition holds the bad rows of one write; its value is that write's instant.  The rows are committed there before
the write itself is.  If the write then fails, its rows are taken out again; if its process dies, the next write with
the same quarantine does so, because the table's timeline says that the instant was rolled back.  So the rows of a
batch that is tried again stand there once, and none is lost.

    _hudi_quarantine_id (record key) | _instant (partition) | _operation | _rule | _reason | the columns of the rows
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hudi_format.errors import ConcurrentWriterError, InvalidOptionError, NotAHudiTableError
from hudi_format.storage.open import normalised_path, open_beside
from hudi_format.storage.protocol import Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import list_partitions
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.table_options import (
    HIVE_STYLE,
    PARTITION,
    PRECOMBINE,
    RECONCILE_SCHEMA,
    RECORD_KEY,
    TABLE_NAME,
)
from hudi_timeline.options.transaction_options import HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES
from hudi_timeline.options.write_options import (
    BULK_INSERT_PARALLELISM,
    OPERATION,
    PARTITIONS_TO_DELETE,
    QUARANTINE,
)
from hudi_timeline.timeline.active_timeline import Timeline
from hudi_timeline.timeline.avro_files import parse
from hudi_timeline.timeline.instant import ROLLBACK
from hudi_timeline.validation.row_rules import ID, INSTANT

R = TypeVar("R")
EXTRA = "hudi.quarantine"
_WAIT_S, _BETWEEN_S = 60.0, 0.2


def open_quarantine(storage: Storage, config: WriteConfig) -> Storage | None:
    """Storage of the quarantine in the options, or None.

    Raises:
        InvalidOptionError: a path that is the table's, below it or above it.
    """
    if not config.quarantine_path:
        return None
    path, own = normalised_path(config.quarantine_path).rstrip("/"), storage.uri.rstrip("/")
    if path == own or path.startswith(own + "/") or own.startswith(path + "/"):
        raise InvalidOptionError(
            f"{QUARANTINE}={config.quarantine_path} and the table's path lie one in the other",
            table=storage.uri,
            remedy="give the quarantine a folder of its own.",
            option=QUARANTINE,
        )
    return open_beside(storage, path)


def _options(config: WriteConfig, name: str) -> dict[str, str]:
    """Options of any write to a table's quarantine, with the table's heartbeat settings."""
    return {
        TABLE_NAME: f"{name}_quarantine",
        HEARTBEAT_INTERVAL_MS: str(config.transaction.heartbeat_interval_ms),
        HEARTBEAT_MISSES: str(config.transaction.heartbeat_misses),
    }


def write_options(config: WriteConfig, name: str, tasks: int) -> dict[str, str]:
    """Options of a write of rejected rows."""
    return {
        **_options(config, name),
        OPERATION: "bulk_insert",
        RECORD_KEY: ID,
        PARTITION: INSTANT,
        PRECOMBINE: "",
        HIVE_STYLE: "true",
        RECONCILE_SCHEMA: "true",
        BULK_INSERT_PARALLELISM: str(tasks),
    }


def removal_options(config: WriteConfig, name: str, instants: Sequence[str]) -> dict[str, str]:
    """Options of a delete_partition of the rows of some writes."""
    return {
        **_options(config, name),
        OPERATION: "delete_partition",
        PARTITIONS_TO_DELETE: ",".join(f"{INSTANT}={i}" for i in instants),
    }


def abandoned(table: Storage, timeline: Timeline, quarantine: Storage) -> list[str]:
    """Instants with rows in the quarantine whose write was rolled back.

    Args:
        timeline: of the table.
    """
    try:
        config = table_config.load(quarantine)
    except NotAHudiTableError:
        return []
    there = {i.time for i in timeline.instants if i.action != ROLLBACK}
    partitions = {
        p: p.removeprefix(f"{INSTANT}=")
        for p in list_partitions(quarantine, config)
        if p.startswith(f"{INSTANT}=")
    }
    unknown = {p: i for p, i in partitions.items() if i not in there}
    if not unknown:
        return []
    undone = rolled_back(table, timeline)
    dead = {p: i for p, i in unknown.items() if i in undone}
    if not dead:
        return []
    # A partition whose rows were taken out already is still a folder.
    slices = load_snapshot(quarantine, config).slices(sorted(dead))
    return sorted({dead[s.partition] for s in slices})


def rolled_back(storage: Storage, timeline: Timeline) -> set[str]:
    """Instants undone by the completed rollbacks of the active timeline."""
    found: set[str] = set()
    for instant in timeline.of(ROLLBACK):
        if instant.completed:
            record = parse("HoodieRollbackMetadata", storage.read(instant.path), path=instant.path)
            found.update(str(i) for i in record.get("commitsRollback") or ())
    return found


def patiently(act: Callable[[], R]) -> R:
    """Write to the quarantine, waiting for concurrent writers.

    Raises:
        ConcurrentWriterError: it did not end within a minute.
    """
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            return act()
        except ConcurrentWriterError:
            if time.monotonic() > until:
                raise
            time.sleep(_BETWEEN_S)


def extra_of(path: str, counts: Mapping[str, int]) -> dict[str, str]:
    """Commit metadata entries for the rejected rows."""
    if not sum(counts.values()):
        return {}
    said = {"path": path, "rows": sum(counts.values()), "rules": dict(sorted(counts.items()))}
    return {EXTRA: json.dumps(said, sort_keys=True)}
