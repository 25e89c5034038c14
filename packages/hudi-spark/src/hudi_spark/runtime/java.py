"""Java on the machine, as PySpark looks for it before it starts Spark.

Without one PySpark waits for a process that has ended, and says `JAVA_GATEWAY_EXITED`, which names neither Java nor
the way to have it.

Source: bin/spark-class and bin/load-spark-env.sh of Spark 3.5 and 4.x; pyspark/java_gateway.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from hudi_format.errors import LibraryError

_GATEWAY_PORT = "PYSPARK_GATEWAY_PORT"
_REMEDY = (
    "install Java 17, and set JAVA_HOME to its folder or put its `java` on PATH before the session is made; "
    "hudi_timeline reads and writes tables without Java."
)


def require_java(builder: object) -> None:
    """Check for Java, where the session that a builder is about to make would start it.

    Raises:
        LibraryError: there is none where PySpark looks for it.
    """
    if _is_started(builder) or _has_environment_script():
        return
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is not None:
        return
    where = (
        f"JAVA_HOME is {home}, which has no bin/java" if home else "JAVA_HOME is unset, and PATH has no java"
    )
    raise LibraryError(
        f"PySpark {pyspark.__version__} finds no Java to start Spark with: {where}", remedy=_REMEDY
    )


def _is_started(builder: object) -> bool:
    """Whether Spark runs already: in this process, by spark-submit, or on a server."""
    # A stopped session leaves its process to the next one.
    if _GATEWAY_PORT in os.environ or getattr(SparkContext, "_gateway", None) is not None:
        return True
    options: dict[str, Any] = getattr(builder, "_options", {})
    return bool(
        "SPARK_REMOTE" in os.environ
        or "spark.remote" in options
        or options.get("spark.api.mode") == "connect"
    )


def _has_environment_script() -> bool:
    """Whether there is a script of the installation's that may set JAVA_HOME."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    return (folder / "spark-env.sh").is_file()
