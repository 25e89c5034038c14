"""Upgrade and downgrade between table versions 5 and 6.

    lock { failed writes are rolled back -> plans of compactions in .aux, the metadata table -> hoodie.table.version }

The version is written last: until then the table is one of its old version, and the same call goes on where it stopped.
Upgrade readers before writers: Apache Hudi before 0.14 does not read version 6.

Source: UpgradeDowngrade, FiveToSixUpgradeHandler and SixToFiveDowngradeHandler of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hudi_format.errors import OptionError, UnsupportedError
from hudi_format.file_names import parse_log_file
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.display.html_view import HtmlView
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.file_system_view.snapshot import load_snapshot
from hudi_timeline.services.table_service import WITH_INDEXES, ServiceContext
from hudi_timeline.table_config import (
    BACKUP_FILE,
    VERSION,
    TableConfig,
)
from hudi_timeline.table_version import TableVersion
from hudi_timeline.timeline.active_timeline import Timeline, is_clustering
from hudi_timeline.timeline.instant import COMPACTION, REQUESTED, Instant, file_name
from hudi_timeline.transaction import rollback_executor
from hudi_timeline.transaction.rollback_guard import refuse_alive

log = logging.getLogger("hudi")

VERSIONS = (5, 6)
AUXILIARY_FOLDER = ".hoodie/.aux"


@dataclass(frozen=True)
class UpgradeResult(HtmlView):
    """Result of an upgrade or downgrade, or of its `dry_run`.

    Attributes:
        before, after: table versions.
        steps: what is done, in this order; () where the table has that version already.
        executed: false for a dry run, and where there was nothing to do.
        warnings: what the user should know.
    """

    before: int
    after: int
    steps: tuple[str, ...]
    executed: bool = False
    warnings: tuple[str, ...] = ()


def change_version(
    context: ServiceContext, to: int, *, up: bool | None = None, dry_run: bool = False
) -> UpgradeResult:
    """Change the table to version 5 or 6.

    Args:
        up: whether it is to be an upgrade, or a downgrade; None for either.

    Raises:
        OptionError: it would be the other one.
        UnsupportedError: another version, or a merge-on-read table with log files is to go down.
        ConcurrentWriterError: a write is running.
    """
    if not isinstance(to, int):
        raise TypeError(f"a table version must be a number, as 6, not {type(to).__name__}: {to!r}")
    before = context.table.version
    _refuse_versions(context, before, to)
    if up is not None and to != before and (to > before) != up:
        other = "downgrade" if up else "upgrade"
        raise OptionError(
            f"a change from table version {before} to {to} is {'no upgrade' if up else 'no downgrade'}",
            table=context.storage.uri,
            remedy=f"`hudi {other} PATH`, or {other}() of the table, is the other way.",
        )
    allowed = (f"table version {before}", *WITH_INDEXES)
    if before == to:
        if not dry_run and context.storage.info(BACKUP_FILE) is not None:
            with context.locked(keep_metadata=True, allowed=allowed):
                pass  # taking the lock tidies up after a process that died behind the last step
        return UpgradeResult(before, to, ())
    if dry_run:
        timeline = context.looked(allowed=allowed).timeline
        return UpgradeResult(before, to, tuple(words for words in _describe(context, timeline, to)))
    with context.locked(allowed=allowed, keep_metadata=True) as snapshot:
        storage, timeline = context.storage, snapshot.timeline
        steps = tuple(_describe(context, timeline, to))
        dead = _failed_writes(context, timeline)
        if dead or to < before:
            context.table, warning = metadata_config.drop(storage, context.table)
            context.warnings += [warning] if warning else []
        for write in dead:
            rollback_executor.rollback_instant(snapshot, write)
            snapshot = snapshot.reloaded()
        _convert(storage, context.table, snapshot.timeline, to)
    result = UpgradeResult(before, to, steps, executed=True, warnings=tuple(context.warnings))
    log.info("%s: %r", context.storage.uri, result)
    return result


def _refuse_versions(context: ServiceContext, before: int, to: int) -> None:
    if before in VERSIONS and to in VERSIONS:
        return
    if before > max(VERSIONS):
        remedy = (
            "use Apache Hudi 1.x: its procedure upgrade_or_downgrade takes tables of version 8 and 9 down to 6 "
            "(hoodie.write.table.version=6)."
        )
    elif before < min(VERSIONS):
        remedy = "use Apache Hudi 0.15 first: `upgrade table --toVersion SIX` in hudi-cli."
    elif to > max(VERSIONS):
        remedy = "write to it with Apache Hudi 1.x, which takes it up; its releases read version 6 too."
    else:
        remedy = "use Apache Hudi 0.15: `downgrade table --toVersion`."
    raise UnsupportedError(
        f"a table of version {before} cannot be taken to version {to}: only between 5 and 6",
        table=context.storage.uri,
        remedy=remedy,
    )


def _failed_writes(context: ServiceContext, timeline: Timeline) -> list[Instant]:
    """Pending writes, newest first, under any policy, as the new version has other rules."""
    storage = context.storage
    dead = [i for i in reversed(timeline.pending_writes()) if not is_clustering(storage, timeline, i)]
    for write in dead:
        refuse_alive(storage, write, context.options)
    return dead


def _describe(context: ServiceContext, timeline: Timeline, to: int) -> Iterator[str]:
    storage, table = context.storage, context.table
    dead = _failed_writes(context, timeline)
    if to < table.version:
        _refuse_logs(storage, table)
    for write in dead:
        yield f"roll back {write}"
    built = storage.info(metadata_config.FOLDER) is not None
    if built and (dead or to < table.version):
        yield f"delete the metadata table ({', '.join(metadata_config.built(table)) or 'not in use'})"
    elif built:
        yield f"set {VERSION}={to} in the metadata table"
    copying = TableVersion(to).copies_waiting_plans
    for path in _auxiliary_plans(timeline) if copying else _auxiliary_copies(storage, timeline):
        yield f"{'copy a plan to' if copying else 'delete'} {path}"
    yield f"set {VERSION}={to}"


def _refuse_logs(storage: Storage, table: TableConfig) -> None:
    """Refuse log files, since version 5 has other delete blocks; Apache Hudi compacts first."""
    if table.table_type != "MERGE_ON_READ":
        return
    logs = [
        (partition, entry.name)
        for partition, entries in walk(storage).items()
        for entry in entries
        if parse_log_file(partition, entry.name) is not None
    ]
    if logs:
        raise UnsupportedError(
            f"the table has {len(logs):,} log files, such as {logs[0][1]} in {logs[0][0] or 'the table'}: a table of "
            "version 5 has delete blocks of another kind",
            table=storage.uri,
            remedy="compact it and clean it with Apache Hudi until no log file is left, or take it down with Apache "
            "Hudi 0.15 (`downgrade table --toVersion FIVE`), which compacts it.",
        )


def _waiting(timeline: Timeline) -> Sequence[Instant]:
    return [i for i in timeline.pending(COMPACTION) if i.state == REQUESTED]


def _auxiliary_plans(timeline: Timeline) -> list[str]:
    """Copies of unstarted compaction plans, which version 5 keeps."""
    return [f"{AUXILIARY_FOLDER}/{file_name(i.time, COMPACTION, REQUESTED)}" for i in _waiting(timeline)]


def _auxiliary_copies(storage: Storage, timeline: Timeline) -> list[str]:
    there = {f"{AUXILIARY_FOLDER}/{e.name}" for e in storage.list(AUXILIARY_FOLDER)}
    return [p for p in _auxiliary_plans(timeline) if p in there]


def _convert(storage: Storage, table: TableConfig, timeline: Timeline, to: int) -> None:
    if to > table.version:
        metadata = metadata_config.own_storage(storage)
        if metadata.info(table_config.PROPERTIES_FILE) is not None:
            inner = table_config.load(metadata)
            if inner.version == table.version:
                _convert(metadata, inner, load_snapshot(metadata, inner).timeline, to)
        copies = _auxiliary_copies(storage, timeline)
        if copies:
            verify_held()  # who has the lock meanwhile may have taken the table down again, and need them
        for path in copies:
            storage.delete(path)
        verify_held()
        table_config.update(storage, {VERSION: str(to)})
        return
    for instant in _waiting(timeline):
        name = file_name(instant.time, COMPACTION, REQUESTED)
        storage.publish(f"{AUXILIARY_FOLDER}/{name}", storage.read(instant.path_in(REQUESTED)))
    verify_held()
    table_config.update(storage, {VERSION: str(to), **metadata_config.partition_properties()})
