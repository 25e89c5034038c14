"""Checks of arguments: lists of texts, JSON text, `module:function` references."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from hudi_format.errors import InvalidOptionError


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


# JSON of files that others wrote: every text in it can be written again.

# An escape for half of a pair of UTF-16.  JSON may have one without the other half, which no name of a column or
# file can.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str | bytes) -> Any:
    """The value of JSON text; bytes are decoded as UTF-8.

    Raises:
        ValueError: no JSON, numbers of thousands of digits, or text with half of a character.
        RecursionError: nested too deeply.
    """
    if not isinstance(text, str):
        text = str(text, "utf-8")
    value = json.loads(text)
    if _HALF.search(text) or not text.isascii():
        json.dumps(value, ensure_ascii=False).encode()
    return value


# Functions of the user's that options name as `module:function`, so that every process can import them.


def imported(reference: str, option: str) -> Callable[..., Any]:
    """The function behind `module:function`, dots allowed on both sides.

    Args:
        option: that names it, for messages.

    Raises:
        InvalidOptionError: it cannot be imported here, or is none.
    """
    module, _, path = (part.strip() for part in reference.partition(":"))
    try:
        if module.startswith("."):
            raise ImportError("a relative module name is not allowed here")
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        raise InvalidOptionError(
            f"{option}: {reference} cannot be imported: {e}",
            remedy=f"give module:function, and install the package that holds {module or 'the module'}, on Spark's "
            "executors too, or put it on PYTHONPATH.",
            option=option,
            value=reference,
        ) from e
    if not callable(found):
        raise InvalidOptionError(
            f"{option}: {reference} is a {type(found).__name__}, not a function",
            remedy="name a function as module:function.",
            option=option,
            value=reference,
        )
    return found  # type: ignore[no-any-return]
