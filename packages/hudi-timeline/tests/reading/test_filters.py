"""Row filters as text and as expressions."""

import itertools
import math
import sqlite3
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_format.arrow.filter_conditions import paired
from hudi_format.errors import InvalidOptionError, MissingColumnError, SchemaError
from hudi_timeline import HudiTable
from hudi_timeline.reading.filters import conditions, make_predicate

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "city": ["sf", "oslo", None, "o'hara"],
        "fare": pa.array([1.5, None, 3.0, 4.25]),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("9.99")], pa.decimal128(6, 2)),
        "day": pa.array([date(2020, 1, n) for n in (1, 2, 3, 4)]),
        "at": pa.array([datetime(2020, 1, 1, n) for n in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
        "ok": [True, False, None, True],
        "a b": [1, 2, 3, 4],
        "spot": [{"x": n} for n in (1, 2, 3, 4)],
    }
)


def kept(text):
    return ROWS.filter(make_predicate(text, ROWS.schema).expression).column("id").to_pylist()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("city = 'sf'", [1]),
        ("city == 'o''hara'", [4]),
        ("\"city\" = 'sf'", [1]),
        ('"a b" > 3 and "spot"."x" = 4', [4]),
        ("city <> 'sf'", [2, 4]),
        ("not city = 'sf'", [2, 4]),
        ("id > 1 and id <= 3", [2, 3]),
        ("id = 1 or id = 2 and city = 'nowhere'", [1]),
        ("(id = 1 or id = 2) and city = 'oslo'", [2]),
        ("3 <= id", [3, 4]),
        ("id in (1, 3, 9)", [1, 3]),
        ("city in ('sf', null)", [1]),
        ("city not in ('sf')", [2, 4]),
        ("not (city in ('sf'))", [2, 4]),
        ("city not in ('sf', null)", []),
        ("id between 2 and 3", [2, 3]),
        ("id not between 2 and 3", [1, 4]),
        ("city like 'o%'", [2, 4]),
        ("city not like 'o%'", [1]),
        ("city like '_f'", [1]),
        ("city is null", [3]),
        ("city IS NOT NULL", [1, 2, 4]),
        ("not (city is null or id > 3)", [1, 2]),
        ("ok", [1, 4]),
        ("not ok", [2]),
        ("ok = false", [2]),
        ("fare >= 3", [3, 4]),
        ("fare = 1.5", [1]),
        ("id > 1.5", [2, 3, 4]),
        ("fare < 1e400", [1, 3, 4]),
        ("fare < " + "9" * 200, [1, 3, 4]),
        ("id = -1 or id = +2", [2]),
        ("price > 1.995", [2, 4]),
        ("price = 2", [2]),
        ("price in (2, 9.99)", [2, 4]),
        ("day = '2020-01-02'", [2]),
        ("day >= DATE '2020-01-03'", [3, 4]),
        ("at < '2020-01-01 02:30:00'", [1, 2]),
        ("at >= timestamp '2020-01-01T03:00:00Z'", [3, 4]),
        ("`a b` = 2", [2]),
        ("spot.x = 4", [4]),
        ("id = `a b` and id <> 1", [2, 3, 4]),
        ("  id\n=\t1 ", [1]),
    ],
)
def test_text_means_what_sql_says(text, ids):
    assert kept(text) == ids


def test_long_and_deep_filters_work_or_are_refused():
    many = [f"id = {n}" for n in range(3, 3000)]
    assert kept(" or ".join(many)) == [3, 4]
    assert kept(" and ".join(["id <> 3", *(f"id <> {n}" for n in range(5, 3000))])) == [1, 2, 4]
    assert kept("(" * 100 + "id = 1" + ")" * 100) == [1]
    for joined, count in ((" or ", 5_000), (" and ", 30_000)):  # on so many Arrow goes beyond the stack
        with pytest.raises(InvalidOptionError, match=f"joins {count} conditions") as caught:
            kept(joined.join(f"id = {n}" for n in range(count)))
        assert "in (" in caught.value.remedy
    assert kept(f"city in ('sf', {', '.join(repr(' and ' * n) for n in range(300))})") == [1]
    for text in ("(" * 9000 + "id = 1" + ")" * 9000, "not " * 9000 + "id = 1"):
        with pytest.raises(InvalidOptionError, match="too deeply"):
            kept(text)


