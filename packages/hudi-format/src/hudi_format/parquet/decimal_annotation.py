"""DECIMAL annotation of byte columns, which Arrow cannot write: patched into the footer.

Arrow writes each decimal as a fixed type of the least size.  Avro's decimals on bytes, and those on fixed types
that are longer, are such bytes in Apache Hudi's Parquet files too, and its readers ask for them so.

Source: Parquet format, "Logical types: DECIMAL" and the Thrift definition of FileMetaData and SchemaElement.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_format.parquet.thrift import (
    I32,
    LIST,
    STRUCT,
    Cursor,
    Fields,
    file_end,
    footer_of,
    integer,
    raw_of,
    replaced,
    struct,
    structs,
)

_SCHEMA = 2  # field of FileMetaData
_CHILDREN, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 5, 6, 7, 8, 10  # fields of SchemaElement
_DECIMAL_WAS, _DECIMAL_IS = 5, 5  # in ConvertedType and in LogicalType


def with_decimals(file: bytes, decimals: Mapping[int, tuple[int, int]]) -> bytes:
    """A Parquet file with some byte columns annotated as decimals.

    Args:
        file: as Arrow wrote it, without statistics of these columns: theirs are in another order.
        decimals: precision and scale, by the column's number among those that hold values.
    """
    begin, footer = footer_of(file)
    fields = Cursor(footer).fields()
    elements, leaf = [], 0
    for element in Cursor(raw_of(fields, _SCHEMA)).structs():
        if not any(number == _CHILDREN for number, _, _ in element):
            if leaf in decimals:
                element = _decimal(element, *decimals[leaf])
            leaf += 1
        elements.append(struct(element))
    return file[:begin] + file_end(struct(replaced(fields, {_SCHEMA: (LIST, structs(elements))})))


def _decimal(fields: Fields, precision: int, scale: int) -> Fields:
    digits = struct([(1, I32, integer(scale)), (2, I32, integer(precision))])
    ours = {
        _CONVERTED: (I32, integer(_DECIMAL_WAS)),
        _SCALE: (I32, integer(scale)),
        _PRECISION: (I32, integer(precision)),
        _LOGICAL: (STRUCT, struct([(_DECIMAL_IS, STRUCT, digits)])),
    }
    return replaced(fields, ours)
