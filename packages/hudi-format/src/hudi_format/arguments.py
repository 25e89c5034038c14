"""What callers give, checked before work begins: a list of texts is one, and not a text or numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast


def text_list(what: str, given: Iterable[str | None]) -> list[str]:
    """The texts of a list; nulls are left out.

    Args:
        what: the argument's name, for the error.

    Raises:
        TypeError: one text, no list, or something in it that is no text.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{what} must be a list of texts, not one text: [{given!r}]")
    try:
        out = given.to_pylist() if hasattr(given, "to_pylist") else list(given)  # Arrow's arrays hold scalars
    except TypeError:
        raise TypeError(f"{what} must be a list of texts, not {type(given).__name__}") from None
    for at, item in enumerate(out):
        if item is not None and not isinstance(item, str):
            raise TypeError(f"{what}[{at}] must be a text, not {type(item).__name__}: {item!r}")
    return cast("list[str]", [item for item in out if item is not None] if None in out else out)
