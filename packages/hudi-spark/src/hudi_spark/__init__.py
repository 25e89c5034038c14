"""PySpark integration: format("hudi") without a jar."""

from hudi_format._lazy import at_first_use

__version__ = "0.1.0"

__all__ = [
    "ClockError",
    "ConcurrentWriterError",
    "ConflictingOptionError",
    "CorruptFileError",
    "DuplicateKeyError",
    "FunctionNotAllowedError",
    "HollowCommitError",
    "HudiError",
    "InstantNotFoundError",
    "InvalidOptionError",
    "LibraryError",
    "LockError",
    "MergeFunctionError",
    "MissingColumnError",
    "MissingFileError",
    "NotAHudiTableError",
    "OptionError",
    "OrderingValueError",
    "PartitionPathError",
    "RecordKeyError",
    "SchemaError",
    "SpillError",
    "StaleSnapshotError",
    "StorageError",
    "TableExistsError",
    "UnknownOptionError",
    "UnknownPartitionError",
    "UnsupportedError",
    "ValidationError",
    "WriteConflictError",
    "WriteFailedError",
    "__version__",
    "build_index",
    "compact",
    "configure",
    "disable",
    "drop_index",
    "dry_run",
    "enable",
    "enabled",
    "last_commit",
    "log_compact",
    "resize_buckets",
    "sql",
]

# Python workers import this package for their own part of it, and are started often.
__getattr__, __dir__ = at_first_use(
    __name__,
    {
        **dict.fromkeys((name for name in __all__ if name.endswith("Error")), "hudi_format.errors"),
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
    },
    {
        "HudiTable": "use hudi_timeline.HudiTable.open(path), which needs no session; it merges, updates, deletes "
        "and tells the history of tables that Spark reads and writes",
    },
)
