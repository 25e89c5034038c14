import numpy as np
import numpy.typing as npt

_Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]

def walk(data: _Bytes, out: _Numbers) -> tuple[int, int, bool]:
    """Index of an Avro list of delete records: (records, bytes read, whether all are valid).

    It is filled as far as `out` reaches, which has seven columns: place and length of key and partition path (-1 for
    null), branch of the ordering value, its number (or the bits of a float or double, or the place of its bytes), its
    length in bytes.
    """

def array_items(data: _Bytes, at: int, length: int) -> list[tuple[int, int, int]] | None:
    """Values of an array that `walk` found sound as (branch, number or place, length).

    None for a null.
    """

def gather(
    data: _Bytes,
    places: _Numbers,
    lengths: _Numbers,
    offsets: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> None:
    """Copy the texts at `places` to `out` and fill `offsets`; a length of -1 is empty."""

def encode(
    keys: _Bytes,
    key_offsets: npt.NDArray[np.int32],
    partitions: _Bytes,
    partition_offsets: npt.NDArray[np.int32],
    partition_valid: npt.NDArray[np.uint8],
    branches: npt.NDArray[np.uint8],
    numbers: _Numbers,
    texts: _Bytes,
    text_offsets: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> int:
    """Write an Avro list of delete records to `out`; returns its length.

    `numbers` and `texts` are those of the ordering values, by their branch.  Buffers have at least one byte each.
    `out` has room for 20 bytes, and 40 and its texts for each record.
    """
