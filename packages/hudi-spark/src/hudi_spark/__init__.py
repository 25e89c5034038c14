"""PySpark integration: format("hudi") without a jar."""

from hudi_format._lazy import ERRORS, at_first_use

__version__ = "0.1.0"

# Python workers import this package for their own part of it, and are started often.
_HOMES = {
    **ERRORS,
    "build_index": "writing.table_services",
    "compact": "writing.table_services",
    "configure": "session",
    "disable": "session",
    "drop_index": "writing.table_services",
    "dry_run": "writing.writer",
    "enable": "session",
    "enabled": "session",
    "last_commit": "writing.writer",
    "log_compact": "writing.table_services",
    "resize_buckets": "writing.table_services",
    "sql": "session",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = at_first_use(
    __name__,
    _HOMES,
    {
        "HudiTable": "use hudi_timeline.HudiTable.open(path), which needs no session; it merges, updates, deletes "
        "and tells the history of tables that Spark reads and writes",
    },
)
