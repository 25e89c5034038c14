from _typeshed import ReadableBuffer

def key_value_spans(data: ReadableBuffer) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Rows of the file (-1 where the footer does not say), and for each entry the offset and length of its key
    and of its value; a length of -1 means that it is not there.

    Raises:
        ValueError: bytes that are no FileMetaData, or are cut off; the text says where.
    """

def row_groups(data: ReadableBuffer) -> list[tuple[set[int], int]]:
    """For each row group the numbers of its columns' codecs, -1 of one that does not say, and its bytes in the file.

    Raises:
        ValueError: as `key_value_spans`.
    """
