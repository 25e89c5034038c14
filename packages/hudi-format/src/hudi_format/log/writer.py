"""Writer of log files: blocks of table version 6, as Apache Hudi 0.15 writes them.

A block is complete in memory before its first byte goes out, so what a writer leaves that dies is a beginning of
a block, which its size and its end give away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_format.errors import StorageError
from hudi_format.file_names import log_file_name, parse_cdc_file, parse_log_file
from hudi_format.fork_safe import Owned
from hudi_format.log.block import ROLLBACK, BlockType, HeaderKey
from hudi_format.log.encoder import avro_contents, contents, delete_content, frame
from hudi_format.model import LogFile, WriteStat, join_path
from hudi_format.storage.errors import writing
from hudi_format.storage.protocol import Storage

log = logging.getLogger(__name__)

DEFAULT_FILE_SIZE = 1 << 30  # hoodie.logfile.max.size
DEFAULT_BLOCK_SIZE = 256 << 20  # hoodie.logfile.data.block.max.size


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """One log file of a writer.

    Attributes:
        file: the log file, all of it this writer's.
        blocks: how many blocks.
    """

    file: LogFile
    blocks: int

    @property
    def size(self) -> int:
        """Bytes that the writer wrote."""
        return self.file.size

    def stat(
        self, base_instant: str, base_file: str, earlier: Sequence[str], *, rows: int, deletes: int
    ) -> WriteStat:
        """Statistic of the file in a commit.

        Args:
            base_instant: of its slice.
            base_file: name of the slice's base file, "" for none.
            earlier: names of the slice's other log files.
            rows, deletes: how many records, and deletes.
        """
        return WriteStat(
            file_id=self.file.file_id,
            path=self.file.path,
            partition=self.file.partition,
            prev_commit=base_instant,
            num_writes=rows,
            num_deletes=deletes,
            num_update_writes=rows,
            total_write_bytes=self.size,
            file_size_in_bytes=self.size,
            extra={
                "logVersion": self.file.version,
                "logOffset": 0,
                "baseFile": base_file,
                "logFiles": [*earlier, self.file.name],
                "recordsStats": {"val": None},
            },
        )


class LogWriter:
    """Appends blocks to the log of one file slice, in files of its own.

    A log file that has grown past `max_file_size` is followed by one of the next version; a version that is taken is
    passed over.  No file that is there grows, also where the storage could append to it: what a file holds would depend
    on when it is looked at.

    Args:
        partition: partition path, "" for a table without.
        base_instant: of the slice; stands in the file's name (table version 6).
        instant: the one that writes.
        schema: Avro schema of the records with the meta columns, JSON text; "" where no data is written.
        version: of the first log file; the slice's newest one plus one.
        write_token: stands in the name of a new file; names are unique through it.
        cdc: whether these are files of changes (`.cdc`).
        announce: called with the name of each file before it is begun.

    Raises:
        ValueError: an instant that is no number, or a file id or token that no log file's name can have.
    """

    def __init__(
        self,
        storage: Storage,
        partition: str,
        file_id: str,
        base_instant: str,
        *,
        instant: str,
        schema: str,
        write_token: str,
        version: int = 1,
        max_file_size: int = DEFAULT_FILE_SIZE,
        max_block_size: int = DEFAULT_BLOCK_SIZE,
        cdc: bool = False,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        if version < 1 or max_file_size < 1 or max_block_size < 1:
            raise ValueError("version and sizes must be at least 1")
        if not (instant.isascii() and instant.isdecimal()):
            raise ValueError(f"instant {instant[:40]!r} is not a number; readers would ignore the blocks")
        name = log_file_name(file_id, base_instant, version, write_token, cdc=cdc)
        if not (parse_cdc_file if cdc else parse_log_file)(partition, name):
            raise ValueError(f"{name[:200]!r} is not a log file name")
        self._storage = storage
        self._partition, self._file_id, self._base_instant = partition, file_id, base_instant
        self._token, self._cdc, self._announce = write_token, cdc, announce
        self._header = {int(HeaderKey.INSTANT_TIME): instant}
        if schema:
            self._header[HeaderKey.SCHEMA] = schema
        self._version = version
        self._max_file_size, self._max_block_size = max_file_size, max_block_size
        self._out: Any = None
        self._file: LogFile | None = None
        self._size = self._blocks = 0
        self._written: list[WrittenLog] = []
        self._made: list[str] = []  # paths of the files that are this writer's alone
        self._owned = Owned()

    def append_rows(
        self,
        rows: pa.Table,
        kind: BlockType = BlockType.AVRO_DATA,
        *,
        codec: str = "gzip",
        header: Mapping[int, str] | None = None,
    ) -> None:
        """Append rows as data blocks of the type that `block_type` chose.

        Args:
            rows: the fields of the writer's schema, meta columns included.
            codec: of Parquet pages.

        Raises:
            SchemaError: a value that does not fit the schema.
            RecordKeyError, MissingColumnError: rows without keys in an HFile.
        """
        self._need_schema()
        schema = self._header[HeaderKey.SCHEMA]
        for content in contents(rows, kind, schema, most=self._max_block_size, codec=codec):
            self.append(kind, content, header)

    def append_avro(
        self, data: Any, offsets: npt.NDArray[np.int64], *, header: Mapping[int, str] | None = None
    ) -> None:
        """Append Avro records as data blocks (CDC blocks in a CDC file), split at `max_block_size`.

        Args:
            data: datums one after another, written with the writer's schema.
            offsets: where each begins, and where the last one ends; int64.
            header: further entries, such as COMPACTED_BLOCK_TIMES.
        """
        self._need_schema()
        kind = BlockType.CDC_DATA if self._cdc else BlockType.AVRO_DATA
        for content in avro_contents(data, offsets, self._max_block_size):
            self.append(kind, content, header)

    def append_parquet(self, content: Any, *, header: Mapping[int, str] | None = None) -> None:
        """Append a Parquet file as a data block."""
        self._need_schema()
        self.append(BlockType.PARQUET_DATA, content, header)

    def append_hfile(self, content: Any, *, header: Mapping[int, str] | None = None) -> None:
        """Append an HFile as a data block."""
        self._need_schema()
        self.append(BlockType.HFILE_DATA, content, header)

    def append_deletes(
        self,
        keys: pa.Array | pa.ChunkedArray,
        partitions: pa.Array | pa.ChunkedArray | None = None,
        ordering: pa.Array | pa.ChunkedArray | None = None,
        *,
        header: Mapping[int, str] | None = None,
    ) -> None:
        """Append a delete block, after the data block of the same append.

        Arguments as of `encoder.delete_content`.
        """
        self.append(BlockType.DELETE, delete_content(keys, partitions, ordering), header)

    def append_rollback(self, target: str) -> None:
        """Append a rollback block for the earlier blocks of `target`.

        Raises:
            ValueError: a target that is no number.
        """
        if not (target.isascii() and target.isdecimal()):
            raise ValueError(f"instant {target[:40]!r} is not a number; readers would ignore the rollback")
        header: dict[int, str] = {
            HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK,
            HeaderKey.TARGET_INSTANT_TIME: target,
            HeaderKey.INSTANT_TIME: self._header[HeaderKey.INSTANT_TIME],
        }
        self._put(BlockType.COMMAND, header, b"")

    def append(self, kind: BlockType, content: Any, header: Mapping[int, str] | None = None) -> None:
        """Append a block of any type, with the writer's instant, schema and further headers.

        Raises:
            ValueError: a type or a header entry that no file has.
        """
        self._put(kind, {**self._header, **(header or {})}, content)

    def _need_schema(self) -> None:
        if HeaderKey.SCHEMA not in self._header:
            raise ValueError("a data block needs the Avro schema of its records")

    def _put(self, kind: BlockType, header: Mapping[int, str], content: Any) -> None:
        view = memoryview(content).cast("B")
        before, after = frame(kind, header, len(view))
        if self._file is not None and self._size >= self._max_file_size:
            self._finish()
            self._version += 1
        if self._file is None:
            self._begin()
        with writing(self._storage, self._path):
            for part in (before, view, after):
                self._out.write(part)
        self._size += len(before) + len(view) + len(after)
        self._blocks += 1

    def _begin(self) -> None:
        while True:
            name = log_file_name(self._file_id, self._base_instant, self._version, self._token, cdc=self._cdc)
            path = join_path(self._partition, name)
            if self._storage.info(path) is None:
                if self._announce is not None:
                    self._announce(name)
                self._made.append(path)
                with writing(self._storage, path):
                    self._out = self._storage.open_output(path)
                break
            self._version += 1
        self._file = LogFile(
            self._partition, name, self._file_id, self._base_instant, self._version, self._token
        )
        self._size = self._blocks = 0

    def _finish(self) -> None:
        out, file = self._out, self._file
        self._out = self._file = None
        if out is not None and file is not None:
            with writing(self._storage, file.path):
                out.flush()
                out.close()
            self._written.append(WrittenLog(replace(file, size=self._size), self._blocks))

    @property
    def _path(self) -> str:
        return "" if self._file is None else self._file.path

    def close(self) -> tuple[WrittenLog, ...]:
        """Close the last file; returns one value per written file.

        Calling it again changes nothing.

        Raises:
            StorageError: the storage refused.
        """
        self._finish()
        return tuple(self._written)

    def abort(self) -> None:
        """Remove the files that this writer made, whole or not, also after `close`."""
        if not self._owned.here:  # a forked child that ends leaves its parent's files alone
            return
        out, made = self._out, self._made
        self._out, self._file, self._made = None, None, []
        if out is not None:
            with suppress(OSError, StorageError):  # removed below, whatever could not be written to it
                out.close()
        for path in made:
            try:
                self._storage.delete(path)
            except StorageError as e:
                # Why the file is dropped matters more to the caller; its marker lets the rollback remove it.
                log.warning("an orphaned file could not be removed: %s", e)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
