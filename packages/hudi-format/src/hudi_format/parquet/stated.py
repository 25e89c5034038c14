"""A base file's columns against the Avro schema in its footer: a name that is damaged would be a column of nulls.

Source: AvroParquetWriter of parquet-avro, which Apache Hudi's and our writers of base files follow: the footer's entry
`parquet.avro.schema` is the schema that Parquet's own was made of.  Row writers of Spark leave no such entry.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.errors import HudiError
from hudi_format.schema.avro import from_avro


def missing_column(schema: pa.Schema, stated: pa.Schema) -> str | None:
    """The first column, or field within one, that Parquet's schema lacks where another schema of its rows has it.

    Args:
        schema: as Arrow reads it of the footer.
        stated: what the Avro schema of the same rows says; types do not count.
    """
    return _missing(pa.struct(list(schema)), pa.struct(list(stated)), "")


def _missing(own: pa.DataType, stated: pa.DataType, path: str) -> str | None:
    """The first field within a stated type that is not in the other."""
    if pt.is_list(own) and pt.is_list(stated):
        return _missing(own.value_type, stated.value_type, path)
    if pt.is_map(own) and pt.is_map(stated):
        return _missing(own.item_type, stated.item_type, path)
    if not (pt.is_struct(own) and pt.is_struct(stated)):
        return None
    fields = {f.name: f.type for f in (own.field(n) for n in range(own.num_fields))}
    for field in (stated.field(n) for n in range(stated.num_fields)):
        if pt.is_null(field.type):
            continue  # parquet-avro leaves such fields out
        within = f"{path}.{field.name}" if path else field.name
        if field.name not in fields:
            return within
        if (missing := _missing(fields[field.name], field.type, within)) is not None:
            return missing
    return None


@lru_cache(maxsize=256)
def stated_schema(text: bytes) -> pa.Schema | None:
    """The columns of an Avro schema as a footer has it; None where it cannot be told of it.

    Rows do not depend on the entry: one that is damaged hinders nobody from reading them.
    """
    try:
        return from_avro(text.decode())
    except (HudiError, UnicodeDecodeError):
        return None
