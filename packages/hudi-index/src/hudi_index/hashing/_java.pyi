import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Offsets = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.int32]

def string_hashes(data: _Bytes, offsets: _Offsets, out: _Hashes) -> None:
    """Fill `out` with String.hashCode of each text."""

def bucket_ids(
    data: _Bytes, offsets: _Offsets, name_data: _Bytes, name_offsets: _Offsets, buckets: int, out: _Hashes
) -> None:
    """Fill `out` with each record key's bucket; the names are the hash fields."""

def extremes(data: _Bytes, offsets: _Offsets, valid: _Bytes | None) -> tuple[int, int]:
    """Rows of the smallest and largest text in String.compareTo order; -1 for none."""
