"""Decimals of any number of digits, whatever the precision of Python's context."""

from decimal import Decimal


def exact_decimal(unscaled: int, scale: int) -> Decimal:
    """`unscaled` divided by ten to the `scale`; Decimal.scaleb would round to 28 digits."""
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))
