"""Deduplication: removes duplicate rows of a partition by a commit.

hudi-cli's `repair deduplicate` writes the files aside and copies them over those of old commits; here their file groups
get a new version, so that the repair is visible at once, can be rolled back, and older commits stay what they were.

Source: DedupeSparkJob of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_format.errors import OptionError, UnsupportedError
from hudi_format.file_names import base_file_name
from hudi_format.file_slice.cdc_writer import CdcSettings, CdcWriter
from hudi_format.model import BaseFile, WriteStat, join_path
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.writer import BaseFileWriter
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.evolution import conform
from hudi_format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, RECORD_KEY
from hudi_format.storage.open import flush
from hudi_format.storage.protocol import Storage
from hudi_index.bloom.key_observer import BloomObserver
from hudi_timeline.concurrency import markers
from hudi_timeline.concurrency.running_call import RunningCall
from hudi_timeline.file_system_view.base_files import base_files
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.options.service_options import DedupeType
from hudi_timeline.services.table_service import ServiceContext
from hudi_timeline.transaction.transaction import begin_transaction

_TOKEN = "0-0-0"
_KEPT = ("parquet.avro.schema", "writer.model.name")


@dataclass(frozen=True)
class DedupeResult:
    """Result of a deduplication, or of its `dry_run`.

    Attributes:
        keys: how many keys stand more than once.
        rows: how many rows are taken out.
        files: rows that are taken out, by path of the base file.
        instant: of the commit; "" where nothing was written.
    """

    keys: int
    rows: int
    files: Mapping[str, int]
    instant: str = ""


def deduplicate(
    context: ServiceContext,
    partition: str,
    *,
    kind: DedupeType = DedupeType.INSERT,
    dry_run: bool = False,
) -> DedupeResult:
    """Remove duplicate rows of a partition.

    Raises:
        UnsupportedError: no copy-on-write table of Parquet files with meta columns, or the feature gate.
        OptionError: there is no such partition.
        ConcurrentWriterError, WriteConflictError: other writers are at work.
    """
    storage, table = context.storage, context.table
    if (
        table.table_type != "COPY_ON_WRITE"
        or not table.populate_meta_fields
        or table.base_file_format != "PARQUET"
    ):
        raise UnsupportedError(
            "rows are deduplicated in copy-on-write tables of Parquet files with meta columns only",
            table=storage.uri,
            remedy="read the table, drop the duplicates, and write it with insert_overwrite.",
        )
    if dry_run:
        return _result(_find(storage, partition, kind))
    transaction = begin_transaction(
        storage, table, operation="UPSERT", options=context.options, caller=RunningCall.here()
    )
    with transaction:
        # Looked for behind the beginning: a commit from there on is a conflict.
        found = _find(storage, partition, kind)
        if not found:
            transaction.abort("the partition has no duplicates", without_trace=True)
            return _result(found)
        snapshot = transaction.snapshot
        schema_text = snapshot.commits.get(snapshot.timeline.completed_writes()[-1]).schema_text
        transaction.inflight(
            {partition: [WriteStat(f.file.file_id, "", partition, f.file.instant) for f in found]}
        )
        schema = from_avro(schema_text)
        cdc = None
        if table.cdc_enabled:
            cdc = CdcSettings(table.cdc_mode, to_avro(schema, table.name))
        stats = [_rewrite(storage, transaction.instant, f, schema, cdc) for f in found]
        transaction.commit(stats, schema_text=schema_text)
    return _result(found, transaction.instant)


@dataclass(frozen=True)
class _Found:
    """A file with duplicate rows."""

    file: BaseFile
    losers: Sequence[int]
    keys: frozenset[str]


def _find(storage: Storage, partition: str, kind: DedupeType) -> list[_Found]:
    snapshot = open_snapshot(storage)
    files = base_files(snapshot.files([partition]))
    if not files:
        raise OptionError(
            f"the partition {partition!r} has no files",
            table=storage.uri,
            remedy="`hudi partitions PATH` lists them.",
        )
    columns = [_read(storage, f, [RECORD_KEY, COMMIT_TIME, COMMIT_SEQNO]) for f in files]
    counts = pc.value_counts(
        pa.chunked_array([c for t in columns for c in t.column(RECORD_KEY).chunks], pa.string())
    )
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    rows: dict[str, list[tuple[str, str, int, int]]] = {}
    for number, table in enumerate(columns):
        mask = pc.is_in(table.column(RECORD_KEY), twice)
        places = pc.indices_nonzero(mask).to_pylist()
        for place, row in zip(places, table.filter(mask).to_pylist(), strict=True):
            of_key = rows.setdefault(row[RECORD_KEY], [])
            of_key.append((row[COMMIT_TIME] or "", row[COMMIT_SEQNO] or "", number, place))
    losers: dict[int, list[tuple[int, str]]] = {}
    for key, found in rows.items():
        for _, _, number, place in _losers(sorted(found), kind):
            losers.setdefault(number, []).append((place, key))
    return [
        _Found(files[n], sorted(p for p, _ in of), frozenset(k for _, k in of))
        for n, of in sorted(losers.items())
    ]


def _losers(rows: list[tuple[str, str, int, int]], kind: DedupeType) -> list[tuple[str, str, int, int]]:
    """Rows of one key to remove, ordered by commit."""
    if kind is DedupeType.INSERT:
        return rows[1:]
    if kind is DedupeType.UPSERT:
        return rows[:-1]
    return [r for r in rows if r[0] != rows[-1][0]]


def _read(storage: Storage, file: BaseFile, columns: list[str] | None = None) -> pa.Table:
    with storage.open_input(file.path) as source:
        return pq.ParquetFile(source).read(columns)


def _rewrite(
    storage: Storage, instant: str, found: _Found, schema: pa.Schema, cdc: CdcSettings | None
) -> WriteStat:
    """Rewrite a file group without the removed rows.

    Args:
        schema: the table's columns without meta columns.
        cdc: how the removed rows are logged; None where the table logs no changes.
    """
    old = found.file
    with storage.open_input(old.path) as source:
        file = pq.ParquetFile(source)
        footer = {k.decode(): v.decode("utf-8", "replace") for k, v in (file.metadata.metadata or {}).items()}
        table = file.read()
    gone = np.zeros(table.num_rows, dtype=bool)
    gone[list(found.losers)] = True
    name = base_file_name(old.file_id, _TOKEN, instant)
    logged = {} if cdc is None else _log_removed(storage, instant, old, table, gone, schema, cdc)
    table = table.filter(pa.array(~gone))
    column = table.schema.get_field_index(FILE_NAME)
    table = table.set_column(column, table.schema.field(column), pa.repeat(name, table.num_rows))
    path = join_path(old.partition, name)
    markers.create(storage, instant, old.partition, name, markers.MERGE)
    flush(storage, [markers.marker_path(instant, old.partition, name, markers.MERGE)], written=False)
    with BaseFileWriter(
        storage, path, table.schema, config=ParquetConfig(), observer=BloomObserver(to_keys=True),
        entries={k: footer[k] for k in _KEPT if k in footer},
    ) as writer:  # fmt: skip
        writer.write(table)
        size = writer.close()
    flush(storage, [path])
    return WriteStat(
        file_id=old.file_id,
        path=path,
        partition=old.partition,
        prev_commit=old.instant,
        num_writes=table.num_rows,
        num_deletes=len(found.losers),
        total_write_bytes=size,
        file_size_in_bytes=size,
        extra=logged,
    )


def _log_removed(
    storage: Storage,
    instant: str,
    old: BaseFile,
    rows: pa.Table,
    gone: np.ndarray,
    schema: pa.Schema,
    cdc: CdcSettings,
) -> dict[str, object]:
    """Write the CDC file of the removed rows; returns its entry of the write statistic."""
    changes = CdcWriter(
        storage, cdc, schema, partition=old.partition, file_id=old.file_id, instant=instant, write_token=_TOKEN
    )  # fmt: skip
    markers.create(storage, instant, old.partition, changes.name, markers.APPEND)
    flush(storage, [markers.marker_path(instant, old.partition, changes.name, markers.APPEND)], written=False)
    data = conform(rows.select([n for n in rows.schema.names if n not in META_COLUMNS]), schema)
    stored = data.add_column(0, RECORD_KEY, rows.column(RECORD_KEY))
    with changes:
        stays = np.full(int((~gone).sum()), -1, dtype=np.int64)
        changes.met(stored, gone, stays, data)
        entry = changes.close()
    flush(storage, [changes.path])
    return entry


def _result(found: Sequence[_Found], instant: str = "") -> DedupeResult:
    keys = frozenset(k for f in found for k in f.keys)
    return DedupeResult(
        len(keys), sum(len(f.losers) for f in found), {f.file.path: len(f.losers) for f in found}, instant
    )
