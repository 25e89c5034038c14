import numpy as np
import numpy.typing as npt

_Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]

def scan(data: _Bytes, start: int, out: _Numbers) -> tuple[int, int]:
    """(rows filled, where to go on): what lies in a whole file from `start` on, a row of 16 columns each.

    Ends at the end of the data or of `out`; a stretch that is no block is a row as well.
    """

def find_magic(data: _Bytes, start: int) -> int:
    """Place of the first magic at or after `start`, the length of the data where there is none."""

def parse(head: _Bytes, tail: _Bytes, tail_offset: int, at: int, size: int, row: _Numbers) -> int:
    """Fill `row` for the block at file offset `at` of a file of `size` bytes, from two windows of it.

    `head` begins at `at`, `tail` at `tail_offset`.  Gives a damage (0: sound), -1 where the head or -2 where the
    tail does not hold enough.
    """

def records(content: _Bytes, start: int, offsets: _Numbers) -> tuple[int, int]:
    """Fill `offsets` with the places of length-prefixed records from `start` on.

    Gives the row that does not fit into the content (-1: none), and where the last one ends.
    """

def join(data: _Bytes, offsets: _Numbers, out: npt.NDArray[np.uint8]) -> int:
    """Fill `out` with the records between `offsets`, each after its length of four bytes; gives the bytes used."""
