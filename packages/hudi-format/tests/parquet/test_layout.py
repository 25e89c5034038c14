from __future__ import annotations

import pytest

from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.parquet.layout import ParquetConfig


@pytest.mark.parametrize(
    ("codec", "level", "arrow"),
    [
        ("zstd", None, ("ZSTD", 3)),
        ("ZSTD", 9, ("ZSTD", 9)),
        ("gzip", None, ("GZIP", 6)),
        ("gzip", 1, ("GZIP", 1)),
        ("snappy", None, ("SNAPPY", None)),
        ("snappy", 5, ("SNAPPY", None)),
        ("lz4", None, ("LZ4", None)),
        ("lz4_raw", None, ("LZ4", None)),
        ("uncompressed", None, ("NONE", None)),
        ("", None, ("NONE", None)),
    ],
)
def test_codecs_have_the_names_and_levels_of_parquet_mr(
    codec: str, level: int | None, arrow: tuple[str, int | None]
) -> None:
    assert ParquetConfig(codec=codec, level=level).arrow_codec() == arrow


@pytest.mark.parametrize("codec", ["brotli", "LZO"])
def test_a_codec_that_few_readers_have_is_refused(codec: str) -> None:
    with pytest.raises(UnsupportedError, match="choose zstd"):
        ParquetConfig(codec=codec)


@pytest.mark.parametrize(
    "wrong",
    [
        {"codec": "zip"},
        {"level": 23},
        {"codec": "gzip", "level": 0},
        {"row_group_bytes": 0},
        {"kept_chunk_bytes": 0},
        {"page_bytes": -1},
    ],
    ids=str,
)
def test_values_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(InvalidOptionError):
        ParquetConfig(**wrong)
