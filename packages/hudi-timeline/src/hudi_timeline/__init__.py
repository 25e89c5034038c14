"""Apache Hudi tables without a JVM: timeline, snapshots, writes, and the hudi command line."""

from hudi_timeline.options_file import options_from
from hudi_timeline.table import HudiTable
from hudi_timeline.write.result import CommitResult

__version__ = "0.1.0"

__all__ = ["CommitResult", "HudiTable", "__version__", "options_from"]