@pytest.mark.parametrize(
    ("text", "words", "offset"),
    [
        ("", "empty", 0),
        ("city =", "missing", 6),
        ('city = "sf"', "single quotes", 7),
        ('city = "sf', "closing double quote", 7),
        ("upper(city) = 'SF'", "no functions", 0),
        ("id = 1 and length (city) > 2", "no functions", 11),
        ("fare*2 > 4", "no arithmetic", 4),
        ("fare / 2 > 4", "no arithmetic", 5),
        ("city = 'sf", "closing quote", 7),
        ("(city = 'sf'", "parenthesis", 12),
        ("city = 'sf' id = 1", "unexpected token 'id'", 12),
        ("city = 5", "single quotes", 0),
        ("id = 'x'", "to int32", 0),
        ("id < 1e400", "infinite", 0),
        ("price in (1, -1e400)", "infinite", 13),
        ("id = " + "9" * 5000, "to int32", 0),
        ("city = '\ud800'", "to string", 0),
        ("day = 'soon'", "to date32", 0),
        ("1 = 1", "column", 0),
        ("city = null", "IS NULL", 0),
        ("id", "comparison", 2),
        ("id like 'a%'", "text column", 8),
        ("id in (city)", "values", 7),
        ("id not 5", "NOT", 7),
        ("city like 5", "takes a text", 10),
        ("id ; drop", "';'", 3),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, words, offset):
    with pytest.raises(InvalidOptionError) as e:
        make_predicate(text, ROWS.schema)
    assert words in str(e.value)
    assert e.value.details["offset"] == offset


@pytest.mark.parametrize("given", ["citi = 'sf'", pc.field("citi") == "sf"])
def test_a_column_that_is_not_there_names_the_nearest(given):
    with pytest.raises(MissingColumnError, match="'citi'") as e:
        make_predicate(given, ROWS.schema)
    assert "'city'" in e.value.remedy


def test_an_expression_that_does_not_fit_is_refused_before_anything_is_read():
    for wrong in (pc.field("city") > 5, pc.field("id") + 1):
        with pytest.raises(SchemaError):
            make_predicate(wrong, ROWS.schema)
    with pytest.raises(TypeError):
        make_predicate(5, ROWS.schema)
    with pytest.raises(MissingColumnError):
        make_predicate("spot.y = 1", ROWS.schema)


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        ("city = 'sf' and ok", {"city", "ok"}),
        (pc.field("spot", "x") > 1, {"spot"}),
        (pc.field(2) > 1, set(ROWS.column_names)),
        (pc.field("a b") > 1, {"a b"}),
    ],
)
def test_a_predicate_knows_the_columns_that_it_needs(given, columns):
    # A name that is a part of another's, or of a literal, is read in vain, which is allowed.
    assert columns <= set(make_predicate(given, ROWS.schema).columns)


NOT = st.sampled_from(["", "not "])
COMPARISONS = st.one_of(
    st.builds("a {} {}".format, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(0, 4)),
    st.builds("b {} '{}'".format, st.sampled_from(["=", "<>", "<", ">="]), st.sampled_from("xyz")),
    st.builds("a {}in ({}, {})".format, NOT, st.integers(0, 4), st.sampled_from(["1", "null"])),
    st.builds("a {}between {} and {}".format, NOT, st.integers(0, 4), st.integers(0, 4)),
    st.builds("b {}like '{}%'".format, NOT, st.sampled_from("xyz")),
    st.sampled_from(["a is null", "a is not null", "b is null", "b is not null"]),
)  # fmt: skip
TEXTS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=5,
)
VALUES = [(a, b) for a in (None, 0, 1, 2, 3) for b in (None, "x", "y", "zz")]


