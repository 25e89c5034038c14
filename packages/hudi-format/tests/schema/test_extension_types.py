"""Vectors of Apache Hudi 1.2: fixed bytes in Avro and in files, lists of numbers to a reader."""

import json
import struct

import pyarrow as pa
import pytest

from hudi_format.avro.decoder import Decoder
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.schema.avro import from_avro
from hudi_format.schema.casts import convert
from hudi_format.schema.extension_types import own_types

KINDS = {"FLOAT": (pa.float32(), 4), "DOUBLE": (pa.float64(), 8), "INT8": (pa.int8(), 1)}


def vector(count, element="FLOAT", **more):
    size = count * KINDS[element][1]
    return {
        "type": "fixed", "name": f"vector_{element}_{count}", "size": size, "logicalType": "vector",
        "dimension": count, "elementType": element, "storageBacking": "FIXED_BYTES", **more,
    }  # fmt: skip


def record(**fields):
    columns = [{"name": n, "type": ["null", kind], "default": None} for n, kind in fields.items()]
    return json.dumps({"type": "record", "name": "r", "fields": columns})


def floats(*rows):
    return pa.array([r if r is None else struct.pack("<2f", *r) for r in rows], pa.binary(8))


@pytest.mark.req("SE-01")
@pytest.mark.parametrize("element", KINDS)
def test_a_vector_is_a_list_of_its_numbers(element):
    (field,) = from_avro(record(v=vector(3, element)))
    assert field.type == pa.list_(pa.field("element", KINDS[element][0], nullable=False))
    assert field.nullable


@pytest.mark.req("SE-01")
def test_logged_vectors_are_decoded_with_what_is_null_and_what_the_record_lacks():
    written = record(v=vector(3), d=vector(2, "DOUBLE"), i=vector(4, "INT8"))
    wanted = from_avro(
        record(i=vector(4, "INT8"), v=vector(3), d=vector(2, "DOUBLE"), later=vector(2, "INT8"))
    )
    first = (
        b"\x02" + struct.pack("<3f", 1, -0.0, 3.5) + b"\x00" + b"\x02" + struct.pack("4b", 1, -128, 127, 0)
    )
    second = b"\x00" + b"\x02" + struct.pack("<2d", 0.1, 1e300) + b"\x00"
    rows = Decoder(written, arrow_schema=wanted).decode(
        first + second, [0, len(first)], [len(first), len(second)]
    )
    rows.validate(full=True)
    assert rows.schema == wanted
    assert rows.to_pylist() == [
        {"i": [1, -128, 127, 0], "v": [1.0, -0.0, 3.5], "d": None, "later": None},
        {"i": None, "v": None, "d": [0.1, 1e300], "later": None},
    ]


@pytest.mark.req("SE-01")
@pytest.mark.parametrize("begin", range(5))
@pytest.mark.parametrize("end", range(5))
def test_bytes_of_files_become_numbers_in_any_part_of_a_column(begin, end):
    rows = [[1.0, 2.0], None, [float("inf"), -1.5], None]
    target = from_avro(record(v=vector(2))).field("v").type
    part = convert(floats(*rows)[begin:end], target, "v")
    part.validate(full=True)
    assert part.to_pylist() == rows[begin:end]
    chunks = convert(pa.chunked_array([floats(*rows[:2]), floats(*rows[2:])]), target, "v")
    assert chunks.to_pylist() == rows


@pytest.mark.req("SE-01")
def test_vectors_that_contradict_themselves_or_are_not_known_are_told():
    with pytest.raises(CorruptFileError, match="vector of 3 numbers in 8 bytes"):
        from_avro(record(v=vector(3, size=8)))
    with pytest.raises(CorruptFileError):
        from_avro(record(v=vector(3, dimension="3")))
    for unknown in ({"elementType": "FLOAT16"}, {"storageBacking": "LIST"}):
        with pytest.raises(UnsupportedError, match="column v is a vector"):
            from_avro(record(v=vector(3, **unknown)))


@pytest.mark.req("SE-01")
def test_columns_of_own_types_are_found_at_any_depth():
    blob = {
        "type": "record",
        "name": "blob",
        "logicalType": "blob",
        "fields": [{"name": "data", "type": "bytes"}],
    }
    text = record(
        a="int",
        v=vector(2),
        b=blob,
        many={"type": "array", "items": vector(2)},
        plain={"type": "map", "values": "long"},
    )
    assert own_types(text) == {"v": "vector", "b": "blob", "many": "vector"}
    assert own_types(record(a="int")) == {}


@pytest.mark.req("SE-01")
def test_what_must_not_be_null_has_no_nulls_below_a_null_struct_whatever_its_type_was():
    stored = pa.array([{"kind": b"INLINE"}, None, {"kind": b"x"}], pa.struct([("kind", pa.binary())]))
    wanted = pa.struct([pa.field("kind", pa.string(), nullable=False)])
    for part, values in ((stored, ["INLINE", None, "x"]), (stored[1:], [None, "x"])):
        found = convert(part, wanted, "b")
        found.validate(full=True)
        assert [v and v["kind"] for v in found.to_pylist()] == values
        assert found.field(0).null_count == 0
        found.cast(pa.struct([pa.field("kind", pa.large_string(), nullable=False)]))
