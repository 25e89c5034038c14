from _typeshed import ReadableBuffer

def key_value_spans(data: ReadableBuffer) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Rows of the file (-1 where the footer does not say), and for each entry the offset and length of its key
    and of its value; a length of -1 means that it is not there.

    Raises:
        ValueError: bytes that are no FileMetaData, or are cut off; the text says where.
    """