@given(TEXTS)
def test_filters_agree_with_sqlite(text):
    database = sqlite3.connect(":memory:")
    database.execute("create table t (n int, a int, b text)")
    database.executemany("insert into t values (?, ?, ?)", [(n, a, b) for n, (a, b) in enumerate(VALUES)])
    want = [n for (n,) in database.execute(f"select n from t where {text} order by n")]
    database.close()
    table = pa.table(
        {
            "n": list(range(len(VALUES))),
            "a": pa.array([a for a, _ in VALUES], pa.int64()),
            "b": pa.array([b for _, b in VALUES], pa.string()),
        }
    )
    assert table.filter(make_predicate(text, table.schema).expression).column("n").to_pylist() == want


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_a_typed_error(text):
    try:
        make_predicate(text, ROWS.schema)
    except (InvalidOptionError, MissingColumnError):
        return


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ([("city", "=", "sf")], [1]),
        (("city", "=", "sf"), [1]),
        ([("id", ">", 1), ("id", "<=", 3)], [2, 3]),
        ([[("id", "=", 1)], [("id", "=", 3), ("fare", ">", 1)]], [1, 3]),
        ([("id", "in", [1, 4])], [1, 4]),
        ([("day", ">=", date(2020, 1, 3))], [3, 4]),
    ],
)
def test_tuples_are_taken_as_pyarrow_takes_them(given, ids):
    assert kept(given) == ids


def test_tuples_that_say_nothing_are_refused():
    for wrong in ([("city", "~", "sf")], [("city", "=")], [[]], [5], ["city = 'sf'"]):
        with pytest.raises(InvalidOptionError, match="tuples") as e:
            make_predicate(wrong, ROWS.schema)
        assert "('city', '=', 'sf')" in e.value.remedy
    with pytest.raises(TypeError, match="empty list"):
        make_predicate([], ROWS.schema)
    with pytest.raises(TypeError, match=r"scan_hudi\(\) takes Polars"):
        make_predicate(pl.col("city") == "sf", ROWS.schema)
    with pytest.raises(MissingColumnError, match="'citi'"):
        make_predicate([("citi", "=", "sf")], ROWS.schema)
    with pytest.raises(SchemaError):
        make_predicate([("city", ">", 5)], ROWS.schema)


COLUMNS = pa.schema(
    [("n", pa.int64()), ("d", pa.float64()), ("f", pa.float32()), ("name", pa.string()), ("yes", pa.bool_())]
)


class Words:
    """Conditions as text."""

    def compare(self, op, left, right):
        return f"{left} {op} {right}"

    def among(self, column, values):
        return f"{column} in {sorted(v.as_py() for v in values)}"

    def like(self, column, pattern):
        return f"{column} like {pattern}"

    def is_null(self, column):
        return f"{column} is null"

    def is_valid(self, column):
        return f"{column} is valid"

    def flag(self, column):
        return str(column)

    def never(self):
        return "never"

    def negated(self, condition):
        return f"not {condition}"

    def joined(self, conditions, *, conjunction):
        return paired(lambda a, b: f"({a} {'and' if conjunction else 'or'} {b})", conditions)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("n > 1 and name = 'it''s'", ["n > 1", "name == it's"]),
        ("not (n > 1 and yes)", ["(n <= 1 or not yes)"]),
        ("not (n is null or name like 'a\\%%')", ["(n is valid and not name like a\\%%)"]),
        ("n not in (1, 2)", ["(not n in [1, 2] and n is valid)"]),
        ("n not in (1, null) or n in (null)", ["(never or never)"]),
        ("n not between 1 and 2", ["(n < 1 or n > 2)"]),
        ("n in (1, 1.5)", ["(n == 1 or n == 1.5)"]),
    ],
)
def test_negations_reach_the_comparisons_in_any_language(text, made):
    assert conditions(text, COLUMNS, Words()) == made


