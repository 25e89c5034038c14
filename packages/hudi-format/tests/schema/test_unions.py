import json
from typing import Any

import pytest

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.unions import number_unions, schema_of_unions, union_columns, with_unions_of

SEVERAL = ["null", "int", "string"]
NUMBERS = ["null", "long", "int"]


def record(*types: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "t_record",
        "namespace": "hoodie.t",
        "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(types)],
    }


def struct(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}], **more}


@pytest.mark.parametrize("wrap", [
    lambda u: u,
    lambda u: ["null", struct("x", {"type": "map", "values": u})],
    lambda u: {"type": "array", "items": u},
    lambda u: {"type": {"type": "array", "items": u}},
])  # fmt: skip
def test_unions_are_found_wherever_they_are(wrap: Any) -> None:
    text = json.dumps(record("int", wrap(SEVERAL), ["null", "int"], wrap(NUMBERS)))
    assert union_columns(text) == ["f1", "f3"]
    assert number_unions(text) == ["f3"]
    assert number_unions(
        json.dumps(record(["boolean", {"type": "array", "items": ["float", "double"]}]))
    ) == ["f0"]


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"fields": 1}', '{"fields": [{"name": "a"}]}', "{", '{"fields": ["a"]}']
)
def test_what_is_no_schema_of_a_record_is_damaged(text: str) -> None:
    with pytest.raises(CorruptFileError):
        union_columns(text)


def test_a_schema_made_of_arrows_has_the_unions_of_the_one_before() -> None:
    """Also of records that another column defines, which is gone or comes later."""
    gone = struct("inner", ["null", "int"])
    former = record("string", gone, SEVERAL, ["null", "boolean", "inner"], ["inner", "int"])
    now = from_avro(json.dumps(former))
    arrow = now.remove(4).remove(1).insert(0, now.field("f4"))
    text = with_unions_of(to_avro(arrow, "t"), json.dumps(former))
    assert from_avro(text) == arrow
    kept = {f["name"]: f["type"] for f in json.loads(text)["fields"]}
    assert list(kept) == ["f4", "f0", "f2", "f3"]
    assert kept["f2"] == SEVERAL
    assert kept["f4"] == [{**gone, "namespace": "hoodie.t"}, "int"]  # where it first comes up
    assert kept["f3"] == ["null", "boolean", "hoodie.t.inner"]


def test_columns_without_unions_are_those_of_arrow() -> None:
    former = json.dumps(record("int", struct("x", "int")))
    text = to_avro(from_avro(former), "t")
    assert with_unions_of(text, former) == text
    assert schema_of_unions(former) == ""


def test_a_column_that_may_be_null_by_now_has_null_first() -> None:
    former = record(["int", "string"], SEVERAL)
    arrow = from_avro(json.dumps(former))
    arrow = arrow.set(0, arrow.field(0).with_nullable(True))
    field, other = json.loads(with_unions_of(to_avro(arrow, "t"), json.dumps(former)))["fields"]
    assert field == {"name": "f0", "type": ["null", "int", "string"], "default": None}
    assert other == former["fields"][1]


def test_a_union_whose_types_change_is_refused() -> None:
    former = json.dumps(record(SEVERAL))
    other = to_avro(from_avro(json.dumps(record(["null", "long", "string"]))), "t")
    with pytest.raises(SchemaError, match="f0 has unions of several types") as e:
        with_unions_of(other, former)
    assert e.value.details["column"] == "f0"


def test_the_schema_of_unions_stands_alone() -> None:
    inner = struct("inner", "int", namespace="other.space")
    text = schema_of_unions(json.dumps(record(inner, "int", ["null", "other.space.inner", "string"])))
    assert from_avro(text) == from_avro(json.dumps(record("int", "int", ["null", inner, "string"]))).remove(
        0
    ).remove(0)
