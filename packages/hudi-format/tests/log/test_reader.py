"""Log files read block by block: those of Apache Hudi, and bytes that are none."""

import io
import struct

import pytest
from golden_logs import VERSIONS, golden_logs
from hypothesis import given, settings
from hypothesis import strategies as st
from log_bytes import avro, block, empty_delete, rollback

from hudi_format.errors import CorruptFileError, MissingFileError
from hudi_format.log import reader
from hudi_format.log.block import MAGIC, BlockType, Damage
from hudi_format.log.reader import LogFileReader
from hudi_format.storage.open import open_storage

A, B = avro("001", "x" * 300), avro("002", "y" * 700, "z")


def blocks(data):
    return LogFileReader(data, file="f").blocks


def shape(data):
    """Type, offset and size of each block."""
    return [(b.type.name, b.offset, b.size) for b in blocks(data)]


@pytest.mark.req("LF-01", "LF-02", "LF-03", "LF-04", "LF-05", "LF-07", "LF-08", "LF-09", "LF-19")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_golden_log_file_is_whole_blocks_without_a_gap(version):
    for name, data in golden_logs(version).items():
        found = LogFileReader(data, file=name).blocks
        at = 0
        for b in found:
            assert (b.file, b.offset, b.damage) == (name, at, Damage.NONE)
            assert data[at : at + 6] == MAGIC
            size, format_version, kind = struct.unpack(">qii", data[at + 6 : at + 22])
            assert (size + 14, format_version, kind) == (b.size, 1, b.type)
            assert struct.unpack(">q", data[b.end - 8 : b.end])[0] == b.size - 8
            assert b.footer == {}
            assert b.instant.isdigit()
            at = b.end
        assert at == len(data)


@pytest.mark.req("LF-14")
@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"", []),
        (A + B, [("AVRO_DATA", 0, len(A)), ("AVRO_DATA", len(A), len(B))]),
        (A + B[:700], [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 700)]),
        (A[:300] + B, [("CORRUPT", 0, 300), ("AVRO_DATA", 300, len(B))]),
        (A + b"#HU", [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 3)]),
        (A + MAGIC + B, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 6), ("AVRO_DATA", len(A) + 6, len(B))]),
        # Apache Hudi loses A in these two; what follows a block says nothing about it.
        (A + b"g" * 22 + B, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 22), ("AVRO_DATA", len(A) + 22, len(B))]),
        (A + b"g" * 8, [("AVRO_DATA", 0, len(A)), ("CORRUPT", len(A), 8)]),
        (A[:300] + b"g", [("CORRUPT", 0, 301)]),
    ],
)  # fmt: skip
def test_damaged_stretches_are_blocks_of_their_own(data, want):
    assert shape(data) == want


def changed(data, offset, new):
    return data[:offset] + new + data[offset + len(new) :]


@pytest.mark.req("LF-14")
@pytest.mark.parametrize(
    ("data", "damage"),
    [
        (changed(A, 0, b"%"), Damage.BAD_MAGIC),
        (changed(A, 14, b"\1"), Damage.BAD_VERSION),
        (changed(A, 21, b"\2"), Damage.BAD_TYPE),
        (changed(A, 21, b"\7"), Damage.BAD_TYPE),
        (changed(A, 18, b"\xff\xff\xff\xff"), Damage.BAD_TYPE),
        (changed(A, 25, b"\3"), Damage.BAD_HEADER),
        (changed(A, 22, b"\xff"), Damage.BAD_HEADER),
        (changed(A, 30, b"\xff"), Damage.BAD_HEADER),
        (block(3, {0: "1"})[:30] + struct.pack(">i", -1) + block(3, {0: "1"})[34:], Damage.BAD_HEADER),
        (changed(A, len(A) - 12, b"\0\0\0\1"), Damage.BAD_FOOTER),
        (changed(A, len(A) - 1, b"\0"), Damage.DISAGREES),
        (changed(A, 13, b"\x20"), Damage.DISAGREES),
        (changed(A, 6, b"\x80"), Damage.DISAGREES),
        (changed(A, 6, b"\x7f"), Damage.TORN),
        (b"nothing of a log file", Damage.NO_MAGIC),
        (A[:-1], Damage.TORN),
        (A[:5], Damage.STRAY),
    ],
)
def test_why_a_stretch_is_no_block(data, damage):
    first, *_ = blocks(data)
    assert (first.type, first.damage, first.offset) == (BlockType.CORRUPT, damage, 0)


@pytest.mark.req("LF-14", "NEW-37")
def test_a_torn_block_still_names_its_instant():
    torn, whole = blocks(B[:500] + A)
    assert (torn.instant, torn.size, whole.instant) == ("002", 500, "001")


def test_magic_inside_a_record_is_not_taken_for_a_block():
    data = avro("1", "before#HUDI#after") + A
    assert [b.instant for b in blocks(data)] == ["1", "001"]


@settings(max_examples=60)
@given(st.data())
def test_ranged_reading_finds_the_same_blocks(data):
    pieces = [A, B, rollback("9", "1"), empty_delete("5"), b"#HUDI#", b"garbage", A[:70], B[:900], b"#HU"]
    text = b"".join(data.draw(st.lists(st.sampled_from(pieces), max_size=8)))
    cut = text[: data.draw(st.integers(0, len(text)))]
    window = data.draw(st.sampled_from([16, 100, 700, 65536]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "WHOLE_FILE", -1)
        patch.setattr(reader, "_WINDOW", window)
        patch.setattr(reader, "_SEARCH", max(window, 16))
        with LogFileReader(io.BytesIO(cut), file="f") as log:
            assert log.blocks == blocks(cut)
            for b in log.blocks:
                assert bytes(log.content(b)) == cut[b.content_offset : b.content_offset + b.content_length]


def test_ranged_reading_leaves_contents_unread(monkeypatch):
    class Counting(io.BytesIO):
        read_bytes = requests = 0

        def read(self, size=-1, /):
            out = super().read(size)
            Counting.read_bytes += len(out)
            Counting.requests += 1
            return out

    monkeypatch.setattr(reader, "WHOLE_FILE", 1 << 20)
    big = b"".join(avro(f"{i:03d}", "x" * 63, *["y" * 60] * 20_000) for i in range(6))
    with LogFileReader(Counting(big)) as log:
        assert [b.instant for b in log.blocks] == [f"{i:03d}" for i in range(6)]
        assert Counting.requests <= len(log.blocks) + 2
        assert Counting.read_bytes < len(big) / 10


@pytest.mark.req("LF-19")
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_log_files_of_any_storage_are_opened(tmp_path, scheme):
    storage = open_storage(str(tmp_path) if scheme == "file" else "memory://logs")
    storage.touch("p/.a_1.log.1_0-0-0", A + B)
    storage.touch("p/.b_1.log.1_0-0-0", b"")
    with LogFileReader.open(storage, "p/.a_1.log.1_0-0-0") as log:
        assert [b.instant for b in log.blocks] == ["001", "002"]
        content = log.content(log.blocks[1])
    assert content.to_pybytes() in B
    with LogFileReader.open(storage, "p/.b_1.log.1_0-0-0") as log:
        assert log.blocks == ()
    with pytest.raises(MissingFileError, match="log file is not there"):
        LogFileReader.open(storage, "p/none")


def test_content_of_a_file_that_became_shorter_is_an_error():
    (whole,) = LogFileReader(A, file="f").blocks
    with LogFileReader(A[:50], file="g") as cut, pytest.raises(CorruptFileError) as error:
        cut.content(whole)
    assert error.value.file == "g"
    assert error.value.details["offset"] == 50
