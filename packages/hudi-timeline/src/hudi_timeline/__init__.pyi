from hudi_timeline.allowed_functions import allow_functions as allow_functions
from hudi_timeline.options_file import options_from as options_from
from hudi_timeline.table import HudiTable as HudiTable
from hudi_timeline.write.result import CommitResult as CommitResult

__version__: str
__all__ = ["CommitResult", "HudiTable", "__version__", "allow_functions", "options_from"]
