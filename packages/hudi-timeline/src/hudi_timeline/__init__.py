"""Apache Hudi tables without a JVM: timeline, snapshots, writes, command line."""

from hudi_format._lazy import ERRORS, at_first_use

__version__ = "0.1.0"

_HOMES = {
    **ERRORS,
    "CommitResult": "writing.result",
    "HudiTable": "table",
    "TableSnapshot": "file_system_view.snapshot",
    "allow_functions": "options.allowed_functions",
    "options_from": "options.user_options",
    "read_hudi": "one_call",
    "scan_hudi": "one_call",
    "write_hudi": "one_call",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = at_first_use(__name__, _HOMES)
