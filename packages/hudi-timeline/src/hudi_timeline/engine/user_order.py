"""A function of the user's in the place of Apache Hudi's BulkInsertPartitioner classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_format.references import imported

OPTION = "hoodie.bulkinsert.user.defined.partitioner.class"


def user_function(name: str) -> Callable[..., Any]:
    """The function behind `module:function`, dots allowed on both sides.

    It is called with all rows of a bulk_insert (a `pyarrow.Table`, on Spark a DataFrame) and with the number of
    tasks that `hoodie.bulkinsert.shuffle.parallelism` asks for, None where it does not; it gives the rows back in
    the order, on Spark also in the partitions, in which they are to be written.

    Raises:
        InvalidOptionError: it cannot be imported, or is none.
    """
    return imported(name, OPTION)
