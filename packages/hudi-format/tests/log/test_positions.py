"""Record positions, against the format's description and Apache Hudi's own headers."""

import struct
from contextlib import suppress

import numpy as np
import pytest
from golden_logs import golden_logs
from hypothesis import given
from hypothesis import strategies as st
from log_bytes import SCHEMA, block

from hudi_format.errors import CorruptFileError
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import read_avro
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.positions import RoaringError, read_roaring64, record_positions
from hudi_format.log.reader import LogFileReader


def roaring32(values, runs=False):
    """The portable form of a set of 32-bit numbers, array and bitmap containers, or runs."""
    groups = {}
    for v in sorted(values):
        groups.setdefault(v >> 16, []).append(v & 0xFFFF)
    heads, bodies = b"", []
    for key, low in groups.items():
        heads += struct.pack("<HH", key, len(low) - 1)
        if runs:
            spans = []
            for v in low:
                if spans and v == spans[-1][1] + 1:
                    spans[-1][1] = v
                else:
                    spans.append([v, v])
            bodies.append(
                struct.pack("<H", len(spans)) + b"".join(struct.pack("<HH", a, b - a) for a, b in spans)
            )
        elif len(low) <= 4096:
            bodies.append(np.array(low, "<u2").tobytes())
        else:
            bits = np.zeros(65536, np.uint8)
            bits[low] = 1
            bodies.append(np.packbits(bits, bitorder="little").tobytes())
    if runs:
        marks = np.packbits(np.ones(len(groups), np.uint8), bitorder="little").tobytes()
        head = struct.pack("<HH", 12347, len(groups) - 1) + marks + heads
        offsets = len(groups) >= 4
    else:
        head = struct.pack("<II", 12346, len(groups)) + heads
        offsets = True
    place = len(head) + 4 * len(groups)
    if offsets:
        for body in bodies:
            head += struct.pack("<I", place)
            place += len(body)
    return head + b"".join(bodies)


def roaring64(values, runs=False):
    groups = {}
    for v in values:
        groups.setdefault(v >> 32, []).append(v & 0xFFFFFFFF)
    out = struct.pack("<Q", len(groups))
    for high in sorted(groups):
        out += struct.pack("<I", high) + roaring32(groups[high], runs)
    return out


numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**20), st.integers(0, 2**40))


@given(st.sets(numbers, max_size=60), st.booleans())
def test_any_set_of_positions_is_read(values, runs):
    assert read_roaring64(roaring64(values, runs)).tolist() == sorted(values)


@pytest.mark.parametrize("runs", [False, True])
def test_dense_and_full_containers_are_read(runs):
    values = [*range(5000), *range(65536, 131072), *range(200_000, 260_000, 2), 1 << 33]
    assert read_roaring64(roaring64(values, runs)).tolist() == sorted(values)


@pytest.mark.req("LF-06")
def test_the_positions_of_a_header_of_apache_hudi():
    data = block(3, {0: "1", 2: SCHEMA, 5: "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAMABQAGAA==", 8: "0"})
    (found,) = LogFileReader(data).blocks
    assert record_positions(found).tolist() == [3, 5, 6]
    assert found.positions_base_instant == "0"
    assert record_positions(LogFileReader(block(3, {0: "1"})).blocks[0]) is None


@pytest.mark.req("LF-06")
@pytest.mark.parametrize("version", ["v8", "v9"])
def test_golden_blocks_have_a_position_for_each_record(version):
    seen = 0
    for name, data in golden_logs(version).items():
        with LogFileReader(data, file=name) as log:
            for b in log.blocks:
                positions = record_positions(b)
                if positions is None or b.type is BlockType.PARQUET_DATA:
                    continue
                read = read_deletes if b.type is BlockType.DELETE else read_avro
                assert len(positions) == len(read(b, log.content(b)))
                assert b.positions_base_instant.isdigit()
                seen += 1
    assert seen > 20


@pytest.mark.parametrize("text", ["", "AA==", "no base64!", "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAMABQA="])
def test_a_header_that_is_no_bitmap_is_an_error(text):
    (found,) = LogFileReader(block(3, {0: "1", 2: SCHEMA, 5: text}), file="f").blocks
    with pytest.raises(CorruptFileError, match="RECORD_POSITIONS"):
        record_positions(found)


@given(st.sets(numbers, min_size=1, max_size=20), st.booleans(), st.data())
def test_truncated_bitmaps_are_errors_and_changed_ones_never_worse(values, runs, data):
    good = roaring64(values, runs)
    with pytest.raises(RoaringError):
        read_roaring64(good[: data.draw(st.integers(0, len(good) - 1))])
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    with suppress(RoaringError):
        assert len(read_roaring64(bytes(bad))) <= 65536 * len(bad)
