"""Row groups left out by their statistics: none that holds a row which passes."""

import io
import math
import os
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.reader import iter_batches
from hudi_format.parquet.row_group_filter import RowGroupFilter, matching_row_groups, may_match
from hudi_format.storage.open import open_storage

SCHEMA = pa.schema([("v", pa.int64()), ("city", pa.string()), ("n", pa.int32())])
TYPES = {
    "i": (pa.int32(), pa.int64(), st.integers(-3, 3)),
    "f": (pa.float32(), pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 1.5, math.nan, math.inf])),
    "s": (pa.string(), pa.string(), st.sampled_from(["", "a", "ab", "b", "é", "\U0001f600"])),
    "d": (pa.date32(), pa.date32(), st.dates().filter(lambda d: d.year in (1999, 2000, 2001))),
    "t": (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC"), st.integers(-2, 2)),
    "b": (pa.bool_(), pa.bool_(), st.booleans()),
}
STORED = pa.schema([(n, t[0]) for n, t in TYPES.items()])
WANTED = pa.schema([(n, t[1]) for n, t in TYPES.items()])
ROWS = st.fixed_dictionaries({n: st.one_of(st.none(), t[2]) for n, t in TYPES.items()})


@st.composite
def comparisons(draw):
    name = draw(st.sampled_from(list(TYPES)))
    field = pc.field(name)
    if draw(st.integers(0, 4)) == 0:
        return field.is_null() if draw(st.booleans()) else field.is_valid()
    value = pc.scalar(pa.array([draw(TYPES[name][2])], WANTED.field(name).type)[0])
    kind = draw(st.integers(0, 5))
    made = [field == value, field != value, field < value, field <= value, field > value, field >= value]
    return made[kind]


FILTERS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=4,
)  # fmt: skip


def _footer(sink: io.BytesIO) -> memoryview:
    return footer_bytes(pa.BufferReader(sink.getvalue()))


@pytest.mark.req("QR-08", "QR-10")
@settings(max_examples=300 if os.environ.get("HUDI_SOAK") else 100)
@given(st.lists(ROWS, min_size=1, max_size=12), FILTERS)
def test_a_dropped_row_group_holds_no_row_that_passes(rows, filter):
    stored = pa.Table.from_pylist(rows, STORED)
    sink = io.BytesIO()
    pq.write_table(stored, sink, row_group_size=3)
    file = pq.ParquetFile(sink)
    kept = matching_row_groups(_footer(sink), file.schema_arrow, filter, WANTED.names, WANTED)
    for group in set(range(file.num_row_groups)) - set(kept):
        assert file.read_row_group(group).cast(WANTED).filter(filter).num_rows == 0


@pytest.mark.parametrize(
    ("filter", "groups"),
    [
        (pc.field("x") > 250, [2]),
        (pc.field("x") == 150, [1]),
        (pc.field("x").isin([5, 205]), [0, 2]),
        (pc.field("x").is_null(), []),
        ((pc.field("x") > 250) & (pc.field("c") == "other"), []),
        (pc.field("c") == "here", [0, 1, 2]),
        (pc.field("y") > 1000, [0, 1, 2]),
        ((pc.field("x") + 1) > 1000, [0, 1, 2]),
    ],
)
def test_row_groups_are_dropped_by_range_and_by_constants(filter, groups):
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(range(300), pa.int32())})
    pq.write_table(table, sink, row_group_size=100)
    schema = pa.schema([("x", pa.int64()), ("c", pa.string()), ("y", pa.int64())])
    constants = pa.RecordBatch.from_pylist([{"c": "here"}], pa.schema([("c", pa.string())]))
    footer = _footer(sink)
    found = matching_row_groups(footer, table.schema, filter, schema.names, schema, constants)
    assert found == groups


BIG = 3.4028234663852886e38
SETS = [
    (
        pa.float32(),
        [[0.1], [0.1, 0.2], [BIG], [math.inf], [-0.0], [math.nan, 0.1]],
        [pa.float64(), pa.float32()],
    ),
    (pa.float64(), [[0.1], [0.5], [-0.0, 0.0], [math.nan]], [pa.float64(), pa.float32()]),
    (pa.int32(), [[3], [-(2**31)]], [pa.int64(), pa.int32(), pa.float64()]),
    (pa.timestamp("us", "UTC"), [[1_000_000]], [pa.timestamp(u, "UTC") for u in ("s", "us", "ns")]),
    (pa.decimal128(9, 2), [[Decimal("1.10")]], [pa.decimal128(9, 1), pa.decimal128(30, 10), pa.float64()]),
    (pa.string(), [["a"]], [pa.string(), pa.large_string()]),
]


@pytest.mark.parametrize(("kind", "groups", "sets"), SETS, ids=[str(k[0]) for k in SETS])
def test_a_set_in_another_type_finds_what_it_finds_in_memory(kind, groups, sets):
    schema = pa.schema([("x", kind)])
    for values in groups:
        stored = pa.table({"x": pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else
                           pa.array(values, kind)})  # fmt: skip
        sink = io.BytesIO()
        pq.write_table(stored, sink)
        for to in sets:
            for value in stored["x"].combine_chunks():
                # 0.1 as a double is none of the values of 32 bits, and found among them.
                given = pa.array([value.as_py()], kind).cast(to, safe=False)
                if pa.types.is_float32(kind) and pa.types.is_float64(to):
                    given = pa.array([v for v in values if v == value.as_py() or pa.scalar(v, kind) == value])
                filter = pc.field("x").isin(given)
                try:
                    found = stored.filter(filter).num_rows
                except pa.ArrowException:  # a set that Arrow cannot compare with the column
                    continue
                kept = matching_row_groups(_footer(sink), schema, filter, ["x"], schema)
                assert kept or not found, (values, filter)


def test_no_guarantee_keeps():
    assert may_match(pc.field("n") > 5, [None, pc.field("n") == 1, pc.field("n") == 9], SCHEMA) == [
        True,
        False,
        True,
    ]


@pytest.mark.req("QR-10")
def test_a_guarantee_of_which_the_filter_cannot_be_computed_decides_nothing():
    whole = pc.field("x").cast(pa.int64()) == 3
    x = pc.field("x")
    fixed = [x == 3.0, x == math.nan, None, x == 4.0, x == 2.5]
    assert may_match(whole, fixed, pa.schema([("x", pa.float64())])) == [True, True, True, False, True]


def test_row_groups_of_a_column_that_the_filter_names_by_another_type_are_kept(tmp_path):
    storage = open_storage(str(tmp_path))
    pq.write_table(pa.table({"n": pa.array(range(8), pa.int32())}), tmp_path / "f.parquet", row_group_size=2)
    text = pa.schema([("n", pa.string())])
    for schema, expression, want in (
        (text, pc.field("n") == "10", list(range(8))),
        (pa.schema([("n", pa.int64())]), pc.field("n") == 5, [4, 5]),
        (pa.schema([("n", pa.int64())]), pc.field("other") == 5, list(range(8))),
    ):
        given = RowGroupFilter(expression, pa.schema([*schema, ("other", pa.int64())]))
        found = iter_batches(storage, "f.parquet", schema=schema, filter=given)
        assert [int(v) for b in found for v in b.column(0).to_pylist()] == want
