"""Time-ordered record keys derived from UUIDs.

Files whose keys were written at about the same time then have key ranges that hardly overlap, so the BLOOM index rules
most of them out by range, and an upsert of recent records opens few files.  Random keys (UUIDs of version 4) spread
over every file.  A key must never change: derive it from the moment at which a record came to be, not from its last
update.

Source: RFC 9562, versions 1, 6 and 7.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.errors import RecordKeyError, SchemaError

Texts: TypeAlias = pa.Array | pa.ChunkedArray
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_HEX = pa.array(list("0123456789abcdef"))


def uuid1_to_uuid6(ids: Texts) -> Texts:
    """Version-6 UUIDs of version-1 UUIDs: the same bits in time order.

    Nothing is lost: each UUID gives another.  Nulls stay null.

    Raises:
        RecordKeyError: a text that is no UUID of version 1; says how many.
    """
    text = _checked(ids, "1")
    # aaaaaaaa-bbbb-1ccc-rest: the moment is ccc bbbb aaaaaaaa.
    moment = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(text, 15, 18),
        pc.utf8_slice_codeunits(text, 9, 13),
        pc.utf8_slice_codeunits(text, 0, 8),
        "",
    )
    return _uuid(moment, "6", pc.utf8_slice_codeunits(moment, 12, 15), text)


def uuid4_to_uuid7(ids: Texts, created: Texts) -> Texts:
    """Version-7 UUIDs of version-4 UUIDs and timestamps: 48 bits of time, 74 random bits.

    Two records of one millisecond get one key only if those bits are equal.  Nulls in either give null.

    Args:
        created: timestamps of any unit, in UTC where they have no zone; what is below a millisecond is cut off.

    Raises:
        RecordKeyError: a text that is no UUID of version 4; a moment before 1970; says how many.
        SchemaError: no timestamps.
    """
    text, moment = _checked(ids, "4"), _milliseconds(created)
    return _uuid(moment, "7", pc.utf8_slice_codeunits(text, 15, 18), text)


def with_time_prefix(ids: Texts, created: Texts) -> Texts:
    """Texts prefixed with their timestamp: 12 hexadecimal digits of milliseconds, a hyphen.

    Args, Raises: as `uuid4_to_uuid7`.
    """
    return pc.binary_join_element_wise(_milliseconds(created), ids.cast(pa.string()), "-")


def _uuid(moment: Texts, version: str, behind: Texts, rest: Texts) -> Texts:
    """UUIDs of twelve digits of time, the version with three digits, and the last parts of other UUIDs."""
    return pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(moment, 0, 8),
        pc.utf8_slice_codeunits(moment, 8, 12),
        pc.binary_join_element_wise(pa.scalar(version), behind, ""),
        pc.utf8_slice_codeunits(rest, 19, 36),
        "-",
    )


def _checked(ids: Texts, version: str) -> Texts:
    text = pc.utf8_lower(ids.cast(pa.string()))
    good = pc.and_(
        pc.match_substring_regex(text, _UUID),
        pc.equal(pc.utf8_slice_codeunits(text, 14, 15), version),
    )
    wrong = pc.sum(pc.invert(pc.fill_null(good, True))).as_py() or 0
    if wrong:
        first = pc.filter(text, pc.invert(pc.fill_null(good, True)))[0].as_py()
        raise RecordKeyError(
            f"{wrong:,} of {len(text):,} texts are not UUIDs of version {version}, first {first!r}",
            remedy="use with_time_prefix, which accepts any text.",
        )
    return text


def _milliseconds(created: Texts) -> Texts:
    """Milliseconds since 1970 as 12 hexadecimal digits."""
    if not pa.types.is_timestamp(created.type):
        raise SchemaError(f"the creation time must be a timestamp, not {created.type}", remedy="cast it.")
    divisor = {"s": 1, "ms": 1, "us": 1000, "ns": 1_000_000}[created.type.unit]
    numbers = created.cast(pa.timestamp(created.type.unit)).cast(pa.int64())
    low = pc.min(numbers).as_py()
    if low is not None and low < 0:
        before = pc.sum(pc.less(numbers, 0)).as_py()
        raise RecordKeyError(
            f"{before:,} of {len(numbers):,} creation times are before 1970", remedy="correct them."
        )
    millis = pc.multiply_checked(numbers, 1000) if created.type.unit == "s" else pc.divide(numbers, divisor)
    digits: Texts | None = None
    for shift in range(44, -1, -4):
        nibble = pc.bit_wise_and(pc.shift_right(millis, shift), 15)
        letters = _HEX.take(nibble.combine_chunks() if isinstance(nibble, pa.ChunkedArray) else nibble)
        digits = letters if digits is None else pc.binary_join_element_wise(digits, letters, "")
    assert digits is not None
    return digits
