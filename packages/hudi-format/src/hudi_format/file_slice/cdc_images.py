"""JSON texts of rows: `before` and `after` images of CDC records.

Values are those that the table stores: a timestamp is its number of milliseconds or microseconds, a date its days
since 1970, a decimal its digits.  Column by column with Arrow; only nested values, and those of types without a text in
Arrow, go through Python.

Source: HoodieCDCRDD of Apache Hudi 0.15, which writes Avro's or Jackson's text of a record.  Avro's has nulls, and a
character for each byte of bytes (ISO 8859-1); Jackson's leaves nulls out, and bytes are base64.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import one_array, with_leaves
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.log.block import BlockType
from hudi_format.log.corruption import CommittedRange
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.delete_block import read_deletes
from hudi_format.log.scanner import SliceLog
from hudi_format.model import LogFile
from hudi_format.storage.protocol import Storage

_ESCAPES = [("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")]
_CONTROLS = "[\x00-\x1f]"


def image_texts(rows: pa.Table, *, nulls: bool) -> pa.Array:
    """One JSON object per row.

    Args:
        nulls: whether a null column is there, as `null`, or left out; bytes are as the one or the other has them.
    """
    if not rows.num_columns:
        return pa.repeat("{}", rows.num_rows)
    members = []
    for name in rows.column_names:
        text = _texts(one_array(rows.column(name)), nulls)
        if nulls:
            text = text.fill_null("null")
        member = pc.binary_join_element_wise("," + _json(name) + ":", text, "")
        members.append(member if nulls else member.fill_null(""))
    body = pc.binary_join_element_wise(*members, "")
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(body, 1), "}", "")


def _texts(column: pa.Array, avro: bool) -> pa.Array:
    """The JSON text of each value; null stays null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.binary_join_element_wise('"', _escaped(column.cast(pa.string())), '"', "")
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        # As Java writes them: a whole number keeps a digit after the point.
        text = pc.replace_substring_regex(column.cast(pa.string()), "^(-?[0-9]+)$", r"\1.0")
        if pc.all(pc.is_finite(column)).as_py() is False:  # JSON has no such numbers: Java's words for them
            words = pc.if_else(
                pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"')
            )
            text = pc.if_else(pc.is_finite(column), text, words)
        return text
    if pa.types.is_date32(kind):
        return column.view(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        return column.view(pa.int64()).cast(pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    # Python has no year 10000; what stands in JSON is a number anyway.
    values = column.cast(with_leaves(kind, _number)).to_pylist()
    texts = [None if v is None else _text(v, kind, avro) for v in values]
    return pa.array(texts, pa.string())


def _number(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind


def _escaped(text: pa.Array) -> pa.Array:
    for character, escape in _ESCAPES:
        text = pc.replace_substring(text, character, escape)
    if pc.any(pc.match_substring_regex(text, _CONTROLS)).as_py():
        for code in range(32):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def _text(value: Any, kind: pa.DataType, avro: bool) -> str:
    """The JSON text of one value."""
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        return "{" + ",".join(f"{_json(f.name)}:{_text(value[f.name], f.type, avro)}" for f in kind) + "}"
    if pa.types.is_map(kind):
        return (
            "{"
            + ",".join(f"{_json(_scalar(k, avro))}:{_text(v, kind.item_type, avro)}" for k, v in value)
            + "}"
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "[" + ",".join(_text(v, kind.value_type, avro) for v in value) + "]"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return _json(_scalar(value, avro))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _scalar(value: Any, avro: bool) -> Any:
    """A value in the form that `json` serialises."""
    if isinstance(value, bytes):
        return value.decode("latin-1") if avro else base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


# The record keys that a commit's log records speak of, without their other columns.


def logged_keys(
    storage: Storage,
    files: Sequence[LogFile],
    merge: SliceMerge,
    table: pa.Schema,
    *,
    committed: Mapping[str, Sequence[CommittedRange]] | None = None,
) -> pa.Array:
    """Distinct keys of a slice's log records, deletes included.

    Args:
        merge: its scope says whose blocks count.
        table: all columns of the table, with meta columns where it fills them.

    Raises:
        MissingFileError, CorruptFileError, UnsupportedError: as `SliceLog` and `BlockDecoder`.
    """
    decoder = BlockDecoder(schema=pa.schema([table.field(n) for n in merge.key_columns]))
    found: list[pa.Array] = []
    with SliceLog(storage, files, merge.scope, committed=committed) as log:
        for block in log.blocks:
            content = log.content(block)
            if block.type is BlockType.DELETE:
                found.append(read_deletes(block, content).keys.cast(pa.string()))
                continue
            for batch in decoder.batches(block, content):
                keys = merge.keys(pa.Table.from_batches([batch]))
                found.append(one_array(keys).cast(pa.string()))
    return pc.unique(pa.chunked_array(found, pa.string()))
