"""The schema history: which version a file has, and how its columns are found by id."""

import datetime
import json
import pickle

import pyarrow as pa
import pytest

from hudi_format.errors import CorruptFileError, SchemaError, UnsupportedError
from hudi_format.schema.internal_schema import ReadEvolution, parse_version, parse_versions, reading


def column(id, name, kind="string"):
    return {"id": id, "name": name, "optional": True, "type": kind}


def version(number, *columns):
    return {"max_column_id": 99, "version_id": number, "type": "record", "fields": list(columns)}


def record(*columns):
    return {"type": "record", "fields": list(columns)}


def array(id, element):
    return {"type": "array", "element_id": id, "element": element, "element_optional": True}


def mapping(key_id, value_id, value):
    return {
        "type": "map", "key_id": key_id, "key": "string", "value_id": value_id, "value": value,
        "value_optional": True,
    }  # fmt: skip


OLD = version(
    0, column(1, "a"), column(2, "b", "int"), column(3, "gone"),
    column(4, "s", record(column(5, "x", "int"), column(6, "y"), column(7, "z"))),
    column(8, "l", array(9, record(column(10, "k"), column(11, "v", "int")))),
    column(12, "m", mapping(13, 14, record(column(15, "p"), column(16, "q")))),
)  # fmt: skip
NEW = version(
    20260101000000000, column(2, "b2", "long"), column(1, "a"), column(17, "gone", "int"),
    column(4, "s2", record(column(18, "y"), column(7, "z2"), column(5, "x", "long"))),
    column(8, "l", array(9, record(column(11, "w", "int"), column(10, "k")))),
    column(12, "m", mapping(13, 14, record(column(15, "pp")))),
)  # fmt: skip
WANTED = pa.schema(
    [
        ("b2", pa.int64()),
        ("a", pa.string()),
        ("gone", pa.int32()),
        ("s2", pa.struct([("y", pa.string()), ("z2", pa.string()), ("x", pa.int64())])),
        ("l", pa.list_(pa.struct([("w", pa.int32()), ("k", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.struct([("pp", pa.string())]))),
    ]
)


def parsed(node):
    return parse_version(json.dumps(node))


@pytest.mark.req("SE-04")
def test_columns_are_found_by_id_at_every_level():
    how = pickle.loads(pickle.dumps(reading(parsed(NEW), parsed(OLD))))
    stored = how.stored(WANTED)
    # What the file has under a name that is free again is another column.
    assert stored.names == ["b", "a", "s", "l", "m"]
    rows = pa.table(
        [
            pa.array([1, 2, None], pa.int64()),
            pa.array(["a", None, "c"]),
            pa.array([{"x": 1, "z": "z"}, None, {"x": None, "z": "y"}], stored.field("s").type),
            pa.array([[{"v": 1, "k": "k"}], None, []], stored.field("l").type),
            pa.array([[("k", {"p": "p"})], [], None], stored.field("m").type),
        ],
        schema=stored,
    )
    for part in (rows, rows.slice(1), rows.slice(0, 0)):
        given = how.given(part, WANTED)
        assert given.schema.equals(WANTED)
        given.validate(full=True)
    assert how.given(rows, WANTED).to_pylist() == [
        {"b2": 1, "a": "a", "gone": None, "s2": {"y": None, "z2": "z", "x": 1}, "l": [{"w": 1, "k": "k"}],
         "m": [("k", {"pp": "p"})]},
        {"b2": 2, "a": None, "gone": None, "s2": None, "l": None, "m": []},
        {"b2": None, "a": "c", "gone": None, "s2": {"y": None, "z2": "y", "x": None}, "l": [], "m": None},
    ]  # fmt: skip


def test_a_version_that_only_adds_types_or_moves_needs_no_reading():
    moved = version(5, column(2, "b", "long"), column(1, "a"))
    assert reading(parsed(moved), parsed(version(1, column(1, "a"), column(2, "b", "int")))) is None
    # But what the wanted version does not know any more must not come back under its name.
    again = version(6, column(9, "a"))
    assert (
        reading(parsed(again), parsed(version(1, column(1, "a"))))
        .stored(pa.schema([("a", pa.string())]))
        .names
        == []
    )


def _dated(kind):
    inside = record(column(3, "d", kind), column(4, "k", "int"))
    return version(
        0 if kind == "string" else 1, column(1, "d", kind), column(2, "s", inside), column(5, "l", array(6, kind)),
        column(7, "m", mapping(8, 9, kind)),
    )  # fmt: skip


def _dates(kind, value):
    """A row with a value of a type on every level."""
    struct = pa.struct([("d", kind), ("k", pa.int32())])
    schema = pa.schema([("d", kind), ("s", struct), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
    row = {"d": value, "s": {"d": value, "k": 1}, "l": [value, None], "m": [("a", value)]}
    return pa.Table.from_pylist([row, dict.fromkeys(schema.names)], schema)


NEAREST = 0.10000000149011612  # of the float 0.1


@pytest.mark.req("SE-04")
@pytest.mark.parametrize(
    ("how", "flat", "nested"),
    [
        ({"logged": True}, 0.1, 0.1), ({"logged": True, "logged_digits": False}, NEAREST, NEAREST),
        ({"nested_digits": True}, 0.1, 0.1), ({}, 0.1, NEAREST),
    ],
    ids=str,
)  # fmt: skip
def test_floats_that_became_doubles_keep_their_digits_where_apache_hudi_keeps_them(how, flat, nested):
    for inside, want in ((False, flat), (True, nested)):
        columns = [column(1, "f", "float")]
        if inside:
            columns.append(column(2, "s", record(column(3, "f", "float"))))
        new = json.loads(json.dumps(columns).replace("float", "double"))
        reads = reading(parsed(version(1, *new)), parsed(version(0, *columns)))
        schema = pa.schema([("f", pa.float64()), ("s", pa.struct([("f", pa.float64())]))][: len(columns)])
        rows = [{"f": 0.1, "s": {"f": 0.1}}]
        stored = pa.Table.from_pylist(rows, reads.stored(schema, logged=how.get("logged", False)))
        (found,) = reads.given(stored, schema, **how).to_pylist()
        assert found["f"] == want
        assert not inside or found["s"] == {"f": want}


@pytest.mark.req("SE-04")
@pytest.mark.parametrize("logged", [False, True])
def test_text_that_became_dates_is_read_as_dates_on_every_level(logged):
    how = pickle.loads(pickle.dumps(reading(parsed(_dated("date")), parsed(_dated("string")))))
    for text, day in (("2024-02-29", (2024, 2, 29)), ("2024-2-9", (2024, 2, 9)), ("0001-01-01", (1, 1, 1))):
        want = _dates(pa.date32(), datetime.date(*day))
        file = _dates(pa.string(), text)
        assert how.stored(want.schema, logged=logged) == file.schema
        found = how.given(file, want.schema, logged=logged)
        assert found.to_pylist() == want.to_pylist()
        assert found.schema == want.schema


@pytest.mark.req("SE-04")
@pytest.mark.parametrize(
    "text", ["abc", "", "20240229", "2024-02-30", "2024-02-29 10:00:00", " 2024-02-29", "-2024-02-29"]
)
def test_text_that_is_no_date_is_an_error_where_apache_hudi_fails_too(text):
    how = reading(parsed(_dated("date")), parsed(_dated("string")))
    with pytest.raises(SchemaError, match=r"column d .*not a date") as e:
        how.given(_dates(pa.string(), text), _dates(pa.date32(), None).schema)
    assert repr(text) in str(e.value)


def _decimals(kind, value):
    """`value` read from a file with a column of the type `kind` that is a decimal(30,5) now, on two levels."""
    old = version(0, column(1, "c", kind), column(2, "s", record(column(3, "c", kind))))
    new = json.loads(json.dumps(old).replace(json.dumps(kind), '"decimal(30, 5)"')) | {"version_id": 1}
    wanted = pa.schema([("c", pa.decimal128(30, 5)), ("s", pa.struct([("c", pa.decimal128(30, 5))]))])
    how = pickle.loads(pickle.dumps(reading(parsed(new), parsed(old))))
    file = pa.Table.from_pylist([{"c": value, "s": {"c": value}}, {"c": None, "s": None}], how.stored(wanted))
    first, second = how.given(file, wanted).to_pylist()
    assert first["s"]["c"] == first["c"]
    assert second == {"c": None, "s": None}
    return str(first["c"])


# Apache Hudi 0.15.0, 1.0.2 and 1.2.0 answer so, of base files and logs: tests/golden/retypes_*/retyped_rounded.
@pytest.mark.req("SE-04")
@pytest.mark.parametrize(
    ("kind", "value", "want"),
    [
        ("double", 0.000015, "0.00002"), ("double", -0.000005, "-0.00001"), ("double", 5e-324, "0.00000"),
        ("double", 1e24, "1000000000000000000000000.00000"), ("float", 1.2345678, "1.23457"),
        ("string", "-0.000005", "-0.00001"), ("string", "1.23456499", "1.23456"), ("string", "0e999999999", "0.00000"),
        ("string", "0." + "1" * 3000, "0.11111"), ("string", "1E-999999999", "0.00000"),
        ("string", "9" * 25 + ".999994", "9" * 25 + ".99999"),
    ],
)  # fmt: skip
def test_fractions_and_text_that_became_decimals_are_rounded_half_up(kind, value, want):
    assert _decimals(kind, value) == want


@pytest.mark.req("SE-04")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", 1e25), ("double", float("nan")), ("double", float("inf")), ("string", "1_0"), ("string", "abc"),
        ("string", ""), ("string", "NaN"), ("string", "1E999999999"), ("string", "9" * 25 + ".999995"),
        ("string", "\u0967"),
    ],
)  # fmt: skip
def test_what_is_no_number_or_too_large_for_the_decimal_is_an_error(kind, value):
    with pytest.raises(SchemaError, match=r"column c has type .* cannot become decimal"):
        _decimals(kind, value)


def test_an_instant_has_the_version_that_it_names_else_the_newest_before_it():
    versions = parse_versions(json.dumps({"schemas": [version(30, column(1, "c")), version(20, column(1, "b")),
                                                      version(0, column(1, "a"))]}))  # fmt: skip
    assert [v.version for v in versions] == [0, 20, 30]
    evolution = ReadEvolution(versions[-1], versions, {"25": 30})
    assert [evolution.version_of(i).version for i in ("19", "20", "25", "26", "31", "x")] == [
        0,
        20,
        30,
        20,
        30,
        0,
    ]
    assert evolution.reading("31") is None
    assert evolution.reading("26").stored(pa.schema([("c", pa.string())])).names == ["b"]
    late = ReadEvolution(versions[-1], versions[1:])
    assert late.version_of("1").version == 20  # nothing older is known
    assert late.version_of("\u00b2").version == 20  # a digit to Python, and no number


HOLLOW = pa.schema([("s", pa.struct([("y", pa.int32())]))])


def test_a_record_of_which_nothing_is_left_is_null_in_a_base_file_and_one_of_nulls_in_a_log():
    old = version(0, column(4, "s", record(column(5, "y", "string"))))  # another y
    new = version(1, column(4, "s", record(column(6, "y", "int"))))
    how = reading(parsed(new), parsed(old))
    assert how.stored(HOLLOW).names == []
    rows = pa.table({"other": [1, 2]})
    assert how.given(rows, HOLLOW).to_pylist() == [{"s": None}, {"s": None}]
    logged = how.stored(HOLLOW, logged=True)
    assert logged == pa.schema([("s", pa.struct([("y", pa.string())]))])
    rows = pa.table(
        [pa.chunked_array([[{"y": "a"}, None], [{"y": None}]], logged.field("s").type)], schema=logged
    )
    assert how.given(rows, HOLLOW, logged=True).to_pylist() == [
        {"s": {"y": None}},
        {"s": None},
        {"s": {"y": None}},
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (record(column(5, "x", record(column(7, "z", "int")))), record(column(6, "y", "int"))),
        (array(5, record(column(6, "x", "int"))), array(5, record(column(7, "y", "int")))),
    ],
    ids=["nested columns only", "elements"],
)
def test_a_record_whose_nulls_cannot_be_told_is_refused(old, new):
    with pytest.raises(UnsupportedError, match="column s") as e:
        reading(parsed(version(1, column(4, "s", new))), parsed(version(0, column(4, "s", old))))
    assert e.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"version_id": true, "fields": []}', '{"version_id": 1, "fields": {}}',
        json.dumps(version(1, {"id": "1", "name": "a", "type": "int"})),
        json.dumps(version(1, column(1, "a"), column(1, "b"))),
        json.dumps(version(1, column(1, "a"), column(2, "a"))),
        json.dumps(version(1, column(1, "a", {"type": "array", "element_id": 2}))),
        json.dumps(version(1, column(1, "a", {"type": "set"}))),
        json.dumps(version(1, column(1, "a", 7))),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_another_text_is_corrupt(text):
    with pytest.raises(CorruptFileError):
        parse_version(text)
    with pytest.raises(CorruptFileError):
        parse_versions(json.dumps({"schemas": [text]}) if text else b"\xff")


def test_a_version_nested_too_deeply_is_corrupt():
    kind = "int"
    for n in range(200):
        kind = array(n + 2, kind)
    with pytest.raises(CorruptFileError, match="deeply"):
        parsed(version(1, column(1, "a", kind)))
