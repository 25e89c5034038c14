from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import CorruptFileError, HudiError
from hudi_format.parquet import text_column
from hudi_format.parquet._texts import all_present, plain_texts
from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.reader import read_keys
from hudi_format.parquet.row_groups import row_groups
from hudi_format.parquet.text_column import read_texts
from hudi_format.storage.open import open_storage

NAME = "_hoodie_record_key"
KEYS = [f"key-{n:05d}" for n in range(5000)] + ["", "ü" * 40, "x" * 5000, "€", "\0"]
# What Apache Hudi's writers and ours give: pages of the first version, plain.
WRITTEN: dict[str, Any] = {"use_dictionary": False, "data_page_size": 4096}


def encoded(keys: Any = KEYS, **options: Any) -> bytes:
    table = keys if isinstance(keys, pa.Table) else pa.table({"a": range(len(keys)), NAME: keys})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{**WRITTEN, **options})
    return sink.getvalue().to_pybytes()


def texts_of(file: pq.ParquetFile, data: bytes) -> pa.ChunkedArray | None:
    try:
        groups = row_groups(footer_bytes(pa.BufferReader(data)), [NAME])
    except CorruptFileError:
        return None
    return read_texts(file, groups, read_of(data), NAME)


def read_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda at, length: data[at : at + length]


def texts(data: bytes) -> pa.ChunkedArray | None:
    return texts_of(pq.ParquetFile(pa.BufferReader(data)), data)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("codec", ["none", "zstd", "snappy", "gzip"])
def test_plain_pages_of_every_codec(codec: str, nullable: bool, version: str) -> None:
    schema = pa.schema([("a", pa.int64()), pa.field(NAME, pa.string(), nullable=nullable)])
    table = pa.table([range(len(KEYS)), KEYS], schema=schema)
    found = texts(encoded(table, compression=codec, data_page_version=version, row_group_size=1500))
    assert found is not None
    assert found.to_pylist() == KEYS
    assert found.num_chunks == 4
    for chunk in found.chunks:
        chunk.validate(full=True)


@pytest.mark.parametrize("keys", [[""], ["", ""], ["k"]])
def test_few_texts_come_back(keys: list[str]) -> None:
    table = pa.table({NAME: pa.array(keys, pa.string())})
    found = texts(encoded(table))
    assert found is not None
    assert found.to_pylist() == keys


def test_no_texts_at_all(tmp_path: Path) -> None:
    data = encoded(pa.table({NAME: pa.array([], pa.string())}))
    (tmp_path / "f.parquet").write_bytes(data)
    assert read_keys(open_storage(str(tmp_path)), "f.parquet").to_pylist() == []


def test_random_texts_come_back() -> None:
    rng = random.Random(5)
    for _ in range(40):
        alphabet = rng.choice(["a", "ab0", "aü€😀"])
        most = rng.choice([1, 31, 32, 33, 200])
        keys = ["".join(rng.choices(alphabet, k=rng.randint(0, most))) for _ in range(rng.randint(1, 400))]
        data = encoded(keys, compression=rng.choice(["none", "zstd"]), row_group_size=rng.randint(1, 400))
        found = texts(data)
        assert found is not None
        assert found.to_pylist() == keys


@pytest.mark.parametrize(
    "table",
    [
        pa.table({NAME: ["a", None, "b"]}),
        pa.table({NAME: pa.array(["a"], pa.large_string())}),
        pa.table({NAME: pa.array([b"a"])}),
        pa.table({NAME: [["a"]]}),
        pa.table({NAME: [{"x": "a"}]}),
        pa.table({NAME: pa.array(["a"]).dictionary_encode()}),
        pa.table({NAME: [1, 2]}),
    ],
)
def test_other_columns_are_for_arrow(table: pa.Table) -> None:
    assert texts(encoded(table)) is None


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": True},
        {"column_encoding": {NAME: "DELTA_BYTE_ARRAY"}},
        {"column_encoding": {NAME: "DELTA_LENGTH_BYTE_ARRAY"}},
        {"compression": "lz4"},
        {"compression": "brotli"},
    ],
)
def test_other_encodings_and_codecs_are_for_arrow(options: dict[str, Any], tmp_path: Path) -> None:
    data = encoded(**options)
    assert texts(data) is None
    (tmp_path / "f.parquet").write_bytes(data)
    assert read_keys(open_storage(str(tmp_path)), "f.parquet").to_pylist() == KEYS


def test_a_text_that_is_not_utf8_is_for_arrow_to_tell() -> None:
    data = encoded([f"key-{n}" for n in range(9)], compression="none", write_statistics=False)
    at = data.index(b"key-7")
    assert texts(data) is not None
    assert texts(data[:at] + b"\xff" + data[at + 1 :]) is None


