"""Options of one read or write: the session's `hoodie.*` settings below the call's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hudi_format.errors import ConflictingOptionError, OptionError
from hudi_spark.runtime.settings import HAS_SETTINGS_LISTED
from hudi_timeline.options.table_options import PARTITION

FORMATS = ("hudi", "org.apache.hudi", "org.apache.hudi.defaultsource")
_SETTINGS = ("hoodie.", "fs.", "spark.hadoop.fs.")
_JAR_SETTINGS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
# Settings that a session of Apache Hudi's bundle has, and that its writer does not look at.
_NOT_OPTIONS = ("hoodie.filesystem.view.remote.host", "hoodie.filesystem.view.remote.port")


def is_hudi(name: str | None) -> bool:
    """Whether a format name means Hudi, ignoring case as Spark does."""
    return name is not None and name.strip().lower() in FORMATS


def session_options(spark: SparkSession) -> dict[str, str]:
    """The session's `hoodie.*` and `spark.hadoop.fs.*` settings."""
    every: Mapping[str, str | None]
    if HAS_SETTINGS_LISTED:
        conf: Any = spark.conf  # the stubs are of Spark 3.5
        every = conf.getAll
    else:
        # The one public way to list settings; values may come masked, so each is asked for.
        names = [row[0] for row in spark.sql("SET").collect() if row[0].lower().startswith(_SETTINGS)]
        every = {name: spark.conf.get(name, None) for name in names}
    return {
        name: value
        for name, value in every.items()
        if value is not None and name.lower().startswith(_SETTINGS) and name not in _NOT_OPTIONS
    }


def has_bundle(spark: SparkSession) -> bool:
    """Whether the session has Apache Hudi's Spark bundle on the class path."""
    settings = spark.sparkContext.getConf()
    return any("hudi-spark" in (settings.get(name, "") or "") for name in _JAR_SETTINGS)


def merged(session: Mapping[str, str], explicit: Mapping[str, str]) -> dict[str, str]:
    """Explicit options over the session's, ignoring case; the explicit spelling stays."""
    taken = {name.lower() for name in explicit}
    return {**{k: v for k, v in session.items() if k.lower() not in taken}, **explicit}


def add_option(options: dict[str, str], name: str, value: object) -> None:
    """Set an option, ignoring case; the last value counts, None is ignored."""
    if value is None:
        return
    lowered = name.lower()
    for known in [k for k in options if k.lower() == lowered]:
        del options[known]
    options[name] = str(value).lower() if isinstance(value, bool) else str(value)


def take_option(options: dict[str, str], name: str) -> str | None:
    """Remove an option, ignoring case, and return its value."""
    for known in list(options):
        if known.lower() == name:
            return options.pop(known)
    return None


def with_partition_by(options: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Options with the columns of `partitionBy` as partition field.

    Raises:
        ConflictingOptionError: the option says something else.
    """
    out = dict(options)
    if not columns:
        return out
    given = take_option(out, PARTITION)
    wanted = ",".join(columns)
    if given is not None and [f.strip() for f in given.split(",")] != list(columns):
        raise ConflictingOptionError(
            f"partitionBy({', '.join(map(repr, columns))}) contradicts {PARTITION}={given}",
            remedy="omit one of them.",
            option=PARTITION,
        )
    out[PARTITION] = wanted
    return out


def table_path(spark: SparkSession, path: str | None, *, what: str) -> str:
    """Path to read or write, with the session's default file system.

    Raises:
        OptionError: no path is given.
    """
    if path is None or not path.strip():
        raise OptionError(f"no path is given to {what}", remedy=f"use {what}(path).", option="path")
    if "://" in path or path.startswith("file:"):
        return path
    default = spark.conf.get("spark.hadoop.fs.defaultFS", "") or ""
    if path.startswith("/") and "://" in default and not default.startswith("file:"):
        return default.rstrip("/") + path
    return path
