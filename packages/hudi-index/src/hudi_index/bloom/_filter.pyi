import numpy as np
import numpy.typing as npt
from _typeshed import ReadableBuffer

_Bytes = npt.NDArray[np.uint8]
_Offsets = npt.NDArray[np.int64]

def add(
    bits: _Bytes,
    size: int,
    rounds: int,
    murmur: bool,
    data: _Bytes,
    offsets: _Offsets,
    start: int,
    step: int,
    count: int,
) -> None:
    """Set the bits of `count` keys, from row `start`, every `step`-th; empty keys set none."""

def contains(
    bits: _Bytes, size: int, rounds: int, murmur: bool, data: _Bytes, offsets: _Offsets, found: _Bytes
) -> None:
    """Set `found[i]` to 1 for every key whose bits are all set; keys already found are passed over."""

def hash_bytes(data: ReadableBuffer, seed: int, murmur: bool) -> int:
    """Hadoop's MurmurHash, or its JenkinsHash, as a signed 32-bit number."""

def places(data: ReadableBuffer, size: int, rounds: int, murmur: bool) -> list[int]:
    """The bits of one key in a filter of `size` bits, one per round."""
