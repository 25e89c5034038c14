"""HFile trailer and file info: two small protobuf messages.

Source: format notes of HFile version 3; HBase 2.4's FixedFileTrailer, and files of Apache Hudi 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudi_format.hfile.compression import Codec

TRAILER_SIZE = 4096
MAGIC = b'TRABLK"$'
MAJOR_VERSION = 3
MINOR_VERSION = 3  # HBase's; Apache Hudi's own writer says 0
INFO_MAGIC = b"PBUF"
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_NO_BLOCK = (1 << 64) - 1  # -1, as a file without data blocks has it

# Entries of the file info that HBase defines.
LAST_KEY = b"hfile.LASTKEY"
AVG_KEY_LENGTH = b"hfile.AVG_KEY_LEN"
AVG_VALUE_LENGTH = b"hfile.AVG_VALUE_LEN"
CREATE_TIME = b"hfile.CREATE_TIME_TS"
KEY_VALUE_VERSION = b"KEY_VALUE_VERSION"
MAX_MEMSTORE_TS = b"MAX_MEMSTORE_TS_KEY"
MAX_TAGS_LENGTH = b"hfile.MAX_TAGS_LEN"
BLOCK_ENCODING = b"DATA_BLOCK_ENCODING"
# And those that Apache Hudi adds.
SCHEMA = b"schema"
MIN_RECORD_KEY = b"minRecordKey"
MAX_RECORD_KEY = b"maxRecordKey"
BLOOM_TYPE = b"bloomFilterTypeCode"
BLOOM_BLOCK = "bloomFilter"


class TrailerError(ValueError):
    """Bytes that are not a valid trailer or file info; `at` is the first invalid one."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Trailer:
    """Fields of a trailer; offsets and sizes in bytes, -1 for an absent block.

    `data_index_count` is the number of entries of the *root* data index block.
    """

    file_info_offset: int
    load_on_open_offset: int
    uncompressed_index_size: int
    total_uncompressed_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    first_data_block_offset: int
    last_data_block_offset: int
    comparator: str
    codec: Codec
    minor_version: int = MINOR_VERSION


# Field number -> attribute.
_NUMBERS = {
    1: "file_info_offset",
    2: "load_on_open_offset",
    3: "uncompressed_index_size",
    4: "total_uncompressed_bytes",
    5: "data_index_count",
    6: "meta_index_count",
    7: "entry_count",
    8: "index_levels",
    9: "first_data_block_offset",
    10: "last_data_block_offset",
    12: "codec",
}
_COMPARATOR_FIELD = 11
_ENCRYPTION_FIELD = 13
# All of Apache Hudi's writers set these; without one of them there is nothing to go by.
_REQUIRED = ("file_info_offset", "load_on_open_offset", "data_index_count", "entry_count", "index_levels")


def parse_trailer(data: bytes | memoryview) -> Trailer:
    """The trailer in the last 4096 bytes of an HFile.

    Raises:
        TrailerError: it is none, or one of a version other than 3.
    """
    data = bytes(data)
    if len(data) != TRAILER_SIZE or data[:8] != MAGIC:
        raise TrailerError("no trailer: not an HFile, or cut off", 0)
    version = int.from_bytes(data[-4:])
    if version & 0xFFFFFF != MAJOR_VERSION:
        raise TrailerError(f"HFile version {version & 16777215} instead of 3", TRAILER_SIZE - 4)
    length, start = _varint(data, 8, TRAILER_SIZE - 4)
    if length > TRAILER_SIZE - 4 - start:
        raise TrailerError("the trailer's length exceeds the trailer", 8)
    numbers: dict[str, int] = {}
    comparator = ""
    for number, value, at in _fields(data, start, start + length):
        if number in _NUMBERS:
            if not isinstance(value, int):
                raise TrailerError(f"field {number} of the trailer is not a number", at)
            numbers[_NUMBERS[number]] = value
        elif number == _COMPARATOR_FIELD and isinstance(value, bytes):
            comparator = value.decode("utf-8", "replace")
        elif number == _ENCRYPTION_FIELD:
            raise TrailerError("the file is encrypted", at)
    missing = [name for name in _REQUIRED if name not in numbers]
    if missing:
        raise TrailerError(f"the trailer has no {missing[0].replace('_', ' ')}", start)
    codec = numbers.pop("codec", Codec.NONE)
    if codec not in list(Codec):
        raise TrailerError(f"unknown compression {codec}", start)
    values = {name: numbers.get(name, 0) for name in _NUMBERS.values() if name != "codec"}
    for name in ("first_data_block_offset", "last_data_block_offset"):
        values[name] = -1 if values[name] == _NO_BLOCK else values[name]
    return Trailer(**values, comparator=comparator, codec=Codec(codec), minor_version=version >> 24)


def format_trailer(trailer: Trailer) -> bytes:
    """The 4096 bytes of a trailer."""
    body = bytearray()
    for number, name in _NUMBERS.items():
        if number > _COMPARATOR_FIELD and trailer.comparator:
            body += _bytes_field(_COMPARATOR_FIELD, trailer.comparator.encode())
        value = int(getattr(trailer, name))
        body += _tag(number, 0) + write_varint(_NO_BLOCK if value < 0 else value)
    out = MAGIC + write_varint(len(body)) + body
    version = (trailer.minor_version << 24 | MAJOR_VERSION).to_bytes(4)
    return out.ljust(TRAILER_SIZE - 4, b"\0") + version


def parse_file_info(data: bytes | memoryview) -> dict[bytes, bytes]:
    """Entries of a file info block.

    Raises:
        TrailerError: it is no file info.
    """
    data = bytes(data)
    if data[:4] != INFO_MAGIC:
        raise TrailerError("the file info does not begin with PBUF", 0)
    length, start = _varint(data, 4, len(data))
    if length != len(data) - start:
        raise TrailerError("the file info's length does not fit its block", 4)
    out: dict[bytes, bytes] = {}
    for number, value, at in _fields(data, start, len(data)):
        if number != 1 or not isinstance(value, bytes):
            raise TrailerError(f"unknown field {number} in the file info", at)
        pair = {n: v for n, v, _ in _fields(value, 0, len(value))}
        key, content = pair.get(1), pair.get(2, b"")
        if not isinstance(key, bytes) or not isinstance(content, bytes):
            raise TrailerError("an entry of the file info is not a pair", at)
        out[key] = content
    return out


def format_file_info(entries: Mapping[bytes, bytes]) -> bytes:
    """Content of a file info block; entries in key order, as HBase has them."""
    body = bytearray()
    for key in sorted(entries):
        body += _bytes_field(1, _bytes_field(1, key) + _bytes_field(2, entries[key]))
    return INFO_MAGIC + write_varint(len(body)) + bytes(body)


def write_varint(value: int) -> bytes:
    """Protobuf's variable-length integer."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, kind: int) -> bytes:
    return write_varint(number << 3 | kind)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _tag(number, 2) + write_varint(len(content)) + content


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, place after it)."""
    value = 0
    for i in range(10):
        if at + i >= end:
            raise TrailerError("a number is cut off", at)
        byte = data[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + i + 1
    raise TrailerError("a number has more than 64 bits", at)


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int | bytes, int]]:
    """Number, value and place of each field of a message."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at, end)
            yield tag >> 3, value, start
            continue
        if kind == 2:
            length, at = _varint(data, at, end)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise TrailerError(f"an unknown wire type {kind}", start)
        if length > end - at:
            raise TrailerError("a field exceeds its message", start)
        yield tag >> 3, data[at : at + length], start
        at += length
