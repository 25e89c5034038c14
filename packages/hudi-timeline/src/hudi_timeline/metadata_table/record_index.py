"""Record index of a table, as a write finds its keys by it.

The metadata table's partition `record_index` says the file group of each key.  It is asked where it is complete and
knows every commit of the timeline; else the keys are looked for in the files of all partitions, with a warning, as
Apache Hudi does it.

Source: SparkMetadataTableRecordIndex.tagLocation of Apache Hudi 0.15: "falling back to GLOBAL_SIMPLE".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hudi_format.errors import HudiError
from hudi_format.model import FileSlice
from hudi_index.lookup import CUSTOM, GLOBAL_SIMPLE, LookupCount, LookupTask
from hudi_index.metadata_table import keys as k
from hudi_index.record_index import RecordIndex
from hudi_timeline import metadata_config
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.metadata_table.reader import UNUSABLE, MetadataTable
from hudi_timeline.metadata_table.upkeep import reason_to_drop
from hudi_timeline.options.transaction_options import METADATA_ENABLE, RECORD_INDEX_ENABLE


def with_record_index(
    task: LookupTask, slices: Mapping[str, Sequence[FileSlice]], snapshot: TableSnapshot
) -> LookupTask:
    """The task of a look-up with the table's record index, or of one without it.

    Args:
        task: of the index RECORD_INDEX.
        slices: of the whole table.
    """
    why = _unusable(snapshot)
    if not why:
        try:
            table = MetadataTable.of(snapshot)
            index = RecordIndex(table.storage, table.slices(k.RECORD_INDEX), table.scope)
        except UNUSABLE as e:
            why = str(e)
        else:
            groups = {p: tuple(s.file_id for s in of) for p, of in slices.items()}
            return replace(task, locator=index, groups=groups)
    instead = ""
    if any(slices.values()):
        instead = (
            "the record index could not be asked, and keys were looked for in the files of all partitions "
            f"({GLOBAL_SIMPLE}): {why}"
        )
    return replace(task, index=GLOBAL_SIMPLE, instead=instead)


def _unusable(snapshot: TableSnapshot) -> str:
    """Why the record index cannot be asked; "" where it can."""
    if k.RECORD_INDEX not in snapshot.config.metadata_partitions:
        asked = f"{METADATA_ENABLE}=true and {RECORD_INDEX_ENABLE}=true make it"
        return f"the table has none; {asked}"
    if not metadata_config.built(snapshot.config):
        return "the table has no metadata table"
    try:
        return reason_to_drop(snapshot)
    except HudiError as e:
        return str(e)


def about_lookup(task: LookupTask, count: LookupCount | None) -> tuple[str, ...]:
    """Warnings about what was looked for in the files instead."""
    if task.instead:
        return (task.instead,)
    if count is not None and count.doubted:
        named, advice = "record index", "run `hudi verify --deep`"
        if task.index == CUSTOM:
            named, advice = "index of the table", "if it happens again, run `hudi index rebuild`"
        return (
            f"{count.doubted:,} keys were looked for in the files of all partitions, because of the {named}: "
            f"{count.why}; {advice}",
        )
    return ()
