"""Avro schemas parsed, and what is refused as none."""

from __future__ import annotations

from typing import Any

import pytest
from avro_records import column, decode, record

from hudi_format.avro import Decoder
from hudi_format.errors import CorruptFileError, SchemaError, UnsupportedError

Json = Any


def test_a_type_that_holds_itself_is_no_column_but_can_be_passed_over() -> None:
    node = {
        "type": "record",
        "name": "n",
        "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "n"]}],
    }
    schema = record(node, "int")
    raw = b"\x02\x02" * 3 + b"\x02\0" + b"\x08"
    assert column(Decoder(schema, columns=["f1"]), raw) == [4]
    with pytest.raises(SchemaError, match="recursive type"):
        Decoder(schema)


@pytest.mark.parametrize(
    "schema",
    [
        "", "[]", '"int"', "{}", record("unheard"), record([]), record([["int"]]), record({"type": "array"}), record(5),
        record({"type": "enum", "name": "e", "symbols": []}),
        record({"type": "enum", "name": "e", "symbols": ["A", "A"]}),
        record({"type": "fixed", "name": "f", "size": -1}), record({"type": "fixed", "name": "f"}),
        record({"type": "fixed", "size": 1}),
        {"type": "record", "name": "r"}, {"type": "record", "name": "r", "fields": [{"name": "a"}]}, "[" * 100_000,
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}] * 2},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "aliases": "b"}]},
    ],
    ids=lambda s: str(s)[:60],
)  # fmt: skip
def test_what_is_no_schema_is_corrupt(schema: Json) -> None:
    with pytest.raises(CorruptFileError):
        Decoder(schema)


def test_a_schema_that_unfolds_without_measure_is_refused() -> None:
    fields = [{"name": "f", "type": "long"}]
    for i in range(60):  # two to the power of 60 longs
        inner = {"type": "record", "name": f"n{i}", "fields": fields}
        fields = [{"name": "f", "type": inner}, {"name": "g", "type": f"n{i}"}]
    schema = {"type": "record", "name": "r", "fields": [*fields, {"name": "x", "type": "int"}]}
    with pytest.raises(UnsupportedError, match="types"):
        Decoder(schema)
    with pytest.raises(CorruptFileError):
        decode(Decoder(schema, {**record("int"), "fields": [{"name": "x", "type": "int"}]}), b"\0" * 1000)


def test_a_schema_nested_without_end_is_corrupt() -> None:
    kind: Json = "int"
    for _ in range(300):
        kind = {"type": "array", "items": kind}
    with pytest.raises(CorruptFileError, match="deep"):
        Decoder(record(kind))
