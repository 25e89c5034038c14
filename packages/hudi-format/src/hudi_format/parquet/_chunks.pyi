from collections.abc import Container

from _typeshed import ReadableBuffer

_Chunk = tuple[
    int,
    bytes,
    int,
    int,
    int,
    int,
    int,
    int,
    int,
    bytes | None,
    bytes | None,
    bytes | None,
    bytes | None,
    int,
]

def row_groups(
    data: ReadableBuffer, wanted: Container[bytes] | None = None
) -> tuple[list[tuple[int, list[_Chunk]]], list[bool]]:
    """Row groups as (rows, chunks), and per leaf column whether its order is that of its type.

    A chunk is (number of the leaf column, path with dots, physical type, codec, values, bytes before they were
    compressed, bytes in the file, place of the dictionary, nulls, min_value, max_value, min, max, place of
    the first data page); -1 and None where the footer does not say, and for a place in another
    file.  Only `wanted` paths are given.

    Raises:
        ValueError: bytes that are no FileMetaData, or are cut off; the text says where.
    """

def float_places(data: ReadableBuffer) -> tuple[list[int], list[tuple[int, int]], tuple[int, int]]:
    """Where each row group's first chunk begins, and places and lengths of structs.

    These are the statistics of FLOAT and DOUBLE chunks, and the key-value entries; -1 and 0 where there are none.

    Raises:
        ValueError: as of `row_groups`.
    """
