"""Rows as the content of a Parquet data block: columns of exactly the types that the block's schema says.

Source: HoodieParquetDataBlock of Apache Hudi, whose files parquet-avro writes: decimals are the bytes or the fixed
type that Avro has them on.  Its reader asks for the columns by the block's schema and takes no others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.encoder import Encoder
from hudi_format.avro.model import AvroType, Json, parse
from hudi_format.errors import UnsupportedError
from hudi_format.parquet.annotate import with_decimals
from hudi_format.schema.avro import decimal_bytes, schema_json, union_number

_MOST_BYTES = 16  # of a decimal that Arrow reads again
_AVRO_INSTEAD = "write Avro blocks (hoodie.logfile.data.block.format=avro)."


class ParquetRows:
    """Makes contents of rows.

    Args:
        schema: Avro schema of the block, JSON text.
        rows: schema of the rows; columns and types as `Encoder` takes them.

    Raises:
        CorruptFileError: the text is no Avro schema.
        MissingColumnError, SchemaError: columns that do not fit the schema; names one.
        UnsupportedError: a type of column that is not written in Parquet; names it.
    """

    def __init__(self, schema: str, rows: pa.Schema) -> None:
        root = parse(schema)
        self._encoder = Encoder(schema, rows)
        self._decimals = {n: found for n, found in enumerate(_leaves(root, "")) if found is not None}
        # Decimals that Arrow would write otherwise stay the bytes that they are in Avro.
        self._decoder = Decoder(json.dumps(_as_bytes(schema_json(schema))) if self._decimals else schema)

    def content(self, batch: pa.RecordBatch, codec: str) -> pa.Buffer | bytes:
        """A Parquet file of the rows.

        Raises:
            SchemaError: a value that does not fit the schema; `details` has `column` and `row`.
        """
        data, offsets = self._encoder.encode(batch)
        stored = self._decoder.decode(data, offsets[:-1], offsets[1:] - offsets[:-1])
        sink = pa.BufferOutputStream()
        pq.write_table(
            pa.Table.from_batches([stored]), sink, compression=codec, store_schema=False,
            write_statistics=not self._decimals,
        )  # fmt: skip
        content = sink.getvalue()
        return with_decimals(content.to_pybytes(), self._decimals) if self._decimals else content


def _leaves(kind: AvroType, path: str) -> Iterator[tuple[int, int] | None]:
    """The columns with values in Parquet's order: precision and scale of decimals on bytes, None for others."""
    if kind.kind == "union":
        others = [b for b in kind.branches if b.kind != "null"]
        if union_number([b.kind for b in others]):
            raise UnsupportedError(
                f"column {path} is a union of two types of numbers, which is not written in Parquet",
                remedy=_AVRO_INSTEAD,
                column=path,
            )
        for branch in others:
            yield from _leaves(branch, path)
    elif kind.kind == "record":
        for f in kind.fields:
            yield from _leaves(f.type, f"{path}.{f.name}" if path else f.name)
    elif kind.kind == "array":
        yield from _leaves(kind.inside, f"{path}.element")
    elif kind.kind == "map":
        yield None
        yield from _leaves(kind.inside, f"{path}.value")
    elif kind.kind != "null":
        if not _is_on_bytes(kind.node):
            yield None
        elif kind.kind == "fixed" and kind.node["size"] > _MOST_BYTES:
            size = kind.node["size"]
            raise UnsupportedError(
                f"column {path} is a decimal on a fixed type of {size} bytes; Parquet is read with {_MOST_BYTES}",
                remedy=_AVRO_INSTEAD,
                column=path,
            )
        else:
            yield _digits(kind.node)


def _is_on_bytes(node: Json) -> bool:
    """Whether a type is a decimal in other bytes than Arrow writes."""
    if node.get("logicalType") != "decimal" or node.get("type") not in ("bytes", "fixed"):
        return False
    return bool(node["type"] == "bytes" or node["size"] != decimal_bytes(node["precision"]))


def _digits(node: Json) -> tuple[int, int]:
    return node["precision"], node.get("scale", 0)


def _as_bytes(node: Json) -> Json:
    """A schema whose decimals on bytes are bytes."""
    if isinstance(node, list):
        return [_as_bytes(n) for n in node]
    if not isinstance(node, dict):
        return node
    out = {k: _as_bytes(v) if k in ("type", "fields", "items", "values") else v for k, v in node.items()}
    if _is_on_bytes(node):
        del out["logicalType"]
    return out
