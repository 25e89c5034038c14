"""format("hudi") for PySpark without a jar."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_spark.session import configure, disable, enable, enabled
    from hudi_spark.writer import last_commit

__version__ = "0.1.0"

__all__ = ["configure", "disable", "enable", "enabled", "last_commit"]

# Python workers import this package for their own part of it, and are started often.
_PLACES = dict.fromkeys(("configure", "disable", "enable", "enabled"), "hudi_spark.session")
_PLACES["last_commit"] = "hudi_spark.writer"


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
