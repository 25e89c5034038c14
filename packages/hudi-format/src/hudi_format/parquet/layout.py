"""Layout of Parquet base files: the write options of the file writer.

Source: hoodie.parquet.* options; spec of base files, "Physical defaults".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hudi_format.errors import InvalidOptionError, UnsupportedError

MIB = 1 << 20

# Name of the option's value -> (name that Arrow knows, level where none is given).  Levels are parquet-mr's:
# zlib's default for gzip, 3 for zstd.  Apache Hudi names the codecs after parquet-mr's enumeration.
_CODECS: dict[str, tuple[str, int | None]] = {
    "": ("NONE", None),
    "none": ("NONE", None),
    "uncompressed": ("NONE", None),
    "snappy": ("SNAPPY", None),
    "gzip": ("GZIP", 6),
    "zstd": ("ZSTD", 3),
    # Arrow writes both as LZ4_RAW, the codec of the Parquet format.  parquet-mr's own LZ4 is Hadoop's private
    # framing, which the format has deprecated; Arrow does not write it.  parquet-mr >= 1.13 (Spark >= 3.5)
    # reads LZ4_RAW.
    "lz4": ("LZ4", None),
    "lz4_raw": ("LZ4", None),
}
_LEVELS: dict[str, tuple[int, int]] = {"GZIP": (1, 9), "ZSTD": (-7, 22)}


@dataclass(frozen=True, slots=True)
class ParquetConfig:
    """Layout of base files.

    Attributes:
        codec: one of gzip, snappy, zstd, lz4 (written as LZ4_RAW), uncompressed or ""; any case.
        level: compression level of gzip (1 to 9) and zstd (-7 to 22); None: 6 and 3.
        row_group_bytes: a row group is cut where its rows take this much memory in Arrow's format.  Apache
            Hudi measures the encoded size, so that its row groups hold more rows at the same figure.
        row_group_rows: a row group has no more rows than this.
        page_bytes: data pages, and dictionaries, are cut at this many encoded bytes.
        max_file_bytes: for the caller, who starts another file there.
        dictionary: whether columns are dictionary-encoded while that pays.
        kept_chunk_bytes: a rewrite takes column chunks over from row groups whose chunks have this many bytes on
            average, before compression; what is smaller is encoded anew in less time than its footer takes.

    Raises:
        UnsupportedError: a codec of Parquet that this version does not write.
        InvalidOptionError: no codec of Parquet, a level out of range, or a size below 1.
    """

    codec: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 120 * MIB
    row_group_rows: int = MIB
    page_bytes: int = MIB
    max_file_bytes: int = 120 * MIB
    dictionary: bool = True
    kept_chunk_bytes: int = 80 << 10

    def __post_init__(self) -> None:
        name = self.codec.lower()
        if name in ("brotli", "lzo"):
            raise UnsupportedError(
                f"the Parquet codec {name} is not supported for writing",
                remedy="choose zstd, gzip, snappy, lz4 or uncompressed.",
                option="hoodie.parquet.compression.codec",
            )
        if name not in _CODECS:
            raise InvalidOptionError(
                f"{self.codec!r} is not a Parquet codec",
                remedy="choose zstd, gzip, snappy, lz4 or uncompressed.",
                option="hoodie.parquet.compression.codec",
            )
        bounds = _LEVELS.get(_CODECS[name][0])
        if self.level is not None and bounds is not None and not bounds[0] <= self.level <= bounds[1]:
            raise InvalidOptionError(
                f"compression level {self.level} of {name} is not between {bounds[0]} and {bounds[1]}"
            )
        for attribute in (
            "row_group_bytes", "row_group_rows", "page_bytes", "max_file_bytes", "kept_chunk_bytes",
        ):  # fmt: skip
            if getattr(self, attribute) < 1:
                raise InvalidOptionError(f"{attribute} must be positive, not {getattr(self, attribute)}")

    def arrow_codec(self) -> tuple[str, int | None]:
        """pyarrow's name of the codec, and its level; None for codecs without levels."""
        name, default = _CODECS[self.codec.lower()]
        return name, (self.level if self.level is not None else default) if name in _LEVELS else None


# The seam between base-file writers and what lies in their footers about keys.
#
# hudi-format knows no index: the caller passes an observer from hudi_index.bloom, or `NO_OBSERVER`.


class KeyObserver(Protocol):
    """Observer of the record keys of a base file, whose result goes into the footer."""

    def add(self, keys: pa.StringArray) -> None:
        """Take keys in write order; no nulls."""
        ...

    def finish(self) -> Mapping[str, str]:
        """Entries for the footer."""
        ...


class _NoObserver:
    def add(self, keys: pa.StringArray) -> None:
        return

    def finish(self) -> Mapping[str, str]:
        return {}


NO_OBSERVER: KeyObserver = _NoObserver()
