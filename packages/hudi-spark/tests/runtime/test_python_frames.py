"""Which line of the user's Python is to blame, by texts that PySpark gave for failing functions."""

import textwrap

import pytest
from pyspark.sql import functions as F

from hudi_format.errors import MergeFunctionError, WriteFailedError
from hudi_spark.runtime.java_errors import translate
from hudi_spark.runtime.python_frames import python_failure

HEAD = "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
ZIP = "/venv/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark"

# PySpark 3.5 with short tracebacks, as it is set by default: a function that calls another one.
SHORT = f"""{HEAD}Traceback (most recent call last):
  File "/home/me/job.py", line 10, in bad_udf
    def bad_udf(v): return helper(v)
                           ^^^^^^^^^
  File "/home/me/job.py", line 8, in helper
    def helper(v): return {{}}[v]
                          ~~^^^
KeyError: '0'
"""
# The same in full, of a pandas UDF: the library's frames lie between two of the user's.
FULL = f"""{HEAD}Traceback (most recent call last):
  File "{ZIP}/worker.py", line 1247, in main
    process()
  File "{ZIP}/worker.py", line 1070, in <genexpr>
    result = tuple(f(*[a[o] for o in arg_offsets]) for (arg_offsets, f) in udfs)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/me/job.py", line 13, in bad_pandas
    return s.apply(clean)
           ^^^^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/pandas/core/series.py", line 4943, in apply
    ).apply()
      ^^^^^^^
  File "pandas/_libs/lib.pyx", line 2999, in pandas._libs.lib.map_infer
  File "/home/me/clean.py", line 3, in clean
    return int("x" + v)
           ^^^^^^^^^^^^
ValueError: invalid literal for int() with base 10: 'x0'
"""
CHAINED = f"""{HEAD}Traceback (most recent call last):
  File "/home/me/job.py", line 19, in chained
    try: {{}}["k"]
         ~~^^^^^
KeyError: 'k'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "{ZIP}/worker.py", line 931, in func
    for result_batch, result_type in result_iter:
  File "/home/me/job.py", line 20, in chained
    except KeyError as e: raise RuntimeError("two\\nlines") from e
RuntimeError: two
lines

"""
# A stage's failure, as py4j tells it: Java's frames follow, and the whole stands twice.
STAGE = """An error occurred while calling o123.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 3.0 (TID 12) (host executor driver): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/databricks/spark/python/pyspark/worker.py", line 1980, in main
    process()
  File "/home/me/job.py", line 24, in raise_pay
    return salary * 1.1
           ~~~~~~~^~~~~
TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/databricks/spark/python/pyspark/worker.py", line 1980, in main
    process()
  File "/home/me/job.py", line 24, in raise_pay
    return salary * 1.1
TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
"""
# Spark 4 hides more, as its documentation shows it; a notebook's cell, an error class before, no lines of source.
FOUR = f"""{HEAD}Traceback (most recent call last):
  File "/var/folders/qm/T/ipykernel_23976/3806637820.py", line 3, in <lambda>
ZeroDivisionError: division by zero


"""
CELL = """[UDF_FAILED] The function failed. SQLSTATE: 39000 Traceback (most recent call last):
  File <command-1723439101937605>, line 16, in <lambda>
  File <command-1723439101937605>, line 6, in fetch
BadAnswer: ('Failed:', 404, '')
"""
OF_A_PACKAGE = f"""{HEAD}Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/company/rules.py", line 7, in check
    raise Refused
company.rules.Refused
"""


