from hudi_format.avro.decoder import Decoder as Decoder
from hudi_format.avro.encoder import Encoder as Encoder
from hudi_format.errors import *  # noqa: F403
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
