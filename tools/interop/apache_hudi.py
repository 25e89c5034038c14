"""Apache Hudi itself, and this project on Spark, each in a process of its own."""

from __future__ import annotations

import importlib.metadata
import os

from interop.bundles import hudi_bundle, jar
from interop.spark_process import SparkProcess, SparkProcessError

_OURS = "ours"


class ApacheHudi(SparkProcess):
    """A running Apache Hudi.

    Args:
        version: of the bundle: "0.15.0" or "1.0.2".
    """

    def __init__(self, version: str) -> None:
        installed = importlib.metadata.version("pyspark")
        if not installed.startswith("3.5."):
            raise SparkProcessError(
                f"the bundle of Apache Hudi {version} needs PySpark 3.5, this environment has {installed}"
            )
        super().__init__(f"Apache Hudi {version}", str(jar(hudi_bundle(version))))

    def timeline(self, path: str | os.PathLike[str]) -> list[tuple[str, str, str]]:
        """(time, action, state) of each instant of the active timeline, as Apache Hudi's own code sees it."""
        answer = self._ask("timeline", path=str(path))
        return [(i[0], i[1], i[2]) for i in answer]


class OursOnSpark(SparkProcess):
    """This project's `format("hudi")`, on the PySpark that is installed."""

    def __init__(self) -> None:
        super().__init__("hudi_spark", _OURS)
