"""Random Avro schemas with rows for them, and a plain encoding of both, for round trips through Apache Hudi.

Rows are Python's own values without any logical type: dates and times are numbers, decimals their unscaled
numbers, a value of a union is a pair of branch and value, a record a tuple of its fields.  `encode` and `decode` are
Avro's binary encoding of them, written from the specification and on their own: neither this project's code nor
another library has a part in it.
"""

from __future__ import annotations

import random
import struct
import uuid
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa

Json: TypeAlias = Any
Value: TypeAlias = Any

_EXACT = Context(prec=100)
_TEXTS = (
    "",
    "a",
    "é",
    "日本",
    "😀",
    "\U0010ffff",
    "x" * 200,
    "a\tb\nc",
    '"\\',
    "null",
    "\x00",
    "\u007f",
    "ﬀ",
    "i̇",
)
_LONGS = (0, 1, -1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**53 + 1)
_INTS = (0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31))
_DOUBLES = (0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 0.1)
_FLOATS = (0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 2.0**-149, 3.4028234663852886e38)
# Days and microseconds from 0001-01-01 to 9999-12-31.
_DAYS = (-719162, 2932896)
_MICROS = (-62135596800_000000, 253402300799_999999)
LEAVES = (
    "boolean", "int", "long", "float", "double", "string", "bytes", "date", "timestamp-micros", "timestamp-millis",
    "local-timestamp-micros", "local-timestamp-millis", "bytes-decimal", "fixed-decimal", "fixed", "enum", "uuid",
)  # fmt: skip
TIMES = ("time-millis", "time-micros")


def decimal_size(precision: int) -> int:
    return ((10**precision - 1).bit_length() + 8) // 8


