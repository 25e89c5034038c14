"""Exact conversion of text and numbers to decimals.

Arrow's own cast makes other numbers of text with very many digits, and of numbers that get more digits after the point
than there is room for; a very small exponent ends the process.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

# What java.math.BigDecimal takes, which Apache Hudi's readers of logs and its vectorised one of base files ask.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_PLAIN = r"^[+-]?[0-9]{1,19}(\.[0-9]{1,18})?$"  # which Arrow reads as it stands
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP, Emin=-2_000_000_000, Emax=2_000_000_000)
_PLAIN_DIGITS = 19
_DIGITS = 38  # of a decimal of 128 bits
_LONG, _UNSIGNED_LONG = pa.decimal128(19, 0), pa.decimal128(20, 0)
_SHOWN = 40  # characters of a text that an error shows


def decimals_of(texts: pa.Array, target: pa.Decimal128Type, *, rounded: bool = False) -> pa.Array:
    """Decimals of texts; null stays null.

    Args:
        rounded: digits that the type has no place for are rounded half up.  Without it they are an error.

    Raises:
        pyarrow.ArrowInvalid: a text that is no number, or one that the type cannot hold.
    """
    if texts.type != pa.string():
        texts = texts.cast(pa.string())
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py() is not False:
        try:
            return texts.cast(_wide(target) if _PLAIN_DIGITS + target.scale > _DIGITS else target).cast(
                target
            )
        except pa.ArrowInvalid:
            if not rounded:
                raise
    encoded = texts.dictionary_encode()
    found = [None if t is None else _decimal(t, target, rounded) for t in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(found, target), encoded.indices)


def rescaled(numbers: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Decimals of whole numbers, or of decimals with other digits.

    Raises:
        pyarrow.ArrowInvalid: a number that the type cannot hold.
    """
    if pt.is_integer(numbers.type):
        numbers = numbers.cast(_UNSIGNED_LONG if pt.is_uint64(numbers.type) else _LONG)
    source = numbers.type
    if source.precision - source.scale + target.scale > _DIGITS:  # whose overflow Arrow does not see
        numbers = numbers.cast(_wide(target))
    return numbers.cast(target)


def _wide(target: pa.Decimal128Type) -> pa.Decimal256Type:
    """The type with room for all digits before the point that a decimal of 128 bits can have."""
    return pa.decimal256(2 * _DIGITS, target.scale)


def _decimal(text: str, target: pa.Decimal128Type, rounded: bool) -> Decimal:
    shown = repr(text[:_SHOWN])
    if not _NUMBER.fullmatch(text):
        raise pa.ArrowInvalid(f"{shown} is not a number")
    value, whole = Decimal(text), target.precision - target.scale
    if value and value.adjusted() > whole:
        raise pa.ArrowInvalid(f"{shown} is too large")
    last = Decimal((0, (0,), -target.scale))
    # Far below the last digit nothing is left of a value, and its digits need not be laid out.
    out = last if value.adjusted() < -target.scale - 1 else value.quantize(last, context=_CONTEXT)
    if out and out.adjusted() >= whole:
        raise pa.ArrowInvalid(f"{shown} is too large")
    if not rounded and out != value:
        raise pa.ArrowInvalid(f"{shown} has more than {target.scale} digits after the decimal point")
    return out


# Decimals of any number of digits, whatever the precision of Python's context.


def exact_decimal(unscaled: int, scale: int) -> Decimal:
    """`unscaled` divided by ten to the `scale`; Decimal.scaleb would round to 28 digits."""
    return Decimal(f"{unscaled}E{-scale}")
