"""Activation of `format("hudi")` for the sessions of this process."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_format.errors import OptionError, UnsupportedError
from hudi_spark import patches
from hudi_spark.runtime.java import require_java
from hudi_spark.runtime.options import has_bundle
from hudi_spark.runtime.settings import HAS_DATA_SOURCES, is_connect

log = logging.getLogger("hudi")

_WORKER_PYTHON = "PYSPARK_PYTHON"
_PYTHON_FROM_PATH = "python3"
_said: set[str] = set()


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """The builder, whose `getOrCreate()` also enables `format("hudi")`.

    Sets `PYSPARK_PYTHON` to this interpreter where it is unset: with another Python on the workers nothing of
    this package could run there.  `getOrCreate()` refuses to start Spark where there is no Java (LibraryError).

    Raises:
        UnsupportedError: no builder.
    """
    if not hasattr(builder, "getOrCreate"):
        remedy = "give SparkSession.builder; a session that is there already is given to enable()."
        raise UnsupportedError(f"a {type(builder).__name__} is no builder of sessions", remedy=remedy)
    _set_worker_python()
    target: Any = builder
    if getattr(target, "_hudi_configured", False):
        return builder
    target._hudi_configured = True
    for name in ("getOrCreate", "create"):  # `create` exists from 4.0 on
        original = getattr(target, name, None)
        if original is not None:
            setattr(target, name, _enabling(original, builder))
    return builder


def _enabling(make: Any, builder: object) -> Any:
    def made(*args: Any, **kwargs: Any) -> SparkSession:
        require_java(builder)
        session: SparkSession = make(*args, **kwargs)
        enable(session)
        return session

    return made


def enable(spark: SparkSession | None = None) -> None:
    """Take over `format("hudi")` in all classic sessions of this process.

    May be called any number of times, before or after the session is made.  Where Apache Hudi's own bundle is
    on the class path too, ours is used for `load` and `save`; `disable()` gives the bundle's back.

    Raises:
        UnsupportedError: a Spark Connect session, or none at all.
    """
    if spark is None:
        spark = SparkSession.getActiveSession()
    if spark is not None and is_connect(spark):
        remedy = "use a classic session, without remote() or SPARK_REMOTE"
        if HAS_DATA_SOURCES:
            remedy += "; or install hudi-spark on the server, where Spark 4 finds format('hudi') itself"
        raise UnsupportedError("Spark Connect sessions are not supported yet", remedy=f"{remedy}.")
    if spark is not None and not hasattr(spark, "sparkContext"):
        remedy = "give what SparkSession.builder.getOrCreate() returns, or nothing."
        raise UnsupportedError(f"a {type(spark).__name__} is no session", remedy=remedy)
    _set_worker_python()
    if spark is not None:
        _correct_worker_python(spark)
        if has_bundle(spark) and "bundle" not in _said:
            _said.add("bundle")
            log.warning(
                "Apache Hudi's bundle is on the class path: hudi_spark runs load and save of "
                "format('hudi'), the bundle runs SQL, tables and streams; hudi_spark.disable() "
                "leaves all to the bundle"
            )
    patches.install()


def sql(spark: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
    """Rows of a Spark SQL statement; its session is enabled by this call if need be.

    Queries of views of Hudi tables and of hudi.`path` run on Spark.  What is not supported yet ends in an error that
    names the way to do it, and not in Spark's.

    Args:
        args: further arguments of `SparkSession.sql`, as are `kwargs`.

    Raises:
        UnsupportedError: a statement on a Hudi table that is not supported; a Spark Connect session.
        OptionError: the statement is no text.
        HudiError: as of reads with `spark.read.format("hudi")`.
    """
    if not isinstance(text, str):
        raise OptionError(
            f"a statement must be text, not {type(text).__name__}: {text!r:.80}",
            remedy="call hudi_spark.sql(spark, text).",
        )
    enable(spark)
    return spark.sql(text, *args, **kwargs)


def disable() -> None:
    """Undo `enable`: `format("hudi")` is resolved by Spark again."""
    patches.uninstall()


def enabled() -> bool:
    """Whether `format("hudi")` is enabled."""
    return patches.installed()


def _set_worker_python() -> None:
    if not os.environ.get(_WORKER_PYTHON):
        os.environ[_WORKER_PYTHON] = sys.executable


def _correct_worker_python(spark: SparkSession) -> None:
    """Set the workers' Python for a session created before PYSPARK_PYTHON was set."""
    context: Any = spark.sparkContext
    if getattr(context, "pythonExec", None) == _PYTHON_FROM_PATH:
        context.pythonExec = os.environ[_WORKER_PYTHON]
