from hudi_format.errors import ClockError as ClockError
from hudi_format.errors import ConcurrentWriterError as ConcurrentWriterError
from hudi_format.errors import ConflictingOptionError as ConflictingOptionError
from hudi_format.errors import CorruptFileError as CorruptFileError
from hudi_format.errors import DuplicateKeyError as DuplicateKeyError
from hudi_format.errors import FunctionNotAllowedError as FunctionNotAllowedError
from hudi_format.errors import HollowCommitError as HollowCommitError
from hudi_format.errors import HudiError as HudiError
from hudi_format.errors import InstantNotFoundError as InstantNotFoundError
from hudi_format.errors import InvalidOptionError as InvalidOptionError
from hudi_format.errors import LibraryError as LibraryError
from hudi_format.errors import LockError as LockError
from hudi_format.errors import MergeFunctionError as MergeFunctionError
from hudi_format.errors import MissingColumnError as MissingColumnError
from hudi_format.errors import MissingFileError as MissingFileError
from hudi_format.errors import NotAHudiTableError as NotAHudiTableError
from hudi_format.errors import OptionError as OptionError
from hudi_format.errors import OrderingValueError as OrderingValueError
from hudi_format.errors import PartitionPathError as PartitionPathError
from hudi_format.errors import RecordKeyError as RecordKeyError
from hudi_format.errors import SchemaError as SchemaError
from hudi_format.errors import SpillError as SpillError
from hudi_format.errors import StaleSnapshotError as StaleSnapshotError
from hudi_format.errors import StorageError as StorageError
from hudi_format.errors import TableExistsError as TableExistsError
from hudi_format.errors import UnknownOptionError as UnknownOptionError
from hudi_format.errors import UnknownPartitionError as UnknownPartitionError
from hudi_format.errors import UnsupportedError as UnsupportedError
from hudi_format.errors import ValidationError as ValidationError
from hudi_format.errors import WriteConflictError as WriteConflictError
from hudi_format.errors import WriteFailedError as WriteFailedError
from hudi_timeline.file_system_view.snapshot import TableSnapshot as TableSnapshot
from hudi_timeline.one_call import read_hudi as read_hudi
from hudi_timeline.one_call import scan_hudi as scan_hudi
from hudi_timeline.one_call import write_hudi as write_hudi
from hudi_timeline.options.allowed_functions import allow_functions as allow_functions
from hudi_timeline.options.user_options import options_from as options_from
from hudi_timeline.table import HudiTable as HudiTable
from hudi_timeline.writing.result import CommitResult as CommitResult

__version__: str
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
