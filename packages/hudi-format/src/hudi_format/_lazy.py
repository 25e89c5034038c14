"""Lazy imports of a package's public names.

A process that reads one table need not wait for the import of all that could be done with it.  The package's
`__init__.pyi` has the names for type checkers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def at_first_use(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package with lazy imports.

    Args:
        package: its `__name__`.
        homes: the module of each name, below the package, or of a package to the left (`hudi_format.errors`).
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return getattr(import_module(home if home.startswith("hudi_") else f"{package}.{home}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
