"""How base files are written: codec, level, sizes."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_format.errors import InvalidOptionError, UnsupportedError

# Arrow's names by Hudi's.  Levels are those of the Java codecs, so that files compare.
_CODECS = {
    "zstd": ("zstd", 3),
    "gzip": ("gzip", 6),
    "snappy": ("snappy", None),
    "lz4_raw": ("lz4", None),
    "uncompressed": ("none", None),
    "": ("none", None),
}


@dataclass(frozen=True, slots=True)
class ParquetConfig:
    """Sizes in bytes; the defaults are Apache Hudi's but for the codec.

    Attributes:
        codec: Hudi's name of the codec.
        level: its level, None for the level that parquet-mr takes (zstd 3, gzip 6).
        row_group_bytes: bound of a row group, counted in Arrow's memory.
        max_file_bytes: a writer that can roll over starts the next file past this size.
    """

    codec: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 125829120
    page_bytes: int = 1 << 20
    max_file_bytes: int = 125829120
    dictionary: bool = True

    def arrow_codec(self) -> tuple[str, int | None]:
        """Arrow's codec name and level.

        Raises:
            UnsupportedError, InvalidOptionError: a codec that is not written.
        """
        name = self.codec.lower()
        if name in ("lz4", "lzo", "brotli"):
            raise UnsupportedError(
                f"codec {self.codec!r} cannot be written so that every reader of Hudi tables reads it",
                remedy="set hoodie.parquet.compression.codec to zstd, snappy or gzip.",
            )
        if name not in _CODECS:
            raise InvalidOptionError(
                f"unknown codec {self.codec!r}", remedy="use zstd, gzip, snappy, lz4_raw or uncompressed."
            )
        codec, level = _CODECS[name]
        return codec, self.level if self.level is not None and level is not None else level
