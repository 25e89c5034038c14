"""Readers and writers for files of Apache Hudi tables: Cython kernels over Arrow, no JVM."""

from hudi_format._lazy import ERRORS, at_first_use

__version__ = "0.1.0"

_HOMES = {
    **ERRORS,
    "BaseFile": "model",
    "BaseFileWriter": "parquet.writer",
    "BlockDecoder": "log.data_block",
    "BlockType": "log.block",
    "Decoder": "avro.decoder",
    "Encoder": "avro.encoder",
    "FileInfo": "storage.protocol",
    "FileSlice": "model",
    "HFileReader": "hfile.reader",
    "HFileWriter": "hfile.writer",
    "LocalStorage": "storage.local",
    "LogFile": "model",
    "LogFileReader": "log.reader",
    "LogWriter": "log.writer",
    "ParquetConfig": "parquet.layout",
    "SliceMerge": "file_slice.reader",
    "Storage": "storage.protocol",
    "VisibleInstants": "model",
    "WriteStat": "model",
    "check_laws": "merge.laws",
    "custom_rule": "merge.user_merger",
    "from_avro": "schema.avro",
    "iter_batches": "parquet.reader",
    "normalize_schema": "schema.arrow",
    "open_storage": "storage.open",
    "payload_rule": "merge.payloads",
    "read_deletes": "log.delete_block",
    "read_file_slice": "file_slice.reader",
    "read_footer": "parquet.footer",
    "read_table": "parquet.reader",
    "reconcile": "schema.evolution",
    "to_avro": "schema.avro",
    "with_meta": "schema.meta_fields",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = at_first_use(__name__, _HOMES)
