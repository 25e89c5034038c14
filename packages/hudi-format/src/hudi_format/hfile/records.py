"""Avro records stored as HFile values, with their keys in the entries.

Source: HoodieAvroHFileWriter of Apache Hudi: a field `key` is emptied in the value, and filled again by readers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.text_buffers import text_buffers
from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError

KEY_FIELD = "key"


def decode_entries(
    entries: pa.RecordBatch, decoder: Decoder, *, field: str = KEY_FIELD, keys_agree: bool = False
) -> pa.RecordBatch:
    """The decoded records of HFile entries.

    Args:
        entries: columns `key` and `value`.
        decoder: from the HFile's schema to the wanted columns.
        field: as of `with_keys`.
        keys_agree: a record that has a key of its own has that of its entry.  True of base files, whose records
            are looked up by their entries' keys; the block of a log may have a column `key` of the user's.

    Raises:
        CorruptFileError: a value that is no such record, a key that is no text, or two keys that do not agree.
    """
    data, offsets, _ = text_buffers(entries.column("value"))
    rows = decoder.decode(data, offsets[:-1], np.diff(offsets))
    return with_keys(rows, entries.column("key"), field, keys_agree=keys_agree)


def with_keys(
    rows: pa.RecordBatch, keys: pa.BinaryArray, field: str = KEY_FIELD, *, keys_agree: bool = False
) -> pa.RecordBatch:
    """Records with their empty key fields filled from the entries' keys.

    Args:
        keys: of the entries.
        field: where a record's key is; what is no text is a column of the user's.
        keys_agree: as of `decode_entries`.

    Raises:
        CorruptFileError: a key that is no text, or two keys that do not agree.
    """
    place = rows.schema.get_field_index(field)
    if place < 0 or not pa.types.is_string(rows.schema.field(place).type):
        return rows
    kept = rows.column(place)
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid as e:
        raise CorruptFileError(f"an HFile with a key that is not UTF-8 ({e})") from None
    own = pc.fill_null(kept, "")
    empty = pc.equal(own, "")
    at = pc.index(pc.or_(empty, pc.equal(own, texts)), False).as_py() if keys_agree else -1
    if at >= 0:
        found = f"the HFile entry {texts[at].as_py()!r} holds the record of {own[at].as_py()!r}"
        raise CorruptFileError(found)
    return rows.set_column(place, rows.schema.field(place), pc.if_else(empty, texts, kept))
