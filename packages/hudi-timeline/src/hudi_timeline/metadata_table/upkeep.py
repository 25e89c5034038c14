"""Upkeep of the metadata table by a change of its table: kept, made or taken away.

A metadata table that was made is kept up to date, unless the user gives it up, it holds partitions that are not kept
here, or it does not agree with the timeline.  One is made where the user asks for it, and so is each of its indexes.
The caller holds the table's lock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hudi_format.errors import HudiError
from hudi_format.storage.protocol import Storage
from hudi_timeline import metadata_config, table_config
from hudi_timeline.concurrency.locks.provider import verify_held
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FILES, KEPT, drop, drop_partitions
from hudi_timeline.metadata_table.initialisation import can_initialise, initialise
from hudi_timeline.metadata_table.own_table import open_own
from hudi_timeline.options.transaction_config import INDEX_FIELDS, TransactionConfig
from hudi_timeline.options.transaction_options import METADATA_ENABLE, RECORD_INDEX_ENABLE
from hudi_timeline.table_config import TableConfig
from hudi_timeline.timeline.index_builds import completed_builds, kept_while_built


def settle(
    snapshot: TableSnapshot, options: TransactionConfig, *, is_gone: bool = False
) -> tuple[TableSnapshot, str]:
    """Settle what becomes of the metadata table, before or at the end of a change of the table.

    Args:
        snapshot: loaded under the lock.
        options: what is asked for.
        is_gone: whether its folder is known not to be there.

    Returns:
        the snapshot with the table's configuration afterwards, and a sentence for the user ("" for none).
    """
    config = _switched(snapshot)
    snapshot = snapshot if config is snapshot.config else replace(snapshot, config=config)
    why = ""
    if metadata_config.built(config):
        why = f"{METADATA_ENABLE}=false" if options.metadata_enable is False else reason_to_drop(snapshot)
        if not why:
            switches = options.indexes.switches
            given_up = [p for p in metadata_config.built(config) if switches.get(p) is False]
            why = ", ".join(f"{INDEX_FIELDS[p]}=false" for p in given_up)
            if given_up:
                verify_held()
            config, warning = drop_partitions(snapshot.storage, config, given_up, why=why)
            return (replace(snapshot, config=config) if warning else snapshot), warning
    if not is_gone:
        verify_held()  # the folder may be that of a metadata table that another process has made since
    config, warning = drop(snapshot.storage, config, is_gone=is_gone, why=why)
    return replace(snapshot, config=config), warning


def _switched(snapshot: TableSnapshot) -> TableConfig:
    """The configuration with what a completed build has made, which died before it said so."""
    config = snapshot.config
    inflight = config.metadata_partitions_inflight
    if not inflight:
        return config
    builds = completed_builds(snapshot.storage, snapshot.timeline)
    asked = [p for p in inflight if p in builds]
    if not asked:
        return config
    slices = open_own(snapshot.storage).every_slice(asked)
    # What lies there is what that build has made, and not what another one left half made since.
    begins = {p: min(of[0].base_instant for (q, _), of in slices.items() if q == p) for p, _ in slices}
    done = [p for p in asked if begins.get(p) == builds[p]]
    return switch(snapshot.storage, config, done) if done else config


def switch(storage: Storage, config: TableConfig, partitions: Collection[str]) -> TableConfig:
    """Name partitions that were built as complete, in one change of the table's properties."""
    done = sorted({*config.metadata_partitions, *partitions})
    left = [p for p in config.metadata_partitions_inflight if p not in partitions]
    verify_held()
    return table_config.update(storage, metadata_config.partition_properties(done, left))


def build(snapshot: TableSnapshot, options: TransactionConfig) -> tuple[TableSnapshot, str]:
    """Make a metadata table, and its indexes, where they are asked for; result as of `settle`.

    They are made only while nothing is pending, so that the files of storage are those of completed instants.
    """
    config = snapshot.config
    wanted = {p for p, switch in options.indexes.switches.items() if switch}
    asked = set() if options.indexes.is_async else set(wanted)
    if options.metadata_enable or wanted:
        asked.add(FILES)
    asked -= set(metadata_config.built(config))
    if not asked:
        return snapshot, ""
    names = [METADATA_ENABLE if p == FILES else INDEX_FIELDS[p] for p in KEPT if p in asked]
    what = "the metadata table" if FILES in asked else f"{', '.join(sorted(asked))} of the metadata table"
    if not can_initialise(snapshot):
        return snapshot, f"{names[0]}=true: {what} is made by a write that finds nothing pending"
    warnings = []
    if not config.populate_meta_fields and "record_index" in asked:
        asked.discard("record_index")
        warnings.append(f"{RECORD_INDEX_ENABLE}=true: a table with virtual keys has no record index")
    config, said = initialise(snapshot, asked, options.indexes)
    return replace(snapshot, config=config), "; ".join((*warnings, *said))


def reason_to_drop(snapshot: TableSnapshot) -> str:
    """Why the metadata table cannot be kept, "" where it can."""
    config = snapshot.config
    inflight = set(config.metadata_partitions_inflight)
    foreign = sorted(inflight - kept_while_built(snapshot.storage, snapshot.timeline, inflight))
    if foreign:
        return f"{', '.join(foreign)} is being built by another writer"
    others = sorted(set(config.metadata_partitions) - set(KEPT))
    if others:
        return f"{', '.join(others)} is not kept up to date by this version"
    try:
        own = open_own(snapshot.storage)
    except HudiError as e:
        return f"it cannot be read: {e.message}"
    if own.snapshot.config.version != config.version:
        return f"it has version {own.snapshot.config.version}, the table {config.version}"
    if not own.timeline.completed_writes():
        return "it has no commit"
    first = own.timeline.completed_writes()[0].time
    known, last = own.timeline.visible(), own.last_compaction
    behind = [
        i.time
        for i in snapshot.timeline.completed_writes()
        if i.time > first and i.time > last and i.time not in known
    ]
    if behind:
        return f"the commit {behind[0]} is missing in it: it was written by a writer that does not keep it up to date"
    return ""
