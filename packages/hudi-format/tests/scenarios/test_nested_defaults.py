"""Fields of records that must not be null and have a default: read from rows older than they are, and written again."""

import json

import numpy as np
import pyarrow as pa
import pytest

from hudi_format.avro.decoder import Decoder
from hudi_format.avro.encoder import Encoder
from hudi_format.errors import SchemaError
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.evolution import conform
from hudi_format.schema.field_defaults import with_defaults_of

KINDS = [
    ("boolean", False, False),
    ("int", 7, 7),
    ("long", -1, -1),
    ("double", 1.5, 1.5),
    ("string", "é", "é"),
    ("bytes", "\xff", b"\xff"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "int"}, {"k": 1}, [("k", 1)]),
    ({"type": "record", "name": "in", "fields": [{"name": "x", "type": "int"}]}, {"x": 3}, {"x": 3}),
]


def text_of(*fields):
    inner = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}, *fields]}
    return json.dumps(
        {
            "type": "record", "name": "t",
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "s", "type": ["null", inner], "default": None},
                {"name": "l", "type": {"type": "array", "items": "inner"}},
            ],
        }
    )  # fmt: skip


OLD = from_avro(text_of())
ROWS = [{"id": "x", "s": {"a": 1}, "l": [{"a": 2}, {"a": 3}]}, {"id": "y", "s": None, "l": []}]


@pytest.mark.parametrize(("kind", "default", "value"), KINDS, ids=[str(k)[:24] for k, _, _ in KINDS])
def test_rows_older_than_a_field_have_its_default(kind, default, value):
    new = from_avro(text_of({"name": "d", "type": kind, "default": default}))
    want = [
        {"id": "x", "s": {"a": 1, "d": value}, "l": [{"a": 2, "d": value}, {"a": 3, "d": value}]},
        {"id": "y", "s": None, "l": []},
    ]
    rows = pa.RecordBatch.from_pylist(ROWS, OLD)
    data, offsets = Encoder(text_of(), OLD).encode(rows)
    offsets = np.asarray(offsets)
    found = Decoder(text_of(), arrow_schema=new).decode(data, offsets[:-1], np.diff(offsets))
    assert found.to_pylist() == want
    assert found.schema == new
    stored = conform(pa.Table.from_batches([rows]), new)
    stored.validate(full=True)
    assert stored.to_pylist() == want


@pytest.mark.parametrize(("kind", "default", "value"), KINDS, ids=[str(k)[:24] for k, _, _ in KINDS])
def test_defaults_go_through_arrow(kind, default, value):
    text = text_of({"name": "d", "type": kind, "default": default})
    schema = from_avro(text)
    again = json.loads(to_avro(schema, "t"))
    inner = again["fields"][1]["type"][1]["fields"][1]
    assert inner["default"] == default
    assert from_avro(json.dumps(again)) == schema
    assert json.loads(with_defaults_of(to_avro(schema, "t"), text)) == again


def test_a_field_without_a_default_is_still_missed():
    new = from_avro(text_of({"name": "d", "type": "int"}))
    with pytest.raises(SchemaError, match=r"s\.d"):
        Decoder(text_of(), arrow_schema=new)
    with pytest.raises(SchemaError, match=r"s\.d"):
        conform(pa.Table.from_pylist(ROWS, OLD), new)
    wrong = from_avro(text_of({"name": "d", "type": "int", "default": "x"}))
    with pytest.raises(SchemaError):
        conform(pa.Table.from_pylist(ROWS, OLD), wrong)
