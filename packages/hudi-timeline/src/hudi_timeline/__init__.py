"""Apache Hudi tables without a JVM: timeline, snapshots, writes, and the hudi command line."""

from hudi_format.lazy import at_first_use

__version__ = "0.1.0"

__all__ = ["CommitResult", "HudiTable", "__version__", "allow_functions", "options_from"]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "CommitResult": "write.result",
        "HudiTable": "table",
        "allow_functions": "allowed_functions",
        "options_from": "options_file",
    },
)
