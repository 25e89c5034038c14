"""What differs between the PySpark versions that are supported, in one place."""

from __future__ import annotations

import pyspark


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


SPARK = _version(pyspark.__version__)
"""Major and minor version of the PySpark that is installed."""

HAS_DATA_SOURCES = SPARK >= (4, 0)
"""Whether Spark finds the `pyspark_hudi` data source by itself."""

HAS_ARROW_UDF = SPARK >= (4, 1)
"""Whether `pyspark.sql.functions.arrow_udf` exists; before, vectorised functions go through pandas."""


def is_connect(session: object) -> bool:
    """Whether a session, frame, reader or writer belongs to Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")
