"""The five `_hoodie_*` meta fields before the data columns of every base file."""

from __future__ import annotations

import pyarrow as pa

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
OPERATION = "_hoodie_operation"  # a sixth one, only with hoodie.allow.operation.metadata.field

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
META_SCHEMA = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])
META_NAMES = frozenset((*META_COLUMNS, OPERATION))
"""Names that no data column has."""


def with_meta(schema: pa.Schema) -> pa.Schema:
    """The schema with the five meta columns first."""
    return pa.schema([*META_SCHEMA, *without_meta(schema)])


def without_meta(schema: pa.Schema) -> pa.Schema:
    """The schema without any meta column."""
    return pa.schema([f for f in schema if f.name not in META_NAMES])
