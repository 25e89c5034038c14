"""Log blocks: types, headers, kinds of damage.

Source: Hudi format, "Log file format"; numbers, keys and lengths as in files of Apache Hudi 0.15.0, 1.0.2 and
1.2.0, where the document's are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from hudi_format._checks import loads
from hudi_format.errors import CorruptFileError, HudiError, UnsupportedError

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1


class BlockType(IntEnum):
    """Type of a block, by its number in the file.

    No file says CORRUPT; a scan does.
    """

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def has_records(self) -> bool:
        """Whether the block's content is rows of the table."""
        return self in (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA)


class HeaderKey(IntEnum):
    """Keys of block headers, by their number in the file."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


ROLLBACK = "0"  # the only command there is


class Damage(IntEnum):
    """Reasons why a stretch of a log file is not a readable block."""

    NONE = 0
    TORN = 1
    DISAGREES = 2
    NO_MAGIC = 3
    STRAY = 4
    BAD_MAGIC = 5
    BAD_VERSION = 6
    BAD_TYPE = 7
    BAD_HEADER = 8
    BAD_CONTENT = 9
    BAD_FOOTER = 10

    @property
    def may_be_cut_off(self) -> bool:
        """Whether an interrupted write leaves this behind; all other damage lost data."""
        return self in (Damage.TORN, Damage.DISAGREES, Damage.STRAY)

    @property
    def text(self) -> str:
        return _DAMAGE_TEXT[self]


_DAMAGE_TEXT = {
    Damage.NONE: "sound",
    Damage.TORN: "block that runs past the end of the file",
    Damage.DISAGREES: "block whose length disagrees with its end",
    Damage.NO_MAGIC: "bytes outside of any block",
    Damage.STRAY: "stray bytes",
    Damage.BAD_MAGIC: "block without its magic",
    Damage.BAD_VERSION: "block of an unknown log format version",
    Damage.BAD_TYPE: "block of an unknown type",
    Damage.BAD_HEADER: "block with a broken header",
    Damage.BAD_CONTENT: "block whose content exceeds its length",
    Damage.BAD_FOOTER: "block with a broken footer",
}


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file, without its content.

    Attributes:
        file: the log file, as its reader was given it.
        offset: place of the block's first byte in the file.
        size: bytes from the magic to the end of the block; of the lost stretch where it is damaged.
        type: CORRUPT where `damage` says why; `header` then holds what could still be read.
        header: entries by number; `HeaderKey` names those that are known.
        content_offset, content_length: where in the file the content is, in bytes.
        footer: entries by number; no release of Apache Hudi writes any.
    """

    file: str
    offset: int
    size: int
    type: BlockType
    header: Mapping[int, str] = field(default_factory=dict)
    content_offset: int = 0
    content_length: int = 0
    footer: Mapping[int, str] = field(default_factory=dict)
    damage: Damage = Damage.NONE

    @property
    def end(self) -> int:
        """Offset of the first byte after the block."""
        return self.offset + self.size

    @property
    def instant(self) -> str:
        """The instant that wrote the block; "" where the header has none."""
        return self.header.get(HeaderKey.INSTANT_TIME, "")

    @property
    def target_instant(self) -> str:
        """The instant that a rollback block rolls back, else ""."""
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME, "")

    @property
    def schema(self) -> str:
        """The writer's Avro schema as JSON text, else ""."""
        return self.header.get(HeaderKey.SCHEMA, "")

    def fields(self) -> dict[str, Any]:
        """Columns of a data block: Avro types (JSON) by name.

        Raises:
            CorruptFileError: its schema is none.
        """
        try:
            return {f["name"]: f["type"] for f in loads(self.schema)["fields"]}
        except (ValueError, LookupError, TypeError, RecursionError) as e:
            raise self.broken(f"an invalid SCHEMA header: {type(e).__name__}: {e}") from None

    @property
    def is_rollback(self) -> bool:
        return self.type is BlockType.COMMAND and self.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK

    @property
    def is_partial(self) -> bool:
        """Whether the records are partial updates (table version 8 and later)."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """Instants whose blocks a log compaction merged into this one; () for an original block."""
        text = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        return tuple(text.split(",")) if text else ()

    @property
    def positions_base_instant(self) -> str:
        """Instant of the base file that `RECORD_POSITIONS` refers to, else ""."""
        return self.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS, "")

    def placed(self, error: HudiError) -> HudiError:
        """The error with this block's file and instant filled in."""
        if isinstance(error, CorruptFileError):
            error.details.setdefault("offset", self.offset)
        return error.at(file=self.file, instant=self.instant)

    def check_version(self, version: int, what: str, newest: int) -> None:
        """Raise if the content's version is unknown.

        Raises:
            UnsupportedError: it is newer than this package.
            CorruptFileError: there is none such.
        """
        if version > newest:
            raise UnsupportedError(
                f"{what} of version {version} at byte {self.offset}; {newest} is the newest known",
                file=self.file,
                instant=self.instant,
                remedy="read the table with a newer release of hudi-format.",
            )
        if version < 1:
            raise self.broken(f"{what} of version {version}", self.content_offset)

    def broken(self, what: str, offset: int | None = None) -> CorruptFileError:
        """CorruptFileError for this block, at a file offset or at its start."""
        at = self.offset if offset is None else offset
        return CorruptFileError(
            f"{what}, at byte {at}, in the block at byte {self.offset}",
            file=self.file,
            instant=self.instant,
            offset=at,
            remedy=CorruptFileError.usual_remedy,
        )
