"""Log files: the scan, in memory and by ranges, and the contents of every type of block."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from unittest import mock

import pyarrow as pa

from hudi_format.errors import HudiError
from hudi_format.log import reader
from hudi_format.log.block import BlockType, LogBlock
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.kryo import KryoError, read_kryo
from hudi_format.log.reader import LogFileReader
from hudi_format.log.scanner import BlockScope, order_blocks
from hudi_format.model import VisibleInstants
from targets import golden
from targets.target import Target


def decode(b: LogBlock, content: pa.Buffer) -> int:
    """The rows of a block; every array is checked."""
    if b.type is BlockType.DELETE:
        deletes = read_deletes(b, content)
        deletes.keys.validate(full=True)
        deletes.partitions.validate(full=True)
        assert len(deletes.is_default) == len(deletes)
        return len(deletes)
    rows = 0
    for batch in BlockDecoder().batches(b, content):
        batch.validate(full=True)
        rows += batch.num_rows
    return rows


def run_file(data: bytes) -> None:
    """All of a file; whoever reads it by ranges must find the same blocks as who has it in memory."""
    with LogFileReader(data, file="f") as log:
        blocks = log.blocks
        assert sum(b.size for b in blocks) == len(data)
        with mock.patch.object(reader, "WHOLE_FILE", -1), mock.patch.object(reader, "_WINDOW", 40):
            by_range = LogFileReader(io.BytesIO(data), file="f").blocks
        assert by_range == blocks, (by_range, blocks)
        for b in blocks:
            if b.type not in (BlockType.CORRUPT, BlockType.COMMAND):
                with suppress(HudiError):
                    decode(b, log.content(b))
        visible = VisibleInstants(frozenset(b.instant for b in blocks))
        order_blocks(blocks, BlockScope(visible=visible))


_LIKE: dict[int, LogBlock] = {}


def _like(n: int) -> LogBlock:
    """Blocks of golden files to put another content into, with different schemas."""
    if not _LIKE:
        found = golden.blocks(
            BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.CDC_DATA
        )
        for b, _ in found:
            if len(_LIKE) < 64 and all(b.schema != k.schema or b.type != k.type for k in _LIKE.values()):
                _LIKE[len(_LIKE)] = b
    return _LIKE[n % len(_LIKE)]


def run_data(data: bytes) -> None:
    """The first byte chooses a schema and a type, the rest is the content."""
    if data:
        content = pa.py_buffer(data[1:])
        decode(replace(_like(data[0]), content_length=len(data) - 1), content)


def run_delete(data: bytes) -> None:
    decode(LogBlock("f", 0, len(data), BlockType.DELETE, {0: "1"}, 0, len(data)), pa.py_buffer(data))


def run_kryo(data: bytes) -> None:
    if data:
        version, content = 1 + data[0] % 2, data[1:]
        run_delete(version.to_bytes(4, "big") + len(content).to_bytes(4, "big") + content)
        for delete in read_kryo(content, version):
            assert isinstance(delete.key, str)


def _data_seeds() -> Iterator[bytes]:
    _like(0)
    for n, b in list(_LIKE.items()):
        for other, content in golden.blocks(b.type):
            if other.schema == b.schema:
                yield bytes([n]) + content
                break


def _delete_seeds() -> Iterator[bytes]:
    yield from (c for _, c in golden.blocks(BlockType.DELETE))
    for version, content in _kryo_lists():
        yield version.to_bytes(4, "big") + len(content).to_bytes(4, "big") + content


def _kryo_lists() -> Iterator[tuple[int, bytes]]:
    path = golden.ROOT.parents[1] / "packages/hudi-format/tests/data/kryo_deletes.txt"
    for line in path.read_text().splitlines():
        name, digits = line.split()
        yield int(name[1]), bytes.fromhex(digits)


def _file_seeds() -> Iterator[bytes]:
    yield from (data for _, data in golden.logs())


_ANY: tuple[type[Exception], ...] = (KryoError, HudiError)
TARGETS = (
    Target("log_file", run_file, _file_seeds),
    Target("log_data_block", run_data, _data_seeds),
    Target("log_delete_block", run_delete, _delete_seeds, most=4096),
    Target("log_kryo", run_kryo, lambda: (bytes([v - 1]) + c for v, c in _kryo_lists()), _ANY, 4096),
)
