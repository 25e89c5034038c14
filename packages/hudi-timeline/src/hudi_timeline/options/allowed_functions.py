"""Allow-list of Python functions that tables may name.

A table's `hoodie.properties` may name the function by which its records are merged (`hudi.merge`).  Whoever can write
to a table can write such a name, so it alone runs nothing: the caller gives the same `hudi.merge` with the call, or
the process allows the function:

    import hudi_timeline

    hudi_timeline.allow_functions("mymerges:add_up")              # from now on, in all threads
    with hudi_timeline.allow_functions("mypackage.*"):            # as long as the block lasts
        table.read().to_arrow()

`HUDI_ALLOW_FUNCTIONS` in the environment (names with commas between them) and `hudi --allow-function NAME` do the
same.  On Spark the driver decides: tasks name the functions that they may import.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from types import FunctionType, TracebackType

from hudi_format.errors import FunctionNotAllowedError, InvalidOptionError
from hudi_format.fork_safe import ProcessLock
from hudi_format.merge.payloads import MergeRule
from hudi_format.merge.user_merger import MERGE, custom_rule, load_function, parse_merge
from hudi_format.storage.protocol import Storage

ENVIRONMENT = "HUDI_ALLOW_FUNCTIONS"

_lock = ProcessLock()
_allowed: Counter[str] = Counter()


class Allowance:
    """Names added by `allow_functions`; as a context manager, removed at its end."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Allowance of names; made by `allow_functions`."""
        self.names = names
        self._ended = False
        with _lock.threads:
            _allowed.update(names)

    def __repr__(self) -> str:
        return f"allow_functions({', '.join(map(repr, self.names))})"

    def __enter__(self) -> Allowance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock.threads:
            if not self._ended:
                _allowed.subtract(self.names)
            self._ended = True


def allow_functions(*names: str) -> Allowance:
    """Allow tables to run these functions in this process.

    Args:
        names: `module:function`, or `package.*` for the functions that are defined in a package and below it.

    It holds for all threads until the process ends, or as a context manager until its block ends.  A scan is planned
    when it is first used, so that has to be inside of the block.

    Raises:
        InvalidOptionError: a name of neither form.
    """
    return Allowance(tuple(_checked(n) for n in names))


def _checked(name: str) -> str:
    text = name.strip() if isinstance(name, str) else ""
    module, colon, function = text.partition(":")
    if not colon:
        module, function = text.removesuffix(".*"), "f" if text.endswith(".*") else ""
    if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        raise InvalidOptionError(
            f"{name!r} names no function that could be allowed",
            remedy="give module:function, or package.* for those of a package.",
            value=name,
        )
    return text


def _of_environment() -> list[str]:
    return [_checked(n) for n in os.environ.get(ENVIRONMENT, "").split(",") if n.strip()]


def table_merge_rule(text: str, fixed: Sequence[str], *, given: str | None, storage: Storage) -> MergeRule:
    """Rule of a user-defined merge named by a call or a table.

    Args:
        text: the merge, as the option `hudi.merge` has it.
        given: what the call itself says of it; None for nothing, so that the table alone names it.

    Raises:
        FunctionNotAllowedError: a function that only the table names; nothing was imported.
        InvalidOptionError: no such merge.
    """
    check_allowed(text, given=given, storage=storage)
    return custom_rule(text, fixed)


def check_allowed(text: str, *, given: str | None, storage: Storage) -> None:
    """Refuse the functions of a merge that are not allowed; expressions always are."""
    known = () if given is None else parse_merge(given).functions
    for function in parse_merge(text).functions:
        if function not in known:
            _check_function(function, storage)


def _check_function(function: str, storage: Storage) -> None:
    module = function.partition(":")[0]
    with _lock.threads:
        names = {n for n, count in _allowed.items() if count > 0}
    names.update(_of_environment())
    if function in names:
        _check_place(function, module, storage)
        return
    package = next((n.removesuffix(".*") for n in names if _holds(n, module)), None)
    if package is None:
        raise _refused(function, "which nothing has allowed to run here", storage)
    _check_place(function, module, storage)
    found = load_function(function)
    # `package.module:name` may be a name that the module imported from elsewhere, such as `os.system`.
    if not isinstance(found, FunctionType) or not _within(found.__module__, package):
        raise _refused(function, f"which {package} does not define itself", storage)


def _holds(name: str, module: str) -> bool:
    """Whether `package.*` covers a module; `__main__` and the like are never covered."""
    if not name.endswith(".*") or any(part.startswith("__") for part in module.split(".")):
        return False
    return _within(module, name.removesuffix(".*"))


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _check_place(function: str, module: str, storage: Storage) -> None:
    """Refuse a module inside the table, as Python often imports from the current folder first."""
    if not storage.is_local:
        return
    top = module.partition(".")[0]
    root = os.path.realpath(storage.uri)
    loaded = sys.modules.get(top)
    try:
        spec = find_spec(top) if loaded is None else getattr(loaded, "__spec__", None)
    except (ImportError, ValueError):
        return  # the import says what is wrong with it
    places = [getattr(loaded, "__file__", None) or "", getattr(spec, "origin", None) or ""]
    places += list(getattr(spec, "submodule_search_locations", None) or ())
    for place in places:
        full = os.path.realpath(place) if place else ""
        if full == root or full.startswith(root.rstrip("/") + "/"):
            raise _refused(function, "whose module lies in the table's own folder", storage)


def _refused(function: str, why: str, storage: Storage) -> FunctionNotAllowedError:
    return FunctionNotAllowedError(
        f"the table merges its records by the Python function {function}, {why}",
        table=storage.uri,
        remedy=f"if you trust it, give the option {MERGE}={function} with the call, call hudi_timeline."
        f"allow_functions({function!r}) before it, or name the function in {ENVIRONMENT} (on the command line: hudi "
        f"--allow-function {function} ...).",
        function=function,
        option=MERGE,
    )
