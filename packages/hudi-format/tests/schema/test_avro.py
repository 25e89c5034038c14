from __future__ import annotations

import json
import zipfile
from typing import Any

import golden_tables
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_strategies import stored_schemas
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.errors import CorruptFileError, SchemaError
from hudi_format.schema.arrow import equal_types, normalize_schema
from hudi_format.schema.avro import decimal_bytes, from_avro, record_name, to_avro
from hudi_format.schema.meta_fields import with_meta, without_meta

GOLDEN = golden_tables.ROOT / "v6"


@given(stored_schemas)
def test_a_stored_schema_is_the_same_after_avro(schema: pa.Schema) -> None:
    text = to_avro(schema, "t")
    assert from_avro(text) == schema
    assert to_avro(from_avro(text), "t") == text


@given(stored_schemas)
def test_normalising_leaves_a_stored_schema_alone(schema: pa.Schema) -> None:
    assert normalize_schema(schema) == schema


def golden_commits(name: str) -> list[str]:
    with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
        files = [n for n in archive.namelist() if n.startswith(f"{name}/.hoodie/2") and n.endswith("commit")]
        texts = [json.loads(archive.read(n))["extraMetadata"].get("schema") for n in files]
    return [t for t in texts if t]


def golden_schemas() -> list[str]:
    found = []
    for name in ("all_types_cow", "schema_evolution_add_promote", "cow_partitioned", "virtual_keys"):
        texts = golden_commits(name)
        assert texts
        found += texts
    return found


@pytest.mark.req("SE-01", "SE-07")
def test_the_schemas_of_apache_hudis_commits_come_back_byte_for_byte() -> None:
    for text in golden_schemas():
        name = json.loads(text)["name"].removesuffix("_record")
        assert to_avro(from_avro(text), name) == text


def test_apache_hudis_types_are_those_it_answers_with() -> None:
    for name in ("all_types_cow", "schema_evolution_add_promote"):
        schema = from_avro(golden_commits(name)[-1])
        expected = pq.read_schema(GOLDEN / f"{name}.expected" / "snapshot.parquet")
        assert sorted(schema.names) == sorted(without_meta(expected).names)
        for field in schema:
            assert equal_types(field.type, expected.field(field.name).type), field.name


def test_meta_columns_have_the_documentation_that_apache_hudi_gives_them() -> None:
    fields = json.loads(to_avro(with_meta(pa.schema([pa.field("a", pa.int32())])), "t"))["fields"]
    assert json.dumps(fields[0]) == json.dumps(
        {"name": "_hoodie_commit_time", "type": ["null", "string"], "doc": "", "default": None}
    )
    assert "doc" not in fields[5]


@pytest.mark.parametrize(
    ("table", "sanitised"),
    [("t1", "t1"), ("a-b", "a__b"), ("1x", "__x"), ("a.b c", "a__b__c"), ("é", "__"), ("a__b", "a__b")],
)
def test_record_names_are_those_of_apache_hudi(table: str, sanitised: str) -> None:
    # As HoodieAvroUtils.sanitizeName of 0.15.0 answered.
    assert record_name(table) == (f"{sanitised}_record", f"hoodie.{sanitised}")


def test_decimals_take_the_fewest_bytes() -> None:
    sizes = {
        1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 9: 4, 10: 5, 11: 5, 12: 6, 14: 6, 15: 7, 16: 7, 17: 8, 18: 8, 19: 9,
        21: 9, 22: 10, 23: 10, 36: 16, 38: 16,
    }  # fmt: skip
    assert {p: decimal_bytes(p) for p in sizes} == sizes


def record(*fields: Any, **extra: Any) -> str:
    listed = [{"name": f"f{i}", "type": t} for i, t in enumerate(fields)]
    return json.dumps({"type": "record", "name": "r", "fields": listed, **extra})


NAMED = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}