@pytest.mark.parametrize("column", ["d", "f"])
@pytest.mark.parametrize("zero", ["0", "0.0", "-0.0", "'0'", "'-0.0'"])
def test_zero_is_one_number_among_values_too(column, zero):
    rows = pa.table({"d": [0.0, -0.0, 1.0, None], "f": pa.array([0.0, -0.0, 1.0, None], pa.float32())})

    def kept(text):
        return [str(x) for x in rows.filter(make_predicate(text, rows.schema).expression)[column].to_pylist()]

    assert kept(f"{column} in ({zero})") == kept(f"{column} = {zero}") == ["0.0", "-0.0"]
    assert kept(f"{column} in (1, {zero})") == ["0.0", "-0.0", "1.0"]
    assert kept(f"{column} not in ({zero})") == ["1.0"]


ORDERED = ["{} < 1", "{} <= 1", "{} > 1", "{} >= 1", "1 < {}", "{} between 0 and 1", "{} < o", "o >= {}"]


@pytest.mark.parametrize("column", ["d", "f"])
@pytest.mark.parametrize("condition", ORDERED)
def test_a_row_that_a_condition_leaves_out_passes_its_negation_with_nan_too(condition, column):
    values = [math.nan, -1.0, 1.0, 5.0, None]
    of = {"d": (values, pa.float64()), "f": (values, pa.float32()), "o": ([1, 1, 2, 2, 1], pa.int64())}
    rows = pa.table({"n": list(range(5)), **{n: pa.array(v, kind) for n, (v, kind) in of.items()}})

    def kept(text):
        return rows.filter(make_predicate(text, rows.schema).expression)["n"].to_pylist()

    text = condition.format(column)
    assert sorted(kept(text) + kept(f"not ({text})")) == [0, 1, 2, 3], "all but the null"
    assert 0 in kept(f"not ({text})")
    assert kept(f"not (not ({text}))") == kept(text)
    if "between" in text:
        assert kept(text.replace("between", "not between")) == kept(f"not ({text})")


@pytest.mark.req("QR-10")
@pytest.mark.parametrize("part", [None, "p"], ids=["files", "partitions"])
@pytest.mark.sampled(2)
def test_no_index_leaves_out_nan_of_a_negation(tmp_path, part):
    schema = pa.schema([("k", pa.int64()), ("p", pa.float64()), ("d", pa.float64()), ("f", pa.float32())])
    indexed = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.parquet.small.file.limit": "0",
    }
    table = HudiTable.create(
        str(tmp_path), schema, name="t", record_keys=["k"], partition_fields=part or (), options=indexed
    )
    rows = [
        {"k": k, "p": v, "d": v, "f": v}
        for k, v in enumerate([0.5, math.nan, 1.0, None, -math.inf, math.nan])
    ]
    for at in range(0, 6, 2):  # NaN beside a number, a null, an infinity
        table.insert(pa.Table.from_pylist(rows[at : at + 2], schema), options=indexed)
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    for column, condition in itertools.product("pdf", ORDERED[:6]):
        text = condition.format(column)
        for options in ({}, skipping):
            found, others = (
                table.read(filter=t, options=options).to_arrow()["k"].to_pylist()
                for t in (text, f"not ({text})")
            )
            assert sorted(found + others) == [0, 1, 2, 4, 5], (text, options)
            assert {1, 5} <= {*others}


@pytest.mark.parametrize("pattern", ["a\\b", "\\", "%\\\\\\"])
def test_a_backslash_that_engines_read_differently_is_refused(pattern):
    with pytest.raises(InvalidOptionError, match="a backslash in LIKE must stand before"):
        make_predicate(f"name like '{pattern}'", COLUMNS)
