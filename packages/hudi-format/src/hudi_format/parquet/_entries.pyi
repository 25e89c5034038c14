from _typeshed import ReadableBuffer

def key_value_spans(data: ReadableBuffer) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Number of rows (-1: unknown), and offset and length of each entry's key and value.

    A length of -1 means that the key or value is absent.

    Raises:
        ValueError: bytes that are no FileMetaData, or are cut off; the text says where.
    """