@pytest.mark.parametrize(
    ("text", "source", "line", "function", "exception"),
    [
        (SHORT, "/home/me/job.py", 8, "helper", "KeyError: '0'"),
        (FULL, "/home/me/clean.py", 3, "clean", "ValueError: invalid literal for int() with base 10: 'x0'"),
        (CHAINED, "/home/me/job.py", 20, "chained", "RuntimeError: two\nlines"),
        (STAGE, "/home/me/job.py", 24, "raise_pay",
         "TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'"),
        (FOUR, "/var/folders/qm/T/ipykernel_23976/3806637820.py", 3, "<lambda>",
         "ZeroDivisionError: division by zero"),
        (CELL, "<command-1723439101937605>", 6, "fetch", "BadAnswer: ('Failed:', 404, '')"),
        (OF_A_PACKAGE, "/venv/lib/python3.11/site-packages/company/rules.py", 7, "check", "company.rules.Refused"),
    ],
    ids=["short", "full", "chained", "stage", "four", "cell", "of-a-package"],
)  # fmt: skip
def test_the_innermost_line_of_the_users_is_named(text, source, line, function, exception):
    failure = python_failure(text)
    assert (failure.source, failure.line, failure.function, failure.exception) == (
        source, line, function, exception,
    )  # fmt: skip
    error = translate(text)
    assert isinstance(error, WriteFailedError)
    assert (
        error.message
        == f"the Spark job failed in {function} ({source}, line {line}): {exception.splitlines()[0]}"
    )
    assert error.details == {"exception": exception, "source": source, "line": line, "function": function}


def test_what_fails_in_our_own_code_names_no_line_of_the_users():
    text = HEAD + textwrap.dedent(
        f"""\
        Traceback (most recent call last):
          File "{ZIP}/worker.py", line 1247, in main
            process()
          File "/venv/lib/python3.11/site-packages/hudi_spark/tasks.py", line 40, in __call__
            return write(rows)
          File "/venv/lib/python3.11/site-packages/pyarrow/table.py", line 9, in take
        OSError: no space left
        """
    )
    error = translate(text)
    assert error.message == "the Spark job failed: OSError: no space left"
    assert "source" not in error.details


def test_an_error_of_ours_keeps_its_class_and_the_line_of_the_users_below_it():
    text = HEAD + textwrap.dedent(
        """\
        Traceback (most recent call last):
          File "/venv/lib/python3.11/site-packages/hudi_format/merge/custom.py", line 158, in both
            given = function(old, new, context)
          File "/home/me/merge.py", line 5, in newest
            return old.nothing
        AttributeError: no such thing

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/venv/lib/python3.11/site-packages/hudi_timeline/write/workers.py", line 108, in write_bucket
            raise e.at(table=context.storage.uri, instant=context.instant) from e.__cause__
        hudi_format.errors.MergeFunctionError: [CODE] the merge function merge:newest raised AttributeError: no such \
        thing \
        (table /t, instant 20240101000000000) Remedy: correct the function; nothing of this merge was kept.
        """
    ).replace("CODE", MergeFunctionError.code)
    error = translate(text)
    assert type(error) is MergeFunctionError
    assert (error.table, error.instant) == ("/t", "20240101000000000")
    assert (error.details["source"], error.details["line"]) == ("/home/me/merge.py", 5)


@pytest.mark.parametrize(
    "text", ["", "java.lang.OutOfMemoryError: Java heap space", "Traceback (most recent"]
)
def test_texts_without_a_traceback_tell_none(text):
    assert python_failure(text) is None
    assert isinstance(translate(text), WriteFailedError)


@pytest.mark.spark
@pytest.mark.parametrize("short", ["true", "false"])
@pytest.mark.sampled(2)
def test_a_function_that_fails_in_a_write_is_named_with_its_line(spark, tmp_path, trips, short):
    def helper(value):
        raise LookupError(f"no {value}")  # this line

    spark.conf.set("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", short)
    try:
        bad = F.udf(lambda v: helper(v), "string")
        frame = spark.createDataFrame([("1", "oslo", 1)], "id string, city string, ts long")
        with pytest.raises(WriteFailedError, match="LookupError: no 1") as e:
            frame.withColumn("v", bad("id")).write.format("hudi").options(**trips).mode("append").save(
                str(tmp_path / "t")
            )
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled")
    assert e.value.details["function"].endswith("helper")
    assert e.value.details["source"] == __file__
    with open(__file__) as source:
        assert "# this line" in source.read().splitlines()[e.value.details["line"] - 1]
    assert e.value.__cause__ is not None
