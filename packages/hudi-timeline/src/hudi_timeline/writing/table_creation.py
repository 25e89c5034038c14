"""Creation of an empty table, with the properties of a first write."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from hudi_format._checks import text_list
from hudi_format.errors import ConflictingOptionError, OptionError, SchemaError, TableExistsError
from hudi_format.merge.user_merger import parse_merge
from hudi_format.schema.arrow import equal_types, normalize_schema
from hudi_format.schema.avro import to_avro
from hudi_format.schema.fit import in_utc
from hudi_format.schema.input_rows import as_reader, telling_the_index
from hudi_format.schema.meta_fields import without_meta
from hudi_format.storage.hadoop_options import without_hadoop_options
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import SIMPLE
from hudi_timeline import feature_gate, table_config
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.options import parse_write_options, table_options
from hudi_timeline.options.registry import main_name, text_of
from hudi_timeline.options.table_conflicts import check_against_table, same_value, unstored
from hudi_timeline.options.table_options import MERGE
from hudi_timeline.options.user_options import as_options
from hudi_timeline.table_config import TableConfig
from hudi_timeline.table_version import WRITE_VERSION
from hudi_timeline.writing.engine import DATA
from hudi_timeline.writing.planning import bucket_index
from hudi_timeline.writing.planning.keys import check_ordering, key_spec_of
from hudi_timeline.writing.planning.new_table import table_properties
from hudi_timeline.writing.planning.write_plan import require
from hudi_timeline.writing.planning.write_schema import about_utc, about_zones

log = logging.getLogger("hudi")


_SHORT = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def _type_named(text: str) -> str:
    """Table type as options have it, of its name or short name in any case.

    Raises:
        TypeError: no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"table_type must be COPY_ON_WRITE or MERGE_ON_READ, not {text!r}")
    return _SHORT.get(text.lower(), text.upper())


def create_table(
    uri: str | PathLike[str],
    schema: pa.Schema | object,
    *,
    name: str | None,
    table_type: str | None,
    record_keys: str | Iterable[str],
    partition_fields: str | Iterable[str],
    ordering_fields: str | Iterable[str],
    options: Mapping[str, object] | None,
    storage_options: Mapping[str, Any] | None,
    exist_ok: bool = False,
) -> tuple[Storage, dict[str, str]]:
    """Create an empty table; returns its storage, and the options that stay with its object.

    Args:
        schema: the columns, or data that has them.
        name: the folder's, if not given.
        exist_ok: a table that is there is taken, if it has these keys, partitions and columns.

    Raises:
        TableExistsError: there is one already.
        OptionError, SchemaError: what was given does not make a table, or not the one that is there; or an argument is
            given as an option too, with another value.
    """
    given = as_options(options)
    storage = open_storage(uri, storage_options, options=given)
    given = without_hadoop_options(given)
    keys, partitions, ordering = (_names_in(f) for f in (record_keys, partition_fields, ordering_fields))
    # None: keys are made up.
    named = named_options(keys or None, partitions or None, ordering or None, name, table_type)
    merged = with_arguments(named, given, storage)
    unnamed = text_of(merged, table_options.TABLE_NAME) is None
    if unnamed:
        merged[table_options.TABLE_NAME] = name_of(storage)
    if len(ordering) > 1 and not WRITE_VERSION.has_several_ordering_fields:
        raise OptionError(
            f"a table of version {WRITE_VERSION} has one ordering field, not {len(ordering)}: {', '.join(ordering)}",
            remedy="name the field that decides.",
        )
    config = parse_write_options(merged)
    ordering = [config.ordering_field] if config.ordering_field else []
    normal = normalize_schema(
        schema if isinstance(schema, pa.Schema) else without_meta(as_reader(schema).schema)
    )
    as_given = normal
    if config.types != DATA:
        normal = in_utc(normal)
    key_spec = key_spec_of(config, None)
    with telling_the_index(schema):
        for columns, what in ((key_spec.key_fields, "record key"), (key_spec.partition_fields, "partition")):
            require(normal, columns, what, storage)
        if ordering:
            require(normal, ordering, "ordering", storage)
    if ordering:
        check_ordering(normal, ordering, storage)
    bucket = bucket_index.settings(
        config, key_spec, None, config.index_type or SIMPLE, None, table=storage.uri
    )
    properties = table_properties(
        config, key_spec, ordering[0] if ordering else None, storage, config.index_type, bucket
    )
    properties[table_config.CREATE_SCHEMA] = to_avro(normal, properties[table_config.NAME])
    try:
        created = table_config.create(storage, properties)
    except TableExistsError as e:
        if not exist_ok:
            e.remedy = (
                "open it with HudiTable.open(uri), or give exist_ok=True; write_hudi(uri, data) adds to a table or "
                "makes it."
            )
            raise
        if unnamed:
            del merged[table_options.TABLE_NAME]
        return storage, _kept(given, _check_same(storage, normal, as_given, merged))
    for warning in (*about_utc(as_given, normal), *about_zones(normal, ())):
        log.warning("%s: %s", storage.uri, warning)
    return storage, _kept(given, created)


