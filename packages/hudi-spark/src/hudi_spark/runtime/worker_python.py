"""Failures of Spark's workers that come from their Python.

There is none, it is of another version, or has not our packages.

Source: PySpark 3.5.5 and 4.3.0, `worker.py` and `PythonWorkerFactory`, by experiment.
"""

from __future__ import annotations

import re
import sys

from hudi_format.errors import LibraryError

_OTHER_VERSION = re.compile(
    r"Python in worker has different version:? \(?(?P<worker>\d+(?:\.|, )\d+)\)? than that in driver"
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_NO_PYTHON = re.compile(r"Cannot run program \"(?P<name>[^\"]+)\"")
# What our tasks import before any code of a user runs.
_OURS = ("hudi_format", "hudi_index", "hudi_timeline", "hudi_spark")
_NEEDED = (*_OURS, "pyarrow", "numpy", "fsspec")
_WHICH = "PYSPARK_PYTHON, or spark.pyspark.python"
_SHIP = (
    f"install hudi-spark in the driver's version where {_WHICH} points to on each worker, or ship an environment with "
    "--archives."
)


def worker_python_error(text: str, *, others: bool = True) -> LibraryError | None:
    """Error about the workers' Python behind a Spark error text; None where it is not to blame.

    Args:
        others: also for what any function of a user would fail with, not only for packages of this project.
    """
    missing = _NO_MODULE.search(text)
    if missing is not None:
        package = missing["name"].partition(".")[0]
        if package in (_NEEDED if others else _OURS):
            return LibraryError(
                f"the Python of Spark's workers has no module {missing['name']!r}",
                remedy=_SHIP,
                module=missing["name"],
            )
    if not others:
        return None
    version = _OTHER_VERSION.search(text)
    if version is not None:
        worker, driver = version["worker"].replace(", ", "."), "{}.{}".format(*sys.version_info[:2])
        return LibraryError(
            f"the Python of Spark's workers is {worker}, that of the driver {driver}",
            remedy=f"before the session is made, set {_WHICH} to a Python {driver} that has hudi-spark on each worker.",
            worker=worker,
            driver=driver,
        )
    program = _NO_PYTHON.search(text)
    if program is not None:
        return LibraryError(
            f"Spark cannot start the Python of its workers, {program['name']}",
            remedy=f"before the session is made, set {_WHICH} to a Python that is there on each worker.",
            program=program["name"],
        )
    return None
