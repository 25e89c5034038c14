"""Log files in memory: what finding blocks, coming back after garbage, and reading deletes cost without storage.

`HUDI_BENCH_ROWS` changes the number of blocks and of deletes; garbage is 256 bytes for each.
"""

import os
import struct

import numpy as np
import pyarrow as pa
import pytest

from hudi_format import BlockType, LogFileReader, read_deletes
from hudi_format.log import _scan
from hudi_format.log.block_index import IndexColumn, index
from hudi_format.log.encoder import avro_content, delete_content, frame

ROWS = int(os.environ.get("HUDI_BENCH_ROWS", 1_000_000))
INSTANT = "20261121051332794"
SCHEMA = '{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'


def block(kind: BlockType, header: dict[int, str], content: bytes) -> bytes:
    before, after = frame(kind, header, len(content))
    return before + content + after


@pytest.fixture(scope="module")
def rollbacks() -> bytes:
    return block(BlockType.COMMAND, {3: "0", 1: INSTANT, 0: INSTANT}, b"") * ROWS


@pytest.fixture(scope="module")
def data_blocks() -> bytes:
    content = bytes(avro_content(b"\2a" * 100, np.arange(0, 201, 2)))
    return block(BlockType.AVRO_DATA, {2: SCHEMA, 0: INSTANT}, content) * (ROWS // 4)


@pytest.mark.benchmark(group="log-scan")
@pytest.mark.parametrize("kind", ["rollbacks", "data_blocks"])
def test_block_headers(benchmark, request, kind):
    """The index of a file: all that decides which blocks count."""
    data = request.getfixturevalue(kind)
    rows = benchmark(index, data)
    assert int(rows[-1, IndexColumn.END]) == len(data)
    assert not rows[:, IndexColumn.DAMAGE].any()
    benchmark.extra_info["blocks"] = len(rows)
    benchmark.extra_info["bytes"] = len(data)


@pytest.mark.benchmark(group="log-scan")
def test_block_values(benchmark, data_blocks):
    """Blocks as Python values, headers decoded."""
    part = data_blocks[: len(data_blocks) // 10]
    blocks = benchmark(lambda: LogFileReader(part).blocks)
    assert blocks[0].instant == INSTANT
    benchmark.extra_info["blocks"] = len(blocks)


@pytest.mark.benchmark(group="log-resync")
@pytest.mark.parametrize("garbage", ["random", "zeros", "#", "#HUDI"])
def test_next_magic_after_garbage(benchmark, garbage):
    size = 256 * ROWS
    if garbage == "random":
        data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    else:
        piece = b"\0" if garbage == "zeros" else garbage.encode()
        data = np.frombuffer(
            (piece * (size // len(piece) + 1))[:size].replace(b"#HUDI#", b"#HUDI."), np.uint8
        )
    data = np.concatenate([data[: size - 6], np.frombuffer(b"#HUDI#", np.uint8)])
    found = benchmark(_scan.find_magic, data, 0)
    assert found == len(data) - 6
    benchmark.extra_info["bytes"] = len(data)


@pytest.mark.benchmark(group="log-records")
def test_where_records_are(benchmark):
    content = bytes(avro_content(b"x" * (100 * ROWS), np.arange(0, 100 * ROWS + 1, 100)))
    offsets = np.empty(ROWS, np.int64)
    bad, end = benchmark(_scan.records, content, 8, offsets)
    assert (bad, end) == (-1, len(content))
    benchmark.extra_info["records"] = ROWS


@pytest.mark.benchmark(group="log-records")
def test_deletes(benchmark):
    keys = pa.array([f"id-{i:08d}" for i in range(ROWS)])
    content = delete_content(keys, None, pa.array(np.arange(ROWS)))
    log = LogFileReader(block(BlockType.DELETE, {0: INSTANT}, content))
    (only,) = log.blocks
    deletes = benchmark(read_deletes, only, log.content(only))
    assert len(deletes) == ROWS
    assert struct.unpack(">i", content[:4]) == (3,)
    benchmark.extra_info["deletes"] = ROWS
