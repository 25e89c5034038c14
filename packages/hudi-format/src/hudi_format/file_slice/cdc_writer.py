"""Writer of change data capture: the CDC log file beside a base file that is rewritten.

A file has a record for each change that a merge made: what it was (`i`, `u` or `d`), and, by the table's logging mode,
the record key, the row before and the row after, both without meta columns.  Rows come as the merge meets them and are
encoded piece by piece; at most one block is held.  A merge that changes nothing leaves a file with an empty block:
without a file, Apache Hudi would look for the changes and fail.

Source: HoodieCDCLogger and HoodieCDCUtils of Apache Hudi 0.15 (Hudi format, "CDC block"), and the files that it wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_format.arrow.arrays import one_array
from hudi_format.avro.encoder import Encoder
from hudi_format.errors import StorageError
from hudi_format.file_names import log_file_name
from hudi_format.log.block import BlockType
from hudi_format.log.encoder import avro_content
from hudi_format.log.writer import LogWriter
from hudi_format.model import DATA_BEFORE, DATA_BEFORE_AFTER, OP_KEY_ONLY, join_path
from hudi_format.schema.meta_fields import RECORD_KEY
from hudi_format.storage.protocol import Storage

INSERT, UPDATE, DELETE = "i", "u", "d"

# Encoded bytes that make a block: it is held until it is written.
_BLOCK_BYTES = 16 << 20
# Rows that are encoded at once.
_STEP_ROWS = 131_072
# One file for each base file: none is followed by another, however long it is.
_NO_LIMIT = 1 << 62


def cdc_schema(mode: str, table_schema: str) -> str:
    """Avro schema of the records, JSON text as Apache Hudi writes it.

    Args:
        mode: one of `CDC_MODES`.
        table_schema: Avro schema of the rows without meta columns.
    """
    if mode == OP_KEY_ONLY:
        keys = [{"name": n, "type": ["string", "null"]} for n in ("op", "record_key")]
        return _text({"type": "record", "name": "Record", "fields": keys})
    image = json.loads(table_schema)
    namespace = image.pop("namespace", None)
    kinds: dict[str, Any] = {"op": "string", "record_key": "string", "before": image}
    if mode == DATA_BEFORE_AFTER:
        kinds = {"op": "string", "ts_ms": "string", "before": image, "after": image["name"]}
    fields = [{"name": n, "type": ["null", kind], "doc": "", "default": None} for n, kind in kinds.items()]
    record = {"type": "record", "name": "CDC"}
    return _text(record | ({"namespace": namespace} if namespace else {}) | {"fields": fields})


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class CdcSettings:
    """Settings shared by the CDC files of a write.

    Attributes:
        mode: of supplemental logging, one of `CDC_MODES`.
        table_schema: Avro schema of the rows without meta columns, JSON text.
        block_bytes: encoded bytes after which a block ends.
    """

    mode: str
    table_schema: str
    block_bytes: int = _BLOCK_BYTES


class CdcWriter:
    """Writes the changes of one file group in one commit.

    As a context manager it removes its file where the block ends with an error, also after `close`.

    Args:
        instant: the commit's; it stands in the file's name, too.
        schema: the table's columns without meta columns.

    Attributes:
        name, path: of the file; the path is that below the table.

    Raises:
        SchemaError: columns that do not fit the Avro schema.
    """

    def __init__(
        self,
        storage: Storage,
        settings: CdcSettings,
        schema: pa.Schema,
        *,
        partition: str,
        file_id: str,
        instant: str,
        write_token: str,
    ) -> None:
        self.name = log_file_name(file_id, instant, 1, write_token, cdc=True)
        self.path = join_path(partition, self.name)
        self._storage, self._settings, self._instant = storage, settings, instant
        self._image = pa.struct([f.with_nullable(True) for f in schema])
        has = {
            OP_KEY_ONLY: ("op", "record_key"),
            DATA_BEFORE: ("op", "record_key", "before"),
            DATA_BEFORE_AFTER: ("op", "ts_ms", "before", "after"),
        }[settings.mode]
        images = dict.fromkeys(("before", "after"), self._image)
        self._schema = pa.schema([pa.field(n, images.get(n, pa.string())) for n in has])
        text = cdc_schema(settings.mode, settings.table_schema)
        self._encoder = Encoder(text, self._schema)
        self._parts: list[tuple[pa.Buffer, np.ndarray]] = []
        self._held = self._blocks = 0
        self._log = LogWriter(
            storage, partition, file_id, instant, instant=instant, schema=text, write_token=write_token,
            max_file_size=_NO_LIMIT, cdc=True,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Bytes of the file, once it is closed."""
        (written,) = self._log.close()
        return written.size

    def inserted(self, rows: pa.Table) -> None:
        """Add new rows: record key and data columns."""
        for start in range(0, rows.num_rows, _STEP_ROWS):
            part = rows.slice(start, _STEP_ROWS)
            self._add(pa.repeat(INSERT, part.num_rows), part.column(RECORD_KEY), None, part)

    def met(self, stored: pa.Table, gone: np.ndarray | None, take: np.ndarray, written: pa.Table) -> None:
        """Add stored rows that a merge changed or removed.

        Args:
            stored: rows before the merge.
            gone: mask of those that it removed; None for none.
            take: of each of the others, in order, the record that it took, -1 where it stays as it is.
            written: the others after the merge.
        """
        changed, after = take >= 0, np.arange(len(take), dtype=np.int64)
        if gone is not None:
            kept = np.flatnonzero(~gone)
            changed_all = gone.copy()
            changed_all[kept] = changed
            after_all = np.full(len(gone), -1, dtype=np.int64)
            after_all[kept] = after
            changed, after = changed_all, after_all
        rows = np.flatnonzero(changed)
        for start in range(0, len(rows), _STEP_ROWS):
            at = rows[start : start + _STEP_ROWS]
            places = after[at]
            left = pa.array(places, mask=places < 0)
            ops = pa.array([UPDATE, DELETE]).take(pa.array((places < 0).astype(np.int8)))
            before = stored.take(pa.array(at))
            self._add(ops, before.column(RECORD_KEY), before, written, left)

    def _add(
        self,
        ops: pa.Array,
        keys: pa.ChunkedArray,
        before: pa.Table | None,
        after: pa.Table,
        at: pa.Array | None = None,
    ) -> None:
        n = len(ops)
        columns: list[pa.Array] = []
        for name in self._schema.names:
            if name == "op":
                columns.append(ops)
            elif name == "ts_ms":
                columns.append(pa.repeat(self._instant, n))
            elif name == "record_key":
                columns.append(one_array(keys.cast(pa.string())))
            elif name == "before":
                columns.append(pa.nulls(n, self._image) if before is None else self._images(before))
            else:
                columns.append(self._images(after, at))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        data, offsets = self._encoder.encode(batch)
        self._parts.append((data, offsets))
        self._held += data.size
        if self._held >= self._settings.block_bytes:
            self._flush()

    def _images(self, rows: pa.Table, at: pa.Array | None = None) -> pa.StructArray:
        """Rows as one column; those at `at`, of which null gives null."""
        names = [f.name for f in self._image]
        rows = rows.select(names)
        absent = None
        if at is not None:
            rows = rows.take(at)
            absent = at.is_null() if at.null_count else None
        columns = [one_array(c) for c in rows.columns]
        return pa.StructArray.from_arrays(columns, fields=list(self._image), mask=absent)

    def _flush(self) -> None:
        data = b"".join(memoryview(part) for part, _ in self._parts)
        ends = [np.zeros(1, np.int64)]
        for _, offsets in self._parts:
            ends.append(offsets[1:] + ends[-1][-1])
        self._parts, self._held = [], 0
        self._log.append(BlockType.CDC_DATA, avro_content(data, np.concatenate(ends)))
        self._blocks += 1

    def close(self) -> dict[str, object]:
        """Write the rest; returns the entry of the write statistic: size in bytes by path.

        Raises:
            StorageError: the storage refused; what there is of the file is removed.
        """
        try:
            if self._parts or not self._blocks:
                self._flush()
            self._log.close()
        except StorageError:
            self.abort()
            raise
        return {"cdcStats": {self.path: self.size}}

    def abort(self) -> None:
        """Remove the file, whole or not."""
        self._parts = []
        self._log.abort()

    def __enter__(self) -> CdcWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
