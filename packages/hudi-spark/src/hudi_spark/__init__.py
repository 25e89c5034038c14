"""format("hudi") for PySpark without a jar."""

from hudi_format.lazy import at_first_use

__version__ = "0.1.0"

__all__ = ["configure", "disable", "enable", "enabled", "last_commit"]

# Python workers import this package for their own part of it, and are started often.
__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "configure": "session",
        "disable": "session",
        "enable": "session",
        "enabled": "session",
        "last_commit": "writer",
    },
)
