"""Errors in the processes that Spark 4 starts for a Python data source.

Spark puts the traceback of such a process, some 30 lines of its own and of ours, into the message of the user's error,
where what is wrong and what to do is the last of them.  Errors of this project say it alone, so their traceback is left
out; other exceptions keep theirs, because they are faults of ours.

Source: PySpark 4.3.0, `handle_worker_exception` (the variable is what `spark.sql.execution.pyspark.udf.hideTraceback.
enabled` sets).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hudi_format.errors import HudiError

HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def one_line() -> Iterator[None]:
    """Context whose errors of this project reach the user's message as one line.

    A process of Spark's ends with its first error, so that nothing else loses its traceback.
    """
    try:
        yield
    except HudiError as e:
        # What a function of the user's raised is told with its file and line.
        if _of_spark() and (e.__cause__ is None or _of_a_library(e.__cause__)):
            os.environ[HIDE] = "1"
        raise


def _of_a_library(cause: BaseException) -> bool:
    """Whether an error's cause is in its message already, and no frame of it is the user's."""
    library = type(cause).__module__.partition(".")[0]
    return isinstance(cause, (HudiError, OSError, pa.ArrowException)) or library in ("duckdb", "_duckdb")


def _of_spark() -> bool:
    """Whether this process is one of Spark's own, and not a script that calls the data source."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
