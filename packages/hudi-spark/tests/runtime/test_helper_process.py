"""When Spark's processes leave out a traceback."""

import os
import sys
from types import SimpleNamespace

import duckdb
import pytest

from hudi_format.errors import MergeFunctionError, OptionError
from hudi_spark.runtime.helper_process import HIDE, one_line


@pytest.fixture
def in_a_process_of(monkeypatch):
    def name(module):
        main = SimpleNamespace(__spec__=None if module is None else SimpleNamespace(name=module))
        monkeypatch.setitem(sys.modules, "__main__", main)

    monkeypatch.setenv(HIDE, "before")
    monkeypatch.delenv(HIDE)
    return name


@one_line()
def fail(error, cause=None):
    raise error from cause


@pytest.mark.parametrize(
    "cause", [None, OSError("no space"), OptionError("inner"), duckdb.ParserException("a syntax error")]
)
def test_an_error_of_ours_is_one_line_in_a_process_of_sparks(in_a_process_of, cause):
    in_a_process_of("pyspark.daemon")
    with pytest.raises(OptionError):
        fail(OptionError("no path"), cause)
    assert os.environ[HIDE] == "1"


@pytest.mark.parametrize("module", [None, "job", "pytest.__main__"])
def test_scripts_that_call_the_source_keep_their_tracebacks(in_a_process_of, module):
    in_a_process_of(module)
    with pytest.raises(OptionError):
        fail(OptionError("no path"))
    assert HIDE not in os.environ


def test_what_is_not_ours_or_comes_from_the_users_code_keeps_its_traceback(in_a_process_of):
    in_a_process_of("pyspark.daemon")
    with pytest.raises(KeyError):
        fail(KeyError("k"))
    with pytest.raises(MergeFunctionError):
        fail(MergeFunctionError("raised"), ZeroDivisionError())
    assert HIDE not in os.environ
