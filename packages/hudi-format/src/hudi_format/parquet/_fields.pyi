_Fields = list[tuple[int, int, bytes]]

def fields(data: bytes, at: int) -> tuple[_Fields, int]:
    """Fields of the struct at a place, as number, Thrift's type and bytes, and the place behind it.

    Raises:
        ValueError: cut off, or not Thrift's compact encoding.
    """

def structs(data: bytes, at: int) -> tuple[list[_Fields], int]:
    """Fields of each struct of the list at a place, and the place behind it.

    Raises:
        ValueError: as of `fields`; a list of something else.
    """

def behind(data: bytes, at: int, kind: int) -> int:
    """Place behind a value of a list or a map, which hold a boolean in a byte.

    Raises:
        ValueError: as of `fields`.
    """
