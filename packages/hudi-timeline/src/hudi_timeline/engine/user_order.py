"""A function of the user's in the place of Apache Hudi's BulkInsertPartitioner classes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from hudi_format.errors import OptionError

OPTION = "hoodie.bulkinsert.user.defined.partitioner.class"


def user_function(name: str) -> Callable[..., Any]:
    """The function behind `module:function`, dots allowed on both sides.

    It is called with all rows of a bulk_insert (a `pyarrow.Table`, on Spark a DataFrame) and with the number of
    tasks that `hoodie.bulkinsert.shuffle.parallelism` asks for, None where it does not; it gives the rows back in
    the order, on Spark also in the partitions, in which they are to be written.

    Raises:
        OptionError: it cannot be imported, or is none.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as e:
        raise OptionError(
            f"{OPTION}={name} cannot be imported: {e}",
            remedy="name a function of a module that Python finds here, as module:function.",
            option=OPTION,
        ) from e
    if not callable(found):
        raise OptionError(
            f"{OPTION}={name} is no function but {type(found).__name__}",
            remedy="name a function as module:function.",
            option=OPTION,
        )
    return found  # type: ignore[no-any-return]
