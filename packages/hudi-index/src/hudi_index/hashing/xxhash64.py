"""XXH64 hash of short texts, as Apache Hudi's HashID makes it.

In Python: of one path or name at a time.

Source: the xxHash specification, version 0.1.1; HashID of Apache Hudi 0.15.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
# Apache Hudi's seed is a Java int, 0xdabadaba, which is negative: it becomes a long with its sign.
SEED = 0xFFFFFFFFDABADABA


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return _rotated((accumulator + lane * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _stripes(data: bytes, seed: int) -> tuple[int, int]:
    """Hash of the whole stripes of 32 bytes, and where they end."""
    p1, p2, _, p4, p5 = _PRIMES
    if len(data) < 32:
        return (seed + p5) & _MASK, 0
    lanes = [(seed + p1 + p2) & _MASK, (seed + p2) & _MASK, seed, (seed - p1) & _MASK]
    at = 0
    while at + 32 <= len(data):
        lanes = [_round(lane, _long(data, at + 8 * n)) for n, lane in enumerate(lanes)]
        at += 32
    value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * p1 + p4) & _MASK
    return value, at


def xxh64(data: bytes, seed: int = SEED) -> int:
    """Hash of bytes, from 0 to 2**64 - 1."""
    p1, p2, p3, p4, p5 = _PRIMES
    value, at = _stripes(data, seed & _MASK)
    value = (value + len(data)) & _MASK
    while at + 8 <= len(data):
        value = (_rotated(value ^ _round(0, _long(data, at)), 27) * p1 + p4) & _MASK
        at += 8
    if at + 4 <= len(data):
        lane = int.from_bytes(data[at : at + 4], "little")
        value = (_rotated(value ^ (lane * p1 & _MASK), 23) * p2 + p3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotated(value ^ (byte * p5 & _MASK), 11) * p1 & _MASK
    value = (value ^ (value >> 33)) * p2 & _MASK
    value = (value ^ (value >> 29)) * p3 & _MASK
    return value ^ (value >> 32)


def hash_id(text: str) -> str:
    """Hash of a text as 16 hexadecimal digits, as Apache Hudi names implicit locks."""
    return f"{xxh64(text.encode()):016X}"
