"""Records of an Avro schema of a few types: as fastavro writes them, and as they are read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from avro_strategies import plain

from hudi_format.avro import Decoder

Json = Any


def record(*types: Json) -> Json:
    """The schema of a record with fields of these types: f0, f1 and so on."""
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)],
    }


def written(schema: Json, rows: Sequence[Any]) -> list[bytes]:
    """Each row as fastavro writes it."""
    parsed = fastavro.parse_schema(plain(schema))
    out = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, row)
        out.append(stream.getvalue())
    return out


def decode(decoder: Decoder, *records: bytes) -> pa.RecordBatch:
    lengths = np.array([len(r) for r in records], np.int64)
    batch = decoder.decode(b"".join(records), np.cumsum(lengths) - lengths, lengths)
    batch.validate(full=True)
    return batch


def column(decoder: Decoder, *records: bytes) -> list[Any]:
    """Values of the first field."""
    values: list[Any] = decode(decoder, *records).column(0).to_pylist()
    return values
