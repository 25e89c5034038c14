"""format("hudi") for PySpark without a jar."""

from hudi_spark.session import configure, disable, enable, enabled
from hudi_spark.writer import last_commit

__version__ = "0.1.0"

__all__ = ["configure", "disable", "enable", "enabled", "last_commit"]
