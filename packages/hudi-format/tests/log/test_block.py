"""Blocks of log files: types, headers, contents."""

import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_logs import VERSIONS, golden_logs
from log_bytes import avro, avro_content, block

from hudi_format.log.block import BlockType, Damage, HeaderKey
from hudi_format.log.reader import LogFileReader

A, B = avro("001", "x" * 300), avro("002", "y" * 700, "z")


def blocks(data):
    return LogFileReader(data, file="f").blocks


@pytest.mark.req("LF-06", "LF-10", "LF-18")
def test_all_block_types_and_header_keys_are_in_the_golden_files():
    types, keys = set(), set()
    for version in VERSIONS:
        for data in golden_logs(version).values():
            for b in blocks(data):
                types.add(b.type)
                keys |= {(b.type, HeaderKey(k)) for k in b.header}
    assert types == set(BlockType) - {BlockType.CORRUPT}
    assert {k for _, k in keys} == set(HeaderKey) - {HeaderKey.BLOCK_IDENTIFIER}
    assert (BlockType.COMMAND, HeaderKey.TARGET_INSTANT_TIME) in keys
    assert (BlockType.AVRO_DATA, HeaderKey.IS_PARTIAL) in keys


@pytest.mark.req("LF-17")
def test_parquet_content_is_a_parquet_file():
    rows = 0
    for version in ("v6", "v8", "v9"):
        for data in golden_logs(version, "mor_parquet_logs").values():
            with LogFileReader(data) as log:
                for b in log.blocks:
                    if b.type is BlockType.PARQUET_DATA:
                        table = pq.read_table(pa.BufferReader(log.content(b)))
                        assert table["_hoodie_commit_time"].unique().to_pylist() == [b.instant]
                        rows += len(table)
    assert rows > 0


@pytest.mark.req("LF-16")
def test_hfile_content_is_handed_on_whole():
    found = [
        bytes(log.content(b))
        for data in golden_logs("v6", "mdt_all_indexes").values()
        for log in [LogFileReader(data)]
        for b in log.blocks
        if b.type is BlockType.HFILE_DATA
    ]
    assert found
    assert all(c.startswith(b"DATABLK*") and b'TRABLK"$' in c for c in found)


def changed(data, offset, new):
    return data[:offset] + new + data[offset + len(new) :]


def test_a_content_length_beyond_the_block_is_damage():
    at = A.index(avro_content([])[:4], 100) - 8
    for value in (len(A), -1, 2**62, -(2**63)):
        (only,) = blocks(changed(A, at, struct.pack(">q", value)))
        assert only.damage is Damage.BAD_CONTENT


@pytest.mark.parametrize("header", [b"\xff\xfe", b"ab\xc3"])
def test_a_header_that_is_no_text_is_damage(header):
    data = block(3, {0: "123"}).replace(b"123", (header + b"___")[:3])
    assert blocks(data)[0].damage is Damage.BAD_HEADER


def test_a_header_key_that_comes_twice_is_damage():
    data = block(3, {0: "123", 4: "456"}).replace(struct.pack(">ii", 4, 3), struct.pack(">ii", 0, 3))
    assert blocks(data)[0].damage is Damage.BAD_HEADER
