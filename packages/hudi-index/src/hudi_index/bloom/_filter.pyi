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
    """Set `found[i]` to 1 for each key whose bits are all set; skips keys already found."""

def first_hashes(
    rounds: int, murmur: bool, data: _Bytes, offsets: _Offsets, out: npt.NDArray[np.uint32]
) -> None:
    """Fill `out[r, i]` with the hash of key i in round r, of which its bit in a filter of any size is made."""

def screen(
    text: ReadableBuffer,
    bases: _Offsets,
    size: int,
    rounds: int,
    hashes: npt.NDArray[np.uint32],
    rows: _Offsets | None,
    out: _Offsets,
) -> int:
    """Fill `out` with keys whose first bits are set in a filter; returns their number.

    `text` is the filter in base64, `bases` are the offsets of its rows of bits in decoded bytes.  -1: a byte
    that was looked at is no base64.
    """

def confirm(
    text: ReadableBuffer,
    bases: _Offsets,
    size: int,
    rounds: int,
    murmur: bool,
    data: _Bytes,
    offsets: _Offsets,
    rows: _Offsets,
    count: int,
) -> int:
    """Keep the keys of `rows[:count]` whose bits are all set, in place; returns their number."""

def prefixes(data: _Bytes, offsets: _Offsets, skip: int, out: npt.NDArray[np.uint64]) -> None:
    """Fill `out` with 8 big-endian bytes of each key after `skip`, zero-padded."""

def hash_bytes(data: ReadableBuffer, seed: int, murmur: bool) -> int:
    """Hadoop's MurmurHash, or its JenkinsHash, as a signed 32-bit number."""

def places(data: ReadableBuffer, size: int, rounds: int, murmur: bool) -> list[int]:
    """The bits of one key in a filter of `size` bits, one per round."""
