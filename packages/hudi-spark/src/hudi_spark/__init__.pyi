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
from hudi_spark.session import configure as configure
from hudi_spark.session import disable as disable
from hudi_spark.session import enable as enable
from hudi_spark.session import enabled as enabled
from hudi_spark.session import sql as sql
from hudi_spark.writing.table_services import build_index as build_index
from hudi_spark.writing.table_services import compact as compact
from hudi_spark.writing.table_services import drop_index as drop_index
from hudi_spark.writing.table_services import log_compact as log_compact
from hudi_spark.writing.table_services import resize_buckets as resize_buckets
from hudi_spark.writing.writer import dry_run as dry_run
from hudi_spark.writing.writer import last_commit as last_commit

__version__: str
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
