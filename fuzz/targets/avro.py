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
from hudi_format.avro.encoder import Encoder
from hudi_format.avro.types import parse
from hudi_format.errors import HudiError
from hudi_format.log.block import BlockType
from hudi_format.log.data_block import read_avro
from hudi_format.log.reader import LogFileReader
from hudi_format.schema.avro import from_avro, to_avro
from targets import golden
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


_SHORT = {"type": "record", "name": "Short", "fields": [{"name": "x", "type": "long"}]}
_LONG = {"type": "record", "name": "Long", "fields": [{"name": "z", "type": ["null", "string"]}]}
_OF_FOUR = ["null", "int", "string", {"type": "array", "items": ["string", "boolean"]}, _SHORT]
_MAP = {"type": "map", "values": ["bytes", "int"]}
_FIXED = {"type": "fixed", "name": "F", "size": 3}
# Writers' unions, and those that the table has today; a value of each of the writer's types.
UNIONS: list[tuple[Any, Any, list[Any]]] = [
    (_OF_FOUR, _OF_FOUR, [None, -7, "ü", ["a", True], {"x": 2**40}]),
    (["int", "string"], ["int", "string"], [5, ""]),
    (["int", "string"], ["string", "null", "int"], [5, "text"]),
    ("int", ["null", "string", "int"], [5]),
    (["null", "string"], ["int", "string", "null"], ["text", None]),
    (["null", "boolean", "string"], ["null", "string", "boolean", "double"], [None, True, "t"]),
    (["null", _SHORT, _LONG], ["null", _LONG, _SHORT], [None, {"x": 1}, {"z": "q"}, {"z": None}]),
    (["int", "long"], "long", [5, 2**40]),
    (["null", "float", "double"], ["null", "double"], [None, 1.5, 1e300]),
    ({"type": "array", "items": _OF_FOUR}, {"type": "array", "items": _OF_FOUR}, [[], [None, 1, "x", [False]]]),
    (_MAP, _MAP, [{"k": b"\xff", "l": 1}]),
    (["int", "string", "boolean"], ["int", "string"], [5, "x", True]),  # the last cannot be read
    (["null", "int", _FIXED], ["null", "int", _FIXED], [None, 1, b"abc"]),
]  # fmt: skip


def _union_schemas(n: int) -> tuple[str, str]:
    writer, reader, _ = UNIONS[n]
    return (schema_of([("i", "int"), ("u", writer), ("l", "long")]),
            schema_of([("l", "long"), ("u", reader), ("i", "int")]))  # fmt: skip


def _whole(value: Any) -> Any:
    """Values with those of unions in the place of their structs, which have at most one."""
    if isinstance(value, dict):
        if value and all(k.startswith("member") for k in value):
            there = [v for v in value.values() if v is not None]
            assert len(there) <= 1, f"a union with several values: {value}"
            return _whole(there[0]) if there else None
        return {k: _whole(v) for k, v in value.items()}
    if isinstance(value, list):
        return [tuple(map(_whole, v)) if isinstance(v, tuple) else _whole(v) for v in value]
    return value


def run_union(data: bytes) -> None:
    """The first byte chooses what a union was and is; the rest is one record, which is also written again."""
    if not data:
        return
    n = data[0] % len(UNIONS)
    record = data[1:]
    writer, reader = _union_schemas(n)
    key = -1 - n
    decoder = _DECODERS.get(key)
    if decoder is None:
        decoder = _DECODERS[key] = Decoder(writer, reader)
        _PARSED[key] = fastavro.parse_schema(json.loads(writer))
    batch = decoder.decode(record, np.array([0]), np.array([len(record)]))
    batch.validate(full=True)
    stream = io.BytesIO(record)
    want = fastavro.schemaless_reader(stream, _PARSED[key], None)
    assert stream.read() == b"", "bytes are left that fastavro does not read"
    (row,) = batch.to_pylist()
    assert set(row) == {"i", "u", "l"}
    got = {k: ({} if v == [] and want[k] == {} else v) for k, v in _whole(row).items()}
    assert _plain(got) == _plain(want), (row, want)
    if len(record) >= 2 and isinstance(UNIONS[n][0], list) and writer == _swapped(reader):
        _check_member(record, UNIONS[n][0], row["u"])
    written, ends = Encoder(reader, batch.schema).encode(batch)
    assert list(ends) == [0, written.size]
    again = Decoder(reader).decode(written, np.array([0]), np.array([written.size]))
    assert again.equals(batch) or "nan" in repr(row), (again.to_pylist(), row)


def _swapped(reader: str) -> str:
    return schema_of([(f["name"], f["type"]) for f in reversed(json.loads(reader)["fields"])])


def _check_member(record: bytes, kinds: list[Any], value: Any) -> None:
    """The value stands where the branch number, which follows an int, says."""
    at = next(n for n, b in enumerate(record) if b < 128) + 1
    branch = record[at] >> 1
    if record[at] >= 128 or kinds[branch] == "null":  # a longer form of the same number
        return
    others = [k for k in kinds if k != "null"]
    if isinstance(value, dict) and "member0" in value:
        place = others.index(kinds[branch])
        assert [k for k, v in value.items() if v is not None] == [f"member{place}"], (branch, value)


def run_two(data: bytes) -> None:
    """Two lengths of two bytes, the writer's schema and the reader's, and records; they are written again."""
    first, second = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    try:
        writer, reader = data[4 : 4 + first].decode(), data[4 + first : 4 + first + second].decode()
    except UnicodeDecodeError:
        return
    records = data[4 + first + second :]
    decoder = Decoder(writer, reader)
    for count in (1, 3):
        batch, _ = decoder.decode_stream(records, 0, count)
        assert batch.num_rows == count
        batch.validate(full=True)
    written, ends = Encoder(reader, batch.schema).encode(batch)
    again = Decoder(reader).decode(written, ends[:-1], np.diff(ends))
    assert again.num_rows == count


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


def _union_seeds() -> Iterator[bytes]:
    for n, (_, _, values) in enumerate(UNIONS):
        schema = fastavro.parse_schema(json.loads(_union_schemas(n)[0]))
        for value in values:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, {"i": 3, "u": value, "l": 2**33})
            yield bytes([n]) + out.getvalue()


def _two_seeds() -> Iterator[bytes]:
    for seed in _union_seeds():
        writer, reader = (text.encode() for text in _union_schemas(seed[0]))
        sizes = len(writer).to_bytes(2, "big") + len(reader).to_bytes(2, "big")
        yield sizes + writer + reader + 3 * seed[1:]
    for name, data in golden.files():
        last = name.rpartition("/")[2]
        if name.startswith("unions") and last.startswith(".") and ".log." in last:
            for b, rows in _avro_rows(name, data):
                text = b.encode()
                yield 2 * len(text).to_bytes(2, "big") + 2 * text + rows


def _avro_rows(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Schema and first records of each block of a log."""
    reader = LogFileReader(data, file=name)
    for b in reader.blocks:
        if b.type is BlockType.AVRO_DATA:
            content = reader.content(b).to_pybytes()
            rows = read_avro(b, content)
            spans = zip(rows.offsets[:3].tolist(), rows.lengths[:3].tolist(), strict=True)
            yield b.schema, b"".join(content[o : o + n] for o, n in spans)


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
    Target("avro_union", run_union, _union_seeds, most=1024),
    Target("avro_two_schemas", run_two, _two_seeds, most=8192),
)
