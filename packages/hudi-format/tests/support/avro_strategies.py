"""Hypothesis strategies: Avro schemas that columns can hold, values of them, and later versions of them.

Values are what the bytes say, without logical types: `plain` takes the annotations off a schema, so that
fastavro reads and writes them as numbers and bytes, and `stored` does the same to Arrow columns.
"""

from __future__ import annotations

import copy
import decimal
import struct
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

Json = Any

_names = st.from_regex(r"\A[a-z_][a-z0-9_]{0,5}\Z")
_flat: list[Json] = [
    "boolean", "int", "long", "float", "double", "string", "bytes",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
]  # fmt: skip


def _bytes_of(precision: int) -> int:
    return int(10**precision - 1).bit_length() // 8 + 1


@st.composite
def _decimals(draw: st.DrawFn) -> Json:
    precision = draw(st.integers(1, 76))
    out = {"logicalType": "decimal", "precision": precision, "scale": draw(st.integers(0, precision))}
    if draw(st.booleans()):
        return {"type": "bytes", **out}
    return {"type": "fixed", "name": "", "size": _bytes_of(precision) + draw(st.integers(0, 3)), **out}


_leaves = st.one_of(
    st.sampled_from(_flat),
    _decimals(),
    st.integers(1, 20).map(lambda n: {"type": "fixed", "name": "", "size": n}),
    st.lists(st.from_regex(r"\A[A-Z]{1,4}\Z"), min_size=1, max_size=4, unique=True).map(
        lambda s: {"type": "enum", "name": "", "symbols": s}
    ),
)


