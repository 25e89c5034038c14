"""The key-value entries of many base files' footers, quickly: one range of bytes each, nothing decoded.

For index look-ups, which want a key range and a bloom filter from each of thousands of files and nothing else.
`hudi_format.parquet.footer` gives a footer with schema and statistics.

Source: Parquet format, "File metadata": the file ends with the footer, its length in 4 bytes, and "PAR1".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_format.errors import CorruptFileError, MissingFileError, UnsupportedError
from hudi_format.storage import Storage

try:
    from hudi_format.parquet import _entries
except ImportError as e:
    raise ImportError(
        "hudi_format.parquet._entries, a compiled part of hudi-format, is missing; install a wheel, or build "
        "it in a checkout: cd packages/hudi-format && python setup.py build_ext --inplace"
    ) from e

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_TAIL = 8
# A footer with Apache Hudi's default bloom filter has 431,380 bytes of it; a footer that is longer costs a
# second request.
FIRST_READ = 460 << 10
_OPEN_READ = 64 << 10  # of a file that Arrow has open, and mostly has in memory


@dataclass(frozen=True, slots=True)
class FooterEntries:
    """A footer's entries.

    Attributes:
        num_rows: of the file; -1 where the footer does not say.
        values: UTF-8 text by key; views of the bytes that were read.
        read_bytes: how much of the file's end was read.
    """

    num_rows: int
    values: Mapping[str, memoryview]
    read_bytes: int

    def text(self, key: str) -> str | None:
        """An entry's value.

        Raises:
            CorruptFileError: it is not UTF-8.
        """
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError as e:
            raise CorruptFileError(f"the footer's entry {key} is no text: {e.reason}") from None


def read_entries(
    storage: Storage, path: str, *, size: int = -1, first_read: int = FIRST_READ
) -> FooterEntries:
    """The entries of a base file's footer.

    Args:
        size: of the file, in bytes, where the caller knows it from a listing; saves a request.
        first_read: how many bytes of the end to ask for at once.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: no Parquet file, or one that is cut off or damaged where it was looked at.
        UnsupportedError: its footer is encrypted.
        StorageError: the storage refused.
    """
    try:
        footer, read_bytes = read_footer_bytes(storage, path, size=size, first_read=first_read)
        return _parse(footer, read_bytes)
    except (CorruptFileError, UnsupportedError) as e:
        raise e.at(table=storage.uri, file=path) from None


def read_footer_bytes(
    storage: Storage, path: str, *, size: int = -1, first_read: int = FIRST_READ
) -> tuple[memoryview, int]:
    """A footer's bytes, and how many bytes were read for them.

    Args and Raises: as of `read_entries`; errors do not name the file.
    """
    if size < 0:
        info = storage.info(path)
        if info is None:
            raise MissingFileError("the base file is missing", table=storage.uri, file=path)
        size = info.size
    try:
        length = min(size, max(first_read, _TAIL))
        end = storage.read_range(path, size - length, length)
        needed = _footer_length(end, length, size) + _TAIL
        if needed > length:
            end = storage.read_range(path, size - needed, needed)
            if len(end) != needed:
                raise CorruptFileError("the base file cannot be read as Parquet: it is shorter than listed")
    except FileNotFoundError:
        raise MissingFileError("the base file is missing", table=storage.uri, file=path) from None
    return memoryview(end)[len(end) - needed : len(end) - _TAIL], len(end)


def footer_bytes(source: pa.NativeFile) -> memoryview:
    """The footer's bytes of an open file.

    Raises:
        CorruptFileError, UnsupportedError: as `read_entries`; they do not name the file.
    """
    size = source.size()
    length = min(size, _OPEN_READ)
    end = source.read_at(length, size - length)
    needed = _footer_length(end, length, size) + _TAIL
    if needed > length:
        # Of a mapped file without a copy: a bloom filter makes footers long.
        source.seek(size - needed)
        end = memoryview(source.read_buffer(needed)).cast("B")
    return memoryview(end)[len(end) - needed : len(end) - _TAIL]


def _footer_length(end: bytes, length: int, size: int) -> int:
    if len(end) != length or size < _TAIL + len(_MAGIC):
        raise CorruptFileError("the base file cannot be read as Parquet: it is cut off")
    if end[-4:] == _ENCRYPTED:
        raise UnsupportedError(
            "the base file's footer is encrypted",
            remedy="have the engine that wrote it write it again without encryption.",
        )
    if end[-4:] != _MAGIC:
        raise CorruptFileError("the base file cannot be read as Parquet: it does not end with PAR1")
    found = int.from_bytes(end[-8:-4], "little")
    if found == 0 or found > size - _TAIL - len(_MAGIC):
        raise CorruptFileError(f"the base file cannot be read as Parquet: a footer of {found} bytes")
    return found


def _parse(footer: memoryview, read_bytes: int) -> FooterEntries:
    try:
        num_rows, spans = _entries.key_value_spans(footer)
    except ValueError as e:
        raise CorruptFileError(f"the base file cannot be read as Parquet: {e}") from None
    values: dict[str, memoryview] = {}
    for key_at, key_length, at, length in spans:
        if key_length < 0 or length < 0:
            continue  # a key without a value says nothing
        try:
            key = str(footer[key_at : key_at + key_length], "utf-8")
        except UnicodeDecodeError:
            continue  # no entry of Hudi's
        values[key] = footer[at : at + length]
    return FooterEntries(num_rows, values, read_bytes)
