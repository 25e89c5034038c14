"""Imports of a package's public names at their first use, and of its compiled parts.

A process that reads one table need not wait for the import of all that could be done with it.  The package's
`__init__.pyi` has the names for type checkers.
"""

from __future__ import annotations

import sys
from importlib import import_module

from hudi_format import errors

TYPE_CHECKING = False  # importing `typing`, `contextlib` or the like would take longer than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

ERRORS = {
    name: errors.__name__
    for name, made in vars(errors).items()
    if isinstance(made, type) and issubclass(made, errors.HudiError)
}
"""Homes of all errors, which are public names of each package that callers meet them in."""


def at_first_use(
    package: str, homes: Mapping[str, str], hints: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package with lazy imports.

    Args:
        package: its `__name__`.
        homes: the module of each name, below the package, or of a package to the left (`hudi_format.errors`).
        hints: what to use instead of names that are looked for here and are elsewhere, for the error.
    """

    def find(name: str) -> object:
        if name not in homes:
            hint = f": {hints[name]}" if hints and name in hints else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        home = homes[name]
        return getattr(import_module(home if home.startswith("hudi_") else f"{package}.{home}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names


class CompiledParts:
    """Imports of compiled parts, which a checkout has only after it was built."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        if not isinstance(e, ImportError):
            return
        package = (e.name or "").partition(".")[0].replace("_", "-")
        raise ImportError(
            f"a compiled part of {package} is missing: {e}; install a wheel, or build it in a checkout: "
            f"cd packages/{package} && python setup.py build_ext --inplace",
            name=e.name,
            path=e.path,
        ) from e
