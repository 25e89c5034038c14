"""Defaults of a reader's schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from avro_records import column, record

from hudi_format.avro import Decoder
from hudi_format.errors import MissingColumnError, SchemaError

Json = Any


DATE = {"type": "int", "logicalType": "date"}
COLOURS = {"type": "enum", "name": "e", "symbols": ["RED", "BLUE"]}
PAIR = {"type": "fixed", "name": "p", "size": 2}


def decimal(precision: int, scale: int, size: int = 0) -> Json:
    out = {"logicalType": "decimal", "precision": precision, "scale": scale}
    return {"type": "fixed", "name": "d", "size": size, **out} if size else {"type": "bytes", **out}


def with_default(kind: Json, default: Any) -> Json:
    return {"type": "record", "name": "r", "fields": [{"name": "added", "type": kind, "default": default}]}


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("int", -1, -1), ("long", 2**40, 2**40), ("float", 1, 1.0), ("double", 0.5, 0.5),
        ("boolean", True, True),
        ("string", "dé", "dé"), ("bytes", "\xff\0", b"\xff\0"), (PAIR, "\xff\0", b"\xff\0"),
        (COLOURS, "BLUE", "BLUE"),
        (["null", "int"], None, None), (["int", "null"], 5, 5), (["int", "null"], None, None),
        (["null", "int"], 5, 5),
        (DATE, 1, dt.date(1970, 1, 2)), (decimal(3, 1), "\x01\0", Decimal("25.6")),
        (decimal(3, 1, 2), "\xff\xff", Decimal("-0.1")),
        ({"type": "array", "items": ["null", "int"]}, [1, None], [1, None]),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "map", "values": "long"}, {"k": 1}, [("k", 1)]), ("double", "Infinity", float("inf")),
        (record("int", ["null", "string"]), {"f0": 1}, {"f0": 1, "f1": None}),
    ],
    ids=str,
)  # fmt: skip
def test_a_column_that_the_writer_does_not_have_gets_its_default(
    kind: Json, default: Any, value: Any
) -> None:
    schema = with_default(kind, default)
    if isinstance(kind, dict) and kind["type"] == "record":
        kind["name"] = "inner"
        kind["fields"][1]["default"] = None
    assert column(Decoder(record(), schema), b"", b"") == [value, value]
    lists = {"type": "array", "items": {"type": "record", "name": "e", "fields": []}}
    nested = {"type": "array", "items": {**schema, "name": "e"}}
    [[first, second]] = column(Decoder(record(lists), record(nested)), b"\x04\0")
    assert first == second == {"added": value}


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", None), ("int", 2**31), ("int", True), ("int", 1.5), ("long", "1"), ("string", 1),
        ("bytes", "Ā"), (PAIR, "a"),
        (PAIR, "aĀ"), (COLOURS, "GREEN"), ("boolean", 1), ("float", 1e300), ("double", "x"),
        ({"type": "array", "items": "int"}, {}),
        ({"type": "map", "values": "int"}, []), ({"type": "array", "items": "int"}, ["x"]),
        (["null", "int"], "x"),
    ],
    ids=str,
)  # fmt: skip
def test_a_default_that_is_no_value_of_its_type_is_refused(kind: Json, default: Any) -> None:
    with pytest.raises(SchemaError, match="added"):
        Decoder(record(), with_default(kind, default))


def test_a_nullable_column_without_default_is_null_and_another_is_missing() -> None:
    assert column(Decoder(record(), record(["null", "int"])), b"") == [None]
    with pytest.raises(MissingColumnError, match="f0"):
        Decoder(record(), record("int"))
