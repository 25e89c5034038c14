"""Apache Hudi tables without a JVM: timeline, snapshots, writes, command line."""

from hudi_format._lazy import at_first_use

__version__ = "0.1.0"

__all__ = [
    "ClockError",
    "CommitResult",
    "ConcurrentWriterError",
    "ConflictingOptionError",
    "CorruptFileError",
    "DuplicateKeyError",
    "FunctionNotAllowedError",
    "HollowCommitError",
    "HudiError",
    "HudiTable",
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
    "TableSnapshot",
    "UnknownOptionError",
    "UnknownPartitionError",
    "UnsupportedError",
    "ValidationError",
    "WriteConflictError",
    "WriteFailedError",
    "__version__",
    "allow_functions",
    "options_from",
    "read_hudi",
    "scan_hudi",
    "write_hudi",
]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        **dict.fromkeys((name for name in __all__ if name.endswith("Error")), "hudi_format.errors"),
        "CommitResult": "writing.result",
        "HudiTable": "table",
        "TableSnapshot": "file_system_view.snapshot",
        "allow_functions": "options.allowed_functions",
        "options_from": "options.user_options",
        "read_hudi": "one_call",
        "scan_hudi": "one_call",
        "write_hudi": "one_call",
    },
)
