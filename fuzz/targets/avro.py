"""Avro schemas, and records of any schema decoded into columns; fastavro is asked whether the values are right."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import Any

import fastavro
import numpy as np

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.model import parse
from hudi_format.errors import HudiError
from hudi_format.log.blocks import BlockType
from hudi_format.log.data_block import read_avro
from hudi_format.schema.avro import from_avro, to_avro
from targets.golden import blocks
from targets.target import Target

_INNER = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "long"},
                                                      {"name": "y", "type": ["null", "string"]}]}  # fmt: skip
FIELDS: list[tuple[str, Any]] = [
    ("s", "string"), ("ns", ["null", "string"]), ("i", "int"), ("l", ["long", "null"]), ("d", "double"),
    ("f", ["null", "float"]), ("b", "boolean"), ("by", ["null", "bytes"]),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B", "CC"]}),
    ("fx", {"type": "fixed", "name": "F", "size": 3}),
    ("dec", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]),
    ("fd", {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 0}),
    ("a", {"type": "array", "items": ["null", "int"]}), ("m", {"type": "map", "values": "string"}),
    ("r", ["null", _INNER]), ("ar", {"type": "array", "items": "In"}),
    ("mm", {"type": "map", "values": {"type": "array", "items": "boolean"}}),
]  # fmt: skip


def schema_of(fields: list[tuple[str, Any]]) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]})


SCHEMAS = [schema_of(FIELDS), *(schema_of([f]) for f in FIELDS if f[0] != "ar")]
_DECODERS: dict[int, Decoder] = {}
_PARSED: dict[int, Any] = {}


def _plain(value: Any) -> Any:
    """Values to compare: no differences between -0.0, NaN of one kind and another, pairs and lists."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):
            return {k: _plain(v) for k, v in value}  # Arrow's maps; the last of a key counts
        return [_plain(v) for v in value]
    return value


def run_records(data: bytes) -> None:
    """The first byte chooses a schema; the rest is one record."""
    if not data:
        return
    n = data[0] % len(SCHEMAS)
    record = data[1:]
    decoder = _DECODERS.get(n)
    if decoder is None:
        decoder = _DECODERS[n] = Decoder(SCHEMAS[n])
        _PARSED[n] = fastavro.parse_schema(json.loads(SCHEMAS[n]))
    batch = decoder.decode(record, np.array([0]), np.array([len(record)]))
    rows = batch.to_pylist()
    assert len(rows) == 1
    stream = io.BytesIO(record)
    want = fastavro.schemaless_reader(stream, _PARSED[n], None)
    assert stream.read() == b"", "bytes are left that fastavro does not read"
    got = {k: ({} if v == [] and k in ("m", "mm") else v) for k, v in rows[0].items()}
    assert _plain(got) == _plain(want), (got, want)
    wanted = batch.schema.names[::2]
    part = Decoder(SCHEMAS[n], columns=wanted).decode(record, np.array([0]), np.array([len(record)]))
    assert part.equals(batch.select(wanted)) or "nan" in repr(rows)


def run_schema(data: bytes) -> None:
    """A schema's text: parsed, compiled, and turned into columns and back."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        schema = from_avro(text)
    except HudiError:
        pass
    else:
        assert from_avro(to_avro(schema, "t")).equals(schema)
    parse(text)
    Decoder(text)


def run_any(data: bytes) -> None:
    """Two bytes of length, a schema, and records of it end to end."""
    size = int.from_bytes(data[:2], "big")
    try:
        text = data[2 : 2 + size].decode()
    except UnicodeDecodeError:
        return
    records = data[2 + size :]
    decoder = Decoder(text)
    for count in (1, 3):
        batch, end = decoder.decode_stream(records, 0, count)
        assert batch.num_rows == count
        assert end <= len(records)
        batch.validate(full=True)


def _record_seeds() -> Iterator[bytes]:
    value: dict[str, Any] = {
        "s": "text", "ns": "ü", "i": -5, "l": 2**40, "d": 1.5, "f": None, "b": True, "by": b"\0\1", "e": "CC",
        "fx": b"abc", "dec": b"\1\2", "fd": b"\0\0\1\2", "a": [None, 1], "m": {"k": "v"}, "r": {"x": 1, "y": None},
        "ar": [{"x": 2, "y": "z"}], "mm": {"q": [True]},
    }  # fmt: skip
    for n, text in enumerate(SCHEMAS):
        plain = json.loads(text)
        for f in plain["fields"]:
            _strip(f)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(plain), value)
        yield bytes([n]) + out.getvalue()


def _strip(node: Any) -> None:
    """Without logical types, so that the bytes of decimals are written as they are."""
    if isinstance(node, dict):
        node.pop("logicalType", None)
        for v in node.values():
            _strip(v)
    elif isinstance(node, list):
        for v in node:
            _strip(v)


def _schema_seeds() -> Iterator[bytes]:
    yield from (s.encode() for s in SCHEMAS)
    yield from {b.schema.encode() for b, _ in blocks(BlockType.AVRO_DATA, BlockType.CDC_DATA, most=20_000)}
    tree = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "kids", "type": {"type": "array", "items": "T"}}],
    }
    yield json.dumps(tree).encode()


def _any_seeds() -> Iterator[bytes]:
    for b, content in blocks(BlockType.AVRO_DATA, BlockType.CDC_DATA, most=20_000):
        rows = read_avro(b, content)
        raw = b"".join(
            content[o : o + n]
            for o, n in zip(rows.offsets[:3].tolist(), rows.lengths[:3].tolist(), strict=True)
        )
        text = b.schema.encode()
        yield len(text).to_bytes(2, "big") + text + raw
    for seed in _record_seeds():
        text = SCHEMAS[seed[0]].encode()
        yield len(text).to_bytes(2, "big") + text + 3 * seed[1:]


TARGETS = (
    Target("avro_record", run_records, _record_seeds, most=4096),
    Target("avro_schema", run_schema, _schema_seeds, most=8192),
    Target("avro_any", run_any, _any_seeds, most=8192),
)
