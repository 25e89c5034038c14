"""Repairs of the FAQ and hudi-cli for files and the timeline, each with a dry run.

Source: RepairsCommand of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format import properties as props
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.file_names import PARTITION_METADATA, parse_base_file, parse_log_file
from hudi_format.model import join_path
from hudi_format.partition_metadata import depth_of, write_if_absent
from hudi_format.storage.protocol import FileInfo, Storage
from hudi_timeline import table_config
from hudi_timeline.file_system_view.listing import walk
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.table_config import PARTITION_METAFILE_BASE_FORMAT
from hudi_timeline.timeline import avro_files
from hudi_timeline.timeline.instant import CLEAN, WRITE_ACTIONS, Instant, parse_instant_file

_T = TypeVar("_T")
_KEY_SCHEMA = '{"type":"record","name":"HoodieRecordKey","namespace":"","doc":"","fields":[{"name":"_hoodie_record_key","type":["null","string"],"doc":"","default":null}]}'  # noqa: E501


@dataclass(frozen=True)
class Repair:
    """One repair.

    Attributes:
        path: of the file that is made, changed or deleted, below the table.
        action: what is done, in words.
        done: false for a dry run.
    """

    path: str
    action: str
    done: bool = False


def add_partition_metadata(context: ServiceContext, *, dry_run: bool = False) -> tuple[Repair, ...]:
    """Create `.hoodie_partition_metadata` in folders of data files that lack it.

    Files of instants that are on the timeline and not completed count as none.
    """

    def find(snapshot: TableSnapshot) -> list[tuple[str, str]]:
        visible = snapshot.visible()
        found = []
        for folder, entries in sorted(walk(context.storage).items()):
            if any(e.name.startswith(PARTITION_METADATA) for e in entries):
                continue
            instants = [i for i in _instants(folder, entries) if i in visible]
            if instants:
                found.append((folder, min(instants)))
        return found

    def repair(found: list[tuple[str, str]]) -> None:
        for folder, instant in found:
            write_if_absent(context.storage, folder, instant)

    return _run(
        context,
        dry_run,
        find,
        repair,
        lambda f: Repair(join_path(f[0], PARTITION_METADATA), f"make it, of {f[1]}"),
    )


def _instants(folder: str, entries: Iterable[FileInfo]) -> list[str]:
    files = ((parse_base_file(folder, e.name) or parse_log_file(folder, e.name)) for e in entries)
    return [f.instant for f in files if f is not None]


def remove_corrupt_cleans(context: ServiceContext, *, dry_run: bool = False) -> tuple[Repair, ...]:
    """Delete pending clean files with an unreadable plan, which block later cleanings."""
    storage = context.storage

    def find(snapshot: TableSnapshot) -> list[str]:
        found = []
        for instant in snapshot.timeline.pending(CLEAN):
            files = [f.path for f in snapshot.timeline.files if f.time == instant.time and f.action == CLEAN]
            if any(_is_no_plan(storage, path) for path in files):
                found += files
        return sorted(found, reverse=True)  # requested before inflight, so that half of it is still found

    def repair(found: list[str]) -> None:
        for path in sorted(found):
            storage.delete(path)

    return _run(context, dry_run, find, repair, lambda p: Repair(p, "delete it"))


def _is_no_plan(storage: Storage, path: str) -> bool:
    try:
        avro_files.parse("HoodieCleanerPlan", storage.read(path), path=path)
    except CorruptFileError:
        return True
    return False


def empty_commits(storage: Storage) -> tuple[Instant, ...]:
    """Completed writes with an empty file, oldest first; reads of them raise."""
    found = []
    for entry in storage.list(table_config.load(storage).timeline_folder):
        instant = parse_instant_file(entry.name, mtime_ms=entry.mtime_ms, size=entry.size)
        if instant is not None and instant.completed and instant.action in WRITE_ACTIONS and entry.size == 0:
            found.append(instant)
    return tuple(sorted(found))


def migrate_partition_metadata(context: ServiceContext, *, dry_run: bool = False) -> tuple[Repair, ...]:
    """Convert partition metadata to the base file format, as some query engines need.

    Raises:
        UnsupportedError: base files that are not Parquet.
    """
    storage = context.storage

    def find(_: TableSnapshot) -> list[tuple[str, bytes]]:
        if context.table.base_file_format != "PARQUET":
            raise UnsupportedError(
                f"partition metadata is not written as {context.table.base_file_format}",
                table=storage.uri,
                remedy="use Apache Hudi's `repair migrate-partition-meta`.",
            )
        found = []
        for folder, entries in sorted(walk(storage).items()):
            if any(e.name == PARTITION_METADATA for e in entries):
                found.append((folder, storage.read(join_path(folder, PARTITION_METADATA))))
        return found

    def repair(found: list[tuple[str, bytes]]) -> None:
        # The property first: from then on writers make the new files, and readers take either.
        table_config.update(storage, {PARTITION_METAFILE_BASE_FORMAT: "true"})
        for folder, text in found:
            path = join_path(folder, PARTITION_METADATA)
            storage.publish(f"{path}.parquet", _as_parquet(folder, text))
            storage.delete(path)

    return _run(
        context, dry_run, find, repair,
        lambda f: Repair(join_path(f[0], f"{PARTITION_METADATA}.parquet"), "make it of the text file"),
    )  # fmt: skip


def _as_parquet(folder: str, text: bytes) -> bytes:
    """A Parquet file without rows, with the text file's content in its footer."""
    values = {"commitTime": "", "partitionDepth": str(depth_of(folder)), **props.parse(text)}
    footer = {**values, "parquet.avro.schema": _KEY_SCHEMA, "writer.model.name": "avro"}
    schema = pa.schema([("_hoodie_record_key", pa.string())])
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(footer)
    return bytes(out.getvalue())


def _run(
    context: ServiceContext,
    dry_run: bool,
    find: Callable[[TableSnapshot], list[_T]],
    repair: Callable[[list[_T]], None],
    words: Callable[[_T], Repair],
) -> tuple[Repair, ...]:
    if dry_run:
        return tuple(words(f) for f in find(context.look()))
    with context.locked(keep_metadata=True, allowed={"metadata table indexes"}) as snapshot:
        found = find(snapshot)
        if found:
            repair(found)
    return tuple(Repair(r.path, r.action, True) for r in map(words, found))
