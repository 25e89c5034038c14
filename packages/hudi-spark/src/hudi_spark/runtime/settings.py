"""Temporary session settings, safe with several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyspark
from pyspark.sql import SparkSession


@dataclass
class _HeldSetting:
    before: str | None
    users: int = 0


_lock = threading.Lock()
_held: dict[tuple[int, str], _HeldSetting] = {}


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Context with a session setting; the last one to leave restores the first value."""
    place = (id(spark), name)
    with _lock:
        held = _held.get(place)
        if held is None:
            held = _held[place] = _HeldSetting(spark.conf.get(name, None))
            spark.conf.set(name, value)
        held.users += 1
    try:
        yield
    finally:
        with _lock:
            held.users -= 1
            if not held.users:
                del _held[place]
                # What the user has set meanwhile stays.
                if spark.conf.get(name, None) == value:
                    if held.before is None:
                        spark.conf.unset(name)
                    else:
                        spark.conf.set(name, held.before)


# What differs between the PySpark versions that are supported, in one place.


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


SPARK = _version(pyspark.__version__)
"""Major and minor version of the PySpark that is installed."""

HAS_DATA_SOURCES = SPARK >= (4, 0)
"""Whether Spark finds the `pyspark_hudi` data source by itself."""

HAS_SETTINGS_LISTED = SPARK >= (4, 0)
"""Whether `spark.conf.getAll` exists; before, settings are listed by the command SET."""

HAS_ARROW_UDF = SPARK >= (4, 1)
"""Whether `pyspark.sql.functions.arrow_udf` exists; before, vectorised functions go through pandas."""


def is_connect(session: object) -> bool:
    """Whether a session, frame, reader or writer belongs to Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")