def _kept(given: Mapping[str, str], table: TableConfig) -> dict[str, str]:
    """Given options that stay with the table object."""
    merge = given.get(MERGE, "")
    # A function that made the table may go on merging it; expressions need no permission.
    permitted: dict[str, str] = {MERGE: merge} if merge and parse_merge(merge).functions else {}
    return {**unstored(given, table.properties), **permitted}


def with_arguments(named: Mapping[str, str], given: Mapping[str, str], storage: Storage) -> dict[str, str]:
    """Options together with those that were given as arguments.

    Raises:
        ConflictingOptionError: one is given as both, with different values.
    """
    merged = {**named, **given}
    for key, value in given.items():
        option = main_name(key) or key
        if option in named and not same_value(option, named[option], value):
            raise ConflictingOptionError(
                f"{key} is given as an argument and, with another value, as an option",
                table=storage.uri,
                remedy="give it once.",
                option=key,
            )
        if option in named and key != option:
            del merged[option]
    return merged


# What was not given is not wanted either.
_ALWAYS_MEANT = (table_options.RECORD_KEY, table_options.PARTITION)


def _check_same(
    storage: Storage, schema: pa.Schema, as_given: pa.Schema, options: Mapping[str, str]
) -> TableConfig:
    """Configuration of the table that is there, which is refused if it is not what was asked for.

    Args:
        as_given: the columns of `schema` as the user gave them.

    Raises:
        ConflictingOptionError: another key, partition field, type or other option of a table.
        SchemaError: a column that it lacks, or has with another type.
    """
    feature_gate.readable_config(storage)
    snapshot = open_snapshot(storage)
    without: dict[str, str] = {key: "" for key in _ALWAYS_MEANT if text_of(options, key) is None}
    try:
        check_against_table({**without, **options}, snapshot.config.properties)
    except ConflictingOptionError as e:
        e.remedy = "give what the table has, or another path for a new table."
        raise e.at(table=storage.uri) from None
    stored = snapshot.schema
    for field in schema:
        index = stored.get_field_index(field.name)
        wanted = (field.type, as_given.field(field.name).type)
        if index >= 0 and any(equal_types(stored.field(index).type, kind) for kind in wanted):
            continue
        there = "has no such column" if index < 0 else f"has it as {stored.field(index).type}"
        raise SchemaError(
            f"column {field.name} was given with type {field.type}, and the table that is there {there}",
            table=storage.uri,
            remedy="open the table with HudiTable.open(uri); a write adds new columns.",
            column=field.name,
        )
    return snapshot.config


def named_options(
    key: str | Iterable[str] | None,
    partition: str | Iterable[str] | None,
    ordering: str | Iterable[str] | None,
    name: str | None,
    table_type: str | None,
) -> dict[str, str]:
    """Options of a table that were given as arguments, which are None otherwise."""
    columns = (
        (table_options.RECORD_KEY, key),
        (table_options.PARTITION, partition),
        (table_options.PRECOMBINE, ordering),
    )
    named: dict[str, str] = {option: ",".join(_names_in(of)) for option, of in columns if of is not None}
    if name is not None:
        named[table_options.TABLE_NAME] = name
    if table_type is not None:
        named[table_options.TABLE_TYPE] = _type_named(table_type)
    return named


def _names_in(given: str | Iterable[str]) -> list[str]:
    """Names of columns; one text has one name, or several with commas, as in options."""
    if isinstance(given, str):
        return [name.strip() for name in given.split(",") if name.strip()]
    return text_list("columns", given)


def name_of(storage: Storage) -> str:
    """Name of a table that was given none: its folder's."""
    name = re.sub(r"\W", "_", storage.uri.rstrip("/").rpartition("/")[2])
    if not name:
        raise OptionError("a table at the root of a store has no folder to be named by", remedy="give name=.")
    return name
