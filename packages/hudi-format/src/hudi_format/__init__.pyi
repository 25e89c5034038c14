from hudi_format.avro.decoder import Decoder as Decoder
from hudi_format.avro.encoder import Encoder as Encoder
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
from hudi_format.file_slice.reader import SliceMerge as SliceMerge
from hudi_format.file_slice.reader import read_file_slice as read_file_slice
from hudi_format.hfile.reader import HFileReader as HFileReader
from hudi_format.hfile.writer import HFileWriter as HFileWriter
from hudi_format.log.block import BlockType as BlockType
from hudi_format.log.data_block import BlockDecoder as BlockDecoder
from hudi_format.log.delete_block import read_deletes as read_deletes
from hudi_format.log.reader import LogFileReader as LogFileReader
from hudi_format.log.writer import LogWriter as LogWriter
from hudi_format.merge.laws import check_laws as check_laws
from hudi_format.merge.payloads import payload_rule as payload_rule
from hudi_format.merge.user_merger import custom_rule as custom_rule
from hudi_format.model import BaseFile as BaseFile
from hudi_format.model import FileSlice as FileSlice
from hudi_format.model import LogFile as LogFile
from hudi_format.model import VisibleInstants as VisibleInstants
from hudi_format.model import WriteStat as WriteStat
from hudi_format.parquet.footer import read_footer as read_footer
from hudi_format.parquet.layout import ParquetConfig as ParquetConfig
from hudi_format.parquet.reader import iter_batches as iter_batches
from hudi_format.parquet.reader import read_table as read_table
from hudi_format.parquet.writer import BaseFileWriter as BaseFileWriter
from hudi_format.schema.arrow import normalize_schema as normalize_schema
from hudi_format.schema.avro import from_avro as from_avro
from hudi_format.schema.avro import to_avro as to_avro
from hudi_format.schema.evolution import reconcile as reconcile
from hudi_format.schema.meta_fields import with_meta as with_meta
from hudi_format.storage.local import LocalStorage as LocalStorage
from hudi_format.storage.open import open_storage as open_storage
from hudi_format.storage.protocol import FileInfo as FileInfo
from hudi_format.storage.protocol import Storage as Storage

__version__: str
__all__ = [
    "BaseFile",
    "BaseFileWriter",
    "BlockDecoder",
    "BlockType",
    "ClockError",
    "ConcurrentWriterError",
    "ConflictingOptionError",
    "CorruptFileError",
    "Decoder",
    "DuplicateKeyError",
    "Encoder",
    "FileInfo",
    "FileSlice",
    "FunctionNotAllowedError",
    "HFileReader",
    "HFileWriter",
    "HollowCommitError",
    "HudiError",
    "InstantNotFoundError",
    "InvalidOptionError",
    "LibraryError",
    "LocalStorage",
    "LockError",
    "LogFile",
    "LogFileReader",
    "LogWriter",
    "MergeFunctionError",
    "MissingColumnError",
    "MissingFileError",
    "NotAHudiTableError",
    "OptionError",
    "OrderingValueError",
    "ParquetConfig",
    "PartitionPathError",
    "RecordKeyError",
    "SchemaError",
    "SliceMerge",
    "SpillError",
    "StaleSnapshotError",
    "Storage",
    "StorageError",
    "TableExistsError",
    "UnknownOptionError",
    "UnknownPartitionError",
    "UnsupportedError",
    "ValidationError",
    "VisibleInstants",
    "WriteConflictError",
    "WriteFailedError",
    "WriteStat",
    "__version__",
    "check_laws",
    "custom_rule",
    "from_avro",
    "iter_batches",
    "normalize_schema",
    "open_storage",
    "payload_rule",
    "read_deletes",
    "read_file_slice",
    "read_footer",
    "read_table",
    "reconcile",
    "to_avro",
    "with_meta",
]
