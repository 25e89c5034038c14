from hudi_format.errors import *  # noqa: F403
from hudi_timeline.file_system_view.snapshot import TableSnapshot as TableSnapshot
from hudi_timeline.one_call import read_hudi as read_hudi
from hudi_timeline.one_call import scan_hudi as scan_hudi
from hudi_timeline.one_call import write_hudi as write_hudi
from hudi_timeline.options.allowed_functions import allow_functions as allow_functions
from hudi_timeline.options.user_options import options_from as options_from
from hudi_timeline.table import HudiTable as HudiTable
from hudi_timeline.writing.result import CommitResult as CommitResult

__version__: str
