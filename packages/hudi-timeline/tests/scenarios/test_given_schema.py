"""Rows that take the schema which the options give, in an option or in the schema provider's files."""

import json

import pyarrow as pa
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    InvalidOptionError,
    MissingColumnError,
    MissingFileError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.storage.local import LocalStorage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute

GIVEN = "hoodie.write.schema"
FILES = "hoodie.deltastreamer.schemaprovider."  # of the streamer's older name
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = pa.table({"v": pa.array([7], pa.int32()), "id": ["a"], "ts": pa.array([1], pa.int64())})


def column(name, kind, *, null=True, **more):
    return {
        "name": name,
        "type": ["null", kind] if null else kind,
        **({"default": None} if null else {}),
        **more,
    }


def avro(*columns):
    return json.dumps({"type": "record", "name": "row", "fields": list(columns)})


KEYS = (column("id", "string", null=False), column("ts", "long"))
SCHEMA = avro(*KEYS, column("v", "double"), column("note", "string"))


def write(storage, rows=ROWS, **options):
    given = {**OPTIONS, **{k.replace("__", "."): v for k, v in options.items()}}
    return execute(LocalEngine(), storage, rows, given)


@pytest.fixture
def storage(tmp_path):
    """A place without a table."""
    return LocalStorage(str(tmp_path / "table"))


@pytest.fixture(params=["option", "source file", "target file"])
def given(request, storage, tmp_path):
    """The options that give a schema, in each of the ways."""

    def options(text):
        if request.param == "option":
            return {GIVEN: text}
        (tmp_path / "row.avsc").write_text(text)
        return {FILES + request.param.split()[0] + ".schema.file": str(tmp_path / "row.avsc")}

    return options


@pytest.mark.req("SE-06")
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_rows_take_the_columns_and_types_of_the_given_schema(storage, given, operation):
    write(storage, **given(SCHEMA), hoodie__datasource__write__operation=operation)
    table = HudiTable._of(storage)
    assert table.read(meta_columns=False).to_arrow().to_pylist() == [
        {"id": "a", "ts": 1, "v": 7.0, "note": None}
    ]
    assert table.schema.field("id").nullable is False
    # Without it the rows' own schema counts, which must go with the table's then.
    with pytest.raises(MissingColumnError, match="note"):
        write(storage)
    more = given(avro(*KEYS, column("v", "double"), column("note", "string"), column("n", "int")))
    assert [str(c) for c in write(storage, **more).schema_changes] == ["n added as int32"]


REFUSED = [
    (avro(*KEYS), SchemaError, "no column v"),
    (avro(*KEYS, column("v", "boolean")), SchemaError, "int32 in the rows and bool"),
    (avro(column("id", "string"), column("ts", "int"), column("v", "int")), SchemaError, "int64 in the rows"),
    (avro(*KEYS, column("v", "int"), column("n", "int", null=False)), MissingColumnError, "lack n"),
    (
        avro(*KEYS, column("v", "int"), {"name": "n", "type": ["int", "null"], "default": 3}),
        MissingColumnError,
        "lack n",
    ),
    ("{}", InvalidOptionError, "no schema of rows"),
    ("{", InvalidOptionError, "no schema of rows"),
    ('"string"', InvalidOptionError, "no schema of rows"),
]


@pytest.mark.req("SE-06")
@pytest.mark.parametrize(("text", "error", "says"), REFUSED)
def test_what_the_given_schema_does_not_hold_is_refused_before_anything_is_written(
    storage, given, text, error, says
):
    with pytest.raises(error, match=says) as e:
        write(storage, **given(text), hudi__write__types="data")
    assert e.value.remedy
    assert storage.list("") == []


def test_a_column_of_the_key_must_be_in_the_rows_themselves(storage):
    with pytest.raises(MissingColumnError, match="record key column 'id'"):
        write(storage, ROWS.drop_columns(["id"]), **{GIVEN: SCHEMA})


def test_nulls_where_the_given_schema_has_none_are_refused(storage):
    rows = ROWS.set_column(1, "id", pa.array(["a"])).append_column("note", pa.nulls(1, pa.string()))
    with pytest.raises(SchemaError, match="note"):
        write(storage, rows, **{GIVEN: avro(*KEYS, column("v", "int"), column("note", "string", null=False))})
    assert storage.list("") == []


def test_a_schema_file_that_is_not_there_and_contradictions_are_refused(storage, tmp_path):
    gone = {FILES + "source.schema.file": str(tmp_path / "gone.avsc")}
    with pytest.raises(MissingFileError, match=r"source\.schema\.file"):
        write(storage, **gone)
    with pytest.raises(ConflictingOptionError, match=r"write\.schema"):
        write(storage, **gone, **{GIVEN: SCHEMA})
    with pytest.raises(UnsupportedError, match="a schema registry"):
        write(storage, **{FILES + "registry.url": "http://localhost:8081/subjects/t/versions/latest"})


VECTOR = {
    "type": "fixed", "name": "vector", "size": 8, "logicalType": "vector", "dimension": 2, "elementType": "FLOAT",
    "storageBacking": "FIXED_BYTES",
}  # fmt: skip


def test_own_types_of_apache_hudi_are_not_written_as_others(storage, tmp_path):
    text = avro(*KEYS, column("v", VECTOR))
    with pytest.raises(UnsupportedError, match=r"write\.schema has .* v \(vector\)"):
        write(storage, ROWS, **{GIVEN: text})
    assert storage.list("") == []
    storage.create(".hoodie/hoodie.properties", (TABLE + f"hoodie.table.create.schema={text}\n").encode())
    with pytest.raises(UnsupportedError, match=r"not written: v \(vector\)"):
        write(storage, ROWS)


TABLE = """hoodie.table.name=t
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=6
hoodie.timeline.layout.version=1
hoodie.table.recordkey.fields=id
hoodie.table.precombine.field=ts
hoodie.table.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator
"""
