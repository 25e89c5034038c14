"""Parquet data blocks, whose pages Apache Hudi writes without checksums."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.encoder import Encoder
from hudi_format.avro.types import AvroType, Json, parse
from hudi_format.errors import HudiError, SchemaError, UnsupportedError
from hudi_format.log.block import LogBlock
from hudi_format.parquet.arrow_file import parquet_file
from hudi_format.parquet.decimal_annotation import with_decimals
from hudi_format.parquet.footer import check_columns, long_decimal, missing_column, stated_schema
from hudi_format.parquet.layout import ParquetConfig
from hudi_format.parquet.utf8 import check_text, texts_as_bytes
from hudi_format.schema.avro import decimal_bytes, schema_json, union_number
from hudi_format.schema.evolution import Batch, conform


def open_content(block: LogBlock, content: pa.Buffer) -> tuple[pq.ParquetFile, int]:
    """The Parquet file in a block, checked against the block's schema, and its row count.

    Raises:
        CorruptFileError: it contradicts itself or the block's schema.
        pa.ArrowException, OSError: bytes that are no Parquet.
    """
    file = parquet_file(pa.BufferReader(content))
    stored = {f.name: f.type for f in file.schema_arrow}
    for name, kind in block.fields().items():
        if name not in stored:
            raise block.broken(f"a Parquet content without column {name}", block.content_offset)
        if stored[name] == pa.null() and kind not in ("null", ["null"]):
            raise block.broken(f"a Parquet content with an untyped column {name}", block.content_offset)
    try:
        check_columns(file.schema_arrow)
    except ValueError as e:
        raise block.broken(f"a Parquet content: {e}", block.content_offset) from None
    stated = stated_schema(block.schema.encode())
    if stated is not None and (missing := missing_column(file.schema_arrow, stated)) is not None:
        raise block.broken(f"a Parquet content without column {missing}", block.content_offset)
    # Arrow reads what the row groups say: one that is damaged would be rows that are missing.
    metadata = file.metadata
    groups = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if groups != metadata.num_rows:
        what = f"a Parquet content of {metadata.num_rows} rows with {groups} in its row groups"
        raise block.broken(what, block.content_offset)
    return file, int(metadata.num_rows)


def check_content(block: LogBlock, file: pq.ParquetFile, rows: pa.Table | pa.RecordBatch) -> None:
    """Check the text of a block's content.

    Raises CorruptFileError: a text that is not UTF-8.
    """
    try:
        check_text(rows, texts_as_bytes(file))
    except ValueError as e:
        raise block.broken(f"a Parquet content: {e}", block.content_offset) from None


def unreadable(block: LogBlock, error: Exception) -> HudiError:
    """Error for a content that Arrow refuses; UnsupportedError where it is not damaged."""
    wide = long_decimal(error)
    if wide is not None:
        return wide.at(file=block.file, instant=block.instant)
    return block.broken(f"an unreadable Parquet content ({error})", block.content_offset)


def fitted(block: LogBlock, rows: Batch, schema: pa.Schema, *, naive_is_utc: bool = False) -> Batch:
    """Rows of the content in the wanted columns and types.

    Raises:
        CorruptFileError: they do not fit what the block's own schema says of them.
        SchemaError: they do, but not what is wanted.
    """
    try:
        return conform(rows, schema, naive_is_utc=naive_is_utc)
    except SchemaError as e:
        own = Decoder(block.schema).schema
        there = [f for f in own if f.name in rows.schema.names]
        try:
            conform(rows.select([f.name for f in there]), pa.schema(there), naive_is_utc=naive_is_utc)
        except SchemaError as other:
            what = f"a Parquet content that contradicts the block's schema: {other.message}"
            raise block.broken(what, block.content_offset) from e
        raise


# Rows as the content of a Parquet data block: columns of exactly the types that the block's schema says.
#
# Source: HoodieParquetDataBlock of Apache Hudi, whose files parquet-avro writes: decimals are the bytes or the fixed
# type that Avro has them on.  Its reader asks for the columns by the block's schema and takes no others.

_MOST_BYTES = 16  # of a decimal that Arrow reads again
_AVRO_INSTEAD = "write Avro blocks (hoodie.logfile.data.block.format=avro)."


class ParquetRows:
    """Encoder of rows as Parquet block contents.

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
        """The rows as a Parquet file.

        Args:
            codec: of the pages, by a name that base files take too.

        Raises:
            SchemaError: a value that does not fit the schema; `details` has `column` and `row`.
        """
        data, offsets = self._encoder.encode(batch)
        stored = self._decoder.decode(data, offsets[:-1], offsets[1:] - offsets[:-1])
        sink = pa.BufferOutputStream()
        name, level = ParquetConfig(codec=codec).arrow_codec()
        pq.write_table(
            pa.Table.from_batches([stored]), sink, compression=name, compression_level=level, store_schema=False,
            write_statistics=not self._decimals,
        )  # fmt: skip
        content = sink.getvalue()
        return with_decimals(content.to_pybytes(), self._decimals) if self._decimals else content


def _leaves(kind: AvroType, path: str) -> Iterator[tuple[int, int] | None]:
    """Leaf columns in Parquet's order: precision and scale of decimals on bytes, else None."""
    if kind.kind == "union":
        others = [b for b in kind.branches if b.kind != "null"]
        if union_number([b.kind for b in others]):
            raise UnsupportedError(
                f"column {path} is a union of two number types, which Parquet blocks do not support",
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
                f"column {path} is a decimal of {size} bytes; at most {_MOST_BYTES} are readable "
                "from Parquet",
                remedy=_AVRO_INSTEAD,
                column=path,
            )
        else:
            yield _digits(kind.node)


def _is_on_bytes(node: Json) -> bool:
    """Whether a type is a decimal in another byte representation than Arrow's."""
    if node.get("logicalType") != "decimal" or node.get("type") not in ("bytes", "fixed"):
        return False
    return bool(node["type"] == "bytes" or node["size"] != decimal_bytes(node["precision"]))


def _digits(node: Json) -> tuple[int, int]:
    return node["precision"], node.get("scale", 0)


def _as_bytes(node: Json) -> Json:
    """The schema with plain bytes for decimals on bytes."""
    if isinstance(node, list):
        return [_as_bytes(n) for n in node]
    if not isinstance(node, dict):
        return node
    out = {k: _as_bytes(v) if k in ("type", "fields", "items", "values") else v for k, v in node.items()}
    if _is_on_bytes(node):
        del out["logicalType"]
    return out
