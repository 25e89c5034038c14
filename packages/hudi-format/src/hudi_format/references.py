"""Functions of the user's that options name as `module:function`, so that every process can import them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from hudi_format.errors import InvalidOptionError


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
            raise ImportError("a relative module is relative to nothing here")
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
            f"{option}: {reference} is no function but a {type(found).__name__}",
            remedy="name a function as module:function.",
            option=option,
            value=reference,
        )
    return found  # type: ignore[no-any-return]
