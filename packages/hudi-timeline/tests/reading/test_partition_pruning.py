"""Pruning never drops what a filter keeps."""

import io
import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_format.parquet.footer import footer_bytes
from hudi_format.parquet.row_group_filter import matching_row_groups, may_match
from hudi_timeline.file_system_view.partition_values import partition_columns
from hudi_timeline.reading.filters import make_predicate, parse
from hudi_timeline.reading.partition_pruning import PartitionPruner
from hudi_timeline.table_config import TableConfig

SCHEMA = pa.schema([("v", pa.int64()), ("city", pa.string()), ("n", pa.int32())])


def pruner(filter, *, fields="city,n", told=True, **properties):
    config = TableConfig(
        {"hoodie.table.partition.fields": fields, **{k.replace("_", "."): v for k, v in properties.items()}}
    )
    columns = partition_columns(config, SCHEMA, from_path=True)
    predicate = make_predicate(filter, SCHEMA)
    parts = (predicate.parts or (predicate,)) if told else ()
    return PartitionPruner(predicate.expression, SCHEMA, config, columns, parts)


@pytest.mark.req("QR-11")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        ("city = 'sf'", ["sf/1", "sf/2"]),
        ("city = 'sf' and n = 2", ["sf/2"]),
        ("n in (2, 3)", ["sf/2", "oslo/2"]),
        ("city like 'o%' or n = 1", ["sf/1", "oslo/2"]),
        ("city is null", ["__HIVE_DEFAULT_PARTITION__/7"]),
        ("not city = 'sf'", ["oslo/2"]),
        ("v > 5", ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]),
        ("v > 5 and city = 'oslo'", ["oslo/2"]),
        ("v > 5 or city = 'oslo'", ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]),
        ("city = 'nowhere'", []),
        ("v > 5 and city = 'sf' and n > 1", ["sf/2"]),
        ("city = 'sf' and (n = 2 or v > 5)", ["sf/1", "sf/2"]),
        ("(city = 'sf' and n = 2) and v > 5", ["sf/2"]),
        ("city = 'sf' and n = 2 or city = 'oslo'", ["sf/2", "oslo/2"]),
    ],
)
def test_partitions_whose_values_cannot_match_are_dropped(filter, kept):
    paths = ["sf/1", "sf/2", "oslo/2", "__HIVE_DEFAULT_PARTITION__/7"]
    for told in (True, False):  # by the values of all paths at once, and path by path
        keep = pruner(filter, told=told).keep(paths)
        assert [p for p, k in zip(paths, keep, strict=True) if k] == kept


def test_a_path_that_says_no_values_is_kept():
    assert pruner("city = 'sf'").keep(["oslo", "a/b/c", "oslo/x", "sf/1"]) == [True] * 4
    assert pruner("city = 'sf'").keep(["oslo/x", "oslo/1"]) == [True, False]


@pytest.mark.parametrize("told", [True, False])
def test_a_leading_value_prunes_the_folders_above_partitions(told):
    assert pruner("city = 'sf'", told=told).keep_below(["sf", "oslo"]) == [True, False]
    for filter in ("city = 'sf' and n = 2 and v > 5", "city = 'sf' and (n = 2 or v > 5)"):
        assert pruner(filter, told=told).keep_below(["sf", "oslo"]) == [True, False]
    for filter in ("n = 2", "v > 5", "city = 'sf' or n = 2"):
        assert pruner(filter, told=told).keep_below(["sf", "oslo"]) == [True, True]
    assert pruner("n = 2").keep_below(["sf", "oslo"]) == [True, True]


def test_a_hive_style_value_may_go_on_in_the_next_folder():
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    config = TableConfig({"hoodie.table.partition.fields": "city,n", **hive})
    encoded = TableConfig({**config.properties, "hoodie.datasource.write.partitionpath.urlencode": "true"})
    columns = partition_columns(config, SCHEMA, from_path=True)
    filter = parse("city = 'a/b'", SCHEMA)
    assert PartitionPruner(filter, SCHEMA, config, columns).keep_below(["city=a"]) == [True]
    assert PartitionPruner(filter, SCHEMA, encoded, columns).keep_below(["city=a", "other"]) == [False, True]


def test_one_field_does_not_prune_folders_above_partitions():
    assert pruner("city = '2024/03/05'", fields="city").keep_below(["2024"]) == [True]


def _inside(filter, paths, **properties):
    keep = pruner(filter, **properties).keep_inside(paths)
    return [p for p, k in zip(paths, keep, strict=True) if k]


@pytest.mark.req("QR-11")
def test_a_partition_may_hold_wanted_ones_only_where_values_begin_with_its_own():
    folders = ["2023", "2024", "2024/01", "2024!", "20240", "__HIVE_DEFAULT_PARTITION__"]
    assert _inside("city = '2024/01/05'", folders, fields="city") == ["2024", "2024/01"]
    assert _inside("city = '2025'", folders, fields="city") == []
    assert _inside("city in ('2023/1', '20240/7')", folders, fields="city") == ["2023", "20240"]
    assert _inside("city like '%x'", folders, fields="city") == folders
    assert _inside("v > 5", folders, fields="city") == folders
    assert _inside("n = 2", ["1", "2"], fields="n") == []  # the text of a number has no slash


@pytest.mark.req("QR-11")
def test_levels_of_several_fields_hold_no_partitions_unless_values_may_go_on():
    assert _inside("city = 'sf'", ["oslo/1", "sf/1"], fields="city,n") == []
    config = {
        "hoodie.table.partition.fields": "n,city",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    columns = partition_columns(TableConfig(config), SCHEMA, from_path=True)
    paths = ["n=1/city=a", "n=2/city=a", "n=2/city=b", "n=2/x/city=a"]
    hive = PartitionPruner(parse("city = 'a/b' and n = 2", SCHEMA), SCHEMA, TableConfig(config), columns)
    assert list(hive.keep_inside(paths)) == [False, True, False, True]
    encoded = {**config, "hoodie.datasource.write.partitionpath.urlencode": "true"}
    hive = PartitionPruner(parse("city = 'a/b'", SCHEMA), SCHEMA, TableConfig(encoded), columns)
    assert list(hive.keep_inside(paths)) == [False] * 4


@given(
    folders=st.lists(st.text("ab/0!%é", min_size=1, max_size=4), min_size=1, max_size=12, unique=True),
    inner=st.text("ab/0", min_size=1, max_size=2),
    wanted=st.text("ab/0!é", max_size=5),
    operator=st.sampled_from(["=", ">=", "<", ">"]),
)
@settings(max_examples=100)
def test_no_wanted_value_inside_of_a_partition_is_lost(folders, inner, wanted, operator):
    from hudi_format.keygen.partition_path import split_values

    keep = pruner(f"city {operator} '{wanted}'", fields="city").keep_inside(folders)
    for folder, kept in zip(folders, keep, strict=True):
        value = split_values(f"{folder}/{inner}", ["city"])[0]
        passes = {"=": value == wanted, ">=": value >= wanted, "<": value < wanted, ">": value > wanted}
        assert kept or not passes[operator]


def test_many_partitions_are_decided_at_once():
    paths = [f"c{n % 100}/{n}" for n in range(5000)]
    assert sum(pruner("city = 'c7' and n < 2000").keep(paths)) == 20


# --- row groups

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
@settings(max_examples=300)
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


def test_no_guarantee_keeps():
    assert may_match(pc.field("n") > 5, [None, pc.field("n") == 1, pc.field("n") == 9], SCHEMA) == [
        True,
        False,
        True,
    ]
