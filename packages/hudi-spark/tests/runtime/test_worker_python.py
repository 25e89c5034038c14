"""Whether the workers' Python is to blame, by texts that PySpark gave."""

import sys

import pytest

from hudi_format.errors import LibraryError, WriteFailedError
from hudi_spark.runtime.java_errors import translate
from hudi_spark.runtime.worker_python import worker_python_error

HERE = "{}.{}".format(*sys.version_info[:2])
VERSION_35 = (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    f"version (3, 9) than that in driver {HERE}, PySpark cannot run with different minor versions."
)
VERSION_4 = (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    f"version: 3.9 than that in driver: {HERE}, PySpark cannot run with different minor versions."
)
NO_PACKAGE = """Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/serializers.py", line 458, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'hudi_spark'
"""
NO_PYTHON = (
    'java.io.IOException: Cannot run program "/opt/py39/bin/python3": error=2, No such file or directory'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VERSION_35, f"is 3.9, that of the driver {HERE}"),
        (VERSION_4, f"is 3.9, that of the driver {HERE}"),
        (NO_PACKAGE, "has no module 'hudi_spark'"),
        (NO_PACKAGE.replace("hudi_spark", "hudi_timeline.writing"), "has no module 'hudi_timeline.writing'"),
        (NO_PACKAGE.replace("hudi_spark", "pyarrow"), "has no module 'pyarrow'"),
        (NO_PYTHON, "cannot start the Python of its workers, /opt/py39/bin/python3"),
    ],
    ids=["version-3.5", "version-4", "package", "module", "library", "program"],
)
def test_the_workers_python_is_blamed_with_the_way(text, message):
    error = translate(text)
    assert type(error) is LibraryError
    assert message in error.message
    assert "PYSPARK_PYTHON" in error.remedy
    assert "\n" not in str(error)


def test_a_module_of_the_users_own_is_not_the_workers_fault():
    text = NO_PACKAGE.replace("hudi_spark", "company_rules")
    assert worker_python_error(text) is None
    assert isinstance(translate(text), WriteFailedError)


def test_of_a_query_only_missing_packages_of_ours_count():
    """A function of the user's fails in the same way, and Spark says it."""
    for text in (VERSION_4, NO_PYTHON, NO_PACKAGE.replace("hudi_spark", "numpy")):
        assert worker_python_error(text, others=False) is None
    assert worker_python_error(NO_PACKAGE, others=False) is not None
