"""Records kept in an HFile: each value is one Avro record, its key in the entry's key.

Source: HoodieAvroHFileWriter of Apache Hudi: a field `key` is emptied in the value, and filled again by readers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError

KEY_FIELD = "key"


def decode_entries(entries: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    """The records of entries, as an HFile's reader gives these.

    Args:
        entries: columns `key` and `value`.
        decoder: from the HFile's schema to the wanted columns.

    Raises:
        CorruptFileError: a value that is no such record, or a key that is no text.
    """
    values = entries.column("value")
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    begins = offsets[:-1].astype(np.int64)
    data = values.buffers()[2]
    rows = decoder.decode(b"" if data is None else data, begins, np.diff(offsets).astype(np.int64))
    place = rows.schema.get_field_index(KEY_FIELD)
    if place < 0 or not pa.types.is_string(rows.schema.field(place).type):
        return rows
    kept = rows.column(place)
    try:
        keys = entries.column("key").cast(pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("an HFile with a key that is no text") from None
    keys = pc.if_else(pc.equal(pc.fill_null(kept, ""), ""), keys, kept)
    return rows.set_column(place, rows.schema.field(place), keys)
