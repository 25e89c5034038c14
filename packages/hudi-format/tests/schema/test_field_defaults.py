import json

import pyarrow as pa
import pytest

from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.field_defaults import with_defaults_of


def record(*fields):
    return {
        "type": "record",
        "name": "t",
        "fields": [dict(zip(("name", "type", "default"), f, strict=False)) for f in fields],
    }


def kept(new, old):
    return [
        (f["type"], f.get("default"))
        for f in json.loads(with_defaults_of(json.dumps(new), json.dumps(old)))["fields"]
    ]


TEXT = ["null", "string"]


@pytest.mark.req("SE-01")
def test_a_default_that_is_not_null_stays_with_its_type_first():
    old = record(("a", ["string", "null"], "x"), ("b", "long", 7), ("c", TEXT, None), ("gone", "long", 1))
    new = record(("a", TEXT, None), ("b", "long"), ("c", TEXT, None), ("new", TEXT, None))
    assert kept(new, old) == [(["string", "null"], "x"), ("long", 7), (TEXT, None), (TEXT, None)]


def test_a_wider_number_keeps_its_default_and_another_type_does_not():
    old = record(
        ("a", "int", 7),
        ("b", "int", 7),
        ("c", {"type": "string", "avro.java.string": "String"}, "x"),
        ("d", "double", 0.5),
    )
    new = record(
        ("a", ["null", "long"], None), ("b", TEXT, None), ("c", TEXT, None), ("d", ["null", "float"], None)
    )
    assert kept(new, old) == [
        (["long", "null"], 7),
        (TEXT, None),
        (["string", "null"], "x"),
        (["null", "float"], None),
    ]


def test_defaults_inside_of_records_lists_and_maps():
    def nested(inner):
        return record(
            ("l", ["null", {"type": "array", "items": ["null", inner]}], None),
            ("m", {"type": "map", "values": inner}),
        )

    new = json.loads(
        with_defaults_of(
            json.dumps(nested(record(("x", ["null", "long"], None)))),
            json.dumps(nested(record(("x", "long", 3)))),
        )
    )
    assert new["fields"][0]["type"][1]["items"][1]["fields"][0] == {
        "name": "x",
        "type": ["long", "null"],
        "default": 3,
    }
    assert new["fields"][1]["type"]["values"]["fields"][0]["default"] == 3


def test_a_schema_without_any_stays_as_it_is_and_one_with_them_is_read_alike():
    schema = pa.schema(
        [
            ("a", pa.string()),
            ("n", pa.int64()),
            ("d", pa.decimal128(9, 2)),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )
    text = to_avro(schema, "t")
    assert with_defaults_of(text, text) is text
    old = json.loads(text)
    for field, value in zip(old["fields"], ("x", 1, "\u0001", {"x": 3}), strict=True):
        field |= {"type": [field["type"][1], "null"], "default": value}
    made = with_defaults_of(text, json.dumps(old))
    assert [f["default"] for f in json.loads(made)["fields"]] == ["x", 1, "\u0001", {"x": 3}]
    assert from_avro(made) == from_avro(text)


@pytest.mark.parametrize(
    "former", ["{", "[]", "3", '{"fields": [{"type": "long"}]}', '{"fields": [{"name": "a"}]}']
)
def test_what_is_no_record_is_an_error_that_callers_expect(former):
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
        with_defaults_of(json.dumps(record(("a", TEXT, None))), former)
