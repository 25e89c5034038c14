import numpy as np
import numpy.typing as npt

_Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]

def scan(data: _Bytes, start: int, out: _Numbers) -> tuple[int, int]:
    """Scan of a file from `start`: 16 columns per block; returns (rows filled, next offset).

    Ends at the end of the data or of `out`; a stretch that is no block is a row as well.
    """

def find_magic(data: _Bytes, start: int) -> int:
    """Offset of the first magic at or after `start`, else the length of the data."""

def parse(head: _Bytes, tail: _Bytes, tail_offset: int, at: int, size: int, row: _Numbers) -> int:
    """Fill `row` for the block at file offset `at`, from two windows of the file.

    `head` begins at `at`, `tail` at `tail_offset`.  Gives a damage (0: sound), -1 where the head or -2 where the
    tail does not hold enough.
    """

def records(content: _Bytes, start: int, offsets: _Numbers) -> tuple[int, int]:
    """Fill `offsets` with the places of length-prefixed records from `start` on.

    Gives the row that does not fit into the content (-1: none), and where the last one ends.
    """

def join(data: _Bytes, offsets: _Numbers, out: npt.NDArray[np.uint8]) -> int:
    """Fill `out` with records, each prefixed with its four-byte length; returns bytes used."""