def test_a_zstandard_frame_without_its_size() -> None:
    data = b"some content " * 9
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as out:
        out.write(data)
    packed = memoryview(stream.getvalue()).cast("B")
    assert text_column._zstd_size(packed) == -1
    assert text_column._unpacked(packed, len(data), "ZSTD") == data
    assert text_column._unpacked(packed, len(data) - 1, "ZSTD") is None
    assert text_column._unpacked(packed, len(data) + 1, "ZSTD") is None


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65791, 65792, 65793, 70000])
def test_the_size_that_a_zstandard_frame_says(size: int) -> None:
    packed = memoryview(pa.Codec("zstd").compress(b"a" * size)).cast("B")
    assert text_column._zstd_size(packed) == size


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip"])
@pytest.mark.parametrize("wrong", [-1, 1, 1000])
def test_another_size_than_that_of_the_content_is_no_page(codec: str, wrong: int) -> None:
    content = bytes(range(256)) * 8
    packed = memoryview(pa.Codec(codec).compress(content)).cast("B")
    assert text_column._unpacked(packed, len(content), codec.upper()) == content
    assert text_column._unpacked(packed, len(content) + wrong, codec.upper()) is None


def test_damage_is_found_or_left_to_arrow(tmp_path: Path) -> None:
    """Each changed byte gives the keys that Arrow reads, or is left to it."""
    rng = random.Random(1)
    storage = open_storage(str(tmp_path))
    for codec in ("none", "zstd", "snappy", "gzip"):
        data = encoded([f"key-{n}" for n in range(300)], compression=codec, row_group_size=150)
        begin = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(1).data_page_offset
        taken = 0
        for _ in range(400):
            at = rng.randrange(begin, len(data) - 8)
            damaged = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            try:
                file = pq.ParquetFile(pa.BufferReader(damaged))
            except (OSError, pa.ArrowException):
                continue
            if NAME not in file.schema.names:
                continue
            found = texts_of(file, damaged)
            (tmp_path / "f.parquet").write_bytes(damaged)
            if found is None:
                continue
            found.validate(full=True)
            (tmp_path / "f.parquet").write_bytes(damaged)
            try:
                kept = read_keys(storage, "f.parquet")
                expected = file.read(columns=[NAME]).column(0)
            except (HudiError, OSError, pa.ArrowException):
                # A footer that contradicts itself; and Arrow looks at statistics in a page's header.
                continue
            taken += 1
            assert found.equals(expected)
            assert kept.equals(expected)
        assert taken > 50


def levels(*runs: tuple[int, int]) -> bytes:
    """Runs of one level: how often, and which."""
    out = bytearray()
    for count, level in runs:
        head = count << 1
        while head > 0x7F:
            out.append(head & 0x7F | 0x80)
            head >>= 7
        out += bytes([head, level])
    return bytes(out)


@pytest.mark.parametrize(
    ("data", "values", "expected"),
    [
        (levels((5, 1)), 5, True),
        (levels((5, 1)), 6, False),
        (levels((5, 1), (300, 1)), 305, True),
        (levels((5, 1), (1, 0)), 6, False),
        (levels((5, 1), (1, 0)), 5, True),
        (levels((0, 1)) * 9, 1, False),
        (b"", 0, True),
        (b"", 1, False),
        (bytes([2 << 1 | 1, 0xFF, 0xFF]), 16, True),
        (bytes([2 << 1 | 1, 0xFF, 0x1F]), 13, True),
        (bytes([2 << 1 | 1, 0xFF, 0x1F]), 14, False),
        (bytes([2 << 1 | 1, 0xFF]), 16, False),
        (bytes([1]), 1, False),
        (b"\xff" * 12, 1, False),
    ],
)
def test_levels_say_whether_all_values_are_present(data: bytes, values: int, expected: bool) -> None:
    assert all_present(data, values) is expected


def test_pages_that_contradict_themselves() -> None:
    page = b"\2\0\0\0ab\1\0\0\0c"
    offsets, data = np.zeros(5, np.int32), np.zeros(5, np.uint8)
    assert plain_texts(page, offsets, data, 0, 2) == 3
    assert offsets.tolist() == [0, 2, 3, 0, 0]
    assert bytes(data[:3]) == b"abc"
    assert plain_texts(page, offsets, data, 2, 2) == -1  # no room for three bytes more
    assert plain_texts(page, offsets, data, 0, 1) == -1  # bytes are left
    assert plain_texts(page, offsets, data, 0, 3) == -1  # and one is missing
    assert plain_texts(b"\xff\xff\xff\xff", offsets, data, 0, 1) == -1
    assert plain_texts(b"", offsets, data, 0, 1) == -1
    assert plain_texts(b"", offsets, data, 0, 0) == 0
    assert plain_texts(b"a", offsets, data, 0, 0) == -1
    with pytest.raises(ValueError, match="more texts"):
        plain_texts(page, offsets, data, 3, 2)
    with pytest.raises(ValueError, match="more texts"):
        plain_texts(page, offsets, data, -1, 1)


def test_a_gzip_page_that_is_cut_off_is_damaged() -> None:
    packed = memoryview(zlib.compress(b"abc" * 99, wbits=31))
    assert text_column._unpacked(packed[:-1], 297, "GZIP") is None


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    data = encoded([f"key-{n}" for n in range(300)], compression="none", write_statistics=False)
    at = data.index(b"key-200") - 4
    (tmp_path / "f.parquet").write_bytes(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :])
    with pytest.raises(HudiError):
        read_keys(open_storage(str(tmp_path)), "f.parquet")