@pytest.mark.parametrize(
    ("avro", "arrow", "nullable"),
    [
        ("int", pa.int32(), False),
        (["null", "long"], pa.int64(), True),
        (["long", "null"], pa.int64(), True),
        (["long"], pa.int64(), False),
        ({"type": "string", "avro.java.string": "String"}, pa.string(), False),
        ({"type": "string", "logicalType": "uuid"}, pa.string(), False),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string(), False),
        ({"type": "fixed", "name": "f", "size": 16}, pa.binary(16), False),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2), False),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, pa.decimal128(9, 0), False),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC"), False),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), False),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms"), False),
        ({"type": "long", "logicalType": "something-new"}, pa.int64(), False),
        ({"type": {"type": "long", "logicalType": "timestamp-micros"}}, pa.timestamp("us", "UTC"), False),
        ({"type": "array", "items": "int"}, pa.list_(pa.field("element", pa.int32(), False)), False),
        ({"type": "map", "values": ["int", "null"]}, pa.map_(pa.string(), pa.int32()), False),
    ],
    ids=str,
)
def test_other_writers_types_are_understood(avro: Any, arrow: pa.DataType, nullable: bool) -> None:
    assert from_avro(record(avro)) == pa.schema([pa.field("f0", arrow, nullable)])


@pytest.mark.parametrize("namespace", [None, "a.b"])
def test_a_type_that_was_defined_before_can_be_named(namespace: str | None) -> None:
    extra = {"namespace": namespace} if namespace else {}
    full = f"{namespace}.inner" if namespace else "inner"
    schema = from_avro(record(NAMED, "inner", full, {"type": "inner"}, **extra))
    assert schema.types == [pa.struct([pa.field("x", pa.int32(), False)])] * 4


@pytest.mark.parametrize(
    ("avro", "kind", "nullable"),
    [
        (["null", "int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())]), True),
        (["string", "null", "int"], pa.struct([("member0", pa.string()), ("member1", pa.int32())]), True),
        (["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())]), False),
        (["null", "long", "int"], pa.int64(), True),
        (["float", "double"], pa.float64(), False),
        (["int", "float"], pa.struct([("member0", pa.int32()), ("member1", pa.float32())]), False),
        (
            ["null", {"type": "array", "items": ["int", "long"]}, "boolean"],
            pa.struct([("member0", pa.list_(pa.field("element", pa.int64(), False))), ("member1", pa.bool_())]),
            True,
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_union_of_several_types_has_a_member_for_each_but_of_two_numbers(
    avro: Any, kind: pa.DataType, nullable: bool
) -> None:
    assert from_avro(record(avro)).field(0) == pa.field("f0", kind, nullable)


@pytest.mark.parametrize(
    ("avro", "says"),
    [
        ("null", "null"),
        (["null"], "union of null only"),
        ({"type": "int", "logicalType": "time-millis"}, "time-millis"),
        ({"type": "long", "logicalType": "time-micros"}, "time-micros"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 1}, "39 digits"),
        ("r", "recursive type"),
    ],
    ids=str,
)
def test_types_without_a_column_type_are_refused_with_their_place(avro: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says) as e:
        from_avro(record("int", {"type": "array", "items": avro}))
    assert e.value.details["column"] == "f1.element"


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '"int"', "{}", '{"type":"record"}', '{"type":"record","name":"r"}',
        '{"type":"record","name":"r","fields":[1]}', '{"type":"record","name":"r","fields":[{"name":"a"}]}',
        record("unheard"), record({"type": 5}), record(7), record({"type": "fixed", "name": "x", "size": -1}),
        record({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}),
        '{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        "[" * 100_000,
    ],
    ids=lambda t: t[:40],
)  # fmt: skip
def test_text_that_is_no_schema_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError):
        from_avro(text)


def test_a_schema_nested_without_end_is_refused() -> None:
    kind: Any = "int"
    for _ in range(300):
        kind = {"type": "array", "items": kind}
    with pytest.raises(CorruptFileError, match="nested"):
        from_avro(record(kind))


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["int", "null", "record", "array", "fixed", "x"]),
    lambda c: (
        st.lists(c, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "fields", "items", "values", "size", "logicalType", "precision", "scale"]
            ),
            c,
            max_size=5,
        )
    ),
)


@given(_JSON)
def test_any_json_gives_a_schema_or_a_typed_error(node: Any) -> None:
    try:
        from_avro(record(node))
    except (CorruptFileError, SchemaError):
        return


def test_a_type_without_an_avro_form_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"s\.a .*uint64"):
        to_avro(pa.schema([pa.field("s", pa.struct([("a", pa.uint64())]))]), "t")
