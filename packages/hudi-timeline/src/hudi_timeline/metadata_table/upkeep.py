"""Upkeep of the metadata table by a change of its table: kept, made or taken away.

A metadata table that was made is kept up to date, unless the user gives it up, it holds partitions that are not kept
here, or it does not agree with the timeline.  One is made where the user asks for it.  The caller holds the table's
lock.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_format.errors import HudiError
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_config import FILES, drop
from hudi_timeline.metadata_table.initialisation import can_initialise, initialise
from hudi_timeline.metadata_table.own_table import open_own
from hudi_timeline.options.transaction_options import METADATA_ENABLE

KEPT = frozenset({FILES})
"""Partitions that are kept up to date."""


def settle(
    snapshot: TableSnapshot, enabled: bool | None, *, is_gone: bool = False
) -> tuple[TableSnapshot, str]:
    """Settle what becomes of the metadata table, before or at the end of a change of the table.

    Args:
        snapshot: loaded under the lock.
        enabled: `hoodie.metadata.enable`; None where it was not given.
        is_gone: whether its folder is known not to be there.

    Returns:
        the snapshot with the table's configuration afterwards, and a sentence for the user ("" for none).
    """
    config = snapshot.config
    why = ""
    if metadata_config.built(config):
        why = f"{METADATA_ENABLE}=false" if enabled is False else reason_to_drop(snapshot)
        if not why:
            return snapshot, ""
    config, warning = drop(snapshot.storage, config, is_gone=is_gone, why=why)
    return replace(snapshot, config=config), warning


def build(snapshot: TableSnapshot, enabled: bool | None) -> tuple[TableSnapshot, str]:
    """Make a metadata table where the user asks for one; result as of `settle`.

    One is made only while nothing is pending, so that the files of storage are those of completed instants.
    """
    if enabled is not True or metadata_config.built(snapshot.config):
        return snapshot, ""
    if not can_initialise(snapshot):
        return (
            snapshot,
            f"{METADATA_ENABLE}=true: the metadata table is made by a write that finds nothing pending",
        )
    return replace(snapshot, config=initialise(snapshot)), ""


def reason_to_drop(snapshot: TableSnapshot) -> str:
    """Why the metadata table cannot be kept, "" where it can."""
    config = snapshot.config
    if config.metadata_partitions_inflight:
        return f"{', '.join(config.metadata_partitions_inflight)} is being built by another writer"
    others = sorted(set(config.metadata_partitions) - KEPT)
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
    behind = [
        i.time
        for i in snapshot.timeline.completed_writes()
        if i.time > first and i.time > own.last_compaction and not own.knows(i.time)
    ]
    if behind:
        return f"the commit {behind[0]} is missing in it: it was written by a writer that does not keep it up to date"
    return ""
