from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import SchemaError
from hudi_format.schema.arrow import equal_types, normalize_schema, required
from hudi_format.schema.avro import from_avro, to_avro
from hudi_format.schema.casts import convert
from hudi_format.schema.meta_fields import META_NAMES

# Types that the oldest Arrow we run on does not have yet.
NEWER: list[tuple[pa.DataType, pa.DataType]] = []


if hasattr(pa, "decimal32"):
    NEWER = [
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(18, 0), pa.decimal128(18, 0)),
        (pa.json_(), pa.string()),
    ]


class Celsius(pa.ExtensionType):
    """A type that is made in Python, which has no hash."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def of(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("c", kind)])


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.dictionary(pa.uint32(), pa.int16()), pa.int32()),
        (pa.run_end_encoded(pa.int32(), pa.string_view()), pa.string()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ms", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns", "+02:00"), pa.timestamp("us", "UTC")),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
        (pa.list_(pa.int8()), pa.list_(pa.field("element", pa.int32()))),
        (pa.large_list(pa.field("x", pa.string(), False)), pa.list_(pa.field("element", pa.string(), False))),
        (pa.list_(pa.float32(), 3), pa.list_(pa.field("element", pa.float32()))),
        (pa.list_view(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
        *NEWER,
    ],
    ids=str,
)
def test_types_that_are_not_stored_become_ones_that_hold_every_value(
    given: pa.DataType, stored: pa.DataType
) -> None:
    assert normalize_schema(of(given)) == of(stored)
    assert normalize_schema(of(stored)) == of(stored)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (pa.uint64(), "unsigned"),
        (pa.time32("ms"), "time-of-day"),
        (pa.time64("us"), "time-of-day"),
        (pa.duration("us"), "duration"),
        (pa.month_day_nano_interval(), "duration"),
        (pa.null(), "nulls"),
        (pa.decimal256(39, 0), "38 digits"),
        (pa.decimal128(5, -2), "scale"),
        (pa.struct([]), "without fields"),
        (pa.dense_union([pa.field("a", pa.int32())]), "no such type"),
        (pa.map_(pa.int32(), pa.string()), "keys"),
        (pa.opaque(pa.binary(16), "uuid", "any") if hasattr(pa, "opaque") else pa.uint64(), ""),
        (Celsius(), "no such type"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_stored_is_refused_with_its_place_and_a_remedy(
    kind: pa.DataType, says: str
) -> None:
    schema = pa.schema([pa.field("c", pa.list_(pa.struct([pa.field("d", kind)])))])
    with pytest.raises(SchemaError) as e:
        normalize_schema(schema)
    assert e.value.details["column"] == "c.element.d"
    assert says in str(e.value)
    assert str(kind) in str(e.value)
    assert e.value.remedy


@pytest.mark.parametrize(
    "names",
    [["a", "a"], ["a", "A"], ["_hoodie_record_key"], ["_HOODIE_commit_time"], [""], ["a b"], ["1a"], ["a.b"]],
    ids=str,
)
def test_names_that_are_taken_twice_or_not_allowed_are_refused(names: list[str]) -> None:
    with pytest.raises(SchemaError) as e:
        normalize_schema(pa.schema([pa.field(n, pa.int32()) for n in names]))
    assert names[-1] in str(e.value)


def test_names_inside_a_struct_are_looked_at_too() -> None:
    with pytest.raises(SchemaError, match=r"c\.x and c\.X differ in case"):
        normalize_schema(of(pa.struct([("x", pa.int32()), ("X", pa.int32())])))


def test_letters_of_any_script_are_allowed_as_in_java() -> None:
    schema = pa.schema([pa.field("årsak", pa.string()), pa.field("_hoodie_is_deleted", pa.bool_())])
    assert normalize_schema(schema) == schema


@pytest.mark.parametrize("name", sorted(META_NAMES))
@pytest.mark.parametrize("written", [str, str.upper])
def test_a_data_column_with_the_name_of_a_meta_column_is_refused(name, written):
    with pytest.raises(SchemaError, match="name of a meta column"):
        normalize_schema(pa.schema([("id", pa.string()), (written(name), pa.string())]))


def test_nullability_stays_and_metadata_goes() -> None:
    field = pa.field("c", pa.int8(), nullable=False, metadata={"k": "v"})
    found = normalize_schema(pa.schema([field], metadata={"pandas": "{}"}))
    assert found.equals(pa.schema([pa.field("c", pa.int32(), nullable=False)]), check_metadata=True)


def rows(array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], names=["c"])


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([1, None], pa.uint32()), [1, None]),
        (pa.array(["a", None], pa.string_view()), ["a", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([[1], None, []], pa.large_list(pa.int8())), [[1], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
        (pa.array([[1, 2], None], pa.list_view(pa.int8())), [[1, 2], None]),
        (pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int16())), [[("k", 1)], None, []]),
        (pa.array([1_500], pa.timestamp("ms")), [dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)]),
        (pa.array([1_000], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([{"a": 1}, None], pa.struct([("a", pa.uint16())])), [{"a": 1}, None]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["x", "y"])), ["x", "x", "y"]),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
def test_rows_keep_their_values_in_the_stored_types(array: pa.Array, values: list[object]) -> None:
    batch = rows(array)
    schema = normalize_schema(batch.schema)
    for start in (0, 1):
        found = convert(batch.slice(start).column(0), schema.field(0).type, "c")
        assert found.type == schema.field(0).type
        assert found.to_pylist() == values[start:]
        found.validate(full=True)


def test_a_value_that_does_not_survive_is_an_error_that_names_the_column() -> None:
    for array, kind in (
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([2**60], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([[{"t": 1}]], pa.list_(pa.struct([("t", pa.timestamp("ns"))]))), None),
    ):
        schema = normalize_schema(rows(array).schema) if kind is None else of(kind)
        with pytest.raises(SchemaError, match=r"column c(\.element\.t)? has type timestamp"):
            convert(array, schema.field(0).type, "c")


def test_a_forbidden_null_is_an_error() -> None:
    field = pa.field("c", pa.int64(), nullable=False)
    with pytest.raises(SchemaError, match="must not be null, but has 1"):
        required(pa.array([1, None]), field)
    assert required(pa.array([1]), field).to_pylist() == [1]


def test_equal_types_look_at_values_only() -> None:
    two_level = pa.list_(pa.field("array", pa.int32(), nullable=False))
    assert equal_types(two_level, pa.list_(pa.field("element", pa.int32())))
    assert equal_types(pa.struct([("l", two_level)]), pa.struct([("l", pa.list_(pa.int32()))]))
    assert equal_types(pa.map_(pa.string(), two_level), pa.map_(pa.string(), pa.list_(pa.int32())))
    assert not equal_types(pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())]))
    assert not equal_types(two_level, pa.list_(pa.int64()))
    assert not equal_types(pa.int32(), two_level)


def _of_lists(levels: int) -> pa.DataType:
    return reduce(lambda kind, _: pa.list_(kind), range(levels), pa.int32())


def _of_maps(levels: int) -> pa.DataType:
    return reduce(lambda kind, _: pa.map_(pa.string(), kind), range(levels), pa.int32())


def _of_structs(levels: int) -> pa.DataType:
    return reduce(lambda kind, _: pa.struct([("a", kind)]), range(levels), pa.int32())


@pytest.mark.parametrize(("nest", "most"), [(_of_lists, 49), (_of_maps, 49), (_of_structs, 98)])
def test_a_type_that_is_nested_deeper_than_files_can_be_read_is_refused(
    nest: Callable[[int], pa.DataType], most: int
) -> None:
    stored = normalize_schema(pa.schema([("v", nest(most))]))
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"v": pa.nulls(1, stored.field("v").type)}), file, store_schema=False)
    assert pq.read_table(file.getvalue()).num_rows == 1
    assert equal_types(from_avro(to_avro(stored, "t")).field("v").type, stored.field("v").type)
    for levels in (most + 1, 2 * most):
        with pytest.raises(SchemaError, match="column v is nested too deeply") as e:
            normalize_schema(pa.schema([("v", nest(levels))]))
        assert e.value.details["column"] == "v"
        assert "as text" in e.value.remedy