class Maker:
    """Makes schemas and rows out of one seed.

    Args:
        leaves: names of the leaf types to choose from.
        unions: whether there are unions of several types.
        depth: of types inside types, at most.
    """

    def __init__(
        self, seed: int, leaves: tuple[str, ...] = LEAVES + TIMES, *, unions: bool = True, depth: int = 4
    ) -> None:
        self.draw = random.Random(seed)
        self._leaves, self._unions, self._depth = leaves, unions, depth
        self._names = 0
        self._padding = (0, 0, 0, 3)  # bytes that a fixed decimal has beyond those that it needs

    # --- schemas ---

    def schema(self, fields: int, *, key: str | None = "_hoodie_record_key") -> Json:
        """A record of so many random fields, after one for the record key."""
        first = [] if key is None else [{"name": key, "type": ["null", "string"], "doc": "", "default": None}]
        made = [self._field(f"c{i}", self._depth) for i in range(fields)]
        return {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": first + made}

    def _field(self, name: str, depth: int) -> Json:
        out = {"name": name, "type": self._optional(depth)}
        if isinstance(out["type"], list) and out["type"][0] == "null":
            out["default"] = None
        return out

    def _optional(self, depth: int) -> Json:
        how = self.draw.random()
        inner = self._type(depth)
        if how < 0.25:
            return inner
        if self._unions and how < 0.35 and depth > 1:
            return self._union(depth)
        return ["null", inner] if how < 0.9 else [inner, "null"]

    def _union(self, depth: int) -> Json:
        branches, kinds = [], set()
        for _ in range(self.draw.randint(2, 4)):
            one = self._type(depth - 1)
            kind = one if isinstance(one, str) else one["type"]
            named = kind in ("record", "enum", "fixed")
            if not named and kind in kinds:
                continue
            kinds.add(kind)
            branches.append(one)
        # Two types of numbers are one type in Spark, whatever their logical types.
        if len(branches) < 2 or kinds in ({"int", "long"}, {"float", "double"}):
            return ["null", branches[0]]
        null = self.draw.choice((None, 0, len(branches)))
        if null is not None:
            branches.insert(null, "null")
        return branches

    def _type(self, depth: int) -> Json:
        if depth > 0 and self.draw.random() < 0.4:
            kind = self.draw.choice(("array", "map", "record"))
            if kind == "array":
                return {"type": "array", "items": self._optional(depth - 1)}
            if kind == "map":
                return {"type": "map", "values": self._optional(depth - 1)}
            fields = [self._field(self._name("f"), depth - 1) for _ in range(self.draw.randint(1, 4))]
            return {"type": "record", "name": self._name("r"), "namespace": "hoodie.t", "fields": fields}
        return self._leaf(self.draw.choice(self._leaves))

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _leaf(self, name: str) -> Json:
        if name in ("date", "time-millis"):
            return {"type": "int", "logicalType": name}
        if name.startswith(("time", "local")):
            return {"type": "long", "logicalType": name}
        if name == "uuid":
            return {"type": "string", "logicalType": "uuid"}
        if name == "fixed":
            return {
                "type": "fixed",
                "name": self._name("x"),
                "namespace": "hoodie.t",
                "size": self.draw.randint(1, 20),
            }
        if name == "enum":
            symbols = [f"S{i}" for i in range(self.draw.randint(1, 5))]
            return {"type": "enum", "name": self._name("e"), "namespace": "hoodie.t", "symbols": symbols}
        if name.endswith("-decimal"):
            precision = self.draw.randint(1, 38)
            decimal = {
                "logicalType": "decimal",
                "precision": precision,
                "scale": self.draw.randint(0, precision),
            }
            if name == "bytes-decimal":
                return {"type": "bytes", **decimal}
            least = decimal_size(precision)
            # Arrow reads decimals of up to 16 bytes from Parquet.
            size = max(least, min(16, least + self.draw.choice(self._padding)))
            return {
                "type": "fixed",
                "name": self._name("d"),
                "namespace": "hoodie.t",
                "size": size,
                **decimal,
            }
        return name

    # --- rows ---

    def rows(self, schema: Json, count: int) -> list[Value]:
        return [self.value(schema) for _ in range(count)]

    def value(self, kind: Json) -> Value:
        draw = self.draw
        if isinstance(kind, list):
            branch = draw.randrange(len(kind))
            return branch, self.value(kind[branch])
        name = kind if isinstance(kind, str) else kind["type"]
        logical = None if isinstance(kind, str) else kind.get("logicalType")
        if logical == "decimal":
            digits = draw.randint(0, kind["precision"])
            most = 10**digits - 1
            return draw.choice((most, -most, 0, draw.randint(-most, most)))
        if logical == "date":
            return draw.choice((*_DAYS, 0, -1, draw.randint(*_DAYS)))
        if logical == "time-millis":
            return draw.choice((0, 86_399_999, draw.randrange(86_400_000)))
        if logical == "time-micros":
            return draw.choice((0, 86_399_999_999, draw.randrange(86_400_000_000)))
        if logical in ("timestamp-micros", "local-timestamp-micros"):
            return draw.choice((*_MICROS, 0, -1, draw.randint(*_MICROS)))
        if logical in ("timestamp-millis", "local-timestamp-millis"):
            return draw.choice((*_MICROS, 0, -1, draw.randint(*_MICROS))) // 1000
        if logical == "uuid":
            return str(uuid.UUID(int=draw.getrandbits(128)))
        if name == "record":
            return tuple(self.value(f["type"]) for f in kind["fields"])
        if name == "array":
            return [self.value(kind["items"]) for _ in range(draw.choice((0, 0, 1, 2, 5)))]
        if name == "map":
            keys = draw.sample(_TEXTS, draw.choice((0, 0, 1, 2, 5)))
            return {k: self.value(kind["values"]) for k in keys}
        if name == "enum":
            return draw.choice(kind["symbols"])
        if name == "fixed":
            return draw.randbytes(kind["size"])
        return self._plain(name)

    def _plain(self, name: str) -> Value:
        draw = self.draw
        if name == "boolean":
            return draw.random() < 0.5
        if name == "int":
            return draw.choice((*_INTS, draw.randint(-(2**31), 2**31 - 1)))
        if name == "long":
            return draw.choice((*_LONGS, draw.randint(-(2**63), 2**63 - 1)))
        if name == "float":
            return struct.unpack("<f", struct.pack("<f", draw.choice((*_FLOATS, draw.uniform(-9e9, 9e9)))))[0]
        if name == "double":
            return draw.choice((*_DOUBLES, draw.uniform(-9e9, 9e9)))
        if name == "string":
            return "".join(draw.choices(_TEXTS, k=draw.choice((0, 1, 1, 3))))
        if name == "bytes":
            return draw.randbytes(draw.choice((0, 1, 7, 300)))
        assert name == "null", name
        return None


# --- Avro's binary encoding ---


def _long(value: int) -> bytes:
    n = (value << 1) ^ (value >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(kind: Json, value: Value) -> bytes:
    """A value's bytes."""
    if isinstance(kind, list):
        return _long(value[0]) + encode(kind[value[0]], value[1])
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "record":
        return b"".join(encode(f["type"], v) for f, v in zip(kind["fields"], value, strict=True))
    if name == "array":
        items = b"".join(encode(kind["items"], v) for v in value)
        return (_long(len(value)) + items if value else b"") + b"\0"
    if name == "map":
        items = b"".join(encode("string", k) + encode(kind["values"], v) for k, v in value.items())
        return (_long(len(value)) + items if value else b"") + b"\0"
    if not isinstance(kind, str) and kind.get("logicalType") == "decimal":
        size = kind["size"] if name == "fixed" else (value if value >= 0 else ~value).bit_length() // 8 + 1
        raw = value.to_bytes(size, "big", signed=True)
        return raw if name == "fixed" else _long(len(raw)) + raw
    if name == "enum":
        return _long(kind["symbols"].index(value))
    if name in ("int", "long"):
        return _long(value)
    if name in ("string", "bytes"):
        raw = value.encode() if name == "string" else value
        return _long(len(raw)) + raw
    plain = {"null": lambda: b"", "boolean": lambda: bytes([value]), "fixed": lambda: value,
             "float": lambda: struct.pack("<f", value), "double": lambda: struct.pack("<d", value)}  # fmt: skip
    return plain[name]()


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        out = self.data[self.at : self.at + count]
        assert len(out) == count, "bytes end too early"
        self.at += count
        return out

    def long(self) -> int:
        n = shift = 0
        while True:
            (b,) = self.take(1)
            n |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return (n >> 1) ^ -(n & 1)


def decode(kind: Json, data: bytes) -> Value:
    """The value that the bytes are, all of them."""
    source = _Bytes(data)
    out = _decode(kind, source)
    assert source.at == len(data), f"{len(data) - source.at} bytes left over"
    return out


def _blocks(source: _Bytes) -> Any:
    while count := source.long():
        if count < 0:
            source.long()
        yield from range(abs(count))


def _decode(kind: Json, source: _Bytes) -> Value:
    if isinstance(kind, list):
        branch = source.long()
        return branch, _decode(kind[branch], source)
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "record":
        return tuple(_decode(f["type"], source) for f in kind["fields"])
    if name == "array":
        return [_decode(kind["items"], source) for _ in _blocks(source)]
    if name == "map":
        return {_decode("string", source): _decode(kind["values"], source) for _ in _blocks(source)}
    if not isinstance(kind, str) and kind.get("logicalType") == "decimal":
        raw = source.take(kind["size"] if name == "fixed" else source.long())
        return int.from_bytes(raw, "big", signed=True)
    if name == "enum":
        return kind["symbols"][source.long()]
    if name in ("int", "long"):
        return source.long()
    if name == "string":
        return source.take(source.long()).decode()
    plain = {"null": lambda: None, "boolean": lambda: source.take(1) == b"\1",
             "bytes": lambda: source.take(source.long()), "fixed": lambda: source.take(kind["size"]),
             "float": lambda: struct.unpack("<f", source.take(4))[0],
             "double": lambda: struct.unpack("<d", source.take(8))[0]}  # fmt: skip
    return plain[name]()


# --- Arrow ---

_ARROW = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "bytes": pa.binary(), "date": pa.date32(), "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"), "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-millis": pa.timestamp("ms", "UTC"), "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"), "uuid": pa.string(),
}  # fmt: skip


