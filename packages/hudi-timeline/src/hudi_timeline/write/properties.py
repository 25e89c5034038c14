"""hoodie.properties of a table that a first write makes: what the options say, in Apache Hudi's keys."""

from __future__ import annotations

from hudi_format.config import WriteConfig
from hudi_format.errors import MissingColumnError, UnsupportedError
from hudi_format.key_spec import KeySpec
from hudi_format.merge.custom import MERGE, PAYLOAD
from hudi_format.storage import Storage
from hudi_format.time_keys import STORED
from hudi_timeline import table_config as keys
from hudi_timeline.engine.lookup import GLOBAL_KINDS


def table_properties(
    config: WriteConfig,
    key_spec: KeySpec,
    ordering_field: str | None,
    storage: Storage,
    index: str | None = None,
) -> dict[str, str]:
    """The properties to create the table with; defaults that are not named here are `table_config`'s.

    Args:
        index: that the first write uses; one within partitions need not be remembered.

    Raises:
        MissingColumnError: no table name.
        UnsupportedError: a table type that cannot be written yet.
    """
    if not config.table_name:
        raise MissingColumnError(
            "the table does not exist yet and has no name",
            table=storage.uri,
            remedy="set hoodie.table.name.",
            option="hoodie.table.name",
        )
    table_type = (config.table_type or "COPY_ON_WRITE").upper()
    if table_type != "COPY_ON_WRITE":
        raise UnsupportedError(
            f"tables of type {table_type} cannot be written yet",
            table=storage.uri,
            remedy="set hoodie.datasource.write.table.type=COPY_ON_WRITE, or leave it out.",
        )
    out = {
        keys.NAME: config.table_name,
        keys.DATABASE: config.database or "",
        keys.TYPE: table_type,
        keys.PARTITION_FIELDS: ",".join(key_spec.partition_fields),
        keys.KEYGEN_CLASS: key_spec.class_name,
        keys.POPULATE_META_FIELDS: str(config.populate_meta_fields).lower(),
        keys.DROP_PARTITION_COLUMNS: str(config.drop_partition_columns).lower(),
        keys.HIVE_STYLE: str(key_spec.hive_style).lower(),
        keys.URL_ENCODE: str(key_spec.url_encode).lower(),
    }
    if not key_spec.auto:
        out[keys.RECORD_KEY_FIELDS] = ",".join(key_spec.key_fields)
    if key_spec.kind == "TIMESTAMP":  # not for a custom generator's dates, as Apache Hudi
        out |= {k: v for k, v in config.raw.items() if k in STORED}
    if ordering_field:
        out[keys.PRECOMBINE_FIELD] = ordering_field
    if config.merge:
        # As a payload no JVM has: where Apache Hudi would merge, in logs or in a write, it fails by that name.
        out[MERGE], out[keys.PAYLOAD_CLASS] = config.merge, PAYLOAD
    if config.payload_class:
        out[keys.PAYLOAD_CLASS] = config.payload_class
    if index in GLOBAL_KINDS:
        out[keys.INDEX] = index
    if config.table_timezone:
        out[keys.TIMEZONE] = config.table_timezone
    return out
