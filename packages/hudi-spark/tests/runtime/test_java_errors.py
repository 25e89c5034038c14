"""Which Java exceptions are errors of ours, by texts of Spark; `scenarios/test_outlived.py` has them on Spark."""

import pytest

from hudi_format.errors import LibraryError, NotAHudiTableError, StaleSnapshotError
from hudi_spark.runtime.java_errors import error_of

FILE = "file:/lake/t/c%201/3f0c8a2e-0000-4000-8000-000000000000-0_0-1-2_20240101000000000.parquet"
GONE_35 = (
    f"org.apache.spark.SparkFileNotFoundException: File {FILE} does not exist\nIt is possible the underlying files "
    "have been updated. You can explicitly invalidate the cache in Spark by running 'REFRESH TABLE tableName' command"
)
GONE_4 = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
    f"{FILE}. File does not exist. It is possible the underlying files have been updated."
)
NO_PATH = f"org.apache.spark.sql.AnalysisException: [PATH_NOT_FOUND] Path does not exist: {FILE}."


class Java:
    """A Java exception as py4j gives it."""

    def __init__(self, text, cause=None):
        self.toString = lambda: text
        self.getCause = lambda: cause


@pytest.mark.parametrize("text", [GONE_35, GONE_4, NO_PATH])
@pytest.mark.parametrize("depth", [0, 3])
def test_a_base_file_that_is_gone_is_told_with_its_path(text, depth):
    exception = Java(text)
    for _ in range(depth):
        exception = Java("org.apache.spark.SparkException: Job aborted.", exception)
    error = error_of(exception)
    assert type(error) is StaleSnapshotError
    assert error.file == FILE
    assert "load the table again" in error.remedy
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        GONE_4.replace("3f0c8a2e-0000-4000-8000-000000000000-0_0-1-2_20240101000000000", "part-00000"),
        GONE_4.replace(".parquet", ".json"),
        f"org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file {FILE}.",
        "org.apache.spark.sql.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found.",
        "org.apache.spark.api.python.PythonException: ZeroDivisionError: division by zero",
        "",
    ],
)
def test_all_else_is_sparks(text):
    assert error_of(Java(text)) is None


def test_what_a_worker_raised_keeps_its_class():
    text = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main\n'
        "hudi_format.errors.NotAHudiTableError: [HUDI-E0101] there is no Hudi table (table /t) Remedy: write to it.\n"
    )
    error = error_of(Java("org.apache.spark.SparkException: Job aborted.", Java(text)))
    assert type(error) is NotAHudiTableError
    assert (error.table, error.remedy) == ("/t", "write to it.")


def test_packages_that_workers_lack_are_told():
    assert isinstance(error_of(Java("ModuleNotFoundError: No module named 'hudi_spark'")), LibraryError)
