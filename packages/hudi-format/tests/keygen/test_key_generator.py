"""Which key generator a table or a write has, by class, type or fields, and what is refused."""

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    UnsupportedError,
)
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.record_keys import partition_paths, record_keys
from hudi_format.keygen.timestamp_based import (
    OUTPUT,
    TYPE,
)  # fmt: skip


def spec(keys, partitions="", class_name=None, **style):
    return KeySpec.from_class(
        class_name, key_fields=keys.split(","), partition_fields=partitions.split(","), **style
    )


@pytest.mark.req("KG-03")
@pytest.mark.parametrize(
    ("name", "keys", "partitions", "kind"),
    [
        (None, "a", "p", "SIMPLE"),
        ("", "a", "p", "SIMPLE"),
        (None, "a", "", "NON_PARTITION"),
        (None, "a,b", "", "NON_PARTITION"),
        (None, "a,b", "p", "COMPLEX"),
        (None, "a", "p,q", "COMPLEX"),
        ("org.apache.hudi.keygen.SimpleKeyGenerator", "a", "p", "SIMPLE"),
        ("org.apache.hudi.keygen.SimpleAvroKeyGenerator", "a", "p", "SIMPLE"),
        ("org.apache.hudi.keygen.ComplexKeyGenerator", "a", "p", "COMPLEX"),
        ("org.apache.hudi.keygen.NonpartitionedAvroKeyGenerator", "a", "", "NON_PARTITION"),
        ("simple", "a", "p", "SIMPLE"),
        ("NON_PARTITION", "a", "", "NON_PARTITION"),
    ],
)
def test_generators_are_told_by_class_by_type_or_from_the_fields(name, keys, partitions, kind):
    made = spec(keys, partitions, name)
    assert made.kind == kind
    assert (
        KeySpec.from_class(
            made.class_name, key_fields=made.key_fields, partition_fields=made.partition_fields
        )
        == made
    )


def test_options_take_the_class_before_the_type():
    fields = {"key_fields": ["a"], "partition_fields": ["p"]}
    assert KeySpec.from_class(None, **fields, type_name="COMPLEX").kind == "COMPLEX"
    assert KeySpec.from_class("SimpleKeyGenerator", **fields, type_name="COMPLEX").kind == "SIMPLE"
    assert KeySpec.from_class(None, **fields).kind == "SIMPLE"


@pytest.mark.parametrize("name", ["UuidKeyGenerator", "HOODIE_TABLE_METADATA", "com.example.Mine"])
def test_generators_that_are_not_built_are_refused_by_name(name):
    with pytest.raises(UnsupportedError, match=name):
        spec("a", "p", name)
    with pytest.raises(UnsupportedError, match=name):
        KeySpec.from_class(None, key_fields=["a"], partition_fields=["p"], type_name=name)


def test_fields_that_do_not_fit_the_generator_are_refused():
    assert spec("", "p").auto
    for keys, partitions in (("a,b", "p"), ("a", ""), ("a", "p,q")):
        with pytest.raises(ConflictingOptionError, match="SimpleKeyGenerator takes one"):
            spec(keys, partitions, "SimpleKeyGenerator")


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def dated(
    kind="EPOCHMILLISECONDS", *, name="TimestampBasedKeyGenerator", fields=("p",), keys=("id",), **options
):
    hive, encode = options.pop("hive", False), options.pop("encode", False)
    given = {TYPE: kind, OUTPUT: "yyyy/MM/dd HH"} | {k.replace("__", "."): v for k, v in options.items()}
    return KeySpec.from_class(
        name, key_fields=keys, partition_fields=fields, hive_style=hive, url_encode=encode, options=given
    )


def longs(*values):
    return pa.array(values, pa.int64())


@pytest.mark.req("KG-03")
def test_a_custom_generator_takes_each_field_in_its_own_way():
    made = dated(name="CustomKeyGenerator", fields=("city:SIMPLE", "p:timestamp"), **{OUTPUT: "yyyyMMdd"})
    table = pa.table({"city": ["a", None, ""], "p": longs(1709632800123, -1, None), "id": ["x", "y", "z"]})
    assert partition_paths(table, made).to_pylist() == [
        "a/20240305", "__HIVE_DEFAULT_PARTITION__/19691231", "__HIVE_DEFAULT_PARTITION__/19700101",
    ]  # fmt: skip
    assert made.class_name == "org.apache.hudi.keygen.CustomKeyGenerator"
    assert record_keys(table, made).to_pylist() == ["x", "y", "z"]
    none = KeySpec.from_class("CustomKeyGenerator", key_fields=["id"], partition_fields=[""])
    assert partition_paths(table, none).to_pylist() == ["", "", ""]
    for field in ("p", "p:OTHER", ":SIMPLE"):
        with pytest.raises(InvalidOptionError, match="has no type"):
            dated(name="CustomKeyGenerator", fields=(field,))


def test_the_global_delete_generator_names_even_a_single_field():
    made = KeySpec.from_class("GlobalDeleteKeyGenerator", key_fields=["id"], partition_fields=["p"])
    table = pa.table({"id": ["x", "y"], "p": ["1", "2"]})
    assert record_keys(table, made).to_pylist() == ["id:x", "id:y"]
    assert partition_paths(table, made).to_pylist() == ["", ""]


def test_the_sql_generator_stands_for_the_one_that_the_fields_mean():
    name = "org.apache.spark.sql.hudi.command.SqlKeyGenerator"
    made = KeySpec.from_class(name, key_fields=["a", "b"], partition_fields=["p"])
    assert made.kind == "COMPLEX"
    origin = {"hoodie.sql.origin.keygen.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    assert (
        KeySpec.from_class(name, key_fields=["a"], partition_fields=["p"], options=origin).kind == "COMPLEX"
    )