def _others(kind: Json) -> list[int]:
    return [i for i, b in enumerate(kind) if b != "null"]


def arrow_type(kind: Json) -> pa.DataType:
    """The Arrow type of a column."""
    if isinstance(kind, list):
        others = _others(kind)
        if len(others) == 1:
            return arrow_type(kind[others[0]])
        return pa.struct([(f"member{n}", arrow_type(kind[i])) for n, i in enumerate(others)])
    if isinstance(kind, str):
        return _ARROW[kind]
    name, logical = kind["type"], kind.get("logicalType")
    if name == "record":
        return pa.struct([arrow_field(f["name"], f["type"]) for f in kind["fields"]])
    if name == "array":
        return pa.list_(arrow_field("element", kind["items"]))
    if name == "map":
        return pa.map_(pa.string(), arrow_field("value", kind["values"]))
    if logical == "decimal":
        return pa.decimal128(kind["precision"], kind["scale"])
    if name == "fixed":
        return pa.binary(kind["size"])
    return pa.string() if name == "enum" else _ARROW[logical]


def arrow_field(name: str, kind: Json) -> pa.Field:
    return pa.field(name, arrow_type(kind), isinstance(kind, list) and "null" in kind)


def arrow_schema(schema: Json) -> pa.Schema:
    """The Arrow schema of a record."""
    return pa.schema([arrow_field(f["name"], f["type"]) for f in schema["fields"]])


def arrow_table(schema: Json, rows: list[Value]) -> pa.Table:
    """The rows as columns."""
    columns = []
    for i, field in enumerate(schema["fields"]):
        values = [_for_arrow(field["type"], row[i]) for row in rows]
        columns.append(pa.array(values, arrow_type(field["type"])))
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema))


def _for_arrow(kind: Json, value: Value) -> Any:
    if isinstance(kind, list):
        branch, inner = value
        if kind[branch] == "null":
            return None
        others = _others(kind)
        out = _for_arrow(kind[branch], inner)
        return out if len(others) == 1 else {f"member{others.index(branch)}": out}
    if isinstance(kind, str):
        return value
    if kind["type"] == "record":
        return {f["name"]: _for_arrow(f["type"], v) for f, v in zip(kind["fields"], value, strict=True)}
    if kind["type"] == "array":
        return [_for_arrow(kind["items"], v) for v in value]
    if kind["type"] == "map":
        return [(k, _for_arrow(kind["values"], v)) for k, v in value.items()]
    if kind.get("logicalType") == "decimal":
        return Decimal(value).scaleb(-kind["scale"], _EXACT)
    return value


def comparable(value: Value) -> Value:
    """A value that equals another exactly if both are the same: NaN is, 0.0 and -0.0 are not."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("<d", value)
    if isinstance(value, (list, tuple)):
        return type(value)(comparable(v) for v in value)
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    return value