def _optional(kinds: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.tuples(kinds, st.integers(0, 3)).map(
        lambda p: p[0] if p[1] == 0 else [p[0], "null"] if p[1] == 1 else ["null", p[0]]
    )


def _records(kinds: st.SearchStrategy[Json], least: int = 1, most: int = 3) -> st.SearchStrategy[Json]:
    fields = st.tuples(_names, _optional(kinds)).map(lambda f: {"name": f[0], "type": f[1]})
    return st.lists(fields, min_size=least, max_size=most, unique_by=lambda f: f["name"]).map(
        lambda fs: {"type": "record", "name": "", "fields": fs}
    )


_types = st.recursive(
    _leaves,
    lambda kinds: st.one_of(
        _optional(kinds).map(lambda k: {"type": "array", "items": k}),
        _optional(kinds).map(lambda k: {"type": "map", "values": k}),
        _records(kinds),
    ),
    max_leaves=5,
)


def named(node: Json, numbers: Any = None) -> Json:
    """The schema with a name of its own for each record, fixed type and enumeration."""
    numbers = count() if numbers is None else numbers
    if isinstance(node, list):
        return [named(b, numbers) for b in node]
    if not isinstance(node, dict):
        return node
    out = dict(node)
    if out.get("name") == "":
        out["name"] = f"n{next(numbers)}"
    for word in ("items", "values", "type"):
        if isinstance(out.get(word), (dict, list)):
            out[word] = named(out[word], numbers)
    if "fields" in out:
        out["fields"] = [named(f, numbers) for f in out["fields"]]
    return out


schemas = _records(_types, 1, 5).map(named)


def plain(node: Json) -> Json:
    """The schema without logical types."""
    if isinstance(node, list):
        return [plain(b) for b in node]
    if not isinstance(node, dict):
        return node
    out = {k: v for k, v in node.items() if k not in ("logicalType", "precision", "scale")}
    for word in ("items", "values", "type"):
        if isinstance(out.get(word), (dict, list)):
            out[word] = plain(out[word])
    if "fields" in out:
        out["fields"] = [plain(f) for f in out["fields"]]
    return out


def values(node: Json) -> st.SearchStrategy[Any]:
    """Values of a type: numbers, bytes, texts, lists and dictionaries."""
    if isinstance(node, list):
        return st.one_of(*(values(b) for b in node))
    if not isinstance(node, dict):
        return _values(node, {})
    return _values(node["type"], node)


def _values(kind: str, node: Json) -> st.SearchStrategy[Any]:
    if kind == "record":
        return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in node["fields"]})
    if kind == "array":
        return st.lists(values(node["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values(node["values"]), max_size=3)
    if kind == "enum":
        return st.sampled_from(node["symbols"])
    if node.get("logicalType") == "decimal":
        most = 10 ** node["precision"] - 1
        if kind == "fixed":
            return st.integers(-most, most).map(lambda n: n.to_bytes(node["size"], "big", signed=True))
        return st.integers(-most, most).map(shortest)
    if kind == "fixed":
        return st.binary(min_size=node["size"], max_size=node["size"])
    if node.get("logicalType", "").startswith("time-"):  # Arrow has no times of day past 24 hours
        return st.integers(0, 86_400_000 - 1)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(max_size=20),
        "bytes": st.binary(max_size=20),
    }[kind]


def shortest(number: int) -> bytes:
    """A number as Java's BigInteger.toByteArray gives it."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


@st.composite
def rows_of(draw: st.DrawFn, most: int = 6) -> tuple[Json, list[Any]]:
    """A schema, and rows of it."""
    schema = draw(schemas)
    return schema, draw(st.lists(values(schema), max_size=most))


_UP = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"],
       "string": ["bytes"]}  # fmt: skip


@st.composite
def later(draw: st.DrawFn, node: Json) -> Json:
    """A later version of a type: fields added, dropped, moved and renamed, numbers promoted, nulls allowed."""
    if isinstance(node, list):
        out = [draw(later(b)) for b in node]
        return out[::-1] if draw(st.booleans()) else out
    if isinstance(node, str):
        return draw(st.sampled_from([node, *_UP.get(node, [])]))
    out = copy.deepcopy(node)
    for word in ("items", "values"):
        if word in out:
            out[word] = draw(later(node[word]))
    if "fields" not in out:
        return out
    fields = []
    for f in node["fields"]:
        what = draw(st.sampled_from(["keep", "keep", "drop", "alias", "null"]))
        if what == "drop" and len(node["fields"]) > 1:
            continue
        kind = draw(later(f["type"]))
        if what == "null" and not isinstance(kind, list):
            kind = ["null", kind]
        fields.append({"name": f["name"], "type": kind})
        if what == "alias":
            fields[-1] = {"name": f"new_{f['name']}", "type": kind, "aliases": ["never_there", f["name"]]}
    fields = fields or [{"name": node["fields"][0]["name"], "type": node["fields"][0]["type"]}]
    for i, (kind, default) in enumerate(draw(st.lists(st.sampled_from(_NEW), max_size=2))):
        fields.append({"name": f"added{i}", "type": kind, "default": default})
    out["fields"] = draw(st.permutations(fields))
    return out


_NEW: list[tuple[Json, Any]] = [
    (["null", "string"], None), ("int", -5), ("string", "dé"), (["long", "null"], 7),
    ("double", 1.5), ("boolean", True), ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": ["null", "string"]}, {}), (["null", {"type": "array", "items": "long"}], None),
]  # fmt: skip


def stored(column: Any) -> Any:
    """An Arrow array with what Avro's bytes say: numbers for dates, times and moments."""
    return column.cast(_stored_type(column.type))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored_type(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_stored_type(kind.item_type)))
    if pt.is_struct(kind):
        return pa.struct([f.with_type(_stored_type(f.type)) for f in kind])
    if pt.is_date(kind) or pt.is_time32(kind):
        return pa.int32()
    return pa.int64() if pt.is_timestamp(kind) or pt.is_time64(kind) else kind


def as_arrow(value: Any, node: Json) -> Any:
    """A value of `values` as `to_pylist` of a stored column gives it."""
    if value is None:
        return None
    if isinstance(node, list):
        return as_arrow(value, next(b for b in node if b != "null"))
    kind = node if isinstance(node, str) else node["type"]
    if kind == "record":
        return {f["name"]: as_arrow(value[f["name"]], f["type"]) for f in node["fields"]}
    if kind == "array":
        return [as_arrow(v, node["items"]) for v in value]
    if kind == "map":
        return [(k, as_arrow(v, node["values"])) for k, v in value.items()]
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if kind == "double":
        return float(value)
    if isinstance(node, dict) and node.get("logicalType") == "decimal":
        number = int.from_bytes(value, "big", signed=True)
        return decimal.Decimal(number).scaleb(-node["scale"], decimal.Context(prec=80))
    return value
