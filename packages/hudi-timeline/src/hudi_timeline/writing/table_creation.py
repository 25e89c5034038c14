"""Creation of an empty table, with the properties of a first write."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from hudi_format.errors import OptionError
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.avro import to_avro
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import SIMPLE
from hudi_timeline import table_config
from hudi_timeline.options import parse_write_options, table_options
from hudi_timeline.options.table_options import MERGE
from hudi_timeline.options.user_options import as_options
from hudi_timeline.table_version import WRITE_VERSION
from hudi_timeline.writing import bucket_index
from hudi_timeline.writing.keys import key_spec_of
from hudi_timeline.writing.new_table import table_properties
from hudi_timeline.writing.write_plan import require
from hudi_timeline.writing.write_schema import about_zones

log = logging.getLogger("hudi")


def create_table(
    uri: str | PathLike[str],
    schema: pa.Schema,
    *,
    name: str,
    table_type: str,
    record_keys: Iterable[str],
    partition_fields: Iterable[str],
    ordering_fields: Iterable[str],
    options: Mapping[str, object] | None,
    storage_options: Mapping[str, Any] | None,
) -> tuple[Storage, dict[str, str]]:
    """Create an empty table; returns its storage and the options of its table object.

    Raises:
        TableExistsError: there is one already.
        OptionError, SchemaError: what was given does not make a table.
    """
    given = as_options(options)
    storage = open_storage(uri, storage_options, options=given)
    given = without_hadoop_options(given)
    keys, partitions, ordering = list(record_keys), list(partition_fields), list(ordering_fields)
    if len(ordering) > 1 and not WRITE_VERSION.has_several_ordering_fields:
        raise OptionError(
            f"a table of version {WRITE_VERSION} has one ordering field, not {len(ordering)}: {', '.join(ordering)}",
            remedy="name the field that decides.",
        )
    merged: dict[str, str] = {table_options.TABLE_NAME: name, table_options.TABLE_TYPE: table_type}
    for key, fields in (
        (table_options.RECORD_KEY, keys),  # none: keys are made up
        (table_options.PARTITION, partitions),
        (table_options.PRECOMBINE, ordering),
    ):
        if fields:
            merged[key] = ",".join(fields)
    merged |= given
    config = parse_write_options(merged)
    normal = normalize_schema(schema)
    key_spec = key_spec_of(config, None)
    for columns, what in ((key_spec.key_fields, "record key"), (key_spec.partition_fields, "partition")):
        require(normal, columns, what, storage)
    if ordering:
        require(normal, ordering, "ordering", storage)
    bucket = bucket_index.settings(
        config, key_spec, None, config.index_type or SIMPLE, None, table=storage.uri
    )
    properties = table_properties(
        config, key_spec, ordering[0] if ordering else None, storage, config.index_type, bucket
    )
    properties[table_config.CREATE_SCHEMA] = to_avro(normal, name)
    table_config.create(storage, properties)
    for warning in about_zones(normal, ()):
        log.warning("%s: %s", storage.uri, warning)
    # A function that made the table may go on merging it; expressions need no permission.
    merge = given.get(MERGE, "")
    return storage, {MERGE: merge} if merge and not merge.lstrip().startswith("{") else {}
